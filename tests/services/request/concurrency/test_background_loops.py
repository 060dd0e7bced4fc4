# SPDX-License-Identifier: Apache-2.0
"""Background loops: no error of a step ends a loop, pauses grow up to a maximum, and failures are known."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from limnos.services.request.concurrency.background_loops import FAILING, FAILURES, BackgroundLoops
from tests import clocks

Step = Callable[[], Awaitable[None]]


async def _cancelled_elsewhere() -> None:
    """Await a shared operation that was cancelled, as a step may."""
    shared = asyncio.get_running_loop().create_future()
    shared.cancel()
    await shared


async def run_for(
    seconds: float, step: Step, *, every_s: float = 2.0, woken: asyncio.Event | None = None
) -> BackgroundLoops:
    """Run a loop for some simulated seconds, then cancel it."""
    loops = BackgroundLoops()
    task = asyncio.create_task(loops.add("work", every_s=every_s).run(step, woken=woken))
    await asyncio.sleep(seconds)
    task.cancel()
    outcome = (await asyncio.gather(task, return_exceptions=True))[0]
    assert isinstance(outcome, asyncio.CancelledError)
    return loops


def test_pauses_grow_to_a_maximum() -> None:
    """A failing step is repeated after 1, 2, 4, 8, 16 and then every 30 seconds."""
    times: list[float] = []

    async def step() -> None:
        times.append(asyncio.get_running_loop().time())
        raise OSError(5, "Input/output error")

    clocks.run(run_for(150, step))

    assert [after - before for before, after in itertools.pairwise(times)] == [1, 2, 4, 8, 16, 30, 30, 30]


def test_cancelled_shared_operation_does_not_end_the_loop() -> None:
    """A step that awaits an operation which somebody else cancelled has failed, and the loop goes on."""
    calls = 0

    async def step() -> None:
        nonlocal calls
        calls += 1
        await _cancelled_elsewhere()

    clocks.run(run_for(10, step))

    assert calls == 4


@pytest.mark.parametrize("is_failing", [False, True], ids=["well", "failing"])
def test_wake_ends_the_pause_of_a_loop_that_works(*, is_failing: bool) -> None:
    """A wake-up runs the next step at once, but does not shorten the pause after a failure."""
    calls = 0

    async def step() -> None:
        nonlocal calls
        calls += 1
        if is_failing:
            raise RuntimeError("unexpected")

    async def story() -> None:
        woken = asyncio.Event()
        running = asyncio.create_task(run_for(3.5, step, every_s=60, woken=woken))
        for _ in range(30):
            await asyncio.sleep(0.1)
            woken.set()
        await running

    clocks.run(story())

    assert calls == (3 if is_failing else 31)


def test_streak_is_logged_once_and_known_until_it_ends() -> None:
    """The first failure of a streak is logged with its reason, the others are counted; the first success ends it."""

    async def story() -> None:
        loops = BackgroundLoops()
        loop = loops.add("work", every_s=2.0)

        async def fail() -> None:
            raise RuntimeError("table is missing")

        async def succeed() -> None:
            pass

        assert loops.failures() == ()
        before = FAILURES.get(("work",), 0)
        with capture_logs() as lines:
            for _ in range(3):
                assert not await loop.attempt(fail)
                await asyncio.sleep(10)
        (failure,) = loops.failures()
        assert (failure.name, failure.failing_s, failure.failures) == ("work", 30, 3)
        assert failure.reason == "RuntimeError: table is missing"
        assert [line["error"] for line in lines] == ["RuntimeError: table is missing"]
        assert (FAILURES["work",] - before, FAILING["work",]) == (3, 1)

        assert await loop.attempt(succeed)

        assert loops.failures() == ()
        assert FAILING["work",] == 0

    clocks.run(story())


def test_step_that_does_not_end_is_known_until_it_ends() -> None:
    """A step that neither ends nor makes progress within ten minutes is logged once, and shown as not ended since its
    last progress, without being cancelled. When it ends, the loop works again.
    """

    async def story() -> None:
        loops = BackgroundLoops()
        loop, ends = loops.add("work", every_s=2.0), asyncio.Event()

        async def step() -> None:
            await asyncio.sleep(400)
            loop.record_progress()
            await ends.wait()

        running = asyncio.create_task(loop.attempt(step))
        with capture_logs() as lines:
            await asyncio.sleep(900)
            assert loops.failures() == ()
            await asyncio.sleep(1500)
            (failure,) = loops.failures()
            assert (failure.name, failure.failing_s, failure.is_stuck, failure.error) == ("work", 2000, True, "")
            assert FAILING["work",] == 1
            assert [line["event"] for line in lines] == ["a step of background work does not end"]

        ends.set()

        assert await running
        assert loops.failures() == ()
        assert FAILING["work",] == 0

    clocks.run(story())


def test_step_of_a_slow_loop_may_take_as_long_as_its_pause() -> None:
    """A step that takes less than the pause of its loop is not reported, however long that is."""

    async def story() -> None:
        loops = BackgroundLoops()
        running = asyncio.create_task(loops.add("work", every_s=3600.0).attempt(lambda: asyncio.sleep(3500)))
        await asyncio.sleep(3400)

        assert loops.failures() == ()
        assert await running

    clocks.run(story())
