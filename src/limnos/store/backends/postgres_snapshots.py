# SPDX-License-Identifier: Apache-2.0
"""Long read snapshots on PostgreSQL: a read-only transaction at REPEATABLE READ on its own connection.

Separate from `snapshots`, because its driver belongs to the extra `postgres`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import asyncpg

from limnos.store.backends.dead_peer_detection import DeadPeerDetector, MonitoredConnection
from limnos.store.backends.gate_connection import CONNECT_S
from limnos.store.backends.postgres_errors import LOST, raise_read_error
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Query, Row

_FAILURES = (asyncpg.PostgresError, *LOST)


_BACKEND = (
    "SELECT pg_backend_pid(), (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()) FROM store"
)


class _PostgresSnapshot:
    def __init__(self, connection: asyncpg.Connection, monitor: MonitoredConnection) -> None:
        self._connection = connection
        self._monitor = monitor

    async def rows(self, query: Query) -> list[Row]:
        statement, params = query
        with self._running():
            records = await self._connection.fetch(statement.asyncpg, *statement.values(params))
        return [tuple(row) for row in records]

    async def pages(self, query: Query, size: int) -> AsyncGenerator[list[Row], None]:
        statement, params = query
        with self._running():
            cursor = await self._connection.cursor(statement.asyncpg, *statement.values(params))
        while True:
            with self._running():
                records = await cursor.fetch(size)
            if not records:
                return
            yield [tuple(row) for row in records]

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Tell the detector of dead peers that a statement runs in the body of a `with`."""
        self._monitor.since = time.monotonic()
        try:
            yield
        finally:
            self._monitor.since = None


@asynccontextmanager
async def postgres_snapshot(url: str, watch: DeadPeerDetector) -> AsyncGenerator[StoreSnapshot, None]:
    """Open a connection and a read-only transaction at REPEATABLE READ. `watch` closes the connection if the database
    does not answer.

    Raises the errors of `read_error`, such as ServiceUnavailable if the database does not answer.
    """
    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_S)
    except _FAILURES as error:
        raise_read_error(error)
    monitor: MonitoredConnection | None = None
    try:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", timeout=CONNECT_S)
        (pid, started_at), *_ = await connection.fetch(_BACKEND, timeout=CONNECT_S)
        is_known = pid == connection.get_server_pid() and started_at is not None
        monitor = MonitoredConnection(connection.terminate, (pid, started_at) if is_known else None, only_reads=True)
        watch.add(monitor)
        yield _PostgresSnapshot(connection, monitor)
        with suppress(*_FAILURES):
            await connection.close(timeout=CONNECT_S)  # ends the transaction, too
    except _FAILURES as error:
        raise_read_error(error)
    finally:
        if monitor is not None:
            watch.remove(monitor)
        connection.terminate()
