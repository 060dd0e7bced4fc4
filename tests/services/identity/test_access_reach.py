# SPDX-License-Identifier: Apache-2.0
"""Reach of a user: the objects that the user can access below an object, counted and listed. The user itself and users
with MANAGE_GRANTS may request it.
"""

from __future__ import annotations

import random

import pytest

from limnos.access.levels import levels_of
from limnos.model.decisions import ChainLink
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.principals import HeldRole, RoleRules, Subject
from limnos.model.privileges import Privilege
from limnos.services.identity.access_objects import AccessQuestion
from limnos.services.identity.access_reach import Reach, ReachRequest, SubtreeDecisions, access_reach
from limnos.services.identity.access_subtrees import SubtreeFacts, SubtreeObject, object_path
from limnos.services.identity.users import user_enable
from tests.inprocess import ADMIN, LAKE
from tests.services.conftest import ServiceDesk
from tests.services.identity.drawn_rights import PEOPLE, draw_rights, may_any

TREE = (
    (Kind.CATALOG, ("main",)),
    (Kind.NAMESPACE, ("main", "a")),
    (Kind.TABLE, ("main", "a", "t")),
    (Kind.TABLE, ("main", "a", "u")),
    (Kind.NAMESPACE, ("main", "a", "deep")),
    (Kind.TABLE, ("main", "a", "deep", "v")),
    (Kind.NAMESPACE, ("main", "b")),
    (Kind.TABLE, ("main", "b", "w")),
)


def reach(
    desk: ServiceDesk,
    path: tuple[str, ...] = ("main",),
    *,
    asks: str = ADMIN,
    user: str | None = None,
    after: tuple[str, ...] = (),
    limit: int = 100,
    kind: Kind | None = None,
) -> Reach:
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
        "main",
        "main.a",
        "main.a.deep",
        "main.a.deep.v",
        "main.a.t",
        "main.a.u",
    ]
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


def test_namespaces_with_equal_facts_share_decisions() -> None:
    """A hundred namespaces with two tables each, of which one has a grant, need a decision for each kind of object with
    different facts, not for each namespace.
    """
    outer = (ChainLink(2, Kind.CATALOG, "main"), ChainLink(1, Kind.METALAKE, LAKE))
    facts, granted = SubtreeFacts(with_rules=False), 50
    for number in range(100):
        space = ChainLink(1_000 + number, Kind.NAMESPACE, f"s{number}")
        facts.objects.append(SubtreeObject((space, *outer), None))
        for table in range(2):
            link = ChainLink(2_000 + 2 * number + table, Kind.TABLE, f"t{table}")
            facts.objects.append(SubtreeObject((link, space, *outer), None))
    allow = [(Privilege.USE_CATALOG, 2), (Privilege.USE_SCHEMA, 1_000 + granted), (Privilege.SELECT_TABLE, 2)]
    role = HeldRole(RoleRules.of(7, "r", allow=allow), None)
    decisions = SubtreeDecisions(Subject.of(5, "ana", roles=[role]), facts)

    levels = {object_path(each.chain): decisions.levels(each)[0] for each in facts.objects}

    assert {path[1] for path, of_user in levels.items() if of_user} == {f"s{granted}"}
    assert len(decisions._levels) == 4


def test_disabled_user_gets_a_note(desk: ServiceDesk) -> None:
    """The reach of a disabled user has a note: every request of theirs is refused."""
    assert reach(desk, user="ana").notes == ()
    desk.run(user_enable(desk.ctx(), metalake=LAKE, name="ana", enabled=False))

    (note,) = reach(desk, user="ana").notes
    assert note == "User ana is disabled, so every request of theirs is refused: 'limnos user enable ana'."
