# SPDX-License-Identifier: Apache-2.0
"""Metadata that every client reads: checks of files that are registered, and of documents that older releases stored.

Must not know files or stores. A file that a catalog serves is read by Iceberg's Java library and by PyIceberg, so what
one of them cannot read is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Final, Literal, NamedTuple
from uuid import UUID

from limnos.formats.iceberg import partitioning, registered_counters, sorting
from limnos.formats.iceberg.client_times import check_time
from limnos.formats.iceberg.commit_finish import CLOCK_SKEW_MS
from limnos.formats.iceberg.draft import HERE
from limnos.formats.iceberg.evolution import check_column_names
from limnos.formats.iceberg.json_types import (
    INT_MAX,
    Json,
    hashable,
    integer_at,
    integers_at,
    list_at,
    objects_at,
    optional_integer_at,
    preview_value,
    text_at,
)
from limnos.formats.iceberg.metadata import (
    MAIN,
    VERSIONS,
    VERSIONS_TEXT,
    current_schema,
    current_snapshot_id,
    properties_of,
    property_of,
    references,
    rows,
    with_current_shape,
)
from limnos.formats.iceberg.name_mappings import NAME_MAPPING, check_name_mapping
from limnos.formats.iceberg.schema import SchemaColumns, columns
from limnos.formats.iceberg.stored_schemas import refuse_null, refuse_unreadable
from limnos.formats.iceberg.transforms import check_spelling
from limnos.formats.iceberg.update_keys import FIRST_VERSION_WITH_KEYS, check_key
from limnos.formats.iceberg.update_refs import check_reference
from limnos.formats.iceberg.update_snapshots import check_ancestors, check_shape
from limnos.formats.iceberg.update_statistics import check_file, check_statistics
from limnos.model.errors import BadRequest

_DEFAULTS: Final = (
    ("schemas", "schema-id", "current-schema-id"),
    ("partition-specs", "spec-id", "default-spec-id"),
    ("sort-orders", "order-id", "default-sort-order-id"),
)
"""The lists of a layout, with the keys of their ids and of their defaults."""
_BY_FILE: Final = "register the table again with a corrected copy of its metadata file (overwrite)"
_REPLACEMENTS: Final = {
    "schema": ("current-schema-id", "make it current (add-schema, set-current-schema -1)", "remove-schemas"),
    "spec": ("default-spec-id", "make it the default (add-spec, set-default-spec -1)", "remove-partition-specs"),
}
"""For schemas and specs: the key of the one in use, how another one is put in use, and the update that removes one."""
_CANONICAL_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_ORDER_REMEDY: Final = "add another sort order and make it the default (add-sort-order, set-default-sort-order -1)"


class ReaderProblem(NamedTuple):
    """A reason for which some readers refuse a stored document, and the commit that removes it."""

    reason: str
    remedy: str


class _Part(NamedTuple):
    check: Callable[[], None]
    remedy: str | Callable[[], str] = _BY_FILE
    """How to remove a fault, or the function that tells: nearly all documents have none."""


def check_registrable(metadata: Json, *, latest_ms: int | None = None) -> None:
    """Check that a document is complete table metadata of format version 1 to 3 that can be served and committed to.

    Args:
        metadata: The document.
        latest_ms: The latest allowed time of its last change, in milliseconds since 1970; None for any.

    Raises:
        BadRequest: The document is not valid metadata.
    """
    for part in _parts(metadata):
        part.check()
    if latest_ms is not None:
        _check_times(with_current_shape(metadata), latest_ms)


def find_reader_problems(metadata: Json) -> list[ReaderProblem]:
    """Return the problems of a stored document that `check_registrable` refuses, by part. Releases before this check
    stored such documents.
    """
    problems: dict[str, str] = {}
    try:
        for part in _parts(metadata):
            try:
                part.check()
            except BadRequest as error:
                remedy = part.remedy if isinstance(part.remedy, str) else part.remedy()
                problems.setdefault(error.message, remedy)
    except BadRequest as error:  # a list that has no objects
        problems.setdefault(error.message, _BY_FILE)
    return [ReaderProblem(*problem) for problem in problems.items()]


def _parts(metadata: Json) -> Iterator[_Part]:
    """Yield the parts of a document with their checks. Raises BadRequest for a list that is none."""
    yield _Part(partial(_check_head, metadata))
    yield _Part(partial(registered_counters.check_nulls, metadata))
    yield _Part(partial(registered_counters.check_first_version, metadata))
    if metadata.get("partition-spec") is not None:
        yield _Part(lambda: _check_fields(objects_at(metadata, "partition-spec", where=HERE), "partition-spec"))
    shaped = with_current_shape(metadata)
    yield _Part(
        partial(_check_name_mapping, metadata),
        f"set or remove property '{NAME_MAPPING}' (set-properties, remove-properties)",
    )
    schemas = _CheckedSchemas()
    yield from _layout_parts(shaped, schemas)
    yield from _snapshot_parts(shaped)
    yield from _file_parts(shaped)
    yield _Part(partial(registered_counters.check_ids, shaped))
    yield _Part(partial(registered_counters.check_counters, shaped, columns_of=schemas.columns))
    yield _Part(partial(registered_counters.check_last_change, shaped))


def _check_head(metadata: Json) -> None:
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


def _check_name_mapping(metadata: Json) -> None:
    text = property_of(metadata, NAME_MAPPING)
    if text is not None:
        check_name_mapping(text)


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
    if _CANONICAL_UUID.fullmatch(text):
        return
    try:
        UUID(text)
    except ValueError:
        raise BadRequest(f"{HERE}: table-uuid '{preview_value(text)}' is not a UUID") from None


class _CheckedSchemas:
    """The columns of a document's schemas, which several parts need: a file may have thousands of specs and columns."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Json, SchemaColumns]] = {}
        """By the identity of the schema, which the entry holds."""

    def columns(self, schema: Json) -> SchemaColumns:
        """Check a schema at its first use, and return its columns. Raises BadRequest."""
        cached_columns = self._known.get(id(schema))
        if cached_columns is None:
            cached_columns = self._known[id(schema)] = (schema, columns(schema))
        return cached_columns[1]


def _layout_parts(metadata: Json, schemas: _CheckedSchemas) -> Iterator[_Part]:
    for key, id_key, default in _DEFAULTS:
        yield _Part(partial(_check_default, metadata, key, id_key=id_key, default=default))
    for schema in objects_at(metadata, "schemas", where=HERE):
        yield _Part(partial(_check_schema, schema, schemas), partial(_removal, "schema", schema, metadata=metadata))

    def current() -> SchemaColumns:
        return schemas.columns(current_schema(metadata))

    rename = "rename the column (add-schema with its other name, set-current-schema -1)"
    yield _Part(lambda: check_column_names(current()), rename)
    for spec in objects_at(metadata, "partition-specs", where=HERE):
        removal = partial(_removal, "spec", spec, metadata=metadata)
        yield _Part(partial(_check_spec, spec), removal)
        either = partial(_join_remedies, rename, removal)
        yield _Part(partial(_check_spec_columns, spec, metadata, current=current), either)
    yield _Part(partial(_check_last_partition_id, metadata))
    for order in objects_at(metadata, "sort-orders", where=HERE):
        yield _Part(partial(_check_order, order, metadata, current=current), _ORDER_REMEDY)


def _removal(kind: Literal["schema", "spec"], row: Json, *, metadata: Json) -> str:
    """Return how to remove a schema or a partition spec, which another one replaces first if it is in use."""
    number = row.get(f"{kind}-id")
    chosen, use, removal = _REPLACEMENTS[kind]
    first = f"add a {kind} without the fault and {use}, then " if number == metadata.get(chosen) else ""
    return f"{first}remove {kind} {number} ({removal})"


def _join_remedies(remedy: str, other: Callable[[], str]) -> str:
    return f"{remedy}, or {other()}"


def _check_last_partition_id(metadata: Json) -> None:
    integer_at(metadata, "last-partition-id", where=HERE, low=0, high=INT_MAX)


def _check_schema(schema: Json, schemas: _CheckedSchemas) -> None:
    schemas.columns(schema)
    refuse_unreadable(schema, HERE)


def _check_spec(spec: Json) -> None:
    fields = objects_at(spec, "fields", where=HERE)
    partitioning.highest_field_id(fields)
    _check_fields(fields, "partition-specs")
    names = [text_at(one, "name", where=f"{HERE}, partition-specs") for one in fields]
    for what, values in (("name", names), ("field-id", [one.get("field-id") for one in fields])):
        if len(set(values)) < len(values):
            raise BadRequest(f"{HERE}, partition-specs: two fields of a spec have the same {what}")


def _check_spec_columns(spec: Json, metadata: Json, *, current: Callable[[], SchemaColumns]) -> None:
    fields = objects_at(spec, "fields", where=HERE)
    if not fields:
        return
    partitioning.check_readable(fields, current())
    if spec.get("spec-id") == metadata.get("default-spec-id"):
        partitioning.check_binding([one for one in fields if one.get("source-ids") is None], current())


def _check_order(order: Json, metadata: Json, *, current: Callable[[], SchemaColumns]) -> None:
    fields = objects_at(order, "fields", where=HERE)
    _check_fields(fields, "sort-orders")
    if bool(fields) != bool(order.get("order-id")):
        raise BadRequest(f"{HERE}, sort-orders: order-id 0 is that of the order without fields, and of no other")
    for index, one in enumerate(fields):
        sorting.check_choices(one, where=f"{HERE}, sort-orders, field {index}")
    if fields and order.get("order-id") == metadata.get("default-sort-order-id"):
        sorting.check_binding(fields, current())


def _check_fields(fields: list[Json], what: str) -> None:
    """Check the attributes of partition or sort fields that later commits use.

    A field with an unknown transform may have several source columns.
    """
    where = f"{HERE}, {what}"
    for one in fields:
        check_spelling(text_at(one, "transform", where=where), where=where)
        if one.get("source-ids") is None:
            integer_at(one, "source-id", where=where, low=1, high=INT_MAX)
        else:
            integers_at(one, "source-ids", where=where)
        if what != "sort-orders":
            text_at(one, "name", where=where)
        optional_integer_at(one, "field-id", where=where, low=0, high=INT_MAX)


def _check_default(metadata: Json, key: str, *, id_key: str, default: str) -> None:
    objects = objects_at(metadata, key, where=HERE)
    default_id = integer_at(metadata, default, where=HERE)
    ids = [integer_at(row, id_key, where=f"{HERE}, {key}", low=0, high=INT_MAX) for row in objects]
    if default_id not in ids:
        raise BadRequest(
            f"{HERE}: field '{default}' is {default_id}, which is none of the {key} ({preview_value(ids)})"
        )


def _snapshot_parts(metadata: Json) -> Iterator[_Part]:
    snapshots = rows(metadata, "snapshots")
    snapshot_ids = {hashable(row.get("snapshot-id")) for row in snapshots}
    for row in snapshots:
        number = row.get("snapshot-id")
        remedy = f"remove snapshot {number} (remove-snapshots), after a rollback to another one if it is current"
        yield _Part(partial(_check_snapshot, row, metadata), remedy)
    yield _Part(partial(_check_snapshot_numbers, metadata))
    yield _Part(partial(check_ancestors, snapshots, where=HERE), "remove one of these snapshots (remove-snapshots)")
    yield _Part(partial(_check_current_snapshot, metadata))
    for name, ref in references(metadata).items():
        yield _Part(
            partial(_check_reference, name, ref, known=snapshot_ids), f"remove reference '{name}' (remove-snapshot-ref)"
        )
    yield _Part(partial(_check_logs, metadata))


def _check_snapshot(row: Json, metadata: Json) -> None:
    snapshot_id = integer_at(row, "snapshot-id", where=f"{HERE}, snapshots")
    where = f"{HERE}, snapshot {snapshot_id}"
    refuse_null(row, where)
    version = integer_at(metadata, "format-version", where=HERE)
    check_shape(row, version, where=where)
    optional_integer_at(row, "schema-id", where=where, low=0, high=INT_MAX)
    integer_at(row, "timestamp-ms", where=where, low=0)
    if version > 1:
        integer_at(row, "sequence-number", where=where, low=0)
    elif optional_integer_at(row, "sequence-number", where=where):
        raise BadRequest(f"{where}: format version 1 has no sequence numbers")
    if version > 2 and row.get("first-row-id") is not None:
        integer_at(row, "added-rows", where=where, low=0)


def _check_snapshot_numbers(metadata: Json) -> None:
    snapshot_ids: set[object] = set()
    for row in rows(metadata, "snapshots"):
        snapshot_id = hashable(row.get("snapshot-id"))
        if snapshot_id in snapshot_ids:
            raise BadRequest(f"{HERE}, snapshot {snapshot_id}: it is there twice")
        snapshot_ids.add(snapshot_id)
    if metadata.get("format-version") == 1:
        return
    last = integer_at(metadata, "last-sequence-number", where=HERE, low=0)
    highest = highest_sequence_number(metadata)
    if highest > last:
        raise BadRequest(f"{HERE}: last-sequence-number {last} is below sequence number {highest} of a snapshot")


def highest_sequence_number(metadata: Json) -> int:
    """Return the highest sequence number of a document's snapshots; 0 without any. Raises BadRequest."""
    numbers = (optional_integer_at(row, "sequence-number", where=HERE) or 0 for row in rows(metadata, "snapshots"))
    return max(numbers, default=0)


def _check_current_snapshot(metadata: Json) -> None:
    optional_integer_at(metadata, "current-snapshot-id", where=HERE, low=-1)
    current = current_snapshot_id(metadata)
    if current is not None and current not in [row.get("snapshot-id") for row in rows(metadata, "snapshots")]:
        raise BadRequest(f"{HERE}: current snapshot {current} is not one of the snapshots")
    main = references(metadata).get(MAIN, {"snapshot-id": current}).get("snapshot-id")
    if main != current:
        raise BadRequest(f"{HERE}: the current snapshot {current} is not that of branch main ({main})")


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


def _file_parts(metadata: Json) -> Iterator[_Part]:
    for entry in rows(metadata, "statistics"):
        remedy = f"remove the statistics of snapshot {entry.get('snapshot-id')} (remove-statistics)"
        yield _Part(partial(_check_statistics, entry), remedy)
    for entry in rows(metadata, "partition-statistics"):
        remedy = f"remove the partition statistics of snapshot {entry.get('snapshot-id')} (remove-partition-statistics)"
        yield _Part(partial(_check_entry, entry, check_file, key="partition-statistics"), remedy)
    for entry in rows(metadata, "encryption-keys"):
        remedy = f"remove encryption key {entry.get('key-id')} (remove-encryption-key) if no file needs it"
        yield _Part(partial(_check_entry, entry, check_key, key="encryption-keys"), remedy)
    upgrade = "upgrade the table to version 3 (upgrade-format-version), or remove the keys (remove-encryption-key)"
    yield _Part(partial(_check_version_of_keys, metadata), upgrade)


def _check_version_of_keys(metadata: Json) -> None:
    version = integer_at(metadata, "format-version", where=HERE)
    if version < FIRST_VERSION_WITH_KEYS and rows(metadata, "encryption-keys"):
        raise BadRequest(f"{HERE}: a v{version} table has no encryption keys, which version 3 introduced")


def _check_statistics(entry: Json) -> None:
    where = f"{HERE}, statistics"
    check_statistics(entry, where=where)
    for one in (entry, *objects_at(entry, "blob-metadata", where=where)):
        refuse_null(one, where)


def _check_entry(entry: Json, check: Callable[..., None], *, key: str) -> None:
    check(entry, where=f"{HERE}, {key}")
    refuse_null(entry, f"{HERE}, {key}")


def _check_reference(name: str, ref: Json, *, known: set[object]) -> None:
    snapshot_id = integer_at(ref, "snapshot-id", where=f"{HERE}, reference '{name}'")
    if snapshot_id not in known:
        raise BadRequest(f"{HERE}: reference '{name}' points to a missing snapshot")
    check_reference(name, ref, where=f"{HERE}, reference '{name}'")
