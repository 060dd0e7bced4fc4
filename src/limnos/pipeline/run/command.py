# SPDX-License-Identifier: Apache-2.0
"""Runs for the command line: from a file or a run's id to a result.

Combines the file, Spark, the server and a listener, and stops cleanly on Ctrl-C. Must not print; listeners do.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

from limnos.client.activity.runs import Run
from limnos.model.errors import BadRequest
from limnos.pipeline.checks import check
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.engine.differences import BranchDifference, difference
from limnos.pipeline.engine.driver import Session, SparkEngine
from limnos.pipeline.engine.launch import ServerConnection, spark_for
from limnos.pipeline.engine.preview import preview
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.project import Project, load
from limnos.pipeline.run.backfill import BackfillResult, parse_range, run_range
from limnos.pipeline.run.dry_run import DryRun, intents
from limnos.pipeline.run.events import Listener, ignore_event
from limnos.pipeline.run.held_runs import branches_of, tables_of_run
from limnos.pipeline.run.options import RunOptions, require_known_steps
from limnos.pipeline.run.refs import inspected_tables
from limnos.pipeline.run.request import RunMeans
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.pipeline.run.resume import resume
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.start import start
from limnos.pipeline.run.stop import StopSignal
from limnos.pipeline.shipped import absolute_path, shipped_reference


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Options for Spark: a master to start, or the URL of a Spark Connect server, and settings."""

    master: str = "local[*]"
    connect: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    """Further settings of Spark."""


def run_file(
    file: Path,
    *,
    connection: ServerConnection,
    spark: SparkOptions,
    parameters: Mapping[str, str],
    options: RunOptions,
    listener: Listener,
    environment: str | None = None,
) -> RunResult:
    """Run the pipeline of a file with a Spark session that is opened for the run. Returns its result, also after a
    failure.

    Raises InvalidPipeline, BadRequest or ClientError for problems found before the run begins.
    """
    project = load(file).in_environment(environment)
    if not project.declaration.loops:  # else the steps are known when the run has started
        require_known_steps(project.declaration, options)
    opened = _run_means(project, connection=connection, spark=spark, listener=listener, away_s=options.away_s)
    with opened as (pipeline, means, _):
        return start(
            pipeline,
            means,
            directory=project.directory,
            file=str(absolute_path(file)),
            parameters=parameters,
            options=options,
        )


def backfill(
    file: Path,
    *,
    over: str,
    connection: ServerConnection,
    spark: SparkOptions,
    parameters: Mapping[str, str],
    options: RunOptions,
    listener: Listener,
    environment: str | None = None,
) -> BackfillResult:
    """Run the pipeline of a file once for each value of a parameter, in one Spark session."""
    project = load(file).in_environment(environment)
    if not project.declaration.loops:  # else the steps are known when the run has started
        require_known_steps(project.declaration, options)
    values = parse_range(project.declaration, over)
    opened = _run_means(project, connection=connection, spark=spark, listener=listener, away_s=options.away_s)
    with opened as (pipeline, means, _):
        return run_range(
            values,
            lambda value: start(
                pipeline,
                means,
                directory=project.directory,
                file=str(absolute_path(file)),
                parameters={**parameters, values.name: value},
                options=options,
            ),
        )


def dry_run(
    file: Path,
    *,
    connection: ServerConnection,
    spark: SparkOptions,
    parameters: Mapping[str, str],
    options: RunOptions,
    environment: str | None = None,
) -> DryRun:
    """Return the steps that a run of the file would execute, in order, and why steps would fail, as far as the analysis
    of their queries finds it. Nothing is written or registered.

    Raises InvalidPipeline for the problems that a check of these steps finds.
    """
    project = load(file).in_environment(environment)
    declaration = project.declaration
    if not declaration.loops:  # else the steps are known when the run has started
        require_known_steps(declaration, options)
    opened = _run_means(project, connection=connection, spark=spark, listener=ignore_event, away_s=options.away_s)
    with opened as (pipeline, means, session):
        planned = None
        if options.are_selective and not declaration.loops:
            planned = intents(pipeline, means, parameters=parameters, options=options, directory=project.directory)
            if not planned.steps:  # nothing is left to check: `planned.ended` says why
                return planned
            selected = {one.step for one in planned.steps}
            declaration = replace(declaration, steps=tuple(step for step in declaration.steps if step.name in selected))
        check_result = check(declaration, spark=session, client=means.client)
        if check_result.problems:
            raise InvalidPipeline(check_result.problems)
        if planned is None:
            planned = intents(pipeline, means, parameters=parameters, options=options, directory=project.directory)
        tables = {step.table for step in pipeline.steps}  # a check also has the steps that loops may make
        levels = [[step for step in level if step.table in tables] for level in check_result.levels]
        if not planned.steps or not levels:
            return planned
        previews = preview(
            session,
            pipeline,
            levels=levels,
            catalogs=check_result.catalogs,
            lance_catalogs=check_result.lance_catalogs,
        )
        refused = {name: one.refusal for name, one in previews.items()}
        return replace(planned, steps=tuple(replace(one, refused=refused.get(one.step)) for one in planned.steps))


def resume_run(
    run: str,
    *,
    file: Path | None,
    connection: ServerConnection,
    spark: SparkOptions,
    options: RunOptions,
    listener: Listener,
) -> RunResult:
    """Resume a run from the file that it was started from, or from `file`."""
    with connection.client() as client:
        stored_run = RetryPolicy(options.away_s, stop=StopSignal()).call(lambda: client.runs.load(run))
    project = _project(stored_run, file)
    opened = _run_means(project, connection=connection, spark=spark, listener=listener, away_s=options.away_s)
    with opened as (pipeline, means, _):
        return resume(pipeline, means, run_id=run, directory=project.directory, options=options)


def diff_run(run: str, *, connection: ServerConnection, spark: SparkOptions, rows: int) -> tuple[BranchDifference, ...]:
    """Return the changes that publishing a run would make, table by table. Raises BadRequest for a run without a
    finished step.
    """
    with connection.client() as client:
        stored_run = client.runs.load(run)
        keys = _keys(client.pipelines.load(stored_run.pipeline, version=stored_run.version).declaration or {})
        branches = branches_of(stored_run)
        if not branches:
            raise BadRequest(f"run {run} has no finished step, so there is nothing to compare")
        new = (
            [table for table, is_new in tables_of_run(stored_run).items() if is_new]
            if stored_run.state == "failed"
            else []
        )
        with (
            inspected_tables(client, new, run=run),
            spark_for(connection, master=spark.master, connect=spark.connect) as session,
        ):
            return tuple(
                difference(session, branch, keys=keys.get(".".join(branch.table), ()), rows=rows) for branch in branches
            )


def _project(seen: Run, file: Path | None) -> Project:
    option = seen.options.get("file")
    path = file or (Path(option) if isinstance(option, str) else None)
    if path is None:
        raise BadRequest(
            f"run {seen.id} was not started from a file: give one, 'limnos pipeline resume {seen.id} FILE'"
        )
    if shipped_reference(str(path)) is None and not path.exists():
        raise BadRequest(
            f"run {seen.id} was started from {path}, which does not exist here: give the file, 'limnos pipeline resume"
            f" {seen.id} FILE'"
        )
    return load(path)


def _keys(declaration: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return the key columns of each table's write declaration."""
    steps = declaration.get("steps")
    results: dict[str, tuple[str, ...]] = {}
    for step in steps if isinstance(steps, list) else ():
        write = step.get("write") or {}
        results[".".join(step["table"])] = tuple(write.get("keys") or ())
    return results


@contextmanager
def _run_means(
    project: Project, *, connection: ServerConnection, spark: SparkOptions, listener: Listener, away_s: float
) -> Iterator[tuple[Pipeline, RunMeans, Session]]:
    """Open the clients and the Spark of a run. Yields the pipeline with its functions, the means, and the session."""
    stop = StopSignal()
    with (
        connection.client() as client,
        connection.client(timeout_s=10) as heartbeat_client,
        spark_for(
            connection, master=spark.master, connect=spark.connect, config=spark.config, away_s=away_s
        ) as session,
        closing(
            SparkEngine(
                session, is_stopped=lambda: stop.reason is not None, access=connection.lance_access(spark.connect)
            )
        ) as engine,
        stop_on_signals(stop),
    ):
        pipeline = project.bind_functions()
        engine.ship(pipeline, directory=project.directory)
        means = RunMeans(client=client, heartbeat_client=heartbeat_client, engine=engine, stop=stop, listener=listener)
        yield pipeline, means, session


@contextmanager
def stop_on_signals(stop: StopSignal) -> Iterator[None]:
    """Install handlers: the first SIGINT or SIGTERM stops the run: steps are cancelled and branches dropped.

    A second signal has its former effect, in general to end the process. No-op outside of the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former_handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def request_stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        for each, handler in former_handlers.items():
            signal.signal(each, handler)
        stop.request(EndReason.INTERRUPTED, f"interrupted by {signal.Signals(number).name}")

    for number in former_handlers:
        signal.signal(number, request_stop)
    try:
        yield
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)
