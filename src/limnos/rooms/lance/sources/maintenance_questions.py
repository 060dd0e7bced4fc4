# SPDX-License-Identifier: Apache-2.0
"""Requests to worker processes about the maintenance of Lance tables, and their results, as JSON on the wire.

Must not import Lance's library, because server processes import this.
"""

from __future__ import annotations

from limnos.rooms.lance.sources.questions import LanceQuestion


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
