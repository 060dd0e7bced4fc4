# SPDX-License-Identifier: Apache-2.0
"""Changes by others while Spark runs a pipeline: revoked rights, dropped outputs, concurrent writers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.project import load
from limnos.pipeline.run.events import RunEvent
from limnos.pipeline.run.held_runs import publish_held
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.spark import session
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PIPELINE = """
pipeline: SPACE
catalog: main
steps:
  SPACE.a:
    sql: SELECT id FROM range(3)
    write: {mode: append}
  SPACE.b:
    sql: SELECT id * 10 AS id FROM SPACE.a
    write: {mode: append}
"""


@dataclass(kw_only=True)
class Meddler:
    """Runs an action once, at an event of the run: `when` is a step's name and `running`, or a state of the run."""

    when: str
    do: Callable[[], object]
    again: bool = False
    """Run the action each time, not once."""
    seen: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    done: bool = False

    def __call__(self, event: RunEvent) -> None:
        """Record an event, and run the action at its time."""
        label = f"{event.step.rpartition('.')[2]} {event.state}" if event.step else event.state
        self.seen.append(label)
        self.told += [event.message] if event.message else []
        if label == self.when and (self.again or not self.done):
            self.done = True
            self.do()


@dataclass
class Stage:
    """A pipeline of two tables that was run once, and all that is needed to run it again."""

    file: Path
    spark: SparkSession
    admin: Client

    @property
    def space(self) -> str:
        """The namespace of both tables."""
        return self.file.stem

    def table(self, name: str) -> str:
        """A table's path."""
        return f"main.{self.space}.{name}"

    def rows(self, name: str) -> list[int]:
        """The published rows."""
        return sorted(row[0] for row in self.spark.sql(f"SELECT id FROM {self.table(name)}").collect())

    def run(self, listener: Meddler, *, spark: SparkSession | None = None, tries: int = 3) -> RunResult:
        """Run it again, with an interfering action."""
        ended = load(self.file).run(spark or self.spark, listener=listener, options=RunOptions(tries=tries))
        assert listener.done, listener.seen
        return ended


@pytest.fixture
def stage(spark: SparkSession, admin: Client, tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    """The pipeline, run once by the administrator."""
    space = "m" + "".join(filter(str.isalnum, request.node.name)).lower()[-40:]
    admin.namespaces.create(f"main.{space}")
    file = tmp_path / f"{space}.yaml"
    file.write_text(PIPELINE.replace("SPACE", space))
    load(file).run(spark).require()
    return Stage(file, spark, admin)


@pytest.fixture
def ana(stage: Stage, server: LiveServer) -> SparkSession:
    """Spark as a user who has just the rights to run the pipeline, by a role of the same name."""
    name = f"ana_{stage.space}"
    stage.admin.users.add(name)
    stage.admin.roles.create(name)
    stage.admin.roles.grant_to_user(name, [name])
    allow = stage.admin.roles.allow
    allow(name, ["use_catalog"], on="main", kind="catalog")
    allow(name, ["use_schema", "select_table", "modify_table"], on=f"main.{stage.space}", kind="namespace")
    allow(name, ["run_job"], on="lake", kind="metalake")
    allow(name, ["use_job_template"], on=stage.space, kind="job_template")
    return session(server.uri, token=stage.admin.tokens.create(user=name).token)


@pytest.mark.parametrize(
    "right, when, state",
    [
        ("modify_table", "b running", "failed"),
        ("modify_table", "publishing", "held"),
    ],
)
def test_privilege_revoked_during_run_is_named(
    stage: Stage, ana: SparkSession, right: str, when: str, state: str
) -> None:
    """If a right is revoked during a run, nothing is published; the message names the right and the command that grants
    it, and after the grant a resume succeeds.
    """
    role, space = f"ana_{stage.space}", f"main.{stage.space}"
    ended = stage.run(
        Meddler(when=when, do=lambda: stage.admin.roles.withdraw(role, [right], on=space, kind="namespace")), spark=ana
    )
    before = stage.rows("a"), stage.rows("b")
    stage.admin.roles.allow(role, [right], on=space, kind="namespace")
    project = load(stage.file)
    with project._client(ana) as client:
        after = publish_held(client, ended.run) if state == "held" else project.resume(ana, run=ended.run)

    assert (ended.state, ended.why, ended.exit_code) == (state, EndReason.DENIED, 4), ended.message
    assert f"limnos grant {right} --on" in ended.message
    assert before == ([0, 1, 2], [0, 10, 20])
    assert after.state == "published", after.message
    assert stage.rows("a") == [0, 0, 1, 1, 2, 2]
    assert stage.rows("b") == [0, 0, 0, 10, 10, 10, 20, 20, 20]


def test_missing_privilege_stops_run_before_it_writes(stage: Stage, ana: SparkSession) -> None:
    """If a right is missing at the start, no step begins, no run is recorded, and the message has the command that
    grants it, even if earlier steps could run.
    """
    role, seen = f"ana_{stage.space}", list[str]()
    stage.admin.roles.withdraw(role, ["modify_table"], on=f"main.{stage.space}", kind="namespace")
    stage.admin.roles.allow(role, ["modify_table"], on=stage.table("a"), kind="table")

    ended = load(stage.file).run(ana, listener=lambda event: seen.append(event.state))

    assert (ended.state, ended.why, ended.exit_code) == ("refused", EndReason.DENIED, 4), ended.message
    assert ended.message.endswith(f"grant it with: 'limnos grant modify_table --on {stage.table('b')} --to ROLE'")
    assert seen == ["refused"]
    assert len(stage.admin.runs.list(pipeline=stage.space)) == 1
    assert (stage.rows("a"), stage.rows("b")) == ([0, 1, 2], [0, 10, 20])


def test_output_dropped_before_publication_fails_the_run(stage: Stage) -> None:
    """The run fails and names the dropped table; the other table is not published either."""
    ended = stage.run(Meddler(when="publishing", do=lambda: stage.spark.sql(f"DROP TABLE {stage.table('b')}")))

    assert (ended.state, ended.why, ended.exit_code) == ("failed", EndReason.MOVED, 5), ended.message
    assert f"{stage.table('b')} was dropped or renamed during the run" in ended.message
    assert stage.rows("a") == [0, 1, 2]
    assert not stage.admin.tables.exists(stage.table("b"))


def test_output_renamed_before_publication_is_not_published(stage: Stage) -> None:
    """A renamed output is published neither under the old name nor under the new one."""
    rename = f"ALTER TABLE {stage.table('b')} RENAME TO {stage.space}.c"
    ended = stage.run(Meddler(when="publishing", do=lambda: stage.spark.sql(rename)))

    assert (ended.state, ended.why, ended.exit_code) == ("failed", EndReason.MOVED, 5), ended.message
    assert f"{stage.table('b')} was dropped or renamed during the run" in ended.message
    assert (stage.rows("a"), stage.rows("c")) == ([0, 1, 2], [0, 10, 20])


def test_output_dropped_during_later_step_fails_the_run(stage: Stage) -> None:
    """The step that reads the dropped table fails, or the publish does; nothing is published."""
    ended = stage.run(Meddler(when="b running", do=lambda: stage.spark.sql(f"DROP TABLE {stage.table('a')}")))

    assert ended.state == "failed", ended.message
    assert stage.table("a") in ended.message.replace("`", "")
    assert stage.rows("b") == [0, 10, 20]


def test_table_changed_before_publication_reruns_its_step(stage: Stage) -> None:
    """The step of the changed table is run again on the other writer's rows, and everything is published."""
    rival = Meddler(when="publishing", do=lambda: stage.spark.sql(f"INSERT INTO {stage.table('b')} VALUES (7)"))
    ended = stage.run(rival)

    assert ended.state == "published", ended.message
    assert "moved" in rival.seen
    (message,) = [each for each in rival.told if "running again" in each]
    assert re.match(
        rf"{stage.table('b')} was written at \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC by spark \(append, snapshot \d+\);"
        rf" running again: {stage.space}.b$",
        message,
    ), message
    assert rival.seen.count("b running") == 2
    assert rival.seen.count("a running") == 1
    assert stage.rows("a") == [0, 0, 1, 1, 2, 2]
    assert 7 in stage.rows("b")


def test_persistent_other_writer_fails_the_run_and_is_named(stage: Stage) -> None:
    """After its attempts the run fails, names the writer and the time, and keeps its branches; another run is based on
    the other writer's rows.
    """
    rival = Meddler(
        when="publishing", do=lambda: stage.spark.sql(f"INSERT INTO {stage.table('b')} VALUES (7)"), again=True
    )

    lost = stage.run(rival, tries=1)
    rows = stage.rows("a"), stage.rows("b")
    branches = stage.admin.tables.load(stage.table("a")).metadata["refs"]
    again = load(stage.file).run(stage.spark)

    assert (lost.state, lost.why, lost.exit_code) == ("failed", EndReason.MOVED, 5), lost.message
    assert f"{stage.table('b')} was written at " in lost.message
    assert "by spark (append, snapshot " in lost.message
    assert f"'limnos pipeline resume {lost.run}' tries again" in lost.message
    assert rows == ([0, 1, 2], [0, 7, 7, 10, 20])
    assert len(branches) == 2  # type: ignore[arg-type]
    assert again.state == "published", again.message
    assert stage.rows("b") == [0, 0, 0, 7, 7, 10, 10, 10, 20, 20, 20]
