"""The executor's loop without Spark: it leases, executes, renews, reports, and ends when idle."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from limnos.client.errors import UnavailableError
from limnos.client.operation.maintenance_values import LeasedOperation, LeasedOperations
from limnos.spark.maintenance import executor as room
from limnos.spark.maintenance.executor import DONE, MaintenanceExecutor, OperationEnd
from limnos.spark.maintenance.outcomes import error_text


@dataclass
class FakeServer:
    """A server with operations that wait."""

    waiting: list[int]
    lost: set[int] = field(default_factory=set)
    reports: dict[int, tuple[str, str]] = field(default_factory=dict)
    renewals: int = 0
    silent: int = 0
    refusal: UnavailableError = field(default_factory=lambda: UnavailableError("away", status=503))
    unreported: int = 0
    lease_s: int = 0

    def lease(self, holder: str, *, limit: int) -> LeasedOperations:
        """Give the next operations."""
        assert holder
        if self.silent:
            self.silent -= 1
            raise self.refusal
        given, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return LeasedOperations(
            self.lease_s, tuple([LeasedOperation(each, "compact", "main", ("a", "t"), "lim_1_x") for each in given])
        )

    def renew(self, holder: str, operations: tuple[int, ...]) -> tuple[int, ...]:
        """Say which are lost."""
        self.renewals += 1
        return tuple(sorted(self.lost & set(operations)))

    def report(self, holder: str, operation: int, *, outcome: str, text: str) -> bool:
        """Note an end."""
        if self.unreported:
            self.unreported -= 1
            raise UnavailableError("no server answers")
        self.reports[operation] = (outcome, text)
        return operation not in self.lost


@dataclass
class FakeRunner:
    """Carries out at once; what has a bar waits until it is cancelled."""

    bars: dict[int, threading.Event] = field(default_factory=dict)
    closed: bool = False
    ran: list[int] = field(default_factory=list)

    def run(self, operation: LeasedOperation) -> OperationEnd:
        """Carry out."""
        self.ran.append(operation.operation)
        if operation.operation < 0:
            raise ValueError("odd")
        if bar := self.bars.get(operation.operation):
            assert bar.wait(300)
        return OperationEnd(DONE, "3 files became 1")

    def cancel(self, operation: int) -> None:
        """Raise the bar."""
        self.bars[operation].set()

    def close(self) -> None:
        """Note the end."""
        self.closed = True


def executor(server: FakeServer, runner: FakeRunner, *, idle_s: float = 0.0) -> MaintenanceExecutor:
    """An executor whose pauses take no time."""
    return MaintenanceExecutor(server, runner, threads=2, idle_s=idle_s, poll_s=0.01, sleep=lambda _: None)


def test_all_that_waits_is_carried_out() -> None:
    """Operations are carried out and reported; then the executor is idle and ends."""
    server, runner = FakeServer([1, 2, 3, 4, 5]), FakeRunner()
    summary = executor(server, runner).run()

    assert (summary.ended, sorted(server.reports), runner.closed) == ({"done": 5}, [1, 2, 3, 4, 5], True)


def test_each_end_is_shown() -> None:
    """Each operation that ended is shown, with its outcome and text."""
    ends: list[tuple[int, str, str]] = []

    def show(operation: int, end: OperationEnd) -> None:
        ends.append((operation, end.outcome, end.text))

    server = FakeServer([-1, 2])
    MaintenanceExecutor(server, FakeRunner(), idle_s=0.0, poll_s=0.01, sleep=lambda _: None, show_end=show).run()

    assert sorted(ends) == [(-1, "failed", "ValueError: odd"), (2, "done", "3 files became 1")]


def test_nothing_to_do() -> None:
    """Nothing is run, so no Spark starts."""
    runner = FakeRunner()

    assert (executor(FakeServer([]), runner).run().ended, runner.ran) == ({}, [])


def test_an_error_fails_one_operation() -> None:
    """The others go on."""
    server = FakeServer([-1, 2])
    executor(server, FakeRunner()).run()

    assert server.reports == {-1: ("failed", "ValueError: odd"), 2: ("done", "3 files became 1")}


def test_a_lost_lease_stops_its_operation() -> None:
    """The server's word that a lease is lost cancels what runs, and the executor ends all the same."""
    server, runner = FakeServer([7], lost={7}), FakeRunner({7: threading.Event()})
    summary = executor(server, runner).run()

    assert (server.renewals > 0, runner.bars[7].is_set(), server.reports) == (True, True, {})
    assert (summary.ended, "cancelled" in summary.texts["lost"]) == ({"lost": 1}, True)


def test_a_server_that_is_away() -> None:
    """It is asked again."""
    server = FakeServer([1], silent=2)
    clock = iter(range(1000))
    MaintenanceExecutor(
        server, FakeRunner(), threads=2, idle_s=50, poll_s=0.01, clock=lambda: float(next(clock)), sleep=lambda _: None
    ).run()

    assert server.reports == {1: ("done", "3 files became 1")}


def ticking(server: FakeServer, *, idle_s: float = 3.0) -> MaintenanceExecutor:
    """An executor whose clock goes on by a second with each look at it."""
    clock = iter(range(10_000))
    return MaintenanceExecutor(
        server,
        FakeRunner(),
        threads=2,
        idle_s=idle_s,
        poll_s=0.01,
        clock=lambda: float(next(clock)),
        sleep=lambda _: None,
    )


def test_a_server_that_restarts() -> None:
    """An executor that was answered before outlives it: neither its idle time passes, nor is a report lost."""
    server = FakeServer([1], refusal=UnavailableError("no server answers"), unreported=3, lease_s=60)
    running = ticking(server)
    assert running.run().ended == {"done": 1}
    assert server.reports == {1: ("done", "3 files became 1")}

    server.waiting, server.silent = [2], 20
    assert running.run().ended == {"done": 2}


def test_a_server_that_never_answers() -> None:
    """Its address may be wrong: the executor says so at once. One that stays away is given up after a while."""
    server = FakeServer([1], silent=1_000, refusal=UnavailableError("no server answers"))
    with pytest.raises(UnavailableError):
        ticking(server).run()
    assert server.silent == 999

    server.silent = 0
    running = ticking(server)
    running.run()
    server.silent = 1_000
    with pytest.raises(UnavailableError):
        running.run()
    assert server.silent > 500


def test_a_server_that_is_away_after_a_long_operation() -> None:
    """The time of the absence counts, not the time since the last lease: no lease is asked for while all are busy."""
    server = FakeServer([1, 2])
    clock = [0.0]

    class LongRunner(FakeRunner):
        def run(self, operation: LeasedOperation) -> OperationEnd:
            clock[0] += 2 * room.AWAY_S
            server.silent, server.refusal = 3, UnavailableError("no server answers")
            return super().run(operation)

    MaintenanceExecutor(
        server, LongRunner(), threads=1, idle_s=0, poll_s=0.01, clock=lambda: clock[0], sleep=lambda _: None
    ).run()

    assert sorted(server.reports) == [1, 2]


def test_it_ends_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of its Java grows with each operation: what is left waits for the next executor."""
    monkeypatch.setattr(room, "OPERATIONS_MAX", 3)
    server = FakeServer(list(range(1, 20)))
    summary = executor(server, FakeRunner()).run()

    assert 3 <= summary.count <= 4
    assert server.waiting


def test_no_token_in_texts() -> None:
    """Neither an operation's representation nor an error's text has a token."""
    leased = LeasedOperation(1, "compact", "main", ("a", "t"), "lim_7_secret")

    assert "secret" not in f"{leased} {leased!r}"
    assert error_text(ValueError("header lim_7_secret refused")) == "ValueError: header a token refused"
