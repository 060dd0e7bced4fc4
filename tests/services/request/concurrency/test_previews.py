"""Limits of previews: the deadline, and what is over when a caller has the answer."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency import previews
from limnos.services.request.concurrency.previews import RunningPreviews


def test_work_has_ended_when_the_deadline_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal comes after the cancelled work has cleaned up, so the caller's next preview does not run beside it."""
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


def test_cancelled_caller_ends_the_work() -> None:
    """A caller who goes away during a preview leaves no work behind, and frees its turn."""
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
