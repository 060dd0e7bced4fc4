# SPDX-License-Identifier: Apache-2.0
"""Partition fields and sort orders: parsed from a declaration and from metadata, and rendered for Spark. No Spark
runs.
"""

from __future__ import annotations

import msgspec
import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.engine.layout import (
    PartitionTerm,
    column_docs,
    column_paths,
    partition_of,
    partition_term,
    same_term,
    sort_of,
    sort_term,
)
from limnos.pipeline.engine.metadata import TableMetadata

TERMS = [
    ("day", PartitionTerm("identity", ("day",)), "day"),
    ("days(at)", PartitionTerm("day", ("at",)), "days(at)"),
    (" Date ( at ) ", PartitionTerm("day", ("at",)), "days(at)"),
    ("date_hour(at)", PartitionTerm("hour", ("at",)), "hours(at)"),
    ("year(place.since)", PartitionTerm("year", ("place", "since")), "years(place.since)"),
    ("bucket(16, id)", PartitionTerm("bucket[16]", ("id",)), "bucket(16, id)"),
    ("truncate(id, 4)", PartitionTerm("truncate[4]", ("id",)), "truncate(4, id)"),
    ("identity(id)", PartitionTerm("identity", ("id",)), "id"),
    ("`a b`", PartitionTerm("identity", ("a b",)), "`a b`"),
]


@pytest.mark.parametrize("text,term,sql", TERMS, ids=[text for text, _, _ in TERMS])
def test_partition_term_spellings_round_trip(text: str, term: PartitionTerm, sql: str) -> None:
    """Each spelling is parsed to one term, and the rendered text is parsed to the same term."""
    assert partition_term(text) == term
    assert term.sql() == sql
    assert partition_term(sql) == term


@pytest.mark.parametrize(
    "text,words",
    [
        ("weeks(at)", "no transform 'weeks'"),
        ("bucket(id)", "needs a number and a column"),
        ("bucket(x, id)", "needs a number"),
        ("days()", "is not a column"),
        ("", "is not a column"),
    ],
)
def test_invalid_partition_term_is_refused_with_reason(text: str, words: str) -> None:
    """An invalid partition term is refused with the reason."""
    with pytest.raises(BadRequest, match=words):
        partition_term(text)


@pytest.mark.parametrize(
    "text,sql",
    [
        ("day", "day ASC NULLS FIRST"),
        ("day desc", "day DESC NULLS LAST"),
        ("day DESC NULLS FIRST", "day DESC NULLS FIRST"),
        ("days(at) asc nulls last", "days(at) ASC NULLS LAST"),
        ("bucket(8, id)", "bucket(8, id) ASC NULLS FIRST"),
    ],
)
def test_sort_order_has_default_null_placement(text: str, sql: str) -> None:
    """A sort order is rendered for Spark, and the rendered text is parsed to the same order. By default NULLs come
    first in ascending order and last in descending order.
    """
    assert sort_term(text).sql() == sql
    assert sort_term(sql) == sort_term(text)


FOUND = {
    "table-uuid": "u",
    "format-version": 2,
    "current-schema-id": 1,
    "default-spec-id": 1,
    "default-sort-order-id": 1,
    "schemas": [
        {"schema-id": 0, "fields": []},
        {
            "schema-id": 1,
            "fields": [
                {"id": 1, "name": "at", "type": "timestamptz", "doc": "When."},
                {
                    "id": 2,
                    "name": "Place",
                    "type": {
                        "type": "struct",
                        "fields": [{"id": 3, "name": "city", "type": "string", "required": False, "doc": "Where."}],
                    },
                },
                {"id": 4, "name": "tags", "type": {"type": "list", "element-id": 5, "element": "string"}},
                {
                    "id": 6,
                    "name": "m",
                    "type": {
                        "type": "map",
                        "key-id": 7,
                        "key": "string",
                        "value-id": 8,
                        "value": {"type": "struct", "fields": [{"id": 9, "name": "v", "type": "int"}]},
                    },
                },
            ],
        },
    ],
    "partition-specs": [
        {"spec-id": 0, "fields": []},
        {
            "spec-id": 1,
            "fields": [
                {"name": "at_day", "transform": "day", "source-id": 1},
                {"name": "old", "transform": "void", "source-id": 4},
                {"name": "city", "transform": "identity", "source-id": 3},
            ],
        },
    ],
    "sort-orders": [
        {
            "order-id": 1,
            "fields": [{"transform": "identity", "source-id": 3, "direction": "desc", "null-order": "nulls-last"}],
        }
    ],
}


def test_layout_from_metadata_equals_declaration() -> None:
    """The layout from metadata equals that of the declaration; void partition fields are left out."""
    metadata = msgspec.convert(FOUND, TableMetadata)

    assert partition_of(metadata) == (partition_term("days(at)"), partition_term("Place.city"))
    assert sort_of(metadata) == (sort_term("Place.city DESC"),)
    assert same_term(partition_of(metadata)[1], partition_term("place.CITY"))
    assert not same_term(partition_of(metadata)[0], partition_term("hours(at)"))
    assert column_paths(metadata) == {
        1: ("at",),
        2: ("Place",),
        3: ("Place", "city"),
        4: ("tags",),
        5: ("tags", "element"),
        6: ("m",),
        7: ("m", "key"),
        8: ("m", "value"),
        9: ("m", "value", "v"),
    }
    docs = column_docs(metadata)
    assert (docs["at",], docs["place", "city"], docs["tags",]) == ("When.", "Where.", None)
