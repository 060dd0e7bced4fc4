# SPDX-License-Identifier: Apache-2.0
"""Reads manifest lists and manifests from their bytes, within limits.

Must not know scan requests. pyiceberg trusts the lengths and counts in a file and decompresses whole blocks, so it
receives files that this module has decompressed within limits.
"""

from __future__ import annotations

import io
from typing import Final, cast

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import InputFile
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
)

from limnos.formats.avro import BadAvro, decompress
from limnos.formats.scans.request import ManifestSummary
from limnos.model.errors import InvalidTable

_VERSION: Final = 3
"""The newest format version, which includes the fields of the older ones."""
FIRST_ROW_ID: Final = 16
REFERENCED: Final = 17
CONTENT_OFFSET: Final = 18
CONTENT_SIZE: Final = 19
"""The positions in a data file's record of fields for which pyiceberg has no names."""


class _MemoryFile:
    """A file in memory, with the interface that pyiceberg expects."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, seekable: bool = True) -> io.BytesIO:  # noqa: FBT001, FBT002 - as the library calls it
        """Return a stream over the bytes."""
        del seekable
        return io.BytesIO(self._data)


def _memory_file(data: bytes) -> InputFile:
    return cast("InputFile", _MemoryFile(decompress(data)))


def damaged_error(what: str, error: Exception) -> InvalidTable:
    """Return the error for an unreadable file of a table."""
    text = str(error) or type(error).__name__
    return InvalidTable(f"{what} of the table cannot be read, so this scan cannot be planned: {text[:300]}")


def list_read(data: bytes) -> list[ManifestFile]:
    """Read a manifest list. Raises InvalidTable for a malformed list."""
    try:
        with AvroFile[ManifestFile](
            _memory_file(data),
            MANIFEST_LIST_FILE_SCHEMAS[_VERSION],
            read_types={-1: ManifestFile, 508: PartitionFieldSummary},
            read_enums={517: ManifestContent},
        ) as reader:
            return list(reader)
    except Exception as error:
        raise damaged_error("A manifest list", error) from error


def manifest_summary(manifest: ManifestFile) -> ManifestSummary:
    """Convert the entry of a manifest in a manifest list: path, kind, counts and inherited values."""
    counts = (manifest.added_files_count, manifest.existing_files_count)
    first = cast("int | None", manifest[15]) if len(manifest) > 15 else None
    return ManifestSummary(
        path=manifest.manifest_path,
        length=manifest.manifest_length,
        spec=manifest.partition_spec_id,
        is_deletes=manifest.content == ManifestContent.DELETES,
        sequence=manifest.sequence_number or 0,
        least_sequence=manifest.min_sequence_number or 0,
        snapshot=manifest.added_snapshot_id or 0,
        files=-1 if None in counts else sum(cast("tuple[int, int]", counts)),
        first_row_id=first,
    )


def entries_read(data: bytes, manifest: ManifestSummary) -> list[ManifestEntry]:
    """Read the live entries of a manifest, with the values that they inherit: sequence number, snapshot, spec, first
    row id.

    Raises InvalidTable for a malformed manifest.
    """
    try:
        with AvroFile[ManifestEntry](
            _memory_file(data),
            MANIFEST_ENTRY_SCHEMAS[_VERSION],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as reader:
            entries = [entry for entry in reader if entry.status != ManifestEntryStatus.DELETED]
        _inherit(entries, manifest)
    except BadAvro as error:
        raise damaged_error(f"Manifest {manifest.path}", error) from error
    except Exception as error:
        raise damaged_error(f"Manifest {manifest.path}", error) from error
    return entries


def _inherit(entries: list[ManifestEntry], manifest: ManifestSummary) -> None:
    row_id = manifest.first_row_id
    for entry in entries:
        file = entry.data_file
        file.spec_id = manifest.spec
        if (file.content == DataFileContent.DATA) is manifest.is_deletes:
            raise ValueError(f"it lists {file.file_path} of the wrong content type")
        if entry.snapshot_id is None:
            entry.snapshot_id = manifest.snapshot
        if entry.sequence_number is None:
            if entry.status != ManifestEntryStatus.ADDED and manifest.sequence:
                raise ValueError(f"it has no sequence number for {file.file_path}")
            entry.sequence_number = manifest.sequence
        if row_id is not None and file[FIRST_ROW_ID] is None:
            file[FIRST_ROW_ID] = row_id
            row_id += file.record_count
