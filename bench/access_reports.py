# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.access_reports`: the cost of reports about access in a large company.

One node in process on SQLite, with 5,000 users, 10,000 roles that may use the catalog, and a user with 5,000 roles. For
each report: wall time, CPU, and the longest slice of the event loop, of the first request after the node's start and of
the best later one. Each should take at most 2 s, 0.5 s of CPU and 10 ms a slice. It judges nothing.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.event_loop import loop_slices
from bench.fairness import HOLDER, plant_company
from bench.measure import prepare, say
from bench.seed import Shape
from bench.stores import Place, filled_place
from limnos.app.serving import settle_memory
from tests.http.driver import node_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.http.driver import DriverNode

_ACCESS: Final = "/api/limnos/v1/metalakes/lake/access"


class Report(NamedTuple):
    """A report: its key, title, caller and path. `has_pages`: all of its pages are requested."""

    key: str
    title: str
    user: str
    path: str
    has_pages: bool = False


REPORTS: Final = (
    Report(
        key="holders",
        title="who has access to a catalog, 1,000",
        user="admin",
        path=f"{_ACCESS}/holders?path=main&limit=1000",
    ),
    Report(
        key="holders-all",
        title="the same, all pages",
        user="admin",
        path=f"{_ACCESS}/holders?path=main&limit=1000",
        has_pages=True,
    ),
    Report(key="rules", title="rules of a catalog, 1,000", user="admin", path=f"{_ACCESS}/rules?path=main&limit=1000"),
    Report(key="reach", title="own reach, 5,000 roles", user=HOLDER, path=f"{_ACCESS}/reach?path=main"),
    Report(
        key="reach-of", title="reach of another user", user="admin", path=f"{_ACCESS}/reach?path=main&user=user00001"
    ),
    Report(key="reach-admin", title="own reach, admin", user="admin", path=f"{_ACCESS}/reach?path=main&limit=1000"),
)


class ReportCost(NamedTuple):
    """The cost of a report in milliseconds, and the number of its requests."""

    wall_ms: float
    cpu_ms: float
    slice_ms: float
    requests: int


def measure(node: DriverNode, report: Report) -> ReportCost:
    """Request a report once."""
    gc.collect()
    requests, after = 0, ""
    with loop_slices() as slices:
        began, cpu = time.perf_counter(), time.process_time()
        while True:
            answer = node.get(f"{report.path}&after={after}" if after else report.path, user=report.user)
            requests += 1
            if answer.status != 200:
                say(f"{report.title}: {answer.status} {answer.body[:200].decode()}")
            after = str(answer.json().get("after") or "") if report.has_pages else ""
            if not after:
                break
        cpu, wall = time.process_time() - cpu, time.perf_counter() - began
    return ReportCost(wall * 1000, cpu * 1000, slices.longest_ms, requests)


def measure_all(place: Place, *, chosen: Sequence[str], rounds: int) -> None:
    """Print the costs of reports, each on a node that was just started."""
    print(f"{'wall ms, CPU ms, longest slice':38}{'first request':>24}{'later, best':>24}  requests")
    for report in REPORTS:
        if chosen and report.key not in chosen:
            continue
        with node_at(place.data) as node:
            settle_memory()
            first = measure(node, report)
            later = [measure(node, report) for _ in range(rounds)]
        best = min(later, key=lambda each: each.cpu_ms)
        cells = "".join(f"{each.wall_ms:8.0f}{each.cpu_ms:8.0f}{each.slice_ms:8.1f}" for each in (first, best))
        print(f"{report.title:38}{cells}  {best.requests}", flush=True)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.access_reports", description=__doc__)
    parser.add_argument("--nodes", type=int, default=120_000, help="objects of the tree")
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--roles", type=int, default=10_000)
    parser.add_argument("--held", type=int, default=5_000, help="roles of one user")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="keys of reports: holders,reach,…")
    parser.add_argument("--data", type=Path, default=None, help="folder of the store; filled once and kept")
    return parser.parse_args(arguments)


def main() -> int:
    """Measure and print."""
    arguments = options()

    def fill(place: Place) -> None:
        prepare(place, Shape(arguments.nodes), database_pid=None)
        plant_company(place, users=arguments.users, roles=arguments.roles, own_roles=arguments.held)

    with filled_place(arguments.data, fill, what=f"{arguments.nodes:,} nodes and {arguments.users:,} users") as place:
        measure_all(place, chosen=[each for each in arguments.only.split(",") if each], rounds=arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
