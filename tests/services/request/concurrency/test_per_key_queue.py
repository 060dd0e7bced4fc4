# SPDX-License-Identifier: Apache-2.0
"""The per-key queue: one caller at a time in order of arrival. A caller that leaves does not delay the others."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency import per_key_queue
from limnos.services.request.concurrency.per_key_queue import PerKeyQueue


async def queue(line: PerKeyQueue, order: list[str], names: str, number: int = 7) -> list[asyncio.Task[None]]:
    """Let callers enter the queue one after the other; each records its turn and waits in it."""

    async def come(name: str) -> None:
        async with line.turn(number):
            order.append(name)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert order[-1] == name, "another caller had a turn meanwhile"

    tasks = []
    for name in names:
        tasks.append(asyncio.create_task(come(name)))
        await asyncio.sleep(0)
    return tasks


def test_turns_are_in_order_of_arrival() -> None:
    """Callers get turns in order of arrival, one at a time; afterwards the queue is deleted."""

    async def story() -> None:
        line, order = PerKeyQueue(), list[str]()
        await asyncio.gather(*await queue(line, order, "abcd"))
        assert order == list("abcd")
        assert len(line) == 0

    asyncio.run(story())


def test_queues_do_not_delay_each_other() -> None:
    """A turn in one queue delays no caller in another."""

    async def story() -> None:
        line = PerKeyQueue()
        async with line.turn(1):
            assert not line.is_free(1)
            assert line.is_free(2)
            async with line.turn(2):
                pass

    asyncio.run(story())


@pytest.mark.parametrize("moment", [0, 1, 2, 3, 4, 5])
def test_cancelled_caller_does_not_block_the_queue(moment: int) -> None:
    """A caller cancelled while waiting, at its turn, or during it, does not block the others."""

    async def story() -> None:
        line, order = PerKeyQueue(), list[str]()
        tasks = await queue(line, order, "abcd")
        for _ in range(moment):
            await asyncio.sleep(0)
        tasks[1].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [each for each in outcomes if each is not None and not isinstance(each, asyncio.CancelledError)] == []
        assert [name for name in order if name != "b"] == list("acd")
        assert len(line) == 0

    asyncio.run(asyncio.wait_for(story(), 300))


def test_caller_that_fails_in_its_turn_is_removed_from_the_queue() -> None:
    """A caller that fails in its turn leaves the queue."""

    async def story() -> None:
        line = PerKeyQueue()
        with pytest.raises(ZeroDivisionError):
            async with line.turn(1):
                raise ZeroDivisionError
        assert line.is_free(1)

    asyncio.run(story())


def test_caller_beyond_the_queue_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit of waiting callers, the next one is refused with ServiceUnavailable."""
    monkeypatch.setattr(per_key_queue, "WAITING_MAX", 2)

    async def story() -> None:
        line, order = PerKeyQueue(), list[str]()
        async with line.turn(7):
            tasks = await queue(line, order, "abc")
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in outcomes] == [type(None), type(None), ServiceUnavailable]
        assert len(line) == 0

    asyncio.run(story())


def test_queues_named_in_opposite_orders_do_not_deadlock() -> None:
    """Callers that name the same queues in opposite orders do not deadlock, and no queue remains."""

    async def story() -> None:
        line, inside = PerKeyQueue(), list[int]()

        async def come(number: int, numbers: list[int]) -> None:
            async with line.turns(numbers):
                inside.append(number)
                await asyncio.sleep(0)
                assert inside[-1] == number, "another caller had a turn meanwhile"

        orders = ([1, 2, 3], [3, 2, 1], [2, 3, 2, 1])
        await asyncio.wait_for(asyncio.gather(*(come(each, orders[each % 3]) for each in range(9))), 300)
        assert sorted(inside) == list(range(9))
        assert len(line) == 0

    asyncio.run(story())


def test_cancelled_wait_for_second_queue_releases_the_first() -> None:
    """A caller cancelled while it waits for its second queue leaves the first one."""

    async def story() -> None:
        line = PerKeyQueue()
        async with line.turn(2):
            waiting = asyncio.create_task(line.turns([1, 2]).__aenter__())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not line.is_free(1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert line.is_free(1)
        assert len(line) == 0

    asyncio.run(story())
