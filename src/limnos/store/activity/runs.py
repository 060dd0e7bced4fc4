# SPDX-License-Identifier: Apache-2.0
"""Runs of pipelines: their processes, their steps, and the results of expectations.

Must not know rights. Every change of a run's state is one conditional statement. It requires the expected states and
the attempt, so that of two concurrent changes only one takes effect. Heartbeats and reports of steps leave no change
row; the start of a run and its final states do (decision record on runs).
"""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from typing import Final, NamedTuple

from limnos.model.kinds import Kind
from limnos.model.runs import (
    BEFORE,
    CANCELLED,
    DISCARDED,
    ENDED,
    FAILED,
    HELD,
    LIVE,
    LOST,
    STATES,
    PipelineRun,
    RuleFinding,
    RunStepState,
)
from limnos.store.activity.pipelines import GONE
from limnos.store.changes import ChangeDraft
from limnos.store.objects.owners import OwnerWrites
from limnos.store.sql import Load, Params, Row, Sql, Value
from limnos.store.transaction import Writes


def _words(states: tuple[str, ...]) -> str:
    return ", ".join(f"'{state}'" for state in states)


_IS_LIVE = f"state IN ({_words(LIVE)})"
_COLUMNS = (
    "r.id, r.metalake_id, r.pipeline_id, r.version, r.uuid, r.user_name, r.user_id, r.state, r.attempt, r.holder,"
    " r.beat_at, r.lease_ms, r.parameters, r.options, r.progress, r.message, r.catalog_id, r.revision, r.started_at,"
    " r.resumed_at, r.ended_at, r.phases, r.attempts, o.principal_id"
)
_FROM = "FROM pipeline_run r LEFT JOIN owner o ON o.object_id = r.id"
PREFIX: Final = 13
"""The length of the first 12 digits of a UUID with their hyphen, by which the names of a run's branches begin."""
FOREIGN_PREFIX = Sql(
    "SELECT 1 FROM pipeline_run WHERE metalake_id = :metalake AND uuid >= :prefix AND uuid < :prefix || '~'"
    " AND NOT (user_name = :user AND user_id = :user_id) LIMIT 1"
)
BY_UUID = Sql(f"SELECT {_COLUMNS} {_FROM} WHERE r.metalake_id = :metalake AND r.uuid = :uuid")
BY_ID = Sql(f"SELECT {_COLUMNS} {_FROM} WHERE r.id = :id")
MINE_SQLITE = "SELECT value FROM json_each(:principals)"
MINE = "SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:principals AS json)) v"
_SEEN = (
    "(CAST(:everything AS boolean) OR o.principal_id IN ({mine}) OR EXISTS"
    " (SELECT 1 FROM owner p WHERE p.object_id = r.pipeline_id AND p.principal_id IN ({mine})))"
)
_STATE = {
    "": "1 = 1",
    **{state: f"r.state = '{state}'" for state in STATES},
    **{state: f"(r.state = '{state}' AND r.beat_at + r.lease_ms > :now)" for state in LIVE},
    LOST: f"(r.{_IS_LIVE} AND r.beat_at + r.lease_ms <= :now)",
}
_OF = {False: "r.metalake_id = :of", True: "r.pipeline_id = :of"}


def _page(where: str) -> Sql:
    columns = _COLUMNS.replace("r.options, r.progress", "'{}', NULL").replace("r.attempts", "NULL")  # long, of one run
    text = f"SELECT {columns} {_FROM} WHERE {where} AND r.id < :before AND {_SEEN} ORDER BY r.id DESC LIMIT :limit"
    return Sql(text.replace("{mine}", MINE), on_sqlite=text.replace("{mine}", MINE_SQLITE))


PAGES = {
    (of_pipeline, state): _page(f"{of} AND {condition}")
    for of_pipeline, of in _OF.items()
    for state, condition in _STATE.items()
}
STEPS = Sql(
    "SELECT name, reads, output, state, attempt, row_count, byte_count, started_at, ended_at, message, outputs, inputs,"
    " phases FROM run_step WHERE run_id = :id ORDER BY ordinal"
)
STEP = Sql(
    "SELECT name, reads, output, state, attempt, row_count, byte_count, started_at, ended_at, message, outputs, inputs,"
    " phases FROM run_step WHERE run_id = :id AND name = :name"
)
_FINDING = (
    "f.step, f.rule, f.body, f.id, r.uuid, r.state, f.at, r.user_name, r.user_id"
    " FROM run_finding f JOIN pipeline_run r ON r.id = f.run_id"
)
TOLD_LENGTH = Sql(
    "SELECT (SELECT coalesce(sum(length(outputs) + length(inputs) + length(coalesce(message, ''))), 0) FROM run_step"
    " WHERE run_id = :id) + (SELECT coalesce(sum(length(body)), 0) FROM run_finding WHERE run_id = :id)"
)
FINDINGS = Sql(f"SELECT {_FINDING} WHERE f.run_id = :id ORDER BY f.id")
_TREND = (
    f"SELECT {_FINDING} LEFT JOIN owner o ON o.object_id = r.id WHERE f.pipeline_id = :of AND f.id < :before"
    " AND (CAST(:rule AS text) = '' OR f.rule = :rule) AND (CAST(:step AS text) = '' OR f.step = :step)"
    f" AND {_SEEN} ORDER BY f.id DESC LIMIT :limit"
)
TREND = Sql(_TREND.replace("{mine}", MINE), on_sqlite=_TREND.replace("{mine}", MINE_SQLITE))
NEWEST_OF = Sql(f"SELECT {_COLUMNS} {_FROM} WHERE r.pipeline_id = :pipeline ORDER BY r.id DESC LIMIT 1")
LIVE_OF = Sql(f"SELECT {_COLUMNS} {_FROM} WHERE r.pipeline_id = :pipeline AND r.{_IS_LIVE} ORDER BY r.id")
INSERT = Sql(
    "INSERT INTO pipeline_run (id, metalake_id, pipeline_id, version, uuid, user_name, user_id, state, attempt, holder,"
    " beat_at, lease_ms, parameters, options, started_at) VALUES (:id, :metalake, :pipeline, :version, :uuid, :user,"
    " :user_id, 'running', 1, :holder, :now, :lease, :parameters, :options, :now)"
)
STEP_NEW = Sql(
    "INSERT INTO run_step (run_id, ordinal, name, reads, output, state, attempt, outputs, inputs) VALUES"
    " (:id, :ordinal, :name, :reads, :output, 'waiting', 0, '[]', '[]')"
)
_MINE_ALONE = (
    "metalake_id = :metalake AND uuid = :uuid AND user_name = :user AND user_id = :user_id AND attempt = :attempt"
)
_OWN = f"{_MINE_ALONE} AND {_IS_LIVE}"
BEAT = Sql(
    f"UPDATE pipeline_run SET beat_at = :now, progress = coalesce(:progress, progress) WHERE {_OWN} RETURNING state,"
    " attempt"
)
TOUCH = Sql(f"UPDATE pipeline_run SET beat_at = :now WHERE {_OWN} RETURNING id, pipeline_id")
PHASES_SET = Sql(f"UPDATE pipeline_run SET phases = :phases WHERE {_MINE_ALONE}")
"""Updates phases even of a run that has ended: only then is the duration of its publishing known."""
STEP_SET = Sql(
    "UPDATE run_step SET state = :state, attempt = :attempt, row_count = :rows, byte_count = :bytes, started_at ="
    " :started_at, ended_at = :ended_at, message = :message, outputs = :outputs, inputs = :inputs, phases = :phases"
    " WHERE run_id = :id AND name = :name"
)
FINDINGS_DROP = Sql("DELETE FROM run_finding WHERE run_id = :id AND step = :step")
FINDING_NEW = Sql(
    "INSERT INTO run_finding (id, run_id, pipeline_id, step, rule, body, at) VALUES"
    " (:id, :run, :pipeline, :step, :rule, :body, :now)"
)


def _state_update(state: str, sets: str, *, only: str = "") -> Sql:
    """Build the UPDATE that sets a run's state, if the run is in an expected state and under the same attempt."""
    return Sql(
        f"UPDATE pipeline_run SET state = '{state}', {sets} WHERE id = :id AND attempt = :attempt"
        f" AND state IN ({_words(BEFORE[state])}){only}"
    )


_OUT = "beat_at + lease_ms <= :now"
FINISH = {
    state: (
        _state_update(state, "message = :message" if state == HELD else "ended_at = :now, message = :message"),
        operation,
    )
    for state, operation in ((FAILED, "fail"), (CANCELLED, "cancel"), (HELD, "hold"), (DISCARDED, "discard"))
}
"""For each state that a runner may report: the statement, and the operation name in the change feed."""
PUBLISH = _state_update("published", "ended_at = :now, message = NULL, catalog_id = :catalog, revision = :revision")
RESUME = _state_update(
    "running",
    "attempt = attempt + 1, holder = :holder, lease_ms = :lease, beat_at = :now, resumed_at = :now, ended_at = NULL,"
    " message = NULL, progress = NULL, phases = NULL, attempts = :attempts",
    only=f" AND (state NOT IN ({_words(LIVE)}) OR {_OUT})",
)
CANCEL = Sql("UPDATE pipeline_run SET state = 'cancelling' WHERE id = :id AND attempt = :attempt AND state = 'running'")
LOSE = Sql(
    "UPDATE pipeline_run SET state = 'failed', ended_at = :now, message = :message WHERE pipeline_id = :pipeline AND"
    f" id <> :id AND {_IS_LIVE} AND {_OUT} RETURNING id, uuid"
)
_OLD = f"r.state IN ({_words(ENDED)}) AND r.ended_at < :before"
_LATER = (
    "SELECT 1 FROM pipeline_run l WHERE l.pipeline_id = r.pipeline_id AND l.state = 'published' AND l.id > r.id AND NOT"
    " EXISTS (SELECT 1 FROM run_step s WHERE s.run_id = r.id AND s.state = 'done' AND NOT EXISTS (SELECT 1 FROM"
    " run_step t JOIN pipeline_run q ON q.id = t.run_id WHERE q.pipeline_id = r.pipeline_id AND q.id > r.id AND q.state"
    " = 'published' AND t.name = s.name AND t.state = 'done'))"
)
EXPIRED = Sql(
    f"SELECT r.id FROM pipeline_run r WHERE {_OLD} AND (r.state <> 'published' OR EXISTS ({_LATER})) ORDER BY r.id"
    " LIMIT :limit"
)
DROPS = tuple(
    Sql(f"DELETE FROM {table} WHERE {column} = :id")
    for table, column in (
        ("run_finding", "run_id"),
        ("snapshot_pin", "run_id"),
        ("run_step", "run_id"),
        ("owner", "object_id"),
        ("pipeline_run", "id"),
    )
)
SWEEPS = (
    Sql(
        "DELETE FROM owner WHERE object_id IN (SELECT r.id FROM pipeline_run r WHERE "
        + GONE.format("r.pipeline_id")
        + ")"
    ),
    Sql(
        "DELETE FROM run_step WHERE run_id IN (SELECT r.id FROM pipeline_run r WHERE "
        + GONE.format("r.pipeline_id")
        + ")"
    ),
    Sql(
        "DELETE FROM snapshot_pin WHERE run_id IN (SELECT r.id FROM pipeline_run r WHERE "
        + GONE.format("r.pipeline_id")
        + ")"
    ),
    Sql(f"DELETE FROM run_finding WHERE {GONE.format('run_finding.pipeline_id')}"),
    Sql(f"DELETE FROM pipeline_run WHERE {GONE.format('pipeline_run.pipeline_id')}"),
)
"""Statements that delete rows of dropped pipelines: runs last, because the other rows are found through them."""


class RunViewer(NamedTuple):
    """A filter for the runs visible to a caller: all runs, or those that one of these principals owns directly or
    through the pipeline.
    """

    everything: bool
    principals: tuple[int, ...]

    def params(self) -> dict[str, Value]:
        """Return the parameters with which statements filter the runs visible to this caller."""
        return {"everything": self.everything, "principals": dumps(self.principals)}


class RunReporter(NamedTuple):
    """The process that executes a run and reports its progress: its user, and the number of its attempt."""

    metalake_id: int
    uuid: str
    user: str
    user_id: int
    attempt: int

    def params(self) -> dict[str, Value]:
        """Return the parameters of statements that take effect only for the run's own user and newest attempt."""
        return {
            "metalake": self.metalake_id,
            "uuid": self.uuid,
            "user": self.user,
            "user_id": self.user_id,
            "attempt": self.attempt,
        }


def run_read(metalake_id: int, uuid: str) -> Load[PipelineRun | None]:
    """Read a run by the id that its client chose, or None."""
    rows = yield BY_UUID, {"metalake": metalake_id, "uuid": uuid}
    return PipelineRun(*rows[0]) if rows else None


def newest_run_read(pipeline_id: int) -> Load[PipelineRun | None]:
    """Read the newest run of a pipeline, or None."""
    rows = yield NEWEST_OF, {"pipeline": pipeline_id}
    return PipelineRun(*rows[0]) if rows else None


def run_whole_read(
    metalake_id: int, uuid: str
) -> Load[tuple[PipelineRun, list[RunStepState], list[RuleFinding]] | None]:
    """Read a run with its steps, in order, and its findings; or None."""
    run = yield from run_read(metalake_id, uuid)
    if run is None:
        return None
    steps = yield STEPS, {"id": run.id}
    findings = yield FINDINGS, {"id": run.id}
    return run, [RunStepState(*row) for row in steps], [RuleFinding(*row) for row in findings]


def runs_read(
    of: int, caller: RunViewer, *, of_pipeline: bool, state: str, now_ms: int, before: int, limit: int
) -> Load[list[PipelineRun]]:
    """Read the runs of a metalake or pipeline (id `of`) visible to a caller, newest first, with ids below `before`.

    `state` "" means any state.
    """
    params: dict[str, Value] = {**caller.params(), "of": of, "before": before, "limit": limit, "now": now_ms}
    rows = yield PAGES[of_pipeline, state], params
    return [PipelineRun(*row) for row in rows]


def findings_read(
    pipeline_id: int, caller: RunViewer, *, rule: str, step: str, before: int, limit: int
) -> Load[list[RuleFinding]]:
    """Read the findings of a pipeline's expectations over its runs, newest first, with ids below `before`.

    "" as `rule` or `step` means any.
    """
    params: dict[str, Value] = {**caller.params(), "of": pipeline_id, "rule": rule, "step": step}
    rows = yield TREND, {**params, "before": before, "limit": limit}
    return [RuleFinding(*row) for row in rows]


class RunWrites(Writes):
    """Reads and writes runs, their steps and their findings inside a transaction."""

    def find(self, metalake_id: int, uuid: str) -> PipelineRun | None:
        """Read a run inside the transaction, or None."""
        return self._one(self.tx.rows(BY_UUID, {"metalake": metalake_id, "uuid": uuid}))

    def has_foreign_prefix(self, metalake_id: int, uuid: str, *, user: str, user_id: int) -> bool:
        """Return whether a run of another user has a UUID with the same first `PREFIX` characters."""
        own_params: dict[str, Value] = {"user": user, "user_id": user_id}
        return bool(self.tx.rows(FOREIGN_PREFIX, {"metalake": metalake_id, "prefix": uuid[:PREFIX], **own_params}))

    def by_id(self, run_id: int) -> PipelineRun | None:
        """Read a run by id inside the transaction, or None."""
        return self._one(self.tx.rows(BY_ID, {"id": run_id}))

    def _one(self, rows: list[Row]) -> PipelineRun | None:
        return PipelineRun(*rows[0]) if rows else None

    def steps(self, run_id: int) -> list[RunStepState]:
        """Read a run's steps in their order."""
        return [RunStepState(*row) for row in self.tx.rows(STEPS, {"id": run_id})]

    def live_of(self, pipeline_id: int) -> list[PipelineRun]:
        """Read a pipeline's unfinished runs, including those with expired leases."""
        return [PipelineRun(*row) for row in self.tx.rows(LIVE_OF, {"pipeline": pipeline_id})]

    def lose(self, pipeline_id: int, *, but: int, message: str) -> None:
        """Set the state of a pipeline's runs with expired leases to failed, except for the run `but`."""
        params: dict[str, Value] = {"pipeline": pipeline_id, "id": but, "now": self.tx.now_ms, "message": message}
        for run_id, uuid in self.tx.rows(LOSE, params):
            self._add_change("fail", run_id, pipeline_id=pipeline_id, uuid=uuid)

    def create(self, run: PipelineRun, steps: Sequence[RunStepState]) -> PipelineRun:
        """Insert a run with its owner and its steps."""
        tx, run_id = self.tx, self.tx.next_id()
        params: dict[str, Value] = {
            "id": run_id,
            "metalake": run.metalake_id,
            "pipeline": run.pipeline_id,
            "version": run.version,
            "uuid": run.uuid,
            "user": run.user,
            "user_id": run.user_id,
            "holder": run.holder,
            "now": tx.now_ms,
            "lease": run.lease_ms,
            "parameters": run.parameters,
            "options": run.options,
        }
        tx.count(INSERT, params)
        if run.owner_id is not None:
            OwnerWrites(tx).insert(run_id, run.owner_id)
        rows: list[Params] = [
            {"id": run_id, "ordinal": index, "name": step.name, "reads": step.reads, "output": step.output}
            for index, step in enumerate(steps)
        ]
        if rows:
            tx.session.many(STEP_NEW, rows)
        self._add_change("start", run_id, pipeline_id=run.pipeline_id, uuid=run.uuid)
        pipeline_run = self.by_id(run_id)
        return run if pipeline_run is None else pipeline_run

    def beat(self, actor: RunReporter, *, progress: str | None) -> tuple[str, int] | None:
        """Renew the lease and store the progress.

        Returns state and attempt, or None if the reporter has lost the run.
        """
        rows = self.tx.rows(BEAT, {**actor.params(), "now": self.tx.now_ms, "progress": progress})
        return (rows[0][0], rows[0][1]) if rows else None

    def phases_set(self, actor: RunReporter, phases: str) -> None:
        """Store the time that the reporter's attempt spent in each phase. No-op if a newer attempt exists."""
        self.tx.count(PHASES_SET, {**actor.params(), "phases": phases})

    def touch(self, actor: RunReporter) -> tuple[int, int] | None:
        """Renew the lease and lock the run's row.

        Returns the run's and the pipeline's id, or None if the reporter lost the run.
        """
        rows = self.tx.rows(TOUCH, {**actor.params(), "now": self.tx.now_ms})
        return (rows[0][0], rows[0][1]) if rows else None

    def step(self, run_id: int, name: str) -> RunStepState | None:
        """Read a step of a run by its name; None if it does not exist."""
        rows = self.tx.rows(STEP, {"id": run_id, "name": name})
        return RunStepState(*rows[0]) if rows else None

    def reported_length(self, run_id: int) -> int:
        """Return the total length in characters of the stored reports about a run's steps and expectations."""
        return int(self.tx.rows(TOLD_LENGTH, {"id": run_id})[0][0])

    def step_set(self, run_id: int, step: RunStepState) -> None:
        """Store the state of a step that its run reported."""
        params: dict[str, Value] = {
            "id": run_id,
            "name": step.name,
            "state": step.state,
            "attempt": step.attempt,
            "rows": step.rows,
            "bytes": step.bytes,
            "started_at": step.started_at,
            "ended_at": step.ended_at,
            "message": step.message,
            "outputs": step.outputs,
            "inputs": step.inputs,
            "phases": step.phases,
        }
        self.tx.count(STEP_SET, params)

    def findings_set(self, run_id: int, pipeline_id: int, *, step: str, findings: Sequence[RuleFinding]) -> None:
        """Replace the findings of a step's expectations in a run."""
        tx = self.tx
        tx.count(FINDINGS_DROP, {"id": run_id, "step": step})
        rows: list[Params] = [
            {
                "id": tx.next_id(),
                "run": run_id,
                "pipeline": pipeline_id,
                "step": step,
                "rule": each.rule,
                "body": each.body,
                "now": tx.now_ms,
            }
            for each in findings
        ]
        if rows:
            tx.session.many(FINDING_NEW, rows)

    def finish(self, run: PipelineRun, state: str, *, attempt: int, message: str | None) -> bool:
        """Set a run's state to `state` (a key of `FINISH`).

        Returns False if `attempt` is not its newest attempt, or its current state does not allow that.
        """
        statement, operation = FINISH[state]
        return self._change_state(run, operation, by=statement, attempt=attempt, message=message)

    def publish(self, run: PipelineRun, *, attempt: int, catalog_id: int) -> bool:
        """Mark a run as published with the revision of this transaction.

        Returns False if `attempt` is not its newest attempt, or its current state does not allow that.
        """
        more: dict[str, Value] = {"catalog": catalog_id, "revision": self.tx.revision}
        return self._change_state(run, "publish", by=PUBLISH, attempt=attempt, **more)

    def resume(self, run: PipelineRun, *, holder: str, lease_ms: int) -> bool:
        """Begin the next attempt, and record the one before. Returns False if another attempt began, a process still
        executes the run, or its state does not allow that.
        """
        changes: dict[str, Value] = {"holder": holder, "lease": lease_ms}
        changes["attempts"] = run.attempts_at_resume(self.tx.now_ms)
        return self._change_state(run, "resume", by=RESUME, attempt=run.attempt, **changes)

    def cancel(self, run: PipelineRun) -> bool:
        """Request that a run's process stops. Returns False if the run is not running."""
        return self._change_state(run, "cancelling", by=CANCEL, attempt=run.attempt)

    def _change_state(self, run: PipelineRun, operation: str, *, by: Sql, **params: Value) -> bool:
        arguments: dict[str, Value] = {"id": run.id, "now": self.tx.now_ms, **params}
        if not self.tx.count(by, arguments):
            return False
        self._add_change(operation, run.id, pipeline_id=run.pipeline_id, uuid=run.uuid)
        return True

    def _add_change(self, operation: str, run_id: int, *, pipeline_id: int, uuid: str) -> None:
        """Write the change row: its parent is the pipeline, its name the run's UUID."""
        draft = ChangeDraft(
            operation=operation,
            kind=Kind.JOB,
            node_id=run_id,
            name_space=Kind.JOB.word,
            new_parent=pipeline_id,
            new_name=uuid,
        )
        self.tx.add_change(draft)

    def prune(self, *, keep_ms: int, limit: int) -> int:
        """Delete up to `limit` runs that ended more than `keep_ms` ago. Returns the number of deleted runs.

        A published run is retained until later published runs include each of its steps, because it describes the
        content of the tables.
        """
        rows = self.tx.rows(EXPIRED, {"before": self.tx.now_ms - keep_ms, "limit": limit})
        for (run_id,) in rows:
            for statement in DROPS:
                self.tx.count(statement, {"id": run_id})
        return len(rows)
