# SPDX-License-Identifier: Apache-2.0
"""Pipeline runs in the store: each change of state is one statement, of two concurrent changes one succeeds, and old
runs are deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.records import JobTemplateRecord
from limnos.model.runs import BEFORE, FINISHES, PipelineDeclaration, PipelineRun, RuleFinding, RunStepState
from limnos.store.activity.pipelines import declaration_put, declaration_read, declarations_prune
from limnos.store.activity.runs import RunReporter, RunViewer, findings_read, run_whole_read, runs_read
from limnos.store.activity.upkeep import orphans_sweep
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld

EVERYBODY = RunViewer(True, ())
DAY_MS = 86_400_000


@dataclass
class Runs:
    """A pipeline, with short methods for operations on its runs."""

    lab: StoreLab
    world: StoreWorld
    pipeline: Node
    made: int = 0

    def start(self, *steps: str, owner: int | None = 7, lease_ms: int = 30_000) -> PipelineRun:
        """Insert a run of user ana."""
        self.made += 1
        now = self.lab.store.time.now_ms()
        run = PipelineRun(
            id=0,
            metalake_id=self.world.lake.id,
            pipeline_id=self.pipeline.id,
            version=1,
            uuid=f"run-{self.made}",
            user="ana",
            user_id=7,
            state="running",
            attempt=1,
            holder="h:1",
            beat_at=now,
            lease_ms=lease_ms,
            parameters="{}",
            options="{}",
            progress=None,
            message=None,
            catalog_id=None,
            revision=None,
            started_at=now,
            resumed_at=None,
            ended_at=None,
            phases=None,
            attempts=None,
            owner_id=owner,
        )
        step_states = [
            RunStepState(name=name, reads="[]", output=f"main.a.{name}", state="waiting", attempt=0) for name in steps
        ]
        return self.lab.write(lambda tx: tx.runs.create(run, step_states), zone=self.world.lake.id)

    def load(self, run: PipelineRun) -> PipelineRun:
        """Load a run."""
        return self.lab.load(run_whole_read(run.metalake_id, run.uuid))[0]  # type: ignore[index]

    def list(self, caller: RunViewer = EVERYBODY, **filters: object) -> list[str]:
        """Return the ids of the runs that a user sees, newest first."""
        arguments = {"of_pipeline": False, "state": "", "before": 2**53, "limit": 100} | filters
        now = self.lab.store.time.now_ms()
        of = self.pipeline.id if arguments["of_pipeline"] else self.world.lake.id
        return [run.uuid for run in self.lab.load(runs_read(of, caller, now_ms=now, **arguments))]  # type: ignore[arg-type]

    def actor(self, run: PipelineRun, **changes: object) -> RunReporter:
        """Return the process of a run's attempt."""
        return RunReporter(
            metalake_id=run.metalake_id, uuid=run.uuid, user=run.user, user_id=run.user_id, attempt=run.attempt
        )._replace(**changes)  # type: ignore[arg-type]

    def to(self, run: PipelineRun, state: str) -> bool:
        """Move a run to a state, in the name of its attempt."""
        zone = self.world.main.id if state == "published" else self.world.lake.id
        return self.lab.write(lambda tx: _to(tx, run, state), zone=zone)

    def age(self, run: PipelineRun, days: int) -> None:
        """Set the end of a run this long into the past."""
        then = self.lab.store.time.now_ms() - days * DAY_MS
        self.lab.database.sql(f"UPDATE pipeline_run SET ended_at = {then} WHERE id = {run.id}")

    def step(self, run: PipelineRun, name: str, state: str = "done") -> None:
        """Report a step as done."""
        self.lab.write(
            lambda tx: tx.runs.step_set(run.id, RunStepState(name=name, reads="[]", output="", state=state, attempt=1))
        )


def _to(tx: Tx, run: PipelineRun, state: str) -> bool:
    if state == "published":
        return tx.runs.publish(run, attempt=run.attempt, catalog_id=5)
    if state == "running":
        return tx.runs.resume(run, holder="h:2", lease_ms=1000)
    if state == "cancelling":
        return tx.runs.cancel(run)
    return tx.runs.finish(run, state, attempt=run.attempt, message=None)


def add_pipeline(lab: StoreLab, world: StoreWorld, name: str = "nyc") -> Node:
    """Create a pipeline."""
    kind = Kind.JOB_TEMPLATE
    return lab.write(
        lambda tx: tx.nodes.create(
            kind=kind,
            space=kind.word,
            name=name,
            parent_id=world.lake.id,
            zone=world.lake.id,
            record=JobTemplateRecord(comment=None, properties={}, declared=1, digest="d"),
            owner_id=9,
        ),
        zone=world.lake.id,
    )


@pytest.fixture
def runs(lab: StoreLab, world: StoreWorld) -> Runs:
    """A pipeline that principal 9 owns."""
    return Runs(lab, world, add_pipeline(lab, world))


def test_run_is_read_as_it_was_written(runs: Runs) -> None:
    """A run is read as it was written, with its steps in order and waiting."""
    run = runs.start("b", "a")

    loaded_run = runs.lab.load(run_whole_read(run.metalake_id, run.uuid))

    assert loaded_run is not None
    assert (loaded_run[0], loaded_run[0].owner_id) == (run, 7)
    assert [(step.name, step.state, step.attempt) for step in loaded_run[1]] == [
        ("b", "waiting", 0),
        ("a", "waiting", 0),
    ]
    assert runs.lab.load(run_whole_read(run.metalake_id, "none")) is None


@pytest.mark.parametrize("state", [*FINISHES, "published", "running"])
def test_run_state_changes_follow_the_model(runs: Runs, state: str) -> None:
    """On every database, a run changes from each state only to the states that the model allows."""
    came: set[str] = set()
    for first in ("running", "cancelling", "failed", "cancelled", "held", "discarded", "published"):
        run = runs.start()
        if first == "discarded" and not runs.to(run, first):
            continue
        if first not in ("running", "discarded"):
            assert runs.to(run, first)
        if runs.to(runs.load(run), state):
            came.add(first)
        runs.to(runs.load(run), "discarded")

    live = () if state != "running" else ("running", "cancelling")  # these states have a lease
    assert came == set(BEFORE[state]) - set(live)


def test_only_the_newest_attempt_acts(runs: Runs) -> None:
    """After a resume, statements of the previous attempt change nothing, whether its user or another one sends them."""
    run = runs.start("s")
    runs.to(run, "failed")
    runs.to(run, "running")
    late, now = runs.actor(run), runs.actor(runs.load(run))

    def beat(actor: RunReporter) -> tuple[str, int] | None:
        return runs.lab.write(lambda tx: tx.runs.beat(actor, progress=None))

    assert [beat(late), beat(now)] == [None, ("running", 2)]
    assert [beat(now._replace(user="bob")), beat(now._replace(user_id=8)), beat(now._replace(metalake_id=1))] == [
        None
    ] * 3
    assert runs.lab.write(lambda tx: tx.runs.touch(late)) is None
    assert [runs.to(run, "failed"), runs.to(run, "published"), runs.to(run, "cancelling")] == [False] * 3


def test_resume_records_the_attempt_before(runs: Runs) -> None:
    """A resumed run has the state, process, times and message of each earlier attempt, the newest 20 of them; one
    whose lease has expired counts as lost, and ended with its last heartbeat.
    """
    run = runs.start("s", lease_ms=0)
    runs.to(run, "running")
    second = runs.load(run)
    runs.lab.write(lambda tx: tx.runs.finish(second, "failed", attempt=2, message="m" * 5000), zone=run.metalake_id)
    runs.to(runs.load(run), "running")
    lost, failed = runs.load(run).earlier_attempts

    assert run.earlier_attempts == ()
    assert (lost.attempt, lost.state, lost.holder, lost.message) == (1, "lost", "h:1", None)
    assert (lost.started_at, lost.ended_at) == (run.started_at, run.beat_at)
    assert (failed.attempt, failed.state, failed.holder, failed.message) == (2, "failed", "h:2", "m" * 1000)
    assert failed.started_at == second.resumed_at
    for _ in range(20):
        runs.to(runs.load(run), "failed")
        runs.to(runs.load(run), "running")
    assert [each.attempt for each in runs.load(run).earlier_attempts] == [*range(3, 23)]


def test_heartbeat_is_one_statement_and_no_change_row(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat is one statement and creates no change row. A heartbeat without progress does not change the
    progress.
    """
    run = runs.start()
    changes = runs.lab.database.sql("SELECT count(*) FROM change")
    statements: list[object] = []

    def beat(tx: Tx) -> None:
        rows = tx.rows
        monkeypatch.setattr(tx, "rows", lambda *args: statements.append(args) or rows(*args))
        tx.runs.beat(runs.actor(run), progress='{"s": {}}')
        tx.runs.beat(runs.actor(run), progress=None)

    runs.lab.write(beat)

    assert len(statements) == 2
    assert runs.lab.database.sql("SELECT count(*) FROM change") == changes
    assert runs.load(run).progress == '{"s": {}}'


def test_only_the_newest_attempt_can_write_phases(runs: Runs) -> None:
    """The user of the newest attempt can write its phases, also after the end of the run. A resume deletes them."""
    run = runs.start("s")
    runs.to(run, "published")

    def write_phases(actor: RunReporter, phases: str) -> str | None:
        runs.lab.write(lambda tx: tx.runs.phases_set(actor, phases))
        return runs.load(run).phases

    assert write_phases(runs.actor(run), '{"steps": 1}') == '{"steps": 1}'
    assert write_phases(runs.actor(run)._replace(user="bob"), "{}") == '{"steps": 1}'
    assert write_phases(runs.actor(run)._replace(attempt=2), "{}") == '{"steps": 1}'
    again = runs.start("s")
    runs.to(again, "failed")
    runs.lab.write(lambda tx: tx.runs.phases_set(runs.actor(again), "{}"))
    runs.to(again, "running")
    assert runs.load(again).phases is None


def test_only_runs_with_expired_lease_are_failed(runs: Runs) -> None:
    """Only runs whose lease has expired are failed, and never the run that is about to be resumed."""
    dead, own = runs.start(lease_ms=-1), runs.start(lease_ms=-1)
    live = runs.start()

    runs.lab.write(lambda tx: tx.runs.lose(runs.pipeline.id, but=own.id, message="lost"), zone=runs.world.lake.id)

    assert [runs.load(run).state for run in (dead, own, live)] == ["failed", "running", "running"]
    assert runs.list(state="lost") == [own.uuid]
    assert runs.list(state="running") == [live.uuid]


def test_run_list_contains_runs_visible_to_the_caller(runs: Runs) -> None:
    """A list has all runs, or those that one of the caller's principals owns, or the runs of a pipeline that one of
    them owns.
    """
    mine, other = runs.start(owner=7), runs.start(owner=8)

    assert runs.list() == runs.list(RunViewer(False, (9,))) == [other.uuid, mine.uuid]
    assert runs.list(RunViewer(False, (7, 70))) == runs.list(RunViewer(False, (7,)), of_pipeline=True) == [mine.uuid]
    assert runs.list(RunViewer(False, ())) == runs.list(RunViewer(False, (5,))) == []
    assert runs.list(limit=1) == [other.uuid]
    assert runs.list(before=other.id) == [mine.uuid]


def test_findings_are_replaced_and_listed(runs: Runs) -> None:
    """New findings of a step replace its earlier ones, and do not change those of other steps. The list has the newest
    first, for callers who see the run.
    """
    run = runs.start("a", "b")

    def put(step: str, *rules: str) -> None:
        findings = [RuleFinding(step=step, rule=rule, body="{}") for rule in rules]
        runs.lab.write(lambda tx: tx.runs.findings_set(run.id, runs.pipeline.id, step=step, findings=findings))

    def listed(caller: RunViewer = EVERYBODY, rule: str = "", step: str = "", limit: int = 9) -> list[tuple[str, str]]:
        load = findings_read(runs.pipeline.id, caller, rule=rule, step=step, before=2**53, limit=limit)
        return [(each.step, each.rule) for each in runs.lab.load(load)]

    put("a", "x", "y")
    put("b", "x")
    put("a", "x")

    assert listed() == [("a", "x"), ("b", "x")]
    assert (listed(rule="y"), listed(step="b"), listed(limit=1)) == ([], [("b", "x")], [("a", "x")])
    assert (listed(RunViewer(False, (7,))), listed(RunViewer(False, (8,)))) == ([("a", "x"), ("b", "x")], [])


def test_old_runs_are_deleted_except_latest_published_ones(runs: Runs) -> None:
    """Ended runs are deleted after their retention time. A published run is kept until later published runs have done
    each of its steps.
    """
    names = ("failed", "early", "part", "late", "held", "young", "live")
    created_runs = {name: runs.start("a", "b", lease_ms=-1) for name in names}
    done = {"early": ("a", "b"), "part": ("b",), "late": ("a",)}
    for name, steps in done.items():
        for step in steps:
            runs.step(created_runs[name], step)
        assert runs.to(created_runs[name], "published")
    runs.to(created_runs["failed"], "failed")
    runs.to(created_runs["held"], "held")
    runs.to(created_runs["young"], "failed")
    for name in ("failed", "early", "part", "late"):
        runs.age(created_runs[name], 100)

    deleted_count = runs.lab.write(lambda tx: tx.runs.prune(keep_ms=90 * DAY_MS, limit=100))

    assert deleted_count == 2
    assert runs.list() == [created_runs[name].uuid for name in ("live", "young", "held", "late", "part")]
    left = {row[0] for row in runs.lab.database.sql("SELECT DISTINCT run_id FROM run_step")}
    assert left == {created_runs[name].id for name in ("live", "young", "held", "late", "part")}
    owners = {row[0] for row in runs.lab.database.sql("SELECT object_id FROM owner WHERE principal_id = 7")}
    assert owners == left


def test_pruning_deletes_a_limited_number_of_runs_per_call(runs: Runs) -> None:
    """Each call deletes a limited number of runs, and further calls delete the others."""
    for _ in range(3):
        run = runs.start()
        runs.to(run, "failed")
        runs.age(run, 100)

    counts = [runs.lab.write(lambda tx: tx.runs.prune(keep_ms=DAY_MS, limit=2)) for _ in range(3)]

    assert counts == [2, 1, 0]


def test_newest_and_used_declarations_are_retained(runs: Runs) -> None:
    """The newest declaration of a pipeline, and those that a run uses, are kept."""
    for version in (1, 2, 3):
        runs.lab.write(
            lambda tx, version=version: declaration_put(tx, runs.pipeline.id, version=version, digest="d", text="{}")
        )
    run = runs.start()

    deleted_counts = [runs.lab.write(declarations_prune) for _ in range(2)]

    def list_versions() -> list[int]:
        return [
            n
            for n in (1, 2, 3)
            if isinstance(runs.lab.load(declaration_read(runs.pipeline.id, n)), PipelineDeclaration)
        ]

    assert (deleted_counts, list_versions(), run.version) == ([1, 0], [1, 3], 1)


def test_sweep_deletes_records_of_a_dropped_pipeline(runs: Runs) -> None:
    """The sweep deletes runs, steps, findings, owners and declarations of a dropped pipeline, and of no other."""
    other = Runs(runs.lab, runs.world, add_pipeline(runs.lab, runs.world, "other"), made=50)
    for each in (runs, other):
        run = each.start("a")
        findings = [RuleFinding(step="a", rule="r", body="{}")]
        each.lab.write(
            lambda tx, run=run, each=each, findings=findings: tx.runs.findings_set(
                run.id, each.pipeline.id, step="a", findings=findings
            )
        )
        each.lab.write(lambda tx, each=each: declaration_put(tx, each.pipeline.id, version=1, digest="d", text="{}"))
    runs.lab.write(lambda tx: tx.nodes.drop(tx.nodes.confirm(runs.pipeline)), zone=runs.world.lake.id)
    runs.lab.write(orphans_sweep)

    counts = [
        runs.lab.database.sql(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("pipeline_run", "run_step", "run_finding", "pipeline_version")
    ]
    assert counts == [1, 1, 1, 1]
    assert runs.list() == other.list() == ["run-51"]
    assert runs.lab.database.sql("SELECT count(*) FROM owner WHERE principal_id = 7")[0][0] == 1
