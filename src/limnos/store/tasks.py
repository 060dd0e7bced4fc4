"""Work to be done after a commit, as rows of the commit, or again and again; which kinds there are is not known here.

May import `model` and the room's `sql`. A worker leases a task for a time, writes its progress, and deletes it when done; one
that died is leased again, and goes on from its progress. A task that was given up, or has something to tell, stays as ended.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from limnos.model.entities import TaskRow
from limnos.store.sql import Load, Sql, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.store.transaction import StoreTransaction


class LeasedTask(msgspec.Struct, frozen=True):
    """A leased task; `progress` is what the last worker left."""

    id: int
    kind: str
    payload: str
    attempts: int
    progress: str | None


NEVER_MS = 1 << 52
"""When an ended task is due: no release takes it up."""
INSERT = Sql(
    "INSERT INTO task (id, kind, payload, created_at, due_at, attempts, leased_until) VALUES"
    " (:id, :kind, :payload, :now, :due, 0, 0)"
)
_DUE = (
    "SELECT id, kind, payload, attempts, progress FROM task WHERE due_at <= :now AND leased_until <= :now"
    " AND (kind IN ({kinds})) = :among ORDER BY due_at, id LIMIT 1"
)
DUE = Sql(
    _DUE.format(kinds="SELECT json_array_elements_text(CAST(:kinds AS json))"),
    on_sqlite=_DUE.format(kinds="SELECT value FROM json_each(:kinds)"),
)
LEASE = Sql("UPDATE task SET leased_until = :until, attempts = attempts + 1 WHERE id = :id AND leased_until <= :now")
PROGRESS = Sql("UPDATE task SET progress = :progress, leased_until = :until WHERE id = :id")
RETRY = Sql("UPDATE task SET due_at = :due, leased_until = 0, error = :error WHERE id = :id")
AGAIN = Sql(
    "UPDATE task SET due_at = :due, leased_until = 0, attempts = 0, progress = NULL, error = NULL, result = :result, payload = :payload"
    " WHERE id = :id"
)
END = Sql(
    f"UPDATE task SET due_at = {NEVER_MS}, leased_until = 0, ended_at = :now, error = :error, result = :result WHERE id = :id"
)
REVIVE = Sql(
    "UPDATE task SET due_at = :now, leased_until = 0, attempts = 0, ended_at = NULL, error = NULL"
    " WHERE id = :id AND leased_until <= :now AND (ended_at IS NULL OR error IS NOT NULL)"
)
DELETE = Sql("DELETE FROM task WHERE id = :id")
FORGET = Sql("DELETE FROM task WHERE ended_at < :before AND error IS NULL")
PAYLOADS = Sql("SELECT payload FROM task WHERE kind = :kind AND (ended_at IS NULL OR error IS NOT NULL)")
OF_KIND = Sql("SELECT id, payload, ended_at IS NOT NULL FROM task WHERE kind = :kind ORDER BY id")
ANY_OF = Sql("SELECT payload FROM task WHERE kind = :kind AND ended_at IS NULL LIMIT 1")
_COLUMNS = "id, kind, payload, created_at, due_at, attempts, leased_until, progress, error, ended_at, result"
BY_ID = Sql(f"SELECT {_COLUMNS} FROM task WHERE id = :id")
_STATES = {
    "dead": "ended_at IS NOT NULL AND error IS NOT NULL",
    "done": "ended_at IS NOT NULL AND error IS NULL",
    "waiting": "ended_at IS NULL",
}
STATES = tuple(_STATES)
LIST = {
    state: Sql(f"SELECT {_COLUMNS} FROM task WHERE id > :after AND {where} ORDER BY id LIMIT :limit")
    for state, where in _STATES.items()
}
COUNTS = Sql(
    "SELECT kind, CASE WHEN ended_at IS NULL THEN 'waiting' WHEN error IS NULL THEN 'done' ELSE 'dead' END, count(*) FROM task"
    " GROUP BY 1, 2"
)


def task_read(task_id: int) -> Load[TaskRow | None]:
    """Read a task."""
    rows = yield BY_ID, {"id": task_id}
    return TaskRow(*rows[0]) if rows else None


def tasks_read(state: str, *, after: int, limit: int) -> Load[list[TaskRow]]:
    """Read tasks of a state (one of `STATES`) by id, those after an id, at most `limit`."""
    rows = yield LIST[state], {"after": after, "limit": limit}
    return [TaskRow(*row) for row in rows]


def task_due(now_ms: int, *, kinds: Sequence[str], among: bool) -> Load[bool]:
    """Say whether a task of these kinds waits for a worker, or one of all but these."""
    rows = yield DUE, _due(now_ms, kinds, among=among)
    return bool(rows)


def task_counts() -> Load[dict[tuple[str, str], int]]:
    """Count tasks by kind and state."""
    rows = yield COUNTS, {}
    return {(row[0], row[1]): row[2] for row in rows}


def _due(now_ms: int, kinds: Sequence[str], *, among: bool) -> dict[str, Value]:
    return {"now": now_ms, "kinds": json.dumps(kinds), "among": among}


class TaskWrites:
    """What mutations and workers do to tasks."""

    def __init__(self, tx: StoreTransaction) -> None:
        self.tx = tx

    def create(self, kind: str, payload: str, *, delay_ms: int = 0) -> int:
        """Insert a task, in the mutation's transaction, that is due at once or later; returns its id."""
        now, task_id = self.tx.now_ms, self.tx.next_id()
        self.tx.count(INSERT, {"id": task_id, "kind": kind, "payload": payload, "now": now, "due": now + delay_ms})
        return task_id

    def ensure(self, kind: str, payload: str, *, delay_ms: int) -> None:
        """Insert a task unless one of its kind is there that has not ended."""
        if not self.tx.rows(ANY_OF, {"kind": kind}):
            self.create(kind, payload, delay_ms=delay_ms)

    def lease(self, *, lease_ms: int, kinds: Sequence[str] = (), among: bool = False) -> LeasedTask | None:
        """Take the oldest due task of these kinds for a while, or of all but these; None when there is none or another worker was faster."""
        rows = self.tx.rows(DUE, _due(self.tx.now_ms, kinds, among=among))
        if not rows:
            return None
        taken = self.tx.count(LEASE, {"id": rows[0][0], "until": self.tx.now_ms + lease_ms, "now": self.tx.now_ms})
        return LeasedTask(*rows[0]) if taken else None

    def progress(self, task_id: int, progress: str, *, lease_ms: int) -> None:
        """Leave word of how far the task is, and keep it."""
        self.tx.count(PROGRESS, {"id": task_id, "progress": progress, "until": self.tx.now_ms + lease_ms})

    def retry(self, task_id: int, error: str, *, delay_ms: int) -> None:
        """Give a failed task back for later."""
        self.tx.count(RETRY, {"id": task_id, "due": self.tx.now_ms + delay_ms, "error": error})

    def again(self, task_id: int, *, payload: str, result: str | None, delay_ms: int) -> None:
        """Give a task back that is to be done again and again, with what it told this time."""
        params: dict[str, Value] = {
            "id": task_id,
            "due": self.tx.now_ms + delay_ms,
            "payload": payload,
            "result": result,
        }
        self.tx.count(AGAIN, params)

    def end(self, task_id: int, *, error: str | None, result: str | None) -> None:
        """Keep an ended task to be seen: given up with an error, or done with something to tell."""
        self.tx.count(END, {"id": task_id, "now": self.tx.now_ms, "error": error, "result": result})

    def revive(self, task_id: int) -> bool:
        """Make a task due at once that was given up or waits; False when there is none, it runs, or it is done."""
        return self.tx.count(REVIVE, {"id": task_id, "now": self.tx.now_ms}) > 0

    def done(self, task_id: int) -> None:
        """Remove a finished task."""
        self.tx.count(DELETE, {"id": task_id})

    def forget(self, *, keep_ms: int) -> int:
        """Remove what was done longer ago than this; returns how many. What was given up stays."""
        return self.tx.count(FORGET, {"before": self.tx.now_ms - keep_ms})

    def told(self, kind: str) -> str | None:
        """Read what the task of a kind that is done again and again is to be told next; None when there is none yet."""
        rows = self.tx.rows(ANY_OF, {"kind": kind})
        return str(rows[0][0]) if rows else None

    def payloads(self, kind: str) -> list[str]:
        """Read what the tasks of a kind were told that are not done."""
        return [row[0] for row in self.tx.rows(PAYLOADS, {"kind": kind})]

    def of_kind(self, kind: str) -> list[tuple[int, str, bool]]:
        """Read the tasks of a kind: id, what it was told, and whether it has ended."""
        return [(row[0], row[1], bool(row[2])) for row in self.tx.rows(OF_KIND, {"kind": kind})]
