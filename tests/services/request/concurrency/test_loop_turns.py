# SPDX-License-Identifier: Apache-2.0
"""Turns on the event loop: steps of long requests run one after the other, callers in rotation, and short requests in
between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count, pairwise
from types import SimpleNamespace

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency.loop_turns import (
    FREE_S,
    LONG_TURNS,
    TURNS,
    Caller,
    Deadlines,
    LoopTurns,
    LoopUse,
    in_turns,
)
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.telemetry.current_request import current_request
from tests import clocks

STEP_S = 2 * FREE_S
ANA: Caller = ("user", "ana")
BOB: Caller = ("user", "bob")


class Node:
    """A node whose requests take steps on a loop with a fake clock; `steps` has the name of each step's request."""

    def __init__(self, waiting_max: int = 64) -> None:
        self.clock = 0.0
        self.arrivals = count()
        self.turns = LoopTurns(now=lambda: self.clock, waiting_max=waiting_max)
        self.steps: list[str] = []

    async def work(self, name: str, steps: int, step_s: float = STEP_S) -> str:
        """Use the loop in steps."""
        for step in range(steps):
            if step:
                await asyncio.sleep(0)
            self.steps.append(name)
            self.clock += step_s
        return name

    async def serve(self, caller: Caller, work: Coroutine[object, object, str], *, operation: str = "list") -> str:
        """Serve a request as the application does."""
        use = LoopUse(self.turns, lambda: caller, operation=operation, arrival_s=next(self.arrivals))
        current_request.set(SimpleNamespace(id=operation, loop_use=use))
        try:
            return await use.run_in_turn(lambda: work, waits=True)
        finally:
            work.close()

    async def run_until(self, steps: int) -> None:
        """Wait until requests have taken a number of steps."""
        for _ in range(10 * steps):
            if len(self.steps) >= steps:
                return
            await asyncio.sleep(0)
        raise TimeoutError

    def long(self, caller: Caller, name: str, steps: int = 4, *, operation: str = "list") -> asyncio.Task[str]:
        """Start a long request."""
        return asyncio.create_task(self.serve(caller, self.work(name, steps), operation=operation))


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario."""

    async def whole() -> None:
        await story()

    asyncio.run(whole())


def test_callers_take_turns_whatever_their_number_of_requests() -> None:
    """One request of bob gets every second step beside sixteen of ana."""

    async def story() -> None:
        node = Node()
        many = [node.long(ANA, "ana") for _ in range(16)]
        one = node.long(BOB, "bob", steps=5)
        await one

        assert node.steps.count("bob") == 5
        assert node.steps.count("ana") in {5, 6}
        await asyncio.gather(*many)

    run(story)


def test_short_request_waits_for_one_step() -> None:
    """A request that begins beside sixteen long ones runs after at most one of their steps, at each of its
    suspensions.
    """

    async def story() -> None:
        node = Node()
        many = [node.long(ANA, "ana", steps=8) for _ in range(16)]
        for _ in range(4):
            await asyncio.sleep(0)
        before = len(node.steps)
        await asyncio.create_task(node.serve(BOB, node.work("bob", 6, step_s=0.0001)))

        between = node.steps[before:]
        gaps = "".join(name[0] for name in between).split("b")
        assert max(map(len, gaps)) == 1
        assert "ana" in between
        await asyncio.gather(*many)

    run(story)


def test_requests_of_one_caller_share_the_free_time() -> None:
    """Sixteen requests of one caller that each use less than the free time take turns, too: one of bob that begins
    after them waits for those that fit into it, and at its suspensions for one.
    """

    async def story() -> None:
        node = Node()
        many = [
            asyncio.create_task(node.serve(ANA, node.work("ana", 1, step_s=0.8 * FREE_S), operation=str(number)))
            for number in range(16)
        ]
        await asyncio.create_task(node.serve(BOB, node.work("bob", 6, step_s=0.0001)))

        gaps = "".join(name[0] for name in node.steps).split("b")
        assert len(gaps[0]) == 2
        assert max(map(len, gaps[1:])) == 1
        await asyncio.gather(*many)
        assert node.steps.count("ana") == 16
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not node.turns.spent

    run(story)


def test_caller_that_waits_for_nothing_gets_its_free_time_again() -> None:
    """A caller's requests in different passes of the loop do not wait, however many they are."""

    async def story() -> None:
        node = Node()
        before = _given()
        for _ in range(20):
            await node.serve(ANA, node.work("ana", 1, step_s=0.8 * FREE_S))
            await asyncio.sleep(0)

        assert _given() == before

    run(story)


def test_turn_lasts_for_the_free_time() -> None:
    """A request with many short steps waits once for as many of them as fit into the free time."""

    async def story() -> None:
        node = Node()
        before = _given()
        await node.serve(ANA, node.work("ana", 101, step_s=FREE_S / 10))

        assert _given() - before == 10

    run(story)


def test_dear_operation_of_a_caller_begins_with_a_turn() -> None:
    """After a long request, further ones of the same operation and caller wait before their first step; other
    operations go before them, and other callers and later short requests do not wait.
    """

    async def story() -> None:
        node = Node()
        await node.long(ANA, "first")
        node.steps.clear()
        burst = [node.long(ANA, "ana", 1) for _ in range(3)]
        other = [node.long(ANA, "load", 1, operation="load"), node.long(BOB, "bob", 1)]
        await asyncio.gather(*burst, *other)
        assert node.steps[2:] == ["ana", "ana", "ana"]
        assert set(node.steps[:2]) == {"load", "bob"}

        node.steps.clear()
        await node.serve(ANA, node.work("short", 1, step_s=0.0))
        again = [node.long(ANA, "ana", 1), node.long(BOB, "bob", 1, operation="other")]
        await asyncio.gather(*again)
        assert node.steps == ["short", "ana", "bob"]

    run(story)


def test_caller_with_too_many_waiting_requests_is_refused() -> None:
    """A new request that would wait behind the maximum of its caller is refused with the time to wait; another
    caller's is not.
    """

    async def story() -> None:
        node = Node(waiting_max=3)
        await node.long(ANA, "first")
        many = [node.long(ANA, "ana") for _ in range(4)]
        await node.long(BOB, "bob")
        results = await asyncio.gather(*many, return_exceptions=True)

        refused = [each for each in results if isinstance(each, ServiceUnavailable)]
        assert len(refused) == 1
        assert refused[0].retry_after_s == 2
        assert "try again" in str(refused[0])

    run(story)


def test_long_requests_of_a_caller_end_one_after_the_other() -> None:
    """Sixteen long requests of one caller end in the order of their arrival, long before the last step of all; a short
    one that begins after them ends first.
    """

    async def story() -> None:
        node, steps = Node(), LONG_TURNS + 80
        ended: dict[str, int] = {}

        async def one(number: int) -> None:
            await node.serve(ANA, node.work(str(number), steps), operation=str(number))
            ended[str(number)] = len(node.steps)

        many = [asyncio.create_task(one(number)) for number in range(16)]
        await node.run_until(16 * (LONG_TURNS + 2))
        before = len(node.steps)
        await node.long(ANA, "short", steps=3, operation="short")
        steps_of_short = len(node.steps) - before
        await asyncio.gather(*many)

        assert steps_of_short <= 5
        assert list(ended) == [str(number) for number in range(16)]
        assert ended["0"] < 16 * (LONG_TURNS + 2) + steps
        assert max(later - earlier for earlier, later in pairwise(ended.values())) <= steps - LONG_TURNS

    run(story)


def test_cancelled_request_gets_no_turn() -> None:
    """A request that is cancelled while it waits ends, runs its cleanup, and leaves its turn to the next one."""

    async def story() -> None:
        node = Node()
        cleaned: list[str] = []

        async def cleaning() -> str:
            try:
                return await node.work("gone", 9)
            finally:
                cleaned.append("gone")

        leaving = asyncio.create_task(node.serve(ANA, cleaning()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        rest = node.long(ANA, "rest", 2)
        leaving.cancel()
        await asyncio.gather(leaving, rest, return_exceptions=True)

        assert leaving.cancelled()
        assert cleaned == ["gone"]
        assert rest.result() == "rest"
        assert node.steps.count("gone") < 9

    run(story)


def test_error_of_the_work_is_raised() -> None:
    """An error of a step after a turn is the error of the request."""

    async def story() -> None:
        node = Node()

        async def failing() -> str:
            await node.work("ana", 3)
            raise ValueError("own")

        with pytest.raises(ValueError, match="own"):
            await node.serve(ANA, failing())

    run(story)


def test_tasks_of_a_request_take_its_turns() -> None:
    """The parts of a request that run in tasks of their own take turns, too."""

    async def story() -> None:
        node = Node()

        async def parts() -> str:
            await map_concurrently(range(4), lambda _: node.work("ana", 4), at_once=4)
            return ""

        long = asyncio.create_task(node.serve(ANA, parts()))
        for _ in range(6):
            await asyncio.sleep(0)
        node.steps.clear()
        await asyncio.create_task(node.serve(BOB, node.work("bob", 6, step_s=0.0001)))

        gaps = "".join(name[0] for name in node.steps).split("b")
        assert max(map(len, gaps)) == 1
        await long

    run(story)


def test_work_outside_of_requests_takes_no_turns() -> None:
    """The server's own work runs as it is."""
    node = Node()
    work = node.work("own", 1)

    assert in_turns(work) is work
    work.close()


def _given() -> int:
    return int(TURNS["given",])


LIMIT_S = 16.0
CLOCK_STEP_S = LIMIT_S / 16


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

    assert clocks.run(story()) == ["late", "done", "done"]


def test_late_request_is_cancelled_soon_after_its_limit() -> None:
    """A request may run for its limit, and is cancelled soon after it."""
    how, at = clocks.run(watched(Deadlines(LIMIT_S), asyncio.sleep(1000)))

    assert how == "late"
    assert LIMIT_S <= at <= LIMIT_S + CLOCK_STEP_S


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

    outcomes = clocks.run(story())

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

    assert clocks.run(story())


def test_no_timer_runs_without_requests() -> None:
    """Without requests no timer runs; the next request starts it again."""

    async def story() -> tuple[bool, str]:
        deadlines = Deadlines(LIMIT_S)
        await watched(deadlines, asyncio.sleep(0))
        await asyncio.sleep(2 * CLOCK_STEP_S)
        resting = deadlines._next_look is None
        how, _ = await watched(deadlines, asyncio.sleep(1000))
        return resting, how

    assert clocks.run(story()) == (True, "late")
