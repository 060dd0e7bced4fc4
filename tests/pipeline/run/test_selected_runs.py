# SPDX-License-Identifier: Apache-2.0
"""Runs of selected steps: what is left out is read as published, and changed steps are found by the published run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import Pipeline, Sql, StepDeclaration
from limnos.pipeline.failures import StepFailed
from limnos.pipeline.run.held_runs import discard
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.resume import resume
from tests.pipeline.run.conftest import PipelineRig

pytestmark = pytest.mark.integration


def _carried(rig: PipelineRig) -> list[str]:
    names = sorted(name.rpartition(".")[2] for name, _ in rig.engine.carried)
    rig.engine.carried.clear()
    return names


def _with_text(pipeline: Pipeline, name: str, text: str) -> Pipeline:
    steps = tuple(replace(step, body=Sql(text=text)) if step.table[-1] == name else step for step in pipeline.steps)
    return replace(pipeline, steps=steps)


def test_steps_that_are_left_out_are_read_as_published(rig: PipelineRig) -> None:
    """A run of one selected step reads the published snapshot of the step that is left out."""
    pipeline = rig.pipeline(a="", b="a")
    rig.run(pipeline)
    published = rig.main("a")
    _carried(rig)

    ended = rig.run(pipeline, select=(f"{rig.space}.b",))

    assert ended.state == "published"
    assert _carried(rig) == ["b"]
    assert rig.engine.read[f"{rig.space}.b"] == {rig.table("a"): published}


def test_changed_steps_and_their_dependents_run(rig: PipelineRig) -> None:
    """After a change of one step `state:modified+` runs it and what reads it; after that run nothing is changed."""
    pipeline = rig.pipeline(a="", b="a", c="b", d="a")
    first = rig.run(pipeline, select=("state:modified",))
    everything = _carried(rig)
    changed = _with_text(pipeline, "b", f"main.{rig.space}.a main.{rig.space}.a")
    rig.run(changed, select=("state:modified+",))
    after_change = _carried(rig)
    again = rig.run(changed, select=("state:modified+",))

    assert first.state == "published"
    assert everything == ["a", "b", "c", "d"]
    assert after_change == ["b", "c"]
    assert (again.state, again.exit_code, _carried(rig)) == ("unchanged", 0, [])
    assert rig.events[-1].state == "unchanged"


def test_changed_columns_of_an_input_table_change_the_step(rig: PipelineRig) -> None:
    """A step whose input table has other columns than at its last published run counts as changed; others do not."""
    outside = rig.pipeline(x="")
    rig.run(outside)
    reader = replace(rig.pipeline(a="x", b=""), name=f"{rig.space}-reader")
    rig.run(reader)
    _carried(rig)
    columns = [
        {"id": 1, "name": "x", "required": False, "type": "long"},
        {"id": 2, "name": "y", "required": False, "type": "string"},
    ]
    updates = [
        {"action": "add-schema", "schema": {"type": "struct", "schema-id": 1, "fields": columns}, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    commit = {"do": "commit-table", "path": [rig.space, "x"], "requirements": [], "updates": updates}
    rig.client.transactions.run("main", [commit])

    rig.run(reader, select=("state:modified",))

    assert _carried(rig) == ["a"]


def test_a_run_that_was_resumed_with_another_text_published_that_text(rig: PipelineRig) -> None:
    """After a run that failed and was resumed with a changed step, that step is unchanged, and is one with its former
    text.
    """
    pipeline = rig.pipeline(a="", b="a")

    def fail(step: StepDeclaration, context: StepContext) -> None:
        if step.table[-1] == "b":
            raise StepFailed("a slip")

    rig.engine.before = fail
    failed = rig.run(pipeline)
    mended, again = _with_text(pipeline, "b", f"main.{rig.space}.a main.{rig.space}.a"), rig.renewed()
    ended = resume(mended, again.means(), run_id=failed.run, directory=Path(), options=RunOptions(lease_s=2))
    _carried(again)

    same = again.run(mended, select=("state:modified",))
    after_same = _carried(again)
    again.run(pipeline, select=("state:modified",))

    assert (failed.state, ended.state, same.state) == ("failed", "published", "unchanged")
    assert (after_same, _carried(again)) == ([], ["b"])


def test_failed_runs_publish_no_state(rig: PipelineRig) -> None:
    """A step whose only run was held is still new."""
    pipeline = rig.pipeline(a="")
    held_run = rig.run(pipeline, hold=True)
    discard(rig.client, held_run.run)
    _carried(rig)

    rig.run(pipeline, select=("state:new",))

    assert _carried(rig) == ["a"]


def test_unknown_tag_starts_no_run(rig: PipelineRig) -> None:
    """A selection with an unknown tag is refused before a run begins."""
    with pytest.raises(BadRequest, match="there are no tags"):
        rig.run(rig.pipeline(a=""), select=("tag:nightly",))

    assert rig.client.runs.list() == () or all(run.pipeline != rig.space for run in rig.client.runs.list())
