"""Reach of a user: the objects that the user can access below an object, counted and listed. The user itself and users
with MANAGE_GRANTS may request it.
"""

from __future__ import annotations

import random

import pytest

from limnos.access.levels import levels_of
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.identity.access_objects import AccessQuestion
from limnos.services.identity.access_reach import Reach, ReachRequest, access_reach
from tests.inprocess import ADMIN, LAKE
from tests.services.conftest import ServiceDesk
from tests.services.identity.drawn_rights import PEOPLE, draw_rights, may_any

TREE = (
    (Kind.CATALOG, ("main",)), (Kind.NAMESPACE, ("main", "a")), (Kind.TABLE, ("main", "a", "t")),
    (Kind.TABLE, ("main", "a", "u")), (Kind.NAMESPACE, ("main", "a", "deep")), (Kind.TABLE, ("main", "a", "deep", "v")),
    (Kind.NAMESPACE, ("main", "b")), (Kind.TABLE, ("main", "b", "w")),
)  # fmt: skip


def reach(
    desk: ServiceDesk, path: tuple[str, ...] = ("main",), *, asks: str = ADMIN, user: str | None = None,
    after: tuple[str, ...] = (), limit: int = 100, kind: Kind | None = None,
) -> Reach:  # fmt: skip
    """Request the reach of a user."""
    request = ReachRequest(user, after, limit)
    return desk.run(access_reach(desk.ctx(asks), AccessQuestion(LAKE, kind, path), request=request))


@pytest.fixture(autouse=True)
def furnished(desk: ServiceDesk) -> None:
    """A desk with a tree of namespaces and tables."""
    for kind, path in TREE[1:]:
        if kind is Kind.NAMESPACE:
            desk.namespace(*path[1:])
        else:
            desk.table(*path[1:])


def test_reader_reaches_only_tables_of_its_namespaces(desk: ServiceDesk) -> None:
    """A reader of one namespace reaches its tables and those of its child namespaces, and no others."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)

    page = reach(desk, asks="ana")

    assert page.counts == {"read": {Kind.CATALOG: 1, Kind.NAMESPACE: 2, Kind.TABLE: 3}}
    assert [".".join(each.path) for each in page.objects] == [
        "main", "main.a", "main.a.deep", "main.a.deep.v", "main.a.t", "main.a.u",
    ]  # fmt: skip
    assert (page.looked, page.hidden, page.is_bounded) == (6, 0, False)
    assert reach(desk, user="ana").counts == page.counts
    assert reach(desk, user="ana").looked == 8


def test_pages_continue_by_path(desk: ServiceDesk) -> None:
    """Each page begins after the last path of the previous one."""
    seen = []
    after: tuple[str, ...] | None = ()
    while after is not None:
        page = reach(desk, after=after, limit=3)
        seen += [each.path for each in page.objects]
        after = page.following

    assert sorted(seen) == sorted(path for _, path in TREE)


def test_reach_of_another_user_needs_manage_grants(desk: ServiceDesk) -> None:
    """The reach of another user needs MANAGE_GRANTS. Objects that the caller may not load are counted but not named."""
    desk.allow("bob", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    with pytest.raises(PermissionDenied):
        reach(desk, asks="ana", user="bob")
    with pytest.raises(PermissionDenied):
        reach(desk, asks="nobody")

    desk.allow("ana", Kind.CATALOG, "main", Privilege.MANAGE_GRANTS)
    page = reach(desk, asks="ana", user="bob")

    assert page.counts["read"][Kind.TABLE] == 4
    assert [each.path for each in page.objects] == [("main",)]
    assert page.hidden == 7


def test_reach_below_a_table_is_refused(desk: ServiceDesk) -> None:
    """A request for the reach below a table is refused; the reach below a missing container is empty."""
    with pytest.raises(BadRequest, match="below"):
        reach(desk, ("main", "a", "t"))
    assert reach(desk, ("main", "gone"), kind=Kind.NAMESPACE).objects == []


@pytest.mark.parametrize("seed", range(4))
def test_reach_equals_each_objects_own_decision(desk: ServiceDesk, seed: int) -> None:
    """For random rights, an object is reached at a level exactly if the user's own request would be allowed."""
    drawn = random.Random(seed)
    draw_rights(desk, drawn)

    for user in drawn.sample(PEOPLE, 3):
        reached_levels = {(each.path, level) for each in reach(desk, user=user).objects for level in each.levels}
        expected = {
            (path, level)
            for kind, path in TREE
            for level, actions in levels_of(kind).items()
            if may_any(desk, user, actions, kind, path)
        }
        assert reached_levels == expected
