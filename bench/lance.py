# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.lance`: Lance tables over REST, compared with the reference adapter (`lance.namespace.RestAdapter`).

Describe, list 1,000, a commit to a table with managed versions, an insert, a vector query: CPU of the server's whole
process tree, and time. With `--gigabytes 2` also the memory of server and worker during an insert and a read of that
size. It prints and judges nothing. Linux only.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import pyarrow as pa

from bench.cpu import TreeCpu, descendants
from bench.workers import served
from limnos.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 128
"""Length of a vector."""
BATCH_ROWS = 4096
TABLES = 1000
BODY_ROWS = 3000
"""Rows in a body: as many as the reference adapter accepts."""
CONNECTIONS = 4
DESCRIPTIONS = 1000
DETAILED = {"load_detailed_metadata": True}
QUIET_S = 4.0
"""Seconds without changes of a table before it is described."""
ADAPTER = """
import sys, time, lance.namespace
with lance.namespace.RestAdapter("dir", {"root": sys.argv[1]}, host="127.0.0.1", port=0) as adapter:
    print("ready", adapter.port, flush=True)
    sys.stdin.read()
"""
Body = dict[str, Any] | bytes | Iterator[bytes] | None
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), SIZE))])


@dataclass(frozen=True, kw_only=True)
class Side:
    """A measured server: its process, its address, and the prefixes of its identifiers and requests."""

    name: str
    pid: int
    address: str
    root: str
    home: tuple[str, ...]
    headers: dict[str, str] = field(default_factory=dict)

    def table(self, name: str) -> str:
        """Return the path of a table."""
        return f"{self.root}/table/{'$'.join((*self.home, name))}"

    def space(self) -> str:
        """Return the path of the namespace of all tables."""
        return f"{self.root}/namespace/{'$'.join(self.home) or '$'}"


@contextmanager
def adapter(folder: Path) -> Iterator[Side]:
    """Serve a directory by the reference adapter, in a separate process."""
    command = [sys.executable, "-c", ADAPTER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = next(line.split()[1] for line in process.stdout or () if line.startswith("ready"))
            yield Side(name="reference", pid=process.pid, address=f"127.0.0.1:{port}", root="/v1", home=())
        finally:
            process.kill()


@contextmanager
def ours(folder: Path) -> Iterator[Side]:
    """Serve our server with its own store and access control on."""
    with served(folder / "data", 1) as (pid, uri, _):
        token = (folder / "data" / "admin.token").read_text().strip()
        with Client(uri, token=token) as client:
            client.namespaces.create("lance.bench")
        headers = {"Authorization": f"Bearer {token}"}
        yield Side(
            name="limnos",
            pid=pid,
            address=urlsplit(uri).netloc,
            root="/lance/v1",
            home=("lance", "bench"),
            headers=headers,
        )


class RequestRefused(Exception):
    """A server refused a request."""


class Asker:
    """One keep-alive connection to a side."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._http = http.client.HTTPConnection(side.address, timeout=1800)

    def ask(self, method: str, path: str, body: Body = None, *, drain: bool = False) -> bytes:
        """Send a request and read the answer; `drain` discards it while reading. Raises Refused."""
        rows = body is not None and not isinstance(body, dict)
        kind = "application/vnd.apache.arrow.stream" if rows else "application/json"
        sent: bytes | Iterator[bytes] | None
        if body is None or isinstance(body, dict):
            sent = json.dumps(body or {}).encode() if method == "POST" else None
        else:
            sent = body
        headers = {**self.side.headers, "Content-Type": kind}
        self._http.request(
            method, path, body=sent, headers=headers, encode_chunked=rows and not isinstance(sent, bytes)
        )
        answer = self._http.getresponse()
        if answer.status >= 300:
            raise RequestRefused(f"{answer.status} for {path}: {answer.read(600)!r}")
        content = answer.read(0 if drain else None)
        while drain and answer.read(1 << 20):
            pass
        return content


class Pieces:
    """A file object that collects pyarrow's output as chunks to send."""

    closed = False

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, piece: bytes) -> int:
        """Append a chunk."""
        self.found.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """No-op: nothing is buffered."""

    def close(self) -> None:
        """No-op."""

    def taken(self) -> bytes:
        """Return the chunks since the last call."""
        data, self.found = b"".join(self.found), []
        return data


def stream(rows: int) -> Iterator[bytes]:
    """Yield rows as an Arrow stream, batch by batch. All batches have the same random vectors."""
    pieces = Pieces()
    values = pa.array(memoryview(os.urandom(BATCH_ROWS * SIZE * 2)).cast("H"), pa.uint16()).cast(pa.float32())
    vectors = pa.FixedSizeListArray.from_arrays(values, SIZE)
    with pa.ipc.new_stream(pa.PythonFile(pieces, mode="w"), SCHEMA) as writer:
        for start in range(0, rows, BATCH_ROWS):
            numbers = pa.array(range(start, min(start + BATCH_ROWS, rows)), pa.int64())
            columns = [numbers, numbers.cast(pa.string()), vectors.slice(0, len(numbers))]
            writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
            yield pieces.taken()
    yield pieces.taken()


class Memory:
    """Peak resident memory of each process of a server, sampled periodically."""

    def __init__(self, pid: int) -> None:
        self.peaks: dict[int, int] = {}
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.05):
            for pid in descendants([self._pid]):
                try:
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                except (OSError, IndexError):
                    continue
                self.peaks[pid] = max(self.peaks.get(pid, 0), pages * os.sysconf("SC_PAGE_SIZE"))

    def __str__(self) -> str:
        of_server = self.peaks.get(self._pid, 0) >> 20
        others = sorted((each >> 20 for pid, each in self.peaks.items() if pid != self._pid), reverse=True)
        return f"server {of_server} MiB, workers {', '.join(map(str, others)) or 'none'} MiB"


def many(side: Side, what: Callable[[Asker, int], object], *, count: int, connections: int) -> None:
    """Run an action repeatedly over several connections at once."""
    numbers = iter(range(count))
    lock = threading.Lock()

    def work() -> None:
        requester = Asker(side)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            what(requester, number)

    with ThreadPoolExecutor(connections) as pool:
        for each in [pool.submit(work) for _ in range(connections)]:
            each.result()


def measured(
    side: Side, what: Callable[[Asker, int], object], *, count: int, connections: int = 1
) -> tuple[float, float]:
    """Warm up, then run an action repeatedly. Returns CPU seconds per run, and wall seconds divided by the runs."""
    many(side, what, count=1, connections=1)
    many(side, what, count=connections, connections=connections)
    clock = TreeCpu([side.pid])
    used, began = clock.look(), time.perf_counter()
    many(side, what, count=count, connections=connections)
    return (clock.look() - used) / 1e9 / count, (time.perf_counter() - began) / count


def furnish(side: Side, folder: Path) -> None:
    """Create a thousand tables to list: declared on our server, folders for the reference adapter."""

    def make(requester: Asker, number: int) -> None:
        if side.name == "limnos":
            requester.ask("POST", f"{side.table(f't{number:04}')}/declare")
        else:
            (folder / f"t{number:04}.lance" / "_versions").mkdir(parents=True)

    many(side, make, count=TABLES, connections=CONNECTIONS)
    Asker(side).ask("POST", f"{side.table('docs')}/create", b"".join(stream(10)))


def requests_of(side: Side, rows: int) -> None:
    """Measure each operation, and print CPU and wall seconds."""
    docs, listed = side.table("docs"), f"{side.space()}/table/list"
    query = {"k": 10, "vector": {"single_vector": [1.0] * SIZE}, "columns": {"column_names": ["id", "_distance"]}}
    descriptions_of(side, f"{docs}/describe")
    cost = measured(side, lambda by, _: by.ask("GET", listed), count=100, connections=CONNECTIONS)
    print_cost(side, "list 1,000", cost)
    for at_once in (rows, BODY_ROWS):
        insertion(side, f"{docs}/insert?mode=append", rows=rows, at_once=at_once)
    searched = side.table("searched")
    Asker(side).ask("POST", f"{searched}/create", b"".join(stream(BODY_ROWS)))
    for _ in range(BODY_ROWS, rows, BODY_ROWS):
        Asker(side).ask("POST", f"{searched}/insert?mode=append", b"".join(stream(BODY_ROWS)))
    cost = measured(side, lambda by, _: by.ask("POST", f"{searched}/query", query), count=20)
    print_cost(side, f"query over {rows:,}", cost)


def insertion(side: Side, path: str, *, rows: int, at_once: int) -> None:
    """Measure an insert of some rows, in one body or several. A server may refuse a body for its length."""

    def insert(requester: Asker, _: int) -> None:
        for start in range(0, rows, at_once):
            requester.ask("POST", path, stream(min(at_once, rows - start)))

    word = f"insert, {at_once:,} a body"
    try:
        print_cost(side, word, measured(side, insert, count=2), rows=rows)
    except (ConnectionError, RequestRefused) as error:
        print(f"{side.name:10} {word:24} refused: {str(error)[:80]}", flush=True)


def descriptions_of(side: Side, path: str) -> None:
    """Measure descriptions with the location only and with all fields, of an unchanged and of a changing table."""
    location = json.loads(Asker(side).ask("POST", path))["location"].removeprefix("file://")
    time.sleep(QUIET_S)

    def changed(requester: Asker, _: int) -> None:
        os.utime(f"{location}/_versions")
        requester.ask("POST", path, DETAILED)

    calls: tuple[tuple[str, Callable[[Asker, int], object]], ...] = (
        ("describe", lambda by, _: by.ask("POST", path)),
        ("describe, location", lambda by, _: by.ask("POST", path, {"load_detailed_metadata": False})),
        ("describe, all of it", lambda by, _: by.ask("POST", path, DETAILED)),
        ("the same, changed", changed),
    )
    for word, what in calls:
        print_cost(side, word, measured(side, what, count=DESCRIPTIONS, connections=CONNECTIONS))


def print_cost(side: Side, word: str, cost: tuple[float, float], *, rows: int = 0) -> None:
    """Print the cost of an operation."""
    cpu, wall = cost
    pace = f"  {rows / cpu:,.0f} rows a second of CPU, {rows / wall:,.0f} of time" if rows else ""
    print(f"{side.name:10} {word:24} {cpu * 1e3:10.2f} ms of CPU {wall * 1e3:10.1f} ms{pace}", flush=True)


def managed_commits(side: Side) -> tuple[float, float]:
    """Measure changes of a table's metadata by pylance, which commits each version at the server."""
    with Client(f"http://{side.address}", token=side.headers["Authorization"].partition(" ")[2]) as client:
        client.lance.declare("lance.bench.kept", properties={"managed_versioning": "true"})
        Asker(side).ask("POST", f"{side.table('kept')}/insert?mode=append", b"".join(stream(10)))
        opened = client.lance.dataset("lance.bench.kept")
        return measured(side, lambda _, number: opened.update_schema_metadata({"at": str(number)}), count=50)


def large(side: Side, gigabytes: float) -> None:
    """Insert and read a large table, and print memory and throughput."""
    requester, rows = Asker(side), int(gigabytes * 1e9 / (SIZE * 4 + 18))
    for word, path, body in (
        ("insert", f"{side.table('large')}/create", stream(rows)),
        ("query", f"{side.table('large')}/query", {"k": rows, "vector": {}, "filter": "id >= 0"}),
    ):
        clock = TreeCpu([side.pid])
        used, began = clock.look(), time.perf_counter()
        with Memory(side.pid) as memory:
            requester.ask("POST", path, body, drain=True)
        seconds, cpu = time.perf_counter() - began, (clock.look() - used) / 1e9
        size = rows * (SIZE * 4 + 18) / (1 << 20)
        print(
            f"{word} of {gigabytes:g} GB ({rows:,} rows): {memory}; {size / seconds:.0f} MiB/s, {size / cpu:.0f} MiB a"
            " second of CPU",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.lance", description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=100_000, help="of an insert; 0: nothing but what --gigabytes asks for"
    )
    parser.add_argument("--gigabytes", type=float, default=0.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="limnos-bench-") as name:
        folder = Path(name)
        (folder / "reference").mkdir()
        with ours(folder) as here, adapter(folder / "reference") as reference_side:
            sides = (here, reference_side)
            for side in sides if options.rows else ():
                furnish(side, folder / "reference")
                requests_of(side, options.rows)
            if options.rows:
                print_cost(here, "commit, managed", managed_commits(here))
            if options.gigabytes:
                large(here, options.gigabytes)


if __name__ == "__main__":
    main()
