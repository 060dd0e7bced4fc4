"""Connections for reads on PostgreSQL: the gate's own, and a few for loads; each question has a deadline or is watched.

May import `model` and this room. A read changes nothing, so one whose connection died, or fell silent, is asked once
more on a fresh connection before anybody hears of it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

import asyncpg

from limnos.model.errors import BadRequest
from limnos.store.silence import Line
from limnos.store.trouble import LOST, NO_TEXT, unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limnos.store.silence import Watch
    from limnos.store.sql import Params, Row, Sql
    from limnos.store.times import StoreTime

T = TypeVar("T")
CONNECT_S = 2.0
"""How long a new connection may take to come about."""
BY_INDEX = ", ".join(f"set_config('enable_{way}', 'off', false)" for way in ("seqscan", "hashjoin", "mergejoin"))
"""Every statement of the room has an index to go by. A table that was small when its plan was made is else read whole by
it, however large it has become, until the database next analyzes it."""
_HELLO = (
    "SELECT pg_backend_pid(), (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()),"
    f" (extract(epoch FROM clock_timestamp()) * 1000)::bigint, {BY_INDEX}"
)
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_AT_WORK = (
    "SELECT pid, backend_start FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
    " AND wait_event_type IS DISTINCT FROM 'Client'"
)
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY($1) AND usename = current_user"


class Reader:
    """An asyncpg connection and its line."""

    def __init__(self, connection: asyncpg.Connection, backend: tuple[int, object] | None) -> None:
        self.connection = connection
        self.line = Line(connection.terminate, backend)
        self.used_at = time.monotonic()

    async def rows(self, statement: Sql, params: Params, *, timeout_s: float | None = None) -> list[Row]:
        """Run a statement that returns rows. Without a timeout it takes as long as the database is at work on it."""
        self.line.since = time.monotonic()
        try:
            found = await self.connection.fetch(statement.asyncpg, *statement.values(params), timeout=timeout_s)
        except asyncpg.CharacterNotInRepertoireError:
            raise BadRequest(NO_TEXT) from None
        finally:
            self.line.since = None
        return [tuple(row) for row in found]

    async def execute(self, text: str) -> None:
        """Run a statement that returns nothing."""
        self.line.since = time.monotonic()
        try:
            await self.connection.execute(text)
        finally:
            self.line.since = None


class Readers:
    """The gate's connection and those of the loads."""

    def __init__(self, url: str, *, connections_max: int, silence_s: float, time_of: StoreTime) -> None:
        self.url = url
        self.watch: Watch | None = None
        self._silence_s = silence_s
        self._time_of = time_of
        self._free = asyncio.Semaphore(connections_max)
        self._gate: Reader | None = None
        self._idle: list[Reader] = []
        self._trusted_after = 0.0

    async def gate(self, statement: Sql, params: Params) -> list[Row]:
        """Ask the gate's question on the gate's connection: it takes milliseconds, so silence is soon told from work."""
        for last in (False, True):
            try:
                if self._gate is None or self._gate.connection.is_closed():
                    self._drop_gate()
                    self._gate = await self._connect()
                if self._time_of.is_old():
                    await self._learn_time(self._gate)
                return await self._gate.rows(statement, params, timeout_s=self._silence_s * (2 if last else 1))
            except BadRequest:
                raise
            except LOST as error:
                self._drop_gate()
                if isinstance(error, TimeoutError):
                    self.distrust()
                if last:
                    raise unreachable(error) from error
            except BaseException:
                self._drop_gate()
                raise
        raise AssertionError("the last try returns or raises")

    def _drop_gate(self) -> None:
        if self._gate is not None:
            self._throw_away(self._gate)
            self._gate = None

    async def load(self, read: Callable[[Reader], Awaitable[T]]) -> T:
        """Run a read in one snapshot; once more, from its start, when the connection was lost under it."""
        async with self._free:
            for last in (False, True):
                try:
                    return await self._load_once(read)
                except LOST as error:
                    if last:
                        raise unreachable(error) from error
        raise AssertionError("the last try returns or raises")

    async def _load_once(self, read: Callable[[Reader], Awaitable[T]]) -> T:
        reader = self._take() or await self._connect()
        try:
            await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                found = await read(reader)
            except BadRequest:
                await reader.execute("ROLLBACK")
                self._give_back(reader)
                raise
            await reader.execute("COMMIT")
        except BadRequest:
            raise
        except BaseException:
            self._throw_away(reader)
            raise
        self._give_back(reader)
        return found

    def _take(self) -> Reader | None:
        """Take a connection that rested, but none that rested when another one was found silent."""
        while self._idle:
            found = self._idle.pop()
            if not found.connection.is_closed() and found.used_at > self._trusted_after:
                return found
            self._throw_away(found)
        return None

    def _give_back(self, reader: Reader) -> None:
        reader.used_at = time.monotonic()
        self._idle.append(reader)

    def _throw_away(self, reader: Reader) -> None:
        if self.watch is not None:
            self.watch.remove(reader.line)
        reader.connection.terminate()

    def distrust(self) -> None:
        """A connection was found silent: use none that rests since before now."""
        self._trusted_after = time.monotonic()

    async def _connect(self) -> Reader:
        connection = await asyncpg.connect(self.url, timeout=CONNECT_S)
        try:
            asked_at = time.monotonic()
            (hello,) = await connection.fetch(_HELLO, timeout=CONNECT_S)
            self._time_of.learn(hello[2], asked_at)
            known = hello[0] == connection.get_server_pid() and hello[1] is not None
        except BaseException:
            connection.terminate()
            raise
        reader = Reader(connection, (hello[0], hello[1]) if known else None)
        if self.watch is not None:
            self.watch.add(reader.line)
        return reader

    async def _learn_time(self, reader: Reader) -> None:
        asked_at = time.monotonic()
        self._time_of.learn(await reader.connection.fetchval(_NOW, timeout=self._silence_s), asked_at)

    async def at_work(self) -> set[tuple[int, object]]:
        """Ask on a fresh connection which of the database's own processes are at work."""
        connection = await asyncpg.connect(self.url, timeout=CONNECT_S, command_timeout=CONNECT_S)
        try:
            return {(row[0], row[1]) for row in await connection.fetch(_AT_WORK)}
        finally:
            connection.terminate()

    async def end(self, backends: list[int]) -> None:
        """End the database's side of connections that were cut."""
        connection = await asyncpg.connect(self.url, timeout=CONNECT_S, command_timeout=CONNECT_S)
        try:
            await connection.execute(_END, backends)
        finally:
            connection.terminate()

    def close(self) -> None:
        """Let go of every connection that nobody uses, at once."""
        self._drop_gate()
        while self._idle:
            self._throw_away(self._idle.pop())
