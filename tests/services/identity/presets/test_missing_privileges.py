# SPDX-License-Identifier: Apache-2.0
"""Privileges that a user lacks for a preset: complete, and sufficient once they are granted."""

from __future__ import annotations

import random

import pytest

from limnos.access.actions import Action
from limnos.model.errors import BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.presets import PresetName
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.identity.access_consequences import privilege_request_at
from limnos.services.identity.access_objects import AccessQuestion
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant
from limnos.services.identity.owners import owner_set
from limnos.services.identity.presets.access_presets import PresetRequest, preset_change
from limnos.services.identity.presets.missing_privileges import MissingPrivileges, missing_privileges
from limnos.services.identity.users import user_enable
from tests.inprocess import ADMIN, LAKE
from tests.services.conftest import ServiceDesk
from tests.services.identity.drawn_rights import PEOPLE, draw_rights, may_any

TABLE = (Kind.TABLE, ("main", "a", "t"))
SPACE = (Kind.NAMESPACE, ("main", "a"))
CATALOG = (Kind.CATALOG, ("main",))
NEEDS: dict[PresetName, dict[Kind, tuple[Action, ...]]] = {
    "reader": {
        Kind.TABLE: (Action.TABLE_SCAN, Action.TABLE_READ),
        Kind.NAMESPACE: (Action.NAMESPACE_LOAD,),
        Kind.CATALOG: (Action.CATALOG_LOAD,),
    },
    "writer": {
        Kind.TABLE: (Action.TABLE_SCAN, Action.TABLE_COMMIT),
        Kind.NAMESPACE: (Action.TABLE_CREATE, Action.VIEW_CREATE, Action.FUNCTION_CREATE),
        Kind.CATALOG: (Action.CATALOG_LOAD,),
    },
    "admin": {
        Kind.TABLE: (Action.TABLE_SCAN, Action.TABLE_COMMIT, Action.PRIVILEGE_GRANT),
        Kind.NAMESPACE: (Action.TABLE_CREATE, Action.PRIVILEGE_GRANT, Action.NAMESPACE_CREATE),
        Kind.CATALOG: (Action.NAMESPACE_CREATE, Action.PRIVILEGE_GRANT),
    },
}
"""Actions that a user with the whole preset on an object of the kind may take."""


def lack(
    desk: ServiceDesk,
    preset: PresetName = "reader",
    on: tuple[Kind, tuple[str, ...]] = TABLE,
    *,
    asks: str = ADMIN,
    user: str | None = "ana",
) -> MissingPrivileges:
    """Request what a user lacks."""
    kind, path = on
    return desk.run(missing_privileges(desk.ctx(asks), AccessQuestion(LAKE, kind, path), user=user, preset=preset))


def words(result: MissingPrivileges) -> list[tuple[str, str]]:
    """Return the missing privileges and their objects."""
    return [(each.privilege.name, each.object_name) for each in result.missing]


@pytest.fixture(autouse=True)
def furnished(desk: ServiceDesk) -> None:
    """A desk with a namespace and a table."""
    desk.namespace("a")
    desk.table("a", "t")


def test_everything_on_the_way_is_missing(desk: ServiceDesk) -> None:
    """A user without rights lacks USE_CATALOG, USE_SCHEMA and the privileges on the object, each on its object."""
    assert words(lack(desk)) == [("USE_CATALOG", "main"), ("USE_SCHEMA", "main.a"), ("SELECT_TABLE", "main.a.t")]


def test_inherited_privileges_are_not_missing(desk: ServiceDesk) -> None:
    """A privilege on a container counts; a denial below it does not, and is named with its role."""
    desk.allow("ana", *_on(CATALOG), Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    assert words(lack(desk)) == []

    privilege_request = PrivilegeRequest(Kind.NAMESPACE, "main.a", ((Privilege.SELECT_TABLE, GrantCondition.DENY),))
    desk.run(privileges_grant(desk.ctx(), metalake=LAKE, role="of ana", privilege_request=privilege_request))

    (missing,) = lack(desk).missing
    assert missing.privilege is Privilege.SELECT_TABLE
    assert [(each.role, each.object_kind, each.object_name) for each in missing.denials] == [
        ("of ana", "namespace", "main.a")
    ]


@pytest.mark.parametrize(
    "on,needed",
    [(CATALOG, []), (SPACE, ["USE_CATALOG"]), (TABLE, ["USE_CATALOG", "USE_SCHEMA"])],
    ids=["catalog", "namespace", "table"],
)
def test_owners_lack_only_the_way(desk: ServiceDesk, on: tuple[Kind, tuple[str, ...]], needed: list[str]) -> None:
    """The owner of an object around or at the table needs no privilege on it, only those to get there."""
    kind, full_name = _on(on)
    change = owner_set(desk.ctx(), metalake=LAKE, kind=kind, full_name=full_name, owner_kind=Kind.USER, owner="ana")
    desk.run(change)

    assert [name for name, _ in words(lack(desk, "admin"))] == needed


def test_only_managers_ask_about_others(desk: ServiceDesk) -> None:
    """Everybody asks about themselves, and gets for a hidden object what a missing one gets. Others' privileges need
    MANAGE_GRANTS, and only then a missing user is NotFound.
    """
    absent_table = (Kind.TABLE, ("main", "a", "gone"))
    hidden, absent = (lack(desk, on=on, asks="ana", user=None) for on in (TABLE, absent_table))
    assert [(each.privilege, each.kind) for each in hidden.missing] == [
        (each.privilege, each.kind) for each in absent.missing
    ]
    assert hidden.user == "ana"
    for user in ("bob", "no such"):
        with pytest.raises(PermissionDenied):
            lack(desk, asks="ana", user=user)
    with pytest.raises(NotFound):
        lack(desk, user="no such")
    with pytest.raises(BadRequest, match="no privileges of the preset"):
        lack(desk, on=(Kind.ROLE, ("of ana",)), user=ADMIN)


def test_hidden_catalog_gets_the_answer_of_a_missing_one(desk: ServiceDesk) -> None:
    """Who may not know a catalog learns neither its type nor that it exists."""
    hidden, absent = (
        lack(desk, "writer", (Kind.NAMESPACE, (name, "a")), asks="ana", user=None) for name in ("main", "nope")
    )

    assert [(each.privilege, each.kind) for each in hidden.missing] == [
        (each.privilege, each.kind) for each in absent.missing
    ]


@pytest.mark.parametrize("seed", range(6))
def test_missing_agrees_with_decisions_before_and_after_the_grant(desk: ServiceDesk, seed: int) -> None:
    """For random rights, nothing is missing only if the preset's actions are allowed, an owner's case aside; and
    after the denials are revoked and the preset is granted, nothing is missing and each action is allowed.
    """
    drawn = random.Random(seed)
    draw_rights(desk, drawn)
    for preset in NEEDS:
        kind, path = on = drawn.choice([TABLE, SPACE, CATALOG])
        user = drawn.choice(PEOPLE)
        result = lack(desk, preset, on, user=user)
        if not result.missing:
            assert _may_all(desk, user, preset, on)
        for each in result.missing:
            for denial in each.denials:
                privilege_request = PrivilegeRequest(
                    Kind[denial.object_kind.upper()], denial.object_name, ((each.privilege, GrantCondition.DENY),)
                )
                change = privileges_grant(
                    desk.ctx(),
                    metalake=LAKE,
                    role=denial.role or "",
                    privilege_request=privilege_request,
                    grants_them=False,
                )
                desk.run(change)
        privilege_request = desk.run(privilege_request_at(desk.ctx(), AccessQuestion(LAKE, kind, path), privileges=()))
        desk.run(
            preset_change(
                desk.ctx(),
                PresetRequest(
                    metalake=LAKE,
                    preset=preset,
                    privilege_request=privilege_request,
                    holder_kind=Kind.USER,
                    holder=user,
                    grants_them=True,
                ),
            )
        )
        assert lack(desk, preset, on, user=user).missing == ()
        assert _may_all(desk, user, preset, on)


def _on(on: tuple[Kind, tuple[str, ...]]) -> tuple[Kind, str]:
    return on[0], ".".join(on[1])


def _may_all(desk: ServiceDesk, user: str, preset: PresetName, on: tuple[Kind, tuple[str, ...]]) -> bool:
    return all(may_any(desk, user, (action,), *on) for action in NEEDS[preset][on[0]])


def test_disabled_user_is_named(desk: ServiceDesk) -> None:
    """The answer says whether the user is enabled: every request of a disabled one is refused."""
    before = lack(desk).is_enabled
    desk.run(user_enable(desk.ctx(), metalake=LAKE, name="ana", enabled=False))

    assert (before, lack(desk).is_enabled) == (True, False)


def test_missing_object_is_reported_to_who_may_know(desk: ServiceDesk) -> None:
    """The privileges on an object that does not exist are not listed for a caller who manages grants; a caller without
    that right gets the same answer as for a hidden object.
    """
    question = AccessQuestion(LAKE, None, ("main", "a", "nope"))

    with pytest.raises(NotFound, match=r"Table does not exist: main\.a\.nope"):
        desk.run(missing_privileges(desk.ctx(ADMIN), question, user="ana", preset="reader"))
    own = desk.run(missing_privileges(desk.ctx("ana"), question, user=None, preset="reader"))

    assert own.missing
