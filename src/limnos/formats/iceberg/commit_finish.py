# SPDX-License-Identifier: Apache-2.0
"""The last step of a commit: corrects the logs, checks the whole document, and sets its time.

Must not know single updates.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from limnos.formats.iceberg import partitioning, sorting
from limnos.formats.iceberg.draft import HERE, MetadataDraft
from limnos.formats.iceberg.encoded_rows import put_encoded_lists
from limnos.formats.iceberg.evolution import SchemaHistory, check_column_names, check_evolution
from limnos.formats.iceberg.json_types import Json, hashable, integer_at
from limnos.formats.iceberg.metadata import (
    MAIN,
    current_schema,
    current_snapshot_id,
    previous_versions_max,
    references,
    rows,
)
from limnos.formats.iceberg.schema import SchemaColumns, columns
from limnos.formats.iceberg.stored_schemas import refuse_unreadable
from limnos.model.errors import BadRequest

CLOCK_SKEW_MS = 60_000
"""The maximum time by which a new timestamp may lie before the table's last snapshot, in milliseconds. Iceberg's Java
readers enforce it.
"""

_LAYOUT = ("schemas", "current-schema-id", "partition-specs", "default-spec-id", "sort-orders", "default-sort-order-id")


def finish(draft: MetadataDraft, *, previous_location: str | None) -> Json:
    """Return the finished document: `draft.origin` itself if the updates have changed nothing.

    Raises BadRequest if the document is invalid: a new table is incomplete, the default spec or order does not fit the
    current schema, or a snapshot's timestamp is more than a minute before that of the last snapshot.
    """
    _correct_snapshot_log(draft)
    _settle_schemas_of_snapshots(draft)
    draft.settle()
    if draft.origin is not None and not draft.is_reworded and draft.doc == draft.origin:
        return draft.origin
    is_new_layout = draft.origin is None or _has_new_layout(draft.doc, draft.origin)
    _check_complete(draft, has_layout=not is_new_layout)
    if is_new_layout:
        _settle_layout(draft)
    _correct_future(draft)
    before_ms = 0 if draft.origin is None else draft.plausible(integer_at(draft.origin, "last-updated-ms", where=HERE))
    _settle_times(draft, before_ms)
    if draft.origin is not None and previous_location is not None:
        _log_metadata(draft, previous_location, before_ms)
    if draft.origin is not None:
        put_encoded_lists(draft.doc, draft.origin, grown=draft.grown_lists())
    return draft.doc


def _has_new_layout(doc: Json, origin: Json) -> bool:
    return True in [doc.get(key) is not origin.get(key) for key in _LAYOUT]


def _correct_snapshot_log(draft: MetadataDraft) -> None:
    """Correct the snapshot log for time travel.

    Snapshots that this request added, made current and replaced were never visible: their entries are removed. An entry
    whose snapshot was removed is removed with all entries before it. Otherwise the previous snapshot would seem to have
    been current for longer.
    """
    current = current_snapshot_id(draft.doc)
    added_ids = draft.added_snapshots
    between = {one for one in draft.main_ids if one in added_ids and one != current} if draft.main_ids else set()
    if not between and not draft.dropped_snapshots:
        return
    snapshot_ids = {row.get("snapshot-id") for row in draft.rows("snapshots")}
    entries: list[Json] = []
    for entry in draft.log("snapshot-log"):
        if entry.get("snapshot-id") in between:
            continue
        if entry.get("snapshot-id") in snapshot_ids:
            entries.append(entry)
        elif draft.dropped_snapshots:
            entries.clear()
    if len(entries) < len(draft.log("snapshot-log")):
        draft.put_log("snapshot-log", entries)


def _check_complete(draft: MetadataDraft, *, has_layout: bool) -> None:
    """Raise BadRequest if the document lacks a required field.

    With `has_layout`, schemas, partition specs and sort orders are unchanged and not checked.
    """
    missing = []
    if draft.doc.get("table-uuid") is None and (draft.version > 1 or draft.origin is None):
        missing.append("assign-uuid")
    if draft.doc.get("location") is None:
        missing.append("set-location")
    for key, update in (("schemas", "add-schema"), ("partition-specs", "add-spec"), ("sort-orders", "add-sort-order")):
        if not has_layout and not rows(draft.doc, key):
            missing.append(update)
    if missing:
        raise BadRequest(f"The table's metadata is not complete: the commit also needs {', '.join(missing)}")


def _settle_layout(draft: MetadataDraft) -> None:
    schema = _default_row(draft, "schemas", "current-schema-id")
    spec = _default_row(draft, "partition-specs", "default-spec-id")
    order = _default_row(draft, "sort-orders", "default-sort-order-id")
    schema_columns = draft.columns_of(schema)
    fields = partitioning.stored_fields(spec)
    _check_new_schema(draft, schema_columns)
    _check_added_rows(draft, schema_columns)
    partitioning.check_binding(fields, schema_columns)
    for each in draft.rows("partition-specs"):
        partitioning.check_readable(partitioning.stored_fields(each), schema_columns)
    sorting.check_binding(sorting.stored_fields(order), schema_columns)
    if draft.version == 1:
        # Readers of version 1 may know only these two fields.
        draft.doc["schema"] = schema
        draft.doc["partition-spec"] = fields


def _check_new_schema(draft: MetadataDraft, after: SchemaColumns) -> None:
    """Check a new current schema: its names, and that rows which remain from the former one can be read with it. Raises
    BadRequest.
    """
    if draft.origin is None:
        check_column_names(after)
        return
    if draft.origin.get("current-schema-id") == draft.doc.get("current-schema-id"):
        return
    former: Json = {}
    former_schema = None
    try:
        former = current_schema(draft.origin)
        former_schema = columns(former)
    except BadRequest:
        pass  # from a release that stored what readers refuse: this commit mends the table
    check_column_names(after, former)
    if former_schema is None:
        return
    branch = _branch_with_rows(draft)
    if branch is None:
        return
    check_evolution(former_schema, after, history=_history(draft, branch))


def _history(draft: MetadataDraft, branch: str) -> SchemaHistory:
    """Return the schemas from before this request, and all partition fields, for the rows of a branch."""
    origin = draft.origin
    return SchemaHistory(
        version=draft.version,
        last_column_id=0 if origin is None else integer_at(origin, "last-column-id", where=HERE),
        schemas=[] if origin is None else rows(origin, "schemas"),
        partition_fields=[one for spec in draft.rows("partition-specs") for one in partitioning.stored_fields(spec)],
        branch=branch,
    )


def _branch_with_rows(draft: MetadataDraft) -> str | None:
    """Return the name of a branch with rows from before this request, `main` if it has some; None without any.

    Engines read branches with the table's current schema, and a tag with that of its snapshot.
    """
    for name, lineage in _lineages(draft):
        if lineage and (lineage[-1] is None or lineage[-1].get("snapshot-id") not in draft.added_snapshots):
            return name
    return None


def _lineages(draft: MetadataDraft) -> Iterator[tuple[str, list[Json | None]]]:
    """Yield each branch, `main` first, with its snapshot and the ancestors of that.

    They end with the first one from before this request, which is None if it has expired, or before one of an earlier
    branch, so that many branches cost no more steps than there are snapshots. Empty for a snapshot without rows. A
    snapshot without a parent replaces all rows.
    """
    branches = {name: ref for name, ref in references(draft.doc).items() if ref.get("type") == "branch"}
    snapshots, seen_ids = draft.rows("snapshots"), set[object]()
    for name in sorted(branches, key=lambda each: each != MAIN):
        snapshot = snapshots.find(integer_at(branches[name], "snapshot-id", where=f"{HERE}, reference '{name}'"))
        lineage: list[Json | None] = []
        summary = {} if snapshot is None else snapshot.get("summary")
        is_empty = snapshot is None or (isinstance(summary, dict) and summary.get("total-records") == "0")
        while not is_empty:
            snapshot_id = None if snapshot is None else hashable(snapshot.get("snapshot-id"))
            if snapshot_id in seen_ids:
                break
            lineage.append(snapshot)
            if snapshot is None or snapshot_id not in draft.added_snapshots:
                break
            seen_ids.add(snapshot_id)
            parent_id = snapshot.get("parent-snapshot-id")
            if not isinstance(parent_id, int):
                break
            snapshot = snapshots.find(parent_id)
        yield name, lineage


def _check_added_rows(draft: MetadataDraft, after: SchemaColumns) -> None:
    """Check that rows which this request adds with another schema can be read with the current one, as those of a
    transaction that appends rows and then changes the type of a column. Raises BadRequest.
    """
    current_id = draft.doc.get("current-schema-id")
    others = {
        each: schema_id
        for each, schema_id in draft.schemas_of_snapshots.items()
        if isinstance(schema_id, int) and schema_id != current_id
    }
    checked_ids: set[int] = set()
    for branch, lineage in _lineages(draft) if others else ():
        for snapshot in lineage:
            schema_id = None if snapshot is None else others.get(integer_at(snapshot, "snapshot-id", where=HERE))
            if schema_id is None or schema_id in checked_ids:
                continue
            checked_ids.add(schema_id)
            former_schema = draft.rows("schemas").find(schema_id)
            if former_schema is not None:
                check_evolution(draft.columns_of(former_schema), after, history=_history(draft, branch))


def _settle_schemas_of_snapshots(draft: MetadataDraft) -> None:
    """Check that the schemas of snapshots exist, without which engines cannot read the table as of a snapshot.

    Raises BadRequest if this request adds a snapshot with an unknown schema, or removes the schema of a snapshot. A
    schema that readers refuse may go: its snapshots then have none, and are read with the current schema.
    """
    if not draft.schemas_of_snapshots and not draft.removed_schemas:
        return
    schema_ids = {row.get("schema-id") for row in draft.rows("schemas")}
    for snapshot_id, schema_id in draft.schemas_of_snapshots.items():
        if schema_id not in schema_ids and schema_id not in draft.removed_schemas:
            raise BadRequest(f"Snapshot {snapshot_id} has schema {schema_id}, which the table does not have")
    snapshots = draft.rows("snapshots")
    for row in list(snapshots) if draft.removed_schemas else ():
        removed_id = hashable(row.get("schema-id"))
        if removed_id in schema_ids or removed_id not in draft.removed_schemas:
            continue
        snapshot_id = integer_at(row, "snapshot-id", where=HERE)
        if _is_readable(draft, removed_id):
            raise BadRequest(
                f"Cannot remove schema {removed_id}: snapshot {snapshot_id} has it; remove the snapshot first"
            )
        snapshots.replace(snapshot_id, {key: value for key, value in row.items() if key != "schema-id"})


def _is_readable(draft: MetadataDraft, schema_id: object) -> bool:
    """Return whether readers accept a schema that the table had before this request."""
    try:
        for row in rows(draft.origin or {}, "schemas"):
            if row.get("schema-id") == schema_id:
                columns(row)
                refuse_unreadable(row, HERE)
    except BadRequest:
        return False
    return True


def _default_row(draft: MetadataDraft, key: str, default: str) -> Json:
    integer = draft.integer(default)
    fields = draft.rows(key).find(integer)
    if fields is None:
        raise BadRequest(
            f"{HERE}: field '{default}' is {integer}, which is none of the {key}; set it to an existing one"
        )
    return fields


def _correct_future(draft: MetadataDraft) -> None:
    """Replace future timestamps in the snapshot log and the metadata log by the current time.

    An older release accepted such timestamps from clients whose clock was ahead. Iceberg's Java library refuses every
    commit to the table until that time.
    """
    latest_ms = draft.now_ms + draft.ahead_ms
    for key in ("snapshot-log", "metadata-log"):
        log = draft.log(key)
        tail = log[-len(draft.main_ids) - 1 :]  # sorted, except for entries that this request added
        if tail and max([integer_at(entry, "timestamp-ms", where=HERE) for entry in tail]) > latest_ms:
            at = [draft.plausible(integer_at(entry, "timestamp-ms", where=HERE)) for entry in log]
            draft.put_log(key, [{**entry, "timestamp-ms": time} for entry, time in zip(log, at, strict=True)])


def _settle_times(draft: MetadataDraft, before_ms: int) -> None:
    """Set `last-updated-ms` to the server's time, but not before its previous value `before_ms`.

    Readers require that timestamps of successive snapshots do not decrease by more than the clock skew, and that none
    is after `last-updated-ms`. Raises BadRequest otherwise.
    """
    draft.doc["last-updated-ms"] = max(draft.now_ms, before_ms)
    now = draft.stamp()
    if not draft.added_snapshots:
        return
    log = draft.log("snapshot-log")
    tail = [integer_at(entry, "timestamp-ms", where=HERE) for entry in log[-len(draft.main_ids) - 1 :]]
    for earlier, later in pairwise([*tail, now]):
        if later - earlier < -CLOCK_SKEW_MS:
            raise BadRequest(
                f"Invalid snapshot timestamp {later}: before the last snapshot at {earlier}; check the clock"
            )


def _log_metadata(draft: MetadataDraft, previous_location: str, before_ms: int) -> None:
    room = previous_versions_max(draft.doc) - 1
    log = draft.log("metadata-log")
    entry: Json = {"timestamp-ms": before_ms, "metadata-file": previous_location}
    draft.put_log("metadata-log", [*(log[-room:] if room else []), entry])
