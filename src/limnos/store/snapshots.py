# SPDX-License-Identifier: Apache-2.0
"""Long read snapshots: a read transaction on its own connection, read page by page.

Must not know resources or backends. It serves large reads, such as an export; requests use the view and loads. While a
snapshot is open, SQLite cannot checkpoint its write-ahead log beyond it, and PostgreSQL cannot vacuum replaced rows, so
callers close it as soon as possible.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from limnos.store.sql import Query, Row


class SnapshotRows(Protocol):
    """A read transaction that is only read query by query."""

    async def rows(self, query: Query) -> list[Row]:
        """Read all rows of a query."""


class StoreSnapshot(SnapshotRows, Protocol):
    """A read transaction: all its reads are from one snapshot."""

    def pages(self, query: Query, size: int) -> AsyncGenerator[list[Row], None]:
        """Yield the rows of a query in pages of `size`, in the query's order.

        Other queries may run on the snapshot between two pages.
        """
