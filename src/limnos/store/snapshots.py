"""One moment of the store that is read for a while: a read transaction on a connection of its own, page by page.

May import this room. For whoever reads much at once, such as an export: requests use the view and the loads. As long as one
is open SQLite's log is not copied back past it, and PostgreSQL keeps rows that were replaced since; so who opens one closes it soon.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from limnos.store.sql import Query, Row


class StoreSnapshot(Protocol):
    """A read transaction: whatever is read in it is of one moment."""

    async def rows(self, query: Query) -> list[Row]:
        """Read all rows of a statement."""
        ...

    def pages(self, query: Query, size: int) -> AsyncGenerator[list[Row], None]:
        """Read the rows of a statement so many at once, in the statement's order; others may be read meanwhile."""
        ...


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
        while found := await asyncio.to_thread(cursor.fetchmany, size):
            yield found


@asynccontextmanager
async def sqlite_snapshot(path: Path) -> AsyncGenerator[StoreSnapshot, None]:
    """Open the file once more, for reading, in a transaction that begins now."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM store").fetchall()  # a transaction's moment is that of its first read
        yield _SqliteSnapshot(connection)
