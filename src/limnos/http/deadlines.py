# SPDX-License-Identifier: Apache-2.0
"""Deadlines of requests: one timer watches all tasks and cancels those that are late.

Must not know requests. A timer per request would cost ten times as much. Tasks with the same time limit are in one
queue, in the order in which they began; there are few different limits.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

_CHECKS: Final = 16
"""The number of checks per time limit: a late task is cancelled at most a sixteenth of its limit after its deadline."""


class Cancellable(Protocol):
    """A task, or another object that can be cancelled."""

    def cancel(self) -> object:
        """Cancel the task, because it missed its deadline."""


class Deadlines:
    """Running tasks and their deadlines. `seconds` is the default time limit of a task."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._queues: dict[float, dict[Cancellable, float]] = {}
        self._late: set[Cancellable] = set()
        self._next_look: asyncio.TimerHandle | None = None

    def watch(self, task: Cancellable, seconds: float | None = None) -> None:
        """Cancel the task after its time limit unless it is released before."""
        loop = asyncio.get_running_loop()
        timeout_s = self.seconds if seconds is None else seconds
        queue = self._queues.get(timeout_s)
        if queue is None:
            queue = self._queues[timeout_s] = {}
        queue[task] = until = loop.time() + timeout_s
        every = timeout_s / _CHECKS
        if self._next_look is None or self._next_look.when() > until:
            self._schedule_check(loop, every)

    def release(self, task: Cancellable) -> None:
        """Remove the deadline of a task."""
        for queue in self._queues.values():
            if queue.pop(task, None) is not None:
                return
        self._late.discard(task)

    def was_late(self, task: asyncio.Task[object]) -> bool:
        """Return whether a missed deadline alone caused the cancellation of a task; if so, clear the task's
        cancellation request.
        """
        return task in self._late and task.uncancel() == 0

    def _schedule_check(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        self._next_look = loop.call_later(seconds, self._cancel_late_tasks, loop)

    def _cancel_late_tasks(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next_look = None
        now = loop.time()
        for queue in self._queues.values():
            for task, until in tuple(queue.items()):
                if until > now:
                    break  # one limit per queue, so deadlines are in the order of start
                del queue[task]
                self._late.add(task)
                task.cancel()
        waiting = [seconds for seconds, queue in self._queues.items() if queue]
        if waiting:
            self._schedule_check(loop, min(waiting) / _CHECKS)
