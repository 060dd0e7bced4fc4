"""Waiting for commits: one look at the store's clocks for all who wait on this node, and none while nothing is committed.

May import the rooms below. Knows nothing of changes or rights: whoever is woken looks for itself. Where the store can tell
that nothing was committed (an SQLite file's moment), a look reads some bytes of memory; else it is one statement, ten times
a second, however many wait. Nobody is woken who is behind nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from limnos.model.errors import LimnosError, ServiceUnavailable
from limnos.store.feed import clocks_read
from limnos.telemetry.metrics import Gauge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limnos.store.interface import Store
    from limnos.view.freshness_gate import FreshnessGate

EVERY_S: Final = 0.1
WAITERS_MAX: Final = 2_000
WAITING = Gauge("limnos_feed_waiting", "Requests and deliveries that wait for changes on this node.", ())


class CommitWatcher:
    """Who waits for which zones to move past which revisions."""

    def __init__(self, gate: FreshnessGate, store: Store) -> None:
        self.gate = gate
        self.store = store
        self.looks = 0
        self.closed = False
        self._waiting: dict[asyncio.Future[None], Mapping[int, int]] = {}
        self._read_connection: asyncio.Task[None] | None = None
        self._moment: bytes | None = None
        self._anew = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def wait(self, known: Mapping[int, int], seconds: float, *, always: bool = False) -> None:
        """Return when a zone has moved past its known revision, after some seconds, or when the node stops.

        Raises Unavailable when too many wait; not for whom there is `always` room: there are few of them, and what others ask for
        must not stop them.
        """
        if self.closed or seconds <= 0:
            return
        if len(self._waiting) >= WAITERS_MAX and not always:
            raise ServiceUnavailable("Too many wait for changes here: ask again, or another node", retry_after_s=5)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = known
        self._anew = True  # something may have been committed since whoever waits has looked
        if self._read_connection is None:
            self._read_connection = asyncio.create_task(self._look_on())
        try:
            WAITING[()] = len(self._waiting)
            with suppress(TimeoutError):
                await asyncio.wait_for(future, seconds)
        finally:
            self._waiting.pop(future, None)
            WAITING[()] = len(self._waiting)

    def close(self) -> None:
        """Let everybody go, now and from now on: the node stops."""
        self.closed = True
        self._wake(tuple(self._waiting))

    async def _look_on(self) -> None:
        try:
            while self._waiting:
                await self._look()
                await asyncio.sleep(EVERY_S)
        finally:
            self._read_connection = None

    async def _look(self) -> None:
        """Wake those whose zones have moved; if nobody can tell, everybody, who then meet the trouble themselves."""
        moment = self.store.moment() if self.store.inline else None  # type: ignore[union-attr]
        anew, self._anew = self._anew, False
        if moment is not None and moment == self._moment and not anew:
            return
        self._moment = moment
        waiting = tuple(self._waiting.items())
        self.looks += 1
        try:
            _, clocks = await self.gate.look_up(lambda: clocks_read({zone for _, known in waiting for zone in known}))
        except LimnosError:
            self._wake(tuple(self._waiting))
            return
        at = {zone: clock.revision for zone, clock in clocks.items()}
        self._wake([future for future, known in waiting if any(at.get(zone, -1) != was for zone, was in known.items())])

    @staticmethod
    def _wake(futures: Sequence[asyncio.Future[None]]) -> None:
        for future in futures:
            if not future.done():
                future.set_result(None)
