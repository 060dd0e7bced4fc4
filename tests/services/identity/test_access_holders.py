# SPDX-License-Identifier: Apache-2.0
"""Holders of access: the list contains exactly the users whose requests would be allowed, with reasons, in pages, and
only callers with the right to see it receive it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from limnos.access.actions import Action
from limnos.access.levels import LEVELS, levels_of
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.identity import access_holders
from limnos.services.identity.access_holders import AccessRules, HoldersPage, HoldersRequest
from limnos.services.identity.access_objects import AccessQuestion, ObjectAccess
from limnos.services.identity.grants import PrivilegeRequest, roles_give
from limnos.services.identity.owners import owner_set
from limnos.services.identity.roles import role_create
from limnos.store.identity.access_facts import HeldRoleRow
from tests.inprocess import ADMIN, LAKE
from tests.services.conftest import ServiceDesk
from tests.services.identity.drawn_rights import PEOPLE, draw_rights, may_any

TABLE = ("main", "a", "t")


def holders(
    desk: ServiceDesk,
    path: tuple[str, ...] = TABLE,
    *,
    asks: str = ADMIN,
    kind: Kind | None = None,
    action: Action | None = None,
    after: str = "",
    limit: int = 100,
) -> HoldersPage:
    """Request the holders of access to an object."""
    request = HoldersRequest(action, after, limit)
    question = AccessQuestion(LAKE, kind, path)
    return desk.run(access_holders.access_holders(desk.ctx(asks), question, request=request))


def rules(desk: ServiceDesk, path: tuple[str, ...] = TABLE, *, asks: str = ADMIN, after: int = 0) -> AccessRules:
    """Request the rules that decide on an object."""
    return desk.run(access_holders.access_rules(desk.ctx(asks), AccessQuestion(LAKE, None, path), after=after, limit=2))


def give_reading(desk: ServiceDesk, user: str) -> None:
    """Grant a user the privileges to read the table."""
    desk.allow(user, Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow(user, Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA)
    desk.allow(user, Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE)


@pytest.fixture(autouse=True)
def furnished(desk: ServiceDesk) -> None:
    """A desk with a table."""
    desk.namespace("a")
    desk.table("a", "t")


def test_holder_has_the_same_reasons_as_the_explanation(desk: ServiceDesk) -> None:
    """A listed holder has the same reasons as the explanation of the decision: privileges, objects and roles."""
    give_reading(desk, "ana")

    holders_by_user = {each.user: each for each in holders(desk).holders}

    assert set(holders_by_user) == {"admin", "ana"}
    assert set(holders_by_user["ana"].reasons) == {"read"}
    factors = {(each.privilege, each.object_name, each.role) for each in holders_by_user["ana"].reasons["read"]}
    assert factors == {
        ("USE_CATALOG", "main", "of ana"),
        ("USE_SCHEMA", "main.a", "of ana"),
        ("SELECT_TABLE", "main.a.t", "of ana"),
    }
    assert {each.kind for each in holders_by_user["admin"].reasons["drop"]} == {"owner"}


def test_each_role_that_gives_an_access_alone_is_a_reason(desk: ServiceDesk) -> None:
    """A holder's reasons name every role that gives the level without the others, and the ownership beside them: who
    takes one away sees what remains.
    """
    give_reading(desk, "ana")
    rights = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    allows = tuple((each, GrantCondition.ALLOW) for each in rights)
    for role in ("spare", "third"):
        request = (PrivilegeRequest(Kind.CATALOG, "main", allows),)
        desk.run(role_create(desk.ctx(), metalake=LAKE, name=role, properties={}, privilege_requests=request))
        desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=(role,)))

    (ana,) = [each for each in holders(desk).holders if each.user == "ana"]

    assert {each.role for each in ana.reasons["read"]} == {"of ana", "spare", "third"}


def test_roles_of_a_user_with_many_are_built_in_parts(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The roles of a user with many are built in parts between which other requests run, with the same result."""
    for number in range(5):
        role = f"r{number}"
        privilege_request = PrivilegeRequest(Kind.CATALOG, "main", ((Privilege.USE_CATALOG, GrantCondition.ALLOW),))
        desk.run(
            role_create(desk.ctx(), metalake=LAKE, name=role, properties={}, privilege_requests=(privilege_request,))
        )
        desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=(role,)))
    expected = holders(desk, ("main",))
    sizes = []
    build = ObjectAccess.build_roles

    def counted(access: ObjectAccess, rows: Sequence[HeldRoleRow]) -> None:
        sizes.append(len(rows))
        build(access, rows)

    monkeypatch.setattr(ObjectAccess, "build_roles", counted)
    monkeypatch.setattr(access_holders, "ROLES_AT_ONCE", 2)

    assert holders(desk, ("main",)) == expected
    assert sizes == [2, 1]


def test_namespace_user_is_not_a_holder_of_its_tables(desk: ServiceDesk) -> None:
    """A user of the catalog and of the namespace is listed as holder of these, but not of the table."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA)

    assert [each.user for each in holders(desk).holders] == ["admin"]
    assert [each.user for each in holders(desk, TABLE[:2]).holders] == ["admin", "ana"]


def test_pages_continue_by_name(desk: ServiceDesk) -> None:
    """Pages of any size list each user once, and end."""
    desk.users(*PEOPLE[2:])
    for user in PEOPLE:
        give_reading(desk, user)

    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = holders(desk, after=after, limit=2)
        assert 1 <= len(page.holders) <= 2
        seen += [each.user for each in page.holders]
        after = page.following

    assert seen == ["admin", *PEOPLE]


def test_holders_can_be_filtered_by_action(desk: ServiceDesk) -> None:
    """With an action in the request, only the users who may perform that action are listed."""
    give_reading(desk, "ana")

    page = holders(desk, action=Action.TABLE_DROP)

    assert page.asked == ("table_drop",)
    assert [each.user for each in page.holders] == ["admin"]
    with pytest.raises(BadRequest, match="done to"):
        holders(desk, action=Action.VIEW_DROP)


def test_holders_list_needs_ownership_or_manage_grants(desk: ServiceDesk) -> None:
    """A reader of a table may not list its other readers; the table's owner and users with MANAGE_GRANTS may."""
    give_reading(desk, "ana")
    for ask in (holders, rules):
        with pytest.raises(PermissionDenied):
            ask(desk, asks="ana")
        with pytest.raises(PermissionDenied):
            ask(desk, asks="nobody")

    desk.allow("bob", Kind.CATALOG, "main", Privilege.MANAGE_GRANTS)

    assert [each.user for each in holders(desk, asks="bob").holders] == ["admin", "ana"]
    assert rules(desk, asks="bob").rules


def test_owner_sees_no_names_of_roles_without_load_right(desk: ServiceDesk) -> None:
    """A table's owner sees its readers, but not the names of roles that the owner may not load."""
    give_reading(desk, "ana")
    give_reading(desk, "bob")
    desk.run(
        owner_set(desk.ctx(), metalake=LAKE, kind=Kind.TABLE, full_name="main.a.t", owner_kind=Kind.USER, owner="bob")
    )

    holders_by_user = {each.user: each for each in holders(desk, asks="bob").holders}
    visible_rules = rules(desk, asks="bob")

    assert {each.role for each in holders_by_user["ana"].reasons["read"]} == {None}
    assert "of bob" in {each.role for each in holders_by_user["bob"].reasons["read"]}
    assert {each.role for each in visible_rules.rules} == {"of bob"}
    assert visible_rules.hidden_rules == 3


def test_own_rules_are_listed_before_inherited_ones(desk: ServiceDesk) -> None:
    """The list has the rules of the object itself before inherited ones, each with its number of holders, and the
    owners of all ancestors.
    """
    give_reading(desk, "ana")

    first = rules(desk)
    second = rules(desk, after=first.following or 0)

    assert [
        (each.object_name, each.is_inherited, each.users, each.groups) for each in (*first.rules, *second.rules)
    ] == [
        ("main.a.t", False, 1, 0),
        ("main.a", True, 1, 0),
        ("main", True, 1, 0),
    ]
    assert second.following is None
    assert [(each.name, each.object_kind, each.is_inherited) for each in first.owners] == [
        ("admin", Kind.TABLE, False),
        ("admin", Kind.NAMESPACE, True),
        ("admin", Kind.CATALOG, True),
        ("admin", Kind.METALAKE, True),
    ]


def test_missing_table_has_the_holders_of_its_namespace(desk: ServiceDesk) -> None:
    """The holders of a missing table are those who have the privileges on its namespace, as if the table existed
    without grants.
    """
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)

    assert [each.user for each in holders(desk, ("main", "a", "gone"), kind=Kind.TABLE).holders] == ["admin", "ana"]


@pytest.mark.parametrize("seed", range(6))
def test_holders_equal_users_with_allowed_requests(desk: ServiceDesk, seed: int) -> None:
    """For random rights, the listed holders of each level and action are exactly the users whose own requests are
    allowed.
    """
    drawn = random.Random(seed)
    draw_rights(desk, drawn)
    everybody = [ADMIN, *PEOPLE]

    for kind, path in ((Kind.CATALOG, TABLE[:1]), (Kind.NAMESPACE, TABLE[:2]), (Kind.TABLE, TABLE)):
        page = holders(desk, path, kind=kind)
        holder_levels = {(each.user, level) for each in page.holders for level in each.reasons}
        assert holder_levels == {
            (user, level)
            for level in LEVELS
            for user in everybody
            if may_any(desk, user, levels_of(kind).get(level, ()), kind, path)
        }
        for action in drawn.sample([each for each in Action if kind in each.kinds], 8):
            one = {each.user for each in holders(desk, path, kind=kind, action=action).holders}
            assert one == {user for user in everybody if may_any(desk, user, (action,), kind, path)}, action
