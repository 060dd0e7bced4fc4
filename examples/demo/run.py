# SPDX-License-Identifier: Apache-2.0
"""The demo from start to end: `limnos demo`, `make demo`.

Job: run the demo's parts in order, show progress, and return an exit code. May import `client`, `model`, `spark`, the
demo's modules and this package. Every process it starts is stopped at the end, also after a failure.
"""

from __future__ import annotations

import time
import traceback
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from examples.demo import access, data, plots, process, search, tables
from examples.demo.graph import DrawnEdge
from examples.demo.progress import StepProgress
from examples.demo.reader import ConsistencyReader
from examples.demo.report import Delivery, DemoSummary, TableCommitLine, TableLine, print_report, write_page
from examples.demo.server import running_server
from limnos.client import Client, ClientError
from limnos.model.errors import LimnosError
from limnos.pipeline.project import Project, load
from limnos.pipeline.run.event_text import line_of
from limnos.pipeline.run.result import RunFailed
from limnos.spark.jars import ensure_runtime
from limnos.spark.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from examples.demo.access import AccessTrial
    from examples.demo.data import DemoTable
    from limnos.pipeline.run.events import RunEvent

STEPS_TOTAL = 13
_PATIENCE_S = 120.0
"""The server may have to start a process that reads Lance tables while Spark uses all cores."""
_STOPPED = "Stopped. Run it again: what is done is kept."
_SPARK_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.scheduler.mode": "FAIR",
}


@dataclass(slots=True, kw_only=True)
class DemoRun:
    """A run in progress: its output directory, its progress display, and the report so far."""

    place: Path
    progress: StepProgress
    console: Console
    tables: list[TableLine] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    commits: list[TableCommitLine] = field(default_factory=list)
    trials: list[AccessTrial] = field(default_factory=list)
    plots: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def server_data(self) -> Path:
        """The data directory that both server processes share."""
        return self.place / "server"

    def show_bytes(self, done: int, total: int) -> None:
        """Show the progress of a download."""
        self.progress.show(done / total, f"{done / 1e6:.0f} of {total / 1e6:.0f} MB")


def main(directory: str | Path = "demo-out", *, console: Console | None = None) -> int:
    """Run the demo below `directory`; returns the exit code: 0 on success, 1 after a failure, whose reason is
    printed.
    """
    console = console or Console()
    started = time.monotonic()
    place = Path(directory)
    stop = process.StopRequest()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with (
            process.terminable(stop),
            process.direct_loopback(),
            StepProgress(STEPS_TOTAL, console=console) as progress,
        ):
            run = DemoRun(place=place.absolute(), progress=progress, console=console)
            _run_demo(run)
        summary = _summary(run, directory=place, total_s=time.monotonic() - started)
        write_page(summary, plots=run.plots)
        print_report(summary, console=console)
    except KeyboardInterrupt:
        console.print(_STOPPED)
        return 130
    except (SystemExit, Exception) as error:
        if stop.asked:
            console.print(_STOPPED)
            return process.TERMINATED
        return _report_failure(error, place=place, console=console)
    return 0


def _run_demo(run: DemoRun) -> None:
    with run.progress.step("count the source, without Spark") as step:
        sources = data.sources(run.place / "source")
        step.note = f"{sum(source.census.rows for source in sources.values()):,} rows in {len(sources)} files"
    with run.progress.step("put the first delivery beside the pipeline's file") as step:
        project = load(data.write_base_data(sources, run.place / "pipeline"))
        step.note = str(project.file)
    with run.progress.step("fetch Spark's Iceberg runtime, once") as step:
        step.note = ensure_runtime(progress=run.show_bytes).name
    with ExitStack() as servers:
        with run.progress.step("start a server with SQLite and a local warehouse") as step:
            first = servers.enter_context(running_server(run.server_data, log=run.place / "server-1.log"))
            token = (run.server_data / "admin.token").read_text(encoding="utf-8").strip()
            step.note = first.uri
        with _spark(run, first.uri, token) as spark:
            _deliver(
                run,
                project,
                spark=spark,
                reader=ConsistencyReader(access.connect(first.uri, metalake="lake", token=token)),
            )
            data.write_late_data(sources, project.directory)
            _deliver(
                run,
                project,
                spark=spark,
                reader=ConsistencyReader(access.connect(first.uri, metalake="lake", token=token)),
            )
            with run.progress.step("compare with the source, rows and values of every column") as step:
                _compare(run, spark, sources)
                step.note = "equal"
            _draw(run, spark)
            source_lookup = _fill_search_table(run, spark, admin=Client(first.uri, token=token, timeout_s=_PATIENCE_S))
        with run.progress.step("start a second server process over the same store") as step:
            second = servers.enter_context(running_server(run.server_data, log=run.place / "server-2.log"))
            step.note = second.uri
        _show_access(
            run, {"first server": first.uri, "second server": second.uri}, token=token, source_lookup=source_lookup
        )


@contextmanager
def _spark(run: DemoRun, uri: str, token: str) -> Iterator[SparkSession]:
    with run.progress.step("start Spark"), process.quiet_start(run.place / "spark.log"):
        spark = session(uri, token=token, app_name="limnos-demo", config=_SPARK_SETTINGS)
    run.progress.watch(spark)
    try:
        yield spark
    finally:
        run.progress.unwatch()
        spark.stop()


def _deliver(run: DemoRun, project: Project, *, spark: SparkSession, reader: ConsistencyReader) -> None:
    """Run the pipeline on the delivered files, while the reader reads published tables."""
    number = len(run.deliveries) + 1
    word = "first" if number == 1 else "late"
    delivery = Delivery(name=word)
    with run.progress.step(f"run the pipeline on the {word} delivery, somebody reading") as step:

        def hear(event: RunEvent) -> None:
            delivery.hear(event)
            if event.state in ("done", "failed", "moved"):
                run.console.print(escape(f"         {line_of(event)}"), highlight=False, soft_wrap=True)

        with reader:
            ended = project.run(spark, listener=hear).require()
        delivery.seen = str(reader.seen)
        step.note = f"{ended.message} in one commit"
    run.console.print(f"         the reader: {delivery.seen}", highlight=False, soft_wrap=True)
    run.deliveries.append(delivery)


def _compare(run: DemoRun, spark: SparkSession, sources: Mapping[str, DemoTable]) -> None:
    for name, source in sources.items():
        rows = tables.verify(spark, source)
        done = _table_action(run, f"raw.nyc.{name}")
        run.tables.append(
            TableLine(name=tables.raw_table_name(name), rows=rows, source_rows=source.census.rows, done=done)
        )
    flights = sources["flights"]
    rows = tables.verify_delays(spark, flights)
    done = _table_action(run, "curated.nyc.delays")
    run.tables.append(TableLine(name=tables.DELAYS, rows=rows, source_rows=flights.census.rows, done=done))


def _table_action(run: DemoRun, step: str) -> str:
    """Return the operation of the runs on a table, for the report's last column."""
    rows = [delivery.rows.get(step, 0) for delivery in run.deliveries]
    return ", then ".join(f"{count:,} written" if count else "nothing new" for count in rows)


def _draw(run: DemoRun, spark: SparkSession) -> None:
    """Query the numbers of the page from the finished table, and draw its plots."""
    with run.progress.step("draw two plots"):
        run.commits += [
            TableCommitLine(at=at, operation=word, rows=rows) for at, word, rows in spark.sql(tables.COMMITS).collect()
        ]
        hourly: dict[str, list[tuple[int, float]]] = {}
        for origin, hour, minutes in spark.sql(tables.HOURLY).collect():
            hourly.setdefault(origin, []).append((hour, minutes))
        airlines = [tuple(row) for row in spark.sql(tables.AIRLINES).collect()]
        run.plots += [
            ("Mean departure delay by scheduled hour, per airport", plots.hourly_plot(plots.HourlyDelays(hourly))),
            ("Late and cancelled flights by airline", plots.airline_plot(plots.AirlineDelays(airlines))),
        ]


def _fill_search_table(run: DemoRun, spark: SparkSession, *, admin: Client) -> list[float]:
    """Write the airports' names with their vectors into a Lance table; returns the vector of ana's query."""
    with run.progress.step("make vectors of the airports' names, in a Lance table") as step, admin:
        filled = search.fill_table(spark, admin)
        source = next(line.rows for line in run.tables if line.name == search.AIRPORTS)
        run.tables.append(TableLine(search.TABLE, rows=filled.rows, source_rows=source, done="written anew"))
        step.note = f"{filled.rows:,} rows"
    return filled.source_lookup


def _show_access(run: DemoRun, uris: dict[str, str], *, token: str, source_lookup: list[float]) -> None:
    """Run the same trials at each server; the administrator's changes are all made at the first."""
    with Client(next(iter(uris.values())), token=token) as admin:
        own_token = access.add_ana(admin, (access.TABLE, search.TABLE))
        for name, uri in uris.items():
            with run.progress.step(f"ana asks the {name}: refused, granted, revoked") as step:
                with Client(uri, token=own_token, timeout_s=_PATIENCE_S) as ana:
                    doors = (
                        access.iceberg_access(access.connect(uri, metalake="lake", token=own_token)),
                        search.search_access(ana, source_lookup),
                    )
                for table_access in doors:
                    run.trials += access.run_trials(admin, table_access, server=name)
                step.note = "each right at the very next request"


def _summary(run: DemoRun, *, directory: Path, total_s: float) -> DemoSummary:
    return DemoSummary(
        directory=directory,
        tables=run.tables,
        deliveries=run.deliveries,
        graph=_graph(run),
        commits=run.commits,
        trials=run.trials,
        steps=run.progress.finished,
        total_s=total_s,
    )


def _graph(run: DemoRun) -> list[DrawnEdge]:
    """Return the inputs of each table, with the number of rows that both runs wrote to each input."""
    edges = []
    for step, sources in _READS.items():
        for source in sources:
            rows = sum(delivery.rows.get(source, 0) for delivery in run.deliveries) or None
            written_rows = sum(delivery.rows.get(step, 0) for delivery in run.deliveries)
            edges.append(DrawnEdge(start=source, end=step, rows=written_rows if rows is None else rows))
    return edges


_SMALL = tuple(f"raw.nyc.{name}" for name in data.TABLES)
_READS = {f"raw.nyc.{name}": (f"{name}.csv",) for name in data.TABLES} | {"curated.nyc.delays": _SMALL}


def _report_failure(error: BaseException, *, place: Path, console: Console) -> int:
    """Print the reason; for an unexpected error, write its traceback next to the data."""
    reason = str(error)
    if not isinstance(error, (LimnosError, ClientError, OSError, RunFailed)):
        log = place / "error.log"
        log.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        first = reason.strip().partition("\n")[0]
        reason = f"{type(error).__name__}: {first}\nThe whole trace is in {log}."
    console.print(f"[bold red]The demo failed:[/] {escape(reason)}", soft_wrap=True, highlight=False)
    return 1
