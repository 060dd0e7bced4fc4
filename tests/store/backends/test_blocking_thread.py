# SPDX-License-Identifier: Apache-2.0
"""The blocking thread: calls run in order, errors are raised in their callers, and no caller waits in vain."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from limnos.store.backends.blocking_thread import BlockingThread


@pytest.fixture
def thread() -> Iterator[BlockingThread]:
    """A thread that is stopped at the end of the test."""
    blocking_thread = BlockingThread("waits")
    yield blocking_thread
    blocking_thread.close()


def test_calls_run_in_order_in_the_thread(thread: BlockingThread) -> None:
    """Each call runs after the previous one, and none in the event loop's thread."""
    ran: list[tuple[int, str]] = []

    async def main() -> None:
        await asyncio.gather(
            *(thread.run(lambda i=i: ran.append((i, threading.current_thread().name))) for i in range(20))
        )

    asyncio.run(main())

    assert ran == [(i, "waits") for i in range(20)]


def test_exception_reaches_the_caller_and_the_thread_continues(thread: BlockingThread) -> None:
    """An exception of a call is raised in its caller, and the next call runs."""

    async def main() -> list[BaseException | None]:
        failing = thread.run(lambda: {}["absent"])
        return await asyncio.gather(failing, thread.run(lambda: None), return_exceptions=True)

    failed, done = asyncio.run(main())

    assert isinstance(failed, KeyError)
    assert done is None


def test_cancelled_call_runs_to_its_end(thread: BlockingThread) -> None:
    """A call whose caller was cancelled runs to its end and does not affect the others."""
    entered, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        entered.set()
        go_on.wait(10)
        done.set()

    async def main() -> None:
        waiter = thread.run(call)
        await asyncio.to_thread(entered.wait, 10)
        waiter.cancel()
        go_on.set()
        await thread.run(lambda: None)

    asyncio.run(main())

    assert done.is_set()


def test_close_waits_for_submitted_calls() -> None:
    """A close runs after all calls that were submitted before it."""
    thread = BlockingThread("waits")
    ran: list[int] = []

    async def main() -> None:
        for i in range(5):
            thread.run(lambda i=i: ran.append(i))
        thread.close()
        await asyncio.sleep(0)

    asyncio.run(main())

    assert ran == [0, 1, 2, 3, 4]
