# SPDX-License-Identifier: Apache-2.0
"""Comparison of two schemas: compatible, widened and lost columns, at any depth. Spark only parses their DDL."""

from __future__ import annotations

import pytest
from pyspark.sql.types import DataType, StructType

from limnos.model.errors import BadRequest
from limnos.pipeline.engine.changes import (
    ColumnChanges,
    changes_between,
    ddl,
    dotted_path,
    fits,
    require_single_names,
    storable,
    widening,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("here"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def columns(text: str) -> StructType:
    """Return the schema of a DDL string."""
    schema = StructType.fromDDL(text)
    assert isinstance(schema, StructType)
    return schema


def kind(text: str) -> DataType:
    """Return the type of a DDL string."""
    return columns(f"x {text}").fields[0].dataType


FITS = [
    ("int", "tinyint", True),
    ("int", "bigint", False),
    ("bigint", "int", True),
    ("double", "float", True),
    ("double", "int", True),
    ("double", "bigint", False),
    ("float", "smallint", True),
    ("float", "int", False),
    ("decimal(9,2)", "decimal(7,2)", True),
    ("decimal(9,2)", "decimal(9,3)", False),
    ("decimal(9,2)", "decimal(10,2)", False),
    ("decimal(12,2)", "int", True),
    ("decimal(11,2)", "int", False),
    ("string", "void", True),
    ("string", "int", False),
    ("string", "date", False),
    ("timestamp", "date", True),
    ("date", "timestamp", False),
    ("boolean", "int", False),
    ("binary", "string", False),
    ("timestamp", "timestamp_ntz", False),
]


@pytest.mark.parametrize("old,new,expected", FITS, ids=str)
def test_column_accepts_types_without_loss(old: str, new: str, expected: bool) -> None:
    """A column accepts another type if no value loses information."""
    assert fits(kind(old), kind(new)) is expected


WIDER = [
    ("int", "bigint", "bigint"),
    ("float", "double", "double"),
    ("float", "int", "double"),
    ("decimal(9,2)", "decimal(12,2)", "decimal(12,2)"),
    ("decimal(9,2)", "decimal(12,1)", "decimal(13,2)"),
    ("decimal(9,2)", "int", "decimal(12,2)"),
    ("decimal(9,2)", "decimal(12,3)", None),
    ("decimal(38,20)", "bigint", None),
    ("bigint", "double", None),
    ("string", "int", None),
    ("int", "string", None),
]


@pytest.mark.parametrize("old,new,expected", WIDER, ids=str)
def test_column_is_widened_as_iceberg_allows(old: str, new: str, expected: str | None) -> None:
    """A column is widened as Iceberg allows, to a type for the old and the new values, or not at all."""
    wider_type = widening(kind(old), kind(new))

    assert (None if wider_type is None else wider_type.simpleString()) == expected
    if wider_type is not None:
        assert fits(wider_type, kind(old))
        assert fits(wider_type, kind(new))


def test_schemas_are_compared_by_name_at_any_depth() -> None:
    """New, widened, missing and lossy columns are reported by path; order and case do not matter."""
    table = columns(
        "id INT, Who STRUCT<name: STRING, age: INT>, tags ARRAY<STRUCT<a: INT>>, m MAP<STRING, INT>, gone DATE, note"
        " STRING"
    )
    frame = columns(
        "note INT, ID BIGINT, who STRUCT<NAME: STRING, mail: STRING>, tags ARRAY<STRUCT<a: BIGINT>>, m MAP<STRING,"
        " BIGINT>, fresh SMALLINT"
    )

    changes = changes_between(table, frame)

    assert [(dotted_path(each.path), each.type.simpleString()) for each in changes.added] == [
        ("Who.mail", "string"),
        ("fresh", "int"),
    ]
    assert [(dotted_path(each.path), each.new.simpleString()) for each in changes.widened] == [
        ("id", "bigint"),
        ("tags.element.a", "bigint"),
        ("m.value", "bigint"),
    ]
    assert [dotted_path(each) for each in changes.missing] == ["Who.age", "gone"]
    assert [dotted_path(each.path) for each in changes.lossy] == ["note"]
    assert changes
    assert not changes_between(table, table)
    assert changes_between(table, table) == ColumnChanges()


def test_wider_map_key_is_reported_as_lossy() -> None:
    """Iceberg cannot widen map keys: a wider key is reported as lossy."""
    changes = changes_between(columns("m MAP<INT, STRING>"), columns("m MAP<BIGINT, STRING>"))

    assert [dotted_path(each.path) for each in changes.lossy] == ["m.key"]
    assert changes.widened == ()


def test_columns_of_new_table_are_optional_and_typed() -> None:
    """Columns are optional, and small integers become integers, at any depth; a column without a type is refused by its
    path.
    """
    stored_schema = storable(
        columns("a TINYINT NOT NULL, s STRUCT<b: SMALLINT NOT NULL>, l ARRAY<TINYINT>, m MAP<STRING, TINYINT>")
    )

    assert ddl(stored_schema) == "struct<a: int, s: struct<b: int>, l: array<int>, m: map<string, int>>"
    assert all(each.nullable for each in stored_schema.fields)
    with pytest.raises(BadRequest, match=r"Column 's\.x' is always NULL"):
        storable(columns("s STRUCT<x: VOID>"))


def test_columns_differing_only_in_case_are_refused() -> None:
    """Two columns whose names differ only in case are refused."""
    require_single_names(columns("a INT, b INT"))
    with pytest.raises(BadRequest, match="two columns 'A'"):
        require_single_names(StructType(columns("a INT").fields + columns("A INT").fields))


def test_special_names_are_quoted_in_types() -> None:
    """Names with blanks and back quotes are quoted in the type of a statement."""
    assert ddl(columns("`a b` STRUCT<`c``d`: INT>")) == "struct<`a b`: struct<`c``d`: int>>"
