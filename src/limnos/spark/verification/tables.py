# SPDX-License-Identifier: Apache-2.0
"""Verification of an Iceberg table or view: its metadata file, manifest list, manifests, data files, delete files and
statistics files.

Must not know Spark. What is read of a table is bounded: metadata may be hostile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow.parquet

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.file_lists import (
    ListedFile,
    ListedManifest,
    ManifestFile,
    SnapshotFiles,
    manifest_files,
    read_manifest_list,
    snapshots_of,
    statistics_of,
)
from limnos.model.errors import BadRequest, InvalidTable, LimnosError, MissingFile, OutsideRoots, TooLarge
from limnos.spark.verification.findings import ERROR, NOT_CHECKED, NOTE, WARNING, StorageFinding, in_parts
from limnos.spark.verification.storage import DIRECTORY, MISSING, OUTSIDE, FileState, TableStorage, location_key

if TYPE_CHECKING:
    from limnos.client.values import Json

METADATA_BYTES_MAX: Final = 256 << 20
MANIFEST_BYTES_MAX: Final = 64 << 20
MANIFESTS_MAX: Final = 100_000
FILES_MAX: Final = 2_000_000
"""The maximum numbers of manifests and of files of one table that are looked at."""
FINDINGS_MAX: Final = 10_000
"""The maximum number of findings of one object."""
_FILES_AT_A_TIME: Final = 500
_THRIFT_MAX: Final = 10_000_000
_FIELDS: Final = (
    ("format-version", "format version"),
    ("current-snapshot-id", "current snapshot"),
    ("current-version-id", "current version"),
    ("last-sequence-number", "last sequence number"),
)
"""Fields of metadata that the store and the file have in common, after the uuid, the location and the time."""


class MetadataCheck:
    """The check of one table or view against its metadata in the store. Findings are collected; names of current files
    are yielded.
    """

    def __init__(self, storage: TableStorage, metadata: Json, *, metadata_location: str) -> None:
        self.findings: list[StorageFinding] = []
        self.files = 0
        self._storage, self._metadata, self._location = storage, metadata, metadata_location

    def add(self, finding: StorageFinding) -> None:
        """Add a finding, unless there are too many."""
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(finding)
        elif len(self.findings) == FINDINGS_MAX:
            note = f"more than {FINDINGS_MAX:,} findings"
            self.findings.append(StorageFinding(finding=NOT_CHECKED, actual=note, severity=NOTE))

    def check_metadata(self) -> None:
        """Compare the metadata file with the metadata in the store."""
        self.files += 1
        try:
            data = self._storage.read(self._location, bytes_max=METADATA_BYTES_MAX)
        except LimnosError as error:
            self._add_unread(error, "metadata file", file=self._location, size=None)
            return
        try:
            stored_metadata = iceberg_metadata.decode(data)
        except BadRequest as error:
            finding = StorageFinding(finding="metadata file unreadable", file=self._location, actual=error.message)
            self.add(finding)
            return
        for each in metadata_differences(self._metadata, stored_metadata):
            self.add(each._replace(file=self._location))

    def check_files(self, *, footers: bool) -> Iterator[str]:
        """Check the files of the current snapshot and the statistics files. Yields the keys of current files.

        Args:
            footers: Whether the number of rows in footers of Parquet files must be that in the manifest.
        """
        self._check_sizes(statistics_of(self._metadata), what="statistics file", severity=WARNING)
        current = iceberg_metadata.current_snapshot_id(self._metadata)
        if current is None:
            return
        snapshot = next((each for each in snapshots_of(self._metadata) if each.snapshot_id == current), None)
        if snapshot is None:
            self.add(StorageFinding(finding="snapshot missing", file=self._location, expected=str(current)))
            return
        for manifest in self._manifests(snapshot):
            if self.files >= FILES_MAX:
                self.add(StorageFinding(finding=NOT_CHECKED, actual=f"more than {FILES_MAX:,} files", severity=NOTE))
                return
            yield from self._manifest(manifest, footers=footers)

    def _manifests(self, snapshot: SnapshotFiles) -> Sequence[ListedManifest]:
        location = snapshot.manifest_list
        if location is None:
            return [ListedManifest(each, None, None) for each in dict.fromkeys(snapshot.manifests)][:MANIFESTS_MAX]
        self.files += 1
        try:
            manifests = read_manifest_list(self._storage.read(location, bytes_max=MANIFEST_BYTES_MAX))
        except LimnosError as error:
            self._add_unread(error, "manifest list", file=location, size=None)
            return ()
        distinct = list({each.path: each for each in manifests}.values())
        if len(distinct) > MANIFESTS_MAX:
            self.add(
                StorageFinding(finding=NOT_CHECKED, file=location, actual=f"{len(distinct):,} manifests", severity=NOTE)
            )
        return distinct[:MANIFESTS_MAX]

    def _manifest(self, manifest: ListedManifest, *, footers: bool) -> Iterator[str]:
        self.files += 1
        try:
            data = self._storage.read(manifest.path, bytes_max=MANIFEST_BYTES_MAX)
        except LimnosError as error:
            self._add_unread(error, "manifest", file=manifest.path, size=manifest.size)
            return
        if manifest.size is not None and manifest.size != len(data):
            self.add(_size_finding("manifest", manifest.path, expected=manifest.size, actual=len(data)))
        try:
            for files in in_parts(manifest_files(data), _FILES_AT_A_TIME):
                yield from self._data_files(files, footers=footers)
                if self.files >= FILES_MAX:
                    return
        except InvalidTable as error:
            if manifest.size in (None, len(data)):
                self._add_unread(error, "manifest", file=manifest.path, size=manifest.size)

    def _data_files(self, files: Sequence[ManifestFile], *, footers: bool) -> Iterator[str]:
        for is_delete, what in ((False, "data file"), (True, "delete file")):
            some = [each for each in files if each.is_delete is is_delete]
            states = self._check_sizes([ListedFile(each.path, each.size) for each in some], what=what, severity=ERROR)
            if footers:
                for each, state in zip(some, states, strict=True):
                    if state.size == each.size and (each.format or "").upper() == "PARQUET":
                        self._check_footer(each, what=what)
        yield from dict.fromkeys(location_key(each.path) for each in files)

    def _check_sizes(self, files: Sequence[ListedFile], *, what: str, severity: str) -> list[FileState]:
        self.files += len(files)
        states = self._storage.states([each.path for each in files])
        for (path, size), state in zip(map(_pair, files), states, strict=True):
            if state.problem or state.size is None:
                self.add(_problem_finding(what, path, state=state, size=size)._replace(severity=severity))
            elif size not in (None, state.size):
                self.add(_size_finding(what, path, expected=size, actual=state.size)._replace(severity=severity))
        return states

    def _check_footer(self, file: ManifestFile, *, what: str) -> None:
        """Compare the rows in the footer of a Parquet file with those in the manifest."""
        try:
            with self._storage.open(file.path) as stream:
                reader = pyarrow.parquet.ParquetFile(
                    stream, thrift_string_size_limit=_THRIFT_MAX, thrift_container_size_limit=_THRIFT_MAX
                )
                count = reader.metadata.num_rows
        except (OSError, ValueError, LimnosError) as error:
            self.add(StorageFinding(finding=f"{what} unreadable", file=file.path, actual=str(error)))
            return
        if file.row_count not in (None, count):
            self.add(
                StorageFinding(
                    finding=f"{what} has other rows",
                    file=file.path,
                    expected=_rows(file.row_count),
                    actual=_rows(count),
                )
            )

    def _add_unread(self, error: LimnosError, what: str, *, file: str, size: int | None) -> None:
        """Add the finding of a file that could not be read. Re-raises errors that do not concern the file."""
        if isinstance(error, MissingFile):
            state = FileState(None, MISSING)
        elif isinstance(error, OutsideRoots):
            state = FileState(None, OUTSIDE)
        elif isinstance(error, (InvalidTable, TooLarge)):
            state = FileState(None, error.message.removeprefix("it is "))
        else:
            raise error
        self.add(_problem_finding(what, file, state=state, size=size))


def metadata_differences(stored: Json, written: Json) -> Iterator[StorageFinding]:
    """Compare the metadata in the store with that of its file. Yields findings without a file."""
    key = "view-uuid" if "view-uuid" in stored else "table-uuid"
    other_id = _text(stored.get(key)) != _text(written.get(key))
    locations = [_place(each.get("location")) for each in (stored, written)]
    if other_id and locations[0] != locations[1]:
        expected, actual = f"{_text(stored.get(key))} at {locations[0]}", f"{_text(written.get(key))} at {locations[1]}"
        yield StorageFinding(finding="metadata file of another object", expected=expected, actual=actual)
        return
    if other_id:
        yield StorageFinding(finding="uuid differs", expected=_text(stored.get(key)), actual=_text(written.get(key)))
    if locations[0] != locations[1]:
        yield StorageFinding(finding="location differs", expected=locations[0], actual=locations[1])
    times = [each.get("last-updated-ms") for each in (stored, written)]
    if isinstance(times[0], int) and isinstance(times[1], int) and times[1] < times[0]:
        yield StorageFinding(finding="metadata file is older", expected=_text(times[0]), actual=_text(times[1]))
        return
    for field, words in _FIELDS:
        values = [_number(each.get(field)) for each in (stored, written)]
        if values[0] != values[1]:
            yield StorageFinding(finding=f"{words} differs", expected=_text(values[0]), actual=_text(values[1]))


def places_of(metadata: Json) -> tuple[str, ...]:
    """Return the location of a table, and the locations of its files that its properties name."""
    return (str(metadata.get("location") or ""), *iceberg_metadata.outside_paths(metadata).values())


def _problem_finding(what: str, file: str, *, state: FileState, size: int | None) -> StorageFinding:
    expected = None if size is None else _bytes(size)
    if state.problem == MISSING:
        return StorageFinding(finding=f"{what} missing", file=file, expected=expected)
    if state.problem == DIRECTORY or state.problem.endswith(DIRECTORY):
        return StorageFinding(finding=f"{what} is a directory", file=file, expected=expected, actual=DIRECTORY)
    if state.problem == OUTSIDE:
        return StorageFinding(finding=f"{what} outside of the location", file=file, severity=WARNING)
    return StorageFinding(finding=f"{what} unreadable", file=file, expected=expected, actual=state.problem)


def _size_finding(what: str, file: str, *, expected: int, actual: int) -> StorageFinding:
    words = "shorter" if actual < expected else "longer"
    return StorageFinding(finding=f"{what} {words}", file=file, expected=_bytes(expected), actual=_bytes(actual))


def _pair(file: ListedFile) -> tuple[str, int | None]:
    return file.path, file.size


def _number(value: object) -> object:
    """Return a number of the metadata; None for a missing one, and for -1, which means the same."""
    return None if value == -1 else value


def _place(value: object) -> str:
    return location_key(value) if isinstance(value, str) else ""


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _bytes(size: int) -> str:
    return f"{size} bytes"


def _rows(count: int | None) -> str:
    return f"{count} rows"
