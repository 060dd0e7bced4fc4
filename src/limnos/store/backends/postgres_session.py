# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL transaction as mutations see it: statements, ids, savepoints and locks.

The store (`postgres`) opens and commits it. Must not know batches of mutations or threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import psycopg
from psycopg.pq import TransactionStatus

from limnos.model.permits import Permit
from limnos.store.changes import (
    CLOCK_HOLD,
    CLOCK_HOLD_POSTGRES,
    CLOCKS_MAX,
    CLOCKS_READ,
    clock_params,
)
from limnos.store.sql import Params, Row, Sql

LOCK_CLASS = 0x4C494D  # "LIM": the first key of the advisory locks
_SHARED = Sql("SELECT pg_advisory_xact_lock_shared(:space, hashtext(:zone))")
_SHARED_TWICE = Sql(
    "SELECT pg_advisory_xact_lock_shared(:space, hashtext(:server)), pg_advisory_xact_lock_shared(:space,"
    " hashtext(:metalake))"
)
_EXCLUSIVE = Sql("SELECT pg_advisory_xact_lock(:space, hashtext(:zone))")
LOCATION_LOCK_CLASS = 0x4C494E
_LOCK_LOCATIONS = Sql(
    "SELECT CASE WHEN own THEN pg_advisory_xact_lock(:space, hashtext(place)) ELSE pg_advisory_xact_lock_shared(:space,"
    " hashtext(place)) END FROM unnest(CAST(:places AS text[]), CAST(:owns AS boolean[])) AS each(place, own)"
)
_NEXT_IDS = Sql("SELECT nextval('limnos_id') FROM generate_series(1, :count)")
_IDS_MAX = 64
"""The number of ids that are drawn at once for a batch. Unused ones are lost; ids may have gaps."""
_PASS_IDS = Sql("SELECT setval('limnos_id', :beyond + :gap, false) FROM limnos_id WHERE last_value <= :beyond")
_IDS_GAP = 1 << 20
_COUNTED = frozenset({"INSERT", "UPDATE", "DELETE"})
"""The first words of statements that wrote nothing if they affected no row."""


def _lock(zone: int) -> Params:
    return {"space": LOCK_CLASS, "zone": str(zone)}


class PostgresSession:
    """A psycopg connection inside an open transaction.

    A savepoint costs each job a round trip and the database a subtransaction, and few jobs fail after they wrote. So a
    batch has savepoints only if `saves` is true, and otherwise runs again with them when such a job fails.
    """

    has_location_locks = True
    combines_writes = True

    def __init__(
        self, connection: psycopg.Connection, written_zones: tuple[int, ...], *, jobs: int, saves: bool = True
    ) -> None:
        self.connection = connection
        self.written_zones = written_zones
        self._jobs = jobs
        self._uses_savepoints = saves and jobs > 1
        self._has_written = False
        self._ids: list[int] = []
        self._saved = False
        self._locked_above: Sequence[int] = ()
        self._clocks_above: dict[int, Row] = {}
        """Clocks of zones whose locks this transaction has, so that no other one moves them."""
        self._places: dict[str, bool] = {}
        """The locked locations, each with whether the lock is exclusive."""

    def rows(self, statement: Sql, params: Params) -> list[Row]:
        """Run a statement that returns rows."""
        rows = self.connection.execute(statement.psycopg, params).fetchall()
        self._note_writes(statement, len(rows))
        return rows

    def count(self, statement: Sql, params: Params) -> int:
        """Run a statement. Returns the number of affected rows."""
        affected = self.connection.execute(statement.psycopg, params).rowcount
        self._note_writes(statement, affected)
        return affected

    def _note_writes(self, statement: Sql, affected: int) -> None:
        """Note whether a statement may have written. One with parts (WITH) may, whatever its number of rows is."""
        word = statement.text.split(maxsplit=1)[0].upper()
        if word != "SELECT" and (affected != 0 or word not in _COUNTED):
            self._has_written = True

    def many(self, statement: Sql, params: Sequence[Params]) -> None:
        """Run a statement once for each set of parameters, in one round trip."""
        self._has_written = True
        with self.connection.cursor() as cursor:
            cursor.executemany(statement.psycopg, params)

    def next_id(self) -> int:
        """Return a new id from those reserved for this batch, or else from the sequence."""
        if not self._ids:
            self._ids = [row[0] for row in self.rows(_NEXT_IDS, {"count": min(self._jobs, _IDS_MAX)})]
            self._ids.reverse()
        return self._ids.pop()

    def next_ids(self, count: int) -> list[int]:
        """Draw several ids, in one round trip."""
        return [row[0] for row in self.rows(_NEXT_IDS, {"count": count})]

    def pass_ids(self, beyond: int) -> None:
        """Advance the id sequence beyond an id.

        It leaves a gap for ids that other sessions draw between the check and the update.
        """
        self.rows(_PASS_IDS, {"beyond": beyond, "gap": _IDS_GAP})

    def save(self) -> None:
        """Set the savepoint of a job, in a batch that has savepoints. A single job needs none, since it is rolled back
        with its transaction.
        """
        self._has_written = False
        if self._uses_savepoints:
            self.connection.execute("RELEASE mutation; SAVEPOINT mutation" if self._saved else "SAVEPOINT mutation")
            self._saved = True

    def undo(self) -> None:
        """Roll back the writes of the job, and release the locks that it took. A single job is rolled back with the
        whole transaction. A job without a savepoint that wrote nothing keeps its locks until the commit.
        """
        if self._jobs == 1:
            self._places.clear()
            self.connection.rollback()
        elif self._uses_savepoints:
            self._places.clear()
            self.connection.execute("ROLLBACK TO mutation")

    def is_lost(self) -> bool:
        """Return whether a failed job has writes that no savepoint undoes, or has aborted the transaction.

        The batch then runs again, with savepoints. The caller of the batch handles a lost connection.
        """
        if self._jobs == 1 or self._uses_savepoints:
            return False
        return self._has_written or self.connection.info.transaction_status != TransactionStatus.INTRANS

    def keep(self) -> None:
        """No-op: the next savepoint, or the commit, releases this one."""

    def lock_locations(self, locations: Mapping[str, bool]) -> None:
        """Lock locations in the order of their names, in one statement: exclusively where the value is True, else
        shared.

        Locks that this transaction already has are omitted: most tables of a batch have the same parent locations.
        """
        locked_keys = self._places
        new_locations = sorted(
            each for each, is_exclusive in locations.items() if is_exclusive > locked_keys.get(each, -1)
        )
        if new_locations:
            exclusive_flags = [locations[each] for each in new_locations]
            self.rows(_LOCK_LOCATIONS, {"space": LOCATION_LOCK_CLASS, "places": new_locations, "owns": exclusive_flags})
            locked_keys.update(zip(new_locations, exclusive_flags, strict=True))

    def read_clocks(self, zones: Sequence[int]) -> list[Row]:
        """Read the clocks of zones, in a separate statement after the locks are taken.

        If `zones` is only one zone that the mutation writes to, its clock row is locked until the commit, and the
        clocks of the zones above it are read with it.
        """
        if len(zones) == 1 and zones[0] in self.written_zones:
            if len(self.written_zones) > 1 or not self._locked_above:
                return self.rows(CLOCK_HOLD, {"zone": zones[0]})
            params = {"zone": zones[0], **clock_params(self._locked_above)}
            rows = self.rows(CLOCK_HOLD_POSTGRES, params)
            self._clocks_above = {row[0]: row for row in rows if row[0] != zones[0]}
            return [row for row in rows if row[0] == zones[0]]  # none for a zone that is gone
        rows = [row for row in map(self._clocks_above.get, zones) if row is not None]
        return rows if len(rows) == len(zones) else self.rows(CLOCKS_READ, clock_params(zones))

    def lock(self, permit: Permit[object]) -> None:
        """Take the access locks in zone order: shared above the mutation's zone, exclusive on it.

        A catalog's own lock is its clock row, taken when its clock is read. The rows of several catalogs are taken in
        ascending order, so that no two transactions wait for each other. A mutation of a metalake that depends on a
        catalog does not lock the catalog, since every writer to the catalog holds a shared lock on the metalake. A
        mutation of a catalog that writes to its metalake, too, takes the metalake's lock exclusively.
        """
        zones = [zone for zone, _ in permit.stamps]
        above = zones[: zones.index(permit.zone)] if permit.zone in zones else zones
        self._locked_above = above[:CLOCKS_MAX]
        if permit.writes_metalake:
            self.rows(_SHARED, _lock(above[0]))
            self.rows(_EXCLUSIVE, _lock(above[1]))
            return
        if len(above) == 2:
            self.rows(_SHARED_TWICE, {"space": LOCK_CLASS, "server": str(above[0]), "metalake": str(above[1])})
            return
        for zone in above:
            self.rows(_SHARED, _lock(zone))
        if permit.zone in zones:
            self.rows(_EXCLUSIVE, _lock(permit.zone))
