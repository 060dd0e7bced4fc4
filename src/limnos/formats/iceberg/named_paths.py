# SPDX-License-Identifier: Apache-2.0
"""Paths that a table's document names itself: manifest lists, manifests of version 1, statistics, old metadata files.

Must not know which locations belong to a table. The paths in manifests are not part of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from limnos.formats.iceberg.json_types import Json


class NamedPath(msgspec.Struct, frozen=True, array_like=True):
    """A path in a document, and the words for what it names, such as `manifest list of snapshot 5`."""

    what: str
    path: str


def named_paths(metadata: Json) -> list[NamedPath]:
    """Return all paths of files in a document. Malformed parts are skipped, since other checks refuse them."""
    return [
        *(path for each in _objects(metadata.get("snapshots")) for path in _paths_of_snapshot(each)),
        *(path for each in _objects(metadata.get("statistics")) for path in _paths_of_statistics(each)),
        *(path for each in _objects(metadata.get("partition-statistics")) for path in _paths_of_statistics(each)),
        *(
            NamedPath("metadata file in the metadata log", path)
            for each in _objects(metadata.get("metadata-log"))
            if isinstance(path := each.get("metadata-file"), str)
        ),
    ]


def added_paths(updates: Sequence[object]) -> list[NamedPath]:
    """Return all paths of files that a commit's updates add to a document."""
    rows = [(each, NAMING.get(str(each.get("action")))) for each in updates if isinstance(each, dict)]
    return [path for each, paths_of in rows if paths_of is not None for path in paths_of(each)]


def _paths_of_snapshot(snapshot: object) -> Iterator[NamedPath]:
    if not isinstance(snapshot, dict):
        return
    manifest_list, number = snapshot.get("manifest-list"), snapshot.get("snapshot-id")
    if isinstance(manifest_list, str):
        yield NamedPath(f"manifest list of snapshot {number}", manifest_list)
    manifests = snapshot.get("manifests")
    for path in manifests if isinstance(manifests, list) else ():
        if isinstance(path, str):
            yield NamedPath(f"manifest of snapshot {number}", path)


def _paths_of_statistics(statistics: object) -> Iterator[NamedPath]:
    path = statistics.get("statistics-path") if isinstance(statistics, dict) else None
    if isinstance(statistics, dict) and isinstance(path, str):
        yield NamedPath(f"statistics file of snapshot {statistics.get('snapshot-id')}", path)


def _objects(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


NAMING: Final[Mapping[str, Callable[[Json], Iterator[NamedPath]]]] = {
    "add-snapshot": lambda update: _paths_of_snapshot(update.get("snapshot")),
    "set-statistics": lambda update: _paths_of_statistics(update.get("statistics")),
    "set-partition-statistics": lambda update: _paths_of_statistics(update.get("partition-statistics")),
}
"""The updates that add paths of files to a document; those that set locations add none."""
