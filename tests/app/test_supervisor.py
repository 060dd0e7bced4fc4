"""The supervisor's rules for starting, restarting and ending workers, without real processes."""

from __future__ import annotations

import os
import signal

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
    supervisor = Supervisor(LoadedSettings(Settings(), {}), [[], []], lambda: None)
    supervisor.workers = [ServingProcess(number, []) for number in (1, 2)]
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
