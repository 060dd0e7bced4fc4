# SPDX-License-Identifier: Apache-2.0
"""Requests to an unreachable server are retried; other failures are not."""

from __future__ import annotations

import threading

import pytest

from limnos.client.errors import ConflictError, NoSpaceError, ServerError, UnavailableError
from limnos.pipeline.run.result import EndReason
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.stop import RunStopped, StopSignal


def failing(*errors: Exception) -> object:
    """Return a call that raises each of these errors, then returns 7."""
    left = list(errors)

    def call() -> int:
        if left:
            raise left.pop(0)
        return 7

    return call


def test_connection_and_server_errors_are_retried() -> None:
    """Refused connections, broken connections and server errors are retried."""
    call = failing(UnavailableError("no", sent=False), ServerError("oh", status=500))

    assert RetryPolicy(60, stop=StopSignal()).call(call) == 7  # type: ignore[arg-type]


def test_refusals_are_not_retried() -> None:
    """Refusals are not retried, nor are errors of a server without disk space."""
    call = failing(ConflictError("taken", status=409), NoSpaceError("full", status=503))

    with pytest.raises(ConflictError, match="taken"):
        RetryPolicy(60, stop=StopSignal()).call(call)  # type: ignore[arg-type]
    with pytest.raises(NoSpaceError, match="full"):
        RetryPolicy(60, stop=StopSignal()).call(call)  # type: ignore[arg-type]


def test_retries_end_after_the_waiting_time() -> None:
    """A server that does not answer within the waiting time is reported as unavailable."""
    call = failing(*(UnavailableError("gone", sent=False) for _ in range(9)))

    with pytest.raises(UnavailableError, match="gone"):
        RetryPolicy(0, stop=StopSignal()).call(call)  # type: ignore[arg-type]


def test_stopped_run_ends_retries() -> None:
    """If the run is stopped, the retries end at once."""
    stop, stop_requested = StopSignal(), threading.Event()

    def call() -> int:
        stop.request(EndReason.INTERRUPTED, "enough")
        stop_requested.set()
        raise UnavailableError("gone", sent=False)

    with pytest.raises(RunStopped, match="enough"):
        RetryPolicy(600, stop=stop).call(call)
    assert stop_requested.is_set()
