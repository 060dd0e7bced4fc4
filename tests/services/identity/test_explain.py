# SPDX-License-Identifier: Apache-2.0
"""Explanations: they return the decision that a request would get. Users may explain their own access; for other users
they need the right to grant.
"""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from limnos.model.decisions import Decision
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.identity.explain import access_explain
from limnos.services.identity.roles import role_create
from limnos.services.identity.users import user_enable
from tests.inprocess import ADMIN, LAKE
from tests.services.conftest import ServiceDesk

TABLE = ("main", "a", "t")


def explain(
    desk: ServiceDesk,
    *,
    asks: str = ADMIN,
    user: str | None = None,
    action: Action = Action.TABLE_LOAD,
    kind: Kind | None = None,
    path: tuple[str, ...] = TABLE,
) -> tuple[Decision, list[str]]:
    """Request an explanation."""
    return desk.run(access_explain(desk.ctx(asks), metalake=LAKE, user=user, action=action, kind=kind, path=path))


@pytest.fixture(autouse=True)
def furnished(desk: ServiceDesk) -> None:
    """A desk with a table."""
    desk.namespace("a")
    desk.table("a", "t")


def test_own_refusal_suggests_the_missing_grants(desk: ServiceDesk) -> None:
    """Every user may explain their own access. The explanation of a refusal suggests one grant for each missing
    privilege.
    """
    decision, steps = explain(desk, asks="ana")

    assert not decision.allowed
    assert {factor.privilege for factor in decision.factors} >= {"USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE"}
    assert steps == [
        "Grant USE_CATALOG on catalog main to a role of ana.",
        "Grant USE_SCHEMA on namespace main.a to a role of ana.",
        "Grant SELECT_TABLE or MODIFY_TABLE on table main.a.t to a role of ana.",
    ]


def test_suggested_grants_lead_to_permission(desk: ServiceDesk) -> None:
    """A user who gets all suggested grants is allowed, and the next explanation suggests nothing."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA)
    desk.allow("ana", Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE)

    decision, steps = explain(desk, asks="ana")

    assert decision.allowed
    assert steps == []
    assert {factor.role for factor in decision.factors} == {"of ana"}


def test_denial_is_named_with_its_role(desk: ServiceDesk) -> None:
    """The explanation of a denied request names the denial and its role."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.SELECT_TABLE, condition=GrantCondition.DENY)

    decision, _ = explain(desk, asks="ana")

    denials = [factor for factor in decision.factors if factor.kind == "deny"]
    assert not decision.allowed
    assert [(factor.privilege, factor.object_name, factor.role) for factor in denials] == [
        ("SELECT_TABLE", "main.a", "of ana")
    ]


def test_explaining_another_user_needs_manage_grants(desk: ServiceDesk) -> None:
    """Explaining another user's access needs MANAGE_GRANTS on the object or an ancestor."""
    with pytest.raises(PermissionDenied, match="MANAGE_GRANTS"):
        explain(desk, asks="ana", user="bob")

    desk.allow("ana", Kind.CATALOG, "main", Privilege.MANAGE_GRANTS)

    assert explain(desk, asks="ana", user="bob")[0].user == "bob"
    assert explain(desk, asks="ana", user="ana")[0].user == "ana"


def test_explained_decision_equals_the_real_decision(desk: ServiceDesk) -> None:
    """For every user, the explained decision equals the decision that a real request gets."""
    from limnos.services.catalog.tables import table_find
    from tests.inprocess import MAIN

    for user in (ADMIN, "ana", "nobody"):
        explained = explain(desk, user=user)[0].allowed
        try:
            desk.run(
                desk.ctx(user).read(MAIN, lambda request_view: table_find(request_view, ("a",), "t", Action.TABLE_LOAD))
            )
            met = True
        except PermissionDenied:
            met = False

        assert explained is met


def test_explanation_does_not_reveal_missing_table(desk: ServiceDesk) -> None:
    """A missing table is explained like an existing one without grants, so the explanation does not reveal whether it
    exists.
    """
    existing = explain(desk, asks="ana")[0].message()

    missing = explain(desk, asks="ana", path=("main", "a", "u"))[0].message()

    assert missing == existing.replace("main.a.t", "main.a.u")


@pytest.mark.parametrize(
    "path,action,kind",
    [
        ((), Action.METALAKE_LOAD, "metalake"),
        (("main",), Action.CATALOG_LOAD, "catalog"),
        (("main", "a"), Action.NAMESPACE_LOAD, "namespace"),
        (TABLE, Action.TABLE_DROP, "table"),
    ],
)
def test_kind_follows_from_action_and_path(desk: ServiceDesk, path: tuple[str, ...], action: Action, kind: str) -> None:
    """If the request names no kind, the kind follows from the action and the length of the path."""
    assert explain(desk, action=action, path=path)[0].target_kind == kind


def test_action_inapplicable_to_kind_is_refused(desk: ServiceDesk) -> None:
    """An action that does not apply to the kind of object is BadRequest."""
    with pytest.raises(BadRequest, match="is done to a table"):
        explain(desk, action=Action.TABLE_LOAD, kind=Kind.CATALOG, path=("main",))


@pytest.mark.parametrize(
    "action,name,kind",
    [
        (Action.ROLE_LOAD, "r", "role"),
        (Action.ROLE_ASSIGN, "r", "role"),
        (Action.USER_MANAGE, "ana", "user"),
        (Action.USER_LOAD, "ana", "user"),
        (Action.ROLE_CREATE, LAKE, "metalake"),
        (Action.TAG_LOAD, "pii", "tag"),
        (Action.OWNER_LOAD, "main", "catalog"),
    ],
)
def test_path_of_one_name_denotes_object_of_the_action(desk: ServiceDesk, action: Action, name: str, kind: str) -> None:
    """A path of one name denotes a role for role actions, a user for user actions, and a catalog for all others."""
    desk.run(role_create(desk.ctx(), metalake=LAKE, name="r", properties={}, privilege_requests=()))

    decision, _ = explain(desk, action=action, path=(name,))

    assert (decision.target_kind, decision.target) == (kind, name)


def test_role_load_is_allowed_only_to_role_holders(desk: ServiceDesk) -> None:
    """The explanation of `role_load` is allowed for a holder of the role and refused for other users."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    request = {"action": Action.ROLE_LOAD, "path": ("of ana",)}

    assert explain(desk, user="ana", **request)[0].allowed  # type: ignore[arg-type]
    assert not explain(desk, user="ben", **request)[0].allowed  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "action,kind,path",
    [
        (Action.ROLE_LOAD, Kind.ROLE, ("main", "r")),
        (Action.USER_MANAGE, Kind.METALAKE, ("sea",)),
    ],
)
def test_path_of_wrong_shape_or_metalake_is_refused(
    desk: ServiceDesk, action: Action, kind: Kind, path: tuple[str, ...]
) -> None:
    """A path below a catalog for a role, and a path of another metalake, are BadRequest."""
    with pytest.raises(BadRequest, match=r"only its name|alone|leave the path out"):
        explain(desk, action=action, kind=kind, path=path)


@pytest.mark.parametrize(
    "path,missing",
    [
        (("main", "a", "u"), "table main.a.u"),
        (("main", "b", "t"), "namespace main.b"),
        (("mian", "a", "t"), "catalog mian"),
    ],
)
def test_missing_path_part_is_named_to_permitted_callers(
    desk: ServiceDesk, path: tuple[str, ...], missing: str
) -> None:
    """To a caller who may see the objects, the explanation names the first missing part of a path and suggests no
    grants. Other callers get the suggestions that an existing path would give.
    """
    for user in (None, "ana"):
        assert explain(desk, user=user, path=path)[1] == [f"There is no {missing}: check the spelling of the path."]

    assert explain(desk, asks="ana", path=path)[1][0] == f"Grant USE_CATALOG on catalog {path[0]} to a role of ana."


def test_disabled_user_is_refused_whatever_the_grants(desk: ServiceDesk) -> None:
    """The explanation of a disabled user's access is the refusal of every request of theirs, and says what else is
    missing.
    """
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    desk.users("ben")
    for name in ("ana", "ben"):
        desk.run(user_enable(desk.ctx(), metalake=LAKE, name=name, enabled=False))

    decision, steps = explain(desk, user="ana")
    of_ben, steps_of_ben = explain(desk, user="ben")

    assert not decision.allowed
    assert decision.message() == "User ana is disabled in metalake lake: ask its administrator"
    assert steps == ["Enable user ana: 'limnos user enable ana'."]
    assert not of_ben.allowed
    assert steps_of_ben[0] == "Enable user ben: 'limnos user enable ben'."
    assert steps_of_ben[1] == "Grant USE_CATALOG on catalog main to a role of ben."
