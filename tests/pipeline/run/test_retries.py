"""Requests to an unreachable server are retried, and no other failures."""

from __future__ import annotations

import threading

import pytest

from limnos.client.errors import ConflictError, NoSpaceError, ServerError, UnavailableError
from limnos.pipeline.run.result import EndReason
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.stop import RunStopped, StopSignal


def failing(*errors: Exception) -> object:
    """A call that fails with each of these, then answers 7."""
    left = list(errors)

    def call() -> int:
        if left:
            raise left.pop(0)
        return 7

    return call


def test_a_server_that_comes_back_answers() -> None:
    """Nobody listening, a cut connection and an error of the server's own are waited out."""
    call = failing(UnavailableError("no", sent=False), ServerError("oh", status=500))

    assert RetryPolicy(60, stop=StopSignal()).call(call) == 7  # type: ignore[arg-type]


def test_a_refusal_is_told_at_once() -> None:
    """What the server has decided is not asked again, nor a server that is there and has no space."""
    call = failing(ConflictError("taken", status=409), NoSpaceError("full", status=503))

    with pytest.raises(ConflictError, match="taken"):
        RetryPolicy(60, stop=StopSignal()).call(call)  # type: ignore[arg-type]
    with pytest.raises(NoSpaceError, match="full"):
        RetryPolicy(60, stop=StopSignal()).call(call)  # type: ignore[arg-type]


def test_patience_has_an_end() -> None:
    """A server that stays away is told as that."""
    call = failing(*(UnavailableError("gone", sent=False) for _ in range(9)))

    with pytest.raises(UnavailableError, match="gone"):
        RetryPolicy(0, stop=StopSignal()).call(call)  # type: ignore[arg-type]


def test_a_run_that_is_stopped_waits_no_longer() -> None:
    """Who asks to stop meanwhile is obeyed while the server is still away."""
    stop, asked = StopSignal(), threading.Event()

    def call() -> int:
        stop.request(EndReason.INTERRUPTED, "enough")
        asked.set()
        raise UnavailableError("gone", sent=False)

    with pytest.raises(RunStopped, match="enough"):
        RetryPolicy(600, stop=stop).call(call)
    assert asked.is_set()
