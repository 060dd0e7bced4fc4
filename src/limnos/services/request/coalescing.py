"""Questions that many ask in the same moment: one asks for all.

May import the standard library. Knows nothing of what is asked. Who comes while a question is on its way shares the next one, never that one: an answer that was asked for before he came
may not know what was done before he came.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CoalescingKey = tuple[bytes, ...]


class SharedQuestion:
    """One question, and how many wait for its answer."""

    __slots__ = ("task", "waiting")

    def __init__(self, task: asyncio.Task[bytes]) -> None:
        self.task = task
        self.waiting = 0


class RequestCoalescer:
    """Questions by what they are about: of each at most one is on its way, and one waits for that."""

    def __init__(self) -> None:
        self._next: dict[CoalescingKey, SharedQuestion] = {}
        self._begun: dict[CoalescingKey, asyncio.Task[bytes]] = {}

    def __len__(self) -> int:
        return len(self._next) + len(self._begun)

    async def ask(self, key: CoalescingKey, question: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return an answer that was asked for after this call. Raises what the question does; it ends when nobody waits any more."""
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
        """Wait until the one before is answered, and ask: from then on others share the one behind."""
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
        """End a question for which nobody waits; whoever comes now asks one of his own."""
        if self._next.get(key) is flight:
            del self._next[key]
        flight.task.cancel()
        flight.task.add_done_callback(_consume_error)


def _consume_error(task: asyncio.Task[bytes]) -> None:
    """Nobody is left to hear of a failure."""
    with suppress(asyncio.CancelledError):
        task.exception()
