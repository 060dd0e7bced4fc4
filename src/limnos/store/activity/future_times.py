# SPDX-License-Identifier: Apache-2.0
"""Times of leases and of due work that are too far in the future: a clock that was ahead wrote them, and was set back.

Must not know the holders of leases. Work compares a stored time with the present: a lease is over when its time has
passed, and a task is due. If the clock was a day ahead for a minute, both would wait for a day. So each column has the
time by which it can be ahead of the present, such as the length of the lease. A time further ahead is replaced: by a
full lease from now, which a living holder renews and a dead one loses; or by now, for due work. `STORED_TIMES` has a
row for each such column (decision record 0186).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from limnos.store.activity.tasks import NEVER_MS
from limnos.store.sql import Load, Params, Sql
from limnos.store.transaction import StoreTransaction

SLACK_MS: Final = 60_000
"""The time by which a stored time may be ahead of its bound, in milliseconds: the clocks of nodes differ a little."""
HOUR_MS: Final = 3_600_000
TASKS_AT_ONCE: Final = 10_000


class StoredTime(NamedTuple):
    """A column with a time, in milliseconds since 1970.

    `ahead_ms` is the longest time by which it is ahead of the present, `renewed_ms` the time by which it is ahead after
    its repair. `where` selects the rows whose time counts.
    """

    table: str
    column: str
    ahead_ms: int
    renewed_ms: int
    where: str = "1 = 1"
    is_asked: bool = True
    """Whether nodes search for such times. Without an index they do not, and repair them along with a heartbeat."""

    @property
    def is_ahead(self) -> str:
        """The condition in SQL for rows with a time that is too far in the future."""
        return f"{self.column} > CAST(:now AS bigint) + {self.ahead_ms + SLACK_MS} AND {self.where}"


def _lease(table: str, column: str, *, length_ms: int) -> StoredTime:
    """Return the end of leases of a table, by the longest lease."""
    return StoredTime(table=table, column=column, ahead_ms=length_ms, renewed_ms=length_ms)


_NO_HOURS: Final = (
    "NOT EXISTS (SELECT 1 FROM maintenance_operation o WHERE o.id = maintenance_rewrite.operation_id"
    " AND o.result LIKE 'waits for the quiet hours%')"
)
STORED_TIMES: Final = (
    _lease("task", "leased_until", length_ms=300_000),
    _lease("webhook", "leased_until", length_ms=30_000),
    StoredTime(table="webhook", column="due_at", ahead_ms=900_000, renewed_ms=0, where="stopped = FALSE"),
    StoredTime(table="pipeline_schedule", column="due_at", ahead_ms=HOUR_MS, renewed_ms=0, where="paused = FALSE"),
    _lease("search_lease", "leased_until", length_ms=30_000),
    _lease("sqlpp_lock_node", "leased_until", length_ms=15_000),
    _lease("sqlpp_request", "alive_until", length_ms=15_000),
    _lease("maintenance_lease", "expires_at", length_ms=60_000),
    StoredTime(table="maintenance_rewrite", column="due_at", ahead_ms=HOUR_MS, renewed_ms=0, where=_NO_HOURS),
    StoredTime(
        table="template_job", column="beat_at", ahead_ms=0, renewed_ms=0, where="state IN ('started', 'cancelling')"
    ),
    StoredTime(table="pipeline_run", column="beat_at", ahead_ms=0, renewed_ms=0, where="ended_at IS NULL"),
    StoredTime(table="maintenance_operation", column="leased_at", ahead_ms=0, renewed_ms=0),
    StoredTime(
        table="maintenance_operation",
        column="started_at",
        ahead_ms=0,
        renewed_ms=0,
        where="ended_at IS NULL",
        is_asked=False,
    ),
    StoredTime(table="metalake_import", column="fed_at", ahead_ms=0, renewed_ms=0),
    StoredTime(table="node_seen", column="seen_at", ahead_ms=0, renewed_ms=0),
)
_TASKS: Final = f"ended_at IS NULL AND due_at > CAST(:now AS bigint) + {SLACK_MS} AND due_at < {NEVER_MS}"
IS_ANY_AHEAD = Sql(
    "SELECT 1 WHERE "
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {each.table} WHERE {each.is_ahead})" for each in STORED_TIMES if each.is_asked
    )
)
REPAIRS: Final = tuple(
    Sql(f"UPDATE {each.table} SET {each.column} = CAST(:now AS bigint) + {each.renewed_ms} WHERE {each.is_ahead}")
    for each in STORED_TIMES
)
TASKS_LATER = Sql(f"SELECT id, kind, created_at, due_at, attempts FROM task WHERE {_TASKS} LIMIT {TASKS_AT_ONCE}")
TASK_MOVE = Sql("UPDATE task SET created_at = :created, due_at = :due WHERE id = :id AND due_at = :before")


class LaterTask(NamedTuple):
    """A task that is due in the future."""

    id: int
    kind: str
    created_at: int
    due_at: int
    attempts: int

    def correct_times(self, now_ms: int, *, every_ms: int | None, retry_ms: int) -> LaterTask:
        """Return the task with the times that it has without the error of a clock.

        A periodic task, with `every_ms`, is due after a period at the latest, and a failed one after `retry_ms`; one
        that is due later is due now. Any other task keeps its delay, which may protect readers: if it was created in
        the future, it is due after the same delay from now.
        """
        ahead_ms = self.created_at - now_ms
        if every_ms is not None or self.attempts:
            longest_ms = max(every_ms or 0, retry_ms if self.attempts else 0)
            is_ahead = self.due_at > now_ms + longest_ms + SLACK_MS
            return self._replace(due_at=now_ms) if is_ahead else self
        return self if ahead_ms <= SLACK_MS else self._replace(created_at=now_ms, due_at=self.due_at - ahead_ms)


def is_any_time_ahead(now_ms: int) -> Load[bool]:
    """Return whether a column of `STORED_TIMES` has a time that is too far in the future."""
    return bool((yield IS_ANY_AHEAD, {"now": now_ms}))


def later_tasks_read(now_ms: int) -> Load[list[LaterTask]]:
    """Read tasks that are due later than `SLACK_MS` from now, at most `TASKS_AT_ONCE`."""
    return [LaterTask(*row) for row in (yield TASKS_LATER, {"now": now_ms})]


def stored_times_repair(tx: StoreTransaction, moves: Mapping[LaterTask, LaterTask]) -> int:
    """Replace the times of `STORED_TIMES` that are too far in the future, and the times of tasks by those in `moves`.

    Returns the count of repaired times.
    """
    count = sum(tx.count(each, {"now": tx.now_ms}) for each in REPAIRS)
    for before, after in moves.items():
        params: Params = {"id": before.id, "before": before.due_at, "created": after.created_at, "due": after.due_at}
        count += tx.count(TASK_MOVE, params)
    return count
