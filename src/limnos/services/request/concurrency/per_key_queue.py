# SPDX-License-Identifier: Apache-2.0
"""Per-key queues: changes of the same object on this node run one after the other, in order of arrival.

Queues are identified by object ids. They only avoid conflicting work on this node; correctness depends on the store
alone, since other nodes have other queues.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType

from limnos.model.errors import ServiceUnavailable

WAITING_MAX = 4096
"""The maximum number of waiting callers of one queue; further ones are refused."""


class PerKeyQueue:
    """First-in-first-out queues by id (`number`). A queue exists only while a caller has its turn in it."""

    def __init__(self) -> None:
        self._lines: dict[int, deque[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def is_free(self, number: int) -> bool:
        """Return whether a caller would get its turn without waiting."""
        return number not in self._lines

    def turn(self, number: int) -> QueueTurn:
        """Return a context manager that waits for a turn in a queue, and holds it during the `async with` block.

        Entering raises ServiceUnavailable if the queue is full.
        """
        return QueueTurn(self, number)

    def turns(self, numbers: Iterable[int]) -> QueueTurns:
        """Return a context manager that waits for a turn in each of several queues, in ascending order of ids.

        The common order prevents deadlocks. Entering raises ServiceUnavailable if a queue is full.
        """
        return QueueTurns(self, sorted(set(numbers)))

    async def enter(self, number: int) -> None:
        """Wait for a turn. Raises ServiceUnavailable if the queue is full."""
        line = self._lines.get(number)
        if line is None:
            self._lines[number] = deque()
            return
        if len(line) >= WAITING_MAX:
            raise ServiceUnavailable("Too many changes of this object are waiting; nothing was changed: try again")
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.leave(number)  # the turn came at the moment of the cancellation: pass it on
            else:
                with suppress(ValueError):  # `leave` may have removed it already
                    line.remove(mine)
            raise

    def leave(self, number: int) -> None:
        """Pass the turn to the caller that has waited longest."""
        line = self._lines[number]
        while line:
            following = line.popleft()
            if not following.done():
                following.set_result(None)
                return
        del self._lines[number]


class QueueTurn:
    """A turn in one queue. `async with` waits for it and releases it."""

    __slots__ = ("_lines", "_number")

    def __init__(self, lines: PerKeyQueue, number: int) -> None:
        self._lines = lines
        self._number = number

    async def __aenter__(self) -> None:
        await self._lines.enter(self._number)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.leave(self._number)


class QueueTurns:
    """Turns in several queues, for `async with`."""

    __slots__ = ("_lines", "_numbers", "_taken")

    def __init__(self, lines: PerKeyQueue, numbers: Sequence[int]) -> None:
        self._lines = lines
        self._numbers = numbers
        self._taken: list[int] = []

    async def __aenter__(self) -> None:
        try:
            for number in self._numbers:
                await self._lines.enter(number)
                self._taken.append(number)
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        while self._taken:
            self._lines.leave(self._taken.pop())
