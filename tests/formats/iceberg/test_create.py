# SPDX-License-Identifier: Apache-2.0
"""Creation of new tables."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import LOCATION, T0, UUID, field, order, partition, schema, sort, spec, table

COMMON = {
    "table-uuid": UUID,
    "location": LOCATION,
    "last-updated-ms": T0,
    "last-column-id": 3,
    "current-schema-id": 0,
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "properties": {"write.parquet.compression-codec": "zstd"},
    "refs": {},
    "snapshots": [],
    "statistics": [],
    "partition-statistics": [],
    "snapshot-log": [],
    "metadata-log": [],
}


@pytest.mark.parametrize(
    "version,special",
    [
        (1, {"current-snapshot-id": -1, "schema": schema(**{"schema-id": 0}), "partition-spec": []}),
        (2, {"current-snapshot-id": -1, "last-sequence-number": 0}),
        (3, {"current-snapshot-id": None, "last-sequence-number": 0, "next-row-id": 0}),
    ],
)
def test_new_table_has_exactly_its_fields(version: int, special: Json) -> None:
    """A new table has exactly the fields of its format version."""
    metadata = table(version)

    assert metadata == {"format-version": version, "schemas": [schema(**{"schema-id": 0})], **COMMON, **special}


def test_version_2_is_the_default() -> None:
    """Without a format-version property a new table has version 2, and reserved properties are not stored."""
    properties = {"uuid": "x", "snapshot-count": "5", "current-schema": "{}", "owner": "ann"}

    metadata = table(properties=properties)

    assert metadata["format-version"] == 2
    assert metadata["properties"] == {"write.parquet.compression-codec": "zstd", "owner": "ann"}


def test_fresh_ids_are_assigned() -> None:
    """Columns get ids from 1, partition fields from 1000, and the sort order is 1. Sources refer to the new
    column ids.
    """
    request_schema = schema(field(70, "id", required=True), field(50, "day", "date"), **{"identifier-field-ids": [70]})
    given_spec = spec(partition(50, "day_month", "month", **{"field-id": 1234}), partition(70, "b", "bucket[4]"))

    metadata = table(
        schema=request_schema, partition_spec=given_spec, write_order=order(sort(50), sort(70, "bucket[4]"))
    )

    assert metadata["schemas"] == [
        {**schema(field(1, "id", required=True), field(2, "day", "date")), "identifier-field-ids": [1], "schema-id": 0}
    ]
    assert metadata["partition-specs"] == [
        {
            "spec-id": 0,
            "fields": [
                partition(2, "day_month", "month", **{"field-id": 1000}),
                partition(1, "b", "bucket[4]", **{"field-id": 1001}),
            ],
        }
    ]
    assert metadata["sort-orders"] == [{"order-id": 1, "fields": [sort(2), sort(1, "bucket[4]")]}]
    assert (metadata["last-column-id"], metadata["last-partition-id"], metadata["default-sort-order-id"]) == (
        2,
        1001,
        1,
    )


def test_version_1_repeats_schema_and_spec() -> None:
    """In version 1, the legacy fields repeat the schema and the spec's fields."""
    metadata = table(1, partition_spec=spec(partition(3, "day")))

    assert metadata["schema"] == schema(**{"schema-id": 0})
    assert metadata["partition-spec"] == [partition(3, "day", **{"field-id": 1000})]


def test_unknown_fields_survive() -> None:
    """Unknown fields of schema, spec and order are kept."""
    request_schema = schema(field(9, "a", origin="x"), color="red")

    metadata = table(
        schema=request_schema, partition_spec=spec(partition(9, "a", note="n")), write_order={"fields": [], "k": 1}
    )

    assert metadata["schemas"] == [{**schema(field(1, "a", origin="x"), color="red"), "schema-id": 0}]
    assert metadata["partition-specs"] == [
        {"spec-id": 0, "fields": [partition(1, "a", note="n", **{"field-id": 1000})]}
    ]
    assert metadata["sort-orders"] == [{"fields": [], "k": 1, "order-id": 0}]


def test_own_codec_wins_over_the_default() -> None:
    """A Parquet codec in the request is kept, and the trailing slash of the location is removed."""
    metadata = table(properties={"write.parquet.compression-codec": "snappy"}, location="s3://a/b/")

    assert metadata["properties"] == {"write.parquet.compression-codec": "snappy"}
    assert metadata["location"] == "s3://a/b"


BAD: dict[str, tuple[Json, str]] = {
    "schema missing": ({"schema": None}, "'schema' must be an object, not null"),
    "schema is text": ({"schema": "x"}, "'schema' must be an object"),
    "broken schema": ({"schema": schema(field(1, "a"), field(1, "b"))}, "field id 1"),
    "new type": ({"schema": schema(field(1, "a", "variant"))}, "variant is not supported until v3"),
    "nanoseconds": ({"schema": schema(field(1, "a", "timestamp_ns"))}, "timestamp_ns is not supported until v3"),
    "spec is text": ({"partition_spec": "x"}, "Invalid partition spec must be an object"),
    "spec source": ({"partition_spec": spec(partition(9, "p"))}, "cannot find source column 9"),
    "void source": ({"partition_spec": spec(partition(9, "p", "void"))}, "cannot find source column 9"),
    "spec transform": ({"partition_spec": spec(partition(1, "p", "zorder"))}, "unknown transform"),
    "order source": ({"write_order": order(sort(9))}, "cannot find source column 9"),
    "order is list": ({"write_order": []}, "Invalid sort order must be an object"),
    "properties are a list": ({"properties": {"a": 1}}, "key 'a' must be a string"),
    "version is text": ({"properties": {"format-version": "two"}}, "'format-version' must be 1, 2 or 3"),
    "version 4": ({"properties": {"format-version": "4"}}, "Unsupported format version: v4"),
    "version 0": ({"properties": {"format-version": "0"}}, "Unsupported format version: v0"),
    "log length": ({"properties": {"write.metadata.previous-versions-max": "x"}}, "must be a whole number"),
    "codec": ({"properties": {"write.metadata.compression-codec": "lz4"}}, "must be none or gzip"),
    "metrics": ({"properties": {"write.metadata.metrics.column.nope": "full"}}, "names no column"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_create_is_refused(name: str) -> None:
    """A create request that breaks a rule is refused with a message that names the part."""
    changes, text = BAD[name]

    with pytest.raises(BadRequest) as caught:
        table(**changes)  # type: ignore[arg-type]

    assert text in caught.value.message


def test_properties_may_be_missing() -> None:
    """A create request without properties gets the defaults."""
    from limnos.formats.iceberg.create import new_table

    metadata = new_table(
        uuid=UUID, location="s3://a", schema=schema(), partition_spec=None, write_order=None, properties=None, now_ms=T0
    )

    assert metadata["properties"] == {"write.parquet.compression-codec": "zstd"}


def test_metrics_property_of_existing_column_is_accepted() -> None:
    """A metrics property that names an existing column is kept."""
    metadata = table(properties={"write.metadata.metrics.column.name": "full"})

    assert metadata["properties"] == {
        "write.parquet.compression-codec": "zstd",
        "write.metadata.metrics.column.name": "full",
    }
