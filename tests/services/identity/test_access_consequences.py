# SPDX-License-Identifier: Apache-2.0
"""Consequences of changes of rights: the predicted numbers equal the real effect, and the prediction writes nothing."""

from __future__ import annotations

import random

import pytest

from limnos.access.levels import levels_of
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import BINDS, GrantCondition, Privilege
from limnos.services.identity.access_consequences import (
    Consequence,
    ConsequenceLine,
    RolesQuestion,
    RulesQuestion,
    roles_consequence,
    rules_consequence,
)
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant, roles_give
from tests.inprocess import ADMIN, LAKE
from tests.services.conftest import ServiceDesk
from tests.services.identity.drawn_rights import PEOPLE, draw_rights, fits_tables, may_any
from tests.services.identity.test_access_reach import TREE

States = set[tuple[str, str, Kind, tuple[str, ...]]]


@pytest.fixture(autouse=True)
def furnished(desk: ServiceDesk) -> None:
    """A desk with a tree of namespaces and tables."""
    for kind, path in TREE[1:]:
        if kind is Kind.NAMESPACE:
            desk.namespace(*path[1:])
        else:
            desk.table(*path[1:])


def rules_question(role: str, kind: Kind, name: str, *privileges: Privilege, grants: bool = True) -> RulesQuestion:
    """Return the question of what a grant to a role would change."""
    privilege_request = PrivilegeRequest(kind, name, tuple((each, GrantCondition.ALLOW) for each in privileges))
    return RulesQuestion(LAKE, role, privilege_request, grants)


def test_prediction_names_users_and_tables_of_a_grant(desk: ServiceDesk) -> None:
    """For a grant of SELECT_TABLE on a namespace to a role, the prediction names the role's user and three tables to
    read.
    """
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA)

    question = rules_question("of ana", Kind.NAMESPACE, "main.a", Privilege.SELECT_TABLE)
    consequence = desk.run(rules_consequence(desk.ctx(), question))

    assert consequence.lines == (
        ConsequenceLine(level="read", kind=Kind.TABLE, gains=True, users=1, objects=3, names=("ana",)),
    )
    assert (
        consequence.users,
        consequence.gaining,
        consequence.losing,
        consequence.objects,
        consequence.is_bounded,
    ) == (1, 1, 0, 5, False)


def test_prediction_names_first_five_loadable_users(desk: ServiceDesk) -> None:
    """The prediction names the first five affected users in order to a caller who may load them. A caller with
    MANAGE_GRANTS only receives their number.
    """
    people = [f"user {number}" for number in range(7)]
    desk.users("granter", *people)
    desk.allow("granter", Kind.METALAKE, LAKE, Privilege.MANAGE_GRANTS)
    desk.allow("granter", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    desk.allow("user 0", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    for name in people[1:]:
        desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name=name, roles=("of user 0",), gives=True))
    question = rules_question("of user 0", Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE)

    (full,) = desk.run(rules_consequence(desk.ctx(), question)).lines
    (bare,) = desk.run(rules_consequence(desk.ctx("granter"), question)).lines

    assert (full.users, full.names) == (7, tuple(people[:5]))
    assert (bare.users, bare.names) == (7, ())


def test_grant_without_use_catalog_has_no_consequence(desk: ServiceDesk) -> None:
    """A privilege that cannot be used without USE_CATALOG has no consequence."""
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA)

    question = rules_question("of ana", Kind.NAMESPACE, "main.a", Privilege.SELECT_TABLE)

    assert desk.run(rules_consequence(desk.ctx(), question)).lines == ()


def test_prediction_needs_the_right_to_make_the_change(desk: ServiceDesk) -> None:
    """A user who may not change the grants or the assignments of a role may not ask for the consequences of such a
    change. A missing user is NotFound for the admin.
    """
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    for user in ("ana", "nobody"):
        with pytest.raises(PermissionDenied):
            desk.run(
                rules_consequence(
                    desk.ctx(user), rules_question("of ana", Kind.TABLE, "main.a.t", Privilege.MODIFY_TABLE)
                )
            )
        with pytest.raises(PermissionDenied):
            desk.run(
                roles_consequence(
                    desk.ctx(user),
                    RolesQuestion(metalake=LAKE, kind=Kind.USER, name="bob", roles=("of ana",), gives=True),
                )
            )
    with pytest.raises(NotFound):
        desk.run(
            roles_consequence(
                desk.ctx(), RolesQuestion(metalake=LAKE, kind=Kind.USER, name="gone", roles=("of ana",), gives=True)
            )
        )


def test_prediction_writes_nothing(desk: ServiceDesk) -> None:
    """A prediction moves no clock."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    before = desk.rows("SELECT zone, revision FROM clock ORDER BY zone")

    desk.run(rules_consequence(desk.ctx(), rules_question("of ana", Kind.CATALOG, "main", Privilege.USE_SCHEMA)))
    desk.run(
        roles_consequence(
            desk.ctx(), RolesQuestion(metalake=LAKE, kind=Kind.USER, name="bob", roles=("of ana",), gives=True)
        )
    )

    assert desk.rows("SELECT zone, revision FROM clock ORDER BY zone") == before


def _states(desk: ServiceDesk) -> States:
    """Return every user's access levels on every object, from the decisions that the user would get."""
    return {
        (user, level, kind, path)
        for user in (ADMIN, *PEOPLE)
        for kind, path in TREE
        for level, actions in levels_of(kind).items()
        if may_any(desk, user, actions, kind, path)
    }


def _expected(before: States, after: States) -> set[ConsequenceLine]:
    lines = set()
    for gains, part in ((True, after - before), (False, before - after)):
        for level, kind in {(level, kind) for _, level, kind, _ in part}:
            met = [each for each in part if each[1:3] == (level, kind)]
            users, objects = len({each[0] for each in met}), len({each[3] for each in met})
            lines.add(ConsequenceLine(level=level, kind=kind, gains=gains, users=users, objects=objects))
    return lines


@pytest.mark.parametrize("seed", range(4))
def test_predicted_numbers_equal_the_real_change(desk: ServiceDesk, seed: int) -> None:
    """For random rights and changes, the predicted numbers equal the real differences before and after the change."""
    drawn = random.Random(seed)
    draw_rights(desk, drawn)
    before = _states(desk)
    for number in range(4):
        consequence = _drawn_change(desk, drawn, assigns=number % 2 == 1)
        after = _states(desk)
        in_tree = {line._replace(names=()) for line in consequence.lines if line.kind is not Kind.METALAKE}

        assert in_tree == _expected(before, after)
        assert not consequence.is_bounded
        before = after


def _drawn_change(desk: ServiceDesk, drawn: random.Random, *, assigns: bool) -> Consequence:
    """Predict the consequence of a random change, and make the change."""
    role, does = f"r{drawn.randrange(5)}", drawn.random() < 0.7
    if assigns:
        kind, name = drawn.choice([(Kind.USER, drawn.choice(PEOPLE)), (Kind.GROUP, "north")])
        consequence = desk.run(
            roles_consequence(desk.ctx(), RolesQuestion(metalake=LAKE, kind=kind, name=name, roles=(role,), gives=does))
        )
        desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=kind, name=name, roles=(role,), gives=does))
        return consequence
    kind, name = drawn.choice([(Kind.CATALOG, "main"), (Kind.NAMESPACE, "main.a"), (Kind.TABLE, "main.a.t")])
    stored_privileges = {
        row[0]
        for row in desk.rows(
            "SELECT g.privilege FROM access_grant g JOIN role r ON r.id = g.role_id JOIN node n ON n.id = g.object_id"
            " WHERE r.name = ? AND n.name = ? AND g.allowed = 0",
            role,
            name.rpartition(".")[2],
        )
    }
    fitting = [
        each for each in Privilege if kind in BINDS[each] and fits_tables(each) and int(each) not in stored_privileges
    ]
    chosen = drawn.sample(fitting, 3)
    question = RulesQuestion(
        LAKE, role, PrivilegeRequest(kind, name, tuple((each, GrantCondition.ALLOW) for each in chosen)), does
    )
    consequence = desk.run(rules_consequence(desk.ctx(), question))
    desk.run(
        privileges_grant(
            desk.ctx(), metalake=LAKE, role=role, privilege_request=question.privilege_request, grants_them=does
        )
    )
    return consequence
