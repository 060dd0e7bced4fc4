"""How long a request may take: one timer watches them all and cancels the task of one that is late.

May import the standard library. A timer of its own for every request would cost each of them ten times as much. Requests
that may run equally long stand in one queue, in the order in which they began; there are few different times.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

_CHECKS: Final = 16
"""How often a request is looked at while it may run: it is late by at most that part of the limit."""


class Cancellable(Protocol):
    """What may be late: a task, or whatever else can be cancelled."""

    def cancel(self) -> object:
        """It is late."""
        ...


class Deadlines:
    """Tasks under way and the time until which each may run; `seconds` is for those without a time of their own."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._queues: dict[float, dict[Cancellable, float]] = {}
        self._late: set[Cancellable] = set()
        self._read_connection: asyncio.TimerHandle | None = None

    def watch(self, task: Cancellable, seconds: float | None = None) -> None:
        """Cancel the task when the time is over, unless it is released before."""
        loop = asyncio.get_running_loop()
        allowed = self.seconds if seconds is None else seconds
        queue = self._queues.get(allowed)
        if queue is None:
            queue = self._queues[allowed] = {}
        queue[task] = until = loop.time() + allowed
        every = allowed / _CHECKS
        if self._read_connection is None or self._read_connection.when() > until:
            self._look_again(loop, every)

    def release(self, task: Cancellable) -> None:
        """The task has done what it was watched for."""
        for queue in self._queues.values():
            if queue.pop(task, None) is not None:
                return
        self._late.discard(task)

    def was_late(self, task: asyncio.Task[object]) -> bool:
        """Say whether a cancellation that the task just met is ours alone; if so, it counts as handled."""
        return task in self._late and task.uncancel() == 0

    def _look_again(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        if self._read_connection is not None:
            self._read_connection.cancel()
        self._read_connection = loop.call_later(seconds, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._read_connection = None
        now = loop.time()
        for queue in self._queues.values():
            for task, until in tuple(queue.items()):
                if until > now:
                    break  # they stand in the order in which they began, and all may run as long
                del queue[task]
                self._late.add(task)
                task.cancel()
        waiting = [seconds for seconds, queue in self._queues.items() if queue]
        if waiting:
            self._look_again(loop, min(waiting) / _CHECKS)
