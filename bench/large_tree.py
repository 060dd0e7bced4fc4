# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.large_tree`: a server over millions of nodes: start, first search, a move, and the longest pauses.

One server on SQLite, over a planted tree: a million tables below one namespace (all of them, if the tree is smaller),
the others in namespaces of a thousand. Another thread probes health all the time: the longest answer is the longest
pause of the event loop, or a longer one if the machine is busy. It judges nothing.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.cpu import TreeCpu
from bench.operations import PREFIX, TEMPLATES
from bench.search import Client
from bench.seed import TEMPLATE, Forest, open_filler
from bench.stores import Place, filled_place, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.stores import Server

CROWD: Final = 1_000_000
"""The tables below the namespace that is moved."""
EACH: Final = 1_000
_MOVE: Final = "/api/limnos/v1/metalakes/lake/catalogs/main/move"
_MOVED: Final = {"kind": "namespace", "source": ["moved", "crowd"], "target": ["target", "crowd"]}


def plant(place: Place, nodes: int) -> None:
    """Write a tree of about `nodes` tables without documents, which are listed and searched but never loaded."""
    with running_server(place, database_pid=None) as server:
        client = Client(server)
        client.ask("POST", f"{PREFIX}/namespaces", {"namespace": [TEMPLATE]})
        for body in TEMPLATES:
            client.ask("POST", f"{PREFIX}/namespaces/{TEMPLATE}/tables", body)
    forest = Forest(open_filler(place))
    moved = forest.namespace(forest.catalog_id, "moved")
    forest.namespace(forest.catalog_id, "target")
    crowd = forest.namespace(moved, "crowd")
    for number in range(min(nodes, CROWD)):
        forest.bare_table(crowd, f"table_{number:07}")
    for number in range(CROWD, nodes, EACH):
        parent = forest.namespace(forest.catalog_id, f"space_{number // EACH:05}")
        for each in range(EACH):
            forest.bare_table(parent, f"flight_{number + each:07}")
    forest.close()


class HealthProbe:
    """Asks for the server's health without pause; `longest_ms` is the longest answer."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._probe, daemon=True)
        self.longest_ms = 0.0
        self.answers = 0

    def _probe(self) -> None:
        connection = http.client.HTTPConnection(self._server.host, self._server.port, timeout=120)
        while not self._is_over.is_set():
            began = time.perf_counter()
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            self.longest_ms = max(self.longest_ms, (time.perf_counter() - began) * 1000)
            self.answers += 1
            time.sleep(0.002)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the last answer."""
        self._is_over.set()
        self._thread.join(130)


@contextmanager
def step(server: Server, title: str) -> Iterator[None]:
    """Measure the body of a `with`, and print its line."""
    cpu, probe = TreeCpu(server.pids), HealthProbe(server)
    before, began = cpu.look(), time.perf_counter()
    probe.start()
    yield
    took, used = time.perf_counter() - began, (cpu.look() - before) / 1e9
    probe.stop()
    print(
        f"  {title:40} {took:8.2f} s, {used:8.2f} s of CPU; longest of {probe.answers} health answers"
        f" {probe.longest_ms:7.1f} ms",
        flush=True,
    )


def measure(place: Place, *, index_s: float) -> None:
    """Start a server and measure it."""
    began = time.perf_counter()
    with running_server(place, database_pid=None) as server:
        print(f"  {'start, to the ready line':40} {time.perf_counter() - began:8.2f} s", flush=True)
        client = Client(server)
        with step(server, "first search, by prefix"):
            client.find("flight_00")
        with step(server, "search for a word"):
            client.find("flight")
        with step(server, "first page of the large namespace"):
            client.ask("GET", f"{PREFIX}/namespaces/moved%1Fcrowd/tables?pageToken=&pageSize=100")
        with step(server, "move of the namespace above it"):
            client.ask("POST", _MOVE, _MOVED)
        with step(server, "first page at its new path"):
            client.ask("GET", f"{PREFIX}/namespaces/target%1Fcrowd/tables?pageToken=&pageSize=100")
        with step(server, f"index of words, {index_s:.0f} s of it"):
            time.sleep(index_s)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.large_tree", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000_000)
    parser.add_argument("--index-s", type=float, default=60.0, help="time for which the index of words is watched")
    parser.add_argument("--data", type=Path, default=None, help="folder of the store; filled once and kept")
    return parser.parse_args(arguments)


def main() -> int:
    """Plant, measure and print."""
    arguments = options()
    what = f"{arguments.nodes:,} nodes"
    with filled_place(arguments.data, lambda place: plant(place, arguments.nodes), what=what) as place:
        measure(place, index_s=arguments.index_s)
    return 0


if __name__ == "__main__":
    sys.exit(main())
