# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.registrations`: the server's CPU for each table that a bulk job registers.

One server on SQLite. Writes a metadata file for each table, in a directory of its own, and sends the items as `limnos
bulk` does. Prints CPU for each table and part of the job, so that a cost that grows with the tree is visible, and CPU
of the same job sent again; and the latency of HEAD requests of another table at the idle server and beside each job
(aim: three times the idle p99). `--slices` calls the application in this process instead, and prints the CPU of the
slices of the event loop: the time for which a job keeps other requests waiting (aim: 10 ms). `--profile` prints its hot
functions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from bench.cpu import TreeCpu
from bench.event_loop import loop_slices
from bench.head_probe import HeadProbe, ProbedTable
from bench.operations import PREFIX
from bench.profile import Call, Caller, Sampler
from bench.search import Client
from bench.stores import Place, running_server
from bench.workers import LIMNOS
from limnos.app.node_builder import build
from limnos.app.serving import settle_memory
from limnos.client.activity.bulk import BulkPart, cut_into_parts
from limnos.config import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.event_loop import LoopSlices
    from bench.stores import Server

EACH: Final = 500
"""The number of tables of a namespace."""
IDLE_S: Final = 3.0
SLICE_MAX_MS: Final = 10.0
STEPS: Final = 5
"""The number of measurements within the job."""
_BULK: Final = "/api/limnos/v1/metalakes/lake/bulk"


def plant(lake: Path, tables: int) -> list[bytes]:
    """Write the metadata files. Returns the items that register them."""
    columns = [{"id": number, "name": f"column_{number}", "type": "long", "required": False} for number in range(1, 13)]
    document = {
        "format-version": 2,
        "last-sequence-number": 0,
        "last-updated-ms": time.time_ns() // 1_000_000,
        "last-column-id": len(columns),
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": columns}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"write.parquet.compression-codec": "zstd"},
        "current-snapshot-id": None,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }
    items = []
    for number in range(tables):
        space, name = f"space_{number // EACH:04}", f"flight_{number:06}"
        location = lake / space / name
        (location / "metadata").mkdir(parents=True)
        file = location / "metadata" / f"00000-{uuid.uuid4()}.metadata.json"
        own = {**document, "table-uuid": str(uuid.uuid4()), "location": f"file://{location}"}
        file.write_text(json.dumps(own, separators=(",", ":")))
        item = {"do": "register-table", "path": ["main", space, name], "metadata_location": f"file://{file}"}
        items.append(json.dumps(item).encode() + b"\n")
    return items


class Registrations:
    """The items of a job, and the directory of the tables to register."""

    def __init__(self, folder: Path, tables: int) -> None:
        self.root = (folder / "lake").as_uri()
        self.items = plant(folder / "lake", tables)
        self.environment = {"LIMNOS__STORAGE__ALLOWED_ROOTS": self.root}

    def prepare(self, server: Server) -> None:
        """Create the namespaces, and allow the catalog to use the directory."""
        client = Client(server)
        for number in range(-(-len(self.items) // EACH)):
            client.ask("POST", f"{PREFIX}/namespaces", {"namespace": [f"space_{number:04}"]})
        where = ("--uri", f"http://{server.host}:{server.port}", "--token", server.admin_token)
        command = [*LIMNOS, "set", "main", "--allowed-location", self.root, *where]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def measure(self, server: Server) -> None:
        """Register the tables, send the job again, and print the CPU and the latency of others' requests."""
        name, space = "probed", f"{PREFIX}/namespaces/space_0000"
        Client(server).ask("POST", f"{space}/tables", {"name": name, "schema": {"type": "struct", "fields": []}})
        probed = ProbedTable(
            host=server.host,
            port=server.port,
            path=f"{space}/tables/{name}",
            token=server.admin_token,
            pid=server.pids[0],
        )
        with HeadProbe(probed) as idle:
            time.sleep(IDLE_S)
        print(f"  HEAD at the idle server: {idle.text()}", flush=True)
        for title, steps in (("registered", STEPS), ("sent again", 1)):
            with HeadProbe(probed) as beside:
                self._send(server, title, steps=steps)
            print(f"  HEAD beside it: {beside.text()}; {beside.p99_ms / idle.p99_ms:.1f} times", flush=True)

    def _send(self, server: Server, title: str, *, steps: int) -> None:
        """Send the job, and print the CPU of its parts."""
        client, cpu = Client(server), TreeCpu(server.pids)
        done = last = 0
        began, first = time.perf_counter(), cpu.look()
        before = first
        for part in cut_into_parts(self.items):
            answer = client.ask("POST", f"{_BULK}?job=move&after={part.after}", text=part.data)
            check(answer, part.items)
            done, now = done + part.items, cpu.look()
            if done - last >= len(self.items) // steps or done == len(self.items):
                each_ms = (now - before) / (done - last) / 1e6
                print(f"  {title} to {done:7,}: {each_ms:6.3f} ms of CPU each", flush=True)
                last, before = done, now
        rate = done / (time.perf_counter() - began)
        print(f"  {title}: {(before - first) / done / 1e6:.3f} ms of CPU each, {rate:,.0f}/s", flush=True)

    async def call(self, place: Place, *, profiles: bool) -> None:
        """Register the tables in this process and print the functions in which it spends CPU, or the slices of the
        event loop.
        """
        token = (place.data / "admin.token").read_text().strip()
        settings = load(flags={"server.data": str(place.data)}, file=None, environ=self.environment).settings
        built = build(settings)
        headers = ((b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/x-ndjson"))
        parts = cut_into_parts(self.items)
        caller = Caller(built.application)

        async def send(part: BulkPart) -> int:
            query = f"job=move&after={part.after}".encode()
            await caller.call(
                Call(method="POST", raw_path=_BULK.encode(), query_string=query, headers=headers, body=part.data)
            )
            return part.items

        try:
            await send(next(parts))
            settle_memory()
            if profiles:
                count, before = 0, time.process_time_ns()
                with Sampler() as sampler:
                    for part in parts:
                        count += await send(part)
                sampler.print_costs(count, (time.process_time_ns() - before) / count / 1000, top=60)
                return
            with loop_slices() as slices:
                count = sum([await send(part) for part in parts])
            print_slices(slices, count)
        finally:
            await built.close()


def print_slices(slices: LoopSlices, tables: int) -> None:
    """Print how long the event loop was held."""
    ordered = sorted(slices.every)
    print(
        f"  {tables:,} tables in {len(ordered):,} slices of the event loop: p99 {ordered[len(ordered) * 99 // 100]:.1f} ms,"
        f" p99.9 {ordered[len(ordered) * 999 // 1000]:.1f} ms, longest {slices.longest_ms:.1f} ms,"
        f" {sum(each > SLICE_MAX_MS for each in ordered)} longer than {SLICE_MAX_MS:g} ms"
    )


def check(answer: bytes, items: int) -> None:
    """Raise SystemExit if an item was not executed."""
    lines = answer.splitlines()
    if json.loads(lines[-1])["made"] != items:
        raise SystemExit(f"not all were registered: {lines[0].decode()}")


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.registrations", description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--slices", action="store_true", help="print the slices of the event loop instead")
    parser.add_argument("--profile", action="store_true", help="print the hot functions instead")
    return parser.parse_args(arguments)


def main() -> int:
    """Plant, register and print."""
    arguments = options()
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", ignore_cleanup_errors=True) as folder:
        work, place = Registrations(Path(folder), arguments.tables), Place(Path(folder) / "sqlite", None)
        with running_server(place, database_pid=None, environment=work.environment) as server:
            work.prepare(server)
            if not (arguments.profile or arguments.slices):
                work.measure(server)
        if arguments.profile or arguments.slices:
            logging.disable(logging.INFO)
            loop = uvloop.new_event_loop if arguments.profile else None  # slices of a loop in Python are measured
            with asyncio.Runner(loop_factory=loop) as runner:
                runner.run(work.call(place, profiles=arguments.profile))
    return 0


if __name__ == "__main__":
    sys.exit(main())
