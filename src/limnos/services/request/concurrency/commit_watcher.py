# SPDX-License-Identifier: Apache-2.0
"""Commit watcher: one read of the store's clocks serves all callers on this node who wait for commits.

Must not know changes or rights: a caller reads the changes itself when it is woken. On SQLite a check for commits reads
a few bytes of memory (the header of the WAL index). Otherwise it is one statement, ten times a second, however many
callers wait. A caller is woken only if a revision of its zones has advanced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from limnos.model.errors import ServiceUnavailable
from limnos.store.activity.feed import clocks_read
from limnos.store.interface import Store
from limnos.telemetry.metrics import Gauge
from limnos.view.freshness_gate import FreshnessGate

EVERY_S: Final = 0.1
WAITERS_MAX: Final = 2_000
WAITING = Gauge("limnos_feed_waiting", "Requests and deliveries that wait for changes on this node.", ())


class CommitWatcher:
    """Wakes callers that wait for commits in some zones, by polling the store's clocks."""

    def __init__(self, gate: FreshnessGate, store: Store) -> None:
        self.gate = gate
        self.store = store
        self.looks = 0
        self.closed = False
        self._waiting: dict[asyncio.Future[None], Mapping[int, int]] = {}
        self._looking_task: asyncio.Task[None] | None = None
        self._moment: bytes | None = None
        self._must_read_again = False

    @property
    def waiting(self) -> int:
        """The number of waiting callers."""
        return len(self._waiting)

    async def wait(self, known: Mapping[int, int], seconds: float, *, always: bool = False) -> None:
        """Wait until a zone has passed its known revision, the timeout has passed, the node stops, or the clocks cannot
        be read.

        Args:
            known: The known revisions by zone.
            seconds: The maximum time to wait.
            always: Whether to wait even if the maximum number of callers waits, as the server's background tasks do.

        Raises:
            ServiceUnavailable: Too many callers wait already.
        """
        if self.closed or seconds <= 0:
            return
        if len(self._waiting) >= WAITERS_MAX and not always:
            raise ServiceUnavailable(
                "Too many requests wait for changes on this node: try again, or ask another node", retry_after_s=5
            )
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = known
        self._must_read_again = True  # something may have been committed since this caller's last read
        if self._looking_task is None:
            self._looking_task = asyncio.create_task(self._look_on())
        # No `asyncio.timeout`: a read may run outside a task.
        timer = asyncio.get_running_loop().call_later(seconds, self._wake, (future,))
        try:
            WAITING[()] = len(self._waiting)
            await future
        finally:
            timer.cancel()
            self._waiting.pop(future, None)
            WAITING[()] = len(self._waiting)

    def close(self) -> None:
        """Wake all callers and refuse new ones, because the node stops."""
        self.closed = True
        self._wake(tuple(self._waiting))

    async def _look_on(self) -> None:
        try:
            while self._waiting:
                await self._poll()
                await asyncio.sleep(EVERY_S)
        finally:
            self._looking_task = None

    async def _poll(self) -> None:
        """Wake the callers whose zones have changed. If the clocks cannot be read, wake all callers, so that each of
        them gets the error.
        """
        moment = self.store.moment() if self.store.inline else None  # type: ignore[union-attr]
        must_read_again, self._must_read_again = self._must_read_again, False
        if moment is not None and moment == self._moment and not must_read_again:
            return
        self._moment = moment
        waiting = tuple(self._waiting.items())
        self.looks += 1
        try:
            _, clocks = await self.gate.look_up(lambda: clocks_read({zone for _, known in waiting for zone in known}))
        except Exception:  # noqa: BLE001 - each caller gets the error from its own read
            self._wake(tuple(self._waiting))
            return
        at = {zone: clock.revision for zone, clock in clocks.items()}
        self._wake(
            [future for future, revisions in waiting if any(at.get(zone, -1) != was for zone, was in revisions.items())]
        )

    @staticmethod
    def _wake(futures: Sequence[asyncio.Future[None]]) -> None:
        for future in futures:
            if not future.done():
                future.set_result(None)
