"""How long a request may take: one timer watches them all and cancels the task of one that is late.

May import the standard library. A timer of its own for every request would cost each of them ten times as much.
"""

from __future__ import annotations

import asyncio

_CHECKS = 16
"""How often a request is looked at while it may run: it is late by at most that part of the limit."""


class Deadlines:
    """Tasks under way and the time until which each may run."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._watching = False

    def watch(self, task: asyncio.Task[object]) -> None:
        """Cancel the task when the time is over, unless it is released before."""
        loop = task.get_loop()
        self._until[task] = loop.time() + self.seconds
        if not self._watching:
            self._watching = True
            loop.call_later(self.seconds / _CHECKS, self._look, loop)

    def release(self, task: asyncio.Task[object]) -> None:
        """The task has done what it was watched for."""
        self._until.pop(task, None)
        self._late.discard(task)

    def was_late(self, task: asyncio.Task[object]) -> bool:
        """Say whether a cancellation that the task just met is ours alone; if so, it counts as handled."""
        return task in self._late and task.uncancel() == 0

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for task, until in tuple(self._until.items()):
            if until > now:
                break  # they stand in the order in which they began, and all may run as long
            del self._until[task]
            self._late.add(task)
            task.cancel()
        self._watching = bool(self._until)
        if self._watching:
            loop.call_later(self.seconds / _CHECKS, self._look, loop)
