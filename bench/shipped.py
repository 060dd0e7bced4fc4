# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.shipped`: each shipped pipeline over a planted lake, by its command: time, CPU and memory.

One server on SQLite. Each table has a metadata document and a metadata file, every tenth one also a snapshot with a
manifest and a data file. A thousand tables have a user with a role of their own, and there are as many audit records as
tables. A run starts its own Spark on two cores, and yields them to the server: on one machine it runs at a lower
priority. `--pipelines` names those to run, by default all; one with `+` runs a second time at once. Memory is the
largest sum of resident sets of the command's processes (Python, Java and Python workers), and of the server's. Beside
the runs another client sends a HEAD of a table every 20 ms.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.cpu import TreeCpu, descendants
from bench.operations import PREFIX, TEMPLATES, table_path
from bench.search import Client
from bench.seed import TEMPLATE, Forest, open_filler
from bench.stores import Place, filled_place, running_server
from bench.workers import LIMNOS
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.pipeline.shipped import shipped_pipelines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from multiprocessing.connection import Connection
    from typing import Self

    from bench.stores import Server

EACH: Final = 1_000
"""The number of tables of a namespace."""
SNAPSHOT_EVERY: Final = 10
"""One of so many tables has a snapshot."""
HEAD_EVERY_S: Final = 0.02
IDLE_S: Final = 5.0
"""The seconds for which the server answers HEAD requests alone, before the runs."""
LOWER_PRIORITY: Final = 10
MEASURED: Final = "measured"
"""The template of tables with a snapshot."""
DAY_MS: Final = 86_400_000
_LOOK_S: Final = 0.5
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class RunError(Exception):
    """A run failed. The message ends with its output."""


def plant(place: Place, tables: int) -> None:
    """Write tables with metadata files, an owner's role for each namespace, and audit records."""
    with running_server(place, database_pid=None) as server:
        client = Client(server)
        client.ask("POST", f"{PREFIX}/namespaces", {"namespace": [TEMPLATE]})
        client.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["lake_history"]})
        for body in TEMPLATES:
            client.ask("POST", f"{PREFIX}/namespaces/{TEMPLATE}/tables", body)
        append_rows(server)
    forest = Forest(open_filler(place))
    catalog = (forest.catalog_id, Kind.CATALOG, Privilege.USE_CATALOG, True)
    for number in range(-(-tables // EACH)):
        parent = forest.namespace(forest.catalog_id, f"space_{number:05}")
        rights = [(parent, Kind.NAMESPACE, each, True) for each in (Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)]
        forest.role(f"role{number:05}", [catalog, *rights], held_by=forest.principal(f"user{number:05}"))
        for each in range(min(EACH, tables - number * EACH)):
            like = "small" if each % SNAPSHOT_EVERY else MEASURED
            forest.table(parent, f"flight_{number * EACH + each:07}", like=like, with_file=True)
    forest.close()
    plant_audit(place, tables)


def append_rows(server: Server) -> None:
    """Create the template of tables with a snapshot, whose manifests are not compressed: names in them are replaced."""
    import pyarrow as pa
    from pyiceberg.catalog.rest import RestCatalog

    uri = f"http://{server.host}:{server.port}/iceberg"
    catalog = RestCatalog("bench", uri=uri, warehouse="lake/main", token=server.admin_token)
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "word": pa.array([f"word {n}" for n in range(100)])})
    properties = {"write.avro.compression-codec": "null"}
    catalog.create_table((TEMPLATE, MEASURED), rows.schema, properties=properties).append(rows)


def plant_audit(place: Place, count: int) -> None:
    """Copy an audit record `count` times, over two days before it, for a hundred users."""
    with closing(sqlite3.connect(place.sqlite_file)) as file, file:
        file.row_factory = sqlite3.Row
        record = dict(file.execute("SELECT * FROM audit ORDER BY id LIMIT 1").fetchone())
        names = list(record)
        rows = (
            {
                **record,
                "id": -1 - number,
                "at": record["at"] - number * 2 * DAY_MS // count,
                "user_name": f"user{number % 100:05}",
                "object_id": record["object_id"] + number % 5_000,
            }
            for number in range(count)
        )
        file.executemany(f"INSERT INTO audit VALUES ({', '.join(f':{name}' for name in names)})", rows)


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the sum of the resident sets of processes."""
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
        except (OSError, IndexError):
            continue  # it has ended
    return total


def send_heads(address: tuple[str, int], token: str, results: Connection) -> None:
    """Send HEAD requests of a table until something is received, and answer with their times in seconds."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    headers, seconds = {"Authorization": f"Bearer {token}"}, []
    due = time.perf_counter()
    while not results.poll(max(0.0, due - time.perf_counter())):
        began = time.perf_counter()
        connection.request("HEAD", table_path([TEMPLATE], "small"), headers=headers)
        connection.getresponse().read()
        seconds.append(time.perf_counter() - began)
        due = max(due + HEAD_EVERY_S, time.perf_counter())
    results.send(seconds)


class HeadRequests:
    """HEAD requests of another process beside the body of a `with`."""

    def __init__(self, server: Server) -> None:
        self._results, other = multiprocessing.Pipe()
        arguments = ((server.host, server.port), server.admin_token, other)
        self._process = multiprocessing.get_context("spawn").Process(target=send_heads, args=arguments, daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()

    def summary(self) -> str:
        """End the requests, and return the median, 99th percentile and maximum of their times."""
        self._results.send(None)
        seconds: list[float] = sorted(self._results.recv())
        values = (seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100], seconds[-1])
        return f"HEAD {' / '.join(f'{1e3 * each:.1f}' for each in values)} ms ({len(seconds):,})"


def measure(server: Server, name: str, *, path: str | None = None) -> None:
    """Run a shipped pipeline, or the one of a file, by its command, and print a line. Raises RunError."""
    environment = {
        **os.environ,
        "LIMNOS_URI": f"http://{server.host}:{server.port}",
        "LIMNOS_TOKEN": server.admin_token,
        "LIMNOS_PIPELINE_HELPER": "false",
    }
    command = ["nice", "-n", str(LOWER_PRIORITY), *LIMNOS, "pipeline", "run", path or f"shipped:{name}"]
    command += ["--master", "local[2]"]
    server_cpu, began, peaks = TreeCpu(server.pids), time.perf_counter(), [0, 0]
    before = server_cpu.look()
    with tempfile.TemporaryFile() as output, HeadRequests(server) as heads:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        own_cpu, used = TreeCpu([process.pid]), 0
        while process.poll() is None:
            used = own_cpu.look()
            sizes = (resident_bytes(descendants([process.pid])), resident_bytes(descendants(server.pids)))
            peaks = [max(pair) for pair in zip(peaks, sizes, strict=True)]
            time.sleep(_LOOK_S)
        answers = heads.summary()
        if process.returncode:
            output.seek(0)
            raise RunError(f"{name} failed:\n{output.read().decode()[-4_000:]}")
    seconds, server_s = time.perf_counter() - began, (server_cpu.look() - before) / 1e9
    print(
        f"  {name:18} {seconds:7.1f} s, CPU {used / 1e9:6.1f} s and {server_s:6.1f} s of the server,"
        f" memory {peaks[0] / 1e6:6,.0f} MB and {peaks[1] / 1e6:6,.0f} MB of the server, {answers}",
        flush=True,
    )


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.shipped", description=__doc__)
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--pipelines", default=",".join(shipped_pipelines()), help="names, separated by commas")
    parser.add_argument("--data", type=Path, default=None, help="folder of the store; filled once and kept")
    return parser.parse_args(arguments)


def main() -> int:
    """Plant, run and print."""
    arguments = options()
    what = f"{arguments.tables:,} tables"
    with (
        filled_place(arguments.data, lambda place: plant(place, arguments.tables), what=what) as place,
        running_server(place, database_pid=None) as server,
    ):
        with HeadRequests(server) as heads:
            time.sleep(IDLE_S)
            print(f"  alone {heads.summary()}", flush=True)
        failures = 0
        for each in arguments.pipelines.split(","):
            name = each.removesuffix("+")
            for _ in range(1 + each.endswith("+")):
                try:
                    measure(server, name)
                except RunError as error:
                    print(f"  {error}", flush=True)
                    failures += 1
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
