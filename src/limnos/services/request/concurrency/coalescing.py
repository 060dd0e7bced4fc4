"""Request coalescing: callers who ask the same question at the same moment share one request.

May import the standard library. Must not know what the questions mean. A caller who arrives while a request is running
shares the next one, never the running one. An answer to an earlier request could miss changes made before the caller
arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

CoalescingKey = tuple[bytes, ...]


class SharedQuestion:
    """One question and the number of callers who wait for its answer."""

    __slots__ = ("task", "waiting")

    def __init__(self, task: asyncio.Task[bytes]) -> None:
        self.task = task
        self.waiting = 0


class RequestCoalescer:
    """Questions by key. Of each key at most one request runs, and at most one waits for it to end."""

    def __init__(self) -> None:
        self._next: dict[CoalescingKey, SharedQuestion] = {}
        self._begun: dict[CoalescingKey, asyncio.Task[bytes]] = {}

    def __len__(self) -> int:
        return len(self._next) + len(self._begun)

    async def ask(self, key: CoalescingKey, question: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return an answer that was requested after this call.

        Raises what `question` raises. The request is cancelled when no caller waits for it any more.
        """
        flight = self._next.get(key)
        if flight is None:
            flight = self._next[key] = SharedQuestion(asyncio.create_task(self._asked(key, question)))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._given_up(key, flight)

    async def _asked(self, key: CoalescingKey, question: Callable[[], Awaitable[bytes]]) -> bytes:
        """Wait for the running request to end, then run this one. Later callers share the next one."""
        before = self._begun.get(key)
        while before is not None:
            await asyncio.wait({before})
            before = self._begun.get(key)
        mine = self._begun[key] = self._next.pop(key).task
        try:
            return await question()
        finally:
            if self._begun.get(key) is mine:
                del self._begun[key]

    def _given_up(self, key: CoalescingKey, flight: SharedQuestion) -> None:
        """Cancel a request for which no caller waits; a later caller starts a new one."""
        if self._next.get(key) is flight:
            del self._next[key]
        flight.task.cancel()
        flight.task.add_done_callback(_consume_error)


def _consume_error(task: asyncio.Task[bytes]) -> None:
    """Read the task's error, so that asyncio does not report it as unretrieved."""
    with suppress(asyncio.CancelledError):
        task.exception()
