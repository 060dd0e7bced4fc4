# SPDX-License-Identifier: Apache-2.0
"""Continued rewrites: a node continues to write the files of a restricted user's plan after the response's wait.

Must not know files. One rewrite of a directory continues at a time, for as long as requests for the directory arrive.
If a node fails, the next request continues after the last complete file, on any node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from limnos.model.errors import LimnosError
from limnos.services.request.node_services import ComponentKey
from limnos.telemetry.logs import get_logger

T = TypeVar("T")
log = get_logger("limnos.restricting")
IDLE_S: Final = 900.0
"""The time after the last request for a directory after which its rewrite is cancelled, in seconds."""
REWRITES_MAX: Final = 16
"""The maximum number of rewrites that a node continues."""
OWN_MAX: Final = 2
"""The maximum number of rewrites that a node continues for one user."""


class _ContinuedRewrite:
    def __init__(self, task: asyncio.Task[Any], caller: str) -> None:
        self.task = task
        self.caller = caller
        self.timer: asyncio.TimerHandle | None = None


class ContinuedRewrites:
    """The rewrites that this node continues, by the directory that they write to."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._running: dict[str, _ContinuedRewrite] = {}

    async def outcome(
        self, directory: str, work: Coroutine[object, object, T], *, caller: str, wait_s: float | None
    ) -> T | None:
        """Await a rewrite of a directory for at most `wait_s` seconds, None for no limit.

        Returns the result; None if it takes longer. Then this rewrite continues, or one of the directory that continues
        already; above the limits none does. If the caller is cancelled, the rewrite is, too. Raises the rewrite's
        errors.
        """
        self._touch(directory)
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait((task,), timeout=wait_s)
        except asyncio.CancelledError:
            await _cancel(task)
            raise
        if done:
            return task.result()
        if self._may_continue(directory, caller):
            self._running[directory] = _ContinuedRewrite(task, caller)
            self._touch(directory)
            task.add_done_callback(lambda ended: self._end(directory, ended))
        else:
            await _cancel(task)
        return None

    def _may_continue(self, directory: str, caller: str) -> bool:
        running_count = sum(each.caller == caller for each in self._running.values())
        return directory not in self._running and len(self._running) < REWRITES_MAX and running_count < OWN_MAX

    def _touch(self, directory: str) -> None:
        """Restart the idle time of the directory's rewrite, if one continues."""
        running = self._running.get(directory)
        if running is None:
            return
        if running.timer is not None:
            running.timer.cancel()
        running.timer = asyncio.get_running_loop().call_later(self._idle_s, running.task.cancel)

    def _end(self, directory: str, task: asyncio.Task[Any]) -> None:
        running = self._running.pop(directory)
        if running.timer is not None:
            running.timer.cancel()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            reason = error.message if isinstance(error, LimnosError) else repr(error)
            log.warning("a restricted rewrite ended", directory=directory, caller=running.caller, error=reason)

    def __len__(self) -> int:
        return len(self._running)

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Return the tasks of the rewrites that continue."""
        return [each.task for each in self._running.values()]

    def close(self) -> None:
        """Cancel all rewrites."""
        for each in self.tasks():
            each.cancel()


async def _cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task, and wait until it has ended."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


CONTINUED_REWRITES: ComponentKey[ContinuedRewrites] = ComponentKey("continued rewrites", lambda _: ContinuedRewrites())
