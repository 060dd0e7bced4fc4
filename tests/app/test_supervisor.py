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
    found = Supervisor(LoadedSettings(Settings(), {}), [[], []], lambda: None)
    found.workers = [ServingProcess(number, []) for number in (1, 2)]
    for each in found.workers:
        each.pid, each.due_at = 1_000_000 + each.number, None
    return found, killed


def test_slowly_starting_worker_is_not_ended(supervised: tuple[Supervisor, list[tuple[int, int]]]) -> None:
    """A worker that has not sent its first heartbeat yet is not ended, because it may migrate, fill or open its store
    for any time. A serving worker without heartbeats is.
    """
    found, killed = supervised
    slow, hung = found.workers
    hung.is_serving = True
    slow.missed = hung.missed = worker_supervisor.BEATS_MISSED_MAX + 1

    found._end_hung()

    assert killed == [(hung.pid, signal.SIGKILL)]
    assert hung.missed == 0


def test_worker_within_missed_heartbeat_limit_is_not_ended(
    supervised: tuple[Supervisor, list[tuple[int, int]]],
) -> None:
    """A worker is ended only after more than the maximal number of missed heartbeats, and not while all workers
    stop.
    """
    found, killed = supervised
    for each in found.workers:
        each.is_serving, each.missed = True, worker_supervisor.BEATS_MISSED_MAX
    found._end_hung()
    assert killed == []

    found.stopping_until = 1e18
    found.workers[0].missed = 1_000
    found._end_hung()

    assert killed == []
