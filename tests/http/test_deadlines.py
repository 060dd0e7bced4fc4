"""Deadlines by themselves: who is late is cancelled, nobody else is, and other people's cancellations stay theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from limnos.http.deadlines import Deadlines

LIMIT_S = 0.08


async def watched(deadlines: Deadlines, work: Coroutine[object, object, object]) -> str:
    """Do something under a deadline; says how it ended."""
    task = asyncio.current_task()
    assert task is not None
    deadlines.watch(task)
    try:
        await work
    except asyncio.CancelledError:
        if deadlines.was_late(task):
            return "late"
        raise
    finally:
        deadlines.release(task)
    return "done"


def test_who_is_late_is_cancelled_and_nobody_else() -> None:
    """One timer serves many: those that end in time, and those that begin later, are left alone."""

    async def story() -> list[str]:
        deadlines = Deadlines(LIMIT_S)
        slow = asyncio.create_task(watched(deadlines, asyncio.sleep(30)))
        quick = asyncio.create_task(watched(deadlines, asyncio.sleep(0.001)))
        await asyncio.sleep(LIMIT_S / 2)
        later = asyncio.create_task(watched(deadlines, asyncio.sleep(LIMIT_S * 0.8)))
        return await asyncio.gather(slow, quick, later)

    assert asyncio.run(story()) == ["late", "done", "done"]


def test_late_by_a_small_part_of_the_limit_at_most() -> None:
    """A request may run its time, and not much longer."""

    async def story() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await watched(Deadlines(LIMIT_S), asyncio.sleep(30)) == "late"
        return loop.time() - began

    assert LIMIT_S <= asyncio.run(story()) < 30


def test_a_cancellation_from_outside_stays_one() -> None:
    """Whoever cancels the task, too, sees it cancelled, not late."""

    async def story() -> bool:
        deadlines = Deadlines(LIMIT_S)
        task = asyncio.create_task(watched(deadlines, asyncio.sleep(30)))
        await asyncio.sleep(0)
        deadlines._late.add(task)
        task.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(story())


def test_the_timer_rests_while_nobody_is_watched() -> None:
    """After the last request nothing ticks; the next one starts it again."""

    async def story() -> tuple[bool, str]:
        deadlines = Deadlines(LIMIT_S)
        await watched(deadlines, asyncio.sleep(0))
        await asyncio.sleep(LIMIT_S / 4)
        return deadlines._watching, await watched(deadlines, asyncio.sleep(30))

    assert asyncio.run(story()) == (False, "late")
