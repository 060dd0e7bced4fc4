"""A poller of work in the store: leases due work, starts it, and polls again when woken or after a pause.

May import `model` and `telemetry`. Must not know the work: subclasses select the work and its lease, such as
`deliveries` and `executor`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import ClassVar, Final, TypeVar

from limnos.model.errors import LimnosError
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.taking")
POLL_S: Final = 2.0
T = TypeVar("T")


class WorkPoller(ABC):
    """Base class: runs due work until the poller's task is cancelled, then cancels and awaits the running work.

    `wake` makes it poll immediately.
    """

    works: ClassVar[str]
    """The kind of work, for the log."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self._held: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Poll the store for work immediately."""
        self._woken.set()

    async def run(self) -> None:
        """Poll and start work until cancelled."""
        try:
            while True:
                try:
                    await self._take()
                except LimnosError as error:
                    log.warning("waiting work could not be read", works=self.works, error=str(error))
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):  # `wait_for` of Python 3.11 loses a cancellation while woken
                        await self._woken.wait()
                self._woken.clear()
        finally:
            # Lets new tasks start: one that is cancelled before its first step would not release its lease.
            await asyncio.sleep(0)
            for task in tuple(self._held):
                task.cancel()
            await asyncio.gather(*self._held, return_exceptions=True)

    @abstractmethod
    async def _take(self) -> None:
        """Lease due work, and start it with `_begin` or `_begin_leased`."""

    async def _begin_leased(
        self, leasing: Coroutine[None, None, list[T]], work: Callable[[T], Coroutine[None, None, None]]
    ) -> None:
        """Lease work, and start a task for each leased item.

        A cancellation takes effect only after the items are leased, so that each leased item has a task that releases
        it.
        """
        leased = asyncio.ensure_future(leasing)
        try:
            await asyncio.shield(leased)
        finally:
            for piece in await leased:
                self._begin(work(piece))

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start a task for one item of work, and track it until it ends."""
        task = asyncio.create_task(work)
        self._held.add(task)
        task.add_done_callback(self._held.discard)
        return task
