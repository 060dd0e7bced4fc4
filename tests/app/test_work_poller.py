# SPDX-License-Identifier: Apache-2.0
"""The work poller ends when it is cancelled, at any moment."""

from __future__ import annotations

import asyncio
import errno
import sqlite3

import psycopg
import pytest

from limnos.app.work_poller import WorkPoller
from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency.background_loops import BackgroundLoops
from tests import clocks


class IdlePoller(WorkPoller):
    """A poller that never finds work."""

    works = "nothing"

    async def _take(self) -> None:
        """Find nothing."""


def test_cancelled_poller_ends_even_if_just_woken() -> None:
    """A poller that is woken and cancelled in the same turn of the event loop ends. The timeout only ends a failing
    test.
    """

    async def has_ended() -> bool:
        poller = IdlePoller(BackgroundLoops())
        task = asyncio.create_task(poller.run())
        for _ in range(5):
            await asyncio.sleep(0)
        poller.wake()
        task.cancel()
        done, _ = await asyncio.wait((task,), timeout=300)
        task.cancel()
        return bool(done)

    assert asyncio.run(has_ended())


class LeasePoller(WorkPoller):
    """A poller that leases one piece of work. The lease takes some turns of the event loop."""

    works = "one piece"

    def __init__(self, loops: BackgroundLoops) -> None:
        super().__init__(loops)
        self.leased: list[str] = []
        self.released: list[str] = []

    async def _take(self) -> None:
        """Lease the piece once."""
        if not self.leased:
            await self._begin_leased(self._lease(), self._work)

    async def _lease(self) -> list[str]:
        for _ in range(5):
            await asyncio.sleep(0)
        self.leased.append("piece")
        return self.leased

    async def _work(self, piece: str) -> None:
        try:
            await asyncio.sleep(300)
        except asyncio.CancelledError:
            self.released.append(piece)
            raise


@pytest.mark.parametrize("turns", range(2, 16))
def test_cancelled_poller_always_releases_leased_work(turns: int) -> None:
    """Leased work is released also if the poller is cancelled while it takes the lease, or before the work's first
    step.
    """

    async def poller_after() -> LeasePoller:
        poller = LeasePoller(BackgroundLoops())
        task = asyncio.create_task(poller.run())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return poller

    poller = asyncio.run(poller_after())

    assert poller.leased == poller.released == ["piece"]


ERRORS = [
    OSError(errno.EIO, "Input/output error"),
    sqlite3.OperationalError("disk I/O error"),
    sqlite3.DatabaseError("database disk image is malformed"),
    psycopg.errors.UndefinedTable('relation "webhook" does not exist'),
    RuntimeError("unexpected"),
    ServiceUnavailable("The store is busy"),
]


class FailingPoller(WorkPoller):
    """A poller whose store fails until `well_at`, in seconds of the loop's clock."""

    works = "anything"

    def __init__(self, loops: BackgroundLoops, error: Exception, *, well_at: float) -> None:
        super().__init__(loops)
        self.error, self.well_at = error, well_at
        self.polls: list[float] = []

    async def _take(self) -> None:
        now = asyncio.get_running_loop().time()
        self.polls.append(now)
        if now < self.well_at:
            raise self.error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_poller_survives_every_error_of_the_store(error: Exception) -> None:
    """Whatever the store raises for 8 s, the poller polls on, and less than half a minute later it works again."""

    async def story() -> tuple[list[float], list[str], int]:
        loops = BackgroundLoops()
        poller = FailingPoller(loops, error, well_at=8.0)
        task = asyncio.create_task(poller.run())
        await asyncio.sleep(7)
        meanwhile = [each.name for each in loops.failures()]
        await asyncio.sleep(31)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return poller.polls, meanwhile, len(loops.failures())

    polls, failing_meanwhile, failing_after = clocks.run(story())

    assert failing_meanwhile == ["anything"]
    assert failing_after == 0
    assert 8 <= polls[-1] <= 38
    assert len([each for each in polls if each < 8]) <= 5
