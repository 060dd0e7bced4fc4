# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.peers`: Limnos beside Iceberg's reference server, in one run, by number of objects.

Both serve Iceberg REST from SQLite with equal names: Limnos with access control on, the reference server, which has
none, in Java. Rounds alternate between them, and the best one of each counts, as CPU µs of the whole server per answer.
The reference server's tables are rows that name one metadata file; each commit writes a file of its own. Prints the
table of docs/reference/benchmarks.md. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import tempfile
import urllib.request
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import seed
from bench.cpu import TreeCpu
from bench.load import Generator, Load, LoadError
from bench.measure import prepare, say
from bench.operations import OPERATIONS, PREFIX, Case, new_table
from bench.search import wait_until_idle
from bench.stores import Place, running_server
from conformance.kit.jars import cache_directory, class_path
from conformance.kit.reference import running_reference
from limnos.spark.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.operations import Operation

KEYS: Final = ("load-6k", "head", "list-1000-schema", "create-table", "commit", "create-namespace")
"""The compared operations. The callers of Limnos have single privileges, as in `make bench`."""
SIZES: Final = (1_000, 100_000, 1_000_000)
CONNECTIONS: Final = 16
WARM_S: Final = 8.0
"""Unmeasured seconds of each operation: a Java server takes twice its later CPU before its code is compiled."""
ONCE_MAX: Final = 320
"""Measured requests of operations that cannot be repeated."""
WARM_ONCE_EACH: Final = 40
LIMNOS, REFERENCE = "Limnos", "Iceberg's reference server"


@dataclass(frozen=True, slots=True)
class Peer:
    """A running server of the comparison: its port, its process, and the prefix of its paths."""

    name: str
    port: int
    pid: int
    prefix: str

    def requests(self, operation: Operation, case: Case) -> tuple[bytes, ...]:
        """Return the operation's requests with the peer's paths."""
        return tuple(
            request.replace(f"{PREFIX}/".encode(), f"{self.prefix}/".encode(), 1)
            for request in operation.requests(case)
        )


@dataclass(frozen=True, slots=True)
class PeerCost:
    """The best round of an operation: CPU µs of the server for each answer; None if the server ended the requests."""

    operation: str
    objects: int
    peer: str
    cpu_us: float | None


def names_of(shape: seed.Shape) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of each table of a planted reference server: those of the operations, then others."""
    yield from (
        (f"hot{space}", f"t{table}") for space in range(seed.HOT_NAMESPACES) for table in range(seed.HOT_TABLES)
    )
    yield from ((f"list{seed.LISTS[0]}", seed.list_table(table)) for table in range(seed.LISTS[0]))
    yield from (("commits", f"t{table}") for table in range(seed.COMMIT_TABLES))
    yield from ((f"n{table // seed.LEAF_TABLES}", f"t{table % seed.LEAF_TABLES}") for table in range(shape.nodes))


def plant_reference(file: Path, shape: seed.Shape) -> None:
    """Fill the reference server's SQLite file with copies of its one table, while no server runs."""
    with closing(sqlite3.connect(file)) as names, names:
        names.row_factory = sqlite3.Row
        row = dict(names.execute("SELECT * FROM iceberg_tables").fetchone())
        space = dict(names.execute("SELECT * FROM iceberg_namespace_properties").fetchone())
        columns, marks = ", ".join(row), ", ".join("?" * len(row))
        tables = list(names_of(shape))
        names.executemany(
            f"INSERT INTO iceberg_tables ({columns}) VALUES ({marks})",
            (tuple({**row, "table_namespace": where, "table_name": name}.values()) for where, name in tables),
        )
        spaces = {where for where, _ in tables} | {"made", "siblings"}
        spaces |= {f"siblings.s{number:05}" for number in range(seed.SIBLINGS)}
        names.executemany(
            f"INSERT INTO iceberg_namespace_properties ({', '.join(space)}) VALUES ({', '.join('?' * len(space))})",
            (tuple({**space, "namespace": each}.values()) for each in sorted(spaces)),
        )


def post(uri: str, body: object) -> None:
    """Send a request to the reference server."""
    data = json.dumps(body).encode()
    urllib.request.urlopen(urllib.request.Request(uri, data, {"Content-Type": "application/json"}), timeout=60).close()


def reference(stack: ExitStack, shape: seed.Shape, folder: Path) -> Peer:
    """Start a filled reference server."""
    cache = cache_directory()
    java = find_java(cache=cache).home / "bin" / "java"
    archives = os.pathsep.join(str(path) for path in class_path(cache))
    work, log = folder / "reference", folder / "reference.log"
    with running_reference(java, archives, work=work, log=log) as empty:
        post(f"{empty.uri}/v1/namespaces", {"namespace": [seed.TEMPLATE], "properties": {"owner": "bench"}})
        post(f"{empty.uri}/v1/namespaces/{seed.TEMPLATE}/tables", new_table("medium", width=50))
    plant_reference(work / "names.db", shape)
    server = stack.enter_context(running_reference(java, archives, work=work, log=log))
    return Peer(REFERENCE, int(server.uri.rpartition(":")[2]), server.pid, "/v1")


def limnos(stack: ExitStack, shape: seed.Shape, folder: Path) -> Peer:
    """Start a filled Limnos server."""
    place = Place(folder / "limnos", None)
    prepare(place, shape, database_pid=None)
    server = stack.enter_context(running_server(place, database_pid=None))
    wait_until_idle(server)  # the first index of words, which the reference server has not
    return Peer(LIMNOS, server.port, server.pids[0], PREFIX)


def cost(generator: Generator, peer: Peer, operation: Operation, *, shape: seed.Shape, seconds: float) -> float:
    """Return the CPU µs per answer of one round."""
    case = Case(host=f"127.0.0.1:{peer.port}", shape=shape, connections=CONNECTIONS, part=0, parts=1)
    load = Load(
        host="127.0.0.1",
        port=peer.port,
        requests=peer.requests(operation, case),
        connections=CONNECTIONS,
        once=operation.once,
        warm=WARM_ONCE_EACH,
        seconds=seconds,
        count_max=ONCE_MAX if operation.once else 10**9,
    )
    answered, (run_ns,) = generator.run(load, [TreeCpu([peer.pid])])
    return run_ns / answered.count / 1000


def measure(objects: int, operations: Sequence[Operation], *, rounds: int, seconds: float) -> Iterator[PeerCost]:
    """Measure all operations on both servers with a number of objects."""
    shape = seed.Shape(objects)
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as name, ExitStack() as stack:
        peers = (limnos(stack, shape, Path(name)), reference(stack, shape, Path(name)))
        for operation in operations:
            costs: dict[str, list[float]] = {peer.name: [] for peer in peers}
            ended: set[str] = set()
            for time_s in (WARM_S, *[seconds] * rounds):
                for peer in peers:
                    if peer.name in ended:
                        continue
                    try:
                        with Generator() as generator:
                            spent = cost(generator, peer, operation, shape=shape, seconds=time_s)
                    except LoadError as error:
                        say(f"{objects:,} {operation.key}, {peer.name}: {error}")
                        ended.add(peer.name)
                    else:
                        costs[peer.name] += [spent] if time_s != WARM_S else []
            for peer in peers:
                best = None if peer.name in ended else min(costs[peer.name])
                yield PeerCost(operation.title, objects, peer.name, best)
            say(f"{objects:,} {operation.key}: {costs}")


def table(costs: Sequence[PeerCost]) -> str:
    """Return the costs as a table in Markdown: a row for each operation, two columns for each number of objects."""
    sizes = sorted({each.objects for each in costs})
    values = {(each.operation, each.objects, each.peer): each.cpu_us for each in costs}
    lines = [
        "| CPU µs per request | " + " | ".join(f"{size:,} objects | reference | times" for size in sizes) + " |",
        "|---|" + "---|" * 3 * len(sizes),
    ]
    for title in dict.fromkeys(each.operation for each in costs):
        cells = []
        for size in sizes:
            ours, theirs = values[title, size, LIMNOS], values[title, size, REFERENCE]
            times = "" if ours is None or theirs is None else f"{theirs / ours:.0f}"
            cells += [*("no answer" if each is None else f"{each:,.0f}" for each in (ours, theirs)), times]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def heading() -> str:
    """Return the commit, the day and the machine of the run."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    cores = os.cpu_count()
    return (
        f"Commit {commit}, {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {cores} cores, load"
        f" {load}."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--objects", type=int, action="append", help="may be repeated; default 1K, 100K, 1M")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best stands")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one round")
    parser.add_argument("--operations", default=",".join(KEYS), help="keys of operations")
    options = parser.parse_args(arguments)
    chosen = {each.key: each for each in OPERATIONS}
    operations = [chosen[key] for key in options.operations.split(",")]
    costs = [
        each
        for objects in options.objects or SIZES
        for each in measure(objects, operations, rounds=options.rounds, seconds=options.seconds)
    ]
    print(f"{heading()}\n\n{table(costs)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
