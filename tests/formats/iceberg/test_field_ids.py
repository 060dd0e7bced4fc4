# SPDX-License-Identifier: Apache-2.0
"""Top-level columns of a stored table by name, with their ids."""

from __future__ import annotations

import json

import pytest

from limnos.formats.iceberg.field_ids import field_ids_of

ONE = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
NESTED = {"id": 4, "name": "s", "type": {"type": "struct", "fields": [{"id": 5, "name": "in", "type": "int"}]}}
TWO = {"type": "struct", "fields": [{"id": 3, "name": "a", "type": "long"}, NESTED]}


@pytest.mark.parametrize(
    "document, expected",
    [
        ({"current-schema-id": 2, "schemas": [{**ONE, "schema-id": 1}, {**TWO, "schema-id": 2}]}, {"a": 3, "s": 4}),
        ({"format-version": 1, "schema": ONE}, {"a": 1}),
        ({"current-schema-id": 9, "schemas": []}, {}),
        ({"schema": {"fields": [{"id": "x", "name": 1}]}}, {}),
        ({}, {}),
    ],
)
def test_columns_are_top_level_fields_of_current_schema(document: object, expected: dict[str, int]) -> None:
    """Only the top-level fields of the current schema are columns, not those of older schemas or nested ones. Invalid
    metadata has none.
    """
    assert field_ids_of(json.dumps(document).encode()) == expected


def test_unreadable_document_has_no_columns() -> None:
    """An unreadable document has no columns."""
    assert field_ids_of(b"{") == {}
