# SPDX-License-Identifier: Apache-2.0
"""PyIceberg reads the documents of this package, and its results are equal where its own builder is correct."""

from __future__ import annotations

import uuid

import pytest
from pydantic import TypeAdapter
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, new_table_metadata
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import TableUpdate, update_table_metadata

from limnos.formats.iceberg import metadata
from limnos.formats.iceberg.json_types import Json
from tests.formats.iceberg.samples import (
    LOCATION,
    OTHER_UUID,
    UUID,
    add,
    appended,
    commit,
    creation,
    field,
    order,
    partition,
    ref,
    schema,
    sort,
    spec,
    table,
)

NESTED = schema(
    field(40, "id", required=True),
    field(
        30,
        "m",
        {
            "type": "map",
            "key-id": 8,
            "key": "string",
            "value-id": 9,
            "value-required": False,
            "value": {"type": "struct", "fields": [field(5, "x", "decimal(9,2)"), field(6, "y", "fixed[4]")]},
        },
    ),
    field(20, "tags", {"type": "list", "element-id": 7, "element": "timestamptz", "element-required": True}),
    field(10, "s", {"type": "struct", "fields": [field(3, "a", "date"), field(4, "b", "uuid")]}),
    **{"identifier-field-ids": [40], "schema-id": 0},
)


def parsed(doc: Json) -> TableMetadata:
    """Return the metadata as PyIceberg reads it from a file."""
    return TableMetadataUtil.parse_raw(metadata.encode(doc).decode())


def comparable(table_metadata: TableMetadata) -> object:
    """Return the metadata without the parts that depend on the clock or on how a file is logged."""
    dumped = table_metadata.model_dump()
    for key in ("last-updated-ms", "metadata-log", "snapshot-log"):
        del dumped[key]
    return dumped


@pytest.mark.parametrize("version", [1, 2])
def test_new_table_equals_pyicebergs(version: int) -> None:
    """A new table with nested columns, partitions and an order gets the same ids as from PyIceberg."""
    given_spec = spec(partition(3, "day", "day"), partition(40, "b", "bucket[4]"), **{"spec-id": 0})
    given_spec = {**given_spec, "fields": [{**one, "field-id": 1000 + n} for n, one in enumerate(given_spec["fields"])]}  # type: ignore[arg-type, var-annotated]
    given_order = order(sort(3), sort(40, direction="desc", nulls="nulls-last"))
    theirs = new_table_metadata(
        location=LOCATION,
        schema=Schema.model_validate(NESTED),
        partition_spec=PartitionSpec.model_validate(given_spec),
        sort_order=SortOrder.model_validate(given_order),
        properties={"format-version": str(version), "write.parquet.compression-codec": "zstd"},
        table_uuid=uuid.UUID(UUID),
    )

    ours = parsed(table(version, schema=NESTED, partition_spec=given_spec, write_order=given_order))

    assert comparable(ours) == comparable(theirs)


FOUR = schema(field(1, "id", required=True), field(2, "name", "string"), field(3, "day", "date"), field(4, "x"))
SEQUENCES: dict[str, list[list[Json]]] = {
    "properties": [
        [{"action": "set-properties", "updates": {"a": "1", "b": "2"}}],
        [{"action": "remove-properties", "removals": ["a"]}, {"action": "set-properties", "updates": {"b": "3"}}],
    ],
    "location": [[{"action": "set-location", "location": "s3://other/place"}]],
    "schema": [
        [
            {"action": "add-schema", "schema": {**FOUR, "schema-id": 1}, "last-column-id": 4},
            {"action": "set-current-schema", "schema-id": -1},
        ],
        [{"action": "set-current-schema", "schema-id": 0}],
    ],
    "spec": [
        [
            {
                "action": "add-spec",
                "spec": spec(partition(3, "d", "day", **{"field-id": 1000}), **{"spec-id": 1}),
            },
            {"action": "set-default-spec", "spec-id": -1},
        ],
        [{"action": "set-default-spec", "spec-id": 0}],
        [{"action": "remove-partition-specs", "spec-ids": [1]}],
    ],
    "order": [
        [
            {"action": "add-sort-order", "sort-order": order(sort(1), sort(3, "year"))},
            {"action": "set-default-sort-order", "sort-order-id": -1},
        ]
    ],
    "snapshots": [
        [add(1), ref(1)],
        [add(2, parent=1), ref(2), ref(1, "t", "tag", **{"max-ref-age-ms": 5})],
        [add(3, parent=2), ref(3, "dev", **{"min-snapshots-to-keep": 2})],
        [ref(1)],
        [{"action": "remove-snapshot-ref", "ref-name": "t"}],
        [{"action": "remove-snapshots", "snapshot-ids": [200]}],
    ],
    "statistics": [
        [add(1), ref(1)],
        [
            {
                "action": "set-statistics",
                "snapshot-id": 100,
                "statistics": {
                    "snapshot-id": 100,
                    "statistics-path": "a.puffin",
                    "file-size-in-bytes": 9,
                    "file-footer-size-in-bytes": 4,
                    "blob-metadata": [],
                },
            },
            {
                "action": "set-partition-statistics",
                "partition-statistics": {
                    "snapshot-id": 100,
                    "statistics-path": "a.parquet",
                    "file-size-in-bytes": 9,
                },
            },
        ],
        [
            {"action": "remove-statistics", "snapshot-id": 100},
            {"action": "remove-partition-statistics", "snapshot-id": 100},
        ],
    ],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_commits_agree_with_pyiceberg(name: str) -> None:
    """Simple version 2 commits have the same result as in PyIceberg's builder, step by step."""
    read = TypeAdapter(TableUpdate)
    ours, theirs = table(), parsed(table())

    for changes in SEQUENCES[name]:
        ours = commit(ours, *changes)
        theirs = update_table_metadata(theirs, tuple(read.validate_python(update) for update in changes))

        assert drop_parents(comparable(parsed(ours))) == drop_parents(comparable(theirs))


def drop_parents(dumped: object) -> object:
    """Remove parent ids. PyIceberg rewrites those of expired parents, which the specification does not require."""
    assert isinstance(dumped, dict)
    snapshots = [{**one, "parent-snapshot-id": None} for one in dumped["snapshots"]]
    return {**dumped, "snapshots": snapshots}


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_our_metadata(version: int) -> None:
    """PyIceberg accepts tables of versions 1 and 2 with snapshots, references and evolved schemas, specs and orders."""
    base = commit(
        appended(3, version),
        {"action": "add-schema", "schema": FOUR},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": spec(partition(4, "x_bucket", "bucket[8]"))},
        {"action": "set-default-spec", "spec-id": -1},
        ref(1, "t", "tag"),
    )

    table_metadata = parsed(base)

    assert table_metadata.format_version == version
    assert table_metadata.current_snapshot_id == 300
    assert table_metadata.current_schema_id == 1
    assert [one.field_id for one in table_metadata.spec().fields] == [1000]
    assert sorted(table_metadata.refs) == ["main", "t"]


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_created_and_upgraded_tables(version: int) -> None:
    """PyIceberg accepts a table committed from a staged create, an emptied one, and one upgraded from version 1."""
    created = commit(None, *creation(version), previous=None)
    emptied = commit(appended(1, version), {"action": "remove-snapshots", "snapshot-ids": [100]})
    upgraded = commit(appended(1, 1), {"action": "upgrade-format-version", "format-version": 2})

    tables = [parsed(created), parsed(emptied), parsed(upgraded)]

    assert [one.current_snapshot_id for one in tables] == [None, None, 100]
    assert [one.format_version for one in tables] == [version, version, 2]
    assert [str(one.table_uuid) for one in tables] == [UUID] * 3
    assert OTHER_UUID not in {str(one.table_uuid) for one in tables}


def test_pyiceberg_reads_version_3() -> None:
    """PyIceberg parses a version 3 table with snapshots."""
    table_metadata = parsed(appended(2, 3))

    assert (table_metadata.format_version, table_metadata.current_snapshot_id) == (3, 200)
