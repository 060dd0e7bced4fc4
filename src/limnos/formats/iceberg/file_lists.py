"""Files that an Iceberg table names: the manifests of a manifest list, the files of a manifest, and what a commit adds.

May import `limnos.formats.avro` for the bounds, `limnos.model.errors`, msgspec and this package. Reads no file: bytes come in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from limnos.formats.avro import BadAvro, values_of
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.errors import BadRequest, InvalidTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from limnos.formats.iceberg.json_types import Json

_ADDED: Final = 1
_DELETED: Final = 2


class ListedManifest(msgspec.Struct, frozen=True, array_like=True):
    """A manifest in a manifest list."""

    path: str
    size: int | None
    """Its length in bytes as the list says; None where it does not."""
    snapshot_id: int | None
    """The snapshot that added it."""


class ListedFile(msgspec.Struct, frozen=True, array_like=True):
    """A data file or delete file in a manifest."""

    path: str
    size: int | None
    """Its length in bytes as the manifest says; None where it does not."""


class FilePage(msgspec.Struct, frozen=True, array_like=True):
    """Some files of a manifest, and whether more follow."""

    files: tuple[ListedFile, ...]
    has_more: bool


class SnapshotFiles(msgspec.Struct, frozen=True, array_like=True):
    """Where a snapshot lists its manifests: in a manifest list, or (format version 1) in the snapshot itself."""

    snapshot_id: int
    manifest_list: str | None
    manifests: tuple[str, ...] = ()
    timestamp_ms: int = 0


class AddedSnapshots(msgspec.Struct, frozen=True, array_like=True):
    """What a commit adds: snapshots, and locations that it brings, where files of the table may lie from then on."""

    snapshots: tuple[SnapshotFiles, ...]
    new_places: tuple[str, ...]


def read_manifest_list(data: bytes) -> tuple[ListedManifest, ...]:
    """Read a manifest list. Raises InvalidTable."""
    try:
        rows = list(values_of(data, ("manifest_path",), ("manifest_length",), ("added_snapshot_id",), is_needed=True))
    except BadAvro as error:
        raise InvalidTable(f"it is no manifest list that can be read: {str(error)[:200]}") from error
    return tuple([ListedManifest(path, _int(size), _int(by)) for path, size, by in rows if isinstance(path, str)])


def read_manifest(data: bytes, *, only_added: bool, skip: int = 0, limit: int) -> FilePage:
    """Read some files of a manifest: those that are alive, or only those that it adds; each path once in a row. Raises InvalidTable."""
    found: list[ListedFile] = []
    try:
        for number, file in enumerate(_alive(data, only_added=only_added)):
            if number < skip:
                continue
            if len(found) == limit:
                return FilePage(tuple(found), has_more=True)
            found.append(file)
    except BadAvro as error:
        raise InvalidTable(f"it is no manifest that can be read: {str(error)[:200]}") from error
    return FilePage(tuple(found), has_more=False)


def _alive(data: bytes, *, only_added: bool) -> Iterator[ListedFile]:
    previous = None
    fields = (("data_file", "file_path"), ("status",), ("data_file", "file_size_in_bytes"))
    for path, status, size in values_of(data, *fields, is_needed=True):
        if isinstance(path, str) and (status == _ADDED if only_added else status != _DELETED) and path != previous:
            previous = path  # deletion vectors of many data files lie in one Puffin file
            yield ListedFile(path, _int(size))


def snapshots_of(metadata: Json) -> list[SnapshotFiles]:
    """Return a table's snapshots, oldest first."""
    found = [_snapshot(each) for each in iceberg_metadata.rows(metadata, "snapshots")]
    return sorted(found, key=lambda each: (each.timestamp_ms, each.snapshot_id))


def statistics_of(metadata: Json) -> list[ListedFile]:
    """Return the statistics files of a table and of its partitions."""
    return [
        ListedFile(path, _int(row.get("file-size-in-bytes")))
        for key in ("statistics", "partition-statistics")
        for row in iceberg_metadata.rows(metadata, key)
        if isinstance(path := row.get("statistics-path"), str)
    ]


def added_snapshots(updates: Sequence[object]) -> AddedSnapshots:
    """Return what a commit's updates add to a table."""
    rows = [each for each in updates if isinstance(each, dict)]
    told = [each.get("snapshot") for each in rows if each.get("action") == "add-snapshot"]
    snapshots = tuple([_snapshot(each) for each in told if isinstance(each, dict)])
    return AddedSnapshots(snapshots, tuple(_brought(rows)) if snapshots else ())


def _brought(rows: Sequence[Json]) -> Iterator[str]:
    for each in rows:
        location, sets = each.get("location"), each.get("updates")
        if each.get("action") == "set-location" and isinstance(location, str):
            yield location
        elif each.get("action") == "set-properties" and isinstance(sets, dict):
            yield from [path for key in iceberg_metadata.DATA_PATHS if isinstance(path := sets.get(key), str) and path]


def _snapshot(row: Json) -> SnapshotFiles:
    listed, inline = row.get("manifest-list"), row.get("manifests")
    manifests = tuple([each for each in inline if isinstance(each, str)]) if isinstance(inline, list) else ()
    return SnapshotFiles(
        _int(row.get("snapshot-id")) or 0, listed if isinstance(listed, str) else None, manifests, _int(row.get("timestamp-ms")) or 0
    )  # fmt: skip


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# ------------------------------------------------------------------------------------------------ chores


class _CommitUpdates(msgspec.Struct):
    updates: list[object] = []


class _PageRequest(msgspec.Struct):
    only_added: bool
    skip: int
    limit: int


def page_request(*, only_added: bool, skip: int, limit: int) -> bytes:
    """Spell the second part of `files_chore`."""
    return msgspec.json.encode(_PageRequest(only_added, skip, limit))


def manifests_chore(data: bytes) -> list[bytes]:
    """Read a manifest list: its bytes in, `ListedManifest`s out."""
    return [msgspec.json.encode(read_manifest_list(data))]


def files_chore(data: bytes, asked: bytes) -> list[bytes]:
    """Read some files of a manifest: its bytes and a page request in, a `FilePage` out."""
    wanted = msgspec.json.decode(asked, type=_PageRequest)
    page = read_manifest(data, only_added=wanted.only_added, skip=wanted.skip, limit=wanted.limit)
    return [msgspec.json.encode(page)]


def added_chore(request: bytes) -> list[bytes]:
    """Say what a commit adds: its body in, `AddedSnapshots` out. Raises BadRequest."""
    try:
        updates = msgspec.json.decode(request, type=_CommitUpdates).updates
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"Malformed json request: {error}") from None
    return [msgspec.json.encode(added_snapshots(updates))]


def snapshots_chore(body: bytes) -> list[bytes]:
    """Say which snapshots a document has, and which statistics files: its bytes in; `SnapshotFiles`, `ListedFile`s and the current snapshot's id out."""
    metadata = iceberg_metadata.decode(body)
    current = metadata.get("current-snapshot-id")
    return [msgspec.json.encode(each) for each in (snapshots_of(metadata), statistics_of(metadata), current)]
