# SPDX-License-Identifier: Apache-2.0
"""A fair queue: a semaphore with a limit per key, so that no key can occupy all slots.

Must not know processes or the work. A caller passes the keys of its work (a table, a user, slow work), and each key has
a limit. So one slow table delays only work on that table.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Final

from limnos.model.errors import ServiceUnavailable

WAITING_MAX: Final = 64
NO_WAITS: Final[Mapping[str, int]] = MappingProxyType({})
Key = tuple[str, str]
"""A key of work: its kind, and an id among the keys of that kind."""


class Turn:
    """An acquired slot of a queue, to be released once by its holder."""

    def __init__(self, queue: FairQueue, keys: tuple[Key, ...]) -> None:
        self._queue = queue
        self._keys = keys
        self._has_place, self._is_held = True, True

    def return_place(self) -> None:
        """Return the slot itself, while it still counts for the limits of its keys. A second call does nothing."""
        if self._has_place and self._is_held:
            self._has_place = False
            self._queue.leave((), places=1)

    def release(self) -> None:
        """Release the slot. A second call does nothing."""
        if self._is_held:
            self._is_held = False
            self._queue.leave(self._keys, places=int(self._has_place))


class FairQueue:
    """A fair queue with `places` slots.

    `limits` is the maximum of slots per key of a kind, such as `caller`; `waits` is the maximum of waiting callers per
    key of a kind. `waiting_max` limits all waiting callers. A free slot goes to the caller whose keys of the kind
    `shares` have the fewest slots; among equals, and without `shares`, to the one that has waited longest.
    """

    def __init__(
        self,
        places: int,
        *,
        limits: Mapping[str, int],
        waits: Mapping[str, int] = NO_WAITS,
        waiting_max: int | None = None,
        shares: str = "",
    ) -> None:
        self._free = places
        self._limits = limits
        self._waits = waits
        self._waiting_max = waiting_max or WAITING_MAX
        self._shares = shares
        self._held: Counter[Key] = Counter()
        self._waiting: list[tuple[tuple[Key, ...], asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, keys: tuple[Key, ...]) -> AsyncIterator[None]:
        """Acquire a slot for the body of a `with`. Callers whose keys have a free slot are served in order of arrival.

        Raises ServiceUnavailable if too many callers wait, in all or for one of the keys.
        """
        turn = await self.take(keys)
        try:
            yield
        finally:
            turn.release()

    async def take(self, keys: tuple[Key, ...]) -> Turn:
        """Acquire a slot, which the caller must release. Waits and raises as `turn`."""
        await self._enter(keys)
        return Turn(self, keys)

    async def _enter(self, keys: tuple[Key, ...]) -> None:
        if not any(self._may(waiting) for waiting, _ in self._waiting) and self._may(keys):
            self._take(keys)
            return
        if len(self._waiting) >= self._waiting_max or any(self._is_long(key) for key in keys):
            raise ServiceUnavailable(
                "The server has too many requests in progress; nothing was changed: try again", retry_after_s=2
            )
        mine = (keys, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        try:
            await mine[1]
        except asyncio.CancelledError:
            if mine[1].done() and not mine[1].cancelled():
                self.leave(keys)  # the slot was granted at the same moment
            else:
                self._waiting.remove(mine)
            raise

    def _is_long(self, key: Key) -> bool:
        """Return whether a key has its maximum number of waiting callers."""
        return key[0] in self._waits and sum(key in keys for keys, _ in self._waiting) >= self._waits[key[0]]

    def _may(self, keys: tuple[Key, ...]) -> bool:
        return self._free > 0 and all(self._held[key] < self._limits[key[0]] for key in keys if key[0] in self._limits)

    def _take(self, keys: tuple[Key, ...]) -> None:
        self._free -= 1
        self._held.update(keys)

    def leave(self, keys: tuple[Key, ...], *, places: int = 1) -> None:
        """Return a slot with its keys, or a part of them, and pass free slots on. Only for `Turn`."""
        self._free += places
        self._held.subtract(keys)
        for key in keys:
            if not self._held[key]:
                del self._held[key]
        while (waiting := self._next()) is not None:
            self._waiting.remove(waiting)
            self._take(waiting[0])
            waiting[1].set_result(None)

    def _next(self) -> tuple[tuple[Key, ...], asyncio.Future[None]] | None:
        """Return the waiting caller that gets the next slot; None if no slot is free for any."""
        if self._free <= 0:
            return None
        # A waiter that is done was cancelled and removes itself.
        candidates = (each for each in self._waiting if not each[1].done() and self._may(each[0]))
        return min(candidates, key=lambda each: self._share(each[0]), default=None)

    def _share(self, keys: tuple[Key, ...]) -> int:
        return sum(self._held[key] for key in keys if key[0] == self._shares)
