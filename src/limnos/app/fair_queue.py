"""Whose turn it is: places that many want, of which nobody may hold all.

May import `model` and the standard library. Knows no process: a place is a number. Who asks says what it is for (a table, a caller, slow
work); of each there may only be so many at once, so one slow table holds up nobody but who waits for that table.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from limnos.model.errors import ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

WAITING_MAX: Final = 64
NO_WAITS: Final[Mapping[str, int]] = MappingProxyType({})
Key = tuple[str, str]
"""What a place is wanted for: the sort of thing, and which one."""


class FairQueue:
    """So many places; `limits` says how many of them may go to one thing of a sort, `waits` how many may wait for one, of `waiting_max` in all."""

    def __init__(
        self,
        places: int,
        *,
        limits: Mapping[str, int],
        waits: Mapping[str, int] = NO_WAITS,
        waiting_max: int | None = None,
    ) -> None:
        self._free = places
        self._limits = limits
        self._waits = waits
        self._waiting_max = waiting_max or WAITING_MAX
        self._held: Counter[Key] = Counter()
        self._waiting: list[tuple[tuple[Key, ...], asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, keys: tuple[Key, ...]) -> AsyncIterator[None]:
        """Hold a place; waits for one, in the order of who came. Raises Unavailable when too many wait."""
        await self._enter(keys)
        try:
            yield
        finally:
            self._leave(keys)

    async def _enter(self, keys: tuple[Key, ...]) -> None:
        if not any(self._may(waiting) for waiting, _ in self._waiting) and self._may(keys):
            self._take(keys)
            return
        if len(self._waiting) >= self._waiting_max or any(self._is_long(key) for key in keys):
            raise ServiceUnavailable("Too much work at once; nothing was changed: try again", retry_after_s=2)
        mine = (keys, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        try:
            await mine[1]
        except asyncio.CancelledError:
            if mine[1].done() and not mine[1].cancelled():
                self._leave(keys)  # it was given in the same moment
            else:
                self._waiting.remove(mine)
            raise

    def _is_long(self, key: Key) -> bool:
        """Whether so many wait for a thing that the others would find no room."""
        return key[0] in self._waits and sum(key in keys for keys, _ in self._waiting) >= self._waits[key[0]]

    def _may(self, keys: tuple[Key, ...]) -> bool:
        return self._free > 0 and all(self._held[key] < self._limits[key[0]] for key in keys if key[0] in self._limits)

    def _take(self, keys: tuple[Key, ...]) -> None:
        self._free -= 1
        self._held.update(keys)

    def _leave(self, keys: tuple[Key, ...]) -> None:
        self._free += 1
        self._held.subtract(keys)
        for key in keys:
            if not self._held[key]:
                del self._held[key]
        for waiting in tuple(self._waiting):
            if not waiting[1].done() and self._may(waiting[0]):  # one that is done was cancelled, and goes by itself
                self._waiting.remove(waiting)
                self._take(waiting[0])
                waiting[1].set_result(None)
