"""One thread for calls that wait: for the disk, or for another process's lock.

May import the standard library. An executor does the same for any thread and any number of waiters, at half as much CPU
again for each call; here the loop is the only caller, and a commit is what every mutation waits for.
"""

from __future__ import annotations

import asyncio
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = tuple[Callable[[], object], asyncio.AbstractEventLoop, asyncio.Future[None]]


class BlockingThread:
    """Runs calls one after the other, in the order in which they were handed over."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, call: Callable[[], object]) -> asyncio.Future[None]:
        """Run a call in the thread; the future is done, or raises what the call raised, when it is over."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._calls.put((call, loop, future))
        return future

    def _work(self) -> None:
        while (given := self._calls.get()) is not None:
            call, loop, future = given
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - whoever waits is told
                loop.call_soon_threadsafe(_settle, future, error)
            else:
                loop.call_soon_threadsafe(_settle, future, None)

    def close(self) -> None:
        """Wait for what was handed over, and end the thread."""
        self._calls.put(None)
        self._thread.join()


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return  # nobody waits any more
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
