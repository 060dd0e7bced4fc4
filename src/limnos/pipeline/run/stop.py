"""That a run is to stop, and why; asked for by one thread and seen by the others.

Job: one flag with a reason. May import this package only. The first reason stands: a run that lost its lease is not
cancelled afterwards.
"""

from __future__ import annotations

import threading

from limnos.pipeline.run.result import EndReason


class RunStopped(Exception):
    """Raised where work would go on after the run was stopped."""

    def __init__(self, why: EndReason, message: str) -> None:
        super().__init__(message)
        self.why = why
        self.message = message


class StopSignal:
    """Whether to stop. Safe to use from any thread."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._reason: RunStopped | None = None

    def ask(self, why: EndReason, message: str) -> None:
        """Stop for a reason, unless there is one already."""
        with self._lock:
            if self._reason is None:
                self._reason = RunStopped(why, message)
        self._asked.set()

    @property
    def reason(self) -> RunStopped | None:
        """Why, if it was asked for."""
        return self._reason

    def check(self) -> None:
        """Go on, or raise Stopped."""
        if self._reason is not None:
            raise RunStopped(self._reason.why, self._reason.message)

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until it is asked for; tells whether it was."""
        return self._asked.wait(seconds)
