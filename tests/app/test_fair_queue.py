# SPDX-License-Identifier: Apache-2.0
"""The fair queue: no caller can hold all slots, and waiting callers get slots in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from limnos.app import fair_queue as module
from limnos.app.fair_queue import FairQueue, Key
from limnos.model.errors import ServiceUnavailable


class Story:
    """The holders of slots, each with the event that ends its work."""

    def __init__(self, places: int = 4, **limits: int) -> None:
        self.turns = FairQueue(places, limits=limits)
        self.held: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, who: str, *keys: Key) -> None:
        """Request a slot."""
        self.ends[who] = asyncio.Event()

        async def hold() -> None:
            async with self.turns.turn(keys):
                self.held.append(who)
                await self.ends[who].wait()
                self.held.remove(who)

        self.tasks[who] = asyncio.create_task(hold())
        await asyncio.sleep(0)

    async def go(self, who: str) -> None:
        """Release a slot."""
        self.ends[who].set()
        for _ in range(3):
            await asyncio.sleep(0)

    async def leave(self, who: str) -> None:
        """Stop waiting."""
        self.tasks[who].cancel()
        for _ in range(3):
            await asyncio.sleep(0)


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario."""

    async def whole() -> None:
        await story()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:  # type: ignore[operator]
            task.cancel()

    asyncio.run(whole())


def test_busy_resource_does_not_delay_another_resource() -> None:
    """If all slots for one resource are in use, a request for it waits, and a later request for another resource gets a
    free slot first.
    """

    async def story() -> None:
        s = Story(4, table=2)
        for who in "abc":
            await s.come(who, ("table", "slow"))
        await s.come("d", ("table", "other"))
        assert s.held == ["a", "b", "d"]
        await s.go("a")
        assert s.held == ["b", "d", "c"]

    run(story)


def test_request_must_meet_each_of_its_limits() -> None:
    """A request gets a slot when each of its limits allows it: here slow work leaves one slot for other work."""

    async def story() -> None:
        s = Story(2, slow=1, caller=1)
        await s.come("a", ("slow", ""), ("caller", "ana"))
        await s.come("b", ("slow", ""), ("caller", "bob"))
        await s.come("c")
        assert s.held == ["a", "c"]
        await s.go("c")
        assert s.held == ["a"]
        await s.go("a")
        assert s.held == ["b"]

    run(story)


def test_requests_for_same_resource_are_served_in_order() -> None:
    """Requests for the same resource are served in order of arrival, and one that stops waiting delays no other."""

    async def story() -> None:
        s = Story(1)
        for who in "abcd":
            await s.come(who)
        await s.leave("b")
        await s.go("a")
        assert s.held == ["c"]
        await s.leave("c")
        assert s.held[-1] == "d"

    run(story)


def test_slot_of_cancelled_request_passes_to_the_next() -> None:
    """A slot that is given to a request at the moment when it stops waiting goes to the next one."""

    async def story() -> None:
        s = Story(1)
        for who in "abc":
            await s.come(who)
        s.tasks["b"].cancel()
        await s.go("a")
        assert s.held == ["c"]

    run(story)


def test_waiting_requests_per_resource_are_limited() -> None:
    """If a resource has as many waiting requests as allowed, the next one is refused. A request for another resource
    can still wait.
    """

    async def story() -> None:
        s = Story(1)
        s.turns = FairQueue(1, limits={}, waits={"caller": 1})
        for who, caller in (("a", "ana"), ("b", "ana"), ("c", "bob")):
            await s.come(who, ("caller", caller))
        with pytest.raises(ServiceUnavailable):
            async with s.turns.turn((("caller", "ana"),)):
                pass
        await s.go("a")
        assert s.held == ["b"]
        await s.go("b")
        assert s.held == ["c"]

    run(story)


def test_waiting_requests_in_total_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """If too many requests wait in total, the next one is refused at once."""
    monkeypatch.setattr(module, "WAITING_MAX", 1)

    async def story() -> None:
        s = Story(1)
        await s.come("a")
        await s.come("b")
        with pytest.raises(ServiceUnavailable, match="nothing was changed"):
            async with s.turns.turn(()):
                pass

    run(story)


def test_free_slot_goes_to_the_user_with_the_fewest() -> None:
    """Of two users' waiting requests, the one whose user holds fewer slots gets the next slot, though it came later."""

    async def story() -> None:
        s = Story(3)
        s.turns = FairQueue(3, limits={"user": 3}, shares="user")
        for who in ("a1", "a2", "a3", "a4", "a5"):
            await s.come(who, ("user", "ann"))
        await s.come("b1", ("user", "ben"))
        await s.come("b2", ("user", "ben"))
        await s.go("a1")
        assert s.held == ["a2", "a3", "b1"]
        await s.go("a2")
        assert s.held == ["a3", "b1", "a4"]  # one each: in order of arrival
        await s.go("a3")
        assert s.held == ["b1", "a4", "a5"]

    run(story)


def test_returned_slot_counts_for_its_keys_until_it_is_released() -> None:
    """A caller that returns its slot, but does not release it, leaves the slot to others and none to its own key. Both
    calls do nothing the second time.
    """

    async def story() -> None:
        s = Story(1, user=1)
        turn = await s.turns.take((("user", "ann"),))
        await s.come("a", ("user", "ann"))
        await s.come("b", ("user", "ben"))
        for _ in range(2):
            turn.return_place()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert s.held == ["b"]
        await s.go("b")
        assert s.held == []
        for _ in range(2):
            turn.release()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert s.held == ["a"]

    run(story)
