"""Limits of previews: the deadline, and what is over when a caller has the answer."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency import previews
from limnos.services.request.concurrency.previews import RunningPreviews
from limnos.services.request.offloaded_work import InlineOffloader


def test_work_has_ended_when_the_deadline_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal comes after the cancelled work has cleaned up, so the next preview does not run beside it."""
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
    """Processes of which none is ready before `delay_s` are over."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Start."""
        del name, parts, caller
        await asyncio.sleep(self.delay_s)
        return []


def test_start_of_a_process_is_not_the_previews_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may take longer to start than a preview may take; a start without end is told as such."""
    monkeypatch.setattr(previews, "DEADLINE_S", 0.5)

    async def work() -> str:
        return "rows"

    async def run(delay_s: float) -> str:
        return await RunningPreviews().run("ana", work, offloader=SlowStart(delay_s))

    assert asyncio.run(run(0.7)) == "rows"
    monkeypatch.setattr(previews, "START_DEADLINE_S", 0.01)
    with pytest.raises(ServiceUnavailable, match="did not start"):
        asyncio.run(run(1_000))


def test_cancelled_caller_ends_the_work() -> None:
    """A caller who disconnects during a preview leaves no work behind, and frees its slot."""
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
