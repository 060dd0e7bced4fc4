# SPDX-License-Identifier: Apache-2.0
"""Connections for writes on PostgreSQL: psycopg in worker threads, each monitored, and closed if the database stops
answering.

Must not know resources. A new session sets its lock timeout, and the time after which the database ends a session whose
client has vanished, since that session may hold locks.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, TypeVar

import psycopg

from limnos.store.backends.dead_peer_detection import MonitoredConnection
from limnos.store.backends.gate_connection import connection_parameters
from limnos.store.backends.read_connections import BY_INDEX

T = TypeVar("T")
LOCK_S = 10
"""The maximum time that a write waits for a lock, in seconds. After that its caller gets an error with the reason."""
ABANDONED_S = 60
"""The idle time inside a transaction after which the database ends the session, in seconds."""
_SET = (
    f"SET lock_timeout = '{LOCK_S}s'; SET idle_in_transaction_session_timeout = '{ABANDONED_S}s';"
    " SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;"
)
_HELLO = "SELECT pg_backend_pid(), (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())"


class _TimedConnection(psycopg.Connection):
    """A connection that records when it began to wait for a response. psycopg waits for responses only in the
    overridden method `wait`.
    """

    monitor: MonitoredConnection | None = None

    def wait(self, gen: Generator[Any, Any, T], *rest: Any, **named: Any) -> T:  # noqa: ANN401 - psycopg's own signature
        monitor = self.monitor
        if monitor is None:
            return super().wait(gen, *rest, **named)
        monitor.since = time.monotonic()
        try:
            return super().wait(gen, *rest, **named)
        finally:
            monitor.since = None


class WriteConnection:
    """An open connection, its monitor, and a duplicate of its socket that stays valid if the connection closes its
    own.
    """

    def __init__(self, connection: psycopg.Connection, monitor: MonitoredConnection, handle: socket.socket) -> None:
        self.connection = connection
        self.monitor = monitor
        self.used_at = time.monotonic()
        self._handle = handle

    def close(self) -> None:
        """Close the connection and the duplicate of its socket."""
        self.connection.close()
        self._handle.close()


def open_write_connection(url: str, *, within_s: float) -> WriteConnection:
    """Open the connection. Raises psycopg.OperationalError, also if it is not open after `within_s` seconds."""
    connection = _TimedConnection.connect(**connection_parameters(url, within_s), prepare_threshold=2)
    try:
        handle = socket.socket(fileno=os.dup(connection.fileno()))
    except BaseException:
        connection.close()
        raise

    def cut() -> None:
        with suppress(OSError):
            handle.shutdown(socket.SHUT_RDWR)

    monitor = MonitoredConnection(cut, None)
    connection.monitor = monitor
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
        monitor.backend = (pid, began)
    return WriteConnection(connection, monitor, handle)
