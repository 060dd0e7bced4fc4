# SPDX-License-Identifier: Apache-2.0
"""Thread pools for blocking calls, one per catalog, so that an unresponsive store does not delay other catalogs.

Must not know the functions that are called. Threads are daemons, started on demand and ended when idle; the process
never waits for a stuck thread. A call that exceeds its timeout, or whose caller is cancelled, is abandoned. When the
call returns, its thread serves other calls, and a late result can be undone.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Final, TypeVar, cast

from limnos.model.errors import LimnosError, ServiceUnavailable

T = TypeVar("T")
THREADS_MAX: Final = 4
WAITING_MAX: Final = 256
_IDLE_S: Final = 10.0
_SHARES_MAX: Final = 1024


class _BlockingCall:
    """A submitted call, the future of its caller, and the function that undoes the effect of an abandoned call."""

    __slots__ = ("future", "given_up", "late", "loop", "run", "started")

    def __init__(self, run: Callable[[], object], late: Callable[[], object] | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[object] = self.loop.create_future()
        self.run = run
        self.late = late
        self.started = False
        self.given_up = False

    def tell(self, result: object, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class _ThreadShare:
    """The thread pool of one catalog, and its queue of calls."""

    def __init__(self, threads_max: int, silent: Callable[[], LimnosError]) -> None:
        self.threads_max = threads_max
        self.silent = silent
        self.changed = threading.Condition()
        self.waiting: deque[_BlockingCall] = deque()
        self.threads = 0
        self.idle = 0
        self.stuck = 0

    def add(self, call: _BlockingCall) -> None:
        """Queue a call.

        Raises the error that `silent` builds (by default ServiceUnavailable) if all threads are stuck or the queue is
        full.
        """
        with self.changed:
            if self.stuck >= self.threads_max or len(self.waiting) >= WAITING_MAX:
                raise self.silent()
            self.waiting.append(call)
            if self.idle >= len(self.waiting) or self.threads >= self.threads_max:
                self.changed.notify()
                return
            self.threads += 1
        threading.Thread(target=self._work, name="limnos-files", daemon=True).start()

    def give_up(self, call: _BlockingCall) -> None:
        """Abandon a call: it is removed from the queue, or its thread counts as stuck until the call returns."""
        with self.changed:
            call.given_up = True
            if call.started:
                self.stuck += 1
            else:
                with suppress(ValueError):
                    self.waiting.remove(call)

    def _next(self) -> _BlockingCall | None:
        with self.changed:
            self.idle += 1
            calls = self.changed.wait_for(lambda: self.waiting, timeout=_IDLE_S)
            self.idle -= 1
            if not calls:
                self.threads -= 1
                return None
            call = self.waiting.popleft()
            call.started = True
            return call

    def _work(self) -> None:
        while (call := self._next()) is not None:
            self._execute(call)
            del call  # an idle thread keeps no reference to the last call, so that its connections close

    def _execute(self, call: _BlockingCall) -> None:
        result, error = None, None
        try:
            result = call.run()
        except BaseException as raised:  # noqa: BLE001 - passed on to the waiter
            error = raised
        self._end(call, result, error)

    def _end(self, call: _BlockingCall, result: object, error: BaseException | None) -> None:
        if not call.given_up:
            with suppress(RuntimeError):  # its loop has ended
                call.loop.call_soon_threadsafe(call.tell, result, error)
        with self.changed:
            late = call.given_up
            call.started = False  # abandoning it from here on has no effect
            if late:
                self.stuck -= 1
        if late and error is None and call.late is not None:
            with suppress(Exception):  # if this fails, the removal of orphan files deletes it later
                call.late()


def _timeout_error() -> ServiceUnavailable:
    return ServiceUnavailable(
        "The catalog's storage does not answer: nothing was changed. Try again, or have the storage checked",
        retry_after_s=5,
    )


class ThreadShares:
    """Runs blocking calls in threads, with a limited number of threads for each key (a catalog)."""

    def __init__(
        self, *, timeout_s: float, threads_max: int = THREADS_MAX, silent: Callable[[], LimnosError] = _timeout_error
    ) -> None:
        self.timeout_s = timeout_s
        self.threads_max = threads_max
        self._silent = silent
        self._shares: dict[Hashable, _ThreadShare] = {}

    async def run(self, key: Hashable, call: Callable[[], T], *, late: Callable[[], object] | None = None) -> T:
        """Run a call in a thread of the share of `key` and return its result.

        Args:
            key: The key of the share, such as a catalog's id.
            call: The function; it may block.
            late: A function that undoes the call's effect. It runs in the call's thread if the call ends after it was
                abandoned.

        Raises:
            ServiceUnavailable: The call takes longer than `timeout_s`, or the share is full. The constructor's `silent`
                may build another error.
        """
        if asyncio.current_task() is None:
            await asyncio.sleep(0)  # moves a request that runs outside of a task into one
        one = _BlockingCall(call, late)
        share = self._share(key)
        share.add(one)
        try:
            async with asyncio.timeout(self.timeout_s):
                return cast("T", await one.future)
        except TimeoutError:
            if one.future.done() and not one.future.cancelled() and one.future.exception() is not None:
                raise  # raised by the call itself
            share.give_up(one)
            raise self._silent() from None
        except asyncio.CancelledError:
            share.give_up(one)
            raise

    def _share(self, key: Hashable) -> _ThreadShare:
        thread_share = self._shares.get(key)
        if thread_share is None:
            if len(self._shares) >= _SHARES_MAX:
                self._shares = {each: share for each, share in self._shares.items() if share.threads}
            thread_share = self._shares[key] = _ThreadShare(self.threads_max, self._silent)
        return thread_share


async def run_in_own_thread(call: Callable[[], T]) -> T:
    """Run one long call in a separate daemon thread. Cancelling this does not stop the thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(cast("T", result))
        else:
            future.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001 - passed on to the waiter
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=work, name="limnos-apart", daemon=True).start()
    return await future
