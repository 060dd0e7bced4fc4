# SPDX-License-Identifier: Apache-2.0
"""Costs of table maintenance: CPU of assessments, of manifests, and of an expiry. `python -m bench.maintenance`.

A node runs in this process over a SQLite store in a temporary directory. Worker processes are replaced by this process,
so that one clock has all of their work. CPU time of one run, not wall time. With `--spark` a server process and an
executor are measured, too, which takes half an hour; `--spark-tables 50 --writer-s 60` are smaller sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bench.figures import Figure
from bench.maintenance_bulk import measure_bulk
from bench.maintenance_lance import measure_lance
from bench.maintenance_node import measure_commits, measure_growth, measure_orphans
from bench.maintenance_spark import measure_heads, measure_many, measure_writers
from limnos.access.authentication import Credential
from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import DATABASE_FILE, build
from limnos.config.settings import ServerSection, Settings
from limnos.model.permits import upkeep_permit
from limnos.rooms.maintenance.formats.assessment import read_small_files
from limnos.rooms.maintenance.services.assessing import ASSESS_TABLES, AssessmentPosition, AssessmentRound
from limnos.rooms.maintenance.services.expiry import table_expire
from limnos.services.catalog.namespaces import namespace_create
from limnos.services.iceberg.commits import table_commit
from limnos.services.iceberg.tables import table_create
from limnos.services.request.context import Context
from limnos.services.request.offloaded_work import InlineOffloader
from limnos.services.request.request_scope import RequestScope
from tests.iceberg_manifests import data_file, entry, manifest
from tests.inprocess import new_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limnos.app.node_builder import ServerNode

SNAPSHOTS: Final = 15
EXPIRED: Final = ("expired", "expired1", "expired2", "expired3", "expired4")
"""Tables whose snapshots expire: the first one in a process costs about twice as much as each later one."""
DAY_MS: Final = 86_400_000
MAIN: Final = RequestScope("lake", "main")


def _snapshot(number: int, *, location: str, at_ms: int) -> list[object]:
    """Return the updates that add a snapshot with totals of a healthy table."""
    summary = {"operation": "append", "total-data-files": "4", "total-files-size": "1000", "total-delete-files": "0"}
    snapshot = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": at_ms,
        "schema-id": 0,
        "summary": summary,
        "manifest-list": f"{location}/metadata/snap-{number}-1-00000000-0000-0000-0000-000000000000.avro",
        **({"parent-snapshot-id": number - 1} if number > 1 else {}),
    }
    point = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
    return [{"action": "add-snapshot", "snapshot": snapshot}, point]


async def _make_tables(node: ServerNode, snapshots: dict[str, int], *, first_ms: int) -> None:
    ctx = Context(node.services, Credential(user="admin"), "bench")
    await namespace_create(ctx, MAIN, levels=("a",), properties={})
    for name, count in snapshots.items():
        document, _ = await table_create(ctx, MAIN, namespace=("a",), request=new_table(name))
        for number in range(1, count + 1):
            updates = _snapshot(number, location=document.location, at_ms=first_ms + number)
            await table_commit(ctx, MAIN, namespace=("a",), name=name, requirements=[], updates=updates)


def _copy_table(database: Path, *, copies: int) -> int:
    """Copy a table's rows the given number of times. Returns the size of its document in bytes."""
    with closing(sqlite3.connect(database)) as connection, connection:
        row = connection.execute("SELECT node_id FROM document ORDER BY node_id LIMIT 1").fetchone()
        (first,) = connection.execute("SELECT next_id FROM store").fetchone()
        for table, key in (("node", "id"), ("document", "node_id")):
            columns = [each[1] for each in connection.execute(f"PRAGMA table_info({table})")]
            changed = {
                key: "c.n",
                "name": "'copy' || c.n",
                "location": "location || c.n",
                "metadata_location": "metadata_location",
            }
            values = ", ".join(changed.get(each, each) for each in columns)
            connection.execute(
                f"WITH RECURSIVE c (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM c WHERE n < {first + copies - 1})"
                f" INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM c, {table} WHERE {table}.{key} = ?",
                row,
            )
        connection.execute("UPDATE store SET next_id = ?", (first + copies,))
        return int(connection.execute("SELECT min(length(body)) FROM document").fetchone()[0])


def _rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _measure(node: ServerNode, *, tables: int) -> list[Figure]:
    """Measure assessments of all tables and of none, and an expiry."""
    services, figures = node.services, []
    services.offloader = InlineOffloader()
    rss = _rss_mb()
    round_ = AssessmentRound(services, tables_max=tables + 100)
    began = time.process_time()
    at = await round_.run(AssessmentPosition())
    spent = time.process_time() - began
    figures.append(Figure(f"assessment of {round_.tables} tables", spent, "s", 0.5 * tables / 10_000))
    figures.append(Figure("  for each table", spent * 1000 / round_.tables, "ms", 0.05))
    figures.append(Figure("  growth of resident memory", _rss_mb() - rss, "MiB", 64))
    began = time.process_time()
    await AssessmentRound(services, tables_max=tables).run(at)
    figures.append(Figure("a round in which nothing changed", (time.process_time() - began) * 1000, "ms", 5))
    position = msgspec.json.encode(at).decode()
    await services.store.submit(upkeep_permit("bench"), lambda tx: tx.tasks.create(ASSESS_TABLES, position))
    ctx = Context(services, Credential(user="admin"), "bench")
    spent_ms = []
    for name in EXPIRED:
        began = time.process_time()
        result = await table_expire(ctx, MAIN, path=("a", name))
        assert len(result.removed) == SNAPSHOTS - 1
        spent_ms.append((time.process_time() - began) * 1000)
    figures.append(Figure(f"expiry of {SNAPSHOTS} snapshots", statistics.median(spent_ms), "ms", 5))
    return figures


def _measure_manifests() -> list[Figure]:
    """Measure reading the manifests of a table of 10,000 files, and of one of five small manifests."""
    small = [manifest([entry(data_file(f"file:///t/{n}.parquet")) for n in range(4)])] * 5
    large = [manifest([entry(data_file(f"file:///t/{n}.parquet")) for n in range(1000)])] * 10
    figures = []
    for name, manifests, unit, scale, aim in (
        ("manifests of a table of 5 manifests", small, "ms", 1000, 5),
        ("manifests of a table of 10,000 files", large, "s", 1, 0.7),
    ):
        read_small_files(manifests, target_bytes=1 << 27)
        began = time.process_time()
        read_small_files(manifests, target_bytes=1 << 27)
        figures.append(Figure(name, (time.process_time() - began) * scale, unit, aim))
    return figures


ELSEWHERE: Final = """measured by tests, each of which fails if the figure is missed:
  live files lost in 10,000 random steps: 0      make test-maintenance
  orphans of killed writers left: 0              tests/rooms/maintenance/services/orphans, tests/faults/test_orphans.py
  pinned, planned, marked snapshots expired: 0   tests/rooms/maintenance/services/test_model.py, test_expiry.py
  a worker killed, no token shown                tests/integration/test_maintenance_executors.py
  policies against a model of ten lines          tests/rooms/maintenance/services/test_policies.py"""


def main() -> int:
    """Measure and print. Returns 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.maintenance", description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=10_000, help="of the table whose growth is measured")
    parser.add_argument("--snapshots", type=int, default=8, help="of each table; from 11 on each has a finding")
    parser.add_argument("--registered", type=int, default=2_000, help="tables, each with a request of its own")
    parser.add_argument("--exported", type=int, default=100_000, help="tables of the tree that is exported")
    parser.add_argument("--spark", action="store_true", help="measure also what needs Spark")
    parser.add_argument("--spark-tables", type=int, default=500, help="of which a fifth needs compaction")
    parser.add_argument("--spark-master", default="local[2]")
    parser.add_argument("--writer-tables", type=int, default=20, help="to which writers write beside maintenance")
    parser.add_argument("--writer-s", type=float, default=600, help="for how many seconds")
    parser.add_argument("--lance-fragments", type=int, default=1_000, help="of the Lance table that is maintained")
    parser.add_argument("--only-lance", action="store_true", help="measure only the maintenance of a Lance table")
    parser.add_argument("--only-spark", action="store_true", help="measure only what needs Spark")
    arguments = parser.parse_args()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", ignore_cleanup_errors=True) as folder:
        if arguments.only_lance:
            figures += _printed(measure_lance(Path(folder, "lance"), fragments=arguments.lance_fragments))
        elif not arguments.only_spark:
            figures += _measure_server(Path(folder), arguments)
        if arguments.spark or arguments.only_spark:
            many = measure_many(Path(folder, "many"), tables=arguments.spark_tables, master=arguments.spark_master)
            writers = measure_writers(
                Path(folder, "writers"), tables=arguments.writer_tables, seconds=arguments.writer_s
            )
            figures += _printed([each._replace(name=f"{each.name} (Spark)") for each in (*many, *writers)])
    if not arguments.spark and not arguments.only_spark:
        print("not measured without --spark: many tables in one application; writers beside maintenance")
    print(ELSEWHERE)
    return int(not all(each.is_met for each in figures))


def _measure_server(folder: Path, arguments: argparse.Namespace) -> list[Figure]:
    """Measure everything that needs no Spark."""
    with _copies(folder / "assessed", arguments) as (runner, node):
        figures = _printed(runner.run(_measure(node, tables=arguments.tables)) + _measure_manifests())
    figures += _printed(measure_commits(folder / "commits"))
    figures += _printed(measure_orphans(folder / "orphans"))
    figures += _printed(measure_lance(folder / "lance", fragments=arguments.lance_fragments))
    figures += _printed(measure_growth(folder / "growth", commits=arguments.commits))
    bulk = measure_bulk(folder / "bulk", registered=arguments.registered, exported=arguments.exported)
    figures += _printed(bulk)
    with _copies(folder / "heads", arguments):
        pass
    return figures + _printed(measure_heads(folder / "heads", copied=arguments.tables))


def _printed(figures: list[Figure]) -> list[Figure]:
    """Print values as soon as they are measured. Returns them."""
    for each in figures:
        print(each.line, flush=True)
    return figures


@contextmanager
def _copies(folder: Path, arguments: argparse.Namespace) -> Iterator[tuple[asyncio.Runner, ServerNode]]:
    """Return a node over a store with many copies of a table."""
    folder.mkdir(mode=0o700)
    settings = Settings(server=ServerSection(data=str(folder)))
    with asyncio.Runner() as runner:
        node = build(settings)
        runner.run(bootstrap(node.services, settings))
        first_ms = node.services.store.time.now_ms() - 30 * DAY_MS
        snapshots = {"copied": arguments.snapshots} | dict.fromkeys(EXPIRED, SNAPSHOTS)
        runner.run(_make_tables(node, snapshots, first_ms=first_ms))
        size = _copy_table(folder / DATABASE_FILE, copies=arguments.tables)
        print(
            f"{arguments.tables} tables with {arguments.snapshots} snapshots and documents of {size} bytes, SQLite,"
            " CPU of one process"
        )
        yield runner, node
        runner.run(node.close())


if __name__ == "__main__":
    sys.exit(main())
