# SPDX-License-Identifier: Apache-2.0
"""Orphan files: reads the files that a table's metadata references, and selects the listed files that may be removed.

Pure. Must not access storage: files are compared by keys that the caller computes. All snapshots count, on any branch
or tag, and so do statistics. Entries of status DELETED do not count, since no reader opens their files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from limnos.formats.avro import BadAvro, values_of_files
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.errors import InvalidTable
from limnos.rooms.maintenance.formats.expiry import GC_ENABLED
from limnos.rooms.maintenance.formats.table_metadata import metadata_of

Key = TypeVar("Key")
DIRECTORIES: Final = ("data/", "metadata/")
"""The directories below a table's location from which files are removed."""
_DELETED: Final = 2
_WRITTEN_BY_ICEBERG: Final = re.compile(r"[^/]+\.(?:parquet|orc|avro|puffin|stats)")
_SIDECAR: Final = re.compile(r"\.([^/]+)\.crc")


class TableReferences(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a table's metadata document references directly, not through manifests."""

    location: str
    manifest_lists: tuple[str, ...]
    manifests: tuple[str, ...]
    """Manifests that snapshots name without a list (format version 1)."""
    files: tuple[str, ...]
    """Statistics files, which must exist."""
    metadata_log: tuple[str, ...]
    keeps_files: bool
    """Whether `gc.enabled` is false: the table may then share its files with others."""
    snapshots: tuple[int, ...]


class ListedFileState(NamedTuple):
    """A listed file: its path relative to the table's location, its length in bytes, and its modification time."""

    name: str
    size: int
    modified_ms: int


class OrphanSearch(NamedTuple):
    """The result of comparing a file listing with the files that the metadata references."""

    candidates: tuple[ListedFileState, ...]
    missing: tuple[str, ...]
    """Files below the table's location that the metadata references and that were not listed."""
    elsewhere: tuple[str, ...]
    """Files outside of the table's location that the metadata references."""


def references_of(body: bytes) -> TableReferences:
    """Read the files that a metadata document references. Raises InvalidTable for malformed metadata."""
    metadata = metadata_of(body)
    snapshots = metadata.snapshots or []
    statistics = [*(metadata.statistics or ()), *(metadata.partition_statistics or ())]
    return TableReferences(
        location=metadata.location,
        manifest_lists=tuple(dict.fromkeys([each.manifest_list for each in snapshots if each.manifest_list])),
        manifests=tuple(
            dict.fromkeys([path for each in snapshots if not each.manifest_list for path in each.manifests or ()])
        ),
        files=tuple(dict.fromkeys([each.statistics_path for each in statistics])),
        metadata_log=tuple([each.metadata_file for each in metadata.metadata_log or ()]),
        keeps_files=metadata.is_off(GC_ENABLED),
        snapshots=tuple([each.snapshot_id for each in snapshots]),
    )


def manifest_paths(*lists: bytes) -> list[str]:
    """Read the distinct locations of manifests in manifest lists. Raises InvalidTable for a malformed list."""
    try:
        rows = values_of_files(lists, ("manifest_path",))
        return list(dict.fromkeys([path for (path,) in rows if isinstance(path, str)]))
    except BadAvro as error:
        raise InvalidTable(f"a manifest list cannot be read: {str(error)[:200]}") from error


def referenced_files(*manifests: bytes) -> list[str]:
    """Read the distinct locations of files in the entries of manifests, except entries of status DELETED.

    Raises InvalidTable for a malformed manifest.
    """
    try:
        rows = values_of_files(manifests, ("data_file", "file_path"), ("status",), is_needed=True)
        return list(dict.fromkeys([path for path, status in rows if isinstance(path, str) and status != _DELETED]))
    except BadAvro as error:
        raise InvalidTable(f"a manifest cannot be read: {str(error)[:200]}") from error


def is_removable_name(name: str) -> bool:
    """Return whether a file's directory and name are those of a file that Iceberg's writers create.

    False for metadata files, which a separate rule covers.
    """
    if not name.startswith(DIRECTORIES):
        return False
    last = name.rpartition("/")[2]
    sidecar = _SIDECAR.fullmatch(last)
    return _WRITTEN_BY_ICEBERG.fullmatch(last if sidecar is None else sidecar[1]) is not None


def main_file_of(name: str) -> str:
    """Return the name of the file to which a checksum file (`.NAME.crc`) belongs; for any other file its own name."""
    directory, _, last = name.rpartition("/")
    sidecar = _SIDECAR.fullmatch(last)
    return name if sidecar is None else f"{directory}/{sidecar[1]}"


def newer_metadata_files(names: Iterable[str], current: str) -> list[str]:
    """Return metadata files of a later version than the current one, which mean that another catalog may write to the
    table.
    """
    version = iceberg_metadata.version_of(current.rpartition("/")[2])
    newer = []
    for name in names:
        directory, _, last = name.rpartition("/")
        if directory == "metadata" and last.endswith(".metadata.json") and iceberg_metadata.version_of(last) > version:
            newer.append(name)
    return newer


def search_orphans(
    listing: Mapping[Key, ListedFileState],
    references: Sequence[str],
    *,
    key_of: Callable[[str], Key],
    target_of: Callable[[str], Key | None],
    is_own: Callable[[str], bool],
    name_key: Callable[[str], Key],
) -> OrphanSearch:
    """Compare a file listing with the files that the metadata references.

    Args:
        listing: The listed files by key.
        references: The locations of the files that the metadata references, which must exist.
        key_of: Returns the key of a location.
        target_of: Returns the key of the target of a symbolic link at a location, or None.
        is_own: Returns whether a location lies below the table's location.
        name_key: Returns the key of a file by its name below the table's location.
    """
    referenced_keys: set[Key] = set()
    missing: list[str] = []
    outside_paths: list[str] = []
    for location in references:
        key = key_of(location)
        referenced_keys.add(key)
        if key not in listing:
            target = target_of(location)
            if target is not None and target in listing:
                referenced_keys.add(target)
            else:
                (missing if is_own(location) else outside_paths).append(location)
    candidates = [
        file
        for key, file in listing.items()
        if key not in referenced_keys
        and is_removable_name(file.name)
        and name_key(main_file_of(file.name)) not in referenced_keys
    ]
    return OrphanSearch(tuple(sorted(candidates)), tuple(missing), tuple(outside_paths))


# ---------------------------------------------------------------------------------------- offloaded work


def offloaded_references(body: bytes) -> list[bytes]:
    """Read a document's references: takes its bytes, returns JSON of `TableReferences`.

    Raises InvalidTable for malformed metadata.
    """
    return [msgspec.json.encode(references_of(body))]


def offloaded_manifest_paths(*lists: bytes) -> list[bytes]:
    """Read manifest lists: takes their bytes, returns JSON of the distinct locations of manifests.

    Raises InvalidTable for a malformed list.
    """
    return [msgspec.json.encode(manifest_paths(*lists))]


def offloaded_referenced_files(*manifests: bytes) -> list[bytes]:
    """Read manifests: takes their bytes, returns JSON of the distinct locations of files.

    Raises InvalidTable for a malformed manifest.
    """
    return [msgspec.json.encode(referenced_files(*manifests))]
