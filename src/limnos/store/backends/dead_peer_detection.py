# SPDX-License-Identifier: Apache-2.0
"""Dead-peer detection: finds connections on which the database no longer answers, and closes them.

Must not know drivers or SQL: callers provide the start time of the running statement and a function that closes the
connection, and functions that query and end the database's backends. If a cable, firewall or proxy fails, a socket can
stay open without a peer. A timeout cannot distinguish that from a long statement, so the detector checks on a new
connection whether the database is still executing the statement.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.store")
SILENT = Counter(
    "limnos_silent_connections_total",
    "Connections to the database that were closed because the database stopped responding.",
    (),
)
UNKNOWN_STATE_S = 10.0
"""The maximum time that a statement may run if the database does not report its state, in seconds."""


class MonitoredConnection:
    """A connection to the database whose response times the detector monitors.

    `backend` identifies the database's backend process; None behind a pooler, which hides it. `only_reads` means that
    its statements can be repeated.
    """

    __slots__ = ("backend", "cut", "heard_at", "only_reads", "since")

    def __init__(
        self, cut: Callable[[], None], backend: tuple[int, object] | None, *, only_reads: bool = False
    ) -> None:
        self.cut = cut
        self.backend = backend
        self.only_reads = only_reads
        self.since: float | None = None
        """When the running statement was sent, by the monotonic clock; None if none is running."""
        self.heard_at = 0.0

    def silent_s(self, now: float) -> float:
        """Return the seconds since the last sign of progress of the running statement."""
        since = self.since
        return 0.0 if since is None else now - max(since, self.heard_at)


class DeadPeerDetector:
    """Checks all monitored connections several times in each `silence_s` seconds, the time without progress after which
    a connection is suspect. Connections may be added from any thread.
    """

    def __init__(
        self,
        at_work: Callable[[], Awaitable[set[tuple[int, object]]]],
        end: Callable[[list[int]], Awaitable[None]],
        *,
        silence_s: float,
        on_cut: Callable[[], None],
    ) -> None:
        self._at_work = at_work
        self._end = end
        self._silence_s = silence_s
        self._on_cut = on_cut
        self._connections: set[MonitoredConnection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None

    @contextmanager
    def silence_limit(self, silence_s: float) -> Iterator[None]:
        """Suspect a connection only after `silence_s` seconds during the `with` block."""
        before, self._silence_s = self._silence_s, silence_s
        try:
            yield
        finally:
            self._silence_s = before
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
                self.start()

    def add(self, connection: MonitoredConnection) -> None:
        """Monitor a connection from now on."""
        self._connections.add(connection)

    def remove(self, connection: MonitoredConnection) -> None:
        """Stop monitoring a connection that was closed."""
        self._connections.discard(connection)

    def start(self) -> None:
        """Start the checks on the running event loop. No-op if they are running."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._silence_s / 3, self._look)

    async def stop(self) -> None:
        """Stop the checks."""
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    def cut_all(self) -> None:
        """Close every connection with a running statement, since no caller waits for its result anymore."""
        for connection in tuple(self._connections):
            if connection.since is not None:
                connection.cut()

    def _look(self) -> None:
        self._timer = None
        self.start()  # first, so that an error below does not end the checks
        now = time.monotonic()
        silent = [connection for connection in tuple(self._connections) if connection.silent_s(now) > self._silence_s]
        if silent and (self._asking is None or self._asking.done()):
            self._asking = asyncio.get_running_loop().create_task(self._check_backends(silent))

    async def _check_backends(self, silent: Iterable[MonitoredConnection]) -> None:
        """Close the unresponsive connections except those whose statement the database is still executing.

        If the database does not report its state, a connection is closed only after `UNKNOWN_STATE_S`. If it is silent
        on a new connection, too, connections that only read are closed at once: their callers need not wait.
        """
        sent_at = {connection: connection.since for connection in silent}
        is_silent = False
        try:
            at_work: set[tuple[int, object]] | None = await self._at_work()
        except Exception as error:  # noqa: BLE001 - its state is unknown: `UNKNOWN_STATE_S` decides
            log.warning("the database cannot be queried about a silent connection", error=str(error) or repr(error))
            at_work, is_silent = None, isinstance(error, TimeoutError)
        now = time.monotonic()
        abandoned_backends = []
        for connection, since in sent_at.items():
            if since is None or connection.since != since:
                continue  # it was answered in the meantime
            if at_work is None or connection.backend is None:
                if now - since < UNKNOWN_STATE_S and not (is_silent and connection.only_reads):
                    continue
            elif connection.backend in at_work:
                connection.heard_at = now
                continue
            self._cut(connection, now - since)
            if at_work is not None and connection.backend is not None:
                abandoned_backends.append(connection.backend[0])
        if abandoned_backends:
            await self._end_abandoned_backends(abandoned_backends)

    def _cut(self, connection: MonitoredConnection, silent_s: float) -> None:
        SILENT[()] += 1
        log.warning("a connection to the database stopped responding and is closed", silent_s=round(silent_s, 1))
        self._on_cut()
        connection.cut()

    async def _end_abandoned_backends(self, abandoned_backends: list[int]) -> None:
        """End the database's backend processes of closed connections, since they may still hold locks."""
        try:
            await self._end(abandoned_backends)
        except Exception as error:  # noqa: BLE001 - the database ends them itself, later
            log.warning("the server process of a silent connection could not be ended", error=str(error) or repr(error))
