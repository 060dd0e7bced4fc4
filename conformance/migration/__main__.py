# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.migration [--tables N] [--gone PERCENT]`: moves N tables of Iceberg's reference server in.
`--jdbc` instead: tables and a view that Spark makes in a JDBC catalog of Iceberg's Java library.

Kills the command five times. Prints the rate, the server's CPU for each table without that of the measurement, and the
latency of HEAD requests beside it: first as all processes compete for the machine, then with the server before them, so
that what the server itself keeps waiting is seen. Prints what each later step says: a second run, a run after changes
in the source, the comparison of both sides, and a cut-over while writers commit on both sides.
The exit code is 1 if a table is missing or doubled, if a step says something else than the files, or if a commit of a
writer is in neither catalog and was not reported.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from bench.cpu import TreeCpu
from bench.head_probe import HeadProbe, ProbedTable, prefer
from conformance.kit.jars import cache_directory, class_path
from conformance.kit.reference import running_reference
from conformance.migration.java_catalog import run_java_catalog
from examples.demo.server import running_server
from limnos.spark.java import find_java

LIMNOS: Final = (sys.executable, "-c", "import sys; from limnos.cli.main import main; sys.exit(main())")
KILLS: Final = 5
PREFERRED_AFTER: Final = 3
"""The number of kills after which the server is served before all other processes."""
PREFERRED: Final = -10
IDLE_S: Final = 3.0
PER_NAMESPACE: Final = 500
CHANGED: Final = 3
WRITERS_S: Final = 20.0
BUSY_HERE: Final = 3
"""The number of tables that the target's writer writes before they are cut over."""
SCHEMA: Final = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


class Sides(NamedTuple):
    """Both servers: their Iceberg REST addresses, and the target's server with its token, process and store."""

    source: str
    target: str
    uri: str
    token: str
    pid: int
    store: Path


def ask(method: str, url: str, body: object = None, *, token: str = "") -> Any:  # noqa: ANN401 - JSON
    """Send a request, and return the JSON of the answer. Raises urllib.error.HTTPError."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=120) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def table_name(number: int) -> tuple[str, str]:
    """Return the namespace and name of a planted table."""
    return f"n{number // PER_NAMESPACE:04}", f"t{number:06}"


def plant(work: Path, count: int) -> None:
    """Fill the reference server's file with copies of its one table, each with its own metadata file and location."""
    with closing(sqlite3.connect(work / "names.db")) as names, names:
        names.row_factory = sqlite3.Row
        row = dict(names.execute("SELECT * FROM iceberg_tables").fetchone())
        space = dict(names.execute("SELECT * FROM iceberg_namespace_properties").fetchone())
        document = json.loads(Path(str(row["metadata_location"]).removeprefix("file:")).read_text())
        rows = []
        for number in range(count):
            namespace, name = table_name(number)
            location = work / "warehouse" / namespace / name
            (location / "metadata").mkdir(parents=True)
            file = location / "metadata" / f"00000-{uuid.uuid4()}.metadata.json"
            own = {**document, "table-uuid": str(uuid.uuid4()), "location": f"file:{location}", "metadata-log": []}
            file.write_text(json.dumps(own, separators=(",", ":")))
            rows.append({**row, "table_namespace": namespace, "table_name": name, "metadata_location": f"file:{file}"})
        columns, marks = ", ".join(row), ", ".join("?" * len(row))
        names.executemany(
            f"INSERT INTO iceberg_tables ({columns}) VALUES ({marks})", [tuple(each.values()) for each in rows]
        )
        spaces = sorted({table_name(number)[0] for number in range(count)})
        names.executemany(
            f"INSERT INTO iceberg_namespace_properties ({', '.join(space)}) VALUES ({', '.join('?' * len(space))})",
            [tuple({**space, "namespace": each}.values()) for each in spaces],
        )


@contextmanager
def both_sides(folder: Path, count: int, removed_files: float) -> Iterator[Sides]:
    """Serve both catalogs for the body of a `with`."""
    cache = cache_directory()
    java = find_java(cache=cache).home / "bin" / "java"
    archives = os.pathsep.join(str(path) for path in class_path(cache))
    work, log = folder / "reference", folder / "reference.log"
    with running_reference(java, archives, work=work, log=log) as empty:
        ask("POST", f"{empty.uri}/v1/namespaces", {"namespace": ["first"], "properties": {"owner": "them"}})
        ask("POST", f"{empty.uri}/v1/namespaces/first/tables", {"name": "t", "schema": SCHEMA})
    plant(work, count)
    for number in range(int(count * removed_files)):
        namespace, name = table_name(number * max(1, int(1 / removed_files)) if removed_files else number)
        for file in (work / "warehouse" / namespace / name / "metadata").iterdir():
            file.unlink()
    root = f"file://{work}/warehouse"
    with (
        running_reference(java, archives, work=work, log=log) as source,
        running_server(folder / "limnos", log=folder / "limnos.log", flags=("--allow-root", root)) as target,
    ):
        token = (folder / "limnos" / "admin.token").read_text().strip()
        yield Sides(
            source=source.uri,
            target=f"{target.uri}/iceberg/v1/lake.main",
            uri=target.uri,
            token=token,
            pid=target.pid,
            store=folder / "limnos" / "limnos.db",
        )


class Command(NamedTuple):
    """What a run of the command printed: its exit code, the counts of its last line, its other lines, and errors."""

    code: int
    counts: dict[str, int]
    lines: list[dict[str, Any]]
    errors: str


def command_of(sides: Sides, *flags: str) -> list[str]:
    """Return the words of the command."""
    where = ("--uri", sides.uri, "--token", sides.token, "--timeout", "120")
    return [*LIMNOS, "migrate", "from", "iceberg-rest", sides.source, "--to", "main", *flags, *where]


def run(sides: Sides, *flags: str) -> Command:
    """Run the command to its end."""
    done = subprocess.run(command_of(sides, *flags), capture_output=True, text=True, check=False)
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()] or [{}]
    return Command(done.returncode, last.get("counts", {}), lines, done.stderr)


def stored_tables(sides: Sides) -> int:
    """Return the number of tables in the target's store, without a request to the server."""
    with closing(sqlite3.connect(f"file:{sides.store}?mode=ro", uri=True)) as store:
        return int(store.execute("SELECT count(*) FROM document").fetchone()[0])


def count_tables(sides: Sides) -> int:
    """Return the number of planted tables in the target."""
    matches = 0
    for namespace in ask("GET", f"{sides.target}/namespaces", token=sides.token)["namespaces"]:
        url = f"{sides.target}/namespaces/{namespace[0]}/tables"
        names = [each["name"] for each in ask("GET", url, token=sides.token)["identifiers"]]
        if len(names) != len(set(names)):
            raise SystemExit(f"doubled names in {namespace[0]}")
        matches += len(names)
    return matches


def probed_table(sides: Sides) -> ProbedTable:
    """Return the table whose existence is asked for."""
    place = urlsplit(f"{sides.target}/namespaces/own/tables/t")
    host, port = place.hostname or "", place.port or 0
    return ProbedTable(host=host, port=port, path=place.path, token=sides.token, pid=sides.pid)


class ProbeCpu:
    """The server's CPU of the requests of a probe, which is not that of the work beside it."""

    def __init__(self, probe: HeadProbe, spent_ms: float) -> None:
        self.each_ms = spent_ms / max(1, len(probe.times_ms))

    def of(self, *probes: HeadProbe) -> float:
        """Return the CPU of the requests of some probes, in milliseconds."""
        return self.each_ms * sum(len(each.times_ms) for each in probes)


def move_in(sides: Sides, count: int) -> Command:
    """Move everything in, with kills of the command. Returns the last run."""
    ask("POST", f"{sides.target}/namespaces", {"namespace": ["own"]}, token=sides.token)
    ask("POST", f"{sides.target}/namespaces/own/tables", {"name": "t", "schema": SCHEMA}, token=sides.token)
    cpu, probed = TreeCpu([sides.pid]), probed_table(sides)
    before = cpu.look()
    with HeadProbe(probed) as idle:
        time.sleep(IDLE_S)
    of_probes = ProbeCpu(idle, (cpu.look() - before) / 1e6)
    before, began = cpu.look(), time.monotonic()
    with HeadProbe(probed) as beside:
        for kill in range(1, PREFERRED_AFTER + 1):
            run_until_killed(sides, kill=kill, of=count, cpu=cpu)
    prefer([sides.pid], nice=PREFERRED)
    with HeadProbe(probed) as preferred:
        for kill in range(PREFERRED_AFTER + 1, KILLS + 1):
            run_until_killed(sides, kill=kill, of=count, cpu=cpu)
        last = run(sides)
    prefer([sides.pid], nice=0)
    seconds, used = time.monotonic() - began, (cpu.look() - before) / 1e6 - of_probes.of(beside, preferred)
    print(
        f"moved {count_tables(sides):,} tables in {seconds:.0f} s with {KILLS} kills: {count / seconds:.0f}/s, "
        f"{used / count:.2f} ms of the server's CPU a table"
    )
    print(f"HEAD idle: {idle.text()}")
    print(f"HEAD beside: {beside.text()}; {beside.p99_ms / idle.p99_ms:.1f} times")
    print(f"HEAD beside, the server preferred: {preferred.text()}; {preferred.p99_ms / idle.p99_ms:.1f} times")
    return last


def run_until_killed(sides: Sides, *, kill: int, of: int, cpu: TreeCpu) -> None:
    """Run the command until its part of the tables is there, and kill it."""
    running = subprocess.Popen(command_of(sides), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while running.poll() is None and stored_tables(sides) < of * kill // (KILLS + 1):
        time.sleep(0.05)
        cpu.look()
    running.kill()
    running.wait()
    print(f"killed {kill}: {stored_tables(sides)} tables are there", flush=True)


def commit(url: str, mark: str, *, token: str = "") -> bool:
    """Set a property of a table. Returns whether the catalog took the commit."""
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {mark: "1"}}]}
    try:
        ask("POST", url, body, token=token)
    except urllib.error.HTTPError:
        return False
    return True


def cut_over_beside_writers(sides: Sides) -> list[str]:
    """Cut the tables of one namespace over while both sides take commits. Returns what went wrong."""
    names = [f"w{number}" for number in range(20)]
    ask("POST", f"{sides.source}/v1/namespaces", {"namespace": ["busy"]})
    for name in names:
        ask("POST", f"{sides.source}/v1/namespaces/busy/tables", {"name": name, "schema": SCHEMA})
    run(sides, "--only", "busy")
    moved_tables: dict[str, set[str]] = {name: set() for name in names}
    ended = threading.Event()

    def write(url: str, token: str, side: str) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            name = names[number % (len(names) if side == "source" else BUSY_HERE)]
            if commit(f"{url}/namespaces/busy/tables/{name}", f"{side}-{number}", token=token):
                moved_tables[name].add(f"{side}-{number}")

    threads = [
        threading.Thread(target=write, args=(f"{sides.source}/v1", "", "source")),
        threading.Thread(target=write, args=(sides.target, sides.token, "target")),
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    outcomes: dict[str, dict[str, Any]] = {}
    until = time.monotonic() + WRITERS_S
    while time.monotonic() < until:
        step = run(sides, "--only", "busy", "--cut-over", "rename")
        print(f"cut-over beside writers: {step.counts}")
        outcomes |= {line["path"][1]: line for line in step.lines}
    ended.set()
    for thread in threads:
        thread.join()
    check = {line["path"][1]: line for line in run(sides, "--only", "busy", "--check").lines}
    return [text for name in names if (text := _lost(sides, name, moved_tables[name], outcomes, check)) is not None]


def _lost(
    sides: Sides,
    name: str,
    moved_tables: set[str],
    outcomes: dict[str, dict[str, Any]],
    check: dict[str, dict[str, Any]],
) -> str | None:
    """Return the commits of a table that are not in the target, if the migration did not report them."""
    url = f"{sides.target}/namespaces/busy/tables/{name}"
    here = set(ask("GET", url, token=sides.token)["metadata"]["properties"])
    lost = moved_tables - here
    report = outcomes.get(name, {}).get("state") in ("diverged", "not-cut-over", "ahead") or name in check
    return f"{name} lacks {sorted(lost)}" if lost and not report else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all steps. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m conformance.migration")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--gone", type=float, default=10, help="percent of the tables whose metadata file is gone")
    parser.add_argument("--jdbc", action="store_true", help="only move a JDBC catalog in that Spark has filled")
    chosen = parser.parse_args(arguments)
    if chosen.jdbc:
        with tempfile.TemporaryDirectory(prefix="migration-") as name:
            wrong = run_java_catalog(Path(name))
        print("\n".join(wrong) or "everything came, and the old catalog takes no commit")
        return 1 if wrong else 0
    wrong: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="migration-") as name,
        both_sides(Path(name), chosen.tables, chosen.gone / 100) as sides,
    ):
        removed_files = int(chosen.tables * chosen.gone / 100)
        total = chosen.tables + 1 - removed_files
        plan = run(sides, "--plan")
        print(f"plan: {plan.counts}\n{plan.errors.strip()}")
        command = next(line for line in plan.errors.splitlines() if line.startswith("  limnos set "))
        allowed = shlex.split(command)[-1]
        set_allowed = ("set", "main", "--allowed-location", allowed, "--uri", sides.uri, "--token", sides.token)
        subprocess.run([*LIMNOS, *set_allowed], check=True, stdout=subprocess.DEVNULL)
        moved = move_in(sides, total)
        print(f"last run: {moved.counts}")
        again = run(sides)
        print(f"second run: {again.counts}")
        wrong += [] if again.counts.get("same") == total and "new" not in again.counts else ["the second run"]
        wrong += [] if count_tables(sides) == total + 1 else [f"{count_tables(sides)} tables"]
        for number in range(chosen.tables - CHANGED, chosen.tables):
            namespace, table = table_name(number)
            commit(f"{sides.source}/v1/namespaces/{namespace}/tables/{table}", "changed")
        third = run(sides)
        print(f"after {CHANGED} commits in the source: {third.counts}")
        wrong += [] if third.counts.get("changed") == CHANGED else ["the run after changes"]
        check = run(sides, "--check")
        print(f"check: {check.counts}")
        wrong += [] if check.counts.get("same") == total else ["the check"]
        wrong += cut_over_beside_writers(sides)
    print("\n".join(wrong) or "nothing is missing, doubled or lost unseen")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
