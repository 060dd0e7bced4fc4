# SPDX-License-Identifier: Apache-2.0
"""Runs in environments: they write tables of their own, read production's where there are none, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from limnos.client import Client
from limnos.client.errors import ClientError
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import (
    EnvironmentRule,
    Expectation,
    ExpectationAction,
    Pipeline,
    RuleKind,
    Sql,
    StepDeclaration,
)
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.environments import in_environment
from limnos.pipeline.failures import StepFailed
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.run.dry_run import intents
from limnos.pipeline.run.held_runs import discard, publish_held
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.refs import heads_of
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.pipeline.run.resume import resume
from limnos.pipeline.run.start import start
from tests.integration.live import LiveServer
from tests.pipeline.run.conftest import SCHEMA, PipelineRig

pytestmark = pytest.mark.integration


def _with_rules(pipeline: Pipeline, *rules: EnvironmentRule) -> Pipeline:
    return replace(pipeline, environments=rules or (EnvironmentRule(name="dev", prefix="dev_"),))


def _dev(rig: PipelineRig, pipeline: Pipeline, *rules: EnvironmentRule, **options: object) -> RunResult:
    return rig.run(in_environment(_with_rules(pipeline, *rules), "dev"), **options)


def _own(rig: PipelineRig, name: str) -> Parts:
    return ("main", f"dev_{rig.space}", name)


def _main(rig: PipelineRig, table: Parts) -> int | None:
    heads = heads_of(rig.client, table)
    return None if heads is None else heads.main


def _create(rig: PipelineRig, name: str) -> None:
    """Create an environment's table by another way than a run."""
    create = {"do": "create-table", "path": list(_own(rig, name)[1:]), "schema": SCHEMA}
    rig.client.transactions.run("main", [create])


def _carried(rig: PipelineRig) -> list[str]:
    names = sorted(name.rpartition(".")[2] for name, _ in rig.engine.carried)
    rig.engine.carried.clear()
    return names


def _with_text(pipeline: Pipeline, name: str, text: str) -> Pipeline:
    steps = tuple(replace(step, body=Sql(text=text)) if step.table[-1] == name else step for step in pipeline.steps)
    return replace(pipeline, steps=steps)


def test_a_run_writes_and_reads_its_own_tables_alone(rig: PipelineRig) -> None:
    """A run in an environment publishes the environment's tables, reads them, and leaves production as it was."""
    pipeline = rig.pipeline(a="", b="a")
    rig.run(pipeline)
    before = {name: (rig.main(name), rig.refs(name)) for name in ("a", "b")}

    ended = _dev(rig, pipeline)

    assert (ended.state, ended.pipeline) == ("published", f"{rig.space}.dev"), ended.message
    assert {name: (rig.main(name), rig.refs(name)) for name in ("a", "b")} == before
    assert rig.engine.read[f"{rig.space}.b"] == {_own(rig, "a"): _main(rig, _own(rig, "a"))}
    assert rig.client.runs.load(ended.run).steps[1].name == f"{rig.space}.b"


def test_steps_left_out_are_read_from_production_until_the_environment_has_them(rig: PipelineRig) -> None:
    """A selected step reads production's table, with its snapshot, where the environment has none, and its own after
    the environment has published one.
    """
    pipeline = rig.pipeline(a="", b="a")
    rig.run(pipeline)

    first = _dev(rig, pipeline, select=(f"{rig.space}.b",))
    read_first = rig.engine.read[f"{rig.space}.b"]
    _dev(rig, pipeline, select=(f"{rig.space}.a",))
    _dev(rig, pipeline, select=(f"{rig.space}.b",))

    assert first.state == "published", first.message
    assert read_first == {rig.table("a"): rig.main("a")}
    assert rig.engine.read[f"{rig.space}.b"] == {_own(rig, "a"): _main(rig, _own(rig, "a"))}
    assert heads_of(rig.client, _own(rig, "a")) is not None


def test_a_held_table_counts_as_nothing(rig: PipelineRig) -> None:
    """A table that only a held run has written is empty on `main`, so production's is read."""
    pipeline = rig.pipeline(a="", b="a")
    rig.run(pipeline)
    held_run = _dev(rig, pipeline, select=(f"{rig.space}.a",), hold=True)

    dry = intents(
        in_environment(_with_rules(pipeline), "dev"),
        rig.means(),
        parameters={},
        options=RunOptions(select=(f"{rig.space}.b",)),
    )

    assert held_run.state == "held"
    assert [one.reads for one in dry.steps] == [(f"{'.'.join(rig.table('a'))} at {rig.main('a')}",)]
    assert [one.writes for one in dry.steps] == [f"{'.'.join(_own(rig, 'b'))} (replace)"]


def test_dry_run_without_steps_has_its_reason(rig: PipelineRig) -> None:
    """A dry run of a selection by state, when nothing has changed, has the result of that run and no steps."""
    pipeline = rig.pipeline(a="")
    rig.run(pipeline)

    dry = intents(pipeline, rig.means(), parameters={}, options=RunOptions(select=("state:modified",)))

    assert dry.steps == ()
    assert dry.ended is not None
    assert (dry.ended.state, dry.ended.message) == (
        "unchanged",
        "no step is selected: nothing has changed since it was published, so nothing was run",
    )


def test_a_resumed_run_reads_what_it_read_before(rig: PipelineRig) -> None:
    """A run that read production's table does so when it is resumed, from the file's declaration, although the
    environment has a table by then.
    """
    pipeline = _with_rules(rig.pipeline(a="", b="a", c="b"))
    rig.run(pipeline)

    def fail(step: StepDeclaration, context: StepContext) -> None:
        if step.table[-1] == "c":
            raise StepFailed("a slip")

    rig.engine.before = fail
    failed = _dev(rig, pipeline, select=(f"{rig.space}.b+",))
    again = rig.renewed()
    _create(rig, "a")

    ended = resume(pipeline, again.means(), run_id=failed.run, directory=Path(), options=RunOptions(lease_s=2))

    assert failed.state == "failed"
    assert ended.state == "published", ended.message
    assert [name for name, _ in again.engine.carried] == [f"{rig.space}.c"]
    assert rig.client.runs.load(failed.run).options["environment"] == {
        "name": "dev",
        "published": [list(rig.table("a"))],
    }


def test_held_runs_are_published_and_discarded(rig: PipelineRig) -> None:
    """`publish` and `discard` of a held run in an environment change its tables alone."""
    pipeline = rig.pipeline(a="")
    rig.run(pipeline)
    before = rig.main("a")
    held_run = _dev(rig, pipeline, hold=True)
    ended = publish_held(rig.client, held_run.run)
    other = _dev(rig, pipeline, hold=True)
    discard(rig.client, other.run)

    heads = heads_of(rig.client, _own(rig, "a"))
    assert ended.state == "published"
    assert heads is not None
    assert set(heads.refs) == {"main"}
    assert rig.main("a") == before


def test_changed_steps_are_those_that_differ_from_production(rig: PipelineRig) -> None:
    """`state:modified` in an environment compares with production what the environment never published, and then with
    the environment.
    """
    pipeline = rig.pipeline(a="", b="a", c="b")
    rig.run(pipeline)
    _carried(rig)
    changed = _with_text(pipeline, "b", f"main.{rig.space}.a main.{rig.space}.a")

    unchanged = _dev(rig, pipeline, select=("state:modified+",))
    nothing = _carried(rig)
    _dev(rig, changed, select=("state:modified+",))
    after_change = _carried(rig)
    again = _dev(rig, changed, select=("state:modified+",))

    assert (unchanged.state, nothing) == ("unchanged", [])
    assert after_change == ["b", "c"]
    assert (again.state, _carried(rig)) == ("unchanged", [])


def test_lineage_names_the_tables_that_were_read_and_written(rig: PipelineRig) -> None:
    """The lineage of an environment's table is its own; production's table has no edge to it."""
    pipeline = rig.pipeline(a="", b="a")
    rig.run(pipeline)

    _dev(rig, pipeline, select=(f"{rig.space}.b",))

    own = rig.client.lineage.up(_own(rig, "b"))
    production = rig.client.lineage.down(rig.table("b"))
    assert {node.path for node in own.nodes} == {_own(rig, "b"), rig.table("a")}
    assert {node.path for node in production.nodes} == {rig.table("b")}


def test_a_table_that_no_run_of_the_environment_created_is_not_written(rig: PipelineRig) -> None:
    """An existing table with an environment's name, of whoever, is refused by run and dry run, and left as it is."""
    pipeline = rig.pipeline(a="")
    rig.client.namespaces.create(_own(rig, "a")[:-1])
    _create(rig, "a")

    for attempt in (
        lambda: _dev(rig, pipeline),
        lambda: intents(in_environment(_with_rules(pipeline), "dev"), rig.means(), parameters={}, options=RunOptions()),
    ):
        with pytest.raises(InvalidPipeline, match=r"no run of environment dev of .* created it"):
            attempt()

    assert rig.engine.carried == []
    assert _main(rig, _own(rig, "a")) is None


def test_a_side_table_of_others_is_not_written(rig: PipelineRig) -> None:
    """A table with the name of an environment's quarantine is refused, too."""
    rule = Expectation(name="r", kind=RuleKind.ROW, condition="x > 0", action=ExpectationAction.QUARANTINE)
    pipeline = rig.pipeline(a="")
    pipeline = replace(pipeline, steps=(replace(pipeline.steps[0], expectations=(rule,)),))
    rig.client.namespaces.create(_own(rig, "a")[:-1])
    _create(rig, "a__quarantine")

    with pytest.raises(InvalidPipeline, match="a__quarantine exists"):
        _dev(rig, pipeline)


def test_a_table_that_another_pipeline_declares_is_refused(rig: PipelineRig) -> None:
    """A rule that leads to a table of another pipeline is refused, although that table does not exist yet."""
    other = replace(
        rig.pipeline(),
        name=f"{rig.space}-other",
        steps=(StepDeclaration(table=_own(rig, "a"), body=Sql(text="")),),
    )
    rig.client.pipelines.put(other.name, {"steps": [{"table": list(_own(rig, "a"))}]})

    with pytest.raises(InvalidPipeline, match=f"also a table of pipeline '{other.name}'"):
        _dev(rig, rig.pipeline(a=""))


def test_former_tables_of_production_are_refused(rig: PipelineRig) -> None:
    """A table that production's registered version declares is refused, although the file no longer has its step."""
    former = replace(
        rig.pipeline(b=""), steps=(StepDeclaration(table=_own(rig, "a"), body=Sql(text="")),), name=rig.space
    )
    rig.client.namespaces.create(_own(rig, "a")[:-1])
    rig.run(former)

    with pytest.raises(InvalidPipeline, match=f"also a table of pipeline '{rig.space}'"):
        _dev(rig, rig.pipeline(a=""))


def test_the_rights_are_those_of_the_user(rig: PipelineRig, server: LiveServer) -> None:
    """A user who may read production, and who has no right in the environment's catalog, starts nothing there."""
    other = f"private{rig.space}"
    rig.client.catalogs.create(other)
    pipeline = _with_rules(rig.pipeline(a=""), EnvironmentRule(name="dev", catalog=other))
    rig.client.users.add(f"u{rig.space}")
    token = rig.client.tokens.create(user=f"u{rig.space}").token

    with Client(server.uri, token=token) as stranger:
        means = replace(rig.means(), client=stranger, heartbeat_client=stranger)
        try:
            ended = start(in_environment(pipeline, "dev"), means, directory=Path(), options=RunOptions(lease_s=2))
            state, why = ended.state, ended.why
        except ClientError:
            state, why = "refused", EndReason.DENIED

    assert (state, why) == ("refused", EndReason.DENIED)
    assert rig.engine.carried == []
    assert heads_of(rig.client, (other, rig.space, "a")) is None
