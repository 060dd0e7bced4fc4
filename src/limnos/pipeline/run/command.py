"""Runs as the command line asks for them: a file or a run's id in, an end out.

Job: bring file, Spark, server and listener together, and stop in order on Ctrl-C. May import `client`, `model` and this
room. It must not print: listeners do.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.model.errors import BadRequest
from limnos.pipeline.engine.differences import Difference, difference
from limnos.pipeline.engine.driver import SparkEngine
from limnos.pipeline.engine.launch import Door, spark_for
from limnos.pipeline.project import Project, load
from limnos.pipeline.run.backfill import Backfilled, between, go_through
from limnos.pipeline.run.ended import Ended, Why
from limnos.pipeline.run.events import Listener, nobody
from limnos.pipeline.run.options import Options
from limnos.pipeline.run.over import branches_of
from limnos.pipeline.run.patience import Patience
from limnos.pipeline.run.resume import resume
from limnos.pipeline.run.start import Intent, Means, intents, start
from limnos.pipeline.run.stop import Stop

if TYPE_CHECKING:
    from types import FrameType

    from limnos.client.runs import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """Which Spark to use."""

    master: str = "local[*]"
    connect: str | None = None


def run_file(
    file: Path,
    *,
    door: Door,
    spark: Spark,
    parameters: Mapping[str, str],
    options: Options,
    listener: Listener,
) -> Ended:
    """Run the pipeline of a file."""
    project = load(file)
    with _means(project, door=door, spark=spark, listener=listener, away_s=options.away_s) as means:
        return start(
            project.bound(),
            means,
            directory=project.directory,
            file=str(file.absolute()),
            parameters=parameters,
            options=options,
        )


def backfill(
    file: Path,
    *,
    over: str,
    door: Door,
    spark: Spark,
    parameters: Mapping[str, str],
    options: Options,
    listener: Listener,
) -> Backfilled:
    """Run the pipeline of a file once for each value of a parameter, on one Spark."""
    project = load(file)
    values = between(project.declaration, over)
    with _means(project, door=door, spark=spark, listener=listener, away_s=options.away_s) as means:
        return go_through(
            values,
            lambda value: start(
                project.bound(),
                means,
                directory=project.directory,
                file=str(file.absolute()),
                parameters={**parameters, values.name: value},
                options=options,
            ),
        )


def dry_run(
    file: Path, *, door: Door, spark: Spark, parameters: Mapping[str, str], options: Options
) -> tuple[Intent, ...]:
    """What a run of the file would do, step by step in the order of their needs; nothing is written, nor registered."""
    project = load(file)
    with _means(project, door=door, spark=spark, listener=nobody, away_s=options.away_s) as means:
        return intents(project.bound(), means, parameters=parameters, options=options)


def resume_run(run: str, *, file: Path | None, door: Door, spark: Spark, options: Options, listener: Listener) -> Ended:
    """Go on with a run, by the file it was started from unless another is given."""
    with door.client() as client:
        seen = Patience(options.away_s, stop=Stop()).on(lambda: client.runs.load(run))
    project = _project(seen, file)
    with _means(project, door=door, spark=spark, listener=listener, away_s=options.away_s) as means:
        return resume(project.bound(), means, run_id=run, directory=project.directory, options=options)


def diff_run(run: str, *, door: Door, spark: Spark, rows: int) -> tuple[Difference, ...]:
    """What publishing a run would change, table by table."""
    with door.client() as client:
        seen = client.runs.load(run)
        keys = _keys(client.pipelines.load(seen.pipeline, version=seen.version).declaration or {})
    branches = branches_of(seen)
    if not branches:
        raise BadRequest(f"run {run} has no finished step, so there is nothing to compare")
    with spark_for(door, master=spark.master, connect=spark.connect) as session:
        return tuple(
            difference(session, branch, keys=keys.get(".".join(branch.table), ()), rows=rows) for branch in branches
        )


def _project(seen: Run, file: Path | None) -> Project:
    told = seen.options.get("file")
    path = file or (Path(told) if isinstance(told, str) else None)
    if path is None:
        raise BadRequest(f"run {seen.id} was not started from a file: give it, `limnos pipeline resume {seen.id} FILE`")
    if not path.exists():
        raise BadRequest(
            f"run {seen.id} was started from {path}, which is not here: give the file, "
            f"`limnos pipeline resume {seen.id} FILE`"
        )
    return load(path)


def _keys(declaration: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """The keys by which steps write, by table."""
    steps = declaration.get("steps")
    found: dict[str, tuple[str, ...]] = {}
    for step in steps if isinstance(steps, list) else ():
        write = step.get("write") or {}
        found[".".join(step["table"])] = tuple(write.get("keys") or ())
    return found


@contextmanager
def _means(project: Project, *, door: Door, spark: Spark, listener: Listener, away_s: float) -> Iterator[Means]:
    stop = Stop()
    with (
        door.client() as client,
        door.client(timeout_s=10) as heart,
        spark_for(door, master=spark.master, connect=spark.connect, away_s=away_s) as session,
        closing(SparkEngine(session, is_stopped=lambda: stop.reason is not None)) as engine,
        stopping(stop),
    ):
        engine.ship(project.declaration, directory=project.directory)
        yield Means(client=client, heart=heart, engine=engine, stop=stop, listener=listener)


@contextmanager
def stopping(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the run in order: what is under way is halted, its branches dropped. A second one ends at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        for each, handler in before.items():
            signal.signal(each, handler)
        stop.ask(Why.INTERRUPTED, f"interrupted by {signal.Signals(number).name}")

    for number in before:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
