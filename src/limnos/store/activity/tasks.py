# SPDX-License-Identifier: Apache-2.0
"""Background tasks: rows that a commit creates, or that become due at intervals.

Must not know kinds of tasks. A worker leases a task, stores its progress, and deletes it when done. If the worker dies,
the task is leased again and continues from its progress. A failed task, or one with a result, is retained as ended.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from limnos.model.entities import TaskRow
from limnos.store.sql import Load, Sql, Value
from limnos.store.transaction import Writes


class LeasedTask(msgspec.Struct, frozen=True):
    """A leased task. `attempts` counts the earlier attempts. `progress` is the progress that the previous worker
    stored; None if it stored none.
    """

    id: int
    kind: str
    payload: str
    attempts: int
    progress: str | None


NEVER_MS = 1 << 52
"""The due time of an ended task, which is never due."""
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
LEASE = Sql(
    "UPDATE task SET leased_until = :until, holder = :holder, attempts = attempts + 1 WHERE id = :id AND leased_until"
    " <= :now"
)
PROGRESS = Sql("UPDATE task SET progress = :progress, leased_until = :until WHERE id = :id")
RELEASE = Sql("UPDATE task SET leased_until = 0 WHERE id = :id AND holder = :holder AND leased_until > 0")
RETRY = Sql("UPDATE task SET due_at = :due, leased_until = 0, error = :error WHERE id = :id")
AGAIN = Sql(
    "UPDATE task SET due_at = :due, leased_until = 0, attempts = 0, progress = NULL, error = NULL, result = :result,"
    " payload = :payload WHERE id = :id"
)
END = Sql(
    f"UPDATE task SET due_at = {NEVER_MS}, leased_until = 0, ended_at = :now, error = :error, result = :result WHERE id"
    " = :id"
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
    "SELECT kind, CASE WHEN ended_at IS NULL THEN 'waiting' WHEN error IS NULL THEN 'done' ELSE 'dead' END, count(*)"
    " FROM task GROUP BY 1, 2"
)


def task_read(task_id: int) -> Load[TaskRow | None]:
    """Read a task by its id; None if it does not exist."""
    rows = yield BY_ID, {"id": task_id}
    return TaskRow(*rows[0]) if rows else None


def tasks_read(state: str, *, after: int, limit: int) -> Load[list[TaskRow]]:
    """Read up to `limit` tasks in a state (one of `STATES`), ordered by id, with ids above `after`."""
    rows = yield LIST[state], {"after": after, "limit": limit}
    return [TaskRow(*row) for row in rows]


def task_due(now_ms: int, *, kinds: Sequence[str], among: bool) -> Load[bool]:
    """Return whether a due task waits for a worker.

    `among` selects tasks of the given `kinds`; otherwise of all other kinds.
    """
    rows = yield DUE, _due(now_ms, kinds, among=among)
    return bool(rows)


def task_payload_read(kind: str) -> Load[str | None]:
    """Read the payload of the unfinished task of a recurring kind; None if there is none."""
    rows = yield ANY_OF, {"kind": kind}
    return str(rows[0][0]) if rows else None


def task_counts() -> Load[dict[tuple[str, str], int]]:
    """Count tasks by kind and state."""
    rows = yield COUNTS, {}
    return {(row[0], row[1]): row[2] for row in rows}


def _due(now_ms: int, kinds: Sequence[str], *, among: bool) -> dict[str, Value]:
    return {"now": now_ms, "kinds": json.dumps(kinds), "among": among}


class TaskWrites(Writes):
    """Reads and writes background tasks inside a transaction."""

    def create(self, kind: str, payload: str, *, delay_ms: int = 0) -> int:
        """Insert a task that is due after `delay_ms`. Returns its id."""
        now, task_id = self.tx.now_ms, self.tx.next_id()
        self.tx.count(INSERT, {"id": task_id, "kind": kind, "payload": payload, "now": now, "due": now + delay_ms})
        return task_id

    def ensure(self, kind: str, payload: str, *, delay_ms: int) -> None:
        """Insert a task that is due after `delay_ms`, unless an unfinished task of its kind exists."""
        if not self.tx.rows(ANY_OF, {"kind": kind}):
            self.create(kind, payload, delay_ms=delay_ms)

    def lease(
        self, *, lease_ms: int, kinds: Sequence[str] = (), among: bool = False, holder: str | None = None
    ) -> LeasedTask | None:
        """Lease the task that became due first: of the given `kinds` with `among`, else of all other kinds.

        Counts the attempt. Returns None if no task is due. The lease ends early when the process of `holder` has ended.
        """
        rows = self.tx.rows(DUE, _due(self.tx.now_ms, kinds, among=among))
        if not rows:
            return None
        now_ms = self.tx.now_ms
        params: dict[str, Value] = {
            "id": rows[0][0],
            "until": now_ms + lease_ms,
            "now": now_ms,
            "holder": holder,
        }
        count = self.tx.count(LEASE, params)
        return LeasedTask(*rows[0]) if count else None

    def progress(self, task_id: int, progress: str, *, lease_ms: int) -> None:
        """Store the progress of a task and renew its lease."""
        self.tx.count(PROGRESS, {"id": task_id, "progress": progress, "until": self.tx.now_ms + lease_ms})

    def release(self, task_id: int, holder: str) -> None:
        """End the lease of a task, if `holder` still has it."""
        self.tx.count(RELEASE, {"id": task_id, "holder": holder})

    def retry(self, task_id: int, error: str, *, delay_ms: int) -> None:
        """Return a failed task to the queue with its error, due after `delay_ms`."""
        self.tx.count(RETRY, {"id": task_id, "due": self.tx.now_ms + delay_ms, "error": error})

    def reschedule(self, task_id: int, *, payload: str, result: str | None, delay_ms: int) -> None:
        """Return a recurring task to the queue with its result, due after `delay_ms`. Resets attempts and progress."""
        params: dict[str, Value] = {
            "id": task_id,
            "due": self.tx.now_ms + delay_ms,
            "payload": payload,
            "result": result,
        }
        self.tx.count(AGAIN, params)

    def end(self, task_id: int, *, error: str | None, result: str | None) -> None:
        """Mark a task as ended and retain it for display: failed if `error` is set, else done with a result."""
        self.tx.count(END, {"id": task_id, "now": self.tx.now_ms, "error": error, "result": result})

    def revive(self, task_id: int) -> bool:
        """Make a waiting or failed task due immediately.

        Returns False if the task does not exist, is running, or is done.
        """
        return self.tx.count(REVIVE, {"id": task_id, "now": self.tx.now_ms}) > 0

    def delete_finished(self, task_id: int) -> None:
        """Delete a finished task."""
        self.tx.count(DELETE, {"id": task_id})

    def forget(self, *, keep_ms: int) -> int:
        """Delete tasks that were done more than `keep_ms` ago.

        Returns the number of deleted tasks. Failed tasks are not deleted.
        """
        return self.tx.count(FORGET, {"before": self.tx.now_ms - keep_ms})

    def waiting_payload(self, kind: str) -> str | None:
        """Read the payload of the unfinished task of a recurring kind, like `task_payload_read`; None if there is
        none.
        """
        rows = self.tx.rows(ANY_OF, {"kind": kind})
        return str(rows[0][0]) if rows else None

    def payloads(self, kind: str) -> list[str]:
        """Read the payloads of the tasks of a kind that are not done."""
        return [row[0] for row in self.tx.rows(PAYLOADS, {"kind": kind})]

    def of_kind(self, kind: str) -> list[tuple[int, str, bool]]:
        """Read (id, payload, whether it has ended) of the tasks of a kind."""
        return [(row[0], row[1], bool(row[2])) for row in self.tx.rows(OF_KIND, {"kind": kind})]
