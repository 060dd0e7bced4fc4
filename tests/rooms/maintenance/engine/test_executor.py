# SPDX-License-Identifier: Apache-2.0
"""The executor's loop without Spark: it leases, executes, renews, reports, and ends when idle."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from itertools import count, pairwise

import pytest

from limnos.client.errors import UnavailableError
from limnos.client.operation.maintenance_values import LeasedOperation, LeasedOperations
from limnos.rooms.maintenance.engine import executor as room
from limnos.rooms.maintenance.engine.executor import DONE, MaintenanceExecutor, OperationEnd
from limnos.rooms.maintenance.engine.outcomes import error_text


@dataclass(kw_only=True)
class FakeServer:
    """A server with waiting operations."""

    waiting: list[int]
    lost: set[int] = field(default_factory=set)
    reports: dict[int, tuple[str, str]] = field(default_factory=dict)
    renewals: int = 0
    silent: int = 0
    refusal: UnavailableError = field(default_factory=lambda: UnavailableError("away", status=503))
    unreported: int = 0
    lease_s: int = 0

    def lease(self, holder: str, *, limit: int) -> LeasedOperations:
        """Lease the next operations."""
        assert holder
        if self.silent:
            self.silent -= 1
            raise self.refusal
        leased_ids, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return LeasedOperations(
            self.lease_s,
            tuple(
                [
                    LeasedOperation(operation=each, kind="compact", catalog="main", path=("a", "t"), token="lim_1_x")
                    for each in leased_ids
                ]
            ),
        )

    def renew(self, holder: str, operations: tuple[int, ...]) -> tuple[int, ...]:
        """Return which leases are lost."""
        self.renewals += 1
        return tuple(sorted(self.lost & set(operations)))

    def report(self, holder: str, operation: int, *, outcome: str, text: str) -> bool:
        """Record the end of an operation."""
        if self.unreported:
            self.unreported -= 1
            raise UnavailableError("no server answers")
        self.reports[operation] = (outcome, text)
        return operation not in self.lost


@dataclass
class FakeRunner:
    """A runner that ends at once; operations with a `bar` wait until they are cancelled."""

    bars: dict[int, threading.Event] = field(default_factory=dict)
    closed: bool = False
    ran: list[int] = field(default_factory=list)

    def run(self, operation: LeasedOperation) -> OperationEnd:
        """Execute an operation."""
        self.ran.append(operation.operation)
        if operation.operation < 0:
            raise ValueError("odd")
        if bar := self.bars.get(operation.operation):
            assert bar.wait(300)
        return OperationEnd(DONE, "3 files became 1")

    def cancel(self, operation: int) -> None:
        """Cancel a waiting operation."""
        self.bars[operation].set()

    def close(self) -> None:
        """Record the call."""
        self.closed = True


def executor(server: FakeServer, runner: FakeRunner, *, idle_s: float = 0.0) -> MaintenanceExecutor:
    """Return an executor whose pauses take no time."""
    return MaintenanceExecutor(server, runner, threads=2, idle_s=idle_s, poll_s=0.01, sleep=lambda _: None)


def test_all_waiting_operations_are_executed_and_reported() -> None:
    """Operations are executed and reported; then the executor is idle and ends."""
    server, runner = FakeServer(waiting=[1, 2, 3, 4, 5]), FakeRunner()
    summary = executor(server, runner).run()

    assert (summary.ended, sorted(server.reports), runner.closed) == ({"done": 5}, [1, 2, 3, 4, 5], True)


def test_each_ended_operation_is_shown_with_its_outcome() -> None:
    """Each ended operation is shown with its outcome and text."""
    ends: list[tuple[int, str, str]] = []

    def show(operation: int, end: OperationEnd) -> None:
        ends.append((operation, end.outcome, end.text))

    server = FakeServer(waiting=[-1, 2])
    MaintenanceExecutor(server, FakeRunner(), idle_s=0.0, poll_s=0.01, sleep=lambda _: None, show_end=show).run()

    assert sorted(ends) == [(-1, "failed", "ValueError: odd"), (2, "done", "3 files became 1")]


def test_executor_without_operations_runs_nothing() -> None:
    """Without operations nothing runs, so Spark does not start."""
    runner = FakeRunner()

    assert (executor(FakeServer(waiting=[]), runner).run().ended, runner.ran) == ({}, [])


def test_exception_fails_only_its_own_operation() -> None:
    """An exception fails one operation; the others run."""
    server = FakeServer(waiting=[-1, 2])
    executor(server, FakeRunner()).run()

    assert server.reports == {-1: ("failed", "ValueError: odd"), 2: ("done", "3 files became 1")}


def test_a_lost_lease_stops_its_operation() -> None:
    """If the server reports a lost lease, the running operation is cancelled, and the executor ends normally."""
    server, runner = FakeServer(waiting=[7], lost={7}), FakeRunner({7: threading.Event()})
    summary = executor(server, runner).run()

    assert (server.renewals > 0, runner.bars[7].is_set(), server.reports) == (True, True, {})
    assert (summary.ended, "cancelled" in summary.texts["lost"]) == ({"lost": 1}, True)


def test_request_is_repeated_if_the_server_does_not_answer() -> None:
    """If the server does not answer, the request is repeated."""
    server = FakeServer(waiting=[1], silent=2)
    clock = iter(range(1000))
    MaintenanceExecutor(
        server, FakeRunner(), threads=2, idle_s=50, poll_s=0.01, clock=lambda: float(next(clock)), sleep=lambda _: None
    ).run()

    assert server.reports == {1: ("done", "3 files became 1")}


def ticking(server: FakeServer, *, idle_s: float = 3.0) -> MaintenanceExecutor:
    """Return an executor whose clock advances by one second per read."""
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


def test_executor_survives_a_server_restart() -> None:
    """After a first answer the executor survives a restart of the server: its idle time does not expire, and no report
    is lost.
    """
    server = FakeServer(waiting=[1], refusal=UnavailableError("no server answers"), unreported=3, lease_s=60)
    running = ticking(server)
    assert running.run().ended == {"done": 1}
    assert server.reports == {1: ("done", "3 files became 1")}

    server.waiting, server.silent = [2], 20
    assert running.run().ended == {"done": 2}


def test_executor_fails_at_once_if_the_server_never_answered() -> None:
    """If the server never answered, the executor fails at once, because the address may be wrong. One that stops
    answering is given up after a while.
    """
    server = FakeServer(waiting=[1], silent=1_000, refusal=UnavailableError("no server answers"))
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


def test_outage_time_excludes_the_last_long_operation() -> None:
    """The time of the outage is measured, not the time since the last lease, because no lease is requested while all
    runners are busy.
    """
    server = FakeServer(waiting=[1, 2])
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


def test_executor_ends_after_a_number_of_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor ends after a number of operations, because its Java uses more memory with each; the rest waits for
    the next executor.
    """
    monkeypatch.setattr(room, "OPERATIONS_MAX", 3)
    server = FakeServer(waiting=list(range(1, 20)))
    summary = executor(server, FakeRunner()).run()

    assert 3 <= summary.count <= 4
    assert server.waiting


def test_operations_that_run_at_the_maximal_number_are_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the maximal number of operations the executor takes no more, and waits for those that still run."""
    monkeypatch.setattr(room, "OPERATIONS_MAX", 1)
    bar = threading.Event()

    class WatchedServer(FakeServer):
        def renew(self, holder: str, operations: tuple[int, ...]) -> tuple[int, ...]:
            if self.reports:
                bar.set()
            return super().renew(holder, operations)

    class WatchedRunner(FakeRunner):
        cancelled = 0

        def cancel(self, operation: int) -> None:
            self.cancelled += 1
            super().cancel(operation)

    server, runner = WatchedServer(waiting=[1, 7, 8]), WatchedRunner({7: bar})
    executor(server, runner).run()

    assert server.reports == {1: (DONE, "3 files became 1"), 7: (DONE, "3 files became 1")}
    assert (runner.cancelled, server.waiting) == (0, [8])


def test_leases_are_renewed_before_they_end() -> None:
    """While an operation runs, its lease is renewed at least twice within the lease's length."""
    lease_s, bar = 60, threading.Event()
    clock, renewed_at = count(1_000), []

    class WatchedServer(FakeServer):
        def renew(self, holder: str, operations: tuple[int, ...]) -> tuple[int, ...]:
            renewed_at.append(next(clock))
            if len(renewed_at) == 4:
                bar.set()
            return super().renew(holder, operations)

    MaintenanceExecutor(
        WatchedServer(waiting=[7], lease_s=lease_s),
        FakeRunner({7: bar}),
        threads=1,
        idle_s=0,
        poll_s=0.001,
        clock=lambda: float(next(clock)),
        sleep=lambda _: None,
    ).run()

    assert max(later - earlier for earlier, later in pairwise([1_000, *renewed_at])) <= lease_s / 2


def test_report_is_given_up_after_the_length_of_a_lease() -> None:
    """While no server answers, a report is repeated until its lease would have ended; then the executor goes on."""
    server = FakeServer(waiting=[1], unreported=100_000, lease_s=60)
    summary = ticking(server).run()

    assert 20 <= 100_000 - server.unreported <= 62
    assert (summary.ended, server.reports) == ({"done": 1}, {})


def test_texts_and_errors_contain_no_token() -> None:
    """Neither the representation of an operation nor the text of an error has a token."""
    leased = LeasedOperation(operation=1, kind="compact", catalog="main", path=("a", "t"), token="lim_7_secret")

    assert "secret" not in f"{leased} {leased!r}"
    assert error_text(ValueError("header lim_7_secret refused")) == "ValueError: header a token refused"
