# SPDX-License-Identifier: Apache-2.0
"""Request coalescing: concurrent callers of the same operation share one call.

Must not know the operations. A caller who arrives while a call is running shares the next call, never the running call.
The result of an earlier call could miss changes made before the caller arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

CoalescingKey = tuple[bytes, ...]


class SharedCall:
    """One shared call and the number of callers who wait for its result."""

    __slots__ = ("task", "waiting")

    def __init__(self, task: asyncio.Task[bytes]) -> None:
        self.task = task
        self.waiting = 0


class RequestCoalescer:
    """Shared calls by key.

    For each key at most one call runs, and at most one further call waits for the running call to end.
    """

    def __init__(self) -> None:
        self._next: dict[CoalescingKey, SharedCall] = {}
        self._begun: dict[CoalescingKey, asyncio.Task[bytes]] = {}

    def __len__(self) -> int:
        return len(self._next) + len(self._begun)

    async def call(self, key: CoalescingKey, function: Callable[[], Awaitable[bytes]]) -> bytes:
        """Call `function`, or join a pending call with the same key, and return its result.

        The call always begins after this method was called. Raises the errors of `function`. The call is cancelled if
        no caller waits for it any more.
        """
        shared_call = self._next.get(key)
        if shared_call is None:
            shared_call = self._next[key] = SharedCall(asyncio.create_task(self._run_next(key, function)))
        shared_call.waiting += 1
        try:
            return await asyncio.shield(shared_call.task)
        finally:
            shared_call.waiting -= 1
            if not shared_call.waiting and not shared_call.task.done():
                self._cancel_abandoned(key, shared_call)

    async def _run_next(self, key: CoalescingKey, function: Callable[[], Awaitable[bytes]]) -> bytes:
        """Wait for the running call of the key to end, then call `function`.

        Callers that arrive from then on share the next call.
        """
        before = self._begun.get(key)
        while before is not None:
            await asyncio.wait({before})
            before = self._begun.get(key)
        mine = self._begun[key] = self._next.pop(key).task
        try:
            return await function()
        finally:
            if self._begun.get(key) is mine:
                del self._begun[key]

    def _cancel_abandoned(self, key: CoalescingKey, shared_call: SharedCall) -> None:
        """Cancel a call for which no caller waits; a later caller starts a new one."""
        if self._next.get(key) is shared_call:
            del self._next[key]
        shared_call.task.cancel()
        shared_call.task.add_done_callback(_consume_error)


def _consume_error(task: asyncio.Task[bytes]) -> None:
    """Read the task's error, so that asyncio does not report it as unretrieved."""
    with suppress(asyncio.CancelledError):
        task.exception()
