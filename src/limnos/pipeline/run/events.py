"""What a run tells while it goes on, as values; and who listens.

Job: one event per change of a step or of the run, for terminals, logs and programs alike. May import this package
only. It must not know how events are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """Something that happened. `step` is None for the run itself; numbers that are not known are None.

    `state` of a step: waiting, running, done, failed, skipped; of a run: began, resumed, publishing, moved, and the
    word of its end.
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
    """Listen to nothing."""


class TaskProgress(Protocol):
    """Counts of a step's tasks: done, of how many known so far."""

    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...


class ProgressBoard:
    """How far each step is: written by the steps' threads, read by the heart and by what is shown."""

    def __init__(self, run: str, *, listener: Listener) -> None:
        self.run = run
        self._listener = listener
        self._lock = Lock()
        self._latest: dict[str, RunEvent] = {}

    def tell(self, event: RunEvent) -> None:
        """Note an event, and hand it on, one at a time."""
        with self._lock:
            if event.step is not None:
                self._latest[event.step] = event
            self._listener(event)

    def progress(self) -> dict[str, dict[str, object]]:
        """How far the steps are that are under way, as a beat tells the server."""
        with self._lock:
            latest = [event for event in self._latest.values() if event.state == "running"]
        return {event.step or "": {"done": event.tasks_done, "tasks": event.tasks} for event in latest}
