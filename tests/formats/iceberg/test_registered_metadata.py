# SPDX-License-Identifier: Apache-2.0
"""Metadata files that are registered: what the server writes is, what one of the readers cannot read is not."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg import registered_metadata
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.registered_metadata import check_registrable, find_reader_problems
from limnos.formats.iceberg.schema import SchemaColumns, columns
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import (
    FILE,
    NOW,
    T0,
    UUID,
    appended,
    commit,
    field,
    legacy,
    order,
    partition,
    ref,
    rows,
    schema,
    snapshot,
    sort,
    spec,
    table,
)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_own_metadata_is_registrable(version: int) -> None:
    """Metadata that this package creates can be registered."""
    base = commit(appended(2, version), ref(1, "old", "tag"))

    check_registrable(base)

    assert base["format-version"] == version


def test_legacy_metadata_is_registrable() -> None:
    """Version 1 metadata of the first form can be registered and accepts commits."""
    base = legacy()

    check_registrable(base)
    new = commit(base, {"action": "set-properties", "updates": {"a": "b"}})

    assert new["properties"] == {"a": "b"}
    assert new["owner"] == "ann"
    assert rows(new, "metadata-log") == [{"timestamp-ms": 5, "metadata-file": FILE}]


def test_metadata_with_future_times_is_not_registrable() -> None:
    """A table whose last change or log entries are in the future is refused, because it would refuse later commits."""
    base = appended(2)
    check_registrable(base, latest_ms=NOW)
    ahead = {"timestamp-ms": NOW + 1, "snapshot-id": 100, "metadata-file": FILE}
    changes: tuple[Json, ...] = ({"last-updated-ms": NOW + 1}, {"snapshot-log": [ahead]}, {"metadata-log": [ahead]})

    for change in changes:
        with pytest.raises(BadRequest, match="register the table after that time"):
            check_registrable({**base, "last-updated-ms": NOW, **change}, latest_ms=NOW)


def entry(time_ms: int) -> Json:
    """Return an entry of the snapshot log."""
    return {"timestamp-ms": time_ms, "snapshot-id": 200}


def schemas(*fields: Json) -> Json:
    """Return the schemas of a document."""
    return {"schemas": [schema(*fields, **{"schema-id": 0})]}


ITEM: Json = {"type": "struct", "fields": [field(3, "x", **{"initial-default": None})]}
ITEMS: Json = {"type": "list", "element-id": 2, "element": ITEM, "element-required": False}
LONGS: Json = {"type": "list", "element-id": 2, "element": "long", "element-required": False}
OF_LIST: Json = partition(1, "p", **{"field-id": 1000})
DAYS: Json = partition(1, "b", "day", **{"field-id": 1000})
NAMED_TWICE: Json = {
    **schemas(field(1, "a", "date"), field(2, "b")),
    "partition-specs": [{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": [DAYS]}],
}
FILE_ENTRY: Json = {
    "snapshot-id": 200,
    "statistics-path": "s.puffin",
    "file-size-in-bytes": 9,
    "file-footer-size-in-bytes": 2,
}
BLOB: Json = {"type": "x", "snapshot-id": 200, "sequence-number": 2, "fields": [1], "properties": None}
KEY: Json = {"key-id": "k", "encrypted-key-metadata": "eA=="}
UNREGISTRABLE: dict[str, tuple[Json, str]] = {
    "no version": ({"format-version": None}, "'format-version' is required"),
    "version 4": ({"format-version": 4}, "format-version 4 is not supported"),
    "version 0": ({"format-version": 0}, "format-version 0 is not supported"),
    "version is text": ({"format-version": "2"}, "must be an integer"),
    "a view": ({"view-uuid": UUID}, "metadata of a view"),
    "no uuid": ({"table-uuid": None}, "'table-uuid' is required"),
    "no location": ({"location": None}, "'location' is required"),
    "no time": ({"last-updated-ms": None}, "'last-updated-ms' is required"),
    "no column id": ({"last-column-id": None}, "'last-column-id' is required"),
    "no sequence number": ({"last-sequence-number": None}, "'last-sequence-number' is required"),
    "no schemas": ({"schemas": None}, "'schemas' is required"),
    "unknown current schema": ({"current-schema-id": 5}, "'current-schema-id' is 5"),
    "broken schema": ({"schemas": [{"schema-id": 0, "type": "struct", "fields": [{}]}]}, "'name' is required"),
    "unknown spec": ({"default-spec-id": 5}, "'default-spec-id' is 5"),
    "broken spec": ({"partition-specs": [{"spec-id": 0, "fields": [{"name": "a"}]}]}, "'field-id' is required"),
    "no partition id": ({"last-partition-id": None}, "'last-partition-id' is required"),
    "unknown order": ({"default-sort-order-id": 5}, "'default-sort-order-id' is 5"),
    "properties not text": ({"properties": {"a": 1}}, "key 'a' must be a string"),
    "unknown snapshot": ({"current-snapshot-id": 5}, "current snapshot 5 is not one"),
    "main elsewhere": ({"current-snapshot-id": 100}, "not that of branch main (200)"),
    "dangling ref": ({"refs": {"b": {"type": "branch", "snapshot-id": 9}}}, "reference 'b' points to"),
    "main is a tag": ({"refs": {"main": {"type": "tag", "snapshot-id": 200}}}, "must be a branch"),
    "odd ref": ({"refs": {"b": {"type": "twig", "snapshot-id": 200}}}, "type must be branch or tag, not 'twig'"),
    "snapshot without id": ({"snapshots": [{}]}, "'snapshot-id' is required"),
    "log without id": ({"snapshot-log": [{"timestamp-ms": 2}]}, "'snapshot-id' is required"),
    "file without name": ({"metadata-log": [{"timestamp-ms": 2}]}, "'metadata-file' is required"),
    "file without time": ({"metadata-log": [{"metadata-file": "a"}]}, "'timestamp-ms' is required"),
    "odd statistics": ({"statistics": [{"snapshot-id": [1]}]}, "'snapshot-id' must be an integer"),
    "odd partition statistics": ({"partition-statistics": [5]}, "element 0 must be an object"),
    "odd key": ({"encryption-keys": [{"key-id": 5}]}, "'key-id' must be a string"),
    "log without time": ({"snapshot-log": [{"snapshot-id": 200}]}, "'timestamp-ms' is required"),
    "log out of order": ({"snapshot-log": [entry(T0), entry(T0 - 60_001)]}, "snapshot-log is not sorted"),
    "a snapshot twice": ({"snapshots": [snapshot(1), snapshot(2), snapshot(2)]}, "snapshot 200: it is there twice"),
    "low sequence number": ({"last-sequence-number": 1}, "last-sequence-number 1 is below sequence number 2"),
    "null parent": ({"snapshots": [snapshot(2, **{"parent-snapshot-id": None})]}, "parent-snapshot-id is null"),
    "null summary": ({"snapshots": [snapshot(2, summary=None)]}, "summary is null"),
    "no list": ({"snapshots": [snapshot(2, **{"manifest-list": 5})]}, "'manifest-list' must be a string"),
    "null default": (schemas(field(1, "a", **{"write-default": None})), "write-default is null"),
    "null default in a list": (schemas(field(1, "a", ITEMS)), "field 'x': initial-default is null"),
    "name of a partition field": (NAMED_TWICE, "column 2 has that name and is not its source"),
    "blob without fields": ({"statistics": [{**FILE_ENTRY, "blob-metadata": [{}]}]}, "'type' is required"),
    "null in a blob": ({"statistics": [{**FILE_ENTRY, "blob-metadata": [BLOB]}]}, "properties is null"),
    "null in a key": ({"encryption-keys": [{**KEY, "properties": None}]}, "properties is null"),
    "spaces in a type": (schemas(field(1, "a", "decimal( 9 , 2 )")), "decimal(9, 2) for all readers"),
    "spaces in a geometry": (schemas(field(1, "a", "geometry (x)")), "geometry(x) for all readers"),
    "integer of a fraction": (schemas(field(1, "a", "double", **{"write-default": 5})), "write-default must be 5.0"),
    "null identifiers": (
        {"schemas": [schema(**{"schema-id": 0, "identifier-field-ids": None})]},
        "identifier-field-ids is null",
    ),
    "unknown operation": ({"snapshots": [snapshot(2, summary={"operation": "5"})]}, "'5' is none of append"),
    "negative row id": ({"snapshots": [snapshot(2, **{"first-row-id": -1})]}, "'first-row-id' must be between 0"),
    "order of no column": (
        {"default-sort-order-id": 1, "sort-orders": [order(sort(9))]},
        "cannot find source column 9",
    ),
    "default spec of no column": (
        {"partition-specs": [{"spec-id": 0, "fields": [partition(9, "p", **{"field-id": 1000})]}]},
        "cannot find source column 9",
    ),
    "spec of a list": (
        {**schemas(field(1, "a", LONGS)), "partition-specs": [{"spec-id": 0, "fields": [OF_LIST]}]},
        "must be a primitive",
    ),
    "null properties": ({"properties": None}, "properties is null"),
    "null snapshots": ({"snapshots": None}, "snapshots is null"),
    "null log": ({"snapshot-log": None}, "snapshot-log is null"),
    "null statistics": ({"statistics": None}, "statistics is null"),
    "null keys": ({"encryption-keys": None}, "encryption-keys is null"),
    "a schema twice": (
        {"schemas": [schema(**{"schema-id": 0}), schema(**{"schema-id": 0})]},
        "schemas: schema-id 0 is there twice",
    ),
    "a spec twice": (
        {"partition-specs": [{"spec-id": 0, "fields": []}] * 2},
        "partition-specs: spec-id 0 is there twice",
    ),
    "an order twice": ({"sort-orders": [order()] * 2}, "sort-orders: order-id 0 is there twice"),
    "order 0 with fields": ({"sort-orders": [{**order(sort(1)), "order-id": 0}]}, "order-id 0 is that of the order"),
    "order 1 without fields": ({"sort-orders": [order(), {"order-id": 1, "fields": []}]}, "order-id 0 is that of"),
    "direction": ({"sort-orders": [order(), order(sort(1, direction="ASC"))]}, "direction must be asc or desc"),
    "order of nulls": (
        {"sort-orders": [order(), {"order-id": 1, "fields": [{**sort(1), "null-order": None}]}]},
        "'null-order' is required",
    ),
    "spelling of a transform": (
        {"sort-orders": [order(), order(sort(1, "Identity"))]},
        "transform 'Identity' must be identity",
    ),
    "width of a transform": (
        {"partition-specs": [{"spec-id": 0, "fields": [{**OF_LIST, "transform": "bucket[0]"}]}]},
        "the width of 'bucket[0]' must be between 1",
    ),
    "partition field without a name": (
        {"partition-specs": [{"spec-id": 0, "fields": [{**OF_LIST, "name": None}]}]},
        "'name' is required",
    ),
    "names of partition fields": (
        {"partition-specs": [{"spec-id": 0, "fields": [OF_LIST, {**DAYS, "name": "p"}]}], "last-partition-id": 1000},
        "two fields of a spec have the same name",
    ),
    "low column id": ({"last-column-id": 2}, "last-column-id 2 is below 3, which is in use"),
    "low partition id": (
        {"partition-specs": [{"spec-id": 0, "fields": [{**OF_LIST, "field-id": 1007}]}]},
        "last-partition-id 999 is below 1007",
    ),
    "tag with retention": (
        {"refs": {"b": {"type": "tag", "snapshot-id": 200, "min-snapshots-to-keep": 3}}},
        "a tag has no snapshot retention",
    ),
    "age of a reference": (
        {"refs": {"b": {"type": "tag", "snapshot-id": 200, "max-ref-age-ms": 0}}},
        "'max-ref-age-ms' must be between 1",
    ),
    "snapshot without a time": (
        {"snapshots": [{**snapshot(2), "timestamp-ms": None}]},
        "timestamp-ms is null",
    ),
    "time as text": ({"snapshots": [snapshot(2, **{"timestamp-ms": "5"})]}, "'timestamp-ms' must be an integer"),
    "no number": (
        {"snapshots": [{key: value for key, value in snapshot(2).items() if key != "sequence-number"}]},
        "'sequence-number' is required",
    ),
    "its own parent": ({"snapshots": [snapshot(2, parent=2)]}, "snapshot 200 is among its own ancestors"),
    "parents in a circle": (
        {"snapshots": [snapshot(1, parent=2), snapshot(2, parent=1)]},
        "is among its own ancestors",
    ),
    "change before the log": ({"last-updated-ms": T0 - 100_000}, "is before the last entry of snapshot-log"),
    "row ids in version 2": ({"next-row-id": 5}, "'next-row-id' is not part of format version 2"),
    "key is not base64": ({"encryption-keys": [{**KEY, "encrypted-key-metadata": "a"}]}, "must be base64"),
}


@pytest.mark.parametrize("name", UNREGISTRABLE)
def test_broken_metadata_is_not_registrable(name: str) -> None:
    """Metadata that the server could not serve or commit to is refused with the field's name."""
    changes, text = UNREGISTRABLE[name]

    with pytest.raises(BadRequest) as caught:
        check_registrable({**appended(2), **changes})

    assert text in caught.value.message


def test_version_3_without_next_row_id_is_refused() -> None:
    """Version 3 metadata without next-row-id is refused."""
    with pytest.raises(BadRequest) as caught:
        check_registrable({**table(3), "next-row-id": None})

    assert "'next-row-id' is required" in caught.value.message


REMOVED = "removed"


def test_row_ids_are_below_the_counter() -> None:
    """Rows of the next commit would get the row ids of others."""
    base = appended(2, 3)

    check_registrable(base)
    for change in ({"next-row-id": 19}, {"snapshots": [snapshot(2, version=3, **{"added-rows": 11})]}):
        with pytest.raises(BadRequest, match=r"next-row-id \d+ is below"):
            check_registrable({**base, **change})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "change,text",
    [
        ({"schema": None}, "schema is null"),
        ({"schema": {"type": "struct"}}, "'fields' is required"),
        ({"schema": schema(**{"schema-id": None})}, "schema-id is null"),
        ({"partition-spec": [{}]}, "'transform' is required"),
        ({"partition-spec": [{**OF_LIST, "name": ""}]}, "'name' must not be empty"),
        ({"snapshots": [snapshot(1, version=1, **{"sequence-number": 4})]}, "has no sequence numbers"),
        (
            {"partition-specs": REMOVED, "default-spec-id": 2},
            "'default-spec-id' is 2, and there are no partition-specs",
        ),
        ({"schemas": REMOVED, "current-schema-id": 2}, "'current-schema-id' is 2, and there are no schemas"),
    ],
)
def test_parts_of_version_1_are_checked(change: Json, text: str) -> None:
    """Readers of the first version read the schema and the partition fields beside the lists."""
    base = appended(1, 1)
    lacking = {key: value for key, value in base.items() if key not in ("schema", "current-schema-id")}

    check_registrable(base)
    with pytest.raises(BadRequest) as caught:
        check_registrable({key: value for key, value in {**base, **change}.items() if value != REMOVED})
    for document, part in ((lacking, "current-schema-id"), ({**lacking, "current-schema-id": 0}, "schema")):
        with pytest.raises(BadRequest, match=f"field '{part}'"):
            check_registrable(document)

    assert text in caught.value.message


def test_reserved_name_of_a_column_is_not_registrable() -> None:
    """A file whose current schema has a column `_file` is refused, and one that had it in an older schema is not."""
    base = table()
    old = {**schema(field(1, "id"), field(2, "_file", "string")), "schema-id": 1}
    both = {**base, "schemas": [*rows(base, "schemas"), old]}

    check_registrable(both)
    with pytest.raises(BadRequest, match="field '_file': Iceberg reserves this name"):
        check_registrable({**both, "current-schema-id": 1})
    (problem,) = find_reader_problems({**both, "current-schema-id": 1})
    assert problem.remedy.startswith("rename the column")


def test_specs_of_dropped_columns_are_registrable() -> None:
    """A former spec may have a source that was dropped, and the default one a `void` field of it."""
    field = partition(9, "p", **{"field-id": 1000})
    specs = [{"spec-id": 0, "fields": [{**field, "transform": "void"}]}, {"spec-id": 1, "fields": [field]}]

    base = {**appended(1), "partition-specs": specs, "last-partition-id": 1000}

    check_registrable({**base, "default-spec-id": 0})
    with pytest.raises(BadRequest, match="cannot find source column 9"):
        check_registrable({**base, "default-spec-id": 1})


def test_columns_are_collected_once_for_all_specs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with many specs and many columns costs their sum, not their product."""
    collected: list[Json] = []

    def counted(schema: Json) -> SchemaColumns:
        collected.append(schema)
        return columns(schema)

    monkeypatch.setattr(registered_metadata, "columns", counted)
    fields = [partition(1, f"p{number}", "bucket[4]", **{"field-id": 1000 + number}) for number in range(50)]
    specs = [spec(each, **{"spec-id": number}) for number, each in enumerate(fields)]

    check_registrable({**appended(1), "partition-specs": specs, "default-spec-id": 0, "last-partition-id": 1049})

    assert len(collected) == 1
