"""The watch over connections: what is cut, what is left alone, on whose word."""

from __future__ import annotations

import asyncio
import time

from limnos.store.backends import dead_peer_detection
from limnos.store.backends.dead_peer_detection import DeadPeerDetector, MonitoredConnection

AT_WORK = (7, "then")


class Database:
    """A database that says what it is at work on, or can't be asked."""

    def __init__(self, *at_work: tuple[int, object], reachable: bool = True) -> None:
        self.found = set(at_work)
        self.reachable = reachable
        self.ended: list[int] = []
        self.asked = asyncio.Event()

    async def at_work(self) -> set[tuple[int, object]]:
        """Answer, if anybody comes through."""
        self.asked.set()
        if not self.reachable:
            raise OSError("no route")
        return self.found

    async def end(self, ghosts: list[int]) -> None:
        """Note what is ended."""
        self.ended += ghosts


def watched(database: Database, line: MonitoredConnection, *, distrusted: list[int]) -> None:
    """Let a watch look at a line on which a statement has been out for long, once."""

    async def story() -> None:
        watch = DeadPeerDetector(database.at_work, database.end, silence_s=0.001, on_cut=lambda: distrusted.append(1))
        watch.add(line)
        watch._look()
        assert watch._asking is not None
        await watch._asking
        await watch.stop()

    asyncio.run(story())


def line_out(cuts: list[str], *, backend: tuple[int, object] | None = AT_WORK, for_s: float = 5) -> MonitoredConnection:
    """A line whose statement has been out for so long."""
    line = MonitoredConnection(lambda: cuts.append("cut"), backend)
    line.since = time.monotonic() - for_s
    return line


def test_line_of_a_database_at_work_is_left_alone() -> None:
    """A statement that takes long is no silence, and it is asked about again only after another while."""
    cuts: list[str] = []
    line = line_out(cuts)

    watched(Database(AT_WORK), line, distrusted=[])

    assert cuts == []
    assert line.silent_s(time.monotonic()) < 5


def test_silent_line_is_cut_and_its_other_side_ended() -> None:
    """The database waits for us, and we for it: the line is cut, what rests is trusted no more, the locks are let
    go.
    """
    cuts: list[str] = []
    distrusted: list[int] = []
    database = Database((7, "earlier"))

    watched(database, line_out(cuts), distrusted=distrusted)

    assert (cuts, distrusted, database.ended) == (["cut"], [1], [7])


def test_unreachable_database_is_given_time() -> None:
    """As long as nobody can be asked only time tells: a short silence is borne, a long one is not."""
    short: list[str] = []
    long: list[str] = []

    watched(Database(reachable=False), line_out(short), distrusted=[])
    watched(Database(reachable=False), line_out(long, for_s=dead_peer_detection.UNKNOWN_STATE_S + 1), distrusted=[])

    assert (short, long) == ([], ["cut"])


def test_hidden_backend_is_given_time() -> None:
    """Behind a pooler nobody can tell which process is ours: none is ended, and the line is cut late."""
    short: list[str] = []
    long: list[str] = []
    database = Database(AT_WORK)

    watched(database, line_out(short, backend=None), distrusted=[])
    watched(database, line_out(long, backend=None, for_s=dead_peer_detection.UNKNOWN_STATE_S + 1), distrusted=[])

    assert (short, long, database.ended) == ([], ["cut"], [])


def test_line_without_a_statement_is_not_looked_at() -> None:
    """A connection that rests is not silent."""
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
