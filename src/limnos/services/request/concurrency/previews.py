# SPDX-License-Identifier: Apache-2.0
"""Limits of previews on a node: the concurrency per caller, the time limit, and the processes that read.

Must not know the content of previews.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.offloaded_work import InlineOffloader, WorkOffloader

T = TypeVar("T")
DEADLINE_S: Final = 10.0
START_DEADLINE_S: Final = 10.0
"""The maximum time that a preview waits for a process to start, in seconds. The start continues after that, for the
caller's next preview.
"""
CALLER_MAX: Final = 2
"""The maximum number of concurrent previews of one caller on a node."""
READY: Final = "preview-ready"
"""The no-op work whose process loads the libraries for previews."""
_READING: Final = (
    "Reading the first rows took longer than {:.0f} s: request fewer columns, or read the data with a client"
)
_STARTING: Final = (
    "The process that reads files is still starting, because the server is busy: try again in a few seconds"
)
_ENDED: Final = (
    "The rows were not read: the worker process has ended, or too many previews are running. Try again, request fewer"
    " columns or rows, or read the data with a client"
)


class RunningPreviews:
    """Counts the running previews of a node by caller, and enforces the limit per caller."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._starts: dict[str, asyncio.Future[list[bytes]]] = {}

    @contextmanager
    def turn(self, caller: str) -> Iterator[None]:
        """Count a preview while it runs. Raises ServiceUnavailable if the caller has too many."""
        if self._counts.get(caller, 0) >= CALLER_MAX:
            raise ServiceUnavailable(
                f"{CALLER_MAX} previews of your user are running: try again when one is complete", retry_after_s=2
            )
        self._counts[caller] = self._counts.get(caller, 0) + 1
        try:
            yield
        finally:
            self._counts[caller] -= 1
            if not self._counts[caller]:
                del self._counts[caller]

    async def run(
        self, caller: str, work: Callable[[], Coroutine[object, object, T]], *, offloader: WorkOffloader | None = None
    ) -> T:
        """Run a preview for a caller. At the deadline it is cancelled, which kills its process.

        `offloader` is the process pool, whose processes may have to start first. Raises ServiceUnavailable if the
        caller has too many running previews, the deadline passes, or the process dies.
        """
        with self.turn(caller):
            if offloader is not None:
                await self._start(caller, offloader)
            return await _before_deadline(work())

    async def _start(self, caller: str, offloader: WorkOffloader) -> None:
        """Wait until a process is ready. The caller's next preview waits for the same start. Raises ServiceUnavailable
        if the process is not ready after `START_DEADLINE_S`, or dies.
        """
        start = self._starts.get(caller)
        if start is None:
            start = self._starts[caller] = asyncio.ensure_future(offloader.do(READY, caller=caller))
            start.add_done_callback(partial(self._forget, caller))
        await asyncio.wait((start,), timeout=START_DEADLINE_S)
        if not start.done():
            raise ServiceUnavailable(_STARTING, retry_after_s=5)
        with ended_process_explained():
            start.result()

    def _forget(self, caller: str, start: asyncio.Future[list[bytes]]) -> None:
        del self._starts[caller]
        if not start.cancelled():
            start.exception()  # the waiting callers raise it


async def _before_deadline(work: Coroutine[object, object, T]) -> T:
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=DEADLINE_S)
        if task.done():
            return task.result()
        raise ServiceUnavailable(_READING.format(DEADLINE_S))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)  # its process has ended before the caller's turn is over


@contextmanager
def ended_process_explained() -> Iterator[None]:
    """If the `with` block raises the ServiceUnavailable error of a dead process, raise one with advice instead."""
    try:
        yield
    except ServiceUnavailable as error:
        raise ServiceUnavailable(_ENDED, retry_after_s=error.retry_after_s) from error


RUNNING_PREVIEWS: ComponentKey[RunningPreviews] = ComponentKey("previews", lambda _: RunningPreviews())
PREVIEW_OFFLOADER: ComponentKey[WorkOffloader] = ComponentKey("preview_chores", lambda _: InlineOffloader())
"""The processes that read files for previews: those of scans."""
