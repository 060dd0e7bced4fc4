# SPDX-License-Identifier: Apache-2.0
"""Plans a scan: the manifests that it must read, and the tasks from some of them, as JSON.

Must not know callers: `manifests_of` and `tasks_of` depend only on metadata (`ScanScope`), a request and the bytes of
files. The server first removes parts of the request that the caller may not use. Source: Iceberg's OpenAPI,
`ScanTasks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus, ManifestFile

from limnos.formats.iceberg.current_files import is_plainly_below
from limnos.formats.scans import manifests
from limnos.formats.scans.deletes import DeleteIndex
from limnos.formats.scans.filters import filter_json
from limnos.formats.scans.manifest_batches import RESPONSE_BYTES_MAX, RESPONSE_TOO_LARGE
from limnos.formats.scans.request import ScanManifests, ScanRequest, ScanScope
from limnos.formats.scans.table import ScannedTable
from limnos.model.errors import UnsupportedOperation

_COUNTS: Final = (("column-sizes", 6), ("value-counts", 7), ("null-value-counts", 8), ("nan-value-counts", 9))
_BOUNDS: Final = (("lower-bounds", 10), ("upper-bounds", 11))
_SORTS: Final = {
    DataFileContent.DATA: "data",
    DataFileContent.POSITION_DELETES: "position-deletes",
    DataFileContent.EQUALITY_DELETES: "equality-deletes",
}


class FileScanTasks(NamedTuple):
    """A part of a plan: JSON of `file-scan-tasks`, and of the `delete-files` to which they refer by index.

    `sure_rows` is the number of rows in files that match completely and have no deletes. `outside` are the paths of
    files that are not plainly below a prefix of the table's locations.
    """

    files: list[bytes]
    deletes: list[bytes]
    sure_rows: int
    outside: list[str]


def manifests_of(aim: ScanScope, request: ScanRequest, *, lists: Sequence[bytes]) -> ScanManifests:
    """Determine the manifests that a scan must read, from the lists of its scope.

    Raises BadRequest for an invalid filter, InvalidTable for a malformed list.
    """
    table = ScannedTable(aim, request)
    files: dict[str, ManifestFile] = {}
    for raw in lists:
        files |= {each.manifest_path: each for each in manifests.list_read(raw)}
    if table.filter is False:
        return ScanManifests([], [])
    summaries = [manifests.manifest_summary(each) for each in files.values() if table.may_hold(each)]
    data = [each for each in summaries if not each.is_deletes and each.files]
    if aim.appended is not None:
        steps = frozenset(aim.appended)
        return ScanManifests([each for each in data if each.snapshot in steps], [])
    oldest = min((each.least_sequence for each in data), default=0)
    deletes = [each for each in summaries if each.is_deletes and each.files and each.sequence >= oldest]
    return ScanManifests(data, deletes if data else [])


def tasks_of(
    aim: ScanScope,
    request: ScanRequest,
    *,
    needed: ScanManifests,
    files: Sequence[bytes],
    prefixes: tuple[str, ...] = (),
) -> FileScanTasks:
    """Plan the files of some manifests.

    Raises BadRequest for an invalid filter, InvalidTable for a malformed manifest, UnsupportedOperation for a response
    that is too large.

    `files` are the bytes of the data manifests, then of the delete manifests. `prefixes` are those of the table's
    locations, each with a slash at its end.
    """
    table = ScannedTable(aim, request)
    data = zip(needed.data, files, strict=False)
    entries = [
        entry
        for manifest, raw in data
        for entry in manifests.entries_read(raw, manifest)
        if _is_in_scope(entry, aim) and table.may_match(entry.data_file)
    ]
    raw_deletes = zip(needed.deletes, files[len(needed.data) :], strict=True)
    deletes = [each for manifest, raw in raw_deletes for each in manifests.entries_read(raw, manifest)]
    return _TaskWriter(table, DeleteIndex(deletes, whole=table.whole), prefixes=prefixes).build(
        entries, least_rows=request.min_rows_requested
    )


def _is_in_scope(entry: ManifestEntry, aim: ScanScope) -> bool:
    if aim.appended is None:
        return True
    return entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id in aim.appended


class _TaskWriter:
    """Builds tasks and the distinct delete files that they need."""

    def __init__(self, table: ScannedTable, index: DeleteIndex, *, prefixes: tuple[str, ...]) -> None:
        self._table = table
        self._index = index
        self._prefixes = prefixes
        self._outside: list[str] = []
        self._numbers: dict[int, int] = {}
        self._encode = msgspec.json.Encoder().encode

    def build(self, entries: list[ManifestEntry], *, least_rows: int | None) -> FileScanTasks:
        """Build the file scan tasks of manifest entries, without files that the filter excludes.

        Raises UnsupportedOperation if the response is too large.
        """
        files: list[bytes] = []
        rows = size = 0
        for entry in entries:
            residual = self._table.residual(entry.data_file)
            if residual is False:
                continue
            references = [self._numbers.setdefault(each, len(self._numbers)) for each in self._index.of(entry)]
            task: dict[str, object] = {"data-file": dict(self._data_file(entry))}
            if references:
                task["delete-file-references"] = references
            task["residual-filter"] = filter_json(residual)
            files.append(self._encode(task))
            size += len(files[-1])
            if size > RESPONSE_BYTES_MAX:
                raise UnsupportedOperation(RESPONSE_TOO_LARGE)
            rows += entry.data_file.record_count if residual is True and not references else 0
            if least_rows is not None and rows >= least_rows:
                break
        deletes = [self._encode(dict(self._delete_file(self._index.files[each]))) for each in self._numbers]
        return FileScanTasks(files, deletes, rows, self._outside)

    def _data_file(self, entry: ManifestEntry) -> Iterator[tuple[str, object]]:
        file = entry.data_file
        yield from self._content(file)
        if file[manifests.FIRST_ROW_ID] is not None:
            yield "first-row-id", file[manifests.FIRST_ROW_ID]
            yield "data-sequence-number", entry.sequence_number
        for name, place in (*_COUNTS, *_BOUNDS) if self._table.statistics else ():
            values = {key: value for key, value in (file[place] or {}).items() if key in self._table.statistics}
            if values:
                encoded_values = [each.hex().upper() if isinstance(each, bytes) else each for each in values.values()]
                yield name, {"keys": list(values), "values": encoded_values}

    def _delete_file(self, file: DataFile) -> Iterator[tuple[str, object]]:
        yield from self._content(file)
        optional_fields = (
            ("equality-ids", file.equality_ids),
            ("referenced-data-file", file[manifests.REFERENCED]),
            ("content-offset", file[manifests.CONTENT_OFFSET]),
            ("content-size-in-bytes", file[manifests.CONTENT_SIZE]),
        )
        yield from ((name, value) for name, value in optional_fields if value is not None)

    def _content(self, file: DataFile) -> Iterator[tuple[str, object]]:
        path = file.file_path
        if not is_plainly_below(path, self._prefixes):
            self._outside.append(path)
        spelling = self._table.spelling[file.spec_id]
        yield "spec-id", file.spec_id
        yield "content", _SORTS[file.content]
        yield "file-path", path
        yield "file-format", file.file_format.value.lower()
        yield (
            "partition",
            [
                None if value is None or spell is None else spell(value)
                for value, spell in zip(
                    (file.partition[at] for at in range(len(file.partition))), spelling, strict=True
                )
            ],
        )
        yield "file-size-in-bytes", file.file_size_in_bytes
        yield "record-count", file.record_count
        if file.key_metadata is not None:
            yield "key-metadata", file.key_metadata.hex().upper()
        if file.split_offsets is not None:
            yield "split-offsets", file.split_offsets
        if file.sort_order_id is not None:
            yield "sort-order-id", file.sort_order_id
