"""Metadata files that are registered: complete, valid, and readable by every client.

May import the standard library, `limnos.model.errors` and this package. Must not know files or stores. A file that a
catalog serves is read by Iceberg's Java library and by PyIceberg, so what one of them cannot read is refused.
"""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

from limnos.formats.iceberg import partitioning
from limnos.formats.iceberg.client_times import check_time
from limnos.formats.iceberg.commit_finish import CLOCK_SKEW_MS
from limnos.formats.iceberg.draft import HERE
from limnos.formats.iceberg.json_types import (
    INT_MAX,
    Json,
    integer_at,
    integers_at,
    list_at,
    objects_at,
    optional_integer_at,
    optional_string_at,
    preview_value,
    string_at,
    text_at,
)
from limnos.formats.iceberg.metadata import (
    MAIN,
    VERSIONS,
    VERSIONS_TEXT,
    current_schema,
    current_snapshot_id,
    properties_of,
    references,
    rows,
    with_current_shape,
)
from limnos.formats.iceberg.schema import columns
from limnos.formats.iceberg.stored_schemas import refuse_null, refuse_null_defaults
from limnos.formats.iceberg.update_keys import check_key
from limnos.formats.iceberg.update_snapshots import check_shape
from limnos.formats.iceberg.update_statistics import check_file, check_statistics
from limnos.model.errors import BadRequest


def check_registrable(metadata: Json, *, latest_ms: int | None = None) -> None:
    """Check that a document is complete table metadata of format version 1 to 3 that can be served and committed to.

    Args:
        metadata: The document.
        latest_ms: The latest allowed time of its last change, in milliseconds since 1970; None for any.

    Raises:
        BadRequest: The document is not valid metadata.
    """
    if "view-uuid" in metadata:
        raise BadRequest("This is the metadata of a view; register it as a view")
    version = integer_at(metadata, "format-version", where=HERE)
    if version not in VERSIONS:
        raise BadRequest(
            f"{HERE}: format-version {preview_value(version)} is not supported (supported: {VERSIONS_TEXT})"
        )
    text_at(metadata, "location", where=HERE)
    integer_at(metadata, "last-updated-ms", where=HERE, low=0)
    integer_at(metadata, "last-column-id", where=HERE, low=0, high=INT_MAX)
    if version > 1 or metadata.get("table-uuid") is not None:
        _check_uuid(text_at(metadata, "table-uuid", where=HERE))
    if version > 1:
        integer_at(metadata, "last-sequence-number", where=HERE, low=0)
        list_at(metadata, "schemas", where=HERE)
    if version > 2:
        integer_at(metadata, "next-row-id", where=HERE, low=0)
    properties_of(metadata)
    shaped = with_current_shape(metadata)
    _check_layout(shaped)
    _check_snapshots(shaped, version)
    _check_files_and_keys(shaped)
    if latest_ms is not None:
        _check_times(shaped, latest_ms)


def _check_times(metadata: Json, latest_ms: int) -> None:
    """Raise BadRequest if a timestamp is later than `latest_ms`: logs are ordered by time, so later commits would be
    invalid.
    """
    times = [integer_at(metadata, "last-updated-ms", where=HERE)]
    for key in ("snapshot-log", "metadata-log"):
        times += [integer_at(entry, "timestamp-ms", where=HERE) for entry in rows(metadata, key)[-1:]]
    check_time(
        max(times),
        latest_ms=latest_ms,
        what="time of the last change",
        next_step="register the table after that time, or commit to it with a correct clock in its present catalog",
    )


def _check_uuid(text: str) -> None:
    try:
        UUID(text)
    except ValueError:
        raise BadRequest(f"{HERE}: table-uuid '{preview_value(text)}' is not a UUID") from None


def _check_layout(metadata: Json) -> None:
    for schema in _check_default(metadata, "schemas", id_key="schema-id", default="current-schema-id"):
        columns(schema)
        refuse_null_defaults(schema, HERE)
    current = columns(current_schema(metadata))
    for spec in _check_default(metadata, "partition-specs", id_key="spec-id", default="default-spec-id"):
        fields = objects_at(spec, "fields", where=HERE)
        partitioning.highest_field_id(fields)
        _check_fields(fields, "partition-specs")
        partitioning.check_readable(fields, current)
    integer_at(metadata, "last-partition-id", where=HERE, low=0, high=INT_MAX)
    for order in _check_default(metadata, "sort-orders", id_key="order-id", default="default-sort-order-id"):
        _check_fields(objects_at(order, "fields", where=HERE), "sort-orders")


def _check_fields(fields: list[Json], what: str) -> None:
    """Check the attributes of partition or sort fields that later commits use.

    A field with an unknown transform may have several source columns.
    """
    where = f"{HERE}, {what}"
    for one in fields:
        string_at(one, "transform", where=where)
        if one.get("source-ids") is None:
            integer_at(one, "source-id", where=where, low=0, high=INT_MAX)
        else:
            integers_at(one, "source-ids", where=where)
        for key in ("name", "direction", "null-order"):
            optional_string_at(one, key, where=where)


def _check_default(metadata: Json, key: str, *, id_key: str, default: str) -> list[Json]:
    objects = objects_at(metadata, key, where=HERE)
    chosen = integer_at(metadata, default, where=HERE)
    ids = [integer_at(row, id_key, where=f"{HERE}, {key}", low=0, high=INT_MAX) for row in objects]
    if chosen not in ids:
        raise BadRequest(f"{HERE}: field '{default}' is {chosen}, which is none of the {key} ({preview_value(ids)})")
    return objects


def _check_snapshots(metadata: Json, version: int) -> None:
    snapshots = rows(metadata, "snapshots")
    known: set[int] = set()
    for row in snapshots:
        snapshot_id = integer_at(row, "snapshot-id", where=f"{HERE}, snapshots")
        where = f"{HERE}, snapshot {snapshot_id}"
        refuse_null(row, where)
        check_shape(row, version, where=where)
        if snapshot_id in known:
            raise BadRequest(f"{where}: it is there twice")
        known.add(snapshot_id)
    if version > 1:
        last = integer_at(metadata, "last-sequence-number", where=HERE, low=0)
        highest = max((optional_integer_at(row, "sequence-number", where=HERE) or 0 for row in snapshots), default=0)
        if highest > last:
            raise BadRequest(f"{HERE}: last-sequence-number {last} is below sequence number {highest} of a snapshot")
    current = current_snapshot_id(metadata)
    if current is not None and current not in known:
        raise BadRequest(f"{HERE}: current snapshot {current} is not one of the snapshots")
    refs = references(metadata)
    for name, ref in refs.items():
        if integer_at(ref, "snapshot-id", where=f"{HERE}, reference '{name}'") not in known:
            raise BadRequest(f"{HERE}: reference '{name}' points to a missing snapshot")
        _check_reference(name, ref)
    if MAIN in refs and refs[MAIN]["snapshot-id"] != current:
        main = refs[MAIN]["snapshot-id"]
        raise BadRequest(f"{HERE}: the current snapshot {current} is not that of branch main ({main})")
    _check_logs(metadata)


def _check_logs(metadata: Json) -> None:
    for entry in rows(metadata, "snapshot-log"):
        integer_at(entry, "timestamp-ms", where=f"{HERE}, snapshot-log")
        integer_at(entry, "snapshot-id", where=f"{HERE}, snapshot-log")
    for entry in rows(metadata, "metadata-log"):
        integer_at(entry, "timestamp-ms", where=f"{HERE}, metadata-log")
        text_at(entry, "metadata-file", where=f"{HERE}, metadata-log")
    for key in ("snapshot-log", "metadata-log"):
        times_ms = [integer_at(entry, "timestamp-ms", where=HERE) for entry in rows(metadata, key)]
        for earlier, later in pairwise(times_ms):
            if later - earlier < -CLOCK_SKEW_MS:
                raise BadRequest(f"{HERE}: {key} is not sorted by time: {later} comes after {earlier}")


def _check_files_and_keys(metadata: Json) -> None:
    for entry in rows(metadata, "statistics"):
        where = f"{HERE}, statistics"
        check_statistics(entry, where=where)
        for one in (entry, *objects_at(entry, "blob-metadata", where=where)):
            refuse_null(one, where)
    for entry in rows(metadata, "partition-statistics"):
        check_file(entry, where=f"{HERE}, partition-statistics")
        refuse_null(entry, f"{HERE}, partition-statistics")
    for entry in rows(metadata, "encryption-keys"):
        check_key(entry, where=f"{HERE}, encryption-keys")
        refuse_null(entry, f"{HERE}, encryption-keys")


def _check_reference(name: str, ref: Json) -> None:
    expected = ("branch",) if name == MAIN else ("branch", "tag")
    if ref.get("type") not in expected:
        raise BadRequest(f"{HERE}: reference '{name}' must be a {' or '.join(expected)}")
