"""Work to be done after a commit, as rows of the commit: purge of a dropped table's files.

May import the room's `sql`. A worker leases a task for a time, writes its progress, and deletes it when done; one that
died is leased again, and goes on from its progress.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.store.sql import Sql

if TYPE_CHECKING:
    from limnos.store.tx import Tx


class Task(msgspec.Struct, frozen=True):
    """A leased task; `progress` is what the last worker left."""

    id: int
    kind: str
    payload: str
    attempts: int
    progress: str | None


INSERT = Sql(
    "INSERT INTO task (id, kind, payload, created_at, due_at, attempts, leased_until) VALUES"
    " (:id, :kind, :payload, :now, :now, 0, 0)"
)
DUE = Sql(
    "SELECT id, kind, payload, attempts, progress FROM task WHERE due_at <= :now AND leased_until <= :now"
    " ORDER BY due_at, id LIMIT 1"
)
LEASE = Sql("UPDATE task SET leased_until = :until, attempts = attempts + 1 WHERE id = :id AND leased_until <= :now")
PROGRESS = Sql("UPDATE task SET progress = :progress, leased_until = :until WHERE id = :id")
RETRY = Sql("UPDATE task SET due_at = :due, leased_until = 0, error = :error WHERE id = :id")
DELETE = Sql("DELETE FROM task WHERE id = :id")


class TaskWrites:
    """What mutations and workers do to tasks."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx

    def create(self, kind: str, payload: str) -> None:
        """Insert a task that is due at once, in the mutation's transaction."""
        self.tx.count(INSERT, {"id": self.tx.next_id(), "kind": kind, "payload": payload, "now": self.tx.now_ms})

    def lease(self, *, lease_ms: int) -> Task | None:
        """Take the oldest due task for a while; None when there is none or another worker was faster."""
        rows = self.tx.rows(DUE, {"now": self.tx.now_ms})
        if not rows:
            return None
        taken = self.tx.count(LEASE, {"id": rows[0][0], "until": self.tx.now_ms + lease_ms, "now": self.tx.now_ms})
        return Task(*rows[0]) if taken else None

    def progress(self, task_id: int, progress: str, *, lease_ms: int) -> None:
        """Leave word of how far the task is, and keep it."""
        self.tx.count(PROGRESS, {"id": task_id, "progress": progress, "until": self.tx.now_ms + lease_ms})

    def retry(self, task_id: int, error: str, *, delay_ms: int) -> None:
        """Give a failed task back for later."""
        self.tx.count(RETRY, {"id": task_id, "due": self.tx.now_ms + delay_ms, "error": error})

    def done(self, task_id: int) -> None:
        """Remove a finished task."""
        self.tx.count(DELETE, {"id": task_id})
