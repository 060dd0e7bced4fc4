# SPDX-License-Identifier: Apache-2.0
"""A run over a real server: all of its tables are published or none, in every case of failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from limnos.client import Client
from limnos.client.errors import NoSpaceError, NotFoundError
from limnos.model.errors import CommitConflict, NotFound
from limnos.pipeline.context import StepContext, branches_prefix
from limnos.pipeline.declaration import Sql, StepDeclaration
from limnos.pipeline.failures import DataBroken, StepAway, StepDenied, StepFailed
from limnos.pipeline.outcomes import ExpectationFinding, StepBranch, StepOutcome
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.run.event_text import line_of
from limnos.pipeline.run.events import RunEvent
from limnos.pipeline.run.held_runs import discard, publish_held
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.pipeline.run.resume import resume
from tests.pipeline.run.conftest import SCHEMA, PipelineRig, commit

pytestmark = pytest.mark.integration


def resumed(rig: PipelineRig, ended: RunResult, **reads: str) -> RunResult:
    """Resume a run with the same pipeline."""
    return resume(rig.pipeline(**reads), rig.means(), run_id=ended.run, directory=Path(), options=RunOptions(lease_s=2))


def failing(name: str) -> Callable[[StepDeclaration, StepContext], None]:
    """Return a hook that fails the step of a table."""

    def trouble(step: StepDeclaration, context: StepContext) -> None:
        if step.table[-1] == name:
            raise StepFailed(f"{name} cannot be made")

    return trouble


def breaking(name: str) -> Callable[[StepDeclaration, StepContext], None]:
    """Return a hook with findings that violate an expectation of a table's step."""

    def broken(step: StepDeclaration, context: StepContext) -> None:
        if step.table[-1] == name:
            finding = ExpectationFinding(
                rule="r", kind="row", action="fail", broken=2, checked=3, tolerated=0.0, held=False, message="2 of 3"
            )
            branch = StepBranch(
                table=step.table, name=context.branch, uuid="u", schema_id=0, base=None, head=None, is_new=True
            )
            outcome = StepOutcome(branches=(branch,), pins=(), findings=(finding,), rows=3, bytes=1, seconds=0.0)
            raise DataBroken("rule r: 2 of 3", outcome=outcome, broken=[finding])

    return broken


def test_a_run_publishes_all_its_tables_at_once(rig: PipelineRig) -> None:
    """`main` of each table is what its step wrote, the branches are deleted, and the record says so."""
    ended = rig.run(rig.pipeline(a="", b="a", c="a b"))

    assert (ended.state, ended.exit_code) == ("published", 0), ended.message
    assert rig.engine.read[f"{rig.space}.c"] == {
        rig.table("a"): rig.main("a"),
        rig.table("b"): rig.main("b"),
    }
    assert [rig.refs(name) for name in "abc"] == [{"main"}] * 3
    seen = rig.client.runs.load(ended.run)
    assert seen.state == "published"
    assert seen.revision == ended.revision
    assert [step.state for step in seen.steps] == ["done"] * 3


@pytest.mark.parametrize("hold", [False, True])
def test_record_has_durations_of_steps_and_run(rig: PipelineRig, hold: bool) -> None:
    """The record has each step's durations from its engine, and the run's durations, with publishing if it
    published.
    """
    ended = rig.run(rig.pipeline(a="", b="a"), hold=hold)

    seen = rig.client.runs.load(ended.run)
    assert [step.phases_s for step in seen.steps] == [{"writing": 0.062}] * 2
    assert set(seen.phases_s) == {"planning", "steps", "publishing"}
    assert seen.phases_s["planning"] > 0
    assert seen.phases_s["steps"] > 0
    assert (seen.phases_s["publishing"] > 0) is not hold
    assert sum(seen.phases_s.values()) >= ended.seconds * 0.9
    assert ended.rows == sum(step.rows or 0 for step in seen.steps) > 0


def test_inputs_are_pinned_at_run_start(rig: PipelineRig) -> None:
    """A table that is written during the run is read in its earlier state by every step."""
    rig.run(rig.pipeline(source=""))
    pinned = rig.main("source")

    def meddle(step: StepDeclaration, context: StepContext) -> None:
        commit(rig.client, rig.table("source"), ref="main", parent=rig.main("source"))

    rig.engine.before = meddle
    ended = rig.run(rig.pipeline(a="source", b="source"), at_once=1)

    assert ended.why is EndReason.DONE, ended.message
    assert {tuple(read.values()) for name, read in rig.engine.read.items() if not name.endswith("source")} == {
        (pinned,)
    }


@pytest.mark.parametrize("options, most", [({}, 1), ({"at_once": 2}, 2)])
def test_engine_proposes_number_of_steps_at_once(rig: PipelineRig, options: dict[str, int], most: int) -> None:
    """As many steps run at the same time as the engine proposes, unless the run's options have a number."""
    running: list[str] = []
    counts: list[int] = []
    both = threading.Event()

    def enter(step: StepDeclaration, context: StepContext) -> None:
        running.append(step.name)
        counts.append(len(running))
        if len(running) > 1 or most == 1:
            both.set()
        assert both.wait(60)

    rig.engine.at_once, rig.engine.before = 1, enter
    rig.engine.after = lambda step, context: running.remove(step.name)
    ended = rig.run(rig.pipeline(a="", b="", c=""), **options)

    assert ended.why is EndReason.DONE, ended.message
    assert max(counts) == most


def test_wait_of_a_step_for_a_cluster_is_reported_once(rig: PipelineRig) -> None:
    """A step that waits at two heartbeats in a row is reported with the reason, once until its tasks run."""
    name = f"{rig.space}.a"

    def wait(step: StepDeclaration, context: StepContext) -> None:
        rig.engine.waits[name] = "no free cores"
        until = time.monotonic() + 60
        while sum(event.tasks is not None for event in rig.events) < 4 and time.monotonic() < until:
            time.sleep(0.05)
        del rig.engine.waits[name]

    rig.engine.before = wait
    ended = rig.run(rig.pipeline(a=""))

    assert ended.why is EndReason.DONE, ended.message
    waits = [(event.step, event.state, event.message) for event in rig.events if "waits" in (event.message or "")]
    assert waits == [(name, "running", "waits: no free cores")]


def test_failed_step_publishes_nothing_and_resume_reruns_it(rig: PipelineRig) -> None:
    """After the failure nothing is published; the resume runs only the failed step, and publishes what both attempts
    made.
    """
    rig.engine.before = failing("b")
    ended = rig.run(rig.pipeline(a="", b="a", c="b"))

    assert (ended.state, ended.why, ended.exit_code) == ("failed", EndReason.CODE, 11)
    assert "b cannot be made" in ended.message
    assert f"limnos pipeline resume {ended.run}" in ended.message
    assert rig.main("a") is None
    assert [event.step for event in rig.events if event.state == "skipped"] == [f"{rig.space}.c"]

    again = rig.renewed()
    second = resumed(again, ended, a="", b="a", c="b")

    assert (second.state, second.attempt) == ("published", 2), second.message
    assert [name for name, _ in again.engine.carried] == [f"{rig.space}.b", f"{rig.space}.c"]
    assert again.engine.read[f"{rig.space}.b"] == {rig.table("a"): rig.main("a")}
    assert [rig.refs(name) for name in "abc"] == [{"main"}] * 3


def test_resume_reruns_changed_step_and_its_dependents(rig: PipelineRig) -> None:
    """A resume with a changed file runs the changed step and its dependents; other steps are kept."""
    rig.engine.before = failing("c")
    ended = rig.run(rig.pipeline(a="", b="", c="b"))

    again = rig.renewed()
    pipeline = rig.pipeline(a="", b="", c="b")
    steps = [replace(step, comment="mended") if step.table[-1] == "b" else step for step in pipeline.steps]
    second = resume(
        replace(pipeline, steps=tuple(steps)),
        again.means(),
        run_id=ended.run,
        directory=Path(),
        options=RunOptions(lease_s=2),
    )

    assert second.state == "published", second.message
    assert sorted(name for name, _ in again.engine.carried) == [f"{rig.space}.b", f"{rig.space}.c"]


def test_second_resume_keeps_steps_that_the_first_one_changed(rig: PipelineRig) -> None:
    """A step that a resume has made from a changed file is kept by the next resume with the same file."""
    rig.engine.before = failing("b")
    ended = rig.run(rig.pipeline(a="", b="a"))

    pipeline = rig.pipeline(a="", b="a")
    steps = [replace(step, comment="mended") if step.table[-1] == "a" else step for step in pipeline.steps]
    carried = []
    for what in (failing("b"), None):
        again = rig.renewed()
        if what is not None:
            again.engine.before = what
        second = resume(
            replace(pipeline, steps=tuple(steps)),
            again.means(),
            run_id=ended.run,
            directory=Path(),
            options=RunOptions(lease_s=2),
        )
        carried.append([name for name, _ in again.engine.carried])

    assert second.state == "published", second.message
    assert carried == [[f"{rig.space}.a", f"{rig.space}.b"], [f"{rig.space}.b"]]


def test_resume_reruns_readers_of_expired_pin(rig: PipelineRig) -> None:
    """If the pinned snapshot of a finished step's source has expired, that step and its dependents run again."""
    rig.run(rig.pipeline(source=""))
    rig.engine.before = failing("b")
    ended = rig.run(rig.pipeline(a="source", b="a", other=""))
    again = rig.renewed()
    again.engine.expired = {rig.table("source")}

    second = resumed(again, ended, a="source", b="a", other="")

    assert second.state == "published", second.message
    assert [name for name, _ in again.engine.carried if not name.endswith("other")] == [
        f"{rig.space}.a",
        f"{rig.space}.b",
    ]


@pytest.mark.parametrize("where", ["step", "publish"])
def test_server_without_disk_space_ends_run_without_retries(
    rig: PipelineRig, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without disk space is not an unavailable server: each request is sent once, and the record has the
    message.
    """
    message = "Could not write file f: No space left on device."
    requests = []

    def full(*arguments: object, **further: object) -> None:
        requests.append(arguments)
        raise NoSpaceError(message, status=503)

    if where == "step":
        rig.engine.before = full
    else:
        monkeypatch.setattr("limnos.pipeline.run.runner.publish", full)
    ended = rig.run(rig.pipeline(a=""), away_s=600)

    seen = rig.client.runs.load(ended.run)
    assert (ended.state, ended.why, len(requests)) == ("failed", EndReason.CODE, 1)
    assert (seen.state, seen.message) == ("failed", ended.message)
    assert ended.message.endswith(
        f"{message.rstrip('.')}; nothing was published; correct the cause, then 'limnos pipeline resume {ended.run}'"
    )


@pytest.mark.parametrize(
    "mended,again",
    [
        ({"files": True}, "a b d"),  # changed: its reader runs, and the dependent of that
        ({"files": False}, "d"),
        ({"files": None}, "a b d"),  # a database: d failed by rows of a and b
        ({"aside": None}, "d"),  # c reads it, and d reads nothing of c
        ({"aside": True}, "c d"),
    ],
)
def test_resume_rereads_changed_source(rig: PipelineRig, mended: dict[str, bool | None], again: str) -> None:
    """A finished step whose source has changed runs again; so does one with a source that cannot be compared, if its
    rows violated a rule.
    """
    reads = {"a": "", "b": "a", "c": "", "d": "b"}
    sources = {"a": ("files",), "c": ("aside",)}
    rig.engine.sources = sources
    rig.engine.after = breaking("d")
    ended = rig.run(rig.pipeline(**reads), at_once=1)
    assert (ended.state, ended.exit_code) == ("failed", 10)
    second = rig.renewed()
    second.engine.sources, second.engine.mended = sources, mended

    done = resumed(second, ended, **reads)

    assert done.state == "published", done.message
    assert sorted(name.rpartition(".")[2] for name, _ in second.engine.carried) == again.split()


def test_resume_after_code_failure_does_not_reread_database(rig: PipelineRig) -> None:
    """A finished step that loads a database is kept if a later step failed by its code."""
    rig.engine.sources = {"a": ("database",)}
    rig.engine.before = failing("b")
    ended = rig.run(rig.pipeline(a="", b="a"))
    again = rig.renewed()
    again.engine.sources, again.engine.mended = rig.engine.sources, {"database": None}

    second = resumed(again, ended, a="", b="a")

    assert second.state == "published", second.message
    assert [name for name, _ in again.engine.carried] == [f"{rig.space}.b"]


def test_invalid_data_publishes_nothing_and_keeps_the_branch(rig: PipelineRig) -> None:
    """The finding is in the record, the branch is kept for inspection, and `main` is unchanged."""
    rig.run(rig.pipeline(b=""))
    before = rig.main("b")
    rig.engine.after = breaking("b")
    ended = rig.run(rig.pipeline(a="", b="a"))

    assert (ended.state, ended.why, ended.exit_code) == ("failed", EndReason.DATA, 10)
    assert (rig.main("a"), rig.main("b")) == (None, before)
    assert rig.refs("b") == {"main", f"{branches_prefix(ended.run)}1"}
    assert [(each.rule, each.broken, each.held) for each in rig.client.runs.load(ended.run).findings] == [
        ("r", 2, False)
    ]


def test_failed_first_run_leaves_no_table(rig: PipelineRig) -> None:
    """After a first run that failed no reader finds its tables. They are in the trash, and resuming the run restores
    what its finished steps made; a table that somebody else has created meanwhile is not touched.
    """
    rig.engine.before = failing("b")
    ended = rig.run(rig.pipeline(a="", b="a", c=""))
    listed = rig.client.tables.list(f"main.{rig.space}")
    dropped = sorted(one.path[-1] for one in rig.client.trash.list(f"main.{rig.space}"))
    create = {"do": "create-table", "path": list(rig.table("c")[1:]), "schema": SCHEMA}
    rig.client.transactions.run("main", [create])
    again = rig.renewed()
    second = resumed(again, ended, a="", b="a", c="")

    assert (ended.state, listed, dropped) == ("failed", (), ["a", "c"])
    assert second.state == "published", second.message
    assert sorted(name for name, _ in again.engine.carried) == [f"{rig.space}.b", f"{rig.space}.c"]
    assert rig.main("a") is not None


def test_denied_privilege_in_step_has_its_own_reason(rig: PipelineRig) -> None:
    """A denied privilege in a step has its own reason, not that of a failed step."""

    def refuse(step: StepDeclaration, context: StepContext) -> None:
        raise StepDenied("may not MODIFY_TABLE")

    rig.engine.before = refuse
    ended = rig.run(rig.pipeline(a=""))

    assert (ended.state, ended.why, ended.exit_code) == ("failed", EndReason.DENIED, 4)


def test_step_with_lost_commit_answer_reruns_on_new_branch(rig: PipelineRig) -> None:
    """A commit whose answer was lost is on a branch that is not published, and is removed."""
    lost: list[str] = []

    def lose(step: StepDeclaration, context: StepContext) -> None:
        if not lost:
            lost.append(context.branch)
            raise StepAway("connection reset")

    rig.engine.after = lose
    ended = rig.run(rig.pipeline(a=""))

    assert ended.state == "published", ended.message
    assert len({branch for _, branch in rig.engine.carried}) == 2
    assert rig.refs("a") == {"main"}
    metadata = rig.client.tables.load(rig.table("a")).metadata
    heads = [each["snapshot-id"] for each in metadata["snapshots"] if "parent-snapshot-id" not in each]  # type: ignore[attr-defined]
    assert len(heads) == 2
    assert rig.main("a") == max(heads)


def test_publish_conflict_with_other_writer_reruns_step(rig: PipelineRig) -> None:
    """If another writer has changed a table, its rows are kept: the step and its dependents run again, and everything
    is published.
    """
    rig.run(rig.pipeline(a="", b=""))
    others: list[int] = []

    def meddle(step: StepDeclaration, context: StepContext) -> None:
        if step.table[-1] == "a" and not others:
            others.append(commit(rig.client, step.table, ref="main", parent=rig.main("a"), by={"engine-name": "duck"}))

    rig.engine.after = meddle
    rig.engine.carried.clear()
    ended = rig.run(rig.pipeline(a="", b="", c="a"))

    assert ended.state == "published", ended.message
    assert sorted(name[-1] for name, _ in rig.engine.carried) == ["a", "a", "b", "c", "c"]
    message = next(event.message or "" for event in rig.events if event.state == "moved")
    assert f"main.{rig.space}.a was written at" in message
    assert "by duck" in message
    snapshots = rig.client.tables.load(rig.table("a")).metadata["snapshots"]
    parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in snapshots}  # type: ignore[attr-defined]
    assert parents[rig.main("a")] == others[0]


def test_repeated_publish_conflicts_end_the_run(rig: PipelineRig) -> None:
    """After the maximum number of attempts nothing is published, the message names the other writer, and the branches
    are kept.
    """
    rig.run(rig.pipeline(a=""))

    def meddle(step: StepDeclaration, context: StepContext) -> None:
        commit(rig.client, step.table, ref="main", parent=rig.main("a"))

    rig.engine.after = meddle
    ended = rig.run(rig.pipeline(a=""), tries=1)

    assert (ended.state, ended.why, ended.exit_code) == ("failed", EndReason.MOVED, 5)
    assert "was written" in ended.message
    assert len(rig.refs("a")) > 1


def test_absent_input_is_refused_with_the_step_that_reads_it(rig: PipelineRig) -> None:
    """A run whose step reads a table that does not exist says which step and where dropped tables are listed; no run is
    registered.
    """
    expected = (
        f"{rig.space}.b reads main.{rig.space}.gone, which does not exist, or you may not see it; 'limnos list trash"
    )

    with pytest.raises(NotFound) as error:
        rig.run(rig.pipeline(a="", b="a gone"))

    assert error.value.message.startswith(expected)
    assert [run for run in rig.client.runs.list() if run.pipeline == rig.space] == []


def test_namespace_renamed_during_run_is_not_recreated(rig: PipelineRig) -> None:
    """If a namespace is renamed during the run, its tables are not created again under the old name: the run ends and
    says so.
    """
    rig.run(rig.pipeline(b=""))
    namespace, elsewhere = f"main.{rig.space}", f"main.{rig.space}x"

    def renamed(step: StepDeclaration, context: StepContext) -> None:
        if step.table[-1] == "a":
            rig.client.namespaces.move(namespace, elsewhere)

    rig.engine.after = renamed
    ended = rig.run(rig.pipeline(a="", b="", c=""), at_once=1)

    assert (ended.state, ended.why, ended.exit_code) == ("failed", EndReason.MOVED, 5)
    assert f"namespace {namespace} was renamed or dropped during the run" in ended.message
    assert "start a new run" in ended.message
    with pytest.raises(NotFoundError):
        rig.client.namespaces.load(namespace)
    assert ended.message == rig.client.runs.load(ended.run).message

    again = rig.renewed()
    second = resumed(again, ended, a="", b="", c="")
    assert (second.why, second.exit_code) == (EndReason.MOVED, 5), second.message  # nor by a resume
    rig.client.namespaces.move(elsewhere, namespace)
    third = resumed(rig.renewed(), ended, a="", b="", c="")
    assert third.state == "published", third.message


@pytest.mark.parametrize("made_before", [True, False])
def test_output_purged_during_write_is_named_as_cause(rig: PipelineRig, made_before: bool) -> None:
    """If a table is purged while its step writes, the message has the cause before the engine's error about a missing
    file.
    """
    if made_before:
        rig.run(rig.pipeline(a=""))

    def purged(step: StepDeclaration, context: StepContext) -> None:
        rig.client.tables.drop(step.table, purge=True)
        raise StepFailed("File does not exist: file:///w/a/metadata/1.json")

    rig.engine.after = purged
    ended = rig.run(rig.pipeline(a=""))

    assert (ended.state, ended.why, ended.exit_code) == ("failed", EndReason.MOVED, 5)
    assert f"main.{rig.space}.a was dropped or renamed during the run (File does not exist" in ended.message


def test_failed_step_does_not_report_a_dropped_table(rig: PipelineRig) -> None:
    """If a step with a new table fails, the message does not say that the table was dropped."""
    rig.engine.before = failing("a")

    ended = rig.run(rig.pipeline(a=""))

    assert (ended.why, "dropped" in ended.message) == (EndReason.CODE, False)


@pytest.mark.parametrize("how", ["dropped", "renamed"])
def test_run_with_dropped_output_publishes_nothing(rig: PipelineRig, how: str) -> None:
    """If an output is dropped during the run, the other tables are unchanged, and the message names the table."""
    rig.run(rig.pipeline(a="", b=""))
    before = rig.main("b")

    def away(step: StepDeclaration, context: StepContext) -> None:
        if step.table[-1] == "a":
            if how == "dropped":
                rig.client.tables.drop(step.table)
            else:
                rig.client.tables.move(step.table, rig.table("elsewhere"))

    rig.engine.after = away
    ended = rig.run(rig.pipeline(a="", b=""))

    assert (ended.state, ended.why) == ("failed", EndReason.MOVED)
    assert f"main.{rig.space}.a was dropped or renamed" in ended.message
    assert rig.main("b") == before


def test_a_held_run_is_published_by_another_process(rig: PipelineRig) -> None:
    """A held run is not visible until it is published; publishing twice has the same effect as once."""
    ended = rig.run(rig.pipeline(a="", b="a"), hold=True)

    assert (ended.state, ended.exit_code) == ("held", 0)
    assert (rig.main("a"), rig.main("b")) == (None, None)

    published = publish_held(rig.client, ended.run)

    assert published.state == "published"
    assert None not in (rig.main("a"), rig.main("b"))
    assert publish_held(rig.client, ended.run).revision == published.revision


def test_held_run_with_changed_table_can_be_resumed(rig: PipelineRig) -> None:
    """If a table of a held run has changed, publishing names the other writer; the resume runs that step again and
    holds.
    """
    rig.run(rig.pipeline(a="", b=""))
    ended = rig.run(rig.pipeline(a="", b=""), hold=True)
    other = commit(rig.client, rig.table("a"), ref="main", parent=rig.main("a"))

    refused = publish_held(rig.client, ended.run)

    assert (refused.state, refused.why) == ("held", EndReason.MOVED)
    assert rig.main("a") == other
    again = rig.renewed()
    second = resumed(again, ended, a="", b="")
    assert second.state == "held", second.message
    assert [name[-1] for name, _ in again.engine.carried] == ["a"]
    assert publish_held(rig.client, ended.run).state == "published"


def test_discard_retains_only_tables_others_have_written(rig: PipelineRig) -> None:
    """Discarding deletes branches and the tables that the run created, except those that others have written
    meanwhile.
    """
    rig.run(rig.pipeline(old=""))
    ended = rig.run(rig.pipeline(old="", new="", shared=""), hold=True)
    commit(rig.client, rig.table("shared"), ref="main", parent=None)

    discarded, left = discard(rig.client, ended.run)

    assert discarded.state == "discarded"
    assert left.tables == (f"main.{rig.space}.new",)
    assert not rig.client.tables.exists(rig.table("new"))
    assert [rig.refs(name) for name in ("old", "shared")] == [{"main"}] * 2
    assert discard(rig.client, ended.run)[1].branches == ()
    with pytest.raises(CommitConflict, match="discarded"):
        publish_held(rig.client, ended.run)


def test_a_published_run_is_not_discarded(rig: PipelineRig) -> None:
    """A published run cannot be discarded."""
    ended = rig.run(rig.pipeline(a=""))

    with pytest.raises(CommitConflict, match="is published"):
        discard(rig.client, ended.run)


def test_a_cancelled_run_ends_its_work_and_drops_its_branches(rig: PipelineRig) -> None:
    """A run sees its cancellation at a heartbeat; running steps are halted, and no branch remains."""

    def cancelled(step: StepDeclaration, context: StepContext) -> None:
        if step.table[-1] == "b":
            rig.client.runs.cancel(context.run)
            assert rig.engine.halted.wait(300)

    rig.engine.after = cancelled
    ended = rig.run(rig.pipeline(a="", b="a"))

    assert (ended.state, ended.why, ended.exit_code) == ("cancelled", EndReason.CANCELLED, 12)
    assert not rig.client.tables.exists(rig.table("a"))
    assert rig.client.runs.load(ended.run).state == "cancelled"


def test_interrupt_cancels_the_run(rig: PipelineRig) -> None:
    """An interrupt in this process cancels the run, with a message."""

    def interrupted(step: StepDeclaration, context: StepContext) -> None:
        rig.stop.request(EndReason.INTERRUPTED, "interrupted by the keyboard")

    rig.engine.after = interrupted
    ended = rig.run(rig.pipeline(a="", b="a"))

    assert (ended.state, ended.exit_code) == ("cancelled", 130)
    assert ended.message.startswith("interrupted by the keyboard; its branches are dropped")
    assert rig.client.runs.load(ended.run).state == "cancelled"


def test_second_concurrent_run_of_pipeline_is_refused(rig: PipelineRig) -> None:
    """The second run is refused with the id and user of the first and advice, and writes nothing."""
    second: list[RunResult] = []
    events: list[RunEvent] = []

    def meanwhile(step: StepDeclaration, context: StepContext) -> None:
        other = rig.renewed()
        second.append(other.run(rig.pipeline(a="")))
        assert other.engine.carried == []
        events.extend(other.events)

    rig.engine.before = meanwhile
    first = rig.run(rig.pipeline(a=""))

    assert first.state == "published", first.message
    assert (second[0].state, second[0].why, second[0].exit_code) == ("refused", EndReason.BUSY, 5)
    assert first.run in second[0].message
    assert [(event.state, event.message) for event in events] == [("refused", second[0].message)]
    assert line_of(events[0]) == f"run refused: {second[0].message}"


def test_table_of_another_pipeline_is_refused_before_writing(rig: PipelineRig) -> None:
    """A run or resume that uses a table of another pipeline is refused before anything is registered or created, even
    if that table does not exist.
    """
    rig.engine.before = failing("b")
    failed = rig.run(rig.pipeline(a="", b="a"))
    other = f"other_{rig.space}"
    rig.client.pipelines.put(other, {"steps": [{"table": list(rig.table("c"))}, {"table": list(rig.table("b"))}]})
    again = rig.renewed()

    with pytest.raises(InvalidPipeline, match=f"{rig.space}.b is also a table of pipeline '{other}'"):
        resumed(again, failed, a="", b="a")
    with pytest.raises(InvalidPipeline, match=f"{rig.space}.c is also a table of pipeline '{other}'"):
        again.run(replace(again.pipeline(c=""), name=f"new_{rig.space}"))

    assert again.engine.carried == []
    assert rig.client.runs.load(failed.run).attempt == 1
    assert f"new_{rig.space}" not in {each.name for each in rig.client.pipelines.list()}


def test_catalog_without_tables_is_refused_before_writing(rig: PipelineRig) -> None:
    """A run into a catalog that has neither Iceberg nor Lance tables is refused before anything is written."""
    rig.client.catalogs.create(f"f{rig.space}", type="fileset", provider="fileset")
    step = StepDeclaration(table=(f"f{rig.space}", rig.space, "a"), body=Sql(text=""))
    pipeline = replace(rig.pipeline(), catalog=f"f{rig.space}", steps=(step,))

    with pytest.raises(
        InvalidPipeline, match="has provider fileset, and pipelines write only Iceberg and Lance tables"
    ):
        rig.run(pipeline)

    assert rig.engine.carried == []
    assert pipeline.name not in {each.name for each in rig.client.pipelines.list()}


def test_second_run_can_wait_for_the_first(rig: PipelineRig) -> None:
    """The second run begins after the first has ended, and reads what the first published."""
    started, ends = threading.Event(), list[RunResult]()

    def meanwhile(step: StepDeclaration, context: StepContext) -> None:
        if not started.is_set():
            started.set()
            other = rig.renewed()
            thread = threading.Thread(
                target=lambda: ends.append(other.run(rig.pipeline(a="", b="a"), wait_s=60)), name="second"
            )
            thread.start()
            threads.append(thread)

    threads: list[threading.Thread] = []
    rig.engine.before = meanwhile
    first = rig.run(rig.pipeline(a="", b="a"))
    threads[0].join(60)

    assert first.state == "published", first.message
    assert ends[0].state == "published", ends[0].message


def test_superseded_process_stops_and_publishes_nothing(rig: PipelineRig) -> None:
    """If a run's lease has expired and another process resumed it, the first process learns it at its next request and
    stops, and the other one publishes.
    """
    second: list[RunResult] = []
    sound = rig.heartbeat_client

    def overtaken(step: StepDeclaration, context: StepContext) -> None:
        while rig.client.runs.load(context.run).state != "lost":
            threading.Event().wait(0.1)
        second.append(resumed(replace(rig.renewed(), heartbeat_client=sound), run_of(context), a=""))

    rig.engine.before = overtaken
    with Client("http://127.0.0.1:1") as silent:
        rig.heartbeat_client = silent  # its heartbeats never arrive
        ended = rig.run(rig.pipeline(a=""))

    assert second[0].state == "published", second[0].message
    assert (ended.state, ended.why, ended.exit_code) == ("lost", EndReason.SUPERSEDED, 13)
    assert rig.client.runs.load(ended.run).attempt == 2
    assert rig.main("a") is not None


def run_of(context: StepContext) -> RunResult:
    """Return the run of a step, as its caller knows it."""
    return RunResult(run=context.run, pipeline="", attempt=context.attempt, state="", why=EndReason.DONE, message="")
