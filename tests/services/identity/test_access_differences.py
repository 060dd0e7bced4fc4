# SPDX-License-Identifier: Apache-2.0
"""Differences between two users: each action on each object that only one of them may take."""

from __future__ import annotations

import random

import pytest

from limnos.access.actions import Action
from limnos.access.levels import actions_on
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.identity.access_differences import Differences, DiffRequest, access_diff
from limnos.services.identity.access_objects import AccessQuestion
from tests.inprocess import ADMIN, LAKE
from tests.services.conftest import ServiceDesk
from tests.services.identity.drawn_rights import PEOPLE, draw_rights, may_any

TREE = (
    (Kind.CATALOG, ("main",)),
    (Kind.NAMESPACE, ("main", "a")),
    (Kind.TABLE, ("main", "a", "t")),
    (Kind.NAMESPACE, ("main", "a", "deep")),
    (Kind.TABLE, ("main", "a", "deep", "v")),
)


def diff(
    desk: ServiceDesk,
    path: tuple[str, ...] = ("main",),
    *,
    asks: str = ADMIN,
    other: str = "bob",
    after: tuple[str, ...] = (),
    limit: int = 100,
) -> Differences:
    """Request the differences of ana and another user."""
    request = DiffRequest("ana", other, after, limit)
    return desk.run(access_diff(desk.ctx(asks), AccessQuestion(LAKE, None, path), request=request))


@pytest.fixture(autouse=True)
def furnished(desk: ServiceDesk) -> None:
    """A desk with a tree of namespaces and tables."""
    for kind, path in TREE[1:]:
        (desk.namespace if kind is Kind.NAMESPACE else desk.table)(*path[1:])


def test_reader_and_writer_differ_by_level_and_action(desk: ServiceDesk) -> None:
    """Each user has the levels and actions that the other lacks; objects on which both may do the same are absent."""
    for user in ("ana", "bob"):
        desk.allow(user, Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.CREATE_TABLE)
    desk.allow("bob", Kind.NAMESPACE, "main.a", Privilege.CREATE_VIEW)
    desk.allow("bob", Kind.TABLE, "main.a:deep.v", Privilege.SELECT_TABLE)

    page = diff(desk)

    by_path = {".".join(each.path): each for each in page.objects}
    assert "main" not in by_path
    assert {"table_create", "table_register"} <= set(by_path["main.a"].user.actions)
    assert "view_create" in by_path["main.a"].other.actions
    assert (by_path["main.a"].user.levels, by_path["main.a"].other.levels) == ((), ())
    assert by_path["main.a.deep.v"].other.levels == ("read",)
    assert "table_scan" in by_path["main.a.deep.v"].other.actions
    assert (page.hidden, page.looked) == (0, 5)


def test_pages_continue_by_path(desk: ServiceDesk) -> None:
    """Each page begins after the last path of the previous one; the count is that of all pages."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)

    first = diff(desk, limit=3)
    rest = diff(desk, after=first.following or (), limit=3)

    assert first.following == ("main", "a", "deep")
    assert [each.path for each in (*first.objects, *rest.objects)] == sorted(path for _, path in TREE)
    assert (first.differing, rest.differing, rest.following) == (5, 5, None)


def test_differences_of_a_table_alone(desk: ServiceDesk) -> None:
    """A path may name a table: it has no objects below it, and is compared itself."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.MODIFY_TABLE)

    (table,) = diff(desk, ("main", "a", "t")).objects

    assert (table.path, table.user.levels) == (("main", "a", "t"), ("write",))


def test_differences_need_manage_grants(desk: ServiceDesk) -> None:
    """Only users who manage grants compare users, also themselves. A missing user is NotFound for them alone. Objects
    that the caller may not load are counted and not named.
    """
    desk.allow("bob", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    desk.users("cleo")
    desk.allow("cleo", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    for other in ("bob", "no such"):
        with pytest.raises(PermissionDenied):
            diff(desk, asks="ana", other=other)
        with pytest.raises(PermissionDenied):
            diff(desk, asks="cleo", other=other)
    with pytest.raises(NotFound):
        diff(desk, other="no such")

    desk.allow("cleo", Kind.CATALOG, "main", Privilege.MANAGE_GRANTS)
    page = diff(desk, asks="cleo")

    assert ([each.path for each in page.objects], page.differing, page.hidden) == ([("main",)], 5, 4)


@pytest.mark.parametrize("seed", range(4))
def test_differences_equal_each_objects_own_decisions(desk: ServiceDesk, seed: int) -> None:
    """For random rights, an action is a difference exactly if one user's own request would be allowed and the other's
    refused. Rights to learn that a name is free, for which no request asks, are left out.
    """
    drawn = random.Random(seed)
    draw_rights(desk, drawn)
    other = drawn.choice(PEOPLE[1:])

    page = diff(desk, other=other)

    listed = {
        (each.path, user, action)
        for each in page.objects
        for user, rights in (("ana", each.user), (other, each.other))
        for action in rights.actions
    }
    expected = {
        (path, user, action)
        for kind, path in TREE
        for action in actions_on(kind)
        if action not in {Action.TABLE_MAY_PROBE, Action.VIEW_MAY_PROBE}
        for user, second in (("ana", other), (other, "ana"))
        if may_any(desk, user, (action,), kind, path) and not may_any(desk, second, (action,), kind, path)
    }
    assert listed == expected


def test_missing_object_is_reported(desk: ServiceDesk) -> None:
    """A comparison on an object that does not exist is refused as missing, instead of finding no difference."""
    with pytest.raises(NotFound, match=r"Namespace does not exist: main\.a\.nope"):
        diff(desk, ("main", "a", "nope"))
