"""Connections for writes on PostgreSQL: psycopg, in worker threads; each says when a statement is out, and can be cut.

May import this room. What a session is told at its beginning: how long to wait for a lock, and how soon the database's
side ends by itself when this one has gone away without a word, for it holds locks.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from limnos.store.asking import KEPT_ALIVE
from limnos.store.readers import BY_INDEX
from limnos.store.silence import Line

T = TypeVar("T")
LOCK_S = 10
"""So long a write waits for a lock; then its caller is told who is in the way."""
ABANDONED_S = 60
"""After so long without a word inside a transaction the database takes this node for gone."""
_SET = (
    f"SET lock_timeout = '{LOCK_S}s'; SET idle_in_transaction_session_timeout = '{ABANDONED_S}s';"
    " SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;"
)
_HELLO = "SELECT pg_backend_pid(), (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())"


class _Watched(psycopg.Connection):
    """A connection that notes since when it waits for an answer. All waiting goes through one method."""

    line: Line | None = None

    def wait(self, gen: Generator[Any, Any, T], *rest: Any, **named: Any) -> T:  # noqa: ANN401 - psycopg's own signature
        line = self.line
        if line is None:
            return super().wait(gen, *rest, **named)
        line.since = time.monotonic()
        try:
            return super().wait(gen, *rest, **named)
        finally:
            line.since = None


class WriteLine:
    """An open connection, its line, and a handle on its socket that stays good whatever the connection does."""

    def __init__(self, connection: psycopg.Connection, line: Line, handle: socket.socket) -> None:
        self.connection = connection
        self.line = line
        self.used_at = time.monotonic()
        self._handle = handle

    def close(self) -> None:
        """Disconnect."""
        self.connection.close()
        self._handle.close()


def open_line(url: str) -> WriteLine:
    """Connect. Raises psycopg.OperationalError."""
    connection = _Watched.connect(**(KEPT_ALIVE | conninfo_to_dict(url)), prepare_threshold=2)  # type: ignore[arg-type]
    try:
        handle = socket.socket(fileno=os.dup(connection.fileno()))
    except BaseException:
        connection.close()
        raise

    def cut() -> None:
        with suppress(OSError):
            handle.shutdown(socket.SHUT_RDWR)

    line = Line(cut, None)
    connection.line = line
    try:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.execute(_SET)
        connection.execute(f"SELECT {BY_INDEX}")
        pid, began = connection.execute(_HELLO).fetchone() or (None, None)
        connection.commit()
    except BaseException:
        handle.close()
        connection.close()
        raise
    if pid == connection.info.backend_pid and began is not None:
        line.backend = (pid, began)
    return WriteLine(connection, line, handle)
