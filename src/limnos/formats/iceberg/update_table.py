# SPDX-License-Identifier: Apache-2.0
"""Updates of the table itself: its uuid, format version and location.

Must not know other updates, except for what an upgrade adds to snapshots.
"""

from __future__ import annotations

from uuid import UUID

from limnos.formats.iceberg.draft import HERE, MetadataDraft
from limnos.formats.iceberg.json_types import Json, integer_at, preview_value, string_at, text_at
from limnos.formats.iceberg.metadata import VERSIONS, VERSIONS_TEXT, no_snapshot, strip_slash
from limnos.formats.iceberg.update_snapshots import in_version_2, next_row_id
from limnos.model.errors import BadRequest


def assign_uuid(draft: MetadataDraft, update: Json) -> None:
    """Set the table's uuid, which never changes afterwards. Raises BadRequest for a malformed uuid, or one that
    differs.
    """
    text = string_at(update, "uuid", where="assign-uuid")
    try:
        UUID(text)
    except ValueError:
        raise BadRequest(f"assign-uuid: '{preview_value(text)}' is not a UUID") from None
    current_uuid = draft.doc.get("table-uuid")
    if current_uuid is None:
        draft.doc["table-uuid"] = text
    elif text.lower() != str(current_uuid).lower():
        raise BadRequest(f"Cannot reassign uuid: the table has {current_uuid}, the update says {text}")


def upgrade_format_version(draft: MetadataDraft, update: Json) -> None:
    """Upgrade the format version. No-op for the current version. Raises BadRequest as `upgrade_to` does."""
    upgrade_to(draft, integer_at(update, "format-version", where="upgrade-format-version"))


def upgrade_to(draft: MetadataDraft, version: int) -> None:
    """Upgrade the document to a format version and add the fields that it requires.

    Raises BadRequest for a lower or unsupported version, and for snapshots that the version cannot have.
    """
    former_version = draft.version
    if version == former_version:
        return
    if version < former_version:
        raise BadRequest(f"Cannot downgrade v{former_version} table to v{version}")
    if version not in VERSIONS:
        raise BadRequest(f"Cannot upgrade table to unsupported format version: v{version} (supported: {VERSIONS_TEXT})")
    draft.doc["format-version"] = version
    if former_version == 1:
        draft.doc.pop("schema", None)
        draft.doc.pop("partition-spec", None)
        draft.doc["last-sequence-number"] = draft.doc.get("last-sequence-number") or 0
        _upgrade_snapshots(draft)
    if version >= 3:
        draft.doc.setdefault("next-row-id", next_row_id(list(draft.rows("snapshots"))))
        if draft.doc.get("current-snapshot-id") == -1:
            draft.doc["current-snapshot-id"] = no_snapshot(version)


def _upgrade_snapshots(draft: MetadataDraft) -> None:
    """Complete the snapshots of a version 1 table. Raises BadRequest as `in_version_2` does."""
    snapshots = draft.rows("snapshots")
    for snapshot in list(snapshots):
        complete = in_version_2(snapshot)
        if complete != snapshot:
            snapshots.replace(integer_at(snapshot, "snapshot-id", where=HERE), complete)


def set_location(draft: MetadataDraft, update: Json) -> None:
    """Set the table's base location, without a trailing slash."""
    draft.doc["location"] = strip_slash(text_at(update, "location", where="set-location"))
