"""Updates of statistics files and partition statistics files: one of each per snapshot.

May import the standard library, `limnos.model.errors` and this package. Must not know other updates.
"""

from __future__ import annotations

from limnos.formats.iceberg.draft import MetadataDraft
from limnos.formats.iceberg.json_types import Json, integer_at, object_at, objects_at, text_at

_TABLE = "statistics"
_PARTITION = "partition-statistics"


def set_statistics(draft: MetadataDraft, update: Json) -> None:
    """Set the statistics file of a snapshot, replacing an existing entry for the snapshot."""
    where = "set-statistics"
    entry = object_at(update, "statistics", where=where)
    integer_at(entry, "file-footer-size-in-bytes", where=where, low=0)
    objects_at(entry, "blob-metadata", where=where)
    _replace(draft, _TABLE, entry, where=where)


def set_partition_statistics(draft: MetadataDraft, update: Json) -> None:
    """Set the partition statistics file of a snapshot, replacing an existing entry for the snapshot."""
    where = "set-partition-statistics"
    _replace(draft, _PARTITION, object_at(update, "partition-statistics", where=where), where=where)


def remove_statistics(draft: MetadataDraft, update: Json) -> None:
    """Remove the statistics file of a snapshot from the metadata. No-op if it is missing."""
    draft.rows(_TABLE).remove([integer_at(update, "snapshot-id", where="remove-statistics")])


def remove_partition_statistics(draft: MetadataDraft, update: Json) -> None:
    """Remove the partition statistics file of a snapshot from the metadata. No-op if it is missing."""
    draft.rows(_PARTITION).remove([integer_at(update, "snapshot-id", where="remove-partition-statistics")])


def _replace(draft: MetadataDraft, key: str, entry: Json, *, where: str) -> None:
    snapshot_id = integer_at(entry, "snapshot-id", where=where)
    text_at(entry, "statistics-path", where=where)
    integer_at(entry, "file-size-in-bytes", where=where, low=0)
    if not draft.rows(key).replace(snapshot_id, entry):
        draft.rows(key).append(entry)
