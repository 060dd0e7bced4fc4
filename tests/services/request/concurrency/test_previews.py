# SPDX-License-Identifier: Apache-2.0
"""Limits of previews: the deadline, and the work that must have ended when a caller gets the answer."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency import previews
from limnos.services.request.concurrency.previews import RunningPreviews
from limnos.services.request.offloaded_work import InlineOffloader


def test_timeout_is_reported_after_the_work_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout is reported after the cancelled work has cleaned up, so the next preview does not run beside it."""
    monkeypatch.setattr(previews, "DEADLINE_S", 0.01)
    steps: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    async def run() -> None:
        with pytest.raises(ServiceUnavailable):
            await RunningPreviews().run("ana", work)
        steps.append("told")

    asyncio.run(run())

    assert steps == ["cleaned up", "told"]


class SlowStart(InlineOffloader):
    """Fake worker processes whose start ends when a test says so."""

    def __init__(self) -> None:
        self.is_ready = asyncio.Event()
        self.starts = 0

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Wait for the start."""
        del name, parts, caller
        self.starts += 1
        await self.is_ready.wait()
        return []


def test_ended_preview_does_not_cancel_the_process_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A preview that times out or whose caller disconnects does not cancel the start of the process, and the next
    preview uses the process.
    """
    monkeypatch.setattr(previews, "START_DEADLINE_S", 0.01)
    offloader, running = SlowStart(), RunningPreviews()

    async def work() -> str:
        return "rows"

    async def run() -> str:
        for _ in range(3):
            with pytest.raises(ServiceUnavailable, match="still starting"):
                await running.run("ana", work, offloader=offloader)
        absent = asyncio.ensure_future(running.run("ana", work, offloader=offloader))
        await asyncio.sleep(0)
        absent.cancel()
        await asyncio.gather(absent, return_exceptions=True)
        monkeypatch.setattr(previews, "START_DEADLINE_S", 60.0)
        waiting = asyncio.ensure_future(running.run("ana", work, offloader=offloader))
        await asyncio.sleep(0)
        offloader.is_ready.set()
        return await waiting

    assert asyncio.run(run()) == "rows"
    assert offloader.starts == 1


def test_cancelled_caller_ends_the_work() -> None:
    """If a caller disconnects during a preview, its work is cancelled and its slot is freed."""
    running = RunningPreviews()
    steps: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    async def run() -> None:
        task = asyncio.ensure_future(running.run("ana", work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        steps.append("over")
        for _ in range(previews.CALLER_MAX):
            running.turn("ana").__enter__()

    asyncio.run(run())

    assert steps == ["cleaned up", "over"]
