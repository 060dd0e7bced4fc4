# SPDX-License-Identifier: Apache-2.0
"""Single decisions: the privileges, roles and owners that they name, and when an owner is looked up."""

from __future__ import annotations

import json

import pytest

from limnos.access.actions import Action
from limnos.access.decide import allow_unchecked, decide
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.kinds import Kind
from limnos.model.principals import Subject
from limnos.model.privileges import Privilege
from tests.access.world import (
    CATALOG_CHAIN,
    GROUP,
    INNER,
    INNER_CHAIN,
    LAKE,
    MAIN,
    METALAKE_CHAIN,
    OUTER,
    TABLE_CHAIN,
    TARGET,
    USER,
    allowed,
    member,
    nobody,
    owned_by,
    role,
)

USE = ((Privilege.USE_CATALOG, MAIN), (Privilege.USE_SCHEMA, OUTER))
STRANGER = Subject.of(None, "x", member=False)


class ColdFactError(Exception):
    """A fake of the view's signal that a fact must be read first."""


def _cold(_object_id: int) -> int | None:
    raise ColdFactError


def test_refusal_names_missing_and_held_privileges() -> None:
    """A refusal names the sufficient privileges with their objects, and the privileges that the caller has."""
    decision = decide(allowed(*USE), Action.TABLE_LOAD, TABLE_CHAIN, nobody)

    assert decision.message() == (
        "User 'u' is not authorized to perform operation 'table_load' on metadata 'main.a.b.t': "
        "needs SELECT_TABLE or MODIFY_TABLE on main.a.b.t, "
        "has USE_CATALOG on main (through role r), USE_SCHEMA on main.a (through role r)"
    )


def test_refusal_names_every_missing_grant() -> None:
    """The refusal of a caller without privileges names each missing grant."""
    decision = decide(member(), Action.TABLE_COMMIT, TABLE_CHAIN, nobody)

    assert decision.message().endswith(
        ": needs USE_CATALOG on main and needs USE_SCHEMA on main.a.b and needs MODIFY_TABLE on main.a.b.t"
    )


ROOT_TABLE: SecurableChain = (ChainLink(TARGET, Kind.TABLE, "t"), *CATALOG_CHAIN)
"""A table directly in its catalog."""


@pytest.mark.parametrize(
    "grants, expected",
    [
        ([(Privilege.SELECT_TABLE, TARGET)], True),
        ([(Privilege.SELECT_TABLE, MAIN)], False),
        ([(Privilege.SELECT_TABLE, MAIN), (Privilege.USE_SCHEMA, MAIN)], True),
        ([(Privilege.MODIFY_TABLE, TARGET)], False),
        ([(Privilege.SELECT_TABLE, INNER), (Privilege.SELECT_TABLE, OUTER)], False),
    ],
)
def test_right_on_a_table_at_the_root_stands_for_use_schema(
    grants: list[tuple[Privilege, int]], expected: bool
) -> None:
    """A table in no schema needs no USE_SCHEMA if the privilege is on the table itself. USE_CATALOG is needed, and a
    denial of USE_SCHEMA counts. A table in a schema needs USE_SCHEMA as before.
    """
    used = [(Privilege.USE_CATALOG, MAIN), *grants]
    subject = member(role(used))
    assert decide(subject, Action.TABLE_READ, ROOT_TABLE, nobody).allowed is expected
    assert not decide(member(role(grants)), Action.TABLE_READ, ROOT_TABLE, nobody).allowed
    denied = member(role(used, deny=[(Privilege.USE_SCHEMA, LAKE)]))
    assert not decide(denied, Action.TABLE_READ, ROOT_TABLE, nobody).allowed
    if (Privilege.USE_SCHEMA, MAIN) not in grants:
        assert not decide(subject, Action.TABLE_READ, TABLE_CHAIN, nobody).allowed


def test_owner_of_a_table_at_the_root_needs_no_use_schema() -> None:
    """Ownership of a table in no schema suffices, with USE_CATALOG."""
    subject = allowed((Privilege.USE_CATALOG, MAIN))

    assert decide(subject, Action.TABLE_DROP, ROOT_TABLE, owned_by({TARGET: USER})).allowed
    assert not decide(subject, Action.TABLE_DROP, TABLE_CHAIN, owned_by({TARGET: USER})).allowed


def test_refusal_of_a_table_at_the_root_names_the_right_on_it() -> None:
    """The refusal suggests a privilege on the table beside USE_SCHEMA of the catalog."""
    decision = decide(allowed((Privilege.USE_CATALOG, MAIN)), Action.TABLE_READ, ROOT_TABLE, nobody)

    assert "needs USE_SCHEMA on main, or needs SELECT_TABLE on main.t" in decision.message()


def test_refusal_names_the_denial() -> None:
    """A refusal by a denial names its object, role and group."""
    denying = role(deny=[(Privilege.MODIFY_TABLE, OUTER)], id=401, name="careful", via="staff")
    subject = member(role([*USE, (Privilege.MODIFY_TABLE, LAKE)]), denying)

    decision = decide(subject, Action.TABLE_COMMIT, TABLE_CHAIN, nobody)

    assert ": MODIFY_TABLE is denied on main.a (through role careful of group staff)" in decision.message()


def test_refusal_names_ownership_if_only_that_suffices() -> None:
    """If only ownership is sufficient, as for dropping a table, the refusal says so."""
    decision = decide(allowed(*USE), Action.TABLE_DROP, TABLE_CHAIN, nobody)

    assert ": needs ownership of main.a.b.t, has USE_CATALOG" in decision.message()


def test_refusal_of_non_member_names_missing_membership() -> None:
    """For a non-member the refusal names the missing membership first, with Gravitino's message."""
    decision = decide(STRANGER, Action.TABLE_LOAD, TABLE_CHAIN, nobody)

    assert not decision.allowed
    assert decision.message() == (
        "Current user x doesn't exist in the metalake lake, you should add the user to the metalake first"
    )


@pytest.mark.parametrize("chain", [(), (ChainLink(0, Kind.METALAKE, "new"),)])
def test_service_admin_creates_metalake_without_membership(chain: SecurableChain) -> None:
    """Creating a metalake needs a service admin and nothing else."""
    admin = Subject.of(None, "root", member=False, service_admin=True)

    assert decide(admin, Action.METALAKE_CREATE, chain, nobody).allowed
    assert decide(STRANGER, Action.METALAKE_CREATE, chain, nobody).message().endswith(": needs a service admin")


def test_exception_of_owner_lookup_is_raised_unchanged() -> None:
    """An exception of the owner lookup is raised unchanged."""
    with pytest.raises(ColdFactError):
        decide(member(), Action.TABLE_LOAD, TABLE_CHAIN, _cold)


def test_owner_is_not_looked_up_if_grants_decide() -> None:
    """If grants decide, no owner is looked up."""
    subject = allowed(*USE, (Privilege.SELECT_TABLE, INNER))

    assert decide(subject, Action.TABLE_LOAD, TABLE_CHAIN, _cold).allowed


def test_allowed_decision_has_factors_and_revision() -> None:
    """An allowed decision has its factors and its revision."""
    subject = allowed(*USE, (Privilege.SELECT_TABLE, INNER))

    decision = decide(subject, Action.TABLE_LOAD, TABLE_CHAIN, nobody, revision=((0, 3), (1, 7)))

    proof = [(f.kind, f.privilege, f.object_id, f.object_kind, f.object_name, f.role) for f in decision.factors]
    assert proof == [
        ("allow", "USE_CATALOG", MAIN, "catalog", "main", "r"),
        ("allow", "USE_SCHEMA", OUTER, "namespace", "main.a", "r"),
        ("allow", "SELECT_TABLE", INNER, "namespace", "main.a.b", "r"),
    ]
    assert decision.revision == ((0, 3), (1, 7))


def test_group_owner_is_named() -> None:
    """For ownership through a group the decision names the group."""
    decision = decide(member(groups=[GROUP]), Action.CATALOG_DROP, CATALOG_CHAIN, owned_by({MAIN: GROUP}))

    assert decision.message().endswith(": has ownership of main (through group g)")


def test_owner_is_allowed_despite_denials() -> None:
    """A catalog's owner may load a table in spite of denials of all privileges."""
    subject = allowed(deny=[(p, LAKE) for p in Privilege])

    assert decide(subject, Action.TABLE_LOAD, TABLE_CHAIN, owned_by({MAIN: 100})).allowed


def test_denied_use_catalog_stops_namespace_owner() -> None:
    """A denial of USE_CATALOG stops the owner of a namespace in the catalog."""
    subject = allowed((Privilege.USE_CATALOG, LAKE), deny=[(Privilege.USE_CATALOG, MAIN)])

    assert not decide(subject, Action.TABLE_LOAD, TABLE_CHAIN, owned_by({OUTER: 100})).allowed


@pytest.mark.parametrize("rights", [(), USE], ids=["stranger to the catalog", "user of the namespace"])
@pytest.mark.parametrize("action", [Action.TABLE_LOAD, Action.TABLE_DROP, Action.TABLE_EXISTS])
def test_refusal_does_not_reveal_whether_object_exists(
    rights: tuple[tuple[Privilege, int], ...], action: Action
) -> None:
    """A missing table and one without grants have the same message."""
    subject = allowed(*rights)
    absent = (ChainLink.absent(Kind.TABLE, "t"), *INNER_CHAIN)

    existing, missing = (decide(subject, action, chain, nobody) for chain in (TABLE_CHAIN, absent))

    assert not existing.allowed
    assert existing.message() == missing.message()


def test_owner_of_missing_object_is_not_looked_up() -> None:
    """The owner lookup is never called with the id of a missing object."""
    lookups: list[ChainLink] = []

    decide(member(), Action.TABLE_LOAD, (ChainLink.absent(Kind.TABLE, "t"), *INNER_CHAIN), lookups.append)

    assert lookups
    assert min(link.id for link in lookups) > 0


def test_percent_signs_are_doubled_in_messages_only() -> None:
    """Percent signs of names are doubled in messages, because some clients format them; JSON has the name unchanged."""
    chain = (ChainLink(8, Kind.NAMESPACE, "50%s"), *CATALOG_CHAIN)

    decision = decide(member(), Action.NAMESPACE_LOAD, chain, nobody)

    assert "%" not in decision.message().replace("%%", "")
    assert decision.target == "main.`50%s`"


def test_names_with_special_characters_are_quoted() -> None:
    """Parts with dots, spaces or back-quotes are quoted, so that they cannot be mistaken for levels."""
    chain = (ChainLink(8, Kind.NAMESPACE, "a.b `c`"), *CATALOG_CHAIN)

    assert decide(member(), Action.NAMESPACE_LOAD, chain, nobody).target == r"main.`a.b \`c\``"


def test_decision_json_can_be_decoded_and_is_complete() -> None:
    """The JSON of a decision can be decoded again and has all parts of an explanation."""
    decision = decide(allowed(*USE), Action.TABLE_DROP, TABLE_CHAIN, nobody, revision=((1, 2),))

    document = json.loads(json.dumps(decision.as_json()))

    assert document["target"] == {"id": 5, "kind": "table", "name": "main.a.b.t"}
    assert document["factors"][0] == {
        "kind": "missing",
        "privilege": "OWNER",
        "object": {"id": 5, "kind": "table", "name": "main.a.b.t"},
        "clause": 0,
    }
    assert document["revision"] == [[1, 2]]


def test_access_control_off_allows_everything() -> None:
    """With access control off everything is allowed, with that reason."""
    decision = allow_unchecked(STRANGER, Action.METALAKE_DROP, METALAKE_CHAIN)

    assert decision.allowed
    assert [f.kind for f in decision.factors] == ["access-off"]


def test_first_role_is_named_of_several() -> None:
    """If two roles give the right, the first one is named."""
    rule = [(Privilege.USE_CATALOG, MAIN)]
    subject = member(role(rule, id=1, name="one"), role(rule, id=2, name="two"))

    assert decide(subject, Action.CATALOG_LOAD, CATALOG_CHAIN, nobody).factors[0].role == "one"


def test_owner_of_a_namespace_lacks_use_catalog_alone() -> None:
    """The refusal of a namespace's owner names USE_CATALOG, which suffices, and not the privileges of other users."""
    decision = decide(allowed(), Action.TABLE_CREATE, INNER_CHAIN, owned_by({OUTER: USER}))

    assert decision.message().endswith(": needs USE_CATALOG on main, has ownership of main.a")
