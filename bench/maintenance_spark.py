# SPDX-License-Identifier: Apache-2.0
"""Costs of table maintenance with a server and Spark: many tables in one application, and concurrent writers.

May import the tests' nodes and PyIceberg. The server is a process; a node in this process over the same store runs the
rounds that the server's tasks run every five and ten minutes. CPU of process trees.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from bench.cpu import TreeCpu, descendants
from bench.figures import Figure
from bench.load import Generator, head_load
from bench.maintenance_node import add_policies, task_context
from bench.workers import LIMNOS, served
from limnos.rooms.maintenance.formats.rewrites import OVERWRITES_PER_REWRITE
from limnos.rooms.maintenance.services.rewriting import planning
from limnos.store import sql
from limnos.store.sql import Row, Sql
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import assess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from tests.http.driver import DriverNode

SMALL_FILES: Final = 15
TRIGGER: Final = 6
"""The number of small files from which a table needs compaction."""
INTERVAL_MS: Final = 30_000
"""The time between two compactions of a table with writers; the product waits an hour."""
QUERIES: Final = 3
QUERIED_TABLES: Final = 2
"""Number of queried tables for each kind of writer."""
WRITERS: Final = 4
"""Number of concurrent statements, each on its own table."""
_WRITERS_SETTINGS: Final = {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}
"""Settings that make statements on small tables cheaper, so that writers execute more of them."""
ENDED_WITHIN_S: Final = 1_200
_STATES: Final = Sql("SELECT state, count(*) FROM maintenance_operation WHERE kind = 'compact' GROUP BY state")
_FLAGS: Final = ("--idle", "1", "--output", "json")
_MAINTENANCE: Final = "/api/limnos/v1/metalakes/lake/catalogs/main/maintenance"


@dataclass
class TreeFigures:
    """CPU seconds and peak resident memory in MiB of a process tree, and the programs in it."""

    cpu_s: float = 0.0
    rss_mb: float = 0.0
    programs: set[str] = field(default_factory=set)

    def watch(self, pid: int, over: threading.Event) -> None:
        """Sample repeatedly until it is stopped."""
        clock = TreeCpu([pid])
        while not over.wait(0.2):
            self.cpu_s = clock.look() / 1e9
            below = descendants([pid])
            self.rss_mb = max(self.rss_mb, sum(_rss_mb(each) for each in below))
            self.programs |= {_program(each) for each in below}


def _rss_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0)


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@contextmanager
def watched(pid: int) -> Iterator[TreeFigures]:
    """Watch a process tree for the body of a `with`."""
    figures, over = TreeFigures(), threading.Event()
    thread = threading.Thread(target=figures.watch, args=(pid, over), daemon=True)
    thread.start()
    try:
        yield figures
    finally:
        over.set()
        thread.join()


def work(uri: str, token: str, *flags: str) -> tuple[dict[str, int], TreeFigures]:
    """Run an executor until it is idle. Returns its counts and measurements."""
    command = [*LIMNOS, "maintenance", "work", "--uri", uri, *_FLAGS, *flags]
    environment = {**os.environ, "LIMNOS_TOKEN": token}
    pipe = subprocess.PIPE
    silent = subprocess.DEVNULL
    with (
        subprocess.Popen(command, env=environment, stdout=pipe, stderr=silent, text=True) as process,
        watched(process.pid) as figures,
    ):
        out, _ = process.communicate()
    assert process.returncode == 0, f"the executor ended with {process.returncode}"
    return json.loads(out), figures


def plan(node: DriverNode) -> int:
    """Assess changed tables and plan rewrites. Returns how many operations wait because of this round."""
    assess(node)
    return node.runner.run(planning.plan_run(task_context(node), node.built.services, after={}))[1]


def measure_many(folder: Path, *, tables: int, master: str) -> list[Figure]:
    """Measure a round over many tables, a fifth of which need compaction, then a round that finds nothing."""
    needy = max(1, tables // 5)
    with served(folder, 1) as (pid, uri, _):
        token = (folder / "admin.token").read_text().strip()
        make_tables(uri, token, folder, names={f"t{each}": each < needy for each in range(tables)})
        with wire.node_over(folder) as node:
            add_policies(node)
            planned = plan(node)
            with watched(pid) as server:
                done, spark = work(uri, token, "--master", master)
            planned_again = plan(node)
            done_again, again = work(uri, token, "--master", master)
    # The server may have planned a part of them itself while the tables were created.
    assert planned <= needy, planned
    assert done == {"done": needy}, done
    return [
        Figure(f"{tables} tables, {needy} compacted: applications of Spark", int("java" in spark.programs), "", 1),
        Figure("  CPU of the executor with Java, without 15 s, a table", (spark.cpu_s - 15) / needy, "s", 0.5),
        Figure("  its resident memory", spark.rss_mb, "MiB", 2048),
        Figure("  CPU of the server a table", server.cpu_s * 1000 / needy, "ms", 100),
        Figure("  second round: operations", planned_again + sum(done_again.values()), "", 0),
        Figure("  second round: applications of Spark", int("java" in again.programs), "", 0),
    ]


def make_tables(uri: str, token: str, folder: Path, *, names: dict[str, bool]) -> None:
    """Create tables with PyIceberg: those that need compaction with many small files, the others with one file."""
    import pyarrow as pa
    from pyarrow import parquet
    from pyiceberg.catalog.rest import RestCatalog

    catalog = RestCatalog("bench", uri=f"{uri}/iceberg", warehouse="lake/main", token=token)
    catalog.create_namespace("a")
    rows = pa.table({"id": pa.array(range(200), pa.int64()), "word": pa.array(["word"] * 200)})
    for name, is_needy in names.items():
        table = catalog.create_table(f"a.{name}", rows.schema)
        place = wire.local(table.location()) / "data"
        place.mkdir(parents=True, exist_ok=True)
        files = [place / f"{number}.parquet" for number in range(SMALL_FILES if is_needy else 1)]
        for each in files:
            parquet.write_table(rows, each)
        table.add_files([each.as_uri() for each in files], check_duplicate_files=False)


_WRITES: Final = {
    "append": "INSERT INTO {table} VALUES ({number}, 'b')",
    "copy-on-write": "UPDATE {table} SET word = 'c' WHERE id = {number} % 5",
    "merge-on-read": "UPDATE {table} SET word = 'c' WHERE id = {number} % 5",
}


def measure_writers(folder: Path, *, tables: int, seconds: float) -> list[Figure]:
    """Measure statements of writers, of each kind on a third of the tables, while an executor runs.

    Rounds of assessment and planning follow each other immediately, so that maintenance is as frequent as possible.
    """
    from limnos.spark import session

    planning.INTERVAL_MS = INTERVAL_MS  # type: ignore[misc]

    kinds = list(_WRITES)
    names = {f"w{each}": kinds[each % len(kinds)] for each in range(tables)}
    counts = {kind: [0, 0] for kind in kinds}
    most = dict.fromkeys(kinds, 0)
    with served(folder, 1) as (_, uri, _), wire.node_over(folder) as node:
        token = (folder / "admin.token").read_text().strip()
        add_policies(node)
        spark = session(uri, token=token, master="local[2]", config=_WRITERS_SETTINGS)
        spark.sparkContext.setLogLevel("OFF")
        spark.sql("CREATE NAMESPACE main.a")
        for name, kind in names.items():
            _writers_table(spark, f"main.a.{name}", kind=kind)
        command = [*LIMNOS, "maintenance", "work", "--uri", uri, "--idle", "3600"]
        environment = {**os.environ, "LIMNOS_TOKEN": token}
        silent = subprocess.DEVNULL
        with subprocess.Popen(command, env=environment, stdout=silent, stderr=silent) as executor:
            try:
                _run_writers(spark, node, names=names, seconds=seconds, counts=counts, most=most)
            finally:
                executor.terminate()
        print(f"writers beside maintenance for {seconds:g} s: statements {counts}", flush=True)
        print(f"  compactions: {_states(node)}; most files of a table: {most}", flush=True)
        before = _reading(spark, node, names)
        _compact_all(node, uri, token, names=names)
        after = _reading(spark, node, names)
        spark.stop()
    for kind in kinds:
        print(f"  {kind}: files of a table and CPU of a query {before[kind]}; after a compaction of all {after[kind]}")
    failed = [
        Figure(f"writers beside: failed {kind} statements", 100 * failed / max(1, done_ + failed), "%", aim)
        for (kind, (done_, failed)), aim in zip(counts.items(), (0, 1, 1), strict=True)
    ]
    overwritten = TRIGGER + 2 * OVERWRITES_PER_REWRITE * 5 // 4  # two files each, plus a quarter
    return [
        *failed,
        Figure("  most files of a table with appends", most["append"], "", 3 * TRIGGER),
        Figure("  most files of a table with copy-on-write", most["copy-on-write"], "", 3 * TRIGGER),
        Figure("  most files of a table with merge-on-read", most["merge-on-read"], "", overwritten),
    ]


def _run_writers(
    spark: SparkSession,
    node: DriverNode,
    *,
    names: dict[str, str],
    seconds: float,
    counts: dict[str, list[int]],
    most: dict[str, int],
) -> None:
    """Let writers execute statements on all tables in turn, and count statements and files.

    Each minute a line has the counts, and the maximum number of files of each kind of table since the last line.
    """
    began, number, printed, recent = time.monotonic(), 0, 0, dict.fromkeys(most, 0)
    with ThreadPoolExecutor(WRITERS) as pool:
        while (passed := time.monotonic() - began) < seconds:
            plan(node)
            number += 1
            write = partial(_write, spark, number=number)
            for kind, failed in zip(names.values(), pool.map(write, names, names.values()), strict=True):
                counts[kind][failed] += 1
            for name, kind in names.items():
                recent[kind] = max(recent[kind], _file_count(node, name))
                most[kind] = max(most[kind], recent[kind])
            if passed >= printed + 60:
                printed = int(passed)
                print(f"  {printed} s: {number} statements a table; most files {recent}; {_states(node)}", flush=True)
                recent = dict.fromkeys(most, 0)


def _file_count(node: DriverNode, name: str) -> int:
    """Return the number of data and delete files of a table, from its last snapshot."""
    metadata: Any = wire.metadata_of(node, "a", name)
    summary = metadata["snapshots"][-1]["summary"]
    return int(summary["total-data-files"]) + int(summary["total-delete-files"])


def _compact_all(node: DriverNode, uri: str, token: str, *, names: Iterable[str]) -> None:
    """Compact all tables. Operations that the ended executor had leased wait until their leases expire."""
    for name in names:
        node.done("POST", f"{_MAINTENANCE}/operations", {"table": f"a.{name}", "operation": "compact"})
    until = time.monotonic() + ENDED_WITHIN_S
    while _open(node):
        assert time.monotonic() < until, f"operations did not end: {_states(node)}"
        work(uri, token)


def _open(node: DriverNode) -> int:
    states = _states(node)
    return states.get("waiting", 0) + states.get("running", 0)


def _states(node: DriverNode) -> dict[str, int]:
    """Return the number of compactions in each state."""
    rows = node.runner.run(node.built.services.gate.look_up(_states_read))
    return {str(state): int(count) for state, count in rows}  # type: ignore[call-overload]


def _states_read() -> sql.Load[list[Row]]:
    return (yield _STATES, {})


def _writers_table(spark: SparkSession, name: str, *, kind: str) -> None:
    mode = "merge-on-read" if kind == "merge-on-read" else "copy-on-write"
    properties = f"'format-version'='2', 'write.update.mode'='{mode}'"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, word STRING) USING iceberg TBLPROPERTIES ({properties})")
    spark.range(TRIGGER).repartition(TRIGGER).selectExpr("id", "'a' AS word").writeTo(name).append()


def _write(spark: SparkSession, name: str, kind: str, *, number: int) -> int:
    """Execute a writer's statement. Returns 1 if it failed, else 0."""
    try:
        spark.sql(_WRITES[kind].format(table=f"main.a.{name}", number=number))
    except Exception as error:
        print(f"{kind}: {str(error)[:300]}")
        return 1
    return 0


def _reading(spark: SparkSession, node: DriverNode, names: dict[str, str]) -> dict[str, str]:
    """Return the maximum number of files of a table, and the maximum CPU of a query, by kind of writer. The best of
    some queries counts.

    The CPU is that of this process and of its Java process, which is otherwise idle.
    """
    clock = TreeCpu([os.getpid(), *_java(os.getpid())], below=False)
    figures: dict[str, tuple[int, float]] = {}
    for name, kind in list(names.items())[: QUERIED_TABLES * len(_WRITES)]:
        query = f"SELECT count(*), sum(id) FROM main.a.{name}"
        spark.sql(f"REFRESH TABLE main.a.{name}")
        spark.sql(query).collect()
        used = []
        for _ in range(QUERIES):
            began = clock.look()
            spark.sql(query).collect()
            used.append((clock.look() - began) / 1e6)
        known = figures.get(kind, (0, 0.0))
        figures[kind] = max(known[0], _file_count(node, name)), max(known[1], min(used))
    return {kind: f"{files} files, {spent:.0f} ms" for kind, (files, spent) in figures.items()}


def _java(pid: int) -> list[int]:
    """Return the Java processes that a process has started, without other programs."""
    return [each for each in descendants([pid]) if _program(each) == "java"]


def measure_heads(folder: Path, *, copied: int) -> list[Figure]:
    """Measure HEAD of a table while the server assesses all tables after its start, and afterwards."""
    with served(folder, 1) as (_, uri, _):
        token = (folder / "admin.token").read_text().strip()
        p99: dict[bool, list[float]] = {True: [], False: []}
        parts = urlsplit(uri)
        table = "/iceberg/v1/lake.main/namespaces/a/tables/expired"
        load = head_load(parts.hostname or "", parts.port or 0, token=token, path=table)
        before = 0
        until = time.monotonic() + 150
        with Generator() as generator:
            while (before < copied or len(p99[False]) < 5) and time.monotonic() < until:
                answered, _ = generator.run(load, [])
                now = _assessed(uri, token)
                p99[0 < now != before].append(answered.p99_ms)
                before = now
    if not p99[True] or not p99[False]:
        return []
    return [Figure("HEAD p99 beside an assessment against idle", max(p99[True]) / _median(p99[False]), "times", 3)]


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _assessed(uri: str, token: str) -> int:
    """Return how many tables the server has assessed."""
    from bench.workers import ask

    for line in ask(uri, token, "/metrics").decode().splitlines():
        if line.startswith('limnos_maintenance_assessed_total{outcome="assessed"}'):
            return int(float(line.split()[-1]))
    return 0
