"""Requests to worker processes about the maintenance of Lance tables, and their results, as JSON on the wire.

May import msgspec and `questions`. Must not import Lance's library, because server processes import this.
"""

from __future__ import annotations

import msgspec

from limnos.sources.lance.questions import LanceQuestion


class ReadState(LanceQuestion, frozen=True):
    """Read the state that determines the table's maintenance; the result is a `LanceTableState`."""


class Compact(LanceQuestion, frozen=True):
    """Merge small fragments, and drop the rows that are marked as deleted. No row changes."""


class RefreshIndexes(LanceQuestion, frozen=True):
    """Add to each index the rows that it does not cover; retrain an index that the table has outgrown."""


class CleanUp(LanceQuestion, frozen=True, kw_only=True):
    """Remove versions, and the files that only they refer to. A version with a tag stays, and the newest one."""

    versions: list[int]


class MaintenanceResult(msgspec.Struct, frozen=True):
    """The result of an operation: the numbers of files before and after, or of removed versions and bytes."""

    before: int = 0
    after: int = 0
    removed: tuple[int, ...] = ()
    removed_bytes: int = 0
    trained: tuple[str, ...] = ()
    """The indexes that were trained again."""
