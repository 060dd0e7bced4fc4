# SPDX-License-Identifier: Apache-2.0
"""Files that an Iceberg table references: manifests in a manifest list, files in a manifest, and additions of a commit.

Must not read files: bytes are passed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from limnos.formats.avro import BadAvro, values_of
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.named_paths import NamedPath, added_paths
from limnos.model.errors import BadRequest, InvalidTable

_ADDED: Final = 1
_DELETED: Final = 2


class ListedManifest(msgspec.Struct, frozen=True, array_like=True):
    """The entry of a manifest in a manifest list."""

    path: str
    size: int | None
    """Its length in bytes according to the list; None if the list lacks it."""
    snapshot_id: int | None
    """The snapshot that added it."""


class ListedFile(msgspec.Struct, frozen=True, array_like=True):
    """A data file or delete file in a manifest."""

    path: str
    size: int | None
    """Its length in bytes according to the manifest; None if the manifest lacks it."""


class ManifestFile(msgspec.Struct, frozen=True, kw_only=True):
    """A live data file or delete file in a manifest, with its number of rows; None for what the manifest lacks."""

    path: str
    size: int | None
    is_delete: bool
    format: str | None
    row_count: int | None


class FilePage(msgspec.Struct, frozen=True, array_like=True):
    """Some files of a manifest, and whether more follow."""

    files: tuple[ListedFile, ...]
    has_more: bool


class SnapshotFiles(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot with its manifests: the location of the manifest list or, in format version 1, the list of manifests
    itself.
    """

    snapshot_id: int
    manifest_list: str | None
    manifests: tuple[str, ...] = ()
    timestamp_ms: int = 0


class AddedSnapshots(msgspec.Struct, frozen=True, array_like=True):
    """The snapshots and other paths that a commit adds and, if there are any, the locations that its updates leave in
    the document (table location, paths in properties).
    """

    snapshots: tuple[SnapshotFiles, ...]
    new_places: tuple[str, ...]
    paths: tuple[NamedPath, ...] = ()


def read_manifest_list(data: bytes) -> tuple[ListedManifest, ...]:
    """Read a manifest list. Raises InvalidTable if it is malformed."""
    try:
        rows = list(values_of(data, ("manifest_path",), ("manifest_length",), ("added_snapshot_id",), is_needed=True))
    except BadAvro as error:
        raise InvalidTable(f"it is not a readable manifest list: {str(error)[:200]}") from error
    return tuple([ListedManifest(path, _int(size), _int(by)) for path, size, by in rows if isinstance(path, str)])


def read_manifest(data: bytes, *, only_added: bool, skip: int = 0, limit: int) -> FilePage:
    """Read some files of a manifest. Consecutive entries with the same path are returned once.

    Args:
        data: The manifest.
        only_added: Whether to return only files that the manifest adds, instead of all live files.
        skip: The number of files to skip.
        limit: The maximum number of files to return.

    Raises:
        InvalidTable: The manifest is malformed.
    """
    files: list[ListedFile] = []
    try:
        for number, file in enumerate(_alive(data, only_added=only_added)):
            if number < skip:
                continue
            if len(files) == limit:
                return FilePage(tuple(files), has_more=True)
            files.append(file)
    except BadAvro as error:
        raise InvalidTable(f"it is not a readable manifest: {str(error)[:200]}") from error
    return FilePage(tuple(files), has_more=False)


def manifest_files(data: bytes) -> Iterator[ManifestFile]:
    """Yield the live files of a manifest, without repeated ones. Raises InvalidTable if it is malformed."""
    names = ("file_path", "file_size_in_bytes", "content", "file_format", "record_count")
    fields = (("data_file", names[0]), ("status",), *[("data_file", name) for name in names[1:]])
    previous = None
    try:
        for path, status, size, content, file_format, rows in values_of(data, *fields, is_needed=True):
            if not isinstance(path, str) or status == _DELETED or path == previous:
                continue
            previous = path
            yield ManifestFile(
                path=path,
                size=_int(size),
                is_delete=bool(_int(content)),
                format=file_format if isinstance(file_format, str) else None,
                row_count=_int(rows),
            )
    except BadAvro as error:
        raise InvalidTable(f"it is not a readable manifest: {str(error)[:200]}") from error


def _alive(data: bytes, *, only_added: bool) -> Iterator[ListedFile]:
    previous = None
    fields = (("data_file", "file_path"), ("status",), ("data_file", "file_size_in_bytes"))
    for path, status, size in values_of(data, *fields, is_needed=True):
        if isinstance(path, str) and (status == _ADDED if only_added else status != _DELETED) and path != previous:
            previous = path  # one Puffin file holds the deletion vectors of many data files
            yield ListedFile(path, _int(size))


def snapshots_of(metadata: Json) -> list[SnapshotFiles]:
    """Return a table's snapshots, oldest first."""
    files = [_snapshot(each) for each in iceberg_metadata.rows(metadata, "snapshots")]
    return sorted(files, key=lambda each: (each.timestamp_ms, each.snapshot_id))


def statistics_of(metadata: Json) -> list[ListedFile]:
    """Return the statistics files and partition statistics files of a table."""
    return [
        ListedFile(path, _int(row.get("file-size-in-bytes")))
        for key in ("statistics", "partition-statistics")
        for row in iceberg_metadata.rows(metadata, key)
        if isinstance(path := row.get("statistics-path"), str)
    ]


def added_snapshots(updates: Sequence[object]) -> AddedSnapshots:
    """Return the snapshots and paths that a commit's updates add and, if there are any, the locations that the updates
    leave in the document.
    """
    rows = [each for each in updates if isinstance(each, dict)]
    entries = [each.get("snapshot") for each in rows if each.get("action") == "add-snapshot"]
    snapshots = tuple([_snapshot(each) for each in entries if isinstance(each, dict)])
    paths = tuple(added_paths(rows))
    return AddedSnapshots(snapshots, tuple(_new_places(rows)) if snapshots or paths else (), paths)


def _new_places(rows: Sequence[Json]) -> list[str]:
    """Return the locations that updates set and no later update replaces: the rules of locations are checked only for
    these.
    """
    locations_by_key: dict[str, str] = {}
    for each in rows:
        location = each.get("location")
        sets, removals = each.get("updates", each.get("updated")), each.get("removals", each.get("removed"))
        if each.get("action") == "set-location" and isinstance(location, str):
            locations_by_key["location"] = location
        elif each.get("action") == "set-properties" and isinstance(sets, dict):
            locations_by_key |= {
                key: path for key in iceberg_metadata.DATA_PATHS if isinstance(path := sets.get(key), str)
            }
        elif each.get("action") == "remove-properties" and isinstance(removals, list):
            locations_by_key = {
                key: path for key, path in locations_by_key.items() if key == "location" or key not in removals
            }
    return [path for path in locations_by_key.values() if path]


def _snapshot(row: Json) -> SnapshotFiles:
    manifest_list, inline = row.get("manifest-list"), row.get("manifests")
    manifests = tuple([each for each in inline if isinstance(each, str)]) if isinstance(inline, list) else ()
    return SnapshotFiles(
        _int(row.get("snapshot-id")) or 0,
        manifest_list if isinstance(manifest_list, str) else None,
        manifests,
        _int(row.get("timestamp-ms")) or 0,
    )


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# ---------------------------------------------------------------------------------------- offloaded work


class _CommitUpdates(msgspec.Struct):
    updates: list[object] = []


class _PageRequest(msgspec.Struct):
    only_added: bool
    skip: int
    limit: int


def page_request(*, only_added: bool, skip: int, limit: int) -> bytes:
    """Encode the page request, which is the second argument of `offloaded_files`."""
    return msgspec.json.encode(_PageRequest(only_added, skip, limit))


def offloaded_manifests(data: bytes) -> list[bytes]:
    """Read a manifest list: takes its bytes, returns JSON of `ListedManifest`s."""
    return [msgspec.json.encode(read_manifest_list(data))]


def offloaded_files(data: bytes, requested: bytes) -> list[bytes]:
    """Read some files of a manifest: takes its bytes and a page request, returns JSON of a `FilePage`."""
    request = msgspec.json.decode(requested, type=_PageRequest)
    page = read_manifest(data, only_added=request.only_added, skip=request.skip, limit=request.limit)
    return [msgspec.json.encode(page)]


def offloaded_added(request: bytes) -> list[bytes]:
    """Read the snapshots that a commit adds: takes the request's body, returns JSON of `AddedSnapshots`.

    Raises BadRequest for a malformed body.
    """
    try:
        updates = msgspec.json.decode(request, type=_CommitUpdates).updates
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"Malformed json request: {error}") from None
    return [msgspec.json.encode(added_snapshots(updates))]


def offloaded_snapshots(body: bytes) -> list[bytes]:
    """Return a document's snapshots, statistics files and current snapshot id, as three JSON documents."""
    metadata = iceberg_metadata.decode(body)
    current = metadata.get("current-snapshot-id")
    return [msgspec.json.encode(each) for each in (snapshots_of(metadata), statistics_of(metadata), current)]
