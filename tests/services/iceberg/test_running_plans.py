# SPDX-License-Identifier: Apache-2.0
"""Running scan plans of a node: limits per user and in total, and the slots that ended plans free."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.iceberg.running_plans import OWN_MAX, PLANS_MAX, RunningPlans


async def _never() -> None:
    await asyncio.Event().wait()


async def _begin(flights: RunningPlans, name: str, *, caller: str) -> None:
    assert await flights.outcome(name, _never, caller=caller, wait_s=0) is None


def test_plans_of_one_user_are_bounded() -> None:
    """The number of running plans of one user is limited; another user can begin one, and an ended plan frees its
    slot.
    """

    async def story() -> None:
        flights = RunningPlans()
        for number in range(OWN_MAX):
            await _begin(flights, f"a{number}", caller="ann")
        with pytest.raises(ServiceUnavailable, match="Too many scans"):
            await _begin(flights, "one more", caller="ann")
        await _begin(flights, "b", caller="bob")
        await _begin(flights, "a0", caller="ann")  # a plan that runs already
        flights.end("a0")
        await _begin(flights, "one more", caller="ann")

        assert len(flights) == OWN_MAX + 1
        flights.close()
        assert len(flights) == 0

    asyncio.run(story())


def test_plans_of_all_users_are_bounded() -> None:
    """The number of running plans of all users is limited."""

    async def story() -> None:
        flights = RunningPlans()
        for number in range(PLANS_MAX):
            await _begin(flights, str(number), caller=f"user {number}")
        with pytest.raises(ServiceUnavailable, match="Too many scans"):
            await _begin(flights, "one more", caller="another")
        flights.close()

    asyncio.run(story())
