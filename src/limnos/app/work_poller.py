# SPDX-License-Identifier: Apache-2.0
"""A poller of work in the store: leases due work, starts it, and polls again when woken or after a pause.

Must not know the work: subclasses select the work and its lease, such as `deliveries` and `executor`. The loop is one
of the node's background loops, so a failed poll is repeated.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import ClassVar, Final, TypeVar

from limnos.services.request.concurrency.background_loops import BackgroundLoops
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.taking")
POLL_S: Final = 2.0
T = TypeVar("T")


class WorkPoller(ABC):
    """Base class: runs due work until the poller's task is cancelled, then cancels and awaits the running work.

    `wake` makes it poll immediately.
    """

    works: ClassVar[str]
    """The kind of work, which is the name of the poller's loop."""
    poll_s: ClassVar[float] = POLL_S
    """The time between two polls in seconds."""

    def __init__(self, loops: BackgroundLoops) -> None:
        self._loop = loops.add(self.works, every_s=self.poll_s)
        self._wake_event = asyncio.Event()
        self._held: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Poll the store for work immediately."""
        self._wake_event.set()

    async def run(self) -> None:
        """Poll and start work until cancelled."""
        try:
            await self._loop.run(self._take, woken=self._wake_event)
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
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        """Log the error of an item that could not handle it. Its lease expires, and the item is leased again."""
        self._held.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.warning("work in the background ended with an error", works=self.works, exc_info=error)
