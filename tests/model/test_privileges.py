# SPDX-License-Identifier: Apache-2.0
"""Privileges: stored numbers, words, and the kinds on which they can be granted."""

from __future__ import annotations

import pytest

from limnos.model.errors import IllegalPrivilege
from limnos.model.kinds import NAMESPACE_OBJECTS, Kind
from limnos.model.privileges import (
    BINDS,
    GrantCondition,
    Privilege,
    check_binding,
    check_conditions,
    parse_condition,
    parse_privilege,
)

STORED = (
    "CREATE_CATALOG USE_CATALOG CREATE_SCHEMA USE_SCHEMA CREATE_TABLE SELECT_TABLE MODIFY_TABLE CREATE_VIEW SELECT_VIEW"
    " CREATE_FILESET READ_FILESET WRITE_FILESET CREATE_TOPIC CONSUME_TOPIC PRODUCE_TOPIC REGISTER_MODEL USE_MODEL"
    " LINK_MODEL_VERSION REGISTER_FUNCTION EXECUTE_FUNCTION MODIFY_FUNCTION MANAGE_USERS MANAGE_GROUPS CREATE_ROLE"
    " MANAGE_GRANTS CREATE_TAG APPLY_TAG CREATE_POLICY APPLY_POLICY REGISTER_JOB_TEMPLATE USE_JOB_TEMPLATE RUN_JOB"
)
CONTAINERS = {Kind.METALAKE, Kind.CATALOG, Kind.NAMESPACE}


def test_numbers_never_change() -> None:
    """The numbers of privileges are fixed, because grants are stored by number."""
    assert {p.name: int(p) for p in Privilege} == {name: i for i, name in enumerate(STORED.split(), 1)}


@pytest.mark.parametrize("privilege", Privilege)
def test_privilege_names_are_case_insensitive(privilege: Privilege) -> None:
    """The name of a privilege is parsed in lower, upper and mixed case."""
    assert {parse_privilege(t) for t in (privilege.word, privilege.name, privilege.word.title())} == {privilege}


@pytest.mark.parametrize(
    "text, meant",
    [("CREATE_MODEL", Privilege.REGISTER_MODEL), ("create_model_version", Privilege.LINK_MODEL_VERSION)],
)
def test_deprecated_aliases_are_understood(text: str, meant: Privilege) -> None:
    """Names of older clients mean the current privileges, and are never returned."""
    privilege = parse_privilege(text)

    assert privilege is meant
    assert privilege.word != text.lower()


def test_error_for_unknown_privilege_lists_valid_ones() -> None:
    """The error for an unknown privilege lists the valid ones, without a bare percent sign."""
    with pytest.raises(IllegalPrivilege, match="SELECT_TABLE") as raised:
        parse_privilege("READ%TABLE")

    assert "%" not in raised.value.message.replace("%%", "")


def test_conditions_are_read_in_any_case() -> None:
    """ALLOW and DENY are case-insensitive, and other conditions are refused."""
    assert (parse_condition("ALLOW"), parse_condition("deny")) == (GrantCondition.ALLOW, GrantCondition.DENY)
    with pytest.raises(IllegalPrivilege, match="use ALLOW or DENY"):
        parse_condition("maybe")


@pytest.mark.parametrize(
    "privilege, kinds",
    [
        (Privilege.CREATE_CATALOG, {Kind.METALAKE}),
        (Privilege.USE_CATALOG, {Kind.METALAKE, Kind.CATALOG}),
        (Privilege.CREATE_SCHEMA, CONTAINERS),
        (Privilege.SELECT_TABLE, CONTAINERS | {Kind.TABLE}),
        (Privilege.SELECT_VIEW, CONTAINERS | {Kind.VIEW}),
        (Privilege.WRITE_FILESET, CONTAINERS | {Kind.FILESET}),
        (Privilege.PRODUCE_TOPIC, CONTAINERS | {Kind.TOPIC}),
        (Privilege.LINK_MODEL_VERSION, CONTAINERS | {Kind.MODEL}),
        (Privilege.EXECUTE_FUNCTION, CONTAINERS | {Kind.FUNCTION}),
        (Privilege.APPLY_TAG, {Kind.METALAKE, Kind.TAG}),
        (Privilege.APPLY_POLICY, {Kind.METALAKE, Kind.POLICY}),
        (Privilege.USE_JOB_TEMPLATE, {Kind.METALAKE, Kind.JOB_TEMPLATE}),
        (Privilege.RUN_JOB, {Kind.METALAKE}),
        (
            Privilege.MANAGE_GRANTS,
            CONTAINERS | set(NAMESPACE_OBJECTS),
        ),
    ],
)
def test_privileges_bind_to_the_same_kinds_as_in_gravitino(privilege: Privilege, kinds: set[Kind]) -> None:
    """Each privilege can be granted on the same kinds as in Gravitino."""
    assert BINDS[privilege] == kinds


def test_every_privilege_binds_to_the_metalake() -> None:
    """Every privilege can be granted on a metalake, and none on roles, jobs or columns."""
    assert set(BINDS) == set(Privilege)
    assert all(Kind.METALAKE in kinds for kinds in BINDS.values())
    assert not set().union(*BINDS.values()) & {Kind.ROLE, Kind.JOB, Kind.COLUMN, Kind.USER, Kind.GROUP}


def test_wrong_binding_error_names_the_valid_kinds() -> None:
    """A privilege on a wrong kind is refused with Gravitino's names of kinds: a namespace is a SCHEMA."""
    with pytest.raises(
        IllegalPrivilege, match=r"SELECT_TABLE cannot be granted on a FILESET, only on .*SCHEMA or TABLE"
    ):
        check_binding(Privilege.SELECT_TABLE, Kind.FILESET, "fileset")


@pytest.mark.parametrize("kind", [Kind.CATALOG, Kind.NAMESPACE])
@pytest.mark.parametrize(
    "privilege, catalog_type",
    [
        (Privilege.READ_FILESET, "relational"),
        (Privilege.CREATE_TABLE, "fileset"),
        (Privilege.CONSUME_TOPIC, "model"),
        (Privilege.USE_MODEL, "messaging"),
        (Privilege.SELECT_TABLE, "ML"),
    ],
)
def test_other_catalog_type_is_refused(privilege: Privilege, catalog_type: str, kind: Kind) -> None:
    """A privilege on objects that the catalog cannot contain is refused on the catalog and on its namespaces."""
    with pytest.raises(IllegalPrivilege, match="only of a"):
        check_binding(privilege, kind, catalog_type)


@pytest.mark.parametrize(
    "privilege, kind, catalog_type",
    [
        (Privilege.SELECT_TABLE, Kind.CATALOG, "RELATIONAL"),
        (Privilege.READ_FILESET, Kind.NAMESPACE, "FILE"),
        (Privilege.PRODUCE_TOPIC, Kind.CATALOG, "stream"),
        (Privilege.USE_MODEL, Kind.CATALOG, "ml"),
        (Privilege.READ_FILESET, Kind.METALAKE, None),
        (Privilege.SELECT_VIEW, Kind.CATALOG, "fileset"),
        (Privilege.EXECUTE_FUNCTION, Kind.NAMESPACE, "messaging"),
        (Privilege.USE_SCHEMA, Kind.CATALOG, "model"),
    ],
)
def test_fitting_bindings_pass(privilege: Privilege, kind: Kind, catalog_type: str | None) -> None:
    """A valid privilege is accepted with both spellings of catalog types."""
    assert kind in BINDS[privilege]
    check_binding(privilege, kind, catalog_type)


def test_both_conditions_on_one_object_are_refused() -> None:
    """A request that both allows and denies a privilege on one object is refused. Repeating the same condition is
    accepted.
    """
    check_conditions([(Privilege.USE_SCHEMA, GrantCondition.ALLOW)] * 2, "main.a")
    with pytest.raises(IllegalPrivilege, match=r"USE_SCHEMA is both allowed and denied on main\.a"):
        check_conditions([(Privilege.USE_SCHEMA, c) for c in GrantCondition], "main.a")
