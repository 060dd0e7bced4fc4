# SPDX-License-Identifier: Apache-2.0
"""Start of a run: register the pipeline, take the lease, execute the steps.

Everything between a declaration and the first step: order, parameters, pins, the record. Must not know Spark.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from limnos.client import Client
from limnos.client.activity.runs import Run
from limnos.client.errors import ConflictError
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.declaration_json import encode_declaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.near_tables import near_tables
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.problems import AbsentTable, Problem
from limnos.pipeline.run.attempt import AttemptWork, call_engine
from limnos.pipeline.run.events import RunEvent
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.outputs import RunOutputs, outputs_now
from limnos.pipeline.run.request import RunMeans, RunPins, RunRequest, checked_request, refused_result, with_loop_rows
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.runner import AttemptRunner
from limnos.pipeline.run.stop import RunStopped
from limnos.pipeline.side_tables import names_source
from limnos.pipeline.table_conflicts import find_declaration, put_declaration

BUSY = "pipeline-busy"
_BUSY_PAUSE_S = 2.0


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
    pipeline, loop_rows = with_loop_rows(
        pipeline, means, parameters=parameters or {}, directory=directory, patience=patience
    )
    request = checked_request(
        pipeline, means, parameters=parameters or {}, options=options, file=file, patience=patience
    )
    if isinstance(request, RunResult):
        return request
    _declare(request.pipeline, means, patience=patience)
    request = replace(request, loop_rows=loop_rows)
    try:
        run, pins, outputs = _begin_run(request, means, directory=directory, patience=patience)
    except RunStopped as error:
        return refused_result(request, means, why=error.why, message=f"{error.message} before the run began")
    except ConflictError as error:
        if error.code != BUSY:
            raise
        return refused_result(request, means, why=EndReason.BUSY, message=error.message)
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


def _declare(pipeline: Pipeline, means: RunMeans, *, patience: RetryPolicy) -> None:
    """Register the declaration at the server, unless it has it already. Raises the client's errors."""
    declared = encode_declaration(pipeline)
    former_declaration = patience.call(lambda: find_declaration(means.client, pipeline.name))
    patience.call(lambda: put_declaration(means.client, pipeline, declaration=declared, before=former_declaration))


def _begin_run(
    request: RunRequest, means: RunMeans, *, directory: Path, patience: RetryPolicy
) -> tuple[Run, RunPins, RunOutputs]:
    """Start the run with fresh pins, as soon as no other run is in progress. Raises ConflictError after the option
    `wait_s`, RunStopped after a stop.
    """
    until = time.monotonic() + request.options.wait_s
    while True:
        means.stop.check()
        pins = RunPins(
            tables=pin_tables(
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


def pin_tables(
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
    request: RunRequest, client: Client, *, record: Mapping[str, object], patience: RetryPolicy
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
        work,
        means.engine,
        client=means.client,
        heartbeat_client=means.heartbeat_client,
        stop=means.stop,
        listener=means.listener,
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
