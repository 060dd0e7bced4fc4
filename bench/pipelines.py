# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.pipelines`: the cost of a pipeline's run relative to the same work in plain Spark SQL.

Three comparisons, each on one warm Spark and its own server: ten steps (`--steps`) of one row each, compared with as
many `INSERT OVERWRITE`; a merge of `--rows` rows into `--into` rows, compared with `MERGE INTO`; and two incremental
steps after a day that adds 1 % to `--facts` rows, compared with a full run. The median of `--rounds` rounds counts.
Printed are seconds, CPU of Python, Java and server together, requests by operation, the ratio of the first side to the
second, and rows per second. Then `limnos pipeline check` and `plan` of the same steps, asked again of the helper
process (`--again` times): seconds, and CPU of the command and of the helper's forks. It judges nothing. `python -m
bench.tpch` compares TPC-H.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cpu import processes_s
from bench.request_counts import count_requests
from bench.workers import LIMNOS, served
from limnos.client import Client
from limnos.pipeline import pipeline, step
from limnos.pipeline.project import Project
from limnos.pipeline.run.options import RunOptions
from limnos.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPACE = "main.bench"
_DAY_OF = 100
"""Number of parts, one of which is a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of some work."""

    seconds: float
    cpu_s: float
    requests: Mapping[str, int]

    @property
    def asked(self) -> int:
        """Number of requests of all operations."""
        return sum(self.requests.values())


class Bench:
    """A server, a warm Spark, and meters of both."""

    def __init__(self, spark: SparkSession, *, uri: str, token: str, pid: int, at_once: int | None) -> None:
        self.spark, self.at_once = spark, at_once
        self.client = Client(uri, token=token)
        self.uri, self.token = uri, token
        self._processes = (pid, os.getpid())

    def cost(self, work: Callable[[], object]) -> Cost:
        """Run the work and return its cost."""
        requests, cpu, began = count_requests(self.uri, self.token), processes_s(self._processes), time.perf_counter()
        work()
        seconds = time.perf_counter() - began
        return Cost(
            seconds=seconds,
            cpu_s=processes_s(self._processes) - cpu,
            requests=dict(count_requests(self.uri, self.token) - requests),
        )

    def run(self, project: Project, *, full: bool = False) -> None:
        """Run a pipeline and publish it."""
        project.run(self.spark, options=RunOptions(lease_s=300, full=full, at_once=self.at_once)).require()


@contextmanager
def opened(heap: str, *, at_once: int | None = None) -> Iterator[Bench]:
    """Open a server over its own store, and a Spark session for it."""
    with tempfile.TemporaryDirectory(prefix="limnos-bench-") as place:
        data = Path(place) / "data"
        with served(data, 1) as (pid, uri, _):
            token = (data / "admin.token").read_text().strip()
            settings = {
                "spark.driver.memory": heap,
                "spark.scheduler.mode": "FAIR",
                "spark.log.level": "ERROR",
                "spark.sql.session.timeZone": "UTC",
            }
            spark = session(uri, token=token, config=settings)
            try:
                spark.sql(f"CREATE NAMESPACE {_SPACE}")
                yield Bench(spark, uri=uri, token=token, pid=pid, at_once=at_once)
            finally:
                spark.stop()


def trivial(bench: Bench, *, steps: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Compare steps of one row each with plain inserts; their tables exist."""
    names = [f"t{number}" for number in range(steps)]
    declared = pipeline(
        "trivial", catalog="main", steps=[step(f"bench.{name}", sql=f"SELECT '{name}' AS x") for name in names]
    )
    project = Project(declared, Path())
    for name in names:
        bench.spark.sql(f"CREATE TABLE {_SPACE}.plain_{name} (x string)")

    def plain() -> None:
        for name in names:
            bench.spark.sql(f"INSERT OVERWRITE {_SPACE}.plain_{name} SELECT '{name}' AS x")

    return lambda: bench.run(project), plain


def merge(bench: Bench, *, rows: int, into: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Compare a merge with a plain statement. Half of its rows are new in the first round, all of them later."""
    spark = bench.spark
    spark.sql(
        f"CREATE TABLE {_SPACE}.changes AS SELECT id * 2 * {into} DIV {rows} AS id, uuid() AS a, rand() AS b FROM"
        f" range({rows})"
    )
    for name in ("merged", "plain_merged"):
        spark.sql(
            f"CREATE TABLE {_SPACE}.{name} AS SELECT id, cast(id AS string) AS a, cast(id AS double) AS b FROM"
            f" range({into})"
        )
    query = f"SELECT id, a, b + :salt AS b FROM {_SPACE}.changes"
    declared = pipeline(
        "merges",
        catalog="main",
        parameters={"salt": "double"},
        steps=[step("bench.merged", sql=query, write={"mode": "merge", "keys": ["id"]})],
    )
    project = Project(declared, Path())
    salts = iter(range(1, 1 << 30))

    def run() -> None:
        project.run(spark, parameters={"salt": float(next(salts))}, options=RunOptions(lease_s=300)).require()

    def plain() -> None:
        source = query.replace(":salt", str(float(next(salts))))
        spark.sql(
            f"MERGE INTO {_SPACE}.plain_merged AS t USING ({source}) AS s ON t.id = s.id"
            " WHEN MATCHED AND NOT (t.a <=> s.a AND t.b <=> s.b) THEN UPDATE SET a = s.a, b = s.b"
            " WHEN NOT MATCHED THEN INSERT (id, a, b) VALUES (s.id, s.a, s.b)"
        )

    return run, plain


def day(bench: Bench, *, facts: int) -> tuple[Callable[[], object], Callable[[], object], Callable[[], object]]:
    """Compare an incremental run of a day's rows with a full run. Preparing the next day is not measured."""
    spark, source, each = bench.spark, f"{_SPACE}.facts", max(1, facts // _DAY_OF)
    rows = "id, id % 1000 AS grp, sha2(cast(id AS string), 256) AS a, cast(id AS double) AS b"
    spark.sql(f"CREATE TABLE {source} AS SELECT {rows} FROM range({facts})")
    starts = iter(range(facts, 1 << 60, each))
    copied = step("bench.copied", sql=f"SELECT id, grp, a, b * 2 AS b FROM {source}", write="append", incremental=True)
    newest = step(
        "bench.newest",
        sql=f"SELECT id, upper(a) AS a, b FROM {source}",
        write={"mode": "merge", "keys": ["id"]},
        incremental=True,
    )
    project = Project(pipeline("days", catalog="main", steps=[copied, newest]), Path())

    def come() -> None:
        start = next(starts)
        spark.sql(f"INSERT INTO {source} SELECT {rows} FROM range({start}, {start + each})")

    return lambda: bench.run(project), lambda: bench.run(project, full=True), come


def again(bench: Bench, *, steps: int, rounds: int) -> None:
    """Print what a check and a plan of steps of one row cost when the helper process is asked again."""
    with tempfile.TemporaryDirectory(prefix="limnos-bench-") as place:
        own = [f"  bench.again{number}: {{sql: SELECT 't{number}' AS x}}" for number in range(steps)]
        (Path(place) / "p.yaml").write_text("\n".join(["pipeline: again", "catalog: main", "steps:", *own]) + "\n")
        environment = {**os.environ, "XDG_RUNTIME_DIR": place, "LIMNOS_TOKEN": bench.token, "LIMNOS_URI": bench.uri}
        for command in ("check", "plan"):
            costs = [_command_cost(command, place=place, environment=environment) for _ in range(rounds + 1)]
            first, *others = costs
            seconds, cpu_s = (statistics.median(each) for each in zip(*others, strict=True))
            print(f"{command} again: {seconds:.2f} s, {cpu_s:.2f} s of CPU; first: {first[0]:.2f} s", flush=True)


def _command_cost(command: str, *, place: str, environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a command with the helper of a directory. Returns its seconds, and CPU seconds of it and of new forks."""
    before, began = _helper_cpu_s(place), time.perf_counter()
    words = [*LIMNOS, "pipeline", command, "p.yaml", "--helper", "--output", "json"]
    with subprocess.Popen(words, cwd=place, env=environment, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"pipeline {command} ended with {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime + _helper_cpu_s(place) - before


def _helper_cpu_s(place: str) -> float:
    """Return the CPU seconds of a directory's helper process and of its ended forks; 0 without one."""
    for path in Path(place).glob("limnos-pipeline-helper/*.sock"):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))
            pid, _, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def compared(
    bench: Bench,
    name: str,
    sides: tuple[Callable[[], object], Callable[[], object]],
    *,
    rounds: int,
    words: tuple[str, str] = ("runner", "plain"),
    before: Callable[[], object] = lambda: None,
) -> tuple[Cost, Cost]:
    """Warm up both sides, measure them in turn, print and return the median round of each by seconds.

    `before` runs before each round and is not measured.
    """
    costs: tuple[list[Cost], list[Cost]] = ([], [])
    for number in range(rounds + 1):
        before()
        for side, side_costs in zip(sides, costs, strict=True):
            cost = bench.cost(side)
            if number:
                side_costs.append(cost)
    first, second = (sorted(each, key=lambda cost: cost.seconds)[rounds // 2] for each in costs)
    print(f"{name}: {'seconds':>20} {'CPU s':>8} {'requests':>9}")
    for word, cost in zip(words, (first, second), strict=True):
        print(
            f"  {word:8} {cost.seconds:>{len(name) + 12}.2f} {cost.cpu_s:>8.2f} {cost.asked:>9} "
            f" {_format_requests(cost)}"
        )
    ratio = statistics.fmean(cost.cpu_s for cost in costs[0]) / statistics.fmean(cost.cpu_s for cost in costs[1])
    print(f"  {' / '.join(words)}: {first.seconds / second.seconds:.2f} in seconds, {ratio:.2f} in CPU", flush=True)
    return first, second


def _format_requests(cost: Cost) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(cost.requests.items(), key=lambda each: -each[1]))


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.pipelines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=10, help="steps of one row each; 0 leaves them out")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the merge's source; 0 leaves it out")
    parser.add_argument("--into", type=int, default=200_000, help="rows of the table that is merged into")
    parser.add_argument(
        "--facts", type=int, default=5_000_000, help="rows of the table that days are added to; 0 leaves it out"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of which the middle one stands, after one to warm up")
    parser.add_argument("--again", type=int, default=5, help="rounds of check and plan again; 0 leaves them out")
    parser.add_argument("--at-once", type=int, help="steps of a run at the same time; by default as a run does")
    parser.add_argument("--memory", default="2g", help="of Spark's Java machine")
    parsed_arguments = parser.parse_args(arguments)
    if (
        parsed_arguments.rounds < 1
        or min(parsed_arguments.steps, parsed_arguments.rows, parsed_arguments.facts) < 0
        or (parsed_arguments.rows and parsed_arguments.into < parsed_arguments.rows)
    ):
        parser.error("at least one round, no negative numbers, and --into of at least --rows")
    return parsed_arguments


def _merges(bench: Bench, arguments: argparse.Namespace) -> None:
    words = f"merge of {arguments.rows:,} into {arguments.into:,}"
    costs = compared(bench, words, merge(bench, rows=arguments.rows, into=arguments.into), rounds=arguments.rounds)
    each = zip(("runner", "plain"), costs, strict=True)
    print("  rows/s: " + ", ".join(f"{word} {arguments.rows / cost.seconds:,.0f}" for word, cost in each))


def main() -> int:
    """Measure and print."""
    arguments = options()
    with opened(arguments.memory, at_once=arguments.at_once) as bench:
        if arguments.steps:
            runner, _ = compared(
                bench, f"{arguments.steps} steps", trivial(bench, steps=arguments.steps), rounds=arguments.rounds
            )
            print(f"  requests a step: {runner.asked / arguments.steps:.1f}")
        if arguments.rows:
            _merges(bench, arguments)
        if arguments.facts:
            partial, full, come = day(bench, facts=arguments.facts)
            name = f"1 % day of {arguments.facts:,}"
            compared(bench, name, (partial, full), rounds=arguments.rounds, words=("day", "full"), before=come)
        if arguments.again:
            again(bench, steps=max(1, arguments.steps), rounds=arguments.again)
        bench.client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
