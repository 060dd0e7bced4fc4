# SPDX-License-Identifier: Apache-2.0
"""The state of a Lance table that determines its maintenance: fragments, versions, tags and indexes.

Pure. A worker process reads it (`rooms.lance.sources`).
"""

from __future__ import annotations

from typing import Final

import msgspec

GROWTH_MAX: Final = 2
"""A vector index is retrained once the table has `GROWTH_MAX` times the rows of the index's largest segment.

A refresh assigns new rows to partitions and codes that were trained for old ones, so searches find fewer neighbours.
"""


class LanceIndexState(msgspec.Struct, frozen=True, array_like=True):
    """An index: the count of rows that it does not cover, and the count of its segments, all of which each search
    reads.
    """

    name: str
    missing_rows: int
    segments: int
    trained_rows: int = 0
    """The rows of its largest segment, with which a vector index was trained at most; 0 for any other index."""

    def is_outgrown(self, rows: int) -> bool:
        """Return whether a vector index must be retrained, because the table has grown to `GROWTH_MAX` times the rows
        it was trained with.
        """
        return 0 < self.trained_rows * GROWTH_MAX <= rows


class LanceVersionState(msgspec.Struct, frozen=True, array_like=True):
    """A version, and its commit time by the clock of its writer."""

    version: int
    at_ms: int


class LanceTableState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a table that determines its maintenance."""

    rows: int
    deleted_rows: int
    fragments: int
    mergeable: int
    """The number of fragments that a compaction would rewrite now."""
    merged: int
    """The number of fragments that would replace them, at least."""
    mergeable_bytes: int
    total_bytes: int
    versions: tuple[LanceVersionState, ...]
    """The versions of the main branch."""
    tags: dict[str, int]
    """The tags of the main branch's versions."""
    branch_points: dict[str, int]
    """The versions of the main branch at which branches begin, by the branch's name."""
    indexes: tuple[LanceIndexState, ...]


class MaintenanceResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an operation: the counts of files before and after, or of removed versions and bytes."""

    before: int = 0
    after: int = 0
    removed: tuple[int, ...] = ()
    removed_bytes: int = 0
    trained: tuple[str, ...] = ()
    """The indexes that were retrained."""
