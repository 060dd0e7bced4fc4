# SPDX-License-Identifier: Apache-2.0
"""The stop signal of a run, with its reason.

A flag that one thread sets and other threads read. Later requests do not replace the first reason: a run that lost its
lease cannot be cancelled later.
"""

from __future__ import annotations

import threading

from limnos.pipeline.run.result import EndReason


class RunStopped(Exception):
    """Raised by `StopSignal.check` after a stop was requested. `why` and `message` are the first reason."""

    def __init__(self, why: EndReason, message: str) -> None:
        super().__init__(message)
        self.why = why
        self.message = message


class StopSignal:
    """A thread-safe flag by which a signal handler, the heartbeat or an error stops a run."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._lock = threading.Lock()
        self._reason: RunStopped | None = None

    def request(self, why: EndReason, message: str) -> None:
        """Request a stop. Has no effect if a stop was already requested."""
        with self._lock:
            if self._reason is None:
                self._reason = RunStopped(why, message)
        self._requested.set()

    @property
    def reason(self) -> RunStopped | None:
        """The reason for which the run must stop, or None."""
        return self._reason

    def check(self) -> None:
        """Raise RunStopped if a stop was requested."""
        if self._reason is not None:
            raise RunStopped(self._reason.why, self._reason.message)

    def wait(self, seconds: float) -> bool:
        """Wait for a number of seconds, or until a stop is requested. Returns whether a stop was requested."""
        return self._requested.wait(seconds)
