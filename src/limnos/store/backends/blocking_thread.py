# SPDX-License-Identifier: Apache-2.0
"""One thread for calls that block on the disk or on another process's lock.

Must not know stores. A `ThreadPoolExecutor` needs 50 % more CPU for each call, and every mutation waits for a commit.
The event loop is the only caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

Call = tuple[Callable[[], object], asyncio.AbstractEventLoop, asyncio.Future[None]]


class BlockingThread:
    """A thread that runs submitted calls sequentially, first in first out."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, call: Callable[[], object]) -> asyncio.Future[None]:
        """Run a call in the thread.

        The future completes when the call ends, with the call's exception if it raised one.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._calls.put((call, loop, future))
        return future

    def _work(self) -> None:
        while (argument := self._calls.get()) is not None:
            call, loop, future = argument
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - the waiter gets the error
                loop.call_soon_threadsafe(_settle, future, error)
            else:
                loop.call_soon_threadsafe(_settle, future, None)

    def close(self) -> None:
        """Wait for the submitted calls, then end the thread."""
        self._calls.put(None)
        self._thread.join()


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return  # the caller's event loop is closed
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
