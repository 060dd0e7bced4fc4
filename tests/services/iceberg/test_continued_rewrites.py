# SPDX-License-Identifier: Apache-2.0
"""Rewrites that continue after the wait of a request: one for a directory, within limits, until no request comes."""

from __future__ import annotations

import asyncio

import pytest

from limnos.services.iceberg.continued_rewrites import OWN_MAX, REWRITES_MAX, ContinuedRewrites


class Rewrite:
    """A rewrite that ends when it is let go."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.is_cancelled = False

    async def run(self) -> str:
        """Wait, and return the result."""
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        return "written"


def test_quick_rewrite_returns_its_result() -> None:
    """A rewrite that ends within the wait returns its result or raises its error, and nothing continues."""

    async def story() -> None:
        rewrites, quick = ContinuedRewrites(), Rewrite()
        quick.let.set()

        async def fail() -> None:
            raise ValueError("a bad file")

        assert await rewrites.outcome("d", quick.run(), caller="bob", wait_s=5) == "written"
        with pytest.raises(ValueError, match="a bad file"):
            await rewrites.outcome("d", fail(), caller="bob", wait_s=5)
        assert len(rewrites) == 0

    asyncio.run(story())


def test_slow_rewrite_continues_once_for_a_directory() -> None:
    """A rewrite that takes longer than the wait continues. A second one of the same directory ends with its request,
    and one of another directory continues beside it.
    """

    async def story() -> None:
        rewrites = ContinuedRewrites()
        first, second, other = Rewrite(), Rewrite(), Rewrite()
        assert await rewrites.outcome("d", first.run(), caller="bob", wait_s=0.01) is None
        assert await rewrites.outcome("d", second.run(), caller="ann", wait_s=0.01) is None
        assert await rewrites.outcome("e", other.run(), caller="bob", wait_s=0.01) is None
        assert (first.is_cancelled, second.is_cancelled, other.is_cancelled, len(rewrites)) == (False, True, False, 2)

        first.let.set()
        await asyncio.sleep(0.01)
        assert len(rewrites) == 1
        rewrites.close()
        await asyncio.sleep(0.01)
        assert (other.is_cancelled, len(rewrites)) == (True, 0)

    asyncio.run(story())


def test_numbers_of_continued_rewrites_are_limited() -> None:
    """One user has a limited number of continued rewrites, and so has the node."""

    async def story() -> None:
        rewrites = ContinuedRewrites()
        for number in range(OWN_MAX + 1):
            await rewrites.outcome(f"own{number}", Rewrite().run(), caller="bob", wait_s=0)
        assert len(rewrites) == OWN_MAX

        for number in range(REWRITES_MAX):
            await rewrites.outcome(f"d{number}", Rewrite().run(), caller=f"user{number}", wait_s=0)
        assert len(rewrites) == REWRITES_MAX
        rewrites.close()

    asyncio.run(story())


def test_rewrite_ends_when_no_request_comes() -> None:
    """A continued rewrite is cancelled after the idle time; each request for its directory restarts that time."""

    async def story() -> None:
        rewrites, rewrite = ContinuedRewrites(idle_s=0.3), Rewrite()
        await rewrites.outcome("d", rewrite.run(), caller="bob", wait_s=0)
        for _ in range(4):
            await asyncio.sleep(0.15)
            await rewrites.outcome("d", Rewrite().run(), caller="ann", wait_s=0)
        assert not rewrite.is_cancelled

        await asyncio.sleep(0.5)
        assert (rewrite.is_cancelled, len(rewrites)) == (True, 0)

    asyncio.run(story())


def test_disconnected_client_ends_its_rewrite() -> None:
    """If the request is cancelled, its rewrite has ended before the cancellation is passed on."""

    async def story() -> None:
        rewrites, rewrite = ContinuedRewrites(), Rewrite()
        request = asyncio.ensure_future(rewrites.outcome("d", rewrite.run(), caller="bob", wait_s=60))
        await asyncio.sleep(0.01)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        assert (rewrite.is_cancelled, len(rewrites)) == (True, 0)

    asyncio.run(story())
