# SPDX-License-Identifier: Apache-2.0
"""Finds the delete files that apply to a data file (Iceberg specification, "Scan Planning").

Must not know filters or the JSON of tasks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final, cast

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry

from limnos.formats.scans.manifests import REFERENCED

_PATH_ID: Final = 2147483546
PartitionKey = tuple[int, tuple[object, ...]]
"""A file's partition: the spec and the values of its fields."""


def partition_key_of(file: DataFile) -> PartitionKey:
    """Return the key of a file's partition: spec id and values.

    NaN is replaced by a string, because it does not equal itself.
    """
    values = (file.partition[at] for at in range(len(file.partition)))
    return file.spec_id, tuple("NaN" if value != value else value for value in values)  # noqa: PLR0124 - a NaN


class _DeleteSeries:
    """Delete files sorted by sequence number. A file is represented by its index in the plan's list of delete files."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int]] = []

    def add(self, sequence: int, number: int) -> None:
        self._found.append((sequence, number))

    def sort(self) -> None:
        self._found.sort()

    def since(self, sequence: int) -> list[int]:
        """Return the indices of the files with at least this sequence number, as position deletes apply."""
        return [number for _, number in self._found[bisect_left(self._found, (sequence, -1)) :]]

    def after(self, sequence: int) -> list[int]:
        """Return the indices of the files with a greater sequence number, as equality deletes apply."""
        return [number for _, number in self._found[bisect_right(self._found, (sequence, 1 << 62)) :]]


class DeleteIndex:
    """The delete files of a snapshot, indexed by partition and by data file.

    `whole` are the ids of the unpartitioned specs, whose equality deletes apply to all partitions.
    """

    def __init__(self, entries: Sequence[ManifestEntry], *, whole: Collection[int]) -> None:
        self._whole = whole
        self.files = [entry.data_file for entry in entries]
        self._everywhere = _DeleteSeries()
        self._equality: dict[PartitionKey, _DeleteSeries] = defaultdict(_DeleteSeries)
        self._positions: dict[PartitionKey, _DeleteSeries] = defaultdict(_DeleteSeries)
        self._of_path: dict[str, _DeleteSeries] = defaultdict(_DeleteSeries)
        self._vectors: dict[str, _DeleteSeries] = defaultdict(_DeleteSeries)
        for number, entry in enumerate(entries):
            self._series(entry.data_file).add(cast("int", entry.sequence_number), number)
        for series in (
            self._everywhere,
            *self._equality.values(),
            *self._positions.values(),
            *self._of_path.values(),
            *self._vectors.values(),
        ):
            series.sort()

    def _series(self, file: DataFile) -> _DeleteSeries:
        if file.content == DataFileContent.EQUALITY_DELETES:
            return self._equality[partition_key_of(file)] if file.spec_id not in self._whole else self._everywhere
        if file.file_format == FileFormat.PUFFIN:
            return self._vectors[cast("str", file[REFERENCED])]
        path = _one_path(file)
        return self._positions[partition_key_of(file)] if path is None else self._of_path[path]

    def of(self, entry: ManifestEntry) -> list[int]:
        """Return the indices of the delete files for a data file.

        A deletion vector replaces all older position deletes.
        """
        file, sequence = entry.data_file, cast("int", entry.sequence_number)
        place = partition_key_of(file)
        after = self._everywhere.after(sequence)
        if place in self._equality:
            after += self._equality[place].after(sequence)
        vectors = self._vectors[file.file_path].since(sequence) if file.file_path in self._vectors else []
        if vectors:
            return sorted((*after, vectors[-1]))
        if place in self._positions:
            after += [
                each for each in self._positions[place].since(sequence) if _may_name(self.files[each], file.file_path)
            ]
        if file.file_path in self._of_path:
            after += self._of_path[file.file_path].since(sequence)
        return sorted(after)


def _one_path(file: DataFile) -> str | None:
    """Return the path of the only data file to which a position delete file applies; None if there may be several data
    files.
    """
    if file[REFERENCED] is not None:
        return cast("str", file[REFERENCED])
    low, high = (file.lower_bounds or {}).get(_PATH_ID), (file.upper_bounds or {}).get(_PATH_ID)
    return low.decode() if low is not None and low == high else None


def _may_name(file: DataFile, path: str) -> bool:
    """Return whether a position delete file may have deletes for a data file's path, by its bounds.

    A truncated upper bound covers all paths that begin with it.
    """
    low, high = (file.lower_bounds or {}).get(_PATH_ID), (file.upper_bounds or {}).get(_PATH_ID)
    path_bytes = path.encode()
    return (low is None or low <= path_bytes) and (high is None or path_bytes <= high or path_bytes.startswith(high))
