# SPDX-License-Identifier: Apache-2.0
"""Long read snapshots on PostgreSQL: a read-only transaction at REPEATABLE READ on its own connection.

Separate from `snapshots`, because its driver belongs to the extra `postgres`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

from limnos.store.backends.gate_connection import CONNECT_S
from limnos.store.backends.postgres_errors import raise_read_error
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Query, Row

_FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


class _PostgresSnapshot:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def rows(self, query: Query) -> list[Row]:
        statement, params = query
        records = await self._connection.fetch(statement.asyncpg, *statement.values(params))
        return [tuple(row) for row in records]

    async def pages(self, query: Query, size: int) -> AsyncGenerator[list[Row], None]:
        statement, params = query
        cursor = await self._connection.cursor(statement.asyncpg, *statement.values(params))
        while records := await cursor.fetch(size):
            yield [tuple(row) for row in records]


@asynccontextmanager
async def postgres_snapshot(url: str) -> AsyncGenerator[StoreSnapshot, None]:
    """Open a connection and a read-only transaction at REPEATABLE READ.

    Raises the errors of `read_error`, such as ServiceUnavailable if the database does not answer.
    """
    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_S)
    except _FAILURES as error:
        raise_read_error(error)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.fetch("SELECT 1 FROM store")
            yield _PostgresSnapshot(connection)
    except _FAILURES as error:
        raise_read_error(error)
    finally:
        connection.terminate()
