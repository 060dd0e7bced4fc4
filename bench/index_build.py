# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.index_build`: the first index of words of a large lake: its CPU and its slices of the event loop.

Plants a lake without an index, then indexes it with a node in this process, as a server does after an upgrade or a
restore. Then it creates namespaces and tables in turns, and indexes each batch of them, as a server does every two
seconds: the index's CPU for each created object. It judges nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.event_loop import loop_slices
from bench.operations import PREFIX
from bench.search import Client
from bench.search_lake import Lake, plant_lake, template_bodies
from bench.seed import TEMPLATE, open_filler
from bench.stores import STORES, Place, Postgres, running_server
from limnos.app.serving import settle_memory
from limnos.rooms.search.services.indexing import index_step
from tests.http.driver import node_at

if TYPE_CHECKING:
    from collections.abc import Sequence


CREATED: Final = 400
"""Objects of a batch."""
ROUNDS: Final = 3


def lose_index(place: Place) -> None:
    """Delete the index of words, as a store has none after an upgrade from a release without it."""
    filler = open_filler(place)
    for table in ("search_text", "search_word", "search_position"):
        filler.run(f"DELETE FROM {table}")
    if place.database is None:
        filler.run("INSERT INTO search_words (search_words) VALUES ('delete-all')")
    filler.close(filler.first_id())


def build_index(place: Place) -> str:
    """Index all objects. Returns the figures."""
    with node_at(place.data, database=place.database) as node, loop_slices() as slices:
        settle_memory()
        began, cpu, steps = time.perf_counter(), time.process_time(), 1
        while node.runner.run(index_step(node.built.services)):
            steps += 1
        cpu, took = time.process_time() - cpu, time.perf_counter() - began
    slices.every.sort()
    p99 = slices.every[len(slices.every) * 99 // 100]
    return (
        f"{steps:,} steps, {cpu:.1f} s of CPU of the node, {took:.0f} s; slices of the event loop: longest"
        f" {slices.longest_ms:.1f} ms, p99 {p99:.1f} ms, {slices.share_above(10.0):.2%} longer than 10 ms"
    )


def created_cost(place: Place) -> str:
    """Create objects in batches, and index each batch. Returns the CPU of the index for each object."""
    costs: dict[str, list[float]] = {"namespace": [], "table": []}
    (_, space), (_, table) = template_bodies()
    assert isinstance(space, dict)
    assert isinstance(table, dict)
    with node_at(place.data, database=place.database) as node:
        settle_memory()
        for number in range(2 * ROUNDS):
            kind = ("namespace", "table")[number % 2]
            for each in range(CREATED):
                name = f"created_{number}_{each}"
                path, body = (
                    (f"{PREFIX}/namespaces", space | {"namespace": [name]})
                    if kind == "namespace"
                    else (f"{PREFIX}/namespaces/{TEMPLATE}/tables", table | {"name": name})
                )
                answer = node.post(path, body)
                assert answer.status == 200, answer.body
            cpu = time.process_time()
            while node.runner.run(index_step(node.built.services)):
                pass
            costs[kind].append((time.process_time() - cpu) / CREATED * 1e6)
    return ", ".join(f"{statistics.median(each):.0f} µs of CPU for each created {kind}" for kind, each in costs.items())


def plant(place: Place, objects: int, *, database_pid: int | None) -> None:
    """Write a lake whose objects are not indexed."""
    with running_server(place, database_pid=database_pid) as server:
        for path, body in template_bodies():
            Client(server).ask("POST", path, body)
    plant_lake(place, Lake(objects))
    lose_index(place)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.index_build", description=__doc__)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=["sqlite"])
    parser.add_argument("--objects", type=int, default=100_000, help="of the lake")
    parser.add_argument("--data", type=Path, default=None, help="folder for the stores while it runs")
    return parser.parse_args(arguments)


def main() -> int:
    """Measure and print."""
    arguments = options()
    for store in arguments.stores:
        with tempfile.TemporaryDirectory(
            prefix="limnos-bench-", dir=arguments.data, ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            postgres = Postgres(folder / "pg") if store == "postgres" else None
            try:
                place = Place(folder / "lake", None if postgres is None else postgres.new_database("lake"))
                began = time.perf_counter()
                plant(place, arguments.objects, database_pid=None if postgres is None else postgres.pid)
                print(
                    f"{store}: planted {arguments.objects:,} objects in {time.perf_counter() - began:.0f} s", flush=True
                )
                print(f"{store}: {build_index(place)}", flush=True)
                print(f"{store}: index of batches of {CREATED}: {created_cost(place)}", flush=True)
            finally:
                if postgres is not None:
                    postgres.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
