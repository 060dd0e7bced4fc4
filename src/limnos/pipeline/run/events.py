# SPDX-License-Identifier: Apache-2.0
"""Events of a run, and their listeners.

One event per change of a step or of the run, for terminals, logs and programs. Must not know the presentation of
events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """An event of a run, or of one step of it. Unknown counts are None.

    `state` of a step: waiting, running, done, failed, skipped. `state` of a run: began, resumed, publishing, moved, or
    its final state.
    """

    run: str
    state: str
    step: str | None = None
    rows: int | None = None
    bytes: int | None = None
    tasks_done: int | None = None
    tasks: int | None = None
    seconds: float | None = None
    left_s: float | None = None
    message: str | None = None
    findings: tuple[Mapping[str, object], ...] = ()
    further: Mapping[str, object] = field(default_factory=dict)


Listener = Callable[[RunEvent], None]


def ignore_event(event: RunEvent) -> None:
    """No-op: the default listener of a run."""


class TaskProgress(Protocol):
    """Task counts of a step: `done` tasks, and the total of all tasks submitted so far."""

    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...


class ProgressBoard:
    """The latest event of each step. Threads of steps write it; the heartbeat and listeners read it."""

    def __init__(self, run: str, *, listener: Listener) -> None:
        self.run = run
        self._listener = listener
        self._lock = Lock()
        self._latest: dict[str, RunEvent] = {}

    def tell(self, event: RunEvent) -> None:
        """Record an event and pass it to the listener, one event at a time."""
        with self._lock:
            if event.step is not None:
                self._latest[event.step] = event
            self._listener(event)

    def progress(self) -> dict[str, dict[str, object]]:
        """Return the progress of running steps, in the form that a heartbeat sends."""
        with self._lock:
            latest = [event for event in self._latest.values() if event.state == "running"]
        return {event.step or "": {"done": event.tasks_done, "tasks": event.tasks} for event in latest}
