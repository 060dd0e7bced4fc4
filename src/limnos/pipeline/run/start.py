# SPDX-License-Identifier: Apache-2.0
"""Start of a run: register the pipeline, take the lease, execute the steps.

Everything between a declaration and the first step: order, parameters, pins, the record. Must not know Spark.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from limnos.client import Client
from limnos.client.activity.runs import Run
from limnos.client.errors import ConflictError
from limnos.names import display
from limnos.pipeline.declaration import LoopRows, Parts, Pipeline, Scalar, StepDeclaration
from limnos.pipeline.declaration_json import encode_declaration
from limnos.pipeline.environments import (
    actual_reads,
    environment_record,
    missing_tables,
    reading_production,
    require_own_outputs,
)
from limnos.pipeline.graph import order_steps
from limnos.pipeline.lance_outputs import lance_catalogs, require_lance_outputs
from limnos.pipeline.modified_steps import modified_steps, step_states
from limnos.pipeline.near_tables import near_tables
from limnos.pipeline.outcomes import BuiltStep, ReadPin
from limnos.pipeline.problems import AbsentTable, Problem
from limnos.pipeline.query_loops import encode_loops, with_loop_steps
from limnos.pipeline.rights import commands_text, grants_lacking_now
from limnos.pipeline.run import record_json
from limnos.pipeline.run.attempt import AttemptWork, StepEngine, call_engine, needs_of
from limnos.pipeline.run.events import Listener, RunEvent, ignore_event
from limnos.pipeline.run.options import RunOptions, select_steps
from limnos.pipeline.run.outputs import RunOutputs, outputs_now
from limnos.pipeline.run.parameters import parameter_values
from limnos.pipeline.run.promotion import Promotion, promotion_from
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.runner import AttemptRunner
from limnos.pipeline.run.stop import RunStopped, StopSignal
from limnos.pipeline.selection import ModifiedSteps
from limnos.pipeline.side_tables import names_source, selects_from, tables_of
from limnos.pipeline.table_conflicts import find_declaration, put_declaration, require_own_tables

BUSY = "pipeline-busy"
_BUSY_PAUSE_S = 2.0
_UNCHANGED = "no step is selected: nothing has changed since it was published, so nothing was run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeans:
    """The resources of a run: two clients of the same server and caller, an engine, a stop signal, and a listener."""

    client: Client
    heart: Client
    engine: StepEngine
    stop: StopSignal
    listener: Listener = ignore_event


def start(
    pipeline: Pipeline,
    means: RunMeans,
    *,
    directory: Path,
    file: str | None = None,
    parameters: Mapping[str, object] | None = None,
    options: RunOptions | None = None,
) -> RunResult:
    """Run the pipeline once, to its end. Errors after the start of the run are in the returned result.

    Raises:
        BadRequest: Wrong options or parameters, or a query that Spark rejects.
        InvalidPipeline: The steps have no valid order, another pipeline declares one of its tables, or a step asks of
            a Lance table what it cannot do.
        NotFound, UnsupportedOperation: A table that a step reads does not exist, or is not an Iceberg table.
        PermissionDenied, ServiceUnavailable: Spark may not read a table, or does not reach the server.
        ClientError: The server refuses a request before the run begins.
    """
    began = time.monotonic()
    options = options or RunOptions()
    patience = RetryPolicy(options.away_s, stop=means.stop)
    pipeline, loop_rows = _with_rows(
        pipeline, means, parameters=parameters or {}, directory=directory, patience=patience
    )
    request = _checked_request(
        pipeline, means, parameters=parameters or {}, options=options, file=file, patience=patience
    )
    if isinstance(request, RunResult):
        return request
    _declare(request.pipeline, means, patience=patience)
    request = replace(request, loop_rows=loop_rows)
    try:
        run, pins, outputs = _begin_run(request, means, directory=directory, patience=patience)
    except RunStopped as error:
        return _refused_result(request, means, why=error.why, message=f"{error.message} before the run began")
    except ConflictError as error:
        if error.code != BUSY:
            raise
        return _refused_result(request, means, why=EndReason.BUSY, message=error.message)
    work = AttemptWork(
        pipeline=request.pipeline,
        directory=directory,
        needs=request.needs,
        run=run.id,
        attempt=run.attempt,
        at=began_at(run),
        parameters=request.values,
        pins=pins.tables,
        source_pins=pins.sources,
        options=request.options,
        new=request.new(outputs),
        lance_catalogs=request.lance_catalogs,
        outputs=outputs,
        built=request.built,
        computed=request.computed,
        planning_s=time.monotonic() - began,
    )
    return perform(work, means, state="began")


def _with_rows(
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


def _checked_request(
    pipeline: Pipeline,
    means: RunMeans,
    *,
    parameters: Mapping[str, object],
    options: RunOptions,
    file: str | None,
    patience: RetryPolicy,
) -> _RunRequest | RunResult:
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
    request = _RunRequest(
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
    if lacking := patience.call(lambda: grants_lacking_now(means.client, read=(), written=request.written)):
        message = f"nothing was started: a privilege is missing; grant it with: {commands_text(lacking)}"
        return _refused_result(request, means, why=EndReason.DENIED, message=message)
    patience.call(lambda: require_own_outputs(means.client, pipeline, names=frozenset(names)))
    return request


def _declare(pipeline: Pipeline, means: RunMeans, *, patience: RetryPolicy) -> None:
    """Register the declaration at the server, unless it has it already. Raises the client's errors."""
    declared = encode_declaration(pipeline)
    before = patience.call(lambda: find_declaration(means.client, pipeline.name))
    patience.call(lambda: put_declaration(means.client, pipeline, declaration=declared, before=before))


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
class _RunRequest:
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


def _begin_run(
    request: _RunRequest, means: RunMeans, *, directory: Path, patience: RetryPolicy
) -> tuple[Run, RunPins, RunOutputs]:
    """Start the run with fresh pins, as soon as no other run is in progress. Raises ConflictError after the option
    `wait_s`, RunStopped after a stop.
    """
    until = time.monotonic() + request.options.wait_s
    while True:
        means.stop.check()
        pins = RunPins(
            tables=_pin_tables(
                request.pipeline, means, reads=request.reads, names=frozenset(request.names), patience=patience
            ),
            sources=pin_sources(request.pipeline, means, names=request.names, directory=directory, patience=patience),
        )
        outputs = outputs_now(means.client, request.tables, patience=patience)
        record = request.record(pins, outputs=outputs)
        try:
            return _start_at_server(request, means.client, record=record, patience=patience), pins, outputs
        except ConflictError as error:
            if error.code != BUSY or time.monotonic() + _BUSY_PAUSE_S > until:
                raise
        means.stop.wait(_BUSY_PAUSE_S)


def _pin_tables(
    pipeline: Pipeline,
    means: RunMeans,
    *,
    reads: Mapping[str, frozenset[Parts]],
    names: frozenset[str],
    patience: RetryPolicy,
) -> dict[Parts, ReadPin]:
    """Return pins of the tables that the named steps read and do not write. Raises AbsentTable, with the step."""
    steps = [step for step in pipeline.steps if step.name in names]
    outside = {table for step in steps for table in reads[step.name]} - {step.table for step in steps}
    try:
        return call_engine(lambda: means.engine.pins(outside), patience=patience)
    except AbsentTable as error:
        readers = [str(Problem(step.name, step.at)) for step in steps if error.table in reads[step.name]]
        near = sorted(near_tables(means.client, error.table))
        raise AbsentTable(error.table, reader=next(iter(readers), None), near=near) from error


def pin_sources(
    pipeline: Pipeline,
    means: RunMeans,
    *,
    names: Collection[str],
    directory: Path,
    patience: RetryPolicy,
    known: Mapping[str, ReadPin] | None = None,
) -> dict[str, ReadPin]:
    """Return the pins of the topics that the named steps read, as they are now, unless they are known.

    Raises as the engine does.
    """
    known = known or {}
    steps = [step for step in pipeline.steps if step.name in names]
    read = frozenset(one.name for one in pipeline.sources if any(names_source(step, one.name) for step in steps))
    new = read - frozenset(known)
    pins = call_engine(lambda: means.engine.source_pins(pipeline, new, directory=directory), patience=patience)
    return {**{name: pin for name, pin in known.items() if name in read}, **pins}


def _start_at_server(
    request: _RunRequest, client: Client, *, record: Mapping[str, object], patience: RetryPolicy
) -> Run:
    """Start the run at the server. If the response is lost, the request is retried with the same id."""
    return patience.call(
        lambda: client.runs.start(
            request.pipeline.name,
            request.run,
            holder=lease_holder(),
            steps=request.step_records(),
            lease_s=request.options.lease_s,
            parameters=request.values,
            options=record,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepIntent:
    """One step of a dry run: earlier steps, pinned inputs, output and write mode."""

    step: str
    after: tuple[str, ...]
    reads: tuple[str, ...]
    writes: str
    refused: str | None = None
    """Why the step would fail, with its position; None if the analysis of its query finds no reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The planned actions of a run, or in `ended` the result of a run that would not begin."""

    steps: tuple[StepIntent, ...] = ()
    ended: RunResult | None = None


def intents(
    pipeline: Pipeline,
    means: RunMeans,
    *,
    parameters: Mapping[str, object],
    options: RunOptions,
    directory: Path | None = None,
) -> DryRun:
    """Return the planned actions of a run, without running it. Queries of loops are read, with the modules in
    `directory` for the steps that they make. Raises as `start` does.
    """
    patience = RetryPolicy(options.away_s, stop=means.stop)
    pipeline, _ = _with_rows(pipeline, means, parameters=parameters, directory=directory or Path(), patience=patience)
    request = _checked_request(pipeline, means, parameters=parameters, options=options, file=None, patience=patience)
    if isinstance(request, RunResult):
        return DryRun(ended=request)
    names, reads = frozenset(request.names), request.reads
    pins = _pin_tables(request.pipeline, means, reads=reads, names=names, patience=patience)
    ordered = [step for level in order_steps(request.pipeline, reads) for step in level if step.name in names]
    steps = [
        StepIntent(
            step=step.name,
            after=tuple(sorted(request.needs[step.name] & names)),
            reads=(
                *(_read(table, pins.get(table)) for table in sorted(reads[step.name])),
                *(f"source {each.name}" for each in request.pipeline.sources if selects_from(step, each.name)),
            ),
            writes=f"{display.render(step.table)} ({step.write.mode.value}{_origin(request, step)})",
        )
        for step in ordered
    ]
    return DryRun(steps=tuple(steps))


def _origin(request: _RunRequest, step: StepDeclaration) -> str:
    """Return where the rows of a promoted step come from, as far as is known before it runs."""
    name = step.name
    if name in request.built:
        empty = " and production's table is empty" if step.adds_to_its_table else ""
        return f"; copied from {display.render(request.built[name].table)} if its inputs are the same{empty}"
    return f"; computed: {request.computed[name]}" if name in request.computed else ""


def _read(table: Parts, pin: ReadPin | None) -> str:
    name = display.render(table)
    if pin is None:
        return f"{name} of this run"
    return name if pin.snapshot is None else f"{name} at {pin.snapshot}"


def perform(work: AttemptWork, means: RunMeans, *, state: str) -> RunResult:
    """Execute an attempt that the server has registered."""
    means.listener(
        RunEvent(
            run=work.run,
            state=state,
            message=f"attempt {work.attempt}",
            further={"pipeline": work.pipeline.name, "steps": list(work.needs), "done": sorted(work.done)},
        )
    )
    runner = AttemptRunner(
        work, means.engine, client=means.client, heart=means.heart, stop=means.stop, listener=means.listener
    )
    return runner.perform()


def lease_holder() -> str:
    """Return the ID of this process as the holder of a lease: `host:process id`."""
    return f"{socket.gethostname()}:{os.getpid()}"


def began_at(run: Run) -> datetime:
    """Return the start time of the run, by the store's clock; the current time if the record has none. Resuming a run
    does not change it.
    """
    return datetime.fromisoformat(run.started_at) if run.started_at else datetime.now(UTC)


def _refused_result(request: _RunRequest, means: RunMeans, *, why: EndReason, message: str) -> RunResult:
    """Return the result of a run that was refused before it began, with its reason, and tell the listener."""
    refused = RunResult(
        run=request.run, pipeline=request.pipeline.name, attempt=0, state="refused", why=why, message=message
    )
    further = {"why": why.value, "exit_code": refused.exit_code}
    means.listener(RunEvent(run="", state="refused", message=message, further=further))
    return refused
