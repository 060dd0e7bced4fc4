# SPDX-License-Identifier: Apache-2.0
"""The freshness gate's own connection on PostgreSQL: one query at a time, with as little overhead per query as libpq
allows.

Must not know statements; `read_connections` repeats a failed query on another connection. Every request waits for the
freshness gate, and both drivers need more time than the database itself. So this module sends a prepared statement
through psycopg's libpq, with one callback for the result.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from limnos.store.backends import APPLICATION
from limnos.store.backends.dead_peer_detection import MonitoredConnection
from limnos.store.sql import Params, Row, Sql, Value

CONNECT_S = 2.0
"""The least time limit for opening a connection, in seconds. `database.silence_s` extends it."""
KEPT_ALIVE: Final = {
    "application_name": APPLICATION,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""libpq's parameters for a connection, unless the store's URL sets them."""
_WHOLE: Final = frozenset({20, 21, 23})
"""The type numbers of PostgreSQL's integer types. Values of other types are read as strings."""
_FINE: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class GateConnection:
    """A connection that runs one query at a time."""

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._loop = asyncio.get_running_loop()
        self._socket = self._pg.socket
        self._names: dict[Sql, bytes] = {}
        self._response: asyncio.Future[pq.abc.PGresult] | None = None
        self._result: pq.abc.PGresult | None = None
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.is_closed = False
        self.monitor = MonitoredConnection(self.close, None)
        self._loop.add_reader(self._socket, self._read_input)

    @property
    def backend_pid(self) -> int:
        """The process id of the database's backend for this connection."""
        return self._pg.backend_pid

    async def rows(self, statement: Sql, params: Params, *, timeout_s: float) -> list[Row]:
        """Run a query and return its rows.

        Raises psycopg.Error, and TimeoutError after `timeout_s`, which also closes the connection; TypeError for a
        parameter that is not an integer or a list of integers.
        """
        name = self._names.get(statement)
        if name is None:
            name = b"limnos_%d" % len(self._names)
            text = statement.asyncpg.encode()  # libpq numbers its parameters, as asyncpg does
            await self._request(lambda: self._pg.send_prepare(name, text), timeout_s)
            self._names[statement] = name
        values = [_encode_param(value) for value in statement.values(params)]
        return _rows(await self._request(lambda: self._pg.send_query_prepared(name, values), timeout_s))

    async def _request(self, send: Callable[[], None], timeout_s: float) -> pq.abc.PGresult:
        """Send a message with `send`, and wait up to `timeout_s` seconds for the database's result.

        Raises psycopg.Error if the connection is closed or busy, or the database returns an error; TimeoutError.
        """
        if self.is_closed or self._response is not None:
            raise psycopg.OperationalError("the connection is closed" if self.is_closed else "a query is in progress")
        self._response = self._loop.create_future()
        self.monitor.since = time.monotonic()
        self._set_deadline(timeout_s)
        try:
            send()
            self._flush()
            gresult = await self._response
        finally:
            self._response = self.monitor.since = None
        if gresult.status not in _FINE:
            raise psycopg.errors.error_from_result(gresult)
        return gresult

    def _flush(self) -> None:
        """Send the output buffer. Data that the socket does not accept is sent when the socket is writable again."""
        left = self._pg.flush()
        if left:
            self._loop.add_writer(self._socket, self._resume_flush)

    def _resume_flush(self) -> None:
        self._loop.remove_writer(self._socket)
        try:
            self._flush()
        except psycopg.Error as error:
            self._end(error)

    def _read_input(self) -> None:
        """Read the received bytes. The database also sends data without a query, for example when it shuts down."""
        try:
            self._pg.consume_input()
            while not self._pg.is_busy():
                result = self._pg.get_result()
                if result is None:
                    self._settle()
                    return
                self._result = result
        except psycopg.Error as error:
            self._end(error)

    def _settle(self) -> None:
        gresult, self._result = self._result, None
        if self._pg.status != pq.ConnStatus.OK:
            self._end(psycopg.OperationalError("the database ended the connection"))
        elif gresult is not None and self._response is not None and not self._response.done():
            self._response.set_result(gresult)

    def _set_deadline(self, timeout_s: float) -> None:
        """Set the deadline of a query. One timer is reused for all queries: creating one costs measurable time."""
        self._until = self._loop.time() + timeout_s
        if self._timer is not None and self._timer.when() > self._until:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._until, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._response is None:
            return
        if self._until > self._loop.time():
            self._timer = self._loop.call_at(self._until, self._check_deadline)
        else:
            self._end(TimeoutError("the database did not answer in time"))

    def close(self) -> None:
        """Close the connection. A waiting query fails."""
        self._end(psycopg.OperationalError("the connection was closed"))

    def _end(self, error: Exception) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            if self._timer is not None:
                self._timer.cancel()
            self._pg.finish()
        if self._response is not None and not self._response.done():
            self._response.set_exception(error)


def connection_parameters(url: str, within_s: float) -> dict[str, Any]:
    """Return libpq's parameters for a connection that must open within `within_s` seconds, unless the URL says
    otherwise.
    """
    return KEPT_ALIVE | {"connect_timeout": math.ceil(within_s)} | conninfo_to_dict(url)


async def open_gate_connection(url: str, *, within_s: float = CONNECT_S) -> GateConnection:
    """Open the connection. Raises psycopg.OperationalError, and TimeoutError after `within_s` seconds."""
    parameters = connection_parameters(url, within_s) | {"client_encoding": "utf8"}
    async with asyncio.timeout(within_s):
        return GateConnection(await psycopg.AsyncConnection.connect(**parameters, autocommit=True))


def _encode_param(value: Value) -> bytes:
    """Encode a parameter for PostgreSQL: an integer or a list of integers. Raises TypeError for another type."""
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, list):
        return b"{%s}" % b",".join([b"%d" % each for each in value])
    raise TypeError(f"The parameter {value!r} is not an integer or a list of integers")


def _rows(result: pq.abc.PGresult) -> list[Row]:
    if result.ntuples == 0:
        return []
    columns = range(result.nfields)
    is_integer = [result.ftype(column) in _WHOLE for column in columns]
    return [
        tuple([_read(result.get_value(row, column), is_whole=is_integer[column]) for column in columns])
        for row in range(result.ntuples)
    ]


def _read(text: bytes | None, *, is_whole: bool) -> int | str | None:
    if text is None:
        return None
    return int(text) if is_whole else text.decode()
