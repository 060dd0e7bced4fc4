# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.shipped`: each shipped pipeline over a planted lake, by its command: time, CPU and memory.

One server on SQLite. Each table has a metadata document and a metadata file, and there are as many audit records as
tables. A run starts its own Spark on two cores. `--pipelines` names those to run; by default all. Memory is the largest
sum of resident sets of the command's processes (Python, Java and Python workers), and of the server's.
"""

from __future__ import annotations

import argparse
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
from bench.operations import PREFIX, TEMPLATES
from bench.search import Client
from bench.seed import TEMPLATE, Forest, open_filler
from bench.stores import Place, filled_place, running_server
from bench.workers import LIMNOS
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.pipeline.shipped import shipped_pipelines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.stores import Server

EACH: Final = 1_000
"""The number of tables of a namespace."""
DAY_MS: Final = 86_400_000
_LOOK_S: Final = 0.5
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def plant(place: Place, tables: int) -> None:
    """Write tables with metadata files, an owner's role for each namespace, and audit records."""
    with running_server(place, database_pid=None) as server:
        client = Client(server)
        client.ask("POST", f"{PREFIX}/namespaces", {"namespace": [TEMPLATE]})
        client.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["lake_history"]})
        for body in TEMPLATES:
            client.ask("POST", f"{PREFIX}/namespaces/{TEMPLATE}/tables", body)
    forest = Forest(open_filler(place))
    for number in range(-(-tables // EACH)):
        parent = forest.namespace(forest.catalog_id, f"space_{number:05}")
        rights = ((parent, Kind.NAMESPACE, Privilege.SELECT_TABLE, True),)
        forest.role(f"role{number:05}", list(rights), held_by=forest.principal(f"user{number:05}"))
        for each in range(min(EACH, tables - number * EACH)):
            forest.table(parent, f"flight_{number * EACH + each:07}", like="small", with_file=True)
    forest.close()
    plant_audit(place, tables)


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


def measure(server: Server, name: str, *, path: str | None = None) -> None:
    """Run a shipped pipeline, or the one of a file, by its command, and print a line."""
    environment = {
        **os.environ,
        "LIMNOS_URI": f"http://{server.host}:{server.port}",
        "LIMNOS_TOKEN": server.admin_token,
        "LIMNOS_PIPELINE_HELPER": "false",
    }
    command = [*LIMNOS, "pipeline", "run", path or f"shipped:{name}", "--master", "local[2]"]
    server_cpu, began, peaks = TreeCpu(server.pids), time.perf_counter(), [0, 0]
    before = server_cpu.look()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        own_cpu, used = TreeCpu([process.pid]), 0
        while process.poll() is None:
            used = own_cpu.look()
            sizes = (resident_bytes(descendants([process.pid])), resident_bytes(descendants(server.pids)))
            peaks = [max(pair) for pair in zip(peaks, sizes, strict=True)]
            time.sleep(_LOOK_S)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{name} failed:\n{output.read().decode()[-4_000:]}")
    seconds, server_s = time.perf_counter() - began, (server_cpu.look() - before) / 1e9
    print(
        f"  {name:18} {seconds:7.1f} s, CPU {used / 1e9:6.1f} s and {server_s:6.1f} s of the server,"
        f" memory {peaks[0] / 1e6:6,.0f} MB and {peaks[1] / 1e6:6,.0f} MB of the server",
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
        for name in arguments.pipelines.split(","):
            measure(server, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
