# SPDX-License-Identifier: Apache-2.0
"""Descriptions of tables and views: comment, last change, and columns at every depth, from valid and invalid
metadata.
"""

from __future__ import annotations

import json

import pytest

from limnos.formats.iceberg.descriptions import NO_SUMMARY, DocumentSummary, columns_of, summary_of, texts_of

ADDRESS = {
    "type": "struct",
    "fields": [
        {"id": 3, "name": "city", "required": False, "type": "string", "doc": "where it is"},
        {"id": 4, "name": "zip", "required": False, "type": "string"},
    ],
}
TABLE = {
    "last-updated-ms": 1700000000000,
    "properties": {"comment": "flights of three airports", "owner": "etl"},
    "current-schema-id": 1,
    "schemas": [
        {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "old", "type": "long"}]},
        {
            "type": "struct",
            "schema-id": 1,
            "fields": [
                {"id": 1, "name": "id", "required": True, "type": "long", "doc": "number"},
                {"id": 2, "name": "address", "required": False, "type": ADDRESS},
                {"id": 5, "name": "stops", "required": False, "type": {"type": "list", "element": ADDRESS}},
                {"id": 9, "name": "by", "required": False, "type": {"type": "map", "key": "string", "value": ADDRESS}},
            ],
        },
    ],
}


def body(document: object) -> bytes:
    """Return a stored document."""
    return json.dumps(document).encode()


def test_summary_has_times_of_table_and_view() -> None:
    """The summary has the last update of a table, and the creation time of a view's current version."""
    view = {
        "current-version-id": 2,
        "versions": [{"version-id": 1, "timestamp-ms": 5}, {"version-id": 2, "timestamp-ms": 7}],
        "properties": {},
    }

    assert summary_of(body(TABLE)) == DocumentSummary("flights of three airports", 1700000000000)
    assert summary_of(body(view)) == DocumentSummary(None, 7)


def test_nested_columns_have_dotted_names() -> None:
    """Fields of structs, also in lists and maps, have names with their parents' names. Only the current schema is
    used.
    """
    columns = columns_of(body(TABLE))

    assert [column.name for column in columns] == [
        "id",
        "address",
        "address.city",
        "address.zip",
        "stops",
        "stops.element.city",
        "stops.element.zip",
        "by",
        "by.value.city",
        "by.value.zip",
    ]
    assert {column.doc for column in columns} == {"number", "where it is", ""}


@pytest.mark.parametrize("bad", [b"", b"[]", b'{"schemas": 1, "properties": 2}', b'{"schemas": [{"fields": 3}]}'])
def test_malformed_metadata_has_no_description(bad: bytes) -> None:
    """A document that cannot be read has no comment and no columns."""
    assert summary_of(bad) == NO_SUMMARY
    assert columns_of(bad) == []


def test_unnamed_fields_are_skipped_and_depth_is_bounded() -> None:
    """Fields without a name are skipped, and the depth of nesting is limited."""
    deep: object = "long"
    for _ in range(60):
        deep = {"type": "struct", "fields": [{"id": 1, "name": "x", "type": deep}]}
    odd = {"schemas": [{"schema-id": 0, "fields": [{"id": 1}, 7, {"name": "a", "type": "int", "doc": 3}]}]}
    odd["current-schema-id"] = 0

    assert [column.name for column in columns_of(body(odd))] == ["a"]
    assert len(columns_of(body({"current-schema-id": 0, "schemas": [{"schema-id": 0, **deep}]}))) == 21


@pytest.mark.parametrize(
    "document",
    [
        TABLE,
        {"schemas": [], "current-schema-id": 4},
        {"schema": {"fields": [{"name": "a.b", "type": "int", "doc": "only"}]}, "properties": {"comment": ""}},
        TABLE | {"properties": {"comment": 7}},
        TABLE | {"properties": [1]},
        {"schema": {"fields": [{"name": "a", "type": "int", "doc": None}, {"type": "int"}, 7]}},
        TABLE | {"schemas": [{"schema-id": 1, "fields": None}]},
        [1],
    ],
)
def test_texts_are_those_of_columns_and_summary(document: object) -> None:
    """The texts that searches compare are the names and documentation of all columns and the comment, also of metadata
    of which a part is malformed.
    """
    columns, comments = texts_of(body(document))

    described = columns_of(body(document))
    comment = summary_of(body(document)).comment
    assert columns == [each.name.rpartition(".")[2] for each in described]
    assert comments == [text for text in (comment, *(each.doc for each in described)) if text]
