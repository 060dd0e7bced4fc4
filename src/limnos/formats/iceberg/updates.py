# SPDX-License-Identifier: Apache-2.0
"""Commits: applies a list of updates to a table's metadata. The base document is never changed.

Must not know requirements, files or stores. Source: Iceberg REST specification, schema TableUpdate.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.formats.iceberg import (
    mending,
    update_keys,
    update_orders,
    update_properties,
    update_refs,
    update_schemas,
    update_snapshots,
    update_specs,
    update_statistics,
    update_table,
)
from limnos.formats.iceberg.client_times import AHEAD_MS
from limnos.formats.iceberg.commit_finish import finish
from limnos.formats.iceberg.draft import MetadataDraft, start
from limnos.formats.iceberg.json_types import Json, as_objects, integer_at, preview_value, string_at
from limnos.formats.iceberg.metadata import DEFAULT_VERSION, VERSIONS, VERSIONS_TEXT, rows
from limnos.model.errors import BadRequest

UPDATES_MAX = 20_000
"""The maximum number of updates. Old clients send one for each snapshot that they expire, and this number takes a
fraction of a second.
"""

ACTIONS: dict[str, Callable[[MetadataDraft, Json], None]] = {
    "assign-uuid": update_table.assign_uuid,
    "upgrade-format-version": update_table.upgrade_format_version,
    "set-location": update_table.set_location,
    "add-schema": update_schemas.add_schema,
    "set-current-schema": update_schemas.set_current_schema,
    "remove-schemas": update_schemas.remove_schemas,
    "add-spec": update_specs.add_spec,
    "set-default-spec": update_specs.set_default_spec,
    "remove-partition-specs": update_specs.remove_partition_specs,
    "add-sort-order": update_orders.add_sort_order,
    "set-default-sort-order": update_orders.set_default_sort_order,
    "add-snapshot": update_snapshots.add_snapshot,
    "remove-snapshots": update_snapshots.remove_snapshots,
    "set-snapshot-ref": update_refs.set_snapshot_ref,
    "remove-snapshot-ref": update_refs.remove_snapshot_ref,
    "set-properties": update_properties.set_properties,
    "remove-properties": update_properties.remove_properties,
    "set-statistics": update_statistics.set_statistics,
    "remove-statistics": update_statistics.remove_statistics,
    "set-partition-statistics": update_statistics.set_partition_statistics,
    "remove-partition-statistics": update_statistics.remove_partition_statistics,
    "add-encryption-key": update_keys.add_encryption_key,
    "remove-encryption-key": update_keys.remove_encryption_key,
    mending.MEND: mending.mend_metadata,
}


def apply(
    base: Json | None, updates: list[object], *, now_ms: int, previous_location: str | None, ahead_ms: int = AHEAD_MS
) -> Json:
    """Return the metadata after a commit: `base` itself if nothing has changed, else a new document.

    Neither `base` nor `updates` is changed. The new document shares parts with both, so treat all three as immutable.

    Args:
        base: The metadata before the commit; None for a commit that creates its table, whose updates must then be
            complete.
        updates: The updates of the request.
        now_ms: The time in milliseconds since 1970.
        previous_location: The metadata file of `base`, for the metadata log.
        ahead_ms: The maximum time by which a snapshot's time may be after `now_ms`, in milliseconds.

    Raises:
        CommitConflict: The sequence number or first row id of a snapshot is behind the table's; the client must rebuild
            its commit.
        BadRequest: An update is invalid.
    """
    requested = as_objects(updates, "Field 'updates'")
    if len(requested) > UPDATES_MAX:
        raise BadRequest(f"A commit has at most {UPDATES_MAX} updates, not {len(requested)}: send several commits")
    version = DEFAULT_VERSION if base is not None else _first_version(requested)
    draft = start(base, version=version, now_ms=now_ms, ahead_ms=ahead_ms)
    for update in requested:
        _action(update)(draft, update)
    new = finish(draft, previous_location=previous_location)
    return base if base is not None and new is draft.origin else new


def _action(update: Json) -> Callable[[MetadataDraft, Json], None]:
    name = string_at(update, "action", where="Update")
    result = ACTIONS.get(name)
    if result is None:
        raise BadRequest(f"Unknown update action '{preview_value(name)}' for a table; known are {', '.join(ACTIONS)}")
    return result


def _first_version(updates: list[Json]) -> int:
    """Return the format version of a new table: that of its first upgrade, else the default.

    Raises BadRequest for an unsupported version.
    """
    for update in updates:
        if update.get("action") == "upgrade-format-version":
            version = integer_at(update, "format-version", where="upgrade-format-version")
            if version not in VERSIONS:
                raise BadRequest(f"Unsupported format version: v{preview_value(version)} (supported: {VERSIONS_TEXT})")
            return version
    return DEFAULT_VERSION


def removed_metadata_files(base: Json | None, new: Json) -> list[str]:
    """Return the metadata files in the log of `base` that are not in the log of `new`, oldest first.

    Delete them only after the commit of `new` has succeeded, and only if `metadata.deletes_old_files(new)`.
    """
    if base is None:
        return []
    entries = {entry.get("metadata-file") for entry in rows(new, "metadata-log")}
    removed_files = [entry.get("metadata-file") for entry in rows(base, "metadata-log")]
    return [file for file in removed_files if isinstance(file, str) and file not in entries]
