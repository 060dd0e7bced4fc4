# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.authorization`: the cost of access decisions under load: statements per request, hit rates, changes.

Prints figures without judging them. One server on loopback per store, with access control on. Callers with rights
through roles load tables and check for them on 128 connections: first on a quiet store, then while users are added,
which invalidates every decision.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.cpu import TreeCpu
from bench.load import Generator, Load
from bench.measure import prepare
from bench.seed import Shape
from bench.stores import STORES, Place, Postgres, Server, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECTIONS: Final = 128
TABLES: Final = 8
COUNTED: Final = {
    "asked": "limnos_gate_reads_total",
    "shared": "limnos_gate_shared_total",
    "quiet": "limnos_gate_quiet_total",
    "cold": "limnos_cold_reads_total",
    "kept": "limnos_answers_kept_total",
}
COLD_STATEMENTS: Final = 3
"""Statements of a cache miss: the changes, and missing facts of a path and a document. An upper bound here."""


class RunResult(NamedTuple):
    """The result of a run: requests, CPU µs per request, median and 99th percentile in ms, and counters."""

    requests: int
    cpu_us: float
    p50_ms: float
    p99_ms: float
    counted: dict[str, float]

    def told(self) -> str:
        """Format a result as a line."""
        per = {word: value / self.requests for word, value in self.counted.items()}
        statements = per["asked"] - per["shared"] + COLD_STATEMENTS * per["cold"]
        return (
            f"{self.requests:8} requests, {self.cpu_us:6.1f} µs, p50 {self.p50_ms:5.1f} ms, p99 {self.p99_ms:5.1f} ms;"
            f" statements per request {statements:.4f} (asked {per['asked']:.4f}, shared {per['shared']:.2f}, none"
            f" needed {per['quiet']:.2f}); facts in memory {100 * (1 - per['cold']):.3f} %, whole answers"
            f" {100 * per['kept']:.1f} %"
        )


def counters(server: Server) -> dict[str, float]:
    """Read the server's counters, each summed over its labels."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return {
        word: sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))
        for word, name in COUNTED.items()
    }


def requests_of(server: Server, method: str) -> tuple[bytes, ...]:
    """Build requests for some tables, by a user with rights through a role."""
    credential = base64.b64encode(b"reader:").decode()
    return tuple(
        f"{method} /iceberg/v1/lake.main/namespaces/hot0/tables/t{number} HTTP/1.1\r\nHost:"
        f" {server.host}:{server.port}\r\nAuthorization: Basic {credential}\r\n\r\n".encode()
        for number in range(TABLES)
    )


def measured(server: Server, method: str, *, seconds: float, connections: int) -> RunResult:
    """Send the requests on all connections for some seconds."""
    requests = requests_of(server, method)
    load = Load(
        host=server.host,
        port=server.port,
        requests=requests * (connections // TABLES),
        connections=connections,
        once=False,
        warm=20,
        seconds=seconds,
        count_max=10**9,
    )
    with Generator() as generator:
        generator.warm(load)
        before = counters(server)
        answered, (used_ns,) = generator.run_warm([TreeCpu(server.pids)])
        after = counters(server)
    counted = {word: after[word] - before[word] for word in before}
    return RunResult(
        requests=answered.count,
        cpu_us=used_ns / 1000 / answered.count,
        p50_ms=answered.p50_ms,
        p99_ms=answered.p99_ms,
        counted=counted,
    )


@contextmanager
def changing(server: Server, per_second: float) -> Iterator[list[float]]:
    """Add users at a rate; each one moves the metalake's access revision. Returns the duration of each request."""
    done, took = threading.Event(), list[float]()
    headers = {"Authorization": f"Bearer {server.admin_token}", "Content-Type": "application/json"}

    def change() -> None:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
        while not done.wait(1 / per_second):
            began = time.perf_counter()
            body = f'{{"name": "user{time.monotonic_ns()}"}}'
            connection.request("POST", "/api/metalakes/lake/users", body, headers)
            answer = connection.getresponse()
            if b'"code":0' not in answer.read():
                raise SystemExit(f"a user could not be added: {answer.status}")
            took.append(time.perf_counter() - began)
        connection.close()

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    try:
        yield took
    finally:
        done.set()
        thread.join(30)


def measure_all(place: Place, options: argparse.Namespace, *, database_pid: int | None) -> None:
    """Fill a store, measure, and print."""
    prepare(place, Shape(1000), database_pid=database_pid)
    with running_server(place, database_pid=database_pid) as server:
        for method in ("HEAD", "GET"):
            quiet = measured(server, method, seconds=options.seconds, connections=options.connections)
            print(f"{method:4} quiet:    {quiet.told()}", flush=True)
            with changing(server, options.changes) as took:
                busy = measured(server, method, seconds=options.seconds, connections=options.connections)
            slowest = max(took, default=0.0) * 1000
            print(
                f"{method:4} changing: {busy.told()}; {len(took)} changes, the slowest in {slowest:.0f} ms", flush=True
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.authorization", description=__doc__)
    parser.add_argument("--stores", default=",".join(STORES), help="sqlite,postgres")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--changes", type=float, default=50.0, help="users that are added per second")
    options = parser.parse_args()
    stores = options.stores.split(",")
    if not set(stores) <= set(STORES):
        parser.error(f"--stores: choose among {', '.join(STORES)}")
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", ignore_cleanup_errors=True) as folder:
        if "sqlite" in stores:
            measure_all(Place(Path(folder) / "sqlite-1000", None), options, database_pid=None)
        if "postgres" in stores:
            database = Postgres(Path(folder) / "database")
            try:
                place = Place(Path(folder) / "postgres-1000", database.new_database("authorization"))
                measure_all(place, options, database_pid=database.pid)
            finally:
                database.stop()


if __name__ == "__main__":
    main()
