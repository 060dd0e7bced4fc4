# SPDX-License-Identifier: Apache-2.0
"""Requests to worker processes about the maintenance of Lance tables, and their results, as JSON on the wire.

Must not import Lance's library, because server processes import this.
"""

from __future__ import annotations

import msgspec

from limnos.sources.lance.questions import LanceQuestion


class ReadState(LanceQuestion, frozen=True, kw_only=True):
    """A request for the state that determines a table's maintenance; the result is a `LanceTableState`."""


class Compact(LanceQuestion, frozen=True, kw_only=True):
    """A request to compact the table: merge small fragments, and remove rows that are marked as deleted."""


class RefreshIndexes(LanceQuestion, frozen=True, kw_only=True):
    """A request to add unindexed rows to each index, and to retrain an index that the table has outgrown."""


class CleanUp(LanceQuestion, frozen=True, kw_only=True):
    """A request to remove old versions and the files that only they refer to. The newest version and tagged versions
    stay.
    """

    versions: list[int]


class MaintenanceResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an operation: the counts of files before and after, or of removed versions and bytes."""

    before: int = 0
    after: int = 0
    removed: tuple[int, ...] = ()
    removed_bytes: int = 0
    trained: tuple[str, ...] = ()
    """The indexes that were retrained."""
