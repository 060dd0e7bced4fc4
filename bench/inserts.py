# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.inserts`: the cost of an INSERT of one object after hundreds of others, with and without compaction.

One server on SQLite at a time, with a warm engine; one caller, one connection. Printed for each block of INSERTs: the
median time, and the CPU of the server and its engine, including compactions that run at the same time. At the end, the
dataset's numbers of files and snapshots and the size of its metadata. It judges nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.cpu import processes_s
from bench.sqlpp_client import Client, took_ms
from bench.workers import ask, served

if TYPE_CHECKING:
    from collections.abc import Sequence

SETTING: Final = "LIMNOS__SQLPP__COMPACT_FILES"
WARM: Final = 5
ENDED_WITHIN_S: Final = 120.0
_MADE = "CREATE TYPE Point AS { id: bigint, name: string }; CREATE DATASET points(Point) PRIMARY KEY id"


def inserted(client: Client, pid: int, *, first: int, count: int) -> str:
    """Insert a block of objects. Returns its cost."""
    before = processes_s([pid])
    texts = [f"INSERT INTO points({{'id': {number}, 'name': 'new'}})" for number in range(first, first + count)]
    times = sorted(took_ms(partial(client.say, text)) for text in texts)
    cpu_ms = (processes_s([pid]) - before) * 1000 / count
    slow = times[min(count - 1, int(count * 0.95))]
    return f"middle {statistics.median(times):.0f} ms, 95th percentile {slow:.0f} ms, CPU {cpu_ms:.0f} ms"


def left(uri: str, token: str) -> str:
    """Return the dataset's numbers of files and snapshots, and the size of its metadata."""
    body = ask(uri, token, "/iceberg/v1/lake.main/namespaces/Default/tables/points")
    metadata = json.loads(body)["metadata"]
    current = metadata["current-snapshot-id"]
    summary = next(one["summary"] for one in metadata["snapshots"] if one["snapshot-id"] == current)
    return f"{summary['total-data-files']} files, {len(metadata['snapshots'])} states, {len(body):,} bytes of metadata"


def run(uri: str, token: str, pid: int, *, inserts: int, block: int) -> None:
    """Measure one server."""
    client = Client(uri, token)
    client.say(_MADE)
    client.say("SELECT VALUE count(*) FROM points")  # the engine has started
    inserted(client, pid, first=-WARM, count=WARM)
    for first in range(0, inserts, block):
        count = min(block, inserts - first)
        print(f"  {first:,} to {first + count:,}: {inserted(client, pid, first=first, count=count)}", flush=True)
    until = time.monotonic() + ENDED_WITHIN_S
    while _compacts(uri, token) and time.monotonic() < until:
        time.sleep(0.2)
    counted = client.say("SELECT VALUE count(*) FROM points")
    print(f"  objects {counted[0]:,}; {left(uri, token)}", flush=True)
    client.close()


def _compacts(uri: str, token: str) -> bool:
    return b'"compact-dataset"' in ask(uri, token, "/api/limnos/v1/tasks?state=waiting")


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.inserts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inserts", type=int, default=1000)
    parser.add_argument("--block", type=int, default=100, help="INSERTs of which the middle is told")
    parser.add_argument(
        "--compact-files", type=int, nargs="+", default=[0, 64], help="settings of sqlpp.compact_files; 0: never"
    )
    parsed_arguments = parser.parse_args(arguments)
    if min(parsed_arguments.inserts, parsed_arguments.block) < 1 or min(parsed_arguments.compact_files) < 0:
        parser.error("numbers above 0")
    return parsed_arguments


def main() -> int:
    """Measure and print."""
    arguments = options()
    for files in arguments.compact_files:
        print(f"sqlpp.compact_files = {files}", flush=True)
        with tempfile.TemporaryDirectory(prefix="limnos-bench-") as place:
            data = Path(place) / "data"
            with served(data, 1, env={SETTING: str(files)}) as (pid, uri, _):
                token = (data / "admin.token").read_text().strip()
                run(uri, token, pid, inserts=arguments.inserts, block=arguments.block)
    return 0


if __name__ == "__main__":
    sys.exit(main())
