# SPDX-License-Identifier: Apache-2.0
"""Schemas as they are stored: one spelling, without null, at any depth."""

from __future__ import annotations

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.schema import columns
from limnos.formats.iceberg.stored_schemas import in_stored_form
from tests.formats.iceberg.samples import commit, field, rows, schema, table


def stored(sent: Json) -> Json:
    """Return the stored form of a schema."""
    return in_stored_form(sent, columns(sent))


def test_ordinary_schema_is_stored_as_it_is() -> None:
    """Nothing is copied."""
    sent = schema(field(1, "a", doc="text"), field(2, "b", "decimal(9, 2)"), field(3, "c", "string"))

    assert stored(sent) is sent


def test_null_attributes_are_stored_as_absent_ones() -> None:
    """Also those of fields in structs, lists and maps, and of the schema itself."""
    nulls = {"doc": None, "initial-default": None, "write-default": None}
    inner: Json = {"type": "struct", "fields": [field(5, "x", **nulls)]}
    items: Json = {"type": "list", "element-id": 4, "element": inner, "element-required": False}
    pairs: Json = {"type": "map", "key-id": 7, "key": "string", "value-id": 8, "value": "int", "value-required": False}
    sent = schema(
        field(1, "a", **nulls), field(2, "b", items), field(6, "m", pairs, **nulls), **{"identifier-field-ids": None}
    )

    inner_stored: Json = {"type": "struct", "fields": [field(5, "x")]}
    assert stored(sent) == schema(
        field(1, "a"), field(2, "b", {**items, "element": inner_stored}), field(6, "m", pairs)
    )


def test_types_are_stored_in_canonical_form() -> None:
    """PyIceberg reads no other spelling."""
    items: Json = {"type": "list", "element-id": 5, "element": "fixed[ 3 ]", "element-required": False}
    sent = schema(field(1, "a", "decimal( 9 ,2 )"), field(2, "b", "geometry (srid:3857)"), field(4, "l", items))

    texts = [one["type"] for one in rows(stored(sent), "fields")]
    assert texts == ["decimal(9, 2)", "geometry(srid:3857)", {**items, "element": "fixed[3]"}]


def test_integer_default_of_a_fraction_is_stored_with_a_point() -> None:
    """JSON of clients has `2` where Iceberg's Java library reads only `2.0`."""
    (one,) = rows(stored(schema(field(1, "a", "double", **{"write-default": 2}))), "fields")

    assert repr(one["write-default"]) == "2.0"


def test_commit_stores_the_schema_in_stored_form() -> None:
    """Two spellings of one schema are one schema."""
    spellings = [
        schema(field(1, "a", "decimal( 9 , 2 )", **{"write-default": None})),
        schema(field(1, "a", "decimal(9,2)")),
    ]
    base = commit(table(3), *({"action": "add-schema", "schema": each} for each in spellings))

    assert [one["fields"] for one in rows(base, "schemas")[1:]] == [[field(1, "a", "decimal(9, 2)")]]
