"""The demo from start to end: `limnos demo`, `make demo`.

Job: put the demo's parts in order, show progress, and answer with an exit code. May import `client`, `model`, the
demo's modules and the Spark room. Every process it starts is stopped again, whatever happens.
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

from limnos.client import Client, ClientError
from limnos.model.errors import LimnosError
from limnos.spark.demo import access, data, pipeline, plots, process, statements
from limnos.spark.demo.report import Commit, Summary, TableLine, print_report, write_page
from limnos.spark.demo.server import running_server
from limnos.spark.jars import ensure_runtime
from limnos.spark.progress import StepProgress
from limnos.spark.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from limnos.spark.demo.access import Scene
    from limnos.spark.demo.data import Source
    from limnos.spark.demo.expectations import Finding

STEPS_TOTAL = 18
SMALL_TABLES = ("airlines", "airports", "planes", "weather")
_STOPPED = "Stopped. Run it again: what is done is kept."
_SPARK_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.log.level": "ERROR"}


@dataclass(slots=True)
class Run:
    """A run under way: where it writes, how it shows its progress, and what it has to report so far."""

    place: Path
    progress: StepProgress
    tables: list[TableLine] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    scenes: list[Scene] = field(default_factory=list)
    plots: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def server_data(self) -> Path:
        """The data directory both server processes share."""
        return self.place / "server"

    def show_bytes(self, done: int, total: int) -> None:
        """Show how far a download is."""
        self.progress.show(done / total, f"{done / 1e6:.0f} of {total / 1e6:.0f} MB")


def main(directory: str | Path = "demo-out", *, console: Console | None = None) -> int:
    """Run the demo below `directory`; return the exit code: 0 when everything held, 1 with the reason when not."""
    console = console or Console()
    started = time.monotonic()
    place = Path(directory)
    stop = process.Stop()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with (
            process.terminable(stop),
            process.direct_loopback(),
            StepProgress(STEPS_TOTAL, console=console) as progress,
        ):
            run = Run(place=place.absolute(), progress=progress)
            _everything(run)
        summary = _summary(run, directory=place, total_s=time.monotonic() - started)
        write_page(summary, plots=run.plots)
        print_report(summary, console=console)
    except KeyboardInterrupt:
        console.print(_STOPPED)
        return 130
    except (SystemExit, Exception) as error:  # noqa: BLE001 - Spark and PyIceberg raise what they like
        if stop.asked:
            console.print(_STOPPED)
            return process.TERMINATED
        return _failed(error, place=place, console=console)
    return 0


def _everything(run: Run) -> None:
    with run.progress.step("count the source, without Spark") as step:
        sources = data.sources(run.place / "source")
        step.note = f"{sum(source.census.rows for source in sources.values()):,} rows in {len(sources)} files"
    with run.progress.step("fetch Spark's Iceberg runtime, once") as step:
        step.note = ensure_runtime(progress=run.show_bytes).name
    with ExitStack() as servers:
        with run.progress.step("start a server with SQLite and a local warehouse") as step:
            first = servers.enter_context(running_server(run.server_data, log=run.place / "server-1.log"))
            token = (run.server_data / "admin.token").read_text(encoding="utf-8").strip()
            step.note = first.uri
        with _spark(run, first.uri, token) as spark:
            _fill(run, spark, sources)
            _draw(run, spark)
        with run.progress.step("start a second server process over the same store") as step:
            second = servers.enter_context(running_server(run.server_data, log=run.place / "server-2.log"))
            step.note = second.uri
        _show_access(run, {"first server": first.uri, "second server": second.uri}, token)


@contextmanager
def _spark(run: Run, uri: str, token: str) -> Iterator[SparkSession]:
    with run.progress.step("start Spark"), process.quiet_start(run.place / "spark.log"):
        spark = session(uri, token=token, app_name="limnos-demo", config=_SPARK_SETTINGS)
    run.progress.watch(spark)
    try:
        yield spark
    finally:
        run.progress.unwatch()
        spark.stop()


def _fill(run: Run, spark: SparkSession, sources: dict[str, Source]) -> None:
    """Source files → raw tables → delays → late day merged into both → counts compared."""
    done: dict[str, str] = {}
    with run.progress.step("make namespaces main.raw.nyc and main.curated.nyc"):
        pipeline.make_namespaces(spark)
    for name in SMALL_TABLES:
        with run.progress.step(f"load main.raw.nyc.{name}") as step:
            loaded = pipeline.load_small_table(spark, sources[name])
            step.note, done[name] = str(loaded), _word(loaded)
    flights = sources["flights"]
    with run.progress.step(f"load {statements.FLIGHTS}, all but the late day") as step:
        loaded, findings = pipeline.load_first_flights(spark, flights)
        step.note = str(loaded)
        run.findings += findings
    with run.progress.step(f"clean and join into {statements.DELAYS}") as step:
        built, findings = pipeline.build_delays(spark)
        step.note = str(built)
        run.findings += findings
    with run.progress.step(f"MERGE the late day into {statements.FLIGHTS}") as step:
        merged, findings = pipeline.merge_late_flights(spark, flights)
        step.note = str(merged)
        run.findings += findings
        done["flights"] = _word(loaded, merged)
    with run.progress.step(f"MERGE the late day into {statements.DELAYS}") as step:
        merged, findings = pipeline.merge_late_delays(spark)
        step.note = str(merged)
        run.findings += findings
        done["delays"] = _word(built, merged)
    with run.progress.step("compare with the source, rows and values of every column") as step:
        _compare(run, spark, sources, done)
        step.note = "equal"


def _word(loaded: pipeline.Loaded, merged: pipeline.Merged | None = None) -> str:
    """What a run did with a table, for the report's last column."""
    word = "kept" if loaded.kept else f"loaded {loaded.rows:,}"
    if merged is None or not merged.changed:
        return word
    return f"{word}, then {merged.inserted:,} new and {merged.corrected:,} corrected"


def _compare(run: Run, spark: SparkSession, sources: dict[str, Source], done: dict[str, str]) -> None:
    for name, source in sources.items():
        rows = pipeline.verify(spark, source).rows
        line = TableLine(name=statements.raw(name), rows=rows, source_rows=source.census.rows, done=done[name])
        run.tables.append(line)
    flights = sources["flights"]
    rows = pipeline.verify_delays(spark, flights)
    run.tables.append(
        TableLine(name=statements.DELAYS, rows=rows, source_rows=flights.census.rows, done=done["delays"])
    )


def _draw(run: Run, spark: SparkSession) -> None:
    """Ask the finished table for the numbers of the page, and draw its plots."""
    with run.progress.step("draw two plots"):
        run.commits += [
            Commit(at=at, operation=word, rows=rows) for at, word, rows in spark.sql(statements.COMMITS).collect()
        ]
        hourly: dict[str, list[tuple[int, float]]] = {}
        for origin, hour, minutes in spark.sql(statements.HOURLY).collect():
            hourly.setdefault(origin, []).append((hour, minutes))
        airlines = [tuple(row) for row in spark.sql(statements.AIRLINES).collect()]
        run.plots += [
            ("Mean departure delay by scheduled hour, per airport", plots.hourly_plot(plots.HourlyDelays(hourly))),
            ("Late and cancelled flights by airline", plots.airline_plot(plots.AirlineDelays(airlines))),
        ]


def _show_access(run: Run, uris: dict[str, str], token: str) -> None:
    """Play the same scenes at each server; the administrator's changes are all made at the first."""
    with Client(next(iter(uris.values())), token=token) as admin:
        access.prepare(admin)
        for name, uri in uris.items():
            with run.progress.step(f"ana asks the {name}: refused, granted, revoked") as step:
                run.scenes += access.play(admin, server=name, uri=uri)
                step.note = "each right at the very next request"


def _summary(run: Run, *, directory: Path, total_s: float) -> Summary:
    return Summary(
        directory=directory,
        tables=run.tables,
        expectations=[str(finding) for finding in run.findings],
        commits=run.commits,
        scenes=run.scenes,
        steps=run.progress.finished,
        total_s=total_s,
    )


def _failed(error: BaseException, *, place: Path, console: Console) -> int:
    """Print why; for an error that is not one of ours, keep its trace beside the data."""
    reason = str(error)
    if not isinstance(error, (LimnosError, ClientError, OSError)):
        log = place / "error.log"
        log.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        first = reason.strip().partition("\n")[0]
        reason = f"{type(error).__name__}: {first}\nThe whole trace is in {log}."
    console.print(f"[bold red]The demo failed:[/] {escape(reason)}", soft_wrap=True, highlight=False)
    return 1
