# SPDX-License-Identifier: Apache-2.0
"""Sample schemas, tables, snapshots and updates for the tests of this package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from limnos.formats.iceberg import create, updates
from limnos.formats.iceberg.json_types import Json

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
OTHER_UUID = "0b7a7a0e-6f0a-4d3b-9c76-2f4b8f9d3a11"
LOCATION = "s3://lake/tables/9c12"
T0 = 1_700_000_000_000
NOW = T0 + 10_000_000
FILE = f"{LOCATION}/metadata/00000-a.metadata.json"


def field(number: int, name: str, type_value: object = "long", *, required: object = False, **more: object) -> Json:
    """A schema field."""
    return {"id": number, "name": name, "required": required, "type": type_value, **more}


def schema(*fields: Json, **more: object) -> Json:
    """Return a schema of the given fields, by default of an id, a name and a day."""
    chosen = fields or (field(1, "id", required=True), field(2, "name", "string"), field(3, "day", "date"))
    return {"type": "struct", "fields": list(chosen), **more}


def partition(source: int, name: str, transform: object = "identity", **more: object) -> Json:
    """A partition field."""
    return {"source-id": source, "name": name, "transform": transform, **more}


def spec(*fields: Json, **more: object) -> Json:
    """A partition spec."""
    return {"fields": list(fields), **more}


def sort(source: int, transform: str = "identity", direction: str = "asc", nulls: str = "nulls-first") -> Json:
    """A sort field."""
    return {"source-id": source, "transform": transform, "direction": direction, "null-order": nulls}


def order(*fields: Json) -> Json:
    """A sort order."""
    return {"order-id": 1 if fields else 0, "fields": list(fields)}


def table(version: int = 2, **changes: object) -> Json:
    """Return the metadata of a new table."""
    arguments: Json = {
        "uuid": UUID,
        "location": LOCATION,
        "schema": schema(),
        "partition_spec": None,
        "write_order": None,
        "properties": {},
        "now_ms": T0,
        **changes,
    }
    properties = arguments.pop("properties")
    assert isinstance(properties, dict)
    return create.new_table(**arguments, properties={"format-version": str(version), **properties})  # type: ignore[arg-type]


def snapshot(
    number: int, *, parent: int | None = None, version: int = 2, at: int | None = None, **more: object
) -> Json:
    """Return a snapshot whose id is 100 times its number and whose sequence number is its number."""
    body: Json = {"snapshot-id": number * 100, "timestamp-ms": T0 + number * 1000 if at is None else at}
    body |= {"manifest-list": f"{LOCATION}/metadata/snap-{number}.avro", "summary": {"operation": "append"}}
    if parent is not None:
        body["parent-snapshot-id"] = parent * 100
    if version > 1:
        body["sequence-number"] = number
    if version > 2:
        body |= {"first-row-id": (number - 1) * 10, "added-rows": 10}
    return {**body, **more}


def add(number: int, **more: object) -> Json:
    """Return an add-snapshot update."""
    return {"action": "add-snapshot", "snapshot": snapshot(number, **more)}  # type: ignore[arg-type]


def ref(number: int, name: object = "main", kind: object = "branch", **more: object) -> Json:
    """Return a set-snapshot-ref update."""
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": number * 100, **more}


def commit(base: Json | None, *changes: Json, now_ms: int = NOW, previous: str | None = FILE) -> Json:
    """Apply updates."""
    return updates.apply(base, list(changes), now_ms=now_ms, previous_location=previous)


def appended(count: int, version: int = 2) -> Json:
    """Return a table with `count` snapshots on main, one commit each."""
    base = table(version)
    for number in range(1, count + 1):
        parent = number - 1 if number > 1 else None
        base = commit(base, add(number, parent=parent, version=version), ref(number), now_ms=T0 + number * 1000)
    return base


def rows(metadata: Json, key: str) -> list[Json]:
    """Return a list in the metadata."""
    entries = metadata[key]
    assert isinstance(entries, list)
    return entries


def ids(metadata: Json, key: str, id_key: str) -> list[object]:
    """Return the ids in a list of the metadata."""
    return [row[id_key] for row in rows(metadata, key)]


def logged(metadata: Json) -> list[object]:
    """Return the snapshot ids in the snapshot log."""
    return ids(metadata, "snapshot-log", "snapshot-id")


def creation(version: int = 2) -> list[Json]:
    """Return the updates by which a client commits a staged create."""
    fields = [field(1, "id", required=True), field(2, "name", "string"), field(3, "day", "date")]
    return [
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "upgrade-format-version", "format-version": version},
        {"action": "add-schema", "schema": schema(*fields, **{"schema-id": 0}), "last-column-id": 3},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": spec(partition(3, "day_month", "month", **{"field-id": 1000}))},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": order(sort(1))},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": LOCATION},
        {"action": "set-properties", "updates": {"owner": "ann"}},
    ]


def steps(work: Callable[[], object]) -> int:
    """Return the number of calls that a function makes, including calls into C and iterations of generators."""
    count = 0

    def see(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def legacy() -> Json:
    """Return a version 1 document in the form of the first writers."""
    return {
        "format-version": 1,
        "location": LOCATION,
        "last-updated-ms": 5,
        "last-column-id": 3,
        "schema": schema(),
        "partition-spec": [{"source-id": 1, "name": "id", "transform": "identity"}],
        "current-snapshot-id": 100,
        "snapshots": [{"snapshot-id": 100, "timestamp-ms": 5, "manifests": ["a.avro"]}],
        "owner": "ann",
    }
