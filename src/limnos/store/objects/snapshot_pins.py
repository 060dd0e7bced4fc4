# SPDX-License-Identifier: Apache-2.0
"""Pins: snapshots of tables that are still being read, by steps of pipeline runs or by scan plans.

Must not know the content of snapshots. No decision and no cache depends on these rows, so none leaves a change row.
Rows are in force until they expire, and a run's rows only while it runs or is held. They are deleted only with the run,
so that they apply again when it resumes. A plan's rows have run 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.model.runs import HELD, RUNNING
from limnos.store.sql import Load, Params, Row, Sql
from limnos.store.transaction import Writes

EXPIRED_AT_ONCE: Final = 500
_ROW = "run_id = :run AND name = :name"
HOLDERS = Sql(
    "SELECT p.snapshots, p.run_id, p.expires_at, r.uuid, r.state FROM snapshot_pin p LEFT JOIN pipeline_run r ON r.id"
    f" = p.run_id WHERE p.table_id = :table AND p.expires_at > :now AND (p.run_id = 0 OR r.state = '{HELD}' OR (r.state"
    f" = '{RUNNING}' AND r.beat_at + r.lease_ms > :now)) ORDER BY p.run_id DESC, p.expires_at DESC"
)
TABLES = Sql("SELECT DISTINCT table_id FROM snapshot_pin WHERE run_id = :run AND expires_at > :now ORDER BY table_id")
INSERT = Sql(
    "INSERT INTO snapshot_pin (run_id, name, table_id, snapshots, expires_at) VALUES (:run, :name, :table, :snapshots,"
    " :expires)"
)
EXTEND = Sql(f"UPDATE snapshot_pin SET expires_at = :expires WHERE {_ROW} AND table_id = :table")
DROP = Sql(f"DELETE FROM snapshot_pin WHERE {_ROW}")
OVER = Sql(
    "SELECT name FROM snapshot_pin WHERE run_id = 0 AND expires_at <= :now ORDER BY expires_at, name LIMIT :limit"
)
VERSION = Sql(
    "SELECT version FROM document WHERE node_id = :table FOR SHARE",
    on_sqlite="SELECT version FROM document WHERE node_id = :table",
)
"""The statement that reads and locks a document's version. A commit that replaces the document conflicts with this
lock, so a pin and a removal of its snapshot are ordered.
"""


class PinHolder(NamedTuple):
    """The reader that pins a table's snapshots: a run with its state, or a scan plan with its expiry in milliseconds
    since 1970.
    """

    snapshots: frozenset[int]
    run: str | None
    state: str | None
    expires_at: int


def holders_read(table_id: int, *, now_ms: int) -> Load[list[PinHolder]]:
    """Read the current pins of a table's snapshots, runs first."""
    return _holders((yield HOLDERS, {"table": table_id, "now": now_ms}))


def pinned_tables_read(run_id: int, *, now_ms: int) -> Load[list[int]]:
    """Read the ids of the tables of which a run pins snapshots, also if it has ended."""
    return [row[0] for row in (yield TABLES, {"run": run_id, "now": now_ms})]


def _holders(rows: Sequence[Row]) -> list[PinHolder]:
    return [
        PinHolder(frozenset(msgspec.json.decode(snapshots, type=list[int])), uuid, state, expires)
        for snapshots, _, expires, uuid, state in rows
    ]


class SnapshotPinWrites(Writes):
    """Reads and writes snapshot pins inside a transaction."""

    def holders(self, table_id: int) -> list[PinHolder]:
        """Read the current pins of a table's snapshots, runs first."""
        return _holders(self.tx.rows(HOLDERS, {"table": table_id, "now": self.tx.now_ms}))

    def run_set(self, run_id: int, step: str, *, pins: Mapping[int, Sequence[int]], keep_ms: int) -> None:
        """Replace the snapshots that a run pins for a step, for `keep_ms`.

        `pins` maps table ids to snapshot ids; the step "" stands for the beginning of the run.
        """
        self.tx.count(DROP, {"run": run_id, "name": step})
        expires = self.tx.now_ms + keep_ms
        rows: list[Params] = [
            self._row(run_id, step, table_id=table, snapshots=snapshots, expires=expires)
            for table, snapshots in pins.items()
        ]
        if rows:
            self.tx.session.many(INSERT, rows)

    def plan_set(self, name: str, *, table_id: int, snapshots: Sequence[int], keep_ms: int) -> None:
        """Pin snapshots of a table for a plan, for `keep_ms`."""
        expires = self.tx.now_ms + keep_ms
        if not self.tx.count(EXTEND, {"run": 0, "name": name, "table": table_id, "expires": expires}):
            self.tx.count(INSERT, self._row(0, name, table_id=table_id, snapshots=snapshots, expires=expires))

    def plan_drop(self, name: str) -> None:
        """Delete the pins of a plan."""
        self.tx.count(DROP, {"run": 0, "name": name})

    def expire(self) -> int:
        """Delete up to `EXPIRED_AT_ONCE` expired pins of plans. Returns the number of deleted pins."""
        rows = self.tx.rows(OVER, {"now": self.tx.now_ms, "limit": EXPIRED_AT_ONCE})
        for (name,) in rows:
            self.plan_drop(name)
        return len(rows)

    def version(self, table_id: int) -> int | None:
        """Read and lock the version of a table's document; None if there is no document.

        No commit replaces the document before this transaction ends.
        """
        rows = self.tx.rows(VERSION, {"table": table_id})
        return rows[0][0] if rows else None

    def _row(self, run_id: int, name: str, *, table_id: int, snapshots: Sequence[int], expires: int) -> Params:
        text = msgspec.json.encode(sorted(set(snapshots))).decode()
        return {"run": run_id, "name": name, "table": table_id, "snapshots": text, "expires": expires}
