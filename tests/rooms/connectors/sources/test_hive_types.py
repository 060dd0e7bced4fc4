# SPDX-License-Identifier: Apache-2.0
"""Types of Hive's columns, converted both ways, and unsupported types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.model.errors import BadRequest
from limnos.rooms.connectors.sources.hive_types import type_json, type_of

PLAIN = {
    "boolean": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_tz": "timestamp with local time zone",
    "binary": "binary",
    "interval_year": "interval_year_month",
    "interval_day": "interval_day_time",
    "decimal(38,10)": "decimal(38,10)",
    "char(3)": "char(3)",
    "varchar(65535)": "varchar(65535)",
}


def _list_of(kind: object) -> object:
    return {"type": "list", "containsNull": True, "elementType": kind}


def _map_of(parts: tuple[object, object]) -> object:
    return {"type": "map", "valueContainsNull": True, "keyType": parts[0], "valueType": parts[1]}


def _struct_of(fields: dict[str, object]) -> object:
    return {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True} for name, kind in fields.items()],
    }


TYPES = st.recursive(
    st.sampled_from(list(PLAIN)),
    lambda kinds: (
        kinds.map(_list_of)
        | st.tuples(kinds, kinds).map(_map_of)
        | st.dictionaries(st.text("abz_09", min_size=1, max_size=4), kinds, min_size=1, max_size=3).map(_struct_of)
    ),
    max_leaves=12,
)


@given(TYPES)
def test_nested_types_survive_the_hive_round_trip(kind: object) -> None:
    """Every type, nested in any way, survives the conversion to Hive and back."""
    assert type_json(type_of(kind, column="c")) == kind


@pytest.mark.parametrize("ours, hive", PLAIN.items())
def test_plain_types_have_hive_names(ours: str, hive: str) -> None:
    """Each plain type has Hive's word."""
    assert type_of(ours, column="c") == hive


@pytest.mark.parametrize(
    "text",
    [
        "uniontype<int,string>",
        "void",
        "array<uniontype<int>>",
        "array<int",
        "struct<a>",
        "decimal(",
        "",
        "char",
        "int(3)",
        "map<int>",
    ],
)
def test_unknown_hive_type_is_external(text: str) -> None:
    """A type without a word is external, in Hive's own spelling."""
    assert type_json(text) == {"type": "external", "catalogString": text}


def test_other_type_spellings_are_parsed() -> None:
    """Upper case, spaces, and a decimal without precision are parsed; names of fields are unchanged."""
    assert type_json("ARRAY < Decimal >") == _list_of("decimal(10,0)")
    assert type_json("struct<Some Name:int>") == {"type": "external", "catalogString": "struct<Some Name:int>"}
    assert type_json("struct<größe:int , b-c : char( 2 )>") == _struct_of({"größe": "integer", "b-c": "char(2)"})
    assert type_json("array<" * 40 + "int" + ">" * 40) == {
        "type": "external",
        "catalogString": "array<" * 40 + "int" + ">" * 40,
    }


@pytest.mark.parametrize(
    "kind",
    [
        "uuid",
        "time",
        "decimal(39,1)",
        "decimal(3,4)",
        "char(256)",
        "varchar(0)",
        "int> DROP",
        None,
        7,
        [],
        {"type": "external", "catalogString": "int"},
        {"type": "list"},
        {"type": "map", "keyType": "string"},
        {"type": "struct", "fields": [{"name": "a>,b:int", "type": "long"}]},
        _list_of("fixed(3)"),
    ],
)
def test_type_that_hive_lacks_is_refused_with_the_column(kind: object) -> None:
    """The error for a type that Hive lacks names the column."""
    with pytest.raises(BadRequest, match="col"):
        type_of(kind, column="col")


def test_type_nesting_is_limited() -> None:
    """Nesting is limited; the error for too many brackets says so."""
    kind: object = "long"
    for _ in range(60):
        kind = _list_of(kind)

    with pytest.raises(BadRequest, match="32 times"):
        type_of(kind, column="c")
