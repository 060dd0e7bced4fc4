# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.ten_million`: what one database carries: a store with N tables, from the start to the export.

Plants the tables, each with its document, location and owner, then prints one table: size, start, memory, CPU of server
and database together for requests, grants, the feed, the export, a backup and the upgrade of the schema. Long steps end
at `--step-s`, and the table tells where. It judges nothing.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from bench import seed
from bench.bulk_seed import BULK, CROWD, EACH, SUBJECTS, BulkForest, crowd_size, plant_bulk
from bench.cpu import TreeCpu, descendants, processes_s
from bench.large_tree import HealthProbe
from bench.load import Generator
from bench.measure import Target, measure_round, prepare
from bench.operations import OPERATIONS, Case, Operation, namespace_path, page_token, request, table_path
from bench.search import Client
from bench.seed import open_filler
from bench.stores import LIMNOS, STORES, Place, Postgres, running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.stores import Server

CONNECTIONS: Final = 16
ROUNDS: Final = 3
FIXTURES: Final = seed.Shape(1_000)
WITHOUT_SEARCH: Final = {"LIMNOS__ROOMS__OFF": "search"}
EXPORT: Final = "/api/limnos/v1/metalakes/lake/export"
RIGHTS: Final = "/api/metalakes/lake/permissions/roles"
CHANGED: Final = 40
"""Grants and revokes that are measured."""
FIRST: Final = "0068"
"""The schema of the first release, before that of this one."""
BYTES_EACH: Final = 5_000
"""Bytes of disk a table, with the backup and the files of transactions."""
T = TypeVar("T")
_CHOSEN: Final = ("head", "load-6k", "list-1000-schema", "create-table", "commit", "create-namespace", "feed-quiet")


def say(title: str, value: str) -> None:
    """Print a line of the table."""
    print(f"| {title} | {value} |", flush=True)


# ------------------------------------------------------------------------------------------------- the tree


def bulk_table(number: int) -> tuple[tuple[str, ...], str]:
    """Return the namespace and the name of a table in a namespace of a thousand."""
    space = number // EACH
    levels = (BULK, f"area_{space // 100:03}", f"space_{space:05}")
    return levels, f"subject{space % SUBJECTS:02}_{number % EACH:03}"


def small_tables(tables: int) -> int:
    """Return the number of tables in namespaces of a thousand."""
    return max(1, (tables - crowd_size(tables)) // EACH) * EACH


def loaded_tables(tables: int) -> list[int]:
    """Return the tables that are loaded, all over the tree; the first thousand of them again and again."""
    numbers = list(range(0, small_tables(tables), max(1, small_tables(tables) // 8_000)))
    random.Random(3).shuffle(numbers)
    return numbers


def _loads(numbers: Sequence[int]) -> Callable[[Case], list[bytes]]:
    """Loads of tables; each measurement has its own share of them."""
    return lambda case: [
        request(case, "GET", table_path(*bulk_table(number)), user="reader")
        for number in numbers[case.part :: case.parts]
    ]


def _pages(tables: int) -> Callable[[Case], list[bytes]]:
    """Pages of a hundred that begin all over the large namespace."""
    size = crowd_size(tables)

    def make(case: Case) -> list[bytes]:
        path = f"{namespace_path([CROWD])}/tables?pageSize=100&pageToken="
        step = max(1, size // 2_000)
        return [
            request(case, "GET", path + page_token(f"table_{number:07}"), user="reader")
            for number in range(case.part, size, step)
        ]

    return make


def operations(tables: int) -> list[Operation]:
    """Return the measured requests."""
    chosen, loaded = {each.key: each for each in OPERATIONS}, loaded_tables(tables)
    return [
        *(chosen[key] for key in _CHOSEN[:3]),
        Operation(key="bulk-load", title="load table, of 300 all over the tree", requests=_loads(loaded[:1_000])),
        Operation(key="bulk-cold", title="load table, never asked before", requests=_loads(loaded[1_000:]), once=True),
        Operation(key="crowd-page", title=f"page of 100 of {crowd_size(tables):,}", requests=_pages(tables)),
        *(replace(chosen[key], count_max=3_000) for key in _CHOSEN[3:]),
        chosen["feed"],
    ]


# ------------------------------------------------------------------------------------------------- clocks


class Stopwatch:
    """CPU of server and database, and time, since it was made."""

    def __init__(self, pids: Sequence[int], *, is_new: bool = False) -> None:
        """Watch processes; of new ones all of their CPU counts."""
        self._pids = pids
        self._cpu_s = 0.0 if is_new else processes_s(pids)
        self._began = time.perf_counter()

    @property
    def cpu_s(self) -> float:
        """CPU seconds until now."""
        return processes_s(self._pids) - self._cpu_s

    @property
    def took_s(self) -> float:
        """Seconds until now."""
        return time.perf_counter() - self._began

    def text(self) -> str:
        """Return both."""
        return f"{self.cpu_s:,.2f} s of CPU, {self.took_s:,.2f} s"


def memory_mb(pid: int) -> float:
    """Return the proportional share of memory of a process and its descendants, in MB."""
    total = 0
    for each in descendants([pid]):
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


# ------------------------------------------------------------------------------------------------- steps


def plant(place: Place, tables: int, *, database_pid: int | None) -> None:
    """Plant the fixtures of the benchmark and the tables, and print how long it took."""
    watch = Stopwatch([os.getpid()] if database_pid is None else [os.getpid(), database_pid])
    prepare(place, FIXTURES, database_pid=database_pid)
    plant_bulk(BulkForest(open_filler(place, journals=False)), tables, loaded=loaded_tables(tables))
    say("planting: fixtures through the server, the others by SQL", watch.text())


def database_bytes(place: Place) -> int:
    """Return the size of the store's database."""
    if place.database is None:
        return sum(path.stat().st_size for path in place.data.glob(f"{place.sqlite_file.name}*"))
    return int(str(_rows(place, "SELECT pg_database_size(current_database())")[0][0]))


def _rows(place: Place, text: str) -> list[tuple[object, ...]]:
    """Run a statement beside the server, or while none runs, and return its rows."""
    if place.database is None:
        with sqlite3.connect(place.sqlite_file) as connection:
            return connection.execute(text).fetchall()
    import psycopg

    with psycopg.connect(place.database) as connection:
        cursor = connection.execute(text.encode())
        return [] if cursor.description is None else cursor.fetchall()


@contextmanager
def started(title: str, place: Place, *, database_pid: int | None, settings: dict[str, str]) -> Iterator[Server]:
    """Start a server, and print its start, its first answer, its idle time and its memory."""
    database = Stopwatch([] if database_pid is None else [database_pid])
    with running_server(place, database_pid=database_pid, environment=settings) as server:
        ready_s = database.took_s
        began = processes_s(server.pids[:1])
        Client(server).ask("HEAD", table_path(*bulk_table(0)), user="reader")
        cpu_s = processes_s(server.pids[:1]) + database.cpu_s
        say(
            f"{title}: start to the ready line; to the first answer",
            f"{ready_s:.2f} s; {database.took_s:.2f} s, {began:.2f}; {cpu_s:.2f} s of CPU",
        )
        say(f"{title}: memory after the first answer", f"{memory_mb(server.pids[0]):.0f} MB")
        idle = Stopwatch(server.pids)
        time.sleep(10)
        say(f"{title}: ten seconds without requests", f"{idle.cpu_s:.2f} s of CPU")
        yield server


def measure_requests(server: Server, store: str, tables: int) -> None:
    """Measure each kind of request, in rounds of which the best counts."""
    target = Target(store, FIXTURES, server)
    with Generator() as generator:
        for operation in operations(tables):
            rounds = [
                measure_round(
                    generator,
                    generator,
                    operation,
                    target,
                    case=Case(host=target.host, shape=FIXTURES, connections=CONNECTIONS, part=part, parts=ROUNDS),
                    seconds=0.4,
                )
                for part in range(ROUNDS)
            ]
            best = min(rounds, key=lambda each: each.cpu_us)
            database = f", database {best.database_ns / best.answered.count / 1000:.0f}" if server.pids[1:] else ""
            say(operation.title, f"{best.cpu_us:.0f} µs{database}; p99 {best.answered.p99_ms:.1f} ms")
    say("memory after these requests", f"{memory_mb(server.pids[0]):.0f} MB")


def wait_until_quiet(server: Server) -> None:
    """Wait until the server has worked off what requests left behind, such as the audit: at most a minute."""
    for _ in range(30):
        watch = Stopwatch(server.pids)
        time.sleep(2)
        if watch.cpu_s < 0.15 * watch.took_s:
            return


class RightsClient:
    """Changes rights as the admin, and asks as the user whom they concern, each with its CPU."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._client = Client(server)
        self._clock = TreeCpu(server.pids)
        self.spent_ns: dict[str, list[int]] = {}

    def change(self, verb: str, scope: str, privilege: str) -> None:
        """Grant or revoke."""
        body = {"privileges": [{"name": privilege, "condition": "ALLOW"}]}
        self._timed(verb, lambda: self._client.ask("PUT", f"{RIGHTS}/reading/{scope}/{verb}", body))

    def status(self, title: str, path: str) -> int:
        """Return the status of a HEAD as the reader."""
        connection = http.client.HTTPConnection(self._server.host, self._server.port, timeout=60)
        head = request(
            Case(host=f"{self._server.host}:{self._server.port}", shape=FIXTURES, connections=1, part=0, parts=1),
            "HEAD",
            path,
            user="reader",
        )
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:-2])

        def send() -> int:
            connection.request("HEAD", path, headers=fields)
            response = connection.getresponse()
            response.read()
            return response.status

        status = self._timed(title, send)
        connection.close()
        return status

    def _timed(self, title: str, work: Callable[[], T]) -> T:
        before = self._clock.look()
        result = work()
        self.spent_ns.setdefault(title, []).append(self._clock.look() - before)
        return result


def measure_rights(server: Server) -> None:
    """Revoke and grant the right to all tables below the namespace above them; each must bind the next request.

    Raises AssertionError if one does not.
    """
    client, path, scope = RightsClient(server), table_path(*bulk_table(7)), f"SCHEMA/main.{BULK}"
    for _ in range(CHANGED):
        client.change("revoke", scope, "SELECT_TABLE")
        refused = client.status("the next request after a revoke (403)", path)
        client.change("grant", scope, "SELECT_TABLE")
        served = client.status("the next request after a grant", path)
        if (refused, served) != (403, 204):
            raise AssertionError(f"A change of rights did not bind the next request: {refused}, {served}")
    for title, spent in client.spent_ns.items():
        say(f"{title}, above {BULK}, one caller", f"{sorted(spent)[len(spent) // 2] / 1e6:.2f} ms of CPU (median)")


def measure_export(server: Server, *, step_s: float, nodes: int) -> None:
    """Read the export until its end, or until `step_s` seconds are over."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=600)
    headers = {"Authorization": f"Bearer {server.admin_token}"}
    before, most, size, lines, first_s = memory_mb(server.pids[0]), 0.0, 0, 0, 0.0
    watch, looked = Stopwatch(server.pids), 0.0
    connection.request("GET", f"{EXPORT}?format=json", headers=headers)
    response = connection.getresponse()
    is_cut = False
    while chunk := response.read1(1 << 20):
        first_s = first_s or watch.took_s
        size, lines = size + len(chunk), lines + chunk.count(b"\n")
        if watch.took_s - looked > 2:
            looked, most = watch.took_s, max(most, memory_mb(server.pids[0]))
        if is_cut := watch.took_s > step_s:
            break
    text = f"{lines:,} records, {size / 1e6:,.0f} MB, {watch.text()}, first byte after {first_s:.1f} s"
    connection.close()
    share = lines / nodes
    say("export, cut" if is_cut else "export", f"{text}; memory {before:.0f} MB before, {most:.0f} at most")
    if is_cut:
        say("export, whole, by that rate", f"{watch.cpu_s / share:,.0f} s of CPU, {watch.took_s / share:,.0f} s")


def measure_index(server: Server, *, step_s: float, nodes: int) -> None:
    """Let the room search index for `step_s` seconds, with a health probe beside it."""
    count = "SELECT count(*) FROM search_text"
    already = int(str(_rows(server.place, count)[0][0]))
    watch, most, probe = Stopwatch(server.pids), 0.0, HealthProbe(server)
    probe.start()
    while watch.took_s < step_s:
        time.sleep(2)
        most = max(most, memory_mb(server.pids[0]))
    probe.stop()
    text = watch.text()
    indexed = int(str(_rows(server.place, count)[0][0])) - already
    say(
        f"first index of words, the first {step_s:.0f} s",
        f"{indexed:,} of {nodes:,} objects, {text}; memory {most:.0f} MB at most; longest health answer {probe.longest_ms:.0f} ms",
    )


def measure_backup(place: Place, folder: Path, *, step_s: float, postgres: Postgres | None) -> None:
    """Back the store up, as an operator does."""
    target = folder / "backup"
    if postgres is None:
        command = [*LIMNOS, "server", "backup", str(target), "--data", str(place.data)]
    else:
        command = [
            str(postgres.program("pg_dump")),
            "--format=custom",
            "--compress=0",
            f"--file={target}",
            place.database,
        ]
    text = _run(command, step_s=step_s, database_pid=None if postgres is None else postgres.pid)
    size = target.stat().st_size if target.exists() else 0
    say("backup" if postgres is None else "backup by pg_dump", f"{size / 1e9:.2f} GB, {text}")
    target.unlink(missing_ok=True)


def _run(command: Sequence[str], *, step_s: float, database_pid: int | None) -> str:
    """Run a command, at most `step_s` seconds. Returns its CPU with that of the database, and its time."""
    database = Stopwatch([] if database_pid is None else [database_pid])
    before = os.times()
    try:
        done = subprocess.run(command, timeout=step_s, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        return f"cut after {step_s:.0f} s"
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    end = f": exit code {done.returncode}: {done.stderr[-300:]}" if done.returncode else ""
    return f"{cpu_s + database.cpu_s:,.2f} s of CPU, {database.took_s:,.2f} s{end}"


def measure_upgrade(place: Place, *, step_s: float, database_pid: int | None) -> None:
    """Upgrade the schema from that of the first release."""
    for text in (f"UPDATE alembic_version SET version_num = '{FIRST}'", "ALTER TABLE webhook DROP COLUMN operations"):
        _rows(place, text)
    command = [*LIMNOS, "server", "migrate", "--data", str(place.data)]
    if place.database is not None:
        command += ["--database", place.database]
    say(f"upgrade of the schema from {FIRST}", _run(command, step_s=step_s, database_pid=database_pid))


def measure_check(place: Place, *, step_s: float, database_pid: int | None) -> None:
    """Let the product read the whole store and compare each document with its digest."""
    command = [*LIMNOS, "server", "check", "--data", str(place.data)]
    if place.database is not None:
        command += ["--database", place.database]
    say("check of the whole store", _run(command, step_s=step_s, database_pid=database_pid))


def measure(place: Place, folder: Path, *, arguments: argparse.Namespace, postgres: Postgres | None) -> None:
    """Plant and measure one store."""
    tables, step_s = arguments.nodes, arguments.step_s
    database_pid = None if postgres is None else postgres.pid
    if arguments.keep is None or not place.data.exists():
        plant(place, tables, database_pid=database_pid)
    if arguments.plant_only:
        return
    nodes = int(str(_rows(place, "SELECT count(*) FROM node WHERE deleted = 0")[0][0]))
    say("nodes; size of the database", f"{nodes:,}; {database_bytes(place) / 1e9:.2f} GB")
    with started("without search", place, database_pid=database_pid, settings=WITHOUT_SEARCH) as server:
        _verify(server, tables)
        measure_requests(server, arguments.store, tables)
        wait_until_quiet(server)
        measure_rights(server)
        measure_export(server, step_s=step_s, nodes=nodes)
    with started("with search", place, database_pid=database_pid, settings={}) as server:
        measure_index(server, step_s=step_s / 3, nodes=nodes)
    measure_upgrade(place, step_s=step_s, database_pid=database_pid)
    measure_backup(place, folder, step_s=step_s, postgres=postgres)
    measure_check(place, step_s=step_s, database_pid=database_pid)


def _verify(server: Server, tables: int) -> None:
    """Compare names and documents that the server shows with those that were planted. Raises AssertionError."""
    client = Client(server)
    for number in sorted(loaded_tables(tables)[:20]):
        levels, name = bulk_table(number)
        listed = json.loads(client.ask("GET", f"{namespace_path(levels)}/tables", user="reader"))["identifiers"]
        first = number // EACH * EACH
        expected = [bulk_table(first + each)[1] for each in range(EACH)]
        assert [each["name"] for each in listed] == expected, (levels, len(listed))
        document = json.loads(client.ask("GET", table_path(levels, name), user="reader"))
        assert document["metadata"]["location"] in document["metadata-location"], document
    say("verified", "20 namespaces by all of their names, and a document of each, by its digest")


@contextmanager
def _folder(arguments: argparse.Namespace) -> Iterator[Path]:
    """Yield the folder that is kept, or a temporary one."""
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        yield arguments.keep
        return
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", dir=arguments.data, ignore_cleanup_errors=True) as name:
        yield Path(name)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.ten_million", description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--step-s", type=float, default=360.0, help="most seconds of a step")
    parser.add_argument("--data", type=Path, default=None, help="folder of the store, which is deleted at the end")
    parser.add_argument("--keep", type=Path, default=None, help="folder of a store that is planted once and kept")
    parser.add_argument("--plant-only", action="store_true", help="plant the store of --keep, and measure nothing")
    parsed_arguments = parser.parse_args(arguments)
    if parsed_arguments.nodes < 10_000:
        parser.error("--nodes: at least 10000")
    return parsed_arguments


def main() -> int:
    """Measure one store and print its table."""
    arguments = options()
    began = time.monotonic()
    print(f"| {arguments.nodes:,} tables on {arguments.store} | |\n|---|---|", flush=True)
    with _folder(arguments) as folder:
        free = shutil.disk_usage(folder).free
        if not (folder / "lake").exists() and free < arguments.nodes * BYTES_EACH:
            print(f"{free / 1e9:.0f} GB are free; {arguments.nodes * BYTES_EACH / 1e9:.0f} are needed", file=sys.stderr)
            return 2
        postgres = Postgres(folder / "pg") if arguments.store == "postgres" else None
        try:
            database = None if postgres is None else postgres.database("lake")
            place = Place(folder / "lake", database)
            measure(place, folder, arguments=arguments, postgres=postgres)
        finally:
            if postgres is not None:
                postgres.stop()
    say("the whole run", f"{time.monotonic() - began:,.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
