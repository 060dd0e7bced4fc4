# SPDX-License-Identifier: Apache-2.0
"""Server-side scan plans that clients have not fetched completely: the scan, the owner, and the plan tasks of each.

Must not know scans. No decision and no cache depends on these rows, so none leaves a change row. A plan's content is
computed from its row at each request; no row stores a result.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.model.principals import Requester
from limnos.store.sql import Params, Query, Row, Sql
from limnos.store.transaction import Writes

_OWN = "user_name = :user AND user_id = :user_id"
FIND = Sql(
    f"SELECT id, scan, parts, cancelled FROM scan_plan WHERE id = :id AND table_id = :table AND {_OWN} AND expires_at >"
    " :now"
)
INSERT = Sql(
    "INSERT INTO scan_plan (id, user_name, user_id, table_id, scan, parts, cancelled, expires_at)"
    " VALUES (:id, :user, :user_id, :table, :scan, :parts, 0, :expires)"
)
PARTS = Sql("UPDATE scan_plan SET parts = :parts WHERE id = :id")
CANCEL = Sql("UPDATE scan_plan SET cancelled = 1 WHERE id = :id")
OLDER = Sql(f"SELECT id FROM scan_plan WHERE {_OWN} ORDER BY expires_at DESC, id LIMIT 1000 OFFSET :keep")
DELETE = Sql("DELETE FROM scan_plan WHERE id = :id")
OVER = Sql("SELECT id FROM scan_plan WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit")


class ScanPlan(NamedTuple):
    """A plan. `scan` describes the scan; `parts` is a JSON array of its plan tasks, "" until they are computed."""

    id: str
    scan: bytes
    parts: str = ""
    is_cancelled: bool = False


EXPIRED_AT_ONCE: Final = 500


def plan_query(plan_id: str, *, table_id: int, requester: Requester, now_ms: int) -> Query:
    """Return the statement that reads an unexpired plan of a table, if this user created it."""
    return FIND, {"id": plan_id, "table": table_id, "user": requester.name, "user_id": requester.id, "now": now_ms}


def plan_of(rows: list[Row]) -> ScanPlan | None:
    """Build the plan from the query's rows, or None."""
    if not rows:
        return None
    ((result, scan, parts, cancelled),) = rows
    return ScanPlan(result, bytes(scan), parts, bool(cancelled))


class ScanPlanWrites(Writes):
    """Writes scan plans inside a transaction."""

    def insert(self, plan: ScanPlan, *, requester: Requester, table_id: int, keep_ms: int, most: int) -> None:
        """Insert a plan for `keep_ms` milliseconds. The oldest plans of its user beyond `most` are deleted."""
        whose: Params = {"user": requester.name, "user_id": requester.id}
        self.tx.count(
            INSERT,
            {
                "id": plan.id,
                **whose,
                "table": table_id,
                "scan": plan.scan,
                "parts": plan.parts,
                "expires": self.tx.now_ms + keep_ms,
            },
        )
        for (older,) in self.tx.rows(OLDER, {**whose, "keep": most}):
            self.tx.count(DELETE, {"id": older})

    def set_parts(self, plan_id: str, parts: str) -> None:
        """Store the plan tasks of a plan, a JSON array, once they are computed."""
        self.tx.count(PARTS, {"id": plan_id, "parts": parts})

    def cancel(self, plan_id: str) -> None:
        """Mark a plan as cancelled."""
        self.tx.count(CANCEL, {"id": plan_id})

    def expire(self) -> int:
        """Delete up to `EXPIRED_AT_ONCE` expired plans. Returns the number of deleted plans."""
        rows = self.tx.rows(OVER, {"now": self.tx.now_ms, "limit": EXPIRED_AT_ONCE})
        for (each,) in rows:
            self.tx.count(DELETE, {"id": each})
        return len(rows)
