# SPDX-License-Identifier: Apache-2.0
"""Updates of snapshots: add and remove.

Must not know other updates.
"""

from __future__ import annotations

from limnos.formats.iceberg import json_types
from limnos.formats.iceberg.client_times import check_time
from limnos.formats.iceberg.draft import MetadataDraft
from limnos.formats.iceberg.update_refs import drop_ref
from limnos.model.errors import BadRequest, CommitConflict

_SNAPSHOT = "add-snapshot"
_OPERATIONS = ("append", "replace", "overwrite", "delete")
_UNKNOWN_OPERATION = "overwrite"
"""The operation of a snapshot that names none, as Iceberg's Java library reads it."""


def add_snapshot(draft: MetadataDraft, update: json_types.Json) -> None:
    """Add a snapshot to the table. A separate update, `set-snapshot-ref`, makes a branch or tag point to it.

    Raises CommitConflict if its sequence number or first row id is behind the table's: another client has committed, so
    the client must rebuild its commit. Raises BadRequest for errors that a retry cannot fix.
    """
    snapshot = stored_snapshot(json_types.object_at(update, "snapshot", where=_SNAPSHOT), draft.version)
    snapshot_id = json_types.integer_at(snapshot, "snapshot-id", where=_SNAPSHOT, low=0)
    _check_layout(draft)
    check_shape(snapshot, draft.version, where=_SNAPSHOT)
    if draft.rows("snapshots").find(snapshot_id) is not None:
        raise BadRequest(f"Snapshot already exists for id: {snapshot_id}")
    _check_parent(draft, snapshot)
    _take_sequence_number(draft, snapshot)
    if draft.version >= 3:
        _take_row_ids(draft, snapshot)
    draft.add_snapshot(snapshot, _time_of(draft, snapshot))


def _time_of(draft: MetadataDraft, snapshot: json_types.Json) -> int:
    """Return a snapshot's timestamp in milliseconds since 1970. Raises BadRequest if it is in the future."""
    at = json_types.integer_at(snapshot, "timestamp-ms", where=_SNAPSHOT, low=0)
    check_time(at, latest_ms=draft.latest_ms, what="snapshot timestamp")
    return at


def _check_layout(draft: MetadataDraft) -> None:
    for key, what in (("schemas", "schema"), ("partition-specs", "partition spec"), ("sort-orders", "sort order")):
        if not draft.rows(key):
            raise BadRequest(f"Attempting to add a snapshot before a {what} is added; send its updates first")


def stored_snapshot(sent: json_types.Json, version: int) -> json_types.Json:
    """Return a snapshot of a request as a table of a format version stores it: without nulls, with an operation."""
    return with_operation(json_types.without_nulls(sent), version)


def with_operation(snapshot: json_types.Json, version: int) -> json_types.Json:
    """Return a snapshot with the operation in its summary that readers require, `overwrite` if it has none. Version 1
    does not require a summary.
    """
    summary = snapshot.get("summary")
    if summary is None and version == 1:
        return snapshot
    if summary is not None and not (isinstance(summary, dict) and summary.get("operation") is None):
        return snapshot
    return {**snapshot, "summary": {**(summary or {}), "operation": _UNKNOWN_OPERATION}}


def in_version_2(snapshot: json_types.Json) -> json_types.Json:
    """Return a snapshot of version 1 with the fields that version 2 requires. Raises BadRequest if it names its
    manifests itself, instead of a manifest list.
    """
    if snapshot.get("manifest-list") is None:
        raise BadRequest(
            f"Cannot upgrade a v1 table with snapshot {snapshot.get('snapshot-id')}, which names its manifests itself: "
            "later versions need a manifest list. Write a new snapshot, expire that one, then upgrade"
        )
    return with_operation({"sequence-number": 0, **snapshot}, 2)


def check_shape(snapshot: json_types.Json, version: int, *, where: str) -> None:
    """Check the types of a snapshot's fields, except for its numbers and time. Raises BadRequest."""
    json_types.optional_integer_at(snapshot, "parent-snapshot-id", where=where)
    json_types.optional_integer_at(snapshot, "schema-id", where=where)
    if version > 1 or snapshot.get("manifests") is None:
        json_types.text_at(snapshot, "manifest-list", where=where)
    else:
        json_types.strings_at(snapshot, "manifests", where=where)
    if version > 1 and snapshot.get("summary") is None:
        raise BadRequest(f"{where}: field 'summary' is required from format version 2 on")
    if snapshot.get("summary") is not None:
        summary = json_types.string_map_at(snapshot, "summary", where=where)
        operation = json_types.text_at({**summary}, "operation", where=f"{where}, summary")
        if operation not in _OPERATIONS:
            raise BadRequest(
                f"{where}: operation '{json_types.preview_value(operation)}' is none of {', '.join(_OPERATIONS)}"
            )
    json_types.optional_string_at(snapshot, "key-id", where=where)
    for key in ("first-row-id", "added-rows"):
        json_types.optional_integer_at(snapshot, key, where=where, low=0)


def _check_parent(draft: MetadataDraft, snapshot: json_types.Json) -> None:
    """Raise BadRequest if a new snapshot would be among its own ancestors."""
    parent = snapshot.get("parent-snapshot-id")
    if parent is not None and (parent == snapshot["snapshot-id"] or draft.has_child(int(str(snapshot["snapshot-id"])))):
        check_ancestors([*draft.rows("snapshots"), snapshot], where=_SNAPSHOT)


def check_ancestors(snapshots: list[json_types.Json], *, where: str) -> None:
    """Raise BadRequest if a snapshot is among its own ancestors: engines would follow them without an end."""
    parents = {
        json_types.hashable(one.get("snapshot-id")): json_types.hashable(one.get("parent-snapshot-id"))
        for one in snapshots
    }
    seen_ids: set[object] = set()
    for begin in parents:
        path: set[object] = set()
        at: object = begin
        while at in parents and at not in seen_ids:
            seen_ids.add(at)
            path.add(at)
            at = parents[at]
        if at in path:
            raise BadRequest(f"{where}: snapshot {at} is among its own ancestors (parent-snapshot-id)")


def _take_sequence_number(draft: MetadataDraft, snapshot: json_types.Json) -> None:
    if draft.version == 1:
        if json_types.optional_integer_at(snapshot, "sequence-number", where=_SNAPSHOT):
            raise BadRequest("add-snapshot: a v1 table has no sequence numbers; send 0 or none")
        return
    number = json_types.integer_at(snapshot, "sequence-number", where=_SNAPSHOT, low=0)
    last = draft.integer("last-sequence-number")
    if number <= last and snapshot.get("parent-snapshot-id") is not None:
        raise CommitConflict(
            f"Cannot add snapshot with sequence number {number} older than last sequence number {last}: "
            "load the table again and rebuild the commit"
        )
    draft.doc["last-sequence-number"] = max(number, last)


def _take_row_ids(draft: MetadataDraft, snapshot: json_types.Json) -> None:
    first = json_types.optional_integer_at(snapshot, "first-row-id", where=_SNAPSHOT, low=0)
    if first is None:
        raise BadRequest("Cannot add a snapshot: first-row-id is null; v3 tables need it")
    added_rows = json_types.integer_at(snapshot, "added-rows", where=_SNAPSHOT, low=0)
    following = draft.integer("next-row-id")
    if first < following:
        raise CommitConflict(
            f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {following}: "
            "load the table again and rebuild the commit"
        )
    if added_rows > json_types.LONG_MAX - first:
        raise BadRequest(f"Cannot add a snapshot of {added_rows} rows: row ids would exceed {json_types.LONG_MAX}")
    draft.doc["next-row-id"] = first + added_rows  # also after a gap: the next rows must not get the same ids


def next_row_id(snapshots: list[json_types.Json]) -> int:
    """Return the first row id that none of the snapshots has; 0 if none has row ids. Raises BadRequest."""
    ends = [0]
    for row in snapshots:
        first = json_types.optional_integer_at(row, "first-row-id", where="Snapshot")
        if first is not None:
            ends.append(first + (json_types.optional_integer_at(row, "added-rows", where="Snapshot") or 0))
    return max(ends)


def remove_snapshots(draft: MetadataDraft, update: json_types.Json) -> None:
    """Remove snapshots by id, with their statistics and the references to them. Unknown ids are ignored."""
    integers = json_types.integers_at(update, "snapshot-ids", where="remove-snapshots")
    snapshots = draft.rows("snapshots")
    removed_ids = [one for one in integers if snapshots.remove([one])]
    if not removed_ids:
        return
    draft.dropped_snapshots = True
    for key in ("statistics", "partition-statistics"):
        draft.rows(key).remove(removed_ids)
    for name in [name for one in removed_ids for name in draft.refs_to().get(one, ())]:
        drop_ref(draft, name)
