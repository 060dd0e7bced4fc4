# SPDX-License-Identifier: Apache-2.0
"""The part of a transaction that all resources share: statements, ids, change drafts, and the actor.

Must not know any resource: `tx` adds those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from limnos.model.audit import AuditOutcome
from limnos.model.errors import StalePermit
from limnos.model.permits import Permit
from limnos.store.changes import CLOCK_NEW, EPOCH, ChangeDraft
from limnos.store.sql import Params, Row, Sql


class StoreSession(Protocol):
    """A backend's connection inside an open transaction."""

    has_location_locks: bool
    """Whether `lock_locations` locks anything."""

    combines_writes: bool
    """Whether a statement may write to several tables, in parts (WITH)."""

    def rows(self, statement: Sql, params: Params) -> list[Row]:
        """Run a statement that returns rows."""

    def count(self, statement: Sql, params: Params) -> int:
        """Run a statement. Returns the number of affected rows."""

    def many(self, statement: Sql, params: Sequence[Params]) -> None:
        """Run a statement once for each set of parameters."""

    def next_id(self) -> int:
        """Return a new id; ids are never reused."""

    def next_ids(self, count: int) -> list[int]:
        """Return several new ids."""

    def pass_ids(self, beyond: int) -> None:
        """Make all later ids greater than `beyond`."""

    def lock_locations(self, locations: Mapping[str, bool]) -> None:
        """Lock locations until the commit: exclusively where the value is True, else shared.

        Writers in other catalogs take the same locks. Each call sorts the locations, which prevents deadlocks.
        """

    def read_clocks(self, zones: Sequence[int]) -> list[Row]:
        """Read (zone, revision, access revision) of at most three zones.

        The mutation's own clock is locked until the commit.
        """


class StoreTransaction:
    """The transaction of one mutation, without the writes of resources, which `Tx` adds."""

    def __init__(self, session: StoreSession, *, permit: Permit[object], revision: int, now_ms: int) -> None:
        self.session = session
        self.zone = permit.zone
        self.actor = permit.actor
        self.actor_id = permit.actor_id
        self.request_id = permit.request_id
        self.revision = revision
        self.now_ms = now_ms
        self.drafts: list[ChangeDraft] = []
        self.writes_metalake = permit.writes_metalake
        """Whether the transaction has the metalake's lock, and may write to its zone, too."""
        self.outer_drafts: tuple[int, list[ChangeDraft]] | None = None
        """The metalake's zone, and the change drafts in it; None if there are none."""
        self.note_detail = ""
        """What a mutation did, in words for the audit: for its first change row, or its record if it has none."""
        self.note_outcome: AuditOutcome = "done"
        """The outcome of a mutation without a change row, for its record in the audit: `failed` if it did nothing."""
        self.looked_below = 0
        """The number of nodes that were read to compute heights of subtrees."""
        self.rows = session.rows
        self.count = session.count
        self.next_id = session.next_id

    @property
    def next_revision(self) -> int:
        """The zone's revision after the transaction, which moves only if something has changed."""
        return self.revision if self.drafts else self.revision - 1

    def epoch(self) -> int:
        """Read the store's epoch."""
        rows: int = self.rows(EPOCH, {})[0][0]
        return rows

    def add_change(self, draft: ChangeDraft) -> None:
        """Add a change draft, from which the batch writes a change row before its commit."""
        self.drafts.append(draft)

    def add_change_in(self, metalake_id: int, draft: ChangeDraft) -> None:
        """Add a change draft of the metalake's zone to a mutation of a catalog that has the metalake's lock."""
        if self.outer_drafts is None:
            self.outer_drafts = (metalake_id, [])
        self.outer_drafts[1].append(draft)

    def new_zone(self, zone: int) -> None:
        """Start the clock of a new metalake or catalog."""
        self.count(CLOCK_NEW, {"zone": zone})

    def stale(self) -> NoReturn:
        """Raise StalePermit, because a fact that the decision depended on has changed."""
        raise StalePermit


class Writes:
    """Base class for the reads and writes of one resource inside a transaction, such as `NodeWrites`. `tx` is the
    transaction.
    """

    def __init__(self, tx: StoreTransaction) -> None:
        self.tx = tx
