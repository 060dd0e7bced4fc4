# SPDX-License-Identifier: Apache-2.0
"""Dead-peer detection of database connections: which connections are closed, and which are not."""

from __future__ import annotations

import asyncio
import time

from limnos.store.backends import dead_peer_detection
from limnos.store.backends.dead_peer_detection import DeadPeerDetector, MonitoredConnection

AT_WORK = (7, "then")


class Database:
    """A fake database that reports the backends at work, or is unreachable."""

    def __init__(self, *at_work: tuple[int, object], error: Exception | None = None) -> None:
        self.found = set(at_work)
        self.error = error
        self.ended: list[int] = []
        self.asked = asyncio.Event()

    async def at_work(self) -> set[tuple[int, object]]:
        """Return the backends at work. Raises an error if the database is unreachable."""
        self.asked.set()
        if self.error is not None:
            raise self.error
        return self.found

    async def end(self, ghosts: list[int]) -> None:
        """Record a backend that is terminated."""
        self.ended += ghosts


def watched(database: Database, line: MonitoredConnection, *, distrusted: list[int]) -> None:
    """Run the check once for a connection on which a statement has been running for long."""

    async def story() -> None:
        watch = DeadPeerDetector(database.at_work, database.end, silence_s=0.001, on_cut=lambda: distrusted.append(1))
        watch.add(line)
        watch._look()
        assert watch._asking is not None
        await watch._asking
        await watch.stop()

    asyncio.run(story())


def line_out(
    cuts: list[str], *, backend: tuple[int, object] | None = AT_WORK, for_s: float = 5, only_reads: bool = False
) -> MonitoredConnection:
    """Return a connection on which a statement has been running for this long."""
    line = MonitoredConnection(lambda: cuts.append("cut"), backend, only_reads=only_reads)
    line.since = time.monotonic() - for_s
    return line


def test_connection_with_a_working_backend_is_not_closed() -> None:
    """A connection whose backend is at work is not closed, however long the statement takes. The check asks about it
    again after another interval.
    """
    cuts: list[str] = []
    line = line_out(cuts)

    watched(Database(AT_WORK), line, distrusted=[])

    assert cuts == []
    assert line.silent_s(time.monotonic()) < 5


def test_dead_connection_is_closed_and_its_backend_terminated() -> None:
    """If the backend waits for the client while the client waits for it, the connection is closed, idle connections are
    distrusted, and the backend is terminated, which releases its locks.
    """
    cuts: list[str] = []
    distrusted: list[int] = []
    database = Database((7, "earlier"))

    watched(database, line_out(cuts), distrusted=distrusted)

    assert (cuts, distrusted, database.ended) == (["cut"], [1], [7])


def test_unreachable_database_has_a_longer_timeout() -> None:
    """While the database is unreachable, a connection is closed only after a longer time of silence."""
    short: list[str] = []
    long: list[str] = []

    for only_reads in (False, True):
        watched(Database(error=OSError("no route")), line_out(short, only_reads=only_reads), distrusted=[])
    watched(
        Database(error=OSError("no route")),
        line_out(long, for_s=dead_peer_detection.UNKNOWN_STATE_S + 1),
        distrusted=[],
    )

    assert (short, long) == ([], ["cut"])


def test_reads_of_a_silent_database_are_ended_at_once() -> None:
    """If the database is silent on a new connection, too, a connection that only reads is closed; a write may still be
    carried out, so its connection waits longer.
    """
    reads: list[str] = []
    writes: list[str] = []

    watched(Database(error=TimeoutError()), line_out(reads, only_reads=True), distrusted=[])
    watched(Database(error=TimeoutError()), line_out(writes), distrusted=[])

    assert (reads, writes) == (["cut"], [])


def test_backend_behind_a_pooler_has_a_longer_timeout() -> None:
    """Behind a pooler, where the backend is unknown, no backend is terminated and the connection is closed only after a
    longer time.
    """
    short: list[str] = []
    long: list[str] = []
    database = Database(AT_WORK)

    watched(database, line_out(short, backend=None), distrusted=[])
    watched(database, line_out(long, backend=None, for_s=dead_peer_detection.UNKNOWN_STATE_S + 1), distrusted=[])

    assert (short, long, database.ended) == ([], ["cut"], [])


def test_connection_without_a_statement_is_not_checked() -> None:
    """A connection without a running statement is not checked."""
    cuts: list[str] = []

    async def story() -> bool:
        database = Database()
        watch = DeadPeerDetector(database.at_work, database.end, silence_s=0.001, on_cut=lambda: None)
        watch.add(MonitoredConnection(lambda: cuts.append("cut"), AT_WORK))
        watch._look()
        watch.cut_all()
        await watch.stop()
        return database.asked.is_set()

    assert asyncio.run(story()) is False
    assert cuts == []
