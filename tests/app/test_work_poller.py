"""The poller of work: it ends when it is cancelled, whatever else happens at that moment."""

from __future__ import annotations

import asyncio

from limnos.app.work_poller import WorkPoller


class IdlePoller(WorkPoller):
    """A poller that never finds work."""

    works = "nothing"

    async def _take(self) -> None:
        """Find nothing."""


def test_a_cancellation_counts_though_the_poller_was_just_woken() -> None:
    """Both in the same turn of the event loop: the poller ends. The ten seconds only end a test that fails."""

    async def has_ended() -> bool:
        poller = IdlePoller()
        task = asyncio.create_task(poller.run())
        for _ in range(5):
            await asyncio.sleep(0)
        poller.wake()
        task.cancel()
        done, _ = await asyncio.wait((task,), timeout=10)
        task.cancel()
        return bool(done)

    assert asyncio.run(has_ended())
