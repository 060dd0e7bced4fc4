# SPDX-License-Identifier: Apache-2.0
"""Deadlines without a server: a request past its deadline is cancelled, others are not, and cancellations by other
code are not reported as timeouts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from limnos.http.deadlines import Deadlines
from tests.clocks import run

LIMIT_S = 16.0
STEP_S = LIMIT_S / 16


async def watched(
    deadlines: Deadlines, work: Coroutine[object, object, object], seconds: float | None = None
) -> tuple[str, float]:
    """Run a coroutine under a deadline. Returns its outcome and time."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    deadlines.watch(task, seconds)
    try:
        await work
    except asyncio.CancelledError:
        if deadlines.was_late(task):
            return "late", loop.time()
        raise
    finally:
        deadlines.release(task)
    return "done", loop.time()


def test_only_late_requests_are_cancelled() -> None:
    """One timer serves many requests; those that end in time, and later ones, are not cancelled."""

    async def story() -> list[str]:
        deadlines = Deadlines(LIMIT_S)
        slow = asyncio.create_task(watched(deadlines, asyncio.sleep(1000)))
        quick = asyncio.create_task(watched(deadlines, asyncio.sleep(1)))
        await asyncio.sleep(LIMIT_S / 2)
        later = asyncio.create_task(watched(deadlines, asyncio.sleep(LIMIT_S - 1)))
        return [how for how, _ in await asyncio.gather(slow, quick, later)]

    assert run(story()) == ["late", "done", "done"]


def test_late_request_is_cancelled_soon_after_its_limit() -> None:
    """A request may run for its limit, and is cancelled soon after it."""
    how, at = run(watched(Deadlines(LIMIT_S), asyncio.sleep(1000)))

    assert how == "late"
    assert LIMIT_S <= at <= LIMIT_S + STEP_S


@pytest.mark.parametrize("long_first", [True, False])
def test_requests_are_cancelled_at_their_own_limits(long_first: bool) -> None:
    """Requests with different limits are each cancelled at their own limit, in whatever order they started."""
    seconds = [LIMIT_S * 100, LIMIT_S, LIMIT_S / 16]

    async def story() -> list[tuple[str, float]]:
        deadlines = Deadlines(LIMIT_S)
        order = seconds if long_first else seconds[::-1]
        tasks = [asyncio.create_task(watched(deadlines, asyncio.sleep(100_000), each)) for each in order]
        outcomes = await asyncio.gather(*tasks)
        return outcomes if long_first else outcomes[::-1]

    outcomes = run(story())

    assert [how for how, _ in outcomes] == ["late"] * 3
    for (_, at), each in zip(outcomes, seconds, strict=True):
        assert each <= at <= each * 1.2


def test_outside_cancellation_is_not_reported_as_timeout() -> None:
    """A task that is cancelled by another party reports a cancellation, not a timeout."""

    async def story() -> bool:
        deadlines = Deadlines(LIMIT_S)
        task = asyncio.create_task(watched(deadlines, asyncio.sleep(1000)))
        await asyncio.sleep(0)
        deadlines._late.add(task)
        task.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert run(story())


def test_no_timer_runs_without_requests() -> None:
    """Without requests no timer runs; the next request starts it again."""

    async def story() -> tuple[bool, str]:
        deadlines = Deadlines(LIMIT_S)
        await watched(deadlines, asyncio.sleep(0))
        await asyncio.sleep(2 * STEP_S)
        resting = deadlines._next_look is None
        how, _ = await watched(deadlines, asyncio.sleep(1000))
        return resting, how

    assert run(story()) == (True, "late")
