"""What a backend offers the rooms above: the gate, loads, and mutations.

May import `model` and this room. A backend is whatever passes `tests/store`; `inline` says whether reads answer at
once (SQLite) or must be awaited (PostgreSQL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from limnos.store.mutation_queue import BeginCallback, ignore_begin

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from limnos.model.permits import Permit
    from limnos.store.changes import GateResult
    from limnos.store.mutation_queue import Again
    from limnos.store.snapshots import StoreSnapshot
    from limnos.store.sql import Load, Query, Row
    from limnos.store.tx import Mutation

T = TypeVar("T")
KnownRevisions = tuple[tuple[int, int], ...]
"""(zone, known revision) pairs."""


CLOSE_S = 2.0
"""So long a store that is closed waits for what is under way."""


class StoreClock(Protocol):
    """The clock that all nodes of a store share."""

    @property
    def offset_ms(self) -> int:
        """How far this node's own clock was ahead when the store's was last looked at."""
        ...

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        ...


class StoreWriter(Protocol):
    """The half that mutations go to."""

    @property
    def time(self) -> StoreClock:
        """The clock that all nodes share."""
        ...

    async def submit(self, permit: Permit[object], mutation: Mutation[T], *, begun: BeginCallback = ignore_begin) -> T:
        """Run a mutation in its transaction and return after the commit. `begun` is told right before it first runs.

        Raises StalePermit (decide again), StateUnknown (the answer to the commit was lost), Unavailable (certain that
        nothing was committed), and whatever the mutation raises, with nothing written.
        """
        ...

    async def submit_held(self, permit: Permit[object], again: Again[T], *, begun: BeginCallback = ignore_begin) -> T:
        """Take the locks of a permit's zones, decide by `again`, run the mutation that comes of it, and commit.

        While `again` decides nobody can move access or names in those zones. Raises what it raises, and what `submit` does.
        """
        ...

    def snapshot(self) -> AbstractAsyncContextManager[StoreSnapshot]:
        """Open a read of one moment that lasts a while, on a connection of its own."""
        ...

    async def close(self, *, within_s: float = CLOSE_S) -> None:
        """Finish what is under way and disconnect. What is not done within the time is given up, whatever hangs."""
        ...


class InlineStore(StoreWriter, Protocol):
    """A store whose reads return at once."""

    inline: bool

    def moment(self) -> bytes | None:
        """Return what is equal as long as nothing was committed by anybody; None when that cannot be told."""
        ...

    def gate(self, epoch: int, known: KnownRevisions) -> GateResult:
        """Read what has changed since the known revisions, in one statement."""
        ...

    def load(self, epoch: int, known: KnownRevisions, load: Callable[[], Load[T]]) -> tuple[GateResult, T]:
        """Read changes first and then facts, in one snapshot."""
        ...

    def find(self, query: Query) -> list[Row]:
        """Read by one statement, whose snapshot begins after this call."""
        ...


class AwaitedStore(StoreWriter, Protocol):
    """A store whose reads must be awaited."""

    inline: bool

    async def gate_async(self, epoch: int, known: KnownRevisions) -> GateResult:
        """Read what has changed since the known revisions, in one statement."""
        ...

    async def load_async(self, epoch: int, known: KnownRevisions, load: Callable[[], Load[T]]) -> tuple[GateResult, T]:
        """Read changes first and then facts, in one snapshot. `load` begins the read: once more when it must be repeated."""
        ...

    async def find_async(self, query: Query) -> list[Row]:
        """Read by one statement, whose snapshot begins after this call."""
        ...


Store = InlineStore | AwaitedStore
