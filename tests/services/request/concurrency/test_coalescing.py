# SPDX-License-Identifier: Apache-2.0
"""Request coalescing: concurrent callers share one query, and no caller gets an answer that is older than its
request.
"""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency.coalescing import RequestCoalescer

KEY = (b"describe", b"t")


class Source:
    """A fake source whose state changes and whose answers take time."""

    def __init__(self) -> None:
        self.state = 0
        self.asked = 0
        self.ended = 0
        self.may_answer = asyncio.Event()

    async def ask(self) -> bytes:
        """Answer with the state at the time of the request."""
        self.asked += 1
        seen = self.state
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        return b"%d" % seen


async def paused() -> None:
    """Let all tasks run until they wait."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_concurrent_callers_share_the_next_query() -> None:
    """Sixty-four callers who arrive while a query runs share the next query, which begins after it and returns the
    later changes.
    """

    async def story() -> None:
        coalescer, source = RequestCoalescer(), Source()
        first = asyncio.create_task(coalescer.call(KEY, source.ask))
        await paused()
        source.state = 1
        crowd = [asyncio.create_task(coalescer.call(KEY, source.ask)) for _ in range(64)]
        await paused()
        assert source.asked == 1
        source.may_answer.set()

        assert await first == b"0"
        assert set(await asyncio.gather(*crowd)) == {b"1"}
        assert source.asked == 2
        assert len(coalescer) == 0

    asyncio.run(story())


def test_queries_with_different_keys_do_not_wait_for_each_other() -> None:
    """A query with another key is sent immediately."""

    async def story() -> None:
        coalescer, slow, quick = RequestCoalescer(), Source(), Source()
        pending_task = asyncio.create_task(coalescer.call(KEY, slow.ask))
        await paused()
        quick.may_answer.set()

        assert await coalescer.call((b"describe", b"other"), quick.ask) == b"0"
        slow.may_answer.set()
        await pending_task

    asyncio.run(story())


def test_cancelled_caller_does_not_cancel_the_shared_query() -> None:
    """If the first caller is cancelled, the others get the answer. If all callers are cancelled, the query is
    cancelled, and the next caller sends a new one.
    """

    async def story() -> None:
        coalescer, source = RequestCoalescer(), Source()
        waiting = [asyncio.create_task(coalescer.call(KEY, source.ask)) for _ in range(3)]
        await paused()
        waiting[0].cancel()
        await paused()
        assert source.ended == 0
        for each in waiting[1:]:
            each.cancel()
        await paused()
        assert (source.ended, len(coalescer)) == (1, 0)
        source.may_answer.set()

        assert await coalescer.call(KEY, source.ask) == b"0"

    asyncio.run(story())


def test_waiting_query_begins_when_the_running_one_is_cancelled() -> None:
    """When all callers of a running query are cancelled, the query is cancelled and the waiting one begins. A waiting
    query whose callers are all cancelled is never sent.
    """

    async def story() -> None:
        coalescer, source = RequestCoalescer(), Source()
        first = asyncio.create_task(coalescer.call(KEY, source.ask))
        await paused()
        unwanted = asyncio.create_task(coalescer.call(KEY, source.ask))
        await paused()
        unwanted.cancel()
        await paused()
        second = asyncio.create_task(coalescer.call(KEY, source.ask))
        await paused()
        first.cancel()
        await paused()
        source.may_answer.set()

        assert await second == b"0"
        assert (source.asked, source.ended, len(coalescer)) == (2, 1, 0)

    asyncio.run(story())


def test_failed_query_raises_for_all_callers_and_is_not_reused() -> None:
    """All callers of a failed query get its error, and the next caller sends a new query."""

    async def story() -> None:
        coalescer = RequestCoalescer()

        async def fails() -> bytes:
            await paused()
            raise ServiceUnavailable("No worker")

        answers = await asyncio.gather(*(coalescer.call(KEY, fails) for _ in range(3)), return_exceptions=True)

        assert [type(each) for each in answers] == [ServiceUnavailable] * 3
        with pytest.raises(ServiceUnavailable):
            await coalescer.call(KEY, fails)
        assert len(coalescer) == 0

    asyncio.run(story())
