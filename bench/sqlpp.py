# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.sqlpp`: costs of SQL++ statements with their targets, and comparisons with Spark's own.

Rows, by `--only`:

- `lookup`, `change`, `insert`, `division`, `warm`, `memory`: single statements (`bench.sqlpp_statements`) on SQLite;
  the last two have their own server. `lookup` is measured at `--objects` and at `--many` objects.
- `compare`: one object by its key and an INSERT of one object over HTTP, from the first byte to the last, compared with
  SELECT and INSERT of a Spark session on the same catalog (whose INSERT does not check keys). Printed are the medians
  of `--rounds` turns, with each side measured in every turn. Also definitions and metadata queries per second over one
  connection, and the 95th percentile of small queries, alone and during a cross join.

Values over their targets are marked, and the exit code is 0. TPC-H is `conformance/run sqlpp_tpch`.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from bench import sqlpp_statements as statements
from bench.sqlpp_client import LONG, Client, StatementRefused, took_ms
from bench.workers import served
from limnos.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MADE = """CREATE DATAVERSE bench; CREATE TYPE bench.Point AS { id: bigint, name: string, n: bigint };
CREATE DATASET bench.points(bench.Point) PRIMARY KEY id; CREATE DATASET bench.large(bench.Point) PRIMARY KEY id;"""
_FILLED = (
    "INSERT INTO bench.{}(SELECT VALUE {{'id': i, 'name': 'n' || to_string(i), 'n': i * 7 % 1000003}} FROM range(1, {})"
    " AS i)"
)
_HOG = "SELECT VALUE count(*) FROM bench.large a, bench.large b WHERE a.n + b.n < {}"


def beside(
    name: str, ours: Callable[[int], object], theirs: Callable[[int], object], *, rounds: int, warm: int = 8
) -> float:
    """Measure both sides in turn. Prints and returns the ratio of their medians."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(warm + rounds):
        for side, side_times in zip((ours, theirs), times, strict=True):
            side_times.append(took_ms(partial(side, turn)))
    one, other = (statistics.median(side_times[warm:]) for side_times in times)
    print(f"{name}: {one:.0f} ms, Spark's own {other:.0f} ms ({one / other:.2f}, aim 1.5)", flush=True)
    return one / other


def single(client: Client, spark: SparkSession, *, objects: int, rounds: int) -> None:
    """Measure queries and INSERTs of one object."""
    spark.sql("CREATE TABLE main.bench.plain (id bigint, name string, n bigint)")
    spark.sql(f"INSERT INTO main.bench.plain SELECT id, concat('n', id), id FROM range({objects})")
    beside(
        "query of one object",
        lambda turn: client.say(f"SELECT VALUE p FROM bench.points p WHERE p.id = {turn * 31 % objects + 1}"),
        lambda turn: spark.sql(f"SELECT * FROM main.bench.points WHERE id = {turn * 31 % objects + 1}").collect(),
        rounds=rounds,
    )
    beside(
        "INSERT of one object",
        lambda turn: client.say(
            f"INSERT INTO bench.points({{'id': {objects + 1 + turn}, 'name': 'new', 'n': {turn}}})"
        ),
        lambda turn: spark.sql(f"INSERT INTO main.bench.plain VALUES ({objects + 1 + turn}, 'new', {turn})"),
        rounds=rounds,
    )
    beside(
        "count of all objects",
        lambda _: client.say("SELECT VALUE count(*) FROM bench.points p WHERE p.n >= 0"),
        lambda _: spark.sql("SELECT count(*) FROM main.bench.points WHERE n >= 0").collect(),
        rounds=rounds,
    )


def definitions(client: Client, *, rounds: int) -> None:
    """Measure definitions, and queries of them."""
    kinds: dict[str, Callable[[int], str]] = {
        "CREATE TYPE": lambda turn: f"CREATE TYPE bench.T{turn} AS {{ id: bigint, more: string? }}",
        "CREATE DATASET": lambda turn: f"CREATE DATASET bench.d{turn}(bench.Point) PRIMARY KEY id",
        "DROP DATASET": lambda turn: f"DROP DATASET bench.d{turn}",
        "query of Metadata": lambda _: (
            "SELECT VALUE d.DatasetName FROM Metadata.`Dataset` d WHERE d.DataverseName = 'bench'"
        ),
        "constant": lambda turn: f"SELECT VALUE {turn} + 1",
    }
    for name, text in kinds.items():
        began = time.perf_counter()
        for turn in range(rounds):
            client.say(text(turn))
        print(f"{name}: {rounds / (time.perf_counter() - began):,.0f} a second", flush=True)


def hogged(uri: str, token: str, *, objects: int, rounds: int) -> None:
    """Measure small queries alone, then while a large one runs."""
    client = Client(uri, token)
    client.say(_FILLED.format("large", objects))
    list(_small(client, rounds=9))  # warm-up
    percentiles_ms = {"alone": _percentile(_small(client, rounds=rounds))}
    with _hog(uri, token) as running:
        percentiles_ms["beside a hog"] = _percentile(_small(client, rounds=rounds))
        is_hog_alive = running.is_alive()
    client.close()
    print(
        "small queries, 95th percentile: "
        + ", ".join(f"{name} {ms:.0f} ms" for name, ms in percentiles_ms.items())
        + f" (aim 2,000); the hog went on all the while: {'yes' if is_hog_alive else 'no'}",
        flush=True,
    )


def _small(client: Client, *, rounds: int) -> Iterator[float]:
    texts: Sequence[str] = (
        "SELECT VALUE p FROM bench.points p WHERE p.id = 7",
        "SELECT VALUE count(*) FROM bench.points p WHERE p.n < 100",
        "SELECT p.n, count(*) AS c FROM bench.points p WHERE p.id < 50 GROUP BY p.n ORDER BY c LIMIT 3",
    )
    for turn in range(rounds):
        yield took_ms(partial(client.say, texts[turn % len(texts)]))


def _percentile(times: Iterator[float]) -> float:
    sorted_times = sorted(times)
    return sorted_times[min(len(sorted_times) - 1, int(len(sorted_times) * 0.95))]


@contextmanager
def _hog(uri: str, token: str) -> Iterator[threading.Thread]:
    """Run a cross join until it is cancelled."""

    def run() -> None:
        client = Client(uri, token)
        try:
            for turn in range(1_000):
                if ended.is_set():
                    return
                client.say(_HOG.format(turn), client_context_id="hog")
        except StatementRefused:
            return
        finally:
            client.close()

    ended = threading.Event()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(3)
    try:
        yield thread
    finally:
        ended.set()
        canceller = http.client.HTTPConnection(urlsplit(uri).netloc, timeout=60)
        canceller.request(
            "DELETE", "/admin/requests/running?client_context_id=hog", headers={"authorization": f"Bearer {token}"}
        )
        canceller.getresponse().read()
        canceller.close()
        thread.join(60)


ROWS: Final = ("lookup", "change", "insert", "division", "warm", "memory", "compare")


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.sqlpp", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=ROWS, default=ROWS, help="rows to measure")
    parser.add_argument("--objects", type=int, default=100_000, help="of the dataset that single ones are of")
    parser.add_argument("--many", type=int, default=1_000_000, help="of the large dataset for lookups; 0: none")
    parser.add_argument("--lookups", type=int, default=200, help="statements that are measured of lookups")
    parser.add_argument("--statements", type=int, default=5000, help="of the row `memory`")
    parser.add_argument("--large", type=int, default=60_000, help="of the dataset whose objects a hog pairs")
    parser.add_argument("--rounds", type=int, default=20, help="turns, after some to warm up")
    parser.add_argument("--memory", default="1g", help="of the benchmark's own Spark")
    parsed_arguments = parser.parse_args(arguments)
    if (
        min(
            parsed_arguments.objects,
            parsed_arguments.large,
            parsed_arguments.rounds,
            parsed_arguments.lookups,
            parsed_arguments.statements,
        )
        < 1
    ):
        parser.error("numbers above 0")
    return parsed_arguments


@contextmanager
def _server(env: Mapping[str, str] = MappingProxyType({})) -> Iterator[tuple[statements.Server, str, str]]:
    """Serve from an empty directory. Yields the server, its address and the administrator's token."""
    with tempfile.TemporaryDirectory(prefix="limnos-bench-") as place:
        data = Path(place) / "data"
        with served(data, 1, env={**LONG, **env}) as (pid, uri, _):
            token = (data / "admin.token").read_text().strip()
            client = Client(uri, token)
            try:
                yield statements.Server(pid, client), uri, token
            finally:
                client.close()


def measured(arguments: argparse.Namespace) -> Iterator[str]:
    """Measure the rows of single statements; yields lines as they come."""
    rounds, objects = arguments.rounds, arguments.objects
    few = max(1, rounds // 4)
    rows: dict[str, Callable[[statements.Server], Iterator[str]]] = {
        "lookup": partial(statements.lookup_lines, counts=(objects, arguments.many), times=arguments.lookups),
        "change": partial(statements.change_lines, objects=objects, times=rounds),
        "insert": partial(statements.insert_lines, rounds=few),
        "division": partial(statements.division_lines, rounds=few),
    }
    chosen = [work for name, work in rows.items() if name in arguments.only]
    if chosen:
        with _server() as (server, _, _):
            for work in chosen:
                server.client.say("DROP DATAVERSE bench IF EXISTS")
                yield from work(server)
    if "warm" in arguments.only:
        began = time.perf_counter()
        with _server(statements.WARMS) as (server, _, _):
            yield from statements.warm_lines(server, started_at=began, ready_at=time.perf_counter())
    if "memory" in arguments.only:
        with _server() as (server, _, _):
            yield from statements.memory_lines(server, statements=arguments.statements, objects=objects)


def compare(arguments: argparse.Namespace) -> None:
    """Compare with Spark's own statements."""
    with _server() as (server, uri, token):
        server.client.say(_MADE)
        definitions(server.client, rounds=arguments.rounds * 10)
        server.client.say(_FILLED.format("points", arguments.objects))
        hogged(uri, token, objects=arguments.large, rounds=arguments.rounds * 3)
        settings = {"spark.driver.memory": arguments.memory, "spark.log.level": "ERROR"}
        spark = session(uri, token=token, config=settings)
        try:
            single(server.client, spark, objects=arguments.objects, rounds=arguments.rounds)
        finally:
            spark.stop()


def main() -> int:
    """Measure and print."""
    arguments = options()
    for line in measured(arguments):
        print(line, flush=True)
    if "compare" in arguments.only:
        compare(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
