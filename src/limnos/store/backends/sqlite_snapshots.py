# SPDX-License-Identifier: Apache-2.0
"""Long read snapshots on SQLite: a read transaction on its own connection, in threads.

Must not know resources. While a snapshot is open, SQLite cannot checkpoint its write-ahead log beyond it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from limnos.store.backends.sqlite_errors import FAILURES, raise_read_error
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Query, Row


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
        while page := await asyncio.to_thread(cursor.fetchmany, size):
            yield page


@asynccontextmanager
async def sqlite_snapshot(path: Path) -> AsyncGenerator[StoreSnapshot, None]:
    """Open the file on a new read-only connection, in a transaction that begins now. Raises the errors of
    `read_error`.
    """
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM store").fetchall()  # a transaction's snapshot begins with its first read
            yield _SqliteSnapshot(connection)
        finally:
            # A query whose caller is gone may still run in its thread, and closing waits for it.
            connection.interrupt()
            await asyncio.shield(asyncio.to_thread(connection.close))
    except FAILURES as error:
        raise_read_error(error, path)
