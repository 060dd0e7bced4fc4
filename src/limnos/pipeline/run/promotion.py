# SPDX-License-Identifier: Apache-2.0
"""Choice of what a promotion publishes: the steps that an environment has published and production has not since.

For each it finds the environment's table in the state that a published run left, so that the engine can copy its rows
where the inputs are the same. Must not know Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from limnos.client import Client
from limnos.client.activity.runs import Run
from limnos.model.errors import BadRequest
from limnos.model.restrictions import CLOSED_TO
from limnos.names import display
from limnos.pipeline.declaration import Pipeline, StepDeclaration, WriteMode
from limnos.pipeline.environments import PRODUCTION, in_environment
from limnos.pipeline.modified_steps import published_runs, state_difference, step_states
from limnos.pipeline.outcomes import BuiltStep
from limnos.pipeline.run import record_json
from limnos.pipeline.run.refs import heads_of
from limnos.pipeline.side_tables import selects_from, tables_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """The published steps of an environment that production can copy."""

    names: tuple[str, ...]
    """The steps whose newest published run in the environment is newer than that of production, in the file's order."""
    built: Mapping[str, BuiltStep]
    """Steps whose rows may be copied: the engine compares their inputs when they run."""
    computed: Mapping[str, str]
    """The other steps, with the reasons."""


def promotion_from(client: Client, pipeline: Pipeline, *, environment: str) -> Promotion:
    """Return the published steps of an environment that production can copy. Reads only.

    Raises BadRequest for an environment that the file does not have, and one without a published run that the caller
    may see.
    """
    if environment == PRODUCTION or pipeline.environment is not None:
        raise BadRequest(f"promote takes the tables of an environment to production: {environment} is not one")
    source = in_environment(pipeline, environment)
    runs = dict(published_runs(client, source))
    if not runs:
        raise BadRequest(
            f"no published run of {source.name} is visible to you: 'limnos pipeline run FILE --env {environment}'"
            " makes one"
        )
    former = dict(published_runs(client, pipeline))
    states = step_states(pipeline)
    built_steps: dict[str, BuiltStep] = {}
    computed: dict[str, str] = {}
    for step in source.steps:
        run = runs.get(step.name)
        if run is None:
            computed[step.name] = f"no published run of {source.name} has it"
            continue
        reason = state_difference(run, name=step.name, state=states[step.name]) or _mode_reason(source, step)
        candidate = reason or _built_by(client, step, run=run)
        if isinstance(candidate, BuiltStep):
            built_steps[step.name] = candidate
        else:
            computed[step.name] = candidate
    names = tuple(
        step.name for step in pipeline.steps if step.name in runs and _is_newer(runs[step.name], former.get(step.name))
    )
    return Promotion(names=names, built=built_steps, computed=computed)


def _is_newer(run: Run, former: Run | None) -> bool:
    return former is None or (run.ended_at or "") > (former.ended_at or "")


def _mode_reason(pipeline: Pipeline, step: StepDeclaration) -> str | None:
    """Return why the rows of a step are never copied; None if they may be."""
    if step.write.mode is WriteMode.HISTORY and step.write.as_of is None:
        return "its rows have the time of the run that made them"
    sources = [source.name for source in pipeline.sources if selects_from(step, source.name)]
    if len(tables_of(pipeline, step, sources=sources)) > 1:
        return "it also writes rows that it puts aside"
    return None


def _built_by(client: Client, step: StepDeclaration, *, run: Run) -> BuiltStep | str:
    """Return the environment's table as the run left it, or why it is not in that state."""
    record = next((each for each in run.steps if each.name == step.name), None)
    name = display.render(step.table)
    if record is None or not record.outputs:
        return f"run {run.id} has no record of {name}"
    branch = record_json.branch_of(record.outputs[0])
    heads = heads_of(client, step.table)
    if heads is None:
        return f"{name} is gone or not visible"
    if CLOSED_TO in str(heads.metadata.get("location")):
        return f"a read restriction of {name} applies to you, so that you would copy other rows"
    if heads.is_lance or branch.head is None:
        return f"{name} is not an Iceberg table with rows"
    if (branch.table, heads.uuid, heads.main) != (step.table, branch.uuid, branch.head):
        return f"{name} was changed after run {run.id}"
    return BuiltStep(table=step.table, snapshot=branch.head, run=run.id)
