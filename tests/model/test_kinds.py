# SPDX-License-Identifier: Apache-2.0
"""Kinds: one line defines each, and no other module has its own list of kinds."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
import pytest

import limnos
from limnos.cli.common import CommonFlags
from limnos.model import kinds
from limnos.model.declared_kinds import DECLARED, DECLARED_KINDS, ObjectFields, WebAddress
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
from tests.house.declared_words import type_problem

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
            assert type_problem(field) is None, f"{declared.plural}: {type_problem(field)}"
            notes = [each.description for each in get_args(field.type) if isinstance(each, msgspec.Meta)]
            assert any(notes), f"{declared.plural}: {field.name} has no description"
            assert field.name not in common, f"{declared.plural}: {field.name} is a field of every kind"


class OddFields(ObjectFields, frozen=True, kw_only=True):
    """Fields of which a flag cannot have the type, or whose default does not fit."""

    content: bytes = b""
    numbers: tuple[int, ...] = ()
    optional: str | None = None
    choice: Literal[1, 2] = 1
    cells: Annotated[int, msgspec.Meta(ge=0, description="Cells.")] = -1


class PlainFields(ObjectFields, frozen=True, kw_only=True):
    """A field of each type that a flag has."""

    text: str = ""
    address: Annotated[WebAddress, msgspec.Meta(description="URL.")] = ""
    count: Annotated[int, msgspec.Meta(ge=0)] = 0
    ratio: float = 0.5
    live: bool = False
    engine: Literal["python", "sql"] = "python"
    tables: tuple[str, ...] = ()


def test_field_without_flag_type_is_reported() -> None:
    """Fields of other types than those of flags, and defaults of another type than the field's, are reported by
    name.
    """
    problems = [type_problem(field) for field in msgspec.structs.fields(OddFields)]

    assert [(problem or "").partition(":")[0] for problem in problems] == list(OddFields.__struct_fields__)
    assert [type_problem(field) for field in msgspec.structs.fields(PlainFields)] == [None] * 7


def test_used_number_of_a_kind_is_refused() -> None:
    """A second kind with a number would be another name of the first: it is refused when the module is loaded."""
    source = inspect.getsource(kinds)
    second = source.replace("    USER = 20,", "    NOTEBOOK = 18, ZoneKind.CATALOG, KindGroup.LEAF\n    USER = 20,")

    with pytest.raises(ValueError, match="NOTEBOOK -> DASHBOARD"):
        exec(compile(second, "kinds.py", "exec"), {"__name__": "kinds"})


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
