# SPDX-License-Identifier: Apache-2.0
"""The supervisor's rules for starting, restarting and ending workers, without real processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from limnos.app import worker_supervisor
from limnos.app.worker_supervisor import ServingProcess, Supervisor
from limnos.config.loading import LoadedSettings
from limnos.config.settings import Settings


@pytest.fixture
def supervised(monkeypatch: pytest.MonkeyPatch) -> tuple[Supervisor, list[tuple[int, int]]]:
    """A supervisor of two fake workers, and the signals that it would send."""
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, which: killed.append((pid, which)))
    supervisor = Supervisor(loaded=LoadedSettings(Settings(), {}), sockets=[[], []], announce=lambda: None)
    supervisor.workers = [ServingProcess(number=number, sockets=[]) for number in (1, 2)]
    for each in supervisor.workers:
        each.pid, each.due_at = 1_000_000 + each.number, None
    return supervisor, killed


def test_slowly_starting_worker_is_not_ended(supervised: tuple[Supervisor, list[tuple[int, int]]]) -> None:
    """A worker that has not sent its first heartbeat yet is not ended, because it may migrate, fill or open its store
    for any time. A serving worker without heartbeats is.
    """
    supervisor, killed = supervised
    slow, hung = supervisor.workers
    hung.is_serving = True
    slow.missed = hung.missed = worker_supervisor.BEATS_MISSED_MAX + 1

    supervisor._end_hung()

    assert killed == [(hung.pid, signal.SIGKILL)]
    assert hung.missed == 0


def test_worker_within_missed_heartbeat_limit_is_not_ended(
    supervised: tuple[Supervisor, list[tuple[int, int]]],
) -> None:
    """A worker is ended only after more than the maximal number of missed heartbeats, and not while all workers
    stop.
    """
    supervisor, killed = supervised
    for each in supervisor.workers:
        each.is_serving, each.missed = True, worker_supervisor.BEATS_MISSED_MAX
    supervisor._end_hung()
    assert killed == []

    supervisor.stopping_until = 1e18
    supervisor.workers[0].missed = 1_000
    supervisor._end_hung()

    assert killed == []


@dataclass(kw_only=True)
class FakeMachine:
    """A clock, and processes that exist only as numbers. `steps` runs the supervisor's loop."""

    supervisor: Supervisor
    now: float = 1_000.0
    forks: int = 0
    exits: dict[int, int] = field(default_factory=dict)
    announced: int = 0

    def fork(self) -> int:
        """Return the id of a new process, as the parent sees it."""
        self.forks += 1
        return 2_000_000 + self.forks

    def wait_pid(self, pid: int, flags: int) -> tuple[int, int]:
        """Return a process and its status if it has ended."""
        assert flags == os.WNOHANG
        code = self.exits.pop(pid, None)
        return (0, 0) if code is None else (pid, code << 8)

    def step(self, *beating: int, later_s: float = 0.0) -> list[int]:
        """Let time pass, send heartbeats of these workers, and run the loop once. Returns the running workers."""
        self.now += later_s
        self.supervisor._start_due()
        for number in beating:
            self.supervisor._beat(self.supervisor.workers[number - 1])
        self.supervisor._take_beats()
        self.supervisor._reap_dead()
        self.supervisor._end_hung()
        return [each.number for each in self.supervisor.workers if each.pid]

    def end(self, number: int, *, code: int) -> None:
        """End a worker's process with an exit code, after which the loop runs once."""
        self.exits[self.supervisor.workers[number - 1].pid] = code
        self.step()

    def announce(self) -> None:
        """Count the announcements that the server is ready."""
        self.announced += 1


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMachine]:
    """A supervisor of three workers on a fake machine, before its first step."""
    supervisor = Supervisor(loaded=LoadedSettings(Settings(), {}), sockets=[[], [], []], announce=lambda: None)
    machine = FakeMachine(supervisor=supervisor)
    supervisor.announce = machine.announce
    monkeypatch.setattr(os, "fork", machine.fork)
    monkeypatch.setattr(os, "waitpid", machine.wait_pid)
    monkeypatch.setattr(os, "kill", lambda pid, which: None)
    monkeypatch.setattr(time, "monotonic", lambda: machine.now)
    supervisor.workers = [ServingProcess(number=number, sockets=[]) for number in (1, 2, 3)]
    supervisor._ready = os.pipe()
    os.set_blocking(supervisor._ready[0], False)
    yield machine
    for end in supervisor._ready:
        os.close(end)


def test_other_workers_start_when_the_first_one_serves(machine: FakeMachine) -> None:
    """Only the first worker starts until it serves, because it creates the store; the server is ready when all
    serve.
    """
    alone = [machine.step(), machine.step(later_s=60.0), machine.step(1)]
    together = machine.step()
    before = [machine.announced]
    machine.step(2)
    before.append(machine.announced)
    machine.step(3)
    machine.step(1, 2, 3)

    assert alone == [[1], [1], [1]]
    assert together == [1, 2, 3]
    assert (before, machine.announced) == ([0, 0], 1)


def test_worker_that_served_is_restarted_while_others_start(machine: FakeMachine) -> None:
    """Before the server is ready, a dead worker that had served is restarted."""
    machine.step(1)
    machine.step()
    machine.end(1, code=1)

    assert machine.supervisor.stopping_until is None
    assert machine.step(later_s=worker_supervisor.DELAY_S_MAX) == [1, 2, 3]
    assert machine.supervisor.code == 0


def test_worker_that_never_served_stops_the_server_before_it_is_ready(machine: FakeMachine) -> None:
    """Before the server is ready, the death of a worker that never served stops all, with its exit code."""
    machine.step(1)
    machine.step()
    machine.end(2, code=3)

    assert machine.supervisor.stopping_until is not None
    assert machine.supervisor.code == 3


def test_only_short_lives_delay_a_restart(machine: FakeMachine) -> None:
    """Each death soon after a start doubles the delay, up to a maximum. A worker that lived longer is restarted at
    once, however often that happens.
    """
    machine.step(1)
    machine.step(2, 3)

    def delay_after(life_s: float) -> float:
        machine.step(1, 2, 3, later_s=life_s)
        machine.end(2, code=1)
        delay = (machine.supervisor.workers[1].due_at or 0.0) - machine.now
        machine.step(later_s=delay + 0.001)
        return round(delay, 3)

    rare = [delay_after(86_400.0) for _ in range(12)]
    short = [delay_after(worker_supervisor.SHORT_LIFE_S - 1.0) for _ in range(12)]

    assert rare == [0.0] * 12
    assert short[:3] == [0.2, 0.4, 0.8]
    assert short[-1] == worker_supervisor.DELAY_S_MAX
    assert delay_after(worker_supervisor.SHORT_LIFE_S) == 0.0
