"""Long read snapshots: a read transaction on its own connection, read page by page.

May import this package. Must not know resources. It serves large reads, such as an export; requests use the view and
loads. While a snapshot is open, SQLite cannot checkpoint its write-ahead log beyond it, and PostgreSQL cannot vacuum
replaced rows, so callers close it as soon as possible.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Protocol

from limnos.store.sql import Query, Row


class StoreSnapshot(Protocol):
    """A read transaction: all its reads are from one snapshot."""

    async def rows(self, query: Query) -> list[Row]:
        """Read all rows of a query."""

    def pages(self, query: Query, size: int) -> AsyncGenerator[list[Row], None]:
        """Yield the rows of a query in pages of `size`, in the query's order.

        Other queries may run on the snapshot between two pages.
        """


class _SqliteSnapshot:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def rows(self, query: Query) -> list[Row]:
        statement, params = query
        cursor = await asyncio.to_thread(self._connection.execute, statement.sqlite, statement.values(params))
        return await asyncio.to_thread(cursor.fetchall)

    async def pages(self, query: Query, size: int) -> AsyncGenerator[list[Row], None]:
        statement, params = query
        cursor = await asyncio.to_thread(self._connection.execute, statement.sqlite, statement.values(params))
        while to_thread := await asyncio.to_thread(cursor.fetchmany, size):
            yield to_thread


@asynccontextmanager
async def sqlite_snapshot(path: Path) -> AsyncGenerator[StoreSnapshot, None]:
    """Open the file on a new read-only connection, in a transaction that begins now."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM store").fetchall()  # a transaction's snapshot begins with its first read
        yield _SqliteSnapshot(connection)
