"""What a backend offers the rooms above: the gate, loads, and mutations.

May import `model` and this room. A backend is whatever passes `tests/store`; `inline` says whether reads answer at
once (SQLite) or must be awaited (PostgreSQL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from limnos.model.permits import Permit
    from limnos.store.changes import Moved
    from limnos.store.jobs import Again
    from limnos.store.sql import Load
    from limnos.store.tx import Mutation

T = TypeVar("T")
Known = tuple[tuple[int, int], ...]
"""(zone, known revision) pairs."""


class Writer(Protocol):
    """The half that mutations go to."""

    async def submit(self, permit: Permit[object], mutation: Mutation[T]) -> T:
        """Run a mutation in its transaction and return after the commit.

        Raises StalePermit (decide again), StateUnknown (the answer to the commit was lost), Unavailable (certain that
        nothing was committed), and whatever the mutation raises, with nothing written.
        """
        ...

    async def submit_held(self, permit: Permit[object], again: Again[T]) -> T:
        """Take the locks of a permit's zones, decide by `again`, run the mutation that comes of it, and commit.

        While `again` decides nobody can move access or names in those zones. Raises what it raises, and what `submit` does.
        """
        ...

    async def close(self) -> None:
        """Finish what is under way and disconnect."""
        ...


class InlineStore(Writer, Protocol):
    """A store whose reads return at once."""

    inline: bool

    def moment(self) -> bytes | None:
        """Return what is equal as long as nothing was committed by anybody; None when that cannot be told."""
        ...

    def gate(self, epoch: int, known: Known) -> Moved:
        """Read what has changed since the known revisions, in one statement."""
        ...

    def load(self, epoch: int, known: Known, load: Load[T]) -> tuple[Moved, T]:
        """Read changes first and then facts, in one snapshot."""
        ...


class AwaitedStore(Writer, Protocol):
    """A store whose reads must be awaited."""

    inline: bool

    async def gate_async(self, epoch: int, known: Known) -> Moved:
        """Read what has changed since the known revisions, in one statement."""
        ...

    async def load_async(self, epoch: int, known: Known, load: Load[T]) -> tuple[Moved, T]:
        """Read changes first and then facts, in one snapshot."""
        ...


Store = InlineStore | AwaitedStore
