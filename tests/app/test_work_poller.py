"""The work poller ends when it is cancelled, at any moment."""

from __future__ import annotations

import asyncio

import pytest

from limnos.app.work_poller import WorkPoller


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
        poller = IdlePoller()
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

    def __init__(self) -> None:
        super().__init__()
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
        poller = LeasePoller()
        task = asyncio.create_task(poller.run())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return poller

    poller = asyncio.run(poller_after())

    assert poller.leased == poller.released == ["piece"]
