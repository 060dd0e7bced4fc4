# SPDX-License-Identifier: Apache-2.0
"""Promotions: what of an environment a run of production may copy, and which steps it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from limnos.client import Client
from limnos.model.errors import BadRequest
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import (
    EnvironmentRule,
    Expectation,
    ExpectationAction,
    Pipeline,
    RuleKind,
    Sql,
    StepDeclaration,
    WriteDeclaration,
    WriteMode,
)
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.environments import in_environment
from limnos.pipeline.failures import StepFailed
from limnos.pipeline.outcomes import BuiltStep
from limnos.pipeline.run.dry_run import intents
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.promotion import _mode_reason, promotion_from
from limnos.pipeline.run.refs import heads_of
from limnos.pipeline.run.resume import resume
from limnos.pipeline.source_declarations import DeclaredSource, Files, MalformedRowPolicy
from tests.integration.live import LiveServer
from tests.pipeline.run.conftest import PipelineRig, commit

pytestmark = pytest.mark.integration


def _shop(rig: PipelineRig, **reads: str) -> Pipeline:
    return replace(rig.pipeline(**reads), environments=(EnvironmentRule(name="dev", prefix="dev_"),))


def _own(rig: PipelineRig, name: str) -> Parts:
    return ("main", f"dev_{rig.space}", name)


def _with_step(pipeline: Pipeline, name: str, **fields: object) -> Pipeline:
    steps = tuple(replace(step, **fields) if step.table[-1] == name else step for step in pipeline.steps)
    return replace(pipeline, steps=steps)


def _messages(rig: PipelineRig) -> dict[str, str]:
    """Return the last message of each step that is done, by the last part of its name."""
    return {
        str(event.step).rpartition(".")[2]: str(event.message)
        for event in rig.events
        if event.step is not None and event.state == "done"
    }


def test_promotion_copies_what_the_environment_published_since(rig: PipelineRig) -> None:
    """The steps whose newest published run is the environment's are copied from its tables, at the snapshots that this
    run left, and the others are not run. A second promotion has nothing to do.
    """
    pipeline = _shop(rig, a="", b="a", c="b")
    rig.run(pipeline)
    built = rig.run(in_environment(pipeline, "dev"), select=(f"{rig.space}.b+",))
    rig.engine.carried.clear()

    ended = rig.run(pipeline, promotes="dev")
    again = rig.run(pipeline, promotes="dev")

    assert (ended.state, ended.pipeline) == ("published", rig.space), ended.message
    assert [name.rpartition(".")[2] for name, _ in rig.engine.carried] == ["b", "c"]
    assert _messages(rig)["b"] == f"copied from main.dev_{rig.space}.b, as run {built.run} published it"
    heads = heads_of(rig.client, _own(rig, "b"))
    assert heads is not None
    assert heads.main is not None
    assert rig.engine.copied[f"{rig.space}.c"] == {
        rig.table("b"): BuiltStep(table=_own(rig, "b"), snapshot=heads.main, run=built.run)
    }
    assert (again.state, again.exit_code) == ("unchanged", 0)
    assert "published nothing since" in again.message


def test_server_keeps_the_snapshots_that_a_promotion_copies(rig: PipelineRig) -> None:
    """The record of the run has the environment's snapshots among its pins, which no commit removes meanwhile."""
    pipeline = _shop(rig, a="")
    rig.run(in_environment(pipeline, "dev"))
    heads = heads_of(rig.client, _own(rig, "a"))
    assert heads is not None

    ended = rig.run(pipeline, promotes="dev", hold=True)

    options = rig.client.runs.load(ended.run).options
    assert {"table": list(_own(rig, "a")), "snapshot": heads.main, "fingerprint": None} in options["pins"]
    with pytest.raises(Exception, match="needs it"):
        rig.client.transactions.run(
            "main",
            [
                {
                    "do": "commit-table",
                    "path": list(_own(rig, "a")[1:]),
                    "requirements": [],
                    "updates": [{"action": "remove-snapshots", "snapshot-ids": [heads.main]}],
                }
            ],
        )


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"body": Sql(text="x")}, "its text changed"),
        ({"write": WriteDeclaration(mode=WriteMode.APPEND)}, "its text changed"),
    ],
)
def test_step_that_changed_since_is_computed(rig: PipelineRig, change: dict[str, object], reason: str) -> None:
    """A step whose declaration is another one than the environment's run had is computed, and the reason is said."""
    pipeline = _shop(rig, a="")
    rig.run(in_environment(pipeline, "dev"))

    promotion = promotion_from(rig.client, _with_step(pipeline, "a", **change), environment="dev")

    assert promotion.built == {}
    assert reason in promotion.computed[f"{rig.space}.a"]


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"write": WriteDeclaration(mode=WriteMode.HISTORY, keys=("x",))}, "the time of the run"),
        (
            {
                "expectations": (
                    Expectation(name="r", kind=RuleKind.ROW, condition="x > 0", action=ExpectationAction.QUARANTINE),
                )
            },
            "rows that it puts aside",
        ),
    ],
)
def test_rows_that_a_copy_would_not_have_are_computed(rig: PipelineRig, fields: dict[str, object], reason: str) -> None:
    """Steps whose rows have the time of their run, and those with side tables, are never copied."""
    pipeline = _with_step(_shop(rig, a=""), "a", **fields)
    rig.run(in_environment(pipeline, "dev"))

    promotion = promotion_from(rig.client, pipeline, environment="dev")

    assert promotion.names == (f"{rig.space}.a",)
    assert reason in promotion.computed[f"{rig.space}.a"]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("SELECT count(*) AS rides FROM raw.rides", None),
        ("SELECT id FROM rides", "it also writes rows that it puts aside"),
    ],
)
def test_column_named_like_a_source_does_not_prevent_a_copy(text: str, reason: str | None) -> None:
    """A step may be copied whose query has a column with the name of a source that keeps malformed rows, and not one
    that reads this source.
    """
    files = Files(path="x.csv", format="csv", malformed=MalformedRowPolicy.KEEP)
    step = StepDeclaration(table=("main", "marts", "days"), body=Sql(text=text))
    source = DeclaredSource(name="rides", kind=files)

    assert _mode_reason(Pipeline(name="p", catalog="main", sources=(source,), steps=(step,)), step) == reason


def test_table_that_another_writer_changed_is_not_copied(rig: PipelineRig) -> None:
    """An environment's table that has another snapshot than its run published, or is gone, is not copied."""
    pipeline = _shop(rig, a="", b="")
    ended = rig.run(in_environment(pipeline, "dev"))
    heads = heads_of(rig.client, _own(rig, "a"))
    assert heads is not None
    commit(rig.client, _own(rig, "a"), ref="main", parent=heads.main)
    rig.client.tables.drop(_own(rig, "b"))

    promotion = promotion_from(rig.client, pipeline, environment="dev")

    assert promotion.built == {}
    assert promotion.computed == {
        f"{rig.space}.a": f"main.dev_{rig.space}.a was changed after run {ended.run}",
        f"{rig.space}.b": f"main.dev_{rig.space}.b is gone or not visible",
    }


def test_dry_run_names_the_tables_that_it_would_copy(rig: PipelineRig) -> None:
    """A dry run names the environment's table, or the reason, and changes nothing."""
    pipeline = _shop(rig, a="", b="a")
    rig.run(in_environment(pipeline, "dev"))
    changed = _with_step(pipeline, "b", body=Sql(text=f"main.{rig.space}.a main.{rig.space}.a"))

    dry = intents(changed, rig.means(), parameters={}, options=RunOptions(promotes="dev")).steps

    assert [one.writes.partition("; ")[2] for one in dry] == [
        f"copied from main.dev_{rig.space}.a if its inputs are the same)",
        "computed: its text changed)",
    ]
    assert heads_of(rig.client, rig.table("a")) is None


def test_dry_run_names_a_table_that_must_be_empty(rig: PipelineRig) -> None:
    """Rows of a step that adds to its table are copied only into an empty table, which the dry run says."""
    pipeline = _with_step(_shop(rig, a=""), "a", write=WriteDeclaration(mode=WriteMode.APPEND))
    rig.run(in_environment(pipeline, "dev"))

    (dry,) = intents(pipeline, rig.means(), parameters={}, options=RunOptions(promotes="dev")).steps

    assert dry.writes.endswith("if its inputs are the same and production's table is empty)")


def test_resumed_promotion_copies_what_it_would_have_copied(rig: PipelineRig) -> None:
    """After a failure, `resume` goes on with the same tables of the environment."""
    pipeline = _shop(rig, a="", b="a")
    built = rig.run(in_environment(pipeline, "dev"))

    def fail(step: StepDeclaration, context: StepContext) -> None:
        if step.table[-1] == "b":
            raise StepFailed("a slip")

    rig.engine.before = fail
    failed = rig.run(pipeline, promotes="dev")
    again = rig.renewed()
    ended = resume(pipeline, again.means(), run_id=failed.run, directory=Path(), options=RunOptions(lease_s=2))

    assert (failed.state, ended.state) == ("failed", "published"), ended.message
    assert _messages(again) == {"b": f"copied from main.dev_{rig.space}.b, as run {built.run} published it"}


@pytest.mark.parametrize(
    "environment, words",
    [("prod", "prod is not one"), ("stage", "no environment 'stage'"), ("dev", "no published run of")],
)
def test_promotion_of_nothing_is_refused(rig: PipelineRig, environment: str, words: str) -> None:
    """Production itself, an unknown environment, and one that has published nothing are refused before a run begins."""
    with pytest.raises(BadRequest, match=words):
        rig.run(_shop(rig, a=""), promotes=environment)

    assert rig.engine.carried == []


def test_restricted_reader_copies_nothing(rig: PipelineRig, server: LiveServer) -> None:
    """A caller to whom a restriction of the environment's table applies would copy masked rows: they are computed."""
    pipeline = _shop(rig, a="")
    rig.run(in_environment(pipeline, "dev"))
    user, role = f"u{rig.space}", f"r{rig.space}"
    rig.client.users.add(user)
    rig.client.roles.create(role)
    rig.client.roles.allow(role, ["use_catalog", "use_schema", "select_table"], on="main", kind="catalog")
    rig.client.owners.set(f"{rig.space}.dev", user, kind="job_template")
    rig.client.roles.grant_to_user(user, [role])
    with Client(server.uri, token=rig.client.tokens.create(user=user).token) as reader:
        free = promotion_from(reader, pipeline, environment="dev")
        rig.client.restrictions.set("r", _own(rig, "a"), kind="table", masks={"x": "replace-with-null"})
        restricted = promotion_from(reader, pipeline, environment="dev")

    assert list(free.built) == [f"{rig.space}.a"]
    assert restricted.built == {}
    assert "read restriction" in restricted.computed[f"{rig.space}.a"]


def test_runs_that_the_caller_may_not_see_are_not_promoted(rig: PipelineRig, server: LiveServer) -> None:
    """A user without a right on the environment's pipeline learns nothing of its runs, and copies nothing."""
    pipeline = _shop(rig, a="")
    rig.run(in_environment(pipeline, "dev"))
    rig.client.users.add(f"u{rig.space}")
    token = rig.client.tokens.create(user=f"u{rig.space}").token

    with Client(server.uri, token=token) as stranger, pytest.raises(BadRequest, match="visible to you"):
        promotion_from(stranger, pipeline, environment="dev")
