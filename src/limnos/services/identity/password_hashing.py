# SPDX-License-Identifier: Apache-2.0
"""Password hashing in threads, a few at a time, and rate limits for wrong passwords.

Must not know users or the store. Each node counts separately. After too many wrong passwords, for a user or from an
address, further attempts are refused without hashing, even with the right password: an immediate answer would reveal
whether it is right.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from limnos.model.errors import ServiceUnavailable, TooManyAttempts
from limnos.services.request.node_services import ComponentKey

T = TypeVar("T")
AT_ONCE: Final = 2
WAITING_MAX: Final = 64
_RATES: Final = {"user": (10.0, 0.1), "address": (30.0, 0.5)}
"""Rate limits for wrong passwords, per user and per address: the burst, and the refill per second."""
KNOWN_MAX: Final = 10_000


class PasswordHasher:
    """Runs password hashing in threads, `AT_ONCE` at a time, with a bounded queue."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Run a hashing function in a thread. Raises ServiceUnavailable if too many callers wait already."""
        if self._waiting >= WAITING_MAX:
            raise ServiceUnavailable("Too many sign-ins are in progress: try again", retry_after_s=2)
        self._waiting += 1
        try:
            async with self._free:
                return await asyncio.to_thread(work)
        finally:
            self._waiting -= 1


class PasswordAttempts:
    """Rate limits for wrong passwords, by user and by client address (token buckets)."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._used: dict[tuple[str, str], tuple[float, float]] = {}

    @contextmanager
    def one(self, *, user: str, address: str) -> Iterator[Callable[[], None]]:
        """Consume one attempt of the user and of the address. If the password was right, the caller calls the yielded
        function, which returns the attempts.

        Raises TooManyAttempts if no attempt is left.
        """
        keys = (("user", user), ("address", address))
        for key in keys:
            if self._used_now(key) + 1.0 > _RATES[key[0]][0]:
                raise TooManyAttempts(
                    f"Too many wrong passwords for this {key[0]}: wait a little, then try again",
                    retry_after_s=int(1.0 / _RATES[key[0]][1]),
                )
        for key in keys:
            self._add(key, 1.0)

        def right() -> None:
            for key in keys:
                self._add(key, -1.0)

        yield right

    def _used_now(self, key: tuple[str, str]) -> float:
        used, at = self._used.get(key, (0.0, 0.0))
        return max(0.0, used - (self._now() - at) * _RATES[key[0]][1])

    def _add(self, key: tuple[str, str], count: float) -> None:
        used = max(0.0, self._used_now(key) + count)
        self._used.pop(key, None)
        if len(self._used) >= KNOWN_MAX:
            del self._used[next(iter(self._used))]  # the least recently used entry
        self._used[key] = (used, self._now())


TRIES: ComponentKey[PasswordAttempts] = ComponentKey("tries", lambda _: PasswordAttempts())


HASHING: ComponentKey[PasswordHasher] = ComponentKey("hashing", lambda _: PasswordHasher())
