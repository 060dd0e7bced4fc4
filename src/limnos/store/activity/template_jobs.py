# SPDX-License-Identifier: Apache-2.0
"""Jobs that nodes run from job templates: waiting jobs, the node that runs each, and outcomes.

Must not know rights. Every change of a job's state is one conditional statement that requires the expected states and
the node of the job. Heartbeats leave no change row; the start and the end of a job do.
"""

from __future__ import annotations

from typing import Final

from limnos.model.jobs import CANCELLED, ENDED, FAILED, HELD, LIVE, SUCCEEDED, JobOutput, TemplateJob
from limnos.model.kinds import Kind
from limnos.store.activity.pipelines import GONE
from limnos.store.activity.runs import MINE, MINE_SQLITE, RunViewer
from limnos.store.changes import ChangeDraft
from limnos.store.objects.owners import OwnerWrites
from limnos.store.sql import Load, Row, Sql, Value
from limnos.store.transaction import Writes


def _words(states: tuple[str, ...]) -> str:
    return ", ".join(f"'{state}'" for state in states)


_COLUMNS = (
    "j.id, j.metalake_id, j.template_id, j.uuid, j.user_name, j.user_id, j.state, j.holder, j.beat_at, j.lease_ms,"
    " j.message, j.exit_code, j.queued_at, j.started_at, j.ended_at, o.principal_id"
)
_FROM = "FROM template_job j LEFT JOIN owner o ON o.object_id = j.id"
BY_UUID = Sql(f"SELECT {_COLUMNS} {_FROM} WHERE j.metalake_id = :metalake AND j.uuid = :uuid")
BY_ID = Sql(f"SELECT {_COLUMNS} {_FROM} WHERE j.id = :id")
OUTPUT = Sql("SELECT stdout, stderr, stdout_bytes, stderr_bytes FROM template_job WHERE id = :id")
_OF = {False: "j.metalake_id = :of", True: "j.template_id = :of"}
_SEEN = (
    "(CAST(:everything AS boolean) OR o.principal_id IN ({mine}) OR EXISTS"
    " (SELECT 1 FROM owner p WHERE p.object_id = j.template_id AND p.principal_id IN ({mine})))"
)


def _page(where: str) -> Sql:
    text = f"SELECT {_COLUMNS} {_FROM} WHERE {where} AND {_SEEN} ORDER BY j.id DESC LIMIT :limit"
    return Sql(text.replace("{mine}", MINE), on_sqlite=text.replace("{mine}", MINE_SQLITE))


PAGES: Final = {of_template: _page(of) for of_template, of in _OF.items()}
INSERT = Sql(
    "INSERT INTO template_job (id, metalake_id, template_id, uuid, user_name, user_id, state, holder, beat_at,"
    " lease_ms, conf, work, stdout, stderr, stdout_bytes, stderr_bytes, queued_at) VALUES (:id, :metalake, :template,"
    " :uuid, :user, :user_id, 'queued', '', 0, 0, :conf, :work, '', '', 0, 0, :now)"
)
LIVE_OF = Sql(
    f"SELECT {_COLUMNS} {_FROM} WHERE j.template_id = :template AND j.state IN ({_words(LIVE)}) ORDER BY j.id LIMIT 1"
)
WAITING = Sql(
    "SELECT count(*) FROM template_job WHERE metalake_id = :metalake AND user_name = :user AND state IN"
    f" ({_words(LIVE)})"
)
_OUT = f"j.state IN ({_words(HELD)}) AND j.beat_at + j.lease_ms <= :now"
DUE = Sql(f"SELECT 1 FROM template_job j WHERE j.state = 'queued' OR ({_OUT}) LIMIT 1")
NEXT = Sql("SELECT id FROM template_job WHERE state = 'queued' ORDER BY id LIMIT :limit")
CLAIM = Sql(
    "UPDATE template_job SET state = 'started', holder = :holder, beat_at = :now, lease_ms = :lease, started_at = :now"
    " WHERE id = :id AND state = 'queued'"
)
CONF = Sql("SELECT conf FROM template_job WHERE id = :id")
WORK = Sql("SELECT work FROM template_job WHERE id = :id")
LOST = Sql(f"SELECT {_COLUMNS} {_FROM} WHERE {_OUT} LIMIT :limit")
_MINE = f"id = :id AND holder = :holder AND state IN ({_words(HELD)})"
BEAT = Sql(f"UPDATE template_job SET beat_at = :now WHERE {_MINE} RETURNING state")
FINISH = Sql(
    "UPDATE template_job SET state = :state, message = :message, exit_code = :exit_code, ended_at = :now, stdout ="
    f" :stdout, stderr = :stderr, stdout_bytes = :stdout_bytes, stderr_bytes = :stderr_bytes WHERE {_MINE}"
)
CANCEL = Sql("UPDATE template_job SET state = 'cancelling' WHERE id = :id AND state = 'started'")
WITHDRAW = Sql(
    "UPDATE template_job SET state = 'cancelled', message = :message, ended_at = :now WHERE id = :id AND state ="
    " 'queued'"
)
EXPIRED = Sql(
    f"SELECT id FROM template_job WHERE state IN ({_words(ENDED)}) AND ended_at < :before ORDER BY id LIMIT :limit"
)
DROPS = tuple(
    Sql(f"DELETE FROM {table} WHERE {column} = :id")
    for table, column in (("owner", "object_id"), ("template_job", "id"))
)
SWEEPS = (
    Sql(
        "DELETE FROM owner WHERE object_id IN (SELECT j.id FROM template_job j WHERE "
        + GONE.format("j.template_id")
        + ")"
    ),
    Sql(f"DELETE FROM template_job WHERE {GONE.format('template_job.template_id')}"),
)
"""Statements that delete rows of dropped templates: jobs last, because their owners are found through them."""
OPERATIONS: Final = {SUCCEEDED: "succeed", FAILED: "fail", CANCELLED: "cancel"}
"""The operation name in the change feed for each final state."""


def job_read(metalake_id: int, uuid: str) -> Load[TemplateJob | None]:
    """Read a job by its UUID, or None."""
    rows = yield BY_UUID, {"metalake": metalake_id, "uuid": uuid}
    return TemplateJob(*rows[0]) if rows else None


def job_by_id_read(job_id: int) -> Load[TemplateJob | None]:
    """Read a job by its id, or None."""
    rows = yield BY_ID, {"id": job_id}
    return TemplateJob(*rows[0]) if rows else None


def job_output_read(metalake_id: int, uuid: str) -> Load[tuple[TemplateJob, JobOutput] | None]:
    """Read a job with its output, or None."""
    job = yield from job_read(metalake_id, uuid)
    if job is None:
        return None
    rows = yield OUTPUT, {"id": job.id}
    return (job, JobOutput(*rows[0])) if rows else None


def template_jobs_read(of: int, caller: RunViewer, *, of_template: bool, limit: int) -> Load[list[TemplateJob]]:
    """Read the newest jobs of a metalake or template (id `of`) visible to a caller, at most `limit`."""
    rows = yield PAGES[of_template], {**caller.params(), "of": of, "limit": limit}
    return [TemplateJob(*row) for row in rows]


def jobs_due(now_ms: int) -> Load[bool]:
    """Return whether a job waits for a node, or has an expired lease."""
    rows = yield DUE, {"now": now_ms}
    return bool(rows)


class TemplateJobWrites(Writes):
    """Reads and writes jobs of job templates inside a transaction."""

    def by_id(self, job_id: int) -> TemplateJob | None:
        """Read a job inside the transaction, or None."""
        return self._one(self.tx.rows(BY_ID, {"id": job_id}))

    def live_of(self, template_id: int) -> TemplateJob | None:
        """Read the oldest job of a template that has not ended, or None."""
        return self._one(self.tx.rows(LIVE_OF, {"template": template_id}))

    def _one(self, rows: list[Row]) -> TemplateJob | None:
        return TemplateJob(*rows[0]) if rows else None

    def waiting_of(self, metalake_id: int, user: str) -> int:
        """Count the jobs of a user in a metalake that have not ended, waiting or running."""
        rows: int = self.tx.rows(WAITING, {"metalake": metalake_id, "user": user})[0][0]
        return rows

    def create(self, job: TemplateJob, *, conf: str, work: str) -> TemplateJob:
        """Insert a waiting job with its owner."""
        tx, job_id = self.tx, self.tx.next_id()
        params: dict[str, Value] = {
            "id": job_id,
            "metalake": job.metalake_id,
            "template": job.template_id,
            "uuid": job.uuid,
            "user": job.user,
            "user_id": job.user_id,
            "conf": conf,
            "work": work,
            "now": tx.now_ms,
        }
        tx.count(INSERT, params)
        if job.owner_id is not None:
            OwnerWrites(tx).insert(job_id, job.owner_id)
        template_job = self.by_id(job_id) or job
        self._add_change("start", template_job)
        return template_job

    def conf(self, job_id: int) -> str:
        """Read a job's own values as JSON."""
        text: str = self.tx.rows(CONF, {"id": job_id})[0][0]
        return text

    def cancel(self, job: TemplateJob) -> bool:
        """Request that the node that runs a job ends it; cancel a waiting job at once.

        Returns False if the job has ended.
        """
        message = f"Cancelled by {self.tx.actor} before it started"
        if self.tx.count(WITHDRAW, {"id": job.id, "now": self.tx.now_ms, "message": message}):
            self._add_change("cancel", job)
        elif self.tx.count(CANCEL, {"id": job.id}):
            self._add_change("cancelling", job)
        else:
            return False
        return True

    def claim(self, holder: str, *, limit: int, lease_ms: int) -> list[tuple[TemplateJob, str]]:
        """Lease up to `limit` waiting jobs, oldest first. Returns each job with the encoded command to execute."""
        params: dict[str, Value] = {"holder": holder, "now": self.tx.now_ms, "lease": lease_ms}
        claimed_jobs: list[tuple[TemplateJob, str]] = []
        for (job_id,) in self.tx.rows(NEXT, {"limit": limit}):
            job = self.by_id(job_id) if self.tx.count(CLAIM, {**params, "id": job_id}) else None
            if job is not None:
                claimed_jobs.append((job, self.tx.rows(WORK, {"id": job_id})[0][0]))
        return claimed_jobs

    def read_expired(self, limit: int) -> list[TemplateJob]:
        """Read up to `limit` running jobs whose lease has expired."""
        return [TemplateJob(*row) for row in self.tx.rows(LOST, {"now": self.tx.now_ms, "limit": limit})]

    def beat(self, job_id: int, holder: str) -> str | None:
        """Renew a job's lease. Returns its state, or None if this node has lost the job."""
        rows = self.tx.rows(BEAT, {"id": job_id, "holder": holder, "now": self.tx.now_ms})
        return rows[0][0] if rows else None

    def finish(
        self, job: TemplateJob, state: str, *, message: str | None, exit_code: int | None, output: JobOutput
    ) -> bool:
        """Store the final state, exit code and output of a job that this node ran.

        Returns False if the node has lost the job.
        """
        params: dict[str, Value] = {
            "id": job.id,
            "holder": job.holder,
            "state": state,
            "message": message,
            "exit_code": exit_code,
            "now": self.tx.now_ms,
            "stdout": output.stdout,
            "stderr": output.stderr,
            "stdout_bytes": output.stdout_bytes,
            "stderr_bytes": output.stderr_bytes,
        }
        if not self.tx.count(FINISH, params):
            return False
        self._add_change(OPERATIONS[state], job)
        return True

    def _add_change(self, operation: str, job: TemplateJob) -> None:
        """Write the change row: its parent is the template, its name the job's UUID."""
        draft = ChangeDraft(
            operation=operation,
            kind=Kind.JOB,
            node_id=job.id,
            name_space=Kind.JOB.word,
            new_parent=job.template_id,
            new_name=job.uuid,
        )
        self.tx.add_change(draft)

    def prune(self, *, keep_ms: int, limit: int) -> int:
        """Delete up to `limit` jobs that ended more than `keep_ms` ago. Returns the number of deleted jobs."""
        rows = self.tx.rows(EXPIRED, {"before": self.tx.now_ms - keep_ms, "limit": limit})
        for (job_id,) in rows:
            for statement in DROPS:
                self.tx.count(statement, {"id": job_id})
        return len(rows)
