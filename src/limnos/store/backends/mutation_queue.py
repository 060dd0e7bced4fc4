# SPDX-License-Identifier: Apache-2.0
"""The queue of mutations that wait for a batch, with the callers that wait for their results; and the thread in which a
batch blocks.

Must not know backends: a backend owns the queue and the transaction. The handling of one job inside the transaction,
and the results of its callers, are the same for all backends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Protocol, TypeVar

from limnos.model.errors import ServiceUnavailable, StateUnknown
from limnos.model.permits import Permit
from limnos.store.tx import Mutation, MutationBatch
from limnos.telemetry.metrics import Counter

Call = tuple[Callable[[], object], asyncio.AbstractEventLoop, asyncio.Future[None]]


class BlockingThread:
    """A thread for calls that block on the disk or on another process's lock, first in first out.

    A `ThreadPoolExecutor` needs 50 % more CPU for each call, and every mutation waits for a commit. The event loop is
    the only caller.
    """

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


T = TypeVar("T")
Decided = tuple[Permit[object], Mutation[T]]
"""A permit and its mutation."""
Again = Callable[[], Awaitable[Decided[T]]]
"""A function that makes the access decision again while the locks are held, with reads that begin after the locks are
taken.
"""

BeginCallback = Callable[[], None]
"""A function that is called when a mutation is about to run for the first time. Until then it has certainly had no
effect.
"""


def ignore_begin() -> None:
    """No-op: the default for callers that need not know when their mutation begins."""


BATCH_MAX = 256
TURNS_MAX = 4
BATCHES = Counter("limnos_batches_total", "Transactions with mutations.", ())
BATCHED = Counter(
    "limnos_batched_mutations_total",
    "Mutations in those transactions: the quotient is the mean size of a commit group.",
    (),
)


HELD_MAX_S = 5.0
"""The time limit of a decision under locks, in seconds: other mutations wait for these locks."""


class Savepoint(Protocol):
    """Rolls back one job of a batch without the others."""

    def save(self) -> None:
        """Set the savepoint before the job."""

    def undo(self) -> None:
        """Roll back the writes of the job."""

    def is_lost(self) -> bool:
        """Return whether a failure has rolled back the whole transaction, so that nothing is left to undo."""

    def keep(self) -> None:
        """Release the savepoint after the job."""


class MutationJob:
    """A queued mutation with its permit, its caller's future, and its result."""

    __slots__ = ("again", "error", "future", "is_long", "is_refused", "mutation", "on_begin", "permit", "result")

    def __init__(
        self,
        permit: Permit[object],
        mutation: Mutation[object] | None,
        future: asyncio.Future[object],
        started: BeginCallback,
        *,
        again: Again[object] | None = None,
        is_long: bool = False,
    ) -> None:
        self.on_begin = started
        self.permit = permit
        self.mutation = mutation
        self.future = future
        self.again = again
        self.is_long = is_long
        self.is_refused = False
        self.result: object = None
        self.error: BaseException | None = None

    async def decide(self) -> None:
        """For a job of `add_held`: make its access decision while the locks are held.

        If that fails or takes more than `HELD_MAX_S`, the caller gets the error, and the mutation does not run.
        """
        self.is_refused = False
        if self.again is None or self.future.done():
            return
        try:
            async with asyncio.timeout(HELD_MAX_S):
                self.permit, self.mutation = await self.again()
        except TimeoutError:
            self._refuse(ServiceUnavailable("The access decision took too long; nothing was changed: try again"))
        except Exception as error:  # noqa: BLE001 - the caller gets the error
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        self.is_refused = True
        self.error = error

    def run(self, batch: MutationBatch, savepoint: Savepoint, *, ends_batch: tuple[type[Exception], ...] = ()) -> None:
        """Run the mutation in a savepoint and store its result or its error. No-op if its caller has cancelled it.

        A failure rolls back only this job, unless the exception is one of `ends_batch` or the database rolled back the
        whole transaction.
        """
        if self.is_refused or self.mutation is None:
            return
        # Before the check, which detects a caller that cancelled its future because the mutation had not begun.
        self.on_begin()
        if self.future.cancelled():
            return
        savepoint.save()
        try:
            self.result = batch.run(self.permit, self.mutation)
        except ends_batch:
            raise
        except Exception as error:
            self.error = error
            if savepoint.is_lost():
                raise
            savepoint.undo()
        savepoint.keep()

    def complete(self) -> None:
        """Complete the caller's future with the result or the error. No-op if it is completed or cancelled."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class MutationQueue(deque[MutationJob]):
    """Mutations that wait for the next transaction of the store."""

    pause_s = 0.001

    def add(
        self,
        permit: Permit[object],
        mutation: Mutation[object],
        started: BeginCallback = ignore_begin,
        *,
        is_long: bool = False,
    ) -> asyncio.Future[object]:
        """Queue a mutation.

        The future completes after the commit of its batch. `started` is called before the mutation first runs.
        `is_long`: a backend that runs mutations on the event loop runs this one in a thread.
        """
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.append(MutationJob(permit, mutation, future, started, is_long=is_long))
        return future

    def add_held(
        self, permit: Permit[object], again: Again[object], started: BeginCallback = ignore_begin
    ) -> asyncio.Future[object]:
        """Queue a job that decides while it holds the locks of this permit's zones. It starts a new batch."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.append(MutationJob(permit, None, future, started, again=again))
        return future

    def take(self, count: int) -> list[MutationJob]:
        """Remove the jobs of the next batch from the queue, at most `count`.

        A job that decides while holding locks runs alone.
        """
        jobs = [self.popleft()]
        while self and jobs[0].again is None and not self.is_batch_start and len(jobs) < count:
            jobs.append(self.popleft())
        return jobs

    @property
    def is_batch_start(self) -> bool:
        """Whether the next job must be the first of its batch."""
        return bool(self) and self[0].again is not None

    async def gather(self) -> None:
        """Wait while each iteration of the event loop adds mutations, for at most `TURNS_MAX` iterations.

        A larger batch costs hardly more to commit. A job that waits alone waits for one iteration, too: without it,
        three clients commit two batches instead of one, and wait twice as long.
        """
        for _ in range(TURNS_MAX):
            waiting = len(self)
            await asyncio.sleep(0)
            if len(self) == waiting:
                return

    async def wait_for_returning_callers(self) -> None:
        """If jobs arrived during a commit, wait briefly for new jobs of the callers whose jobs it committed.

        Otherwise the two groups would alternate, with two half-empty transactions instead of one. Once merged, the
        groups stay together and need no further wait (decision record 0015).
        """
        if self:
            await asyncio.sleep(self.pause_s)


def settle_jobs(jobs: Sequence[MutationJob]) -> None:
    """Complete the futures of a committed batch with the results of its jobs, and count the batch in the metrics."""
    BATCHES[()] += 1
    BATCHED[()] += len(jobs)
    for job in jobs:
        job.complete()


def fail_jobs(jobs: Iterable[MutationJob], error: Exception) -> None:
    """Complete the futures of a failed batch with the error."""
    for job in jobs:
        job.error = error
        job.complete()


def state_unknown_error(error: BaseException) -> StateUnknown:
    """Build the error for a COMMIT without a response: the caller cannot know whether it took effect."""
    unknown = StateUnknown("The store did not confirm the change: check before you repeat it", cause=str(error))
    unknown.__cause__ = error
    return unknown
