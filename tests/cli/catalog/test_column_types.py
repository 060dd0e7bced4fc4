# SPDX-License-Identifier: Apache-2.0
"""Types of columns as texts."""

from __future__ import annotations

import pytest

from limnos.cli.catalog.column_types import gravitino_column, iceberg_column, lance_column
from limnos.client.values import Json

POINT: Json = {"type": "struct", "fields": [{"name": "x", "type": "double"}, {"name": "at", "type": "timestamp"}]}


@pytest.mark.parametrize(
    "kind,text",
    [
        ("decimal(10, 2)", "decimal(10, 2)"),
        ({"type": "list", "element": POINT}, "list<struct<x: double, at: timestamp>>"),
        ({"type": "map", "key": "string", "value": {"type": "list", "element": "int"}}, "map<string, list<int>>"),
        ({"type": "odd"}, "odd"),
        (None, "None"),
    ],
)
def test_iceberg_type_names_its_parts(kind: object, text: str) -> None:
    """Nested types name what is in them; a required field is marked."""
    assert iceberg_column({"name": "a", "type": kind}) == text
    assert iceberg_column({"name": "a", "type": kind, "required": True}) == f"{text} required"


@pytest.mark.parametrize(
    "kind,text",
    [
        ("timestamp_tz(6)", "timestamp_tz(6)"),
        ({"type": "list", "elementType": POINT}, "list<struct<x: double, at: timestamp>>"),
        ({"type": "map", "keyType": "string", "valueType": "long"}, "map<string, long>"),
        ({"type": "external", "catalogString": "hyperloglog"}, "hyperloglog"),
        ({"type": "unparsed", "unparsedType": "odd<x>"}, "odd<x>"),
        ({"type": "union"}, "union"),
    ],
)
def test_gravitino_type_names_its_parts(kind: object, text: str) -> None:
    """Nested types name what is in them, types of other systems have their own words; a column is nullable unless it
    says otherwise.
    """
    assert gravitino_column({"name": "a", "type": kind}) == text
    assert gravitino_column({"name": "a", "type": kind, "nullable": False}) == f"{text} required"


def test_long_type_is_cut() -> None:
    """A type of hundreds of fields does not fill the terminal."""
    fields = [{"name": f"column_{number}", "type": "long"} for number in range(500)]

    text = iceberg_column({"name": "a", "type": {"type": "struct", "fields": fields}})

    assert len(text) == 400
    assert text.startswith("struct<column_0: long, column_1: long")
    assert text.endswith("…")


def test_lance_type_has_length_and_items() -> None:
    """A vector shows its length and its items."""
    vector = {"type": "fixedsizelist", "length": 4, "fields": [{"name": "item", "type": {"type": "float"}}]}

    assert lance_column({"name": "v", "type": vector}) == "fixedsizelist[4]<float>"
    assert lance_column({"name": "v", "type": {"type": "int64"}, "nullable": False}) == "int64 required"
