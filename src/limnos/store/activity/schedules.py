# SPDX-License-Identifier: Apache-2.0
"""Schedules of pipelines: their terms, files and users, when each is due, and the job of its last start.

Must not know cron expressions, rights or jobs. One schedule for each pipeline. A start is a conditional statement in
the transaction that inserts the job, so that of several nodes one starts each due time.
"""

from __future__ import annotations

import msgspec

from limnos.model.jobs import ENDED
from limnos.model.kinds import Kind
from limnos.model.schedules import Schedule, ScheduleTerms
from limnos.store.activity.pipelines import GONE
from limnos.store.changes import ChangeDraft
from limnos.store.sql import Load, Row, Sql, Value
from limnos.store.transaction import Writes

_COLUMNS = (
    "s.pipeline_id, s.metalake_id, s.user_name, s.user_id, s.trust, s.terms, s.created_at, s.due_at, s.next_at,"
    " s.paused, s.reason, s.job_id, s.run_due_at, s.attempts"
)
ONE = Sql(f"SELECT {_COLUMNS} FROM pipeline_schedule s WHERE s.pipeline_id = :id")
OF_METALAKE = Sql(f"SELECT {_COLUMNS} FROM pipeline_schedule s WHERE s.metalake_id = :metalake ORDER BY s.pipeline_id")
FILES = Sql("SELECT files FROM pipeline_schedule WHERE pipeline_id = :id")
_ENDED = ", ".join(f"'{state}'" for state in ENDED)
_DUE = (
    "FROM pipeline_schedule s LEFT JOIN template_job j ON j.id = s.job_id WHERE s.due_at <= :now AND s.paused = FALSE"
    f" AND (j.id IS NULL OR j.state IN ({_ENDED}))"
)
DUE = Sql(f"SELECT {_COLUMNS} {_DUE} ORDER BY s.due_at LIMIT :limit")
PUT = Sql(
    "INSERT INTO pipeline_schedule (pipeline_id, metalake_id, user_name, user_id, trust, terms, files, created_at,"
    " due_at, next_at, paused, reason, job_id, run_due_at, attempts) VALUES (:id, :metalake, :user, :user_id,"
    " :trust, :terms, :files, :now, :due, :next, FALSE, NULL, NULL, NULL, 0)"
)
DROP = Sql("DELETE FROM pipeline_schedule WHERE pipeline_id = :id")
PAUSE = Sql("UPDATE pipeline_schedule SET paused = TRUE, reason = :reason WHERE pipeline_id = :id AND paused = FALSE")
PLAN = Sql("UPDATE pipeline_schedule SET due_at = :due, next_at = :next WHERE pipeline_id = :id AND due_at = :before")
SKIP = Sql(
    "UPDATE pipeline_schedule SET due_at = :due, next_at = :next, reason = :reason WHERE pipeline_id = :id AND due_at ="
    " :before AND paused = FALSE"
)
RESUME = Sql(
    "UPDATE pipeline_schedule SET paused = FALSE, reason = NULL, run_due_at = NULL, due_at = :due, next_at = :next"
    " WHERE pipeline_id = :id AND paused = TRUE"
)
START = Sql(
    "UPDATE pipeline_schedule SET job_id = :job_id, run_due_at = :run_due, attempts = :attempts, due_at = :due,"
    " next_at = :next, reason = NULL WHERE pipeline_id = :id AND due_at = :before AND paused = FALSE"
    " AND coalesce(job_id, 0) = :before_job"
)
SWEEP = Sql(f"DELETE FROM pipeline_schedule WHERE {GONE.format('pipeline_schedule.pipeline_id')}")


def _schedule_of(row: Row) -> Schedule:
    return Schedule(
        pipeline_id=row[0],
        metalake_id=row[1],
        user=row[2],
        user_id=row[3],
        trust=row[4],
        terms=msgspec.json.decode(row[5], type=ScheduleTerms),
        created_at=row[6],
        due_at=row[7],
        next_at=row[8],
        paused=bool(row[9]),
        reason=row[10],
        job_id=row[11],
        run_due_at=row[12],
        attempts=row[13],
    )


def schedule_read(pipeline_id: int) -> Load[Schedule | None]:
    """Read the schedule of a pipeline, or None."""
    rows = yield ONE, {"id": pipeline_id}
    return _schedule_of(rows[0]) if rows else None


def schedule_with_files_read(pipeline_id: int) -> Load[tuple[Schedule, bytes] | None]:
    """Read the schedule of a pipeline with its encoded files, or None."""
    schedule = yield from schedule_read(pipeline_id)
    if schedule is None:
        return None
    rows = yield FILES, {"id": pipeline_id}
    return (schedule, bytes(rows[0][0])) if rows else None


def schedules_read(metalake_id: int) -> Load[list[Schedule]]:
    """Read the schedules of a metalake, by the ids of their pipelines."""
    rows = yield OF_METALAKE, {"metalake": metalake_id}
    return [_schedule_of(row) for row in rows]


def schedules_due(now_ms: int, *, limit: int) -> Load[list[Schedule]]:
    """Read the schedules to look at now: due, not paused, and without a job that waits or runs; at most `limit`."""
    rows = yield DUE, {"now": now_ms, "limit": limit}
    return [_schedule_of(row) for row in rows]


class ScheduleWrites(Writes):
    """Reads and writes schedules inside a transaction. Each change but `plan` and `skip` leaves a change row of
    the pipeline.
    """

    def of(self, pipeline_id: int) -> Schedule | None:
        """Read the schedule of a pipeline inside the transaction, or None."""
        rows = self.tx.rows(ONE, {"id": pipeline_id})
        return _schedule_of(rows[0]) if rows else None

    def put(self, schedule: Schedule, *, files: bytes, name: str) -> None:
        """Write the schedule of a pipeline, which replaces an earlier one. `name` is the pipeline's, for the change."""
        self.tx.count(DROP, {"id": schedule.pipeline_id})
        params: dict[str, Value] = {
            "id": schedule.pipeline_id,
            "metalake": schedule.metalake_id,
            "user": schedule.user,
            "user_id": schedule.user_id,
            "trust": schedule.trust,
            "terms": msgspec.json.encode(schedule.terms).decode(),
            "files": files,
            "now": self.tx.now_ms,
            "due": schedule.due_at,
            "next": schedule.next_at,
        }
        self.tx.count(PUT, params)
        self.add_change("schedule", schedule, name=name)

    def drop(self, schedule: Schedule, *, name: str) -> None:
        """Delete a schedule. Its job, if one waits or runs, is not cancelled."""
        self.tx.count(DROP, {"id": schedule.pipeline_id})
        self.add_change("unschedule", schedule, name=name)

    def pause(self, schedule: Schedule, *, reason: str, name: str) -> bool:
        """Pause a schedule. Returns whether it was not paused."""
        if not self.tx.count(PAUSE, {"id": schedule.pipeline_id, "reason": reason}):
            return False
        self.add_change("pause", schedule, name=name, detail=reason)
        return True

    def resume(self, schedule: Schedule, *, due_at: int, next_at: int, name: str) -> bool:
        """Resume a paused schedule, with its next due time. Returns whether it was paused."""
        if not self.tx.count(RESUME, {"id": schedule.pipeline_id, "due": due_at, "next": next_at}):
            return False
        self.add_change("unpause", schedule, name=name)
        return True

    def plan(self, schedule: Schedule, *, due_at: int, next_at: int) -> bool:
        """Write when a schedule is due next. Returns False if another node has looked at it in between."""
        params: dict[str, Value] = {
            "id": schedule.pipeline_id,
            "before": schedule.due_at,
            "due": due_at,
            "next": next_at,
        }
        return self.tx.count(PLAN, params) > 0

    def skip(self, schedule: Schedule, *, due_at: int, next_at: int, reason: str) -> bool:
        """Write why a due time starts no run, and when the schedule is due next. Returns False if another node has
        looked at it in between, or it was paused.
        """
        params: dict[str, Value] = {
            "id": schedule.pipeline_id,
            "before": schedule.due_at,
            "due": due_at,
            "next": next_at,
            "reason": reason,
        }
        return self.tx.count(SKIP, params) > 0

    def start(self, before: Schedule, after: Schedule) -> bool:
        """Record the start of a schedule's job. Returns False if another node has started it, or it has changed."""
        params: dict[str, Value] = {
            "id": before.pipeline_id,
            "before": before.due_at,
            "before_job": before.job_id or 0,
            "job_id": after.job_id,
            "run_due": after.run_due_at,
            "attempts": after.attempts,
            "due": after.due_at,
            "next": after.next_at,
        }
        return self.tx.count(START, params) > 0

    def add_change(self, operation: str, schedule: Schedule, *, name: str, detail: str | None = None) -> None:
        """Write a change row of the schedule's pipeline."""
        draft = ChangeDraft(
            operation=operation,
            kind=Kind.JOB_TEMPLATE,
            node_id=schedule.pipeline_id,
            name_space=Kind.JOB_TEMPLATE.word,
            new_parent=schedule.metalake_id,
            new_name=name,
            detail=detail,
        )
        self.tx.add_change(draft)
