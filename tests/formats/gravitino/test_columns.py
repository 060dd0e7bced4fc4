# SPDX-License-Identifier: Apache-2.0
"""Conversion of Gravitino columns to Iceberg schemas and back, without loss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.formats.gravitino.columns import (
    columns_of,
    original_types_of,
    original_types_text,
    plain_of,
    schema_of,
    table_schema_of,
)
from limnos.formats.iceberg.schema import columns, with_fresh_ids
from limnos.model.errors import BadRequest, UnsupportedOperation

Json = dict[str, object]
PLAIN = st.sampled_from(
    [
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "byte unsigned",
        "short unsigned",
        "integer unsigned",
        "long unsigned",
        "decimal(10,2)",
        "decimal(38,0)",
        "date",
        "time",
        "time(3)",
        "timestamp",
        "timestamp(0)",
        "timestamp(6)",
        "timestamp(8)",
        "timestamp(9)",
        "timestamp_tz",
        "timestamp_tz(3)",
        "timestamp_tz(9)",
        "string",
        "char(4)",
        "varchar(20)",
        "fixed(16)",
        "binary",
        "uuid",
        "variant",
        "null",
    ]
)
NAMES = st.text("abcXYZ é", min_size=1, max_size=6)


def nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Return structs, lists and maps of some type."""
    fields = st.dictionaries(NAMES, st.tuples(inner, st.booleans()), min_size=1, max_size=3)
    return st.one_of(
        fields.map(
            lambda members: {
                "type": "struct",
                "fields": [{"name": n, "type": t, "nullable": o or t == "null"} for n, (t, o) in members.items()],
            }
        ),
        st.builds(
            lambda kind, none: {"type": "list", "containsNull": none or kind == "null", "elementType": kind},
            inner,
            st.booleans(),
        ),
        st.builds(
            lambda value, none: {
                "type": "map",
                "valueContainsNull": none or value == "null",
                "keyType": "varchar(9)",
                "valueType": value,
            },
            inner,
            st.booleans(),
        ),
    )


TYPES: st.SearchStrategy[object] = st.recursive(PLAIN, nested, max_leaves=6)


@st.composite
def tables(draw: st.DrawFn) -> list[Json]:
    """Return the columns of a table, as a create sends them."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    column_list = []
    for name in names:
        kind = draw(TYPES)
        column: Json = {"name": name, "type": kind, "nullable": kind == "null" or draw(st.booleans())}
        comment = draw(st.none() | st.text(max_size=5))
        column_list.append(column if comment is None else {**column, "comment": comment})
    return column_list


@given(tables())
def test_columns_round_trip(sent_columns: list[Json]) -> None:
    """Columns with any types and nesting are returned as they were sent. The schema is a valid Iceberg schema with the
    ids of a new table.
    """
    table_schema = table_schema_of(sent_columns)

    read_columns = columns_of(
        table_schema.schema, original_types_of({"gravitino.types": original_types_text(table_schema.original_types)})
    )
    assert read_columns == [{**each, "autoIncrement": False} for each in sent_columns]
    assert columns(table_schema.schema).by_id
    assert with_fresh_ids(table_schema.schema)[0] == table_schema.schema


def test_stored_type_is_ignored_after_field_type_change() -> None:
    """If another engine has changed a field's type, the field's own type is returned, not the stored original one.
    Invalid stored types are ignored.
    """
    table_schema = table_schema_of([{"name": "n", "type": "short"}, {"name": "c", "type": "varchar(3)"}])
    fields = table_schema.schema["fields"]
    assert isinstance(fields, list)
    fields[0]["type"] = "long"

    types = [each["type"] for each in columns_of(table_schema.schema, table_schema.original_types)]

    assert types == ["long", "varchar(3)"]
    assert [each["type"] for each in columns_of(table_schema.schema, {"2": "uuid"})] == ["long", "string"]
    assert original_types_of({"gravitino.types": "no json"}) == {}


@pytest.mark.parametrize(
    "kind", ["interval_year", "interval_day", "timestamp(12)", "money", "decimal(50,1)", "decimal(2,3)", "", 3, None]
)
def test_type_without_iceberg_equivalent_is_refused(kind: object) -> None:
    """A type that Iceberg cannot represent is refused, not replaced."""
    with pytest.raises(BadRequest):
        table_schema_of([{"name": "c", "type": kind}])


@pytest.mark.parametrize("kind", [{"type": "union", "types": ["integer"]}, {"type": "unparsed", "unparsedType": "x"}])
def test_union_and_unknown_types_are_refused(kind: object) -> None:
    """Union types and unknown types are refused."""
    with pytest.raises(BadRequest, match="Iceberg has no type"):
        table_schema_of([{"name": "c", "type": kind}])


def test_view_refuses_type_that_needs_stored_original() -> None:
    """A view's schema has no place for an original type, so a type that needs one is refused."""
    with pytest.raises(BadRequest, match=r"varchar\(3\)"):
        schema_of([{"name": "c", "type": "varchar(3)"}])


def test_only_literal_defaults_are_accepted() -> None:
    """A literal default is returned in its own type. Expressions as defaults and auto-increment are refused."""
    literal = {"type": "literal", "dataType": "integer", "value": "3"}
    table_schema = table_schema_of([{"name": "n", "type": "integer", "defaultValue": literal}])

    (column,) = columns_of(table_schema.schema, table_schema.original_types)
    assert column["defaultValue"] == literal
    for wrong in ({"type": "function", "funcName": "now", "funcArgs": []}, {**literal, "type": "field"}):
        with pytest.raises(UnsupportedOperation):
            table_schema_of([{"name": "n", "type": "integer", "defaultValue": wrong}])
    with pytest.raises(BadRequest, match="not a value"):
        table_schema_of([{"name": "n", "type": "integer", "defaultValue": {**literal, "value": "x"}}])
    with pytest.raises(UnsupportedOperation):
        table_schema_of([{"name": "n", "type": "integer", "autoIncrement": True}])


@pytest.mark.parametrize("type_value", ["integer", "long", "double", "decimal(9,2)"])
@pytest.mark.parametrize("text", ["1_0", "٣", " 5", "0x1"])
def test_numbers_are_written_in_plain_digits(type_value: str, text: str) -> None:
    """Python reads underscores, blanks and digits of other scripts in numbers; other clients do not."""
    literal = {"type": "literal", "dataType": type_value, "value": text}

    with pytest.raises(BadRequest):
        table_schema_of([{"name": "n", "type": type_value, "defaultValue": literal}])


def test_types_are_read_in_any_case() -> None:
    """Type names are case-insensitive and may contain blanks, as in Gravitino."""
    assert plain_of("DECIMAL( 10 , 2 )", "c") == plain_of("decimal(10,2)", "c")
    assert plain_of("Integer  Unsigned", "c").word == "integer unsigned"
