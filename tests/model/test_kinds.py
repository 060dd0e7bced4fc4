# SPDX-License-Identifier: Apache-2.0
"""Kinds: one line defines each, and no other module has its own list of kinds."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import get_args

import msgspec

import limnos
from limnos.cli.common import CommonFlags
from limnos.model.declared_kinds import DECLARED, DECLARED_KINDS
from limnos.model.kinds import (
    CONTAINERS,
    KINDS,
    METALAKE_OBJECTS,
    NAMESPACE_OBJECTS,
    SECURABLES,
    Kind,
    KindGroup,
    ZoneKind,
)

STORED = {
    "METALAKE": 1,
    "CATALOG": 2,
    "NAMESPACE": 3,
    "TABLE": 4,
    "VIEW": 5,
    "FILESET": 6,
    "TOPIC": 7,
    "MODEL": 8,
    "FUNCTION": 9,
    "COLUMN": 10,
    "TAG": 11,
    "POLICY": 12,
    "JOB_TEMPLATE": 13,
    "JOB": 14,
    "DATATYPE": 15,
    "SYNONYM": 16,
    "EXTERNAL_DATASET": 17,
    "DASHBOARD": 18,
    "USER": 20,
    "GROUP": 21,
    "ROLE": 22,
    "TOKEN": 23,
}


def test_numbers_never_change() -> None:
    """The numbers of kinds are fixed, because they are stored."""
    assert {kind.name: kind.value for kind in Kind} == STORED
    assert {number: kind.name for number, kind in KINDS.items()} == {number: name for name, number in STORED.items()}


def test_declared_kinds_have_a_declaration() -> None:
    """A kind says that it is declared, if and only if it has a declaration with a plural and fields of its own."""
    assert {kind for kind in Kind if kind.is_declared} == set(DECLARED_KINDS)
    assert len({each.plural for each in DECLARED}) == len({each.fields for each in DECLARED}) == len(DECLARED)


def test_own_fields_have_defaults_and_types_of_flags() -> None:
    """The own fields of declared kinds have defaults, and types that a flag and JSON both have; none is a common
    field, or a flag that every command has.
    """
    common = {
        "name",
        "path",
        "comment",
        "properties",
        "clears_comment",
        "sets",
        "removes",
        "fields",
        "kind",
        "namespace",
        "property",
        "as",
        *(field.name for field in dataclasses.fields(CommonFlags)),
    }
    for declared in DECLARED:
        for field in msgspec.structs.fields(declared.fields):
            assert not field.required, f"{declared.plural}: {field.name} has no default"
            assert isinstance(field.default, str | bool | int | float | tuple), f"{declared.plural}: {field.name}"
            notes = [each.description for each in get_args(field.type) if isinstance(each, msgspec.Meta)]
            assert any(notes), f"{declared.plural}: {field.name} has no description"
            assert field.name not in common, f"{declared.plural}: {field.name} is a field of every kind"


def test_groups_follow_from_the_table() -> None:
    """A kind is in exactly the groups that its line states."""
    assert CONTAINERS == (Kind.METALAKE, Kind.CATALOG, Kind.NAMESPACE)
    assert set(NAMESPACE_OBJECTS) == {kind for kind in Kind if kind.form is KindGroup.LEAF}
    assert all(kind.home is ZoneKind.CATALOG and kind.is_node for kind in NAMESPACE_OBJECTS)
    assert all(kind.home is ZoneKind.METALAKE for kind in METALAKE_OBJECTS)
    assert not {kind for kind in SECURABLES if kind.form in (KindGroup.PRINCIPAL, KindGroup.CREDENTIAL)}


def test_no_code_compares_kinds_by_number() -> None:
    """No code compares kinds by number, in Python or in SQL, because that would give a new kind a meaning that its line
    does not state.
    """
    ranges = re.compile(r"[<>]=?\s*Kind\.|Kind\.\w+\s*[<>]=?\s|\bkind (?:[<>]=? ?[:\d]|BETWEEN)")
    comparisons = [
        f"{path.name}: {line.strip()}"
        for path in Path(limnos.__file__).parent.rglob("*.py")
        for line in path.read_text().splitlines()
        if ranges.search(line)
    ]

    assert comparisons == []
