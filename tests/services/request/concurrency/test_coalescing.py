"""Request coalescing: concurrent callers share one question, and no caller gets an answer from before its request."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.concurrency.coalescing import RequestCoalescer

KEY = (b"describe", b"t")


class Source:
    """A changing source whose answers take time."""

    def __init__(self) -> None:
        self.state = 0
        self.asked = 0
        self.ended = 0
        self.may_answer = asyncio.Event()

    async def ask(self) -> bytes:
        """Answer with what was the state when it was asked."""
        self.asked += 1
        seen = self.state
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        return b"%d" % seen


async def paused() -> None:
    """Let everybody go as far as he can."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_crowd_is_one_question_and_the_next_one() -> None:
    """Sixty-four who come while one is on its way share one question, which begins when that is answered and knows
    what changed before they came.
    """

    async def story() -> None:
        joint, source = RequestCoalescer(), Source()
        first = asyncio.create_task(joint.ask(KEY, source.ask))
        await paused()
        source.state = 1
        crowd = [asyncio.create_task(joint.ask(KEY, source.ask)) for _ in range(64)]
        await paused()
        assert source.asked == 1
        source.may_answer.set()

        assert await first == b"0"
        assert set(await asyncio.gather(*crowd)) == {b"1"}
        assert source.asked == 2
        assert len(joint) == 0

    asyncio.run(story())


def test_different_questions_do_not_wait_for_each_other() -> None:
    """What is asked about another table is asked at once."""

    async def story() -> None:
        joint, slow, quick = RequestCoalescer(), Source(), Source()
        held = asyncio.create_task(joint.ask(KEY, slow.ask))
        await paused()
        quick.may_answer.set()

        assert await joint.ask((b"describe", b"other"), quick.ask) == b"0"
        slow.may_answer.set()
        await held

    asyncio.run(story())


def test_who_gives_up_takes_the_answer_from_nobody() -> None:
    """The one who asked first goes away: the others hear the answer. When all have gone, the question ends, and
    the next one is a new one.
    """

    async def story() -> None:
        joint, source = RequestCoalescer(), Source()
        waiting = [asyncio.create_task(joint.ask(KEY, source.ask)) for _ in range(3)]
        await paused()
        waiting[0].cancel()
        await paused()
        assert source.ended == 0
        for each in waiting[1:]:
            each.cancel()
        await paused()
        assert (source.ended, len(joint)) == (1, 0)
        source.may_answer.set()

        assert await joint.ask(KEY, source.ask) == b"0"

    asyncio.run(story())


def test_who_waits_behind_one_that_is_given_up_is_answered() -> None:
    """A question ends as nobody wants it, and the one behind it begins; one that nobody wants before it has begun
    is never asked.
    """

    async def story() -> None:
        joint, source = RequestCoalescer(), Source()
        first = asyncio.create_task(joint.ask(KEY, source.ask))
        await paused()
        unwanted = asyncio.create_task(joint.ask(KEY, source.ask))
        await paused()
        unwanted.cancel()
        await paused()
        second = asyncio.create_task(joint.ask(KEY, source.ask))
        await paused()
        first.cancel()
        await paused()
        source.may_answer.set()

        assert await second == b"0"
        assert (source.asked, source.ended, len(joint)) == (2, 1, 0)

    asyncio.run(story())


def test_a_failure_is_told_to_everybody_once() -> None:
    """All who share a question hear why it failed, and whoever comes then asks again."""

    async def story() -> None:
        joint = RequestCoalescer()

        async def fails() -> bytes:
            await paused()
            raise ServiceUnavailable("No worker")

        answers = await asyncio.gather(*(joint.ask(KEY, fails) for _ in range(3)), return_exceptions=True)

        assert [type(each) for each in answers] == [ServiceUnavailable] * 3
        with pytest.raises(ServiceUnavailable):
            await joint.ask(KEY, fails)
        assert len(joint) == 0

    asyncio.run(story())
