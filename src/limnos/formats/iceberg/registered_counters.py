# SPDX-License-Identifier: Apache-2.0
"""Checks of registered documents that concern several parts: fields that are null or missing, repeated ids, counters
below the ids that are in use, times.

Must not know stores or commits. Source: Iceberg specification, "Table Metadata Fields".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from limnos.formats.iceberg.draft import HERE
from limnos.formats.iceberg.json_types import INT_MAX, Json, hashable, integer_at, objects_at, optional_integer_at
from limnos.formats.iceberg.metadata import rows
from limnos.formats.iceberg.schema import SchemaColumns, columns
from limnos.formats.iceberg.stored_schemas import refuse_null, refuse_unreadable
from limnos.formats.iceberg.update_snapshots import next_row_id
from limnos.model.errors import BadRequest

CLOCK_SKEW_MS: Final = 60_000
"""The maximum time by which the last change may lie before the entries of a log, in milliseconds."""
NOT_NULL: Final = (
    *("schema", "schemas", "partition-spec", "partition-specs", "sort-orders", "properties", "snapshots", "refs"),
    *("table-uuid", "snapshot-log", "metadata-log", "statistics", "partition-statistics", "encryption-keys"),
)
"""Optional parts of a document that a reader refuses if they are null."""
_OF_LISTS: Final = {
    "schemas": ("schema-id", "current-schema-id"),
    "partition-specs": ("spec-id", "default-spec-id"),
    "sort-orders": ("order-id", "default-sort-order-id"),
}


def check_nulls(metadata: Json) -> None:
    """Raise BadRequest for null in a part of a document where a reader needs a list or an object, or none."""
    refuse_null({key: metadata[key] for key in NOT_NULL if key in metadata}, HERE)


def check_first_version(metadata: Json) -> None:
    """Check what a document of format version 1 has beside the lists of the others: its schema and its partition
    fields, and the defaults of the lists that it has. Raises BadRequest.
    """
    for key, (_, default) in _OF_LISTS.items():
        if key in metadata:
            integer_at(metadata, default, where=HERE)
    if metadata.get("format-version") != 1:
        if metadata.get("format-version") == 2 and "next-row-id" in metadata:
            raise BadRequest(f"{HERE}: field 'next-row-id' is not part of format version 2")
        return
    schema = metadata.get("schema")
    if not isinstance(schema, dict):
        raise BadRequest(f"{HERE}: format version 1 requires field 'schema', the current schema")
    columns(schema)
    refuse_unreadable(schema, HERE)
    refuse_null(schema, f"{HERE}, schema")
    schema_id = optional_integer_at(schema, "schema-id", where=f"{HERE}, schema", low=0, high=INT_MAX) or 0
    for key, number in (("schemas", schema_id), ("partition-specs", 0)):
        default = _OF_LISTS[key][1]
        stated_id = optional_integer_at(metadata, default, where=HERE)
        if key not in metadata and stated_id not in (None, number):
            raise BadRequest(
                f"{HERE}: field '{default}' is {stated_id}, and there are no {key}: without them it is {number}"
            )


def check_ids(metadata: Json) -> None:
    """Raise BadRequest if two rows of a list have the same id."""
    for key, (id_key, _) in _OF_LISTS.items():
        seen_ids: set[object] = set()
        for row in rows(metadata, key):
            number = hashable(row.get(id_key))
            if number in seen_ids:
                raise BadRequest(f"{HERE}, {key}: {id_key} {number} is there twice")
            seen_ids.add(number)


def check_counters(metadata: Json, *, columns_of: Callable[[Json], SchemaColumns] = columns) -> None:
    """Raise BadRequest if a counter is below an id that is in use: the next commit would use the id again, and rows
    would have the values of two columns, or partitions or row ids of two.
    """
    for key, highest in counters(metadata, columns_of=columns_of):
        counter = optional_integer_at(metadata, key, where=HERE)
        if counter is not None and counter < highest:
            raise BadRequest(f"{HERE}: {key} {counter} is below {highest}, which is in use")


def counters(metadata: Json, *, columns_of: Callable[[Json], SchemaColumns] = columns) -> Iterator[tuple[str, int]]:
    """Yield each counter of a document with the lowest value that it may have. `columns_of` checks and indexes a
    schema. Raises BadRequest.
    """
    schemas = rows(metadata, "schemas")
    yield "last-column-id", max((columns_of(each).highest_id for each in schemas), default=0)
    fields = [one for spec in rows(metadata, "partition-specs") for one in objects_at(spec, "fields", where=HERE)]
    numbers = (integer_at(one, "field-id", where=f"{HERE}, partition-specs") for one in fields)
    yield "last-partition-id", max(numbers, default=0)
    if metadata.get("format-version") == 3:
        yield "next-row-id", next_row_id(rows(metadata, "snapshots"))


def check_last_change(metadata: Json) -> None:
    """Raise BadRequest if the last change is before the last entry of a log."""
    changed_ms = integer_at(metadata, "last-updated-ms", where=HERE)
    for key in ("snapshot-log", "metadata-log"):
        for entry in rows(metadata, key)[-1:]:
            at_ms = integer_at(entry, "timestamp-ms", where=f"{HERE}, {key}")
            if changed_ms - at_ms < -CLOCK_SKEW_MS:
                raise BadRequest(f"{HERE}: last-updated-ms {changed_ms} is before the last entry of {key}, {at_ms}")
