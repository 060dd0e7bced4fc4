# SPDX-License-Identifier: Apache-2.0
"""Updates of references: set and remove branches and tags; `main` determines the current snapshot.

Must not know other updates.
"""

from __future__ import annotations

from limnos.formats.iceberg.draft import MetadataDraft
from limnos.formats.iceberg.json_types import (
    INT_MAX,
    LONG_MAX,
    Json,
    integer_at,
    optional_integer_at,
    preview_value,
    text_at,
)
from limnos.formats.iceberg.metadata import MAIN, no_snapshot
from limnos.model.errors import BadRequest

_SET = "set-snapshot-ref"
_RETENTION = {"min-snapshots-to-keep": INT_MAX, "max-snapshot-age-ms": LONG_MAX, "max-ref-age-ms": LONG_MAX}
_KNOWN = frozenset(("snapshot-id", "type", *_RETENTION))


def set_snapshot_ref(draft: MetadataDraft, update: Json) -> None:
    """Make a branch or tag point to a snapshot, and set its retention. No-op if nothing changes.

    Setting `main` also makes the snapshot current and adds it to the snapshot log. Raises BadRequest for an unknown
    snapshot or a malformed reference.
    """
    name = text_at(update, "ref-name", where=_SET)
    ref = _reference(name, update)
    current_ref = draft.map("refs").get(name)
    if isinstance(current_ref, dict):
        # Unknown fields of the stored reference are preserved.
        ref = {**{key: value for key, value in current_ref.items() if key not in _KNOWN}, **ref}
        if current_ref == ref:
            return
    snapshot_id = integer_at(ref, "snapshot-id", where=_SET)
    if draft.rows("snapshots").find(snapshot_id) is None:
        raise BadRequest(f"Cannot set {name} to unknown snapshot: {snapshot_id}")
    if snapshot_id in draft.added_snapshots:
        draft.updated_ms = draft.added_snapshots[snapshot_id]
    if name == MAIN:
        _make_current(draft, snapshot_id)
    draft.put_ref(name, ref)


def _reference(name: str, update: Json) -> Json:
    check_reference(name, update, where=_SET)
    ref: Json = {"snapshot-id": integer_at(update, "snapshot-id", where=_SET), "type": update["type"]}
    return ref | {key: update[key] for key in _RETENTION if update.get(key) is not None}


def check_reference(name: str, ref: Json, *, where: str) -> None:
    """Check the type and the retention of a branch or tag. Raises BadRequest."""
    kind = text_at(ref, "type", where=where)
    if kind not in ("branch", "tag"):
        raise BadRequest(f"{where}: type must be branch or tag, not '{preview_value(kind)}'")
    if name == MAIN and kind != "branch":
        raise BadRequest(f"{where}: '{MAIN}' must be a branch, not a tag")
    integer_at(ref, "snapshot-id", where=where)
    retention_keys = [
        key
        for key, high in _RETENTION.items()
        if optional_integer_at(ref, key, where=where, low=1, high=high) is not None
    ]
    if kind == "tag" and retention_keys not in ([], ["max-ref-age-ms"]):
        raise BadRequest(f"{where}: a tag has no snapshot retention; of these fields it takes only max-ref-age-ms")


def _make_current(draft: MetadataDraft, snapshot_id: int) -> None:
    if draft.doc.get("current-snapshot-id") == snapshot_id:
        return  # only the retention of main changes, which is not logged
    draft.doc["current-snapshot-id"] = snapshot_id
    draft.main_ids.append(snapshot_id)
    draft.edit_log("snapshot-log").append({"timestamp-ms": draft.stamp(), "snapshot-id": snapshot_id})


def remove_snapshot_ref(draft: MetadataDraft, update: Json) -> None:
    """Remove a branch or tag. No-op if it is missing. Without `main` the table has no current snapshot."""
    drop_ref(draft, text_at(update, "ref-name", where="remove-snapshot-ref"))


def drop_ref(draft: MetadataDraft, name: str) -> None:
    """Remove a reference by name. No-op if it is missing. Without `main` the table has no current snapshot."""
    if name not in draft.map("refs"):
        return
    draft.put_ref(name, None)
    if name == MAIN:
        draft.doc["current-snapshot-id"] = no_snapshot(draft.version)
