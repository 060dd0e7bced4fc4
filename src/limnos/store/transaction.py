"""One transaction as the writes of every resource see it: statements, ids, the drafts of its changes, and who makes it.

May import `model` and this room's `changes` and `sql`. Must not know any resource: `tx` adds those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol

from limnos.model.errors import StalePermit
from limnos.store.changes import CLOCK_NEW, EPOCH, ChangeDraft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.permits import Permit
    from limnos.store.sql import Params, Row, Sql


class StoreSession(Protocol):
    """A backend's connection inside an open transaction."""

    def rows(self, statement: Sql, params: Params) -> list[Row]:
        """Run a statement that returns rows."""
        ...

    def count(self, statement: Sql, params: Params) -> int:
        """Run a statement and return how many rows it wrote."""
        ...

    def many(self, statement: Sql, params: Sequence[Params]) -> None:
        """Run a statement once for each set of parameters."""
        ...

    def next_id(self) -> int:
        """Draw an id that was never drawn before."""
        ...

    def next_ids(self, count: int) -> list[int]:
        """Draw several ids that were never drawn before."""
        ...

    def pass_ids(self, beyond: int) -> None:
        """Draw no id up to this one from now on."""
        ...

    def lock_locations(self, above: Sequence[str], own: str | None) -> None:
        """Hold a location exclusively, and those it lies in shared, against rivals in other catalogs, to the commit."""
        ...

    def read_clocks(self, zones: Sequence[int]) -> list[Row]:
        """Read (zone, revision, access revision) of at most three zones; the mutation's own is held to the commit."""
        ...


class StoreTransaction:
    """One mutation's view of its transaction, without the resources."""

    def __init__(self, session: StoreSession, *, permit: Permit[object], revision: int, now_ms: int) -> None:
        self.session = session
        self.actor = permit.actor
        self.actor_id = permit.actor_id
        self.request_id = permit.request_id
        self.revision = revision
        self.now_ms = now_ms
        self.drafts: list[ChangeDraft] = []
        self.looked_below = 0
        """How many nodes were read to learn how high subtrees are."""
        self.rows = session.rows
        self.count = session.count
        self.next_id = session.next_id

    def epoch(self) -> int:
        """Read the store's epoch."""
        found: int = self.rows(EPOCH, {})[0][0]
        return found

    def changed(self, draft: ChangeDraft) -> None:
        """Record what the mutation did; every write of a resource calls this."""
        self.drafts.append(draft)

    def new_zone(self, zone: int) -> None:
        """Start the clock of a new metalake or catalog."""
        self.count(CLOCK_NEW, {"zone": zone})

    def stale(self) -> NoReturn:
        """Something the decision rested on is gone: send the writer back to the gate."""
        raise StalePermit
