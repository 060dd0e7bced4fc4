# SPDX-License-Identifier: Apache-2.0
"""Files that a reader of a table opens: manifest lists, manifests and statistics from its document, data files from the
manifests.

Must not read files: bytes are passed in. Must not know the locations of a table: the caller passes prefixes, and
decides on all paths that do not plainly begin with one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from limnos.formats.avro import BadAvro, values_of
from limnos.model.errors import InvalidTable

OUTSIDE_MAX: Final = 20_000
"""The maximum number of paths that `outside_paths` returns."""
_DELETED: Final = 2
_UNUSUAL: Final = re.compile("[%?#\\\\\x00-\x1f\x7f\ud800-\udfff]|//|(?<=/)\\.\\.?(?=/|$)")


class NamedSnapshot(msgspec.Struct, frozen=True, rename="kebab"):
    """A snapshot in a table's document: its id and its manifest list or, in format version 1, its manifests."""

    snapshot_id: int
    manifest_list: str | None = None
    manifests: list[str] | None = None


class NamedStatistics(msgspec.Struct, frozen=True, rename="kebab"):
    """A statistics file, or a file of partition statistics, in a table's document."""

    snapshot_id: int | None = None
    statistics_path: str = ""


class DocumentFiles(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """The parts of a table's document that name files or classes for its readers."""

    location: str
    current_snapshot_id: int | None = None
    snapshots: list[NamedSnapshot] | None = None
    statistics: list[NamedStatistics] | None = None
    partition_statistics: list[NamedStatistics] | None = None
    properties: dict[str, str] | None = None

    @property
    def current(self) -> NamedSnapshot | None:
        """The current snapshot; None before the first commit."""
        return next((each for each in self.snapshots or () if each.snapshot_id == self.current_snapshot_id), None)

    def of_current_snapshot(self) -> DocumentFiles:
        """Return the document with the current snapshot and its statistics only."""
        current = self.current
        return msgspec.structs.replace(
            self,
            snapshots=[] if current is None else [current],
            statistics=_statistics_of_snapshot(self.statistics, self.current_snapshot_id),
            partition_statistics=_statistics_of_snapshot(self.partition_statistics, self.current_snapshot_id),
        )

    @property
    def paths(self) -> list[str]:
        """The paths of files that the document names: manifest lists, manifests of version 1, and statistics."""
        lists = [each.manifest_list for each in self.snapshots or () if each.manifest_list is not None]
        inline = [path for each in self.snapshots or () if each.manifest_list is None for path in each.manifests or ()]
        statistics = [*(self.statistics or ()), *(self.partition_statistics or ())]
        return [*lists, *inline, *(each.statistics_path for each in statistics)]


def _statistics_of_snapshot(statistics: list[NamedStatistics] | None, snapshot_id: int | None) -> list[NamedStatistics]:
    return [each for each in statistics or () if each.snapshot_id == snapshot_id]


def document_files(body: bytes) -> DocumentFiles:
    """Read the named files of a stored document. Raises InvalidTable for a malformed one."""
    try:
        return msgspec.json.decode(body, type=DocumentFiles)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidTable(f"The table's metadata is malformed: {error}") from None


def is_plainly_below(path: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether a path begins with one of the prefixes, each of which ends with a slash, and has no part after it
    that readers interpret differently, such as a percent sign, a dot segment or a repeated slash.

    False does not mean that the path lies elsewhere.
    """
    for prefix in prefixes:
        if path.startswith(prefix):
            return _UNUSUAL.search(path, len(prefix) - 1) is None
    return False


def outside_paths(prefixes: tuple[str, ...], manifests: Sequence[bytes]) -> list[str]:
    """Return the distinct paths of live files in manifests that are not plainly below a prefix.

    Raises InvalidTable for a malformed manifest, and for more than `OUTSIDE_MAX` such paths.
    """
    outside: dict[str, None] = {}
    try:
        for data in manifests:
            for path, status in values_of(data, ("data_file", "file_path"), ("status",), is_needed=True):
                if status == _DELETED or (isinstance(path, str) and is_plainly_below(path, prefixes)):
                    continue
                if len(outside) >= OUTSIDE_MAX:
                    raise InvalidTable("its manifests name too many files outside of the table's location")
                outside[path if isinstance(path, str) else ""] = None
    except BadAvro as error:
        raise InvalidTable(f"it is not a readable manifest: {str(error)[:200]}") from error
    return list(outside)


# ---------------------------------------------------------------------------------------- offloaded work


def offloaded_document_files(body: bytes, every_snapshot: bytes) -> list[bytes]:
    """Read the named files of a document: takes its bytes, and `1` for all snapshots instead of the current one.

    Returns JSON of `DocumentFiles`.
    """
    files = document_files(body)
    return [msgspec.json.encode(files if every_snapshot == b"1" else files.of_current_snapshot())]


def offloaded_outside_paths(prefixes: bytes, *manifests: bytes) -> list[bytes]:
    """Find paths outside of prefixes: takes the prefixes as JSON and the bytes of manifests, returns JSON of paths."""
    return [msgspec.json.encode(outside_paths(msgspec.json.decode(prefixes, type=tuple[str, ...]), manifests))]
