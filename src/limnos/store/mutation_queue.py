"""A mutation on its way into a batch, and who waits for it.

May import `model`, `telemetry` and this room. A backend owns the queue and the transaction; what happens to one job inside it, and
who is told what, is the same for all of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from limnos.model.errors import ServiceUnavailable, StateUnknown
from limnos.telemetry.metrics import Counter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence

    from limnos.model.permits import Permit
    from limnos.store.tx import Mutation, MutationBatch

    T = TypeVar("T")
    Decided = tuple[Permit[object], Mutation[T]]
    """A permit, and the mutation under it."""
    Again = Callable[[], Awaitable[Decided[T]]]
    """Decides while locks are held, from reads that begin after that."""

BeginCallback = Callable[[], None]
"""Told when a mutation is about to run for the first time; until then it is certain that it has done nothing."""


def ignore_begin() -> None:
    """Whoever submitted does not care when its mutation begins."""


BATCH_MAX = 256
TURNS_MAX = 4
BATCHES = Counter("limnos_batches_total", "Transactions that carried mutations.", ())
BATCHED = Counter("limnos_batched_mutations_total", "Mutations in them: divided, how much company a commit had.", ())


HELD_MAX_S = 5.0
"""How long a decision may take while others wait for the locks."""


class Savepoint(Protocol):
    """Undoes one job of a batch and nothing else."""

    def save(self) -> None:
        """Begin the job."""
        ...

    def undo(self) -> None:
        """Take back what the job wrote."""
        ...

    def is_lost(self) -> bool:
        """Say whether a failure has undone the whole transaction, so that nothing is left to take back."""
        ...

    def keep(self) -> None:
        """End the job."""
        ...


class MutationJob:
    """One mutation with its permit, the future of whoever submitted it, and how it ended."""

    __slots__ = ("again", "begun", "error", "future", "is_refused", "mutation", "permit", "result")

    def __init__(
        self, permit: Permit[object], mutation: Mutation[object] | None, future: asyncio.Future[object],
        begun: BeginCallback, *, again: Again[object] | None = None,
    ) -> None:  # fmt: skip
        self.begun = begun
        self.permit = permit
        self.mutation = mutation
        self.future = future
        self.again = again
        self.is_refused = False
        self.result: object = None
        self.error: BaseException | None = None

    async def decide(self) -> None:
        """Decide now that the locks are held, if that was asked for; a refusal is kept for the waiter."""
        self.is_refused = False
        if self.again is None or self.future.done():
            return
        try:
            async with asyncio.timeout(HELD_MAX_S):
                self.permit, self.mutation = await self.again()
        except TimeoutError:
            self._refuse(ServiceUnavailable("Deciding took too long; nothing was changed: try again"))
        except Exception as error:  # noqa: BLE001 - told to the waiter
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        self.is_refused = True
        self.error = error

    def run(self, batch: MutationBatch, savepoint: Savepoint, *, ends_batch: tuple[type[Exception], ...] = ()) -> None:
        """Run in a savepoint of its own: a failure undoes nobody else's work, unless it is of a kind that ends the batch."""
        if self.is_refused or self.mutation is None:
            return
        self.begun()  # before the look at who waits: a caller that is told "never begun" must be one that is seen here
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

    def tell(self) -> None:
        """Let the waiter know how it ended."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class MutationQueue(deque[MutationJob]):
    """Jobs that wait for the next batch."""

    pause_s = 0.001

    def add(
        self, permit: Permit[object], mutation: Mutation[object], begun: BeginCallback = ignore_begin
    ) -> asyncio.Future[object]:
        """Queue a mutation; the future is done when its batch is."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.append(MutationJob(permit, mutation, future, begun))
        return future

    def add_held(
        self, permit: Permit[object], again: Again[object], begun: BeginCallback = ignore_begin
    ) -> asyncio.Future[object]:
        """Queue one that decides when the locks of this permit's zones are held: it begins a batch of its own."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.append(MutationJob(permit, None, future, begun, again=again))
        return future

    def take(self, count: int) -> list[MutationJob]:
        """Take the jobs of the next batch out of the queue, at most so many; nobody joins one that decides under locks."""
        jobs = [self.popleft()]
        while self and jobs[0].again is None and not self.is_batch_start and len(jobs) < count:
            jobs.append(self.popleft())
        return jobs

    @property
    def is_batch_start(self) -> bool:
        """Say whether who is next in the queue must be the first of its batch."""
        return bool(self) and self[0].again is not None

    async def gather(self) -> None:
        """Wait as long as each turn of the loop adds mutations to the batch: one commit costs much the same for many."""
        for _ in range(TURNS_MAX):
            waiting = len(self)
            await asyncio.sleep(0)
            if len(self) == waiting:
                return

    async def wait_for_returning_callers(self) -> None:
        """Where somebody began to wait during a commit, give those whom it answered a moment to come again.

        Else the two parties would take turns from then on, with two half-empty transactions where one would do; once they
        have met they stay together, and nobody waits here any more (decision record 0015).
        """
        if self:
            await asyncio.sleep(self.pause_s)


def settle_jobs(jobs: Sequence[MutationJob]) -> None:
    """Tell everyone of a batch that was carried through, and count it."""
    BATCHES[()] += 1
    BATCHED[()] += len(jobs)
    for job in jobs:
        job.tell()


def fail_jobs(jobs: Iterable[MutationJob], error: Exception) -> None:
    """Tell everyone of a batch that failed as a whole."""
    for job in jobs:
        job.error = error
        job.tell()


def state_unknown_error(error: BaseException) -> StateUnknown:
    """What is told when the answer to a commit was lost."""
    told = StateUnknown(
        "The store did not say whether the change was kept: look before you repeat it", cause=str(error)
    )
    told.__cause__ = error
    return told
