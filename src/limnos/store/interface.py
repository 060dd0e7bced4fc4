# SPDX-License-Identifier: Apache-2.0
"""The interface of a store backend: gate reads, loads, and mutations.

Must not know SQL. A backend must pass `tests/store`. `inline` is true if reads return at once (SQLite), and false if
they must be awaited (PostgreSQL).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from limnos.model.permits import Permit
from limnos.store.backends.mutation_queue import Again, BeginCallback, ignore_begin
from limnos.store.changes import GateResult
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Load, Query, Row
from limnos.store.tx import Mutation

T = TypeVar("T")
KnownRevisions = tuple[tuple[int, int], ...]
"""(zone, known revision) pairs."""


CLOSE_S = 2.0
"""The default time for which `close` waits for running work, in seconds."""


class StoreClock(Protocol):
    """The clock that all nodes of a store share."""

    @property
    def offset_ms(self) -> int:
        """The offset in milliseconds by which this node's clock was ahead of the store's clock at the last reading."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""


class StoreWriter(Protocol):
    """The write interface of a store, to which mutations are submitted."""

    @property
    def last_write_failed(self) -> bool:
        """Whether the last transaction of this node could not be written, because of the store and not of its
        mutations.
        """

    @property
    def time(self) -> StoreClock:
        """The store's clock, which all nodes share."""

    async def submit(
        self,
        permit: Permit[object],
        mutation: Mutation[T],
        *,
        on_begin: BeginCallback = ignore_begin,
        is_long: bool = False,
    ) -> T:
        """Run a mutation in its transaction and return its result after the commit.

        Args:
            permit: The permit of the mutation.
            mutation: A plain function over the transaction.
            on_begin: Called right before the mutation first runs. Until then it has certainly had no effect.
            is_long: The mutation writes so much that it must not run on the event loop: it runs in a thread.

        Raises:
            StalePermit: Access may have changed since the decision; the caller must decide again.
            StateUnknown: The response to the commit was lost.
            ServiceUnavailable: It is certain that nothing was committed.
            Exception: Whatever the mutation raises, with nothing written.
        """

    async def submit_held(
        self, permit: Permit[object], again: Again[T], *, on_begin: BeginCallback = ignore_begin
    ) -> T:
        """Take the locks of a permit's zones, call `again` to make the decision, run the mutation that it returns, and
        commit.

        While `again` decides, access and names in those zones cannot change. Raises the errors of `again` and of
        `submit`.
        """

    def snapshot(self) -> AbstractAsyncContextManager[StoreSnapshot]:
        """Open a long read of one snapshot, on a separate connection."""

    async def close(self, *, within_s: float = CLOSE_S) -> None:
        """Finish running work and disconnect. Work that takes longer than `within_s` seconds is abandoned."""


class InlineStore(StoreWriter, Protocol):
    """A store whose reads run inline and return immediately, without awaiting (SQLite)."""

    inline: bool

    def moment(self) -> bytes | None:
        """Return a value that stays equal while nothing is committed; None if that cannot be determined."""

    def gate(self, epoch: int, known: KnownRevisions) -> GateResult:
        """Read the changes after the known revisions, in one statement."""

    def load(self, epoch: int, known: KnownRevisions, load: Callable[[], Load[T]]) -> tuple[GateResult, T]:
        """Read first the changes since the `known` revisions, then facts with `load`, in one snapshot.

        With empty `known` it reads no changes.
        """

    async def load_aside(self, load: Callable[[], Load[T]]) -> T:
        """Read facts with `load` in one snapshot, in a thread: the event loop goes on meanwhile."""

    def find(self, query: Query) -> list[Row]:
        """Run one query in a snapshot of its own, taken after this call, and return its rows."""


class AwaitedStore(StoreWriter, Protocol):
    """A store whose reads are coroutines (PostgreSQL)."""

    inline: bool

    async def gate_async(self, epoch: int, known: KnownRevisions) -> GateResult:
        """Read the changes after the known revisions, in one statement."""

    async def load_async(self, epoch: int, known: KnownRevisions, load: Callable[[], Load[T]]) -> tuple[GateResult, T]:
        """Read first the changes since the `known` revisions, then facts with `load`, in one snapshot.

        With empty `known` it reads no changes. `load` starts the read; it is called again for each retry.
        """

    async def find_async(self, query: Query) -> list[Row]:
        """Run one query in a snapshot of its own, taken after this call, and return its rows."""


Store = InlineStore | AwaitedStore
