# SPDX-License-Identifier: Apache-2.0
"""Conversion of partitioning and sort orders of Iceberg tables to Gravitino's expressions."""

from __future__ import annotations

from limnos.formats.gravitino.partitions import partitioning_of, sort_orders_of

SCHEMA: dict[str, object] = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {
            "id": 2,
            "name": "at",
            "type": {"type": "struct", "fields": [{"id": 3, "name": "day", "type": "date", "required": False}]},
        },
    ],
}


def test_transforms_become_gravitino_expressions() -> None:
    """Each transform becomes Gravitino's expression, with sizes and nested names. Void fields are omitted, and unknown
    transforms become functions.
    """
    fields = [
        {"source-id": 1, "transform": "identity"},
        {"source-id": 3, "transform": "day"},
        {"source-id": 1, "transform": "bucket[8]"},
        {"source-id": 1, "transform": "truncate[4]"},
        {"source-id": 1, "transform": "void"},
        {"source-id": 1, "transform": "zorder"},
    ]

    assert partitioning_of({"fields": fields}, SCHEMA) == [
        {"strategy": "identity", "fieldName": ["id"]},
        {"strategy": "day", "fieldName": ["at", "day"]},
        {"strategy": "bucket", "numBuckets": 8, "fieldNames": [["id"]]},
        {"strategy": "truncate", "width": 4, "fieldName": ["id"]},
        {"strategy": "function", "funcName": "zorder", "funcArgs": [{"type": "field", "fieldName": ["id"]}]},
    ]


def test_sort_orders_keep_direction_and_nulls() -> None:
    """Sort orders keep direction and null order, for a plain field and for a transform with a size."""
    order: dict[str, object] = {
        "fields": [
            {"source-id": 1, "transform": "identity", "direction": "desc", "null-order": "nulls-last"},
            {"source-id": 1, "transform": "bucket[8]", "direction": "asc", "null-order": "nulls-first"},
        ]
    }
    field = {"type": "field", "fieldName": ["id"]}
    size = {"type": "literal", "dataType": "integer", "value": "8"}

    assert sort_orders_of(order, SCHEMA) == [
        {"sortTerm": field, "direction": "desc", "nullOrdering": "nulls_last"},
        {
            "sortTerm": {"type": "function", "funcName": "bucket", "funcArgs": [size, field]},
            "direction": "asc",
            "nullOrdering": "nulls_first",
        },
    ]
