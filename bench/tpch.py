# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.tpch [--scale 1] [--days 1] [--rounds 1]`: TPC-H by a pipeline's run, with and without
expectations, compared with plain statements.

Each side has its own server, Spark and process. Each is warmed up on small data in the same tables, then gets the base
data and each day of changes. Printed are seconds, CPU of Python, Java and server together, each as a multiple of plain
statements, the time of a run's phases, and whether all sides have the same rows at the end. With several rounds the
sides take turns, and the least of each day counts, because other work on the machine only adds. It judges nothing.
Plain statements (`bench/tpch_statements.py`) run one after the other; a run executes as many steps at once as it does
by default. Both sides write a table without a delivery once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bench.cpu import processes_s
from bench.tpch_statements import TABLES, filling, making
from bench.workers import served
from conformance.tpch.data import deliveries
from conformance.tpch.trial import Trial
from limnos import pipeline
from limnos.client import Client
from limnos.pipeline.run.options import RunOptions
from limnos.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIDES = ("plain", "without", "with")
"""The sides: plain statements, a run without expectations, a run with them."""
_SHUFFLE_AT_SCALE_1 = 24


class Side(Protocol):
    """Brings the tables to a day's state, from the files of that day."""

    def __call__(self, trial: Trial, *, day: int) -> dict[str, float]: ...


def plain(trial: Trial, *, day: int) -> dict[str, float]:
    """Use statements, one after the other. Returns seconds of slow ones by their first words."""
    spark, data, took = trial.spark, trial.directory / "data", Counter[str]()
    if day == 0:
        for statement in making(data):
            spark.sql(statement)
    columns = {table: tuple(spark.table(table).columns) for table in TABLES}
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    for statement in filling(data, day=day, columns=columns):
        began = time.perf_counter()
        spark.sql(statement)
        took[" ".join(statement.split()[:3])] += time.perf_counter() - began
    return dict(took)


def run(trial: Trial, *, ruled: bool, at_once: int) -> dict[str, float]:
    """Use a run. Returns seconds by step and phase."""
    project = pipeline.load(trial.file)
    if not ruled:
        steps = tuple(replace(step, expectations=()) for step in project.declaration.steps)
        project = replace(project, declaration=replace(project.declaration, steps=steps))
    ended = project.run(trial.spark, options=RunOptions(lease_s=600, at_once=at_once or None)).require()
    with project._client(trial.spark) as client:
        return _phases(client, ended.run)


def _phases(client: Client, run_id: str) -> dict[str, float]:
    seen = client.runs.load(run_id)
    return {f"{step.name} {phase}": value for step in seen.steps for phase, value in step.phases_s.items()}


def measured(side: str, arguments: argparse.Namespace, *, place: Path) -> None:
    """Process all days on one side, and print a line of JSON for each, and one with the tables' content."""
    work: Side = (
        plain if side == "plain" else (lambda trial, day: run(trial, ruled=side == "with", at_once=arguments.at_once))
    )
    with tempfile.TemporaryDirectory(dir=place) as temporary:
        data = Path(temporary).resolve() / "server"
        flags = ("--allow-root", temporary)
        with served(data, 1, *flags) as (pid, uri, _):
            spark = session(uri, token=(data / "admin.token").read_text().strip(), config=_settings(arguments))
            try:
                _side(spark, work, arguments, place=place, temporary=Path(temporary), pid=pid)
            finally:
                spark.stop()


def _side(
    spark: SparkSession, work: Side, arguments: argparse.Namespace, *, place: Path, temporary: Path, pid: int
) -> None:
    small = Trial(_directory(temporary / "small"), spark, deliveries=place / f"deliveries-{arguments.warm}")
    for day in range(2):
        small.deliver(day)
        work(small, day=day)
    for table in TABLES:
        spark.sql(f"DROP TABLE {table} PURGE")
    trial = Trial(_directory(temporary / "whole"), spark, deliveries=place / f"deliveries-{arguments.scale:g}")
    for day in range(arguments.days + 1):
        trial.deliver(day)
        cpu, began = processes_s([pid, os.getpid()]), time.perf_counter()
        phases = work(trial, day=day)
        seconds, cpu = time.perf_counter() - began, processes_s([pid, os.getpid()]) - cpu
        slowest = dict(sorted(phases.items(), key=lambda each: -each[1])[: arguments.slowest])
        print(json.dumps({"day": day, "seconds": seconds, "cpu_s": cpu, "phases": slowest}), flush=True)
    print(json.dumps({"rows": {table: _rows(spark, table) for table in TABLES}}), flush=True)


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


def _rows(spark: SparkSession, table: str) -> list[str]:
    """Return count and sum of hashes, with columns ordered by name."""
    columns = ", ".join(sorted(spark.table(table).columns))
    query = f"SELECT count(*), sum(CAST(xxhash64({columns}) AS DECIMAL(38, 0))) FROM {table}"
    return [str(each) for each in spark.sql(query).collect()[0]]


def _settings(arguments: argparse.Namespace) -> dict[str, str]:
    return {
        "spark.driver.memory": arguments.memory,
        "spark.log.level": "ERROR",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(4, round(_SHUFFLE_AT_SCALE_1 * arguments.scale))),
        "spark.ui.enabled": "false",
    }


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.tpch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="1 is 6 million lines")
    parser.add_argument("--days", type=int, default=1, help="of changes, after the base")
    parser.add_argument("--warm", type=float, default=0.01, help="scale of the data to warm up on")
    parser.add_argument("--memory", default="4g", help="of Spark's Java machine")
    parser.add_argument("--directory", type=Path, help="where data is kept; a temporary one else")
    parser.add_argument("--rounds", type=int, default=1, help="of all sides, in turn")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument(
        "--at-once", type=int, default=0, help="steps of a run at the same time; 0: as a run does by itself"
    )
    parser.add_argument("--slowest", type=int, default=12, help="so many of the longest phases are told")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> int:
    """Measure each side in its own process, and print."""
    arguments = options()
    if arguments.side:
        measured(arguments.side, arguments, place=arguments.directory)
        return 0
    with tempfile.TemporaryDirectory(prefix="limnos-tpch-") as temporary:
        place = (arguments.directory or Path(temporary)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        deliveries(place / f"deliveries-{arguments.scale:g}", scale=arguments.scale, days=arguments.days)
        deliveries(place / f"deliveries-{arguments.warm}", scale=arguments.warm, days=1)
        rounds: dict[str, list[list[dict[str, Any]]]] = {side: [] for side in arguments.sides}
        for _ in range(arguments.rounds):
            for side, all_lines in rounds.items():
                all_lines.append(_by_itself(side, arguments, place=place))
    _print({side: _least(all_lines) for side, all_lines in rounds.items()})
    for number in range(arguments.rounds if arguments.rounds > 1 else 0):
        base = next(iter(rounds.values()))[number]
        for side, all_lines in rounds.items():
            print(f"round {number + 1} {side:8} {_costs_text(all_lines[number][:-1], base[:-1])}")
    contents = {json.dumps(lines[-1]) for all_lines in rounds.values() for lines in all_lines}
    print("all sides have the same rows" if len(contents) == 1 else f"the sides differ: {sorted(contents)}")
    return 0


def _least(rounds: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the days of the first round with the least seconds and CPU of all rounds."""
    days = zip(*(lines[:-1] for lines in rounds), strict=True)
    return [{**lines[0], **{key: min(line[key] for line in lines) for key in ("seconds", "cpu_s")}} for lines in days]


def _costs_text(lines: list[dict[str, Any]], base: list[dict[str, Any]]) -> str:
    """Return seconds and CPU of days together, each also as a multiple of the base."""
    seconds, cpu_s = (sum(line[key] for line in lines) for key in ("seconds", "cpu_s"))
    ratios = [own / sum(line[key] for line in base) for key, own in (("seconds", seconds), ("cpu_s", cpu_s))]
    return f"{seconds:8.1f} s ({ratios[0]:.2f})  CPU {cpu_s:8.1f} s ({ratios[1]:.2f})"


def _by_itself(side: str, arguments: argparse.Namespace, *, place: Path) -> list[dict[str, Any]]:
    option_names = ("scale", "days", "warm", "memory", "slowest", "at_once")
    words = [f"--{name.replace('_', '-')}={getattr(arguments, name)}" for name in option_names]
    command = [sys.executable, "-m", "bench.tpch", f"--side={side}", f"--directory={place}", *words]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]


def _print(days_by_side: dict[str, list[dict[str, Any]]]) -> None:
    base = next(iter(days_by_side.values()))
    for side, days in days_by_side.items():
        for day, first in zip(days, base, strict=True):
            print(f"day {day['day']} {side:8} {_costs_text([day], [first])}")
            print("    " + ", ".join(f"{name} {value:.1f}" for name, value in day["phases"].items()))
    for side, days in days_by_side.items():
        print(f"days  {side:8} {_costs_text(days, base)}")


if __name__ == "__main__":
    sys.exit(main())
