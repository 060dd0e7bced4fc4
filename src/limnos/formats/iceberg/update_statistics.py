# SPDX-License-Identifier: Apache-2.0
"""Updates of statistics files and partition statistics files: one of each per snapshot.

Must not know other updates.
"""

from __future__ import annotations

from limnos.formats.iceberg.draft import MetadataDraft
from limnos.formats.iceberg.json_types import (
    INT_MAX,
    Json,
    as_integer,
    integer_at,
    integers_at,
    object_at,
    objects_at,
    optional_string_at,
    string_map_at,
    text_at,
    without_nulls,
)

_TABLE = "statistics"
_PARTITION = "partition-statistics"


def set_statistics(draft: MetadataDraft, update: Json) -> None:
    """Set the statistics file of a snapshot, replacing an existing entry for the snapshot."""
    where = "set-statistics"
    entry = without_nulls(object_at(update, "statistics", where=where))
    check_statistics(entry, where=where)
    blobs = [without_nulls(blob) for blob in objects_at(entry, "blob-metadata", where=where)]
    _replace(draft, _TABLE, {**entry, "blob-metadata": blobs})


def set_partition_statistics(draft: MetadataDraft, update: Json) -> None:
    """Set the partition statistics file of a snapshot, replacing an existing entry for the snapshot."""
    where = "set-partition-statistics"
    entry = without_nulls(object_at(update, "partition-statistics", where=where))
    check_file(entry, where=where)
    _replace(draft, _PARTITION, entry)


def remove_statistics(draft: MetadataDraft, update: Json) -> None:
    """Remove the statistics file of a snapshot from the metadata. No-op if it is missing."""
    draft.rows(_TABLE).remove([integer_at(update, "snapshot-id", where="remove-statistics")])


def remove_partition_statistics(draft: MetadataDraft, update: Json) -> None:
    """Remove the partition statistics file of a snapshot from the metadata. No-op if it is missing."""
    draft.rows(_PARTITION).remove([integer_at(update, "snapshot-id", where="remove-partition-statistics")])


def check_statistics(entry: Json, *, where: str) -> None:
    """Check the fields of a statistics file and of its blobs. Raises BadRequest."""
    check_file(entry, where=where)
    integer_at(entry, "file-footer-size-in-bytes", where=where, low=0)
    optional_string_at(entry, "key-metadata", where=where)
    inside = f"{where}, blob-metadata"
    for blob in objects_at(entry, "blob-metadata", where=where):
        text_at(blob, "type", where=inside)
        integer_at(blob, "snapshot-id", where=inside)
        integer_at(blob, "sequence-number", where=inside)
        for field_id in integers_at(blob, "fields", where=inside):
            as_integer(field_id, f"{inside}: field 'fields'", low=-INT_MAX - 1, high=INT_MAX)
        if blob.get("properties") is not None:
            string_map_at(blob, "properties", where=inside)


def check_file(entry: Json, *, where: str) -> None:
    """Check the fields that files of statistics and of partition statistics have. Raises BadRequest."""
    integer_at(entry, "snapshot-id", where=where)
    text_at(entry, "statistics-path", where=where)
    integer_at(entry, "file-size-in-bytes", where=where, low=0)


def _replace(draft: MetadataDraft, key: str, entry: Json) -> None:
    if not draft.rows(key).replace(integer_at(entry, "snapshot-id", where=key), entry):
        draft.rows(key).append(entry)
