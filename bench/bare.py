# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.bare`: requests on SQLite beside their own statements, executed by bare sqlite3 in one process.

In process and without sockets, over a small filled store. Printed for each kind of request: its CPU; the CPU of its
statements with the same parameters, without the server, on a copy of the file from before them; their number; and the
system calls that write to the file or its journal, which are the `syscw` of `/proc/self/io` while the statements run
again. Statements are recorded by a subclass of `sqlite3.Connection`. `--tree DIR` measures another tree of this
repository with its own interpreter, in turns with this one. It judges nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop

from bench.measure import prepare
from bench.operations import OPERATIONS, Case, Operation, request, table_path
from bench.profile import call_of
from bench.seed import Shape
from bench.stores import Place
from limnos.app.node_builder import build
from limnos.app.serving import settle_memory
from limnos.config import load
from limnos.store.backends.sqlite import SqliteSession, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.profile import Call
    from limnos.http.application import Application

Statement = tuple[int, str, Any]
"""A connection's id, a statement, and its parameters."""
NODES: Final = 1_000
WARM: Final = 300
_MADE: Final = ("create-table", "commit", "create-namespace")
RECORDED: list[Statement] = []


class Recorder(sqlite3.Connection):
    """A connection that records the statements it executes."""

    is_recording = False

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:  # noqa: ANN401 - sqlite3's own signature
        """Record and execute a statement."""
        if Recorder.is_recording:
            RECORDED.append((id(self), sql, tuple(parameters)))
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:  # type: ignore[override]  # noqa: ANN401 - likewise
        """Record and execute a statement once for each set of parameters."""
        rows = [tuple(each) for each in parameters]
        if Recorder.is_recording:
            RECORDED.extend((id(self), sql, row) for row in rows)
        return super().executemany(sql, rows)


async def send(application: Application, call: Call) -> int:
    """Send one request to the application. Returns the status."""
    statuses: list[int] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": call.body, "more_body": False}

    async def accept(message: Any) -> None:  # noqa: ANN401 - an ASGI message
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": call.method,
        "scheme": "http",
        "path": call.raw_path.decode("latin-1"),
        "raw_path": call.raw_path,
        "query_string": call.query_string,
        "root_path": "",
        "headers": list(call.headers),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {},
        "extensions": {},
    }
    await application(scope, receive, accept)
    return statuses[0]


def kinds(case: Case) -> Iterator[tuple[str, int, Iterator[Call]]]:
    """Yield the title, the status and the requests of each kind of request."""
    by_key: dict[str, Operation] = {each.key: each for each in OPERATIONS}
    for key in _MADE:
        operation = by_key[key]
        all_calls = [call_of(each) for each in operation.requests(case)]
        yield operation.title, 200, _fresh(all_calls, operation, case) if operation.once else itertools.cycle(all_calls)
        if key == "create-table":
            yield "create table whose name is taken: 409", 409, itertools.cycle(all_calls[:WARM])
    loads = [call_of(request(case, "GET", table_path(["hot0"], f"missing{i}"), user="reader")) for i in range(WARM)]
    yield "load of a missing table: 404", 404, itertools.cycle(loads)
    body = {"namespace": ["refused"]}
    refused = request(case, "POST", "/iceberg/v1/lake.main/namespaces", user="reader", body=body)
    yield "create namespace without the right: 403", 403, itertools.cycle([call_of(refused)])


def _fresh(calls: list[Call], operation: Operation, case: Case) -> Iterator[Call]:
    """Yield requests of which none is repeated."""
    while True:
        yield from calls
        calls = [call_of(each) for each in operation.requests(case)]


async def cost_us(application: Application, calls: Iterator[Call], *, status: int, count: int) -> float:
    """Send requests one after the other. Returns the CPU for each, in microseconds, of the best of five parts."""
    costs = []
    for _ in range(5):
        before = time.process_time_ns()
        for call in itertools.islice(calls, count // 5):
            answered = await send(application, call)
            if answered != status:
                raise SystemExit(f"bench: {answered} for {call.method} {call.raw_path!r}, not {status}")
        costs.append((time.process_time_ns() - before) / (count // 5) / 1000)
    return min(costs)


async def recorded(application: Application, calls: Iterator[Call], *, status: int, count: int) -> float:
    """Send requests and record their statements. Returns the median of their numbers: work of the node itself may run
    beside some of the requests.
    """
    numbers = []
    RECORDED.clear()
    Recorder.is_recording = True
    for call in itertools.islice(calls, count):
        before = len(RECORDED)
        answered = await send(application, call)
        if answered != status:
            raise SystemExit(f"bench: {answered} for {call.method} {call.raw_path!r}, not {status}")
        numbers.append(len(RECORDED) - before)
    Recorder.is_recording = False
    return statistics.median(numbers)


def writes() -> int:
    """Return the number of system calls of this process that write."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("syscw:"))


def replayed(file: Path, statements: list[Statement], *, count: int) -> tuple[float, float]:
    """Execute the statements of `count` requests on a file. Returns the CPU of one, and its number of writes."""
    connections: dict[int, sqlite3.Connection] = {}
    for key in {each[0] for each in statements}:
        connections[key] = connect(file)
        SqliteSession(connections[key])  # sets up a writer: other trees do it otherwise
    writes_before, before = writes(), time.process_time_ns()
    for key, sql, parameters in statements:
        connections[key].execute(sql, parameters).fetchall()
    spent = (time.process_time_ns() - before) / count / 1000
    write_count = (writes() - writes_before) / count
    for connection in connections.values():
        connection.close()
    return spent, write_count


def copy_of(file: Path, folder: Path) -> Path:
    """Copy a store's file as it is now."""
    target = folder / f"copy-{time.monotonic_ns()}.db"
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(target)) as copied:
        source.backup(copied)
        copied.execute("PRAGMA journal_mode = WAL")
    return target


async def measure(place: Place, folder: Path, *, requests: int) -> dict[str, tuple[float, float]]:
    """Measure and print all kinds of requests on one store. Returns the numbers of statements and of writes of each."""
    counts = {}
    settings = load(
        flags={"server.data": str(place.data), "access.authentication": "simple"}, file=None, environ={}
    ).settings
    built = build(settings)
    case = Case(host="127.0.0.1", shape=Shape(NODES), connections=1, part=0, parts=1)
    try:
        for title, status, calls in kinds(case):
            await cost_us(built.application, calls, status=status, count=WARM)
            settle_memory()
            spent = await cost_us(built.application, calls, status=status, count=requests)
            file = copy_of(place.data / "limnos.db", folder)
            number = await recorded(built.application, calls, status=status, count=requests)
            bare, write_count = replayed(file, list(RECORDED), count=requests)
            counts[title] = number, write_count
            print(f"{title:42} {spent:9.0f} {bare:9.0f} {number:11.1f} {write_count:9.1f}", flush=True)
            for each in folder.glob("copy-*"):
                each.unlink()
        return counts
    finally:
        await built.close()


def run(requests: int) -> dict[str, tuple[float, float]]:
    """Measure this tree. Returns the numbers of statements and of writes of each kind of request."""
    logging.disable(logging.WARNING)
    plain = sqlite3.connect
    sqlite3.connect = partial(plain, factory=Recorder)  # type: ignore[assignment]
    try:
        return _run(requests)
    finally:
        sqlite3.connect = plain  # type: ignore[assignment]
        logging.disable(logging.NOTSET)


def _run(requests: int) -> dict[str, tuple[float, float]]:
    print(f"{'request':42} {'CPU µs':>9} {'bare µs':>9} {'statements':>11} {'writes':>9}", flush=True)
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", ignore_cleanup_errors=True) as name:
        place = Place(Path(name) / "data", None)
        prepare(place, Shape(NODES), database_pid=None)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(measure(place, Path(name), requests=requests))


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.bare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1_000, help="requests of each kind, measured and then recorded")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tree", type=Path, help="the folder of another tree with its own .venv")
    return parser.parse_args()


def main() -> int:
    """Measure this tree, and another one in turns with it."""
    arguments = options()
    for _ in range(arguments.rounds):
        print(f"tree {Path.cwd().name}", flush=True)
        run(arguments.requests)
        if arguments.tree is not None:
            python = arguments.tree / ".venv" / "bin" / "python"
            text = Path(__file__).read_bytes()  # read from standard input, so that it finds the modules of that tree
            command = [str(python), "-", "--requests", str(arguments.requests)]
            subprocess.run(command, cwd=arguments.tree, input=text, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
