# SPDX-License-Identifier: Apache-2.0
"""Bounded parallel execution: order, errors, cancellation."""

from __future__ import annotations

import asyncio

import pytest

from limnos.services.request.concurrency.parallel import map_concurrently


def test_results_are_ordered_and_concurrency_is_limited() -> None:
    """Results are in the order of the items, and the number of concurrent calls is limited."""
    under_way, most = 0, 0

    async def do(number: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(10 - number):
            await asyncio.sleep(0)
        under_way -= 1
        return number * number

    results = asyncio.run(map_concurrently(range(10), do, at_once=3))

    assert results == [number * number for number in range(10)]
    assert most == 3


def test_earliest_error_is_raised_after_running_calls_ended() -> None:
    """Of several errors, that of the earliest item is raised after all running calls have ended. No further calls are
    started.
    """
    done: list[int] = []

    async def do(number: int) -> None:
        await asyncio.sleep(0)
        if number in (1, 2):
            for _ in range(5 - number):
                await asyncio.sleep(0)
            raise ValueError(number)
        for _ in range(10):
            await asyncio.sleep(0)
        done.append(number)

    with pytest.raises(ValueError, match="1"):
        asyncio.run(map_concurrently(range(20), do, at_once=3))

    assert done == [0]


def test_cancelled_caller_cancels_all_running_calls() -> None:
    """A cancellation of the caller cancels all running calls."""
    ended: list[int] = []

    async def do(number: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(number)

    async def story() -> None:
        task = asyncio.create_task(map_concurrently(range(5), do, at_once=2))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())

    assert sorted(ended) == [0, 1]
