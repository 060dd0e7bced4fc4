# SPDX-License-Identifier: Apache-2.0
"""Connections for reads on PostgreSQL: one for the freshness gate, and a few for loads.

Each query has a deadline or is monitored. Must not know resources. A read can be repeated safely: if its connection
fails, it is repeated once on a new connection before the caller gets an error.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import asyncpg
import psycopg

from limnos.model.errors import BadRequest
from limnos.store.backends.dead_peer_detection import DeadPeerDetector, MonitoredConnection
from limnos.store.backends.gate_connection import CONNECT_S, GateConnection, open_gate_connection
from limnos.store.backends.postgres_errors import LOST, NO_TEXT, raise_read_error
from limnos.store.sql import Params, Row, Sql
from limnos.store.time_sources import StoreTime

T = TypeVar("T")
ASK_S = 1.5
"""The time limit for the connection on which the database is asked about silent ones, in seconds."""
_PLANS = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
}
BY_INDEX = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in _PLANS.items())
"""Settings that make PostgreSQL use indexes. Every statement of the store has one to use.

A plan made while a table was small would otherwise scan the whole table, however large it has become, until the
database analyzes it again. One generic plan per statement is sufficient: for lists the database may otherwise plan each
time, which costs three times as much as the statement.
"""
_HELLO = (
    "SELECT pg_backend_pid(), (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()),"
    f" (extract(epoch FROM clock_timestamp()) * 1000)::bigint, {BY_INDEX}"
)
_HELLO_GATE = Sql(
    _HELLO.replace("(SELECT backend_start", "(SELECT (extract(epoch FROM backend_start) * 1000000)::bigint")
)
_YEAR_1970 = datetime(1970, 1, 1, tzinfo=UTC)
_NOW = Sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
_ACTIVE_BACKENDS = (
    "SELECT pid, backend_start FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
    " AND wait_event_type IS DISTINCT FROM 'Client'"
)
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY($1) AND usename = current_user"


class ReadConnection:
    """An asyncpg connection and its monitor."""

    def __init__(self, connection: asyncpg.Connection, backend: tuple[int, object] | None) -> None:
        self.connection = connection
        self.monitor = MonitoredConnection(connection.terminate, backend, only_reads=True)
        self.used_at = time.monotonic()

    async def rows(self, statement: Sql, params: Params, *, timeout_s: float | None = None) -> list[Row]:
        """Run a statement that returns rows. Without `timeout_s` it may run as long as the database executes it.

        Raises BadRequest for a zero byte in a parameter, TimeoutError, and asyncpg's errors.
        """
        self.monitor.since = time.monotonic()
        try:
            records = await self.connection.fetch(statement.asyncpg, *statement.values(params), timeout=timeout_s)
        except asyncpg.CharacterNotInRepertoireError:
            raise BadRequest(NO_TEXT) from None
        finally:
            self.monitor.since = None
        return [tuple(row) for row in records]

    async def execute(self, text: str) -> None:
        """Run a statement that returns nothing."""
        self.monitor.since = time.monotonic()
        try:
            await self.connection.execute(text)
        finally:
            self.monitor.since = None


async def _in_snapshot(read: Callable[[ReadConnection], Awaitable[T]], reader: ReadConnection) -> T:
    await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        result = await read(reader)
    except BadRequest:
        await reader.execute("ROLLBACK")
        raise
    await reader.execute("COMMIT")
    return result


class ReadConnections:
    """The connection of the freshness gate, and the connections for loads."""

    def __init__(self, url: str, *, connections_max: int, silence_s: float, time_of: StoreTime) -> None:
        self.url = url
        self.watch: DeadPeerDetector | None = None
        self._silence_s = silence_s
        self.connect_s = max(CONNECT_S, silence_s)
        """The time limit for opening a connection, in seconds."""
        self._time_of = time_of
        self._free = asyncio.Semaphore(connections_max)
        self._gate: GateConnection | None = None
        self._idle: list[ReadConnection] = []
        self._trusted_after = 0.0
        self._silent_at = -math.inf
        """When a new connection was last silent, by the monotonic clock."""

    @contextmanager
    def silence_limit(self, silence_s: float) -> Iterator[None]:
        """Wait up to `silence_s` seconds for the gate's answers and for new connections during the `with` block."""
        before = self._silence_s, self.connect_s
        self._silence_s, self.connect_s = silence_s, max(CONNECT_S, silence_s)
        try:
            yield
        finally:
            self._silence_s, self.connect_s = before

    async def gate(self, statement: Sql, params: Params) -> list[Row]:
        """Run the freshness gate's statement on its own connection, and once more on a new connection if that fails.

        It takes milliseconds, so a short deadline detects an unresponsive connection. If a new connection is
        unresponsive, too, another one would only make the callers wait longer. Raises the errors of `read_error`.
        """
        until = time.monotonic() + self._silence_s + self.connect_s
        for last in (False, True):
            is_new = False
            try:
                gate = self._gate
                if gate is None or gate.is_closed:
                    is_new = True
                    gate = self._gate = await self._open_gate()
                if self._time_of.is_old():
                    await self._learn_time(gate)
                allowed_s = min(2 * self._silence_s, until - time.monotonic()) if last else self._silence_s
                return await gate.rows(statement, params, timeout_s=allowed_s)
            except (psycopg.Error, OSError, TimeoutError) as error:
                self._drop_gate()
                is_silent = isinstance(error, (TimeoutError, psycopg.errors.ConnectionTimeout))
                if is_silent:
                    self.distrust()
                if last or (is_new and is_silent):
                    raise_read_error(error)
            except BaseException:
                self._drop_gate()
                raise
        raise AssertionError("the last try returns or raises")

    async def _open_gate(self) -> GateConnection:
        self._drop_gate()
        opened_by = time.monotonic() + self.connect_s
        gate = await open_gate_connection(self.url, within_s=self.connect_s)
        try:
            asked_at = time.monotonic()
            ((pid, began_us, now_ms, *_),) = await gate.rows(_HELLO_GATE, {}, timeout_s=opened_by - asked_at)
        except BaseException:
            gate.close()
            raise
        self._time_of.learn(now_ms, asked_at)
        if pid == gate.backend_pid and began_us is not None:
            gate.monitor.backend = (pid, _YEAR_1970 + timedelta(microseconds=began_us))
        if self.watch is not None:
            self.watch.add(gate.monitor)
        return gate

    def _drop_gate(self) -> None:
        if self._gate is not None:
            if self.watch is not None:
                self.watch.remove(self._gate.monitor)
            self._gate.close()
            self._gate = None

    async def load(self, read: Callable[[ReadConnection], Awaitable[T]]) -> T:
        """Run a read in one snapshot. If the connection was lost, retry it once from its start.

        Raises BadRequest for a zero byte in a parameter, else the errors of `read_error`.
        """
        return await self._retry_once(partial(_in_snapshot, read))

    async def find(self, statement: Sql, params: Params) -> list[Row]:
        """Run one statement. If the connection was lost, retry it once.

        Raises BadRequest for a zero byte in a parameter, else the errors of `read_error`.
        """
        return await self._retry_once(lambda reader: reader.rows(statement, params))

    async def _retry_once(self, read: Callable[[ReadConnection], Awaitable[T]]) -> T:
        async with self._free:
            for last in (False, True):
                try:
                    return await self._read_once(read)
                except LOST as error:
                    if last or time.monotonic() - self._silent_at < self.connect_s:
                        raise_read_error(error)
                except asyncpg.PostgresError as error:
                    raise_read_error(error)
        raise AssertionError("the last try returns or raises")

    async def _read_once(self, read: Callable[[ReadConnection], Awaitable[T]]) -> T:
        reader = self._take() or await self._connect()
        try:
            result = await read(reader)
        except BadRequest:
            self._return_connection(reader)
            raise
        except BaseException:
            self._close_connection(reader)
            raise
        self._return_connection(reader)
        return result

    def _take(self) -> ReadConnection | None:
        """Return an idle connection that was used after the last connection failure, or None."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.connection.is_closed() and connection.used_at > self._trusted_after:
                return connection
            self._close_connection(connection)
        return None

    def _return_connection(self, reader: ReadConnection) -> None:
        reader.used_at = time.monotonic()
        self._idle.append(reader)

    def _close_connection(self, reader: ReadConnection) -> None:
        if self.watch is not None:
            self.watch.remove(reader.monitor)
        reader.connection.terminate()

    def distrust(self) -> None:
        """Exclude the currently idle connections from reuse, because another connection does not respond."""
        self._trusted_after = time.monotonic()

    async def _open(self, *, timeout_s: float, command_timeout_s: float | None = None) -> asyncpg.Connection:
        """Open a connection. Raises asyncpg's errors, OSError, and TimeoutError if the database is silent."""
        try:
            return await asyncpg.connect(self.url, timeout=timeout_s, command_timeout=command_timeout_s)
        except TimeoutError:
            self._silent_at = time.monotonic()
            raise

    async def _connect(self) -> ReadConnection:
        connection = await self._open(timeout_s=self.connect_s)
        try:
            asked_at = time.monotonic()
            (hello,) = await connection.fetch(_HELLO, timeout=self.connect_s)
            self._time_of.learn(hello[2], asked_at)
            is_same_server = hello[0] == connection.get_server_pid() and hello[1] is not None
        except BaseException:
            connection.terminate()
            raise
        reader = ReadConnection(connection, (hello[0], hello[1]) if is_same_server else None)
        if self.watch is not None:
            self.watch.add(reader.monitor)
        return reader

    async def _learn_time(self, gate: GateConnection) -> None:
        asked_at = time.monotonic()
        ((now_ms,),) = await gate.rows(_NOW, {}, timeout_s=self._silence_s)
        self._time_of.learn(now_ms, asked_at)

    async def at_work(self) -> set[tuple[int, object]]:
        """Read the (process id, start time) pairs of database backends that are executing a statement, on a new
        connection.
        """
        connection = await self._open(timeout_s=ASK_S, command_timeout_s=CONNECT_S)
        try:
            return {(row[0], row[1]) for row in await connection.fetch(_ACTIVE_BACKENDS)}
        finally:
            connection.terminate()

    async def end(self, backends: list[int]) -> None:
        """Terminate the database's backend processes of closed connections, by process id."""
        connection = await asyncpg.connect(self.url, timeout=CONNECT_S, command_timeout=CONNECT_S)
        try:
            await connection.execute(_END, backends)
        finally:
            connection.terminate()

    def close(self) -> None:
        """Close every idle connection at once."""
        self._drop_gate()
        while self._idle:
            self._close_connection(self._idle.pop())
