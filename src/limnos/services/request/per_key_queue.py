"""Lines: who wants to change the same thing on this node goes one after the other, in the order of arrival.

May import `model` and the standard library. Knows nothing of what is waited for: a line has a number. It spares work that is
bound to be lost; whether a change is right is decided by the store alone, for other nodes have lines of their own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from limnos.model.errors import ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

WAITING_MAX = 4096
"""Callers that one line holds; whoever comes then is told to come again."""


class PerKeyQueue:
    """Lines by number. A line is there only as long as somebody has the turn in it."""

    def __init__(self) -> None:
        self._lines: dict[int, deque[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def is_free(self, number: int) -> bool:
        """Say whether a turn would be given at once."""
        return number not in self._lines

    def turn(self, number: int) -> QueueTurn:
        """Wait for one's turn in a line, and have it for the time of a `with` body. Raises Unavailable when it is too long."""
        return QueueTurn(self, number)

    def turns(self, numbers: Iterable[int]) -> QueueTurns:
        """Wait for one's turn in several lines, one after the other in the order of their numbers.

        As everybody takes them in that order, nobody waits for somebody who waits for them.
        """
        return QueueTurns(self, sorted(set(numbers)))

    async def enter(self, number: int) -> None:
        """Wait for the turn."""
        line = self._lines.get(number)
        if line is None:
            self._lines[number] = deque()
            return
        if len(line) >= WAITING_MAX:
            raise ServiceUnavailable("Too many changes of this object wait already; nothing was changed: try again")
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.leave(number)  # the turn came in the very moment in which its owner gave up
            else:
                with suppress(ValueError):  # it may have been passed over already
                    line.remove(mine)
            raise

    def leave(self, number: int) -> None:
        """Give the turn to whoever has waited longest."""
        line = self._lines[number]
        while line:
            following = line.popleft()
            if not following.done():
                following.set_result(None)
                return
        del self._lines[number]


class QueueTurn:
    """A turn in a line, for `async with`."""

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
    """Turns in several lines, for `async with`."""

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
