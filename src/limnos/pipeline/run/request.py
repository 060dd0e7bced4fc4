# SPDX-License-Identifier: Apache-2.0
"""The request for a run: its steps, parameters, reads and record, after all checks that need no run.

Must not write anything at the server, and must not know Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from limnos.client import Client
from limnos.names import display
from limnos.pipeline.declaration import LoopRows, Pipeline, StepDeclaration
from limnos.pipeline.declared_values import Parts, Scalar
from limnos.pipeline.environments import (
    actual_reads,
    environment_record,
    missing_tables,
    reading_production,
    require_own_outputs,
)
from limnos.pipeline.lance_outputs import lance_catalogs, require_lance_outputs
from limnos.pipeline.modified_steps import modified_steps, step_states
from limnos.pipeline.outcomes import BuiltStep, ReadPin
from limnos.pipeline.query_loops import encode_loops, with_loop_steps
from limnos.pipeline.rights import commands_text, grants_lacking_now
from limnos.pipeline.run import record_json
from limnos.pipeline.run.attempt import StepEngine, call_engine, needs_of
from limnos.pipeline.run.events import Listener, RunEvent, ignore_event
from limnos.pipeline.run.options import RunOptions, select_steps
from limnos.pipeline.run.outputs import RunOutputs
from limnos.pipeline.run.parameters import parameter_values
from limnos.pipeline.run.promotion import Promotion, promotion_from
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.stop import StopSignal
from limnos.pipeline.selection import ModifiedSteps
from limnos.pipeline.side_tables import tables_of
from limnos.pipeline.table_conflicts import require_own_tables

_UNCHANGED = "no step is selected: nothing has changed since it was published, so nothing was run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeans:
    """The resources of a run: two clients of the same server and caller, an engine, a stop signal, and a listener."""

    client: Client
    heartbeat_client: Client
    engine: StepEngine
    stop: StopSignal
    listener: Listener = ignore_event


def with_loop_rows(
    pipeline: Pipeline, means: RunMeans, *, parameters: Mapping[str, object], directory: Path, patience: RetryPolicy
) -> tuple[Pipeline, Mapping[str, LoopRows]]:
    """Return the pipeline with the steps of its loops over queries, and the rows that made them.

    Raises InvalidPipeline for rows that make no valid steps, BadRequest for a query that cannot be read.
    """
    if not pipeline.loops:
        return pipeline, {}
    values = parameter_values(pipeline, parameters)
    rows = {
        loop.name: call_engine(partial(means.engine.loop_rows, pipeline, loop, parameters=values), patience=patience)
        for loop in pipeline.loops
    }
    return with_made_steps(pipeline, means, rows=rows, directory=directory), rows


def with_made_steps(pipeline: Pipeline, means: RunMeans, *, rows: Mapping[str, LoopRows], directory: Path) -> Pipeline:
    """Return the pipeline with the steps that rows make, whose functions the engine has. Raises InvalidPipeline."""
    if not pipeline.loops:
        return pipeline
    complete = with_loop_steps(pipeline, rows, directory=directory)
    means.engine.ship(complete, directory=directory)
    return complete


def checked_request(
    pipeline: Pipeline,
    means: RunMeans,
    *,
    parameters: Mapping[str, object],
    options: RunOptions,
    file: str | None,
    patience: RetryPolicy,
) -> RunRequest | RunResult:
    """Return the request for a run, after all checks that need no run; or the result, if nothing is to be run or a
    privilege is missing. Nothing is written. Raises as `start` does.
    """
    values = parameter_values(pipeline, parameters)
    promotion, options = _promotion(pipeline, means, options=options, patience=patience)
    if promotion is not None and not options.select:
        return _nothing_selected(pipeline, means.listener, message=_nothing_new(options))
    reads = call_engine(lambda: means.engine.reads(pipeline), patience=patience)
    needs = needs_of(pipeline, reads)
    names = select_steps(pipeline, options, needs=needs, modified=_finder_of_modified(pipeline, means, reads=reads))
    if not names:
        return _nothing_selected(pipeline, means.listener)
    pipeline, reads = resolve_reads(pipeline, means, reads=reads, names=frozenset(names), patience=patience)
    providers = patience.call(lambda: require_own_tables(means.client, pipeline))
    require_lance_outputs(pipeline, providers, reads=reads)
    request = RunRequest(
        pipeline=pipeline,
        names=names,
        reads=reads,
        needs={name: needs[name] for name in names},
        values=values,
        options=options,
        file=file,
        run=str(uuid.uuid4()),
        lance_catalogs=lance_catalogs(providers),
        built={} if promotion is None else {name: promotion.built[name] for name in names if name in promotion.built},
        computed={} if promotion is None else promotion.computed,
    )
    if missing_grants := patience.call(lambda: grants_lacking_now(means.client, read=(), written=request.written)):
        message = f"nothing was started: a privilege is missing; grant it with: {commands_text(missing_grants)}"
        return refused_result(request, means, why=EndReason.DENIED, message=message)
    patience.call(lambda: require_own_outputs(means.client, pipeline, names=frozenset(names)))
    return request


def _promotion(
    pipeline: Pipeline, means: RunMeans, *, options: RunOptions, patience: RetryPolicy
) -> tuple[Promotion | None, RunOptions]:
    """Return what a promotion copies, and the options with its steps selected if they select none; None for other runs.

    Raises BadRequest as `promotion_from` does.
    """
    environment = options.promotes
    if environment is None:
        return None, options
    promotion = patience.call(lambda: promotion_from(means.client, pipeline, environment=environment))
    return promotion, options if options.select else replace(options, select=promotion.names)


def _nothing_new(options: RunOptions) -> str:
    return f"environment {options.promotes} has published nothing since production did, so nothing was run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPins:
    """The inputs of a run as they are when it starts: tables, and sources that are pinned then."""

    tables: dict[Parts, ReadPin]
    sources: dict[str, ReadPin]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The request for a run, without the state of the tables."""

    pipeline: Pipeline
    names: tuple[str, ...]
    reads: Mapping[str, frozenset[Parts]]
    needs: Mapping[str, frozenset[str]]
    values: Mapping[str, Scalar]
    options: RunOptions
    file: str | None
    run: str
    lance_catalogs: frozenset[str]
    built: Mapping[str, BuiltStep]
    computed: Mapping[str, str]
    loop_rows: Mapping[str, LoopRows] = field(default_factory=dict)
    """The rows that made the steps of loops over queries, by the loops' names."""

    @property
    def steps(self) -> tuple[StepDeclaration, ...]:
        """The steps to run, in the order of the declaration."""
        return tuple(step for step in self.pipeline.steps if step.name in self.names)

    @property
    def written(self) -> tuple[Parts, ...]:
        """Tables that the run certainly writes: tables of malformed rows depend on the query and are not included."""
        return tuple(table for step in self.steps for table in tables_of(self.pipeline, step, sources=()))

    @property
    def tables(self) -> tuple[Parts, ...]:
        """Tables that the run may write, including quarantine tables and tables of malformed rows."""
        return tuple(table for step in self.steps for table in tables_of(self.pipeline, step))

    def new(self, outputs: RunOutputs) -> frozenset[Parts]:
        """Return the tables of the run that do not exist yet."""
        return frozenset(self.tables) - frozenset(outputs.uuids)

    def record(self, pins: RunPins, *, outputs: RunOutputs) -> dict[str, object]:
        """Return the options for the run's record, which resuming, publishing or discarding needs."""
        return (
            self.options.to_record()
            | environment_record(self.pipeline)
            | encode_loops(self.loop_rows)
            | {
                "pins": record_json.encode_pins({**pins.tables, **self._built_pins()}),
                "sources": record_json.encode_source_pins(pins.sources),
                "built": record_json.encode_built(self.built),
                "tables": [list(table) for table in self.tables],
                "new": [list(table) for table in sorted(self.new(outputs))],
                "outputs": outputs.to_record(),
                "file": self.file,
                "digests": {step.name: record_json.step_digest(self.pipeline, step) for step in self.steps},
                "states": {name: state for name, state in step_states(self.pipeline).items() if name in self.names},
            }
        )

    def _built_pins(self) -> dict[Parts, ReadPin]:
        """Return pins of the tables that a promotion copies, so that the server keeps their snapshots."""
        return {
            one.table: ReadPin(name=".".join(one.table), table=one.table, snapshot=one.snapshot)
            for one in self.built.values()
        }

    def step_records(self) -> list[dict[str, object]]:
        """Return the name, the inputs and the output of each step, for the run's record."""
        return [
            {
                "name": step.name,
                "reads": sorted(display.render(table) for table in self.reads[step.name]),
                "output": display.render(step.table),
            }
            for step in self.steps
        ]


def resolve_reads(
    pipeline: Pipeline,
    means: RunMeans,
    *,
    reads: Mapping[str, frozenset[Parts]],
    names: frozenset[str],
    patience: RetryPolicy,
) -> tuple[Pipeline, Mapping[str, frozenset[Parts]]]:
    """Return the declaration and the tables that each step reads, where an environment without the table of a step that
    is left out reads production's.
    """
    read = {table for name in names for table in reads[name]}
    left_out = frozenset(step.name for step in pipeline.steps if step.name not in names and step.table in read)
    missing = patience.call(lambda: missing_tables(means.client, pipeline, left_out=left_out))
    settled_pipeline = reading_production(pipeline, missing)
    return settled_pipeline, actual_reads(settled_pipeline, reads)


def _finder_of_modified(pipeline: Pipeline, means: RunMeans, *, reads: Mapping[str, frozenset[Parts]]) -> ModifiedSteps:
    return lambda: modified_steps(means.client, pipeline, reads=reads)


def _nothing_selected(pipeline: Pipeline, listener: Listener, *, message: str = _UNCHANGED) -> RunResult:
    """Return the result if the selection by state has no step. No run begins, and the exit code is 0."""
    listener(RunEvent(run="", state="unchanged", message=message))
    return RunResult(run="", pipeline=pipeline.name, attempt=0, state="unchanged", why=EndReason.DONE, message=message)


def refused_result(request: RunRequest, means: RunMeans, *, why: EndReason, message: str) -> RunResult:
    """Return the result of a run that was refused before it began, with its reason, and tell the listener."""
    refused = RunResult(
        run=request.run, pipeline=request.pipeline.name, attempt=0, state="refused", why=why, message=message
    )
    further = {"why": why.value, "exit_code": refused.exit_code}
    means.listener(RunEvent(run="", state="refused", message=message, further=further))
    return refused
