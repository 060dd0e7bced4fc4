# SPDX-License-Identifier: Apache-2.0
"""The four kinds of work: each repeats one unit of work in a thread, and compares its result with a plain computation.

A unit that is refused or waits must say why. Faults are texts; a kind without faults did all that it says.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from limnos.client import Client
from limnos.client.operation.maintenance_values import MaintenanceOperation
from tests.integration.live import LIMNOS, LiveServer
from tests.pipeline.run.test_kills import Driver, published_snapshots
from tests.spark.cluster import end

ROWS: Final = 20_000
"""The rows of a day of the pipeline."""
PIPELINE: Final = """
pipeline: nightly
catalog: main
parameters: {day: int}
steps:
  nightly.raw:
    sql: >-
      SELECT id, :day AS day, sha2(concat(cast(:day AS string), '-', cast(id AS string)), 256) AS h
      FROM range(0, ROWS, 1, 4)
    write: append
  nightly.odd:
    sql: SELECT id, day, h FROM nightly.raw WHERE day = :day AND id % 2 = 1
    write: {mode: merge, keys: [day, id]}
  nightly.total:
    sql: SELECT day, count(*) AS n, sum(crc32(h)) AS s FROM nightly.odd GROUP BY day
"""
STEPS: Final = ("raw", "odd", "total")
FILES: Final = 5
"""The small files that are added to a table before it is compacted."""
CARED: Final = ("main.care.orders", "main.care.visits", "main.care.events")
OBJECTS: Final = 2_000
BATCH: Final = 300
"""The objects of the dataset at the start, and those that a statement inserts."""
_FIELDS: Final = pa.schema({"id": pa.int64(), "word": pa.string()})
PAUSE_S: Final = 8.0
"""The seconds between two units of a kind."""
ANSWERS_S: Final = 600


@lru_cache(None)
def total_of(day: int) -> tuple[int, int, int]:
    """Return the row of a day in `nightly.total`, computed without Spark."""
    texts = (hashlib.sha256(f"{day}-{number}".encode()).hexdigest() for number in range(1, ROWS, 2))
    return day, ROWS // 2, sum(zlib.crc32(text.encode()) for text in texts)


@dataclass(kw_only=True)
class WorkKind:
    """A kind of work: what it has done, which waits were reported, and its faults."""

    server: LiveServer
    master: str
    conf: Mapping[str, str]
    logs: Path
    environment: Mapping[str, str]
    name: str = ""
    units: int = 0
    done_at: list[float] = field(default_factory=list)
    longest_s: float = 0.0
    waits: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        """Start to work."""
        self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Finish the current unit, and end."""
        self.over.set()
        self._thread.join(timeout=ANSWERS_S)
        if self._thread.is_alive():
            self.faults.append("its last unit did not end")
        self.close()

    def close(self) -> None:
        """End processes of the kind's own."""

    @property
    def flags(self) -> list[str]:
        """The flags of a command that starts Spark on the cluster."""
        return ["--master", self.master, *(word for pair in self.conf.items() for word in ("--conf", "=".join(pair)))]

    def table(self, name: str) -> Table:
        """Return an Iceberg table, read without Spark."""
        catalog, _, rest = name.partition(".")
        uri, token = f"{self.server.uri}/iceberg", self.server.token
        return load_catalog("lake", uri=uri, token=token, warehouse=f"lake/{catalog}").load_table(rest)

    def unit(self) -> bool:
        """Do one unit of work. Returns whether it was done; False if it was refused with a reason."""
        raise NotImplementedError

    def compare(self) -> None:
        """Compare what all units have left, after the end."""

    def _work(self) -> None:
        while not self.over.is_set():
            began = time.monotonic()
            try:
                if self.unit():
                    self.units += 1
                    self.done_at.append(time.monotonic())
                    self.longest_s = max(self.longest_s, self.done_at[-1] - began)
            except Exception as error:
                self.faults.append(f"{type(error).__name__}: {str(error)[:1000]}")
                return
            self.over.wait(PAUSE_S)

    def _spawn(self, words: Sequence[str], *, log: str, stdin: int | None = None) -> subprocess.Popen[str]:
        with (self.logs / log).open("ab") as errors:
            return subprocess.Popen(
                words,
                env={**self.environment, "LIMNOS_TOKEN": self.server.token, "LIMNOS_URI": self.server.uri},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )


@dataclass(kw_only=True)
class PipelineRuns(WorkKind):
    """A declared pipeline, a run for each day."""

    file: Path
    name: str = "pipelines"
    runs: list[str] = field(default_factory=list)
    resumed: int = 0
    where: tuple[str, ...] = ()
    """Flags in place of those of the cluster."""
    driver: Driver | None = None

    @property
    def day(self) -> int:
        """The day of the next run."""
        return len(self.runs) + 1

    def unit(self) -> bool:
        """Run the next day; resume a run that lost its executors too often."""
        last = self._drive("run", str(self.file), "--param", f"day={self.day}")
        for _ in range(3):
            if last.get("state") == "published":
                break
            self.resumed += 1
            self.waits.append(f"run {last.get('run')} is {last.get('state')}: {last.get('message')}")
            last = self._drive("resume", str(last.get("run")))
        if last.get("state") != "published":
            self.faults.append(f"day {self.day} ended as {last}")
        self.runs.append(str(last["run"]))
        rows = self.table("main.nightly.total").scan().to_arrow().to_pylist()
        totals = sorted((row["day"], row["n"], row["s"]) for row in rows)
        if totals != [total_of(day) for day in range(1, self.day)]:
            self.faults.append(f"after day {self.day - 1} the totals are {totals}")
        return True

    def compare(self) -> None:
        """Each run is published once in each table, and each row is there once."""
        with Client(self.server.uri, token=self.server.token) as client:
            for step in STEPS:
                published = published_snapshots(client, f"main.nightly.{step}")[::-1]
                if [run for run, _ in itertools.groupby(published)] != self.runs:
                    self.faults.append(f"{step}: published were {published}, not {self.runs}")
        for step, each in (("raw", 1), ("odd", 2)):
            rows = self.table(f"main.nightly.{step}").scan(selected_fields=("day", "id")).to_arrow()
            counts = {
                row["day"]: (row["id_count"], row["id_count_distinct"])
                for row in rows.group_by("day").aggregate([("id", "count"), ("id", "count_distinct")]).to_pylist()
            }
            if counts != dict.fromkeys(range(1, self.day), (ROWS // each, ROWS // each)):
                self.faults.append(f"{step}: rows are missing, added or twice: {counts}")

    def close(self) -> None:
        """Kill a driver that still runs."""
        if self.driver is not None:
            end(self.driver.process)

    def _drive(self, *words: str) -> dict[str, object]:
        driver = self.driver = Driver(self.server, *words, where=self.where or self.flags, environment=self.environment)
        last: dict[str, object] = {}
        for event in driver.events():
            last = event
            if str(event.get("message", "")).startswith("waits: "):
                self.waits.append(f"{event.get('step')} {event['message']}")
        driver.process.wait(timeout=ANSWERS_S)
        with (self.logs / "pipelines.log").open("a") as log:
            log.writelines(driver.errors)
        return last


@dataclass(kw_only=True)
class MaintenanceOperations(WorkKind):
    """Tables that get small files, and an executor that compacts them."""

    name: str = "maintenance"
    ids: dict[str, list[int]] = field(default_factory=dict)
    operations: list[int] = field(default_factory=list)
    executor: subprocess.Popen[str] | None = None
    where: tuple[str, ...] = ()
    """Flags in place of those of the cluster."""
    _tables: dict[int, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Create the tables."""
        uri, token = f"{self.server.uri}/iceberg", self.server.token
        catalog = load_catalog("lake", uri=uri, token=token, warehouse="lake/main")
        for name in CARED:
            catalog.create_table(name.partition(".")[2], schema=_FIELDS)

    def unit(self) -> bool:
        """Add files to a table, and wait until they were compacted, or the operation waits with a reason."""
        self._ensure_executor()
        with Client(self.server.uri, token=self.server.token) as client:
            open_tables = {self._table_of(each) for each in self.operations if _row(client, each).ended_at is None}
            name = next((each for each in self._turns() if each not in open_tables), None)
            if name is None:
                return False
            self._add_files(name)
            operation = client.maintenance.run(name, operation="compact")
            self.operations.append(operation)
            self._tables[operation] = name
            until = time.monotonic() + ANSWERS_S
            while (row := _row(client, operation)).ended_at is None and time.monotonic() < until:
                if row.state == "waiting" and "no executor" in (row.result or ""):
                    self.waits.append(f"operation {operation}: {row.result}")
                    return False
                time.sleep(0.5)
                self._ensure_executor()
        if row.state != "done":
            self.faults.append(f"operation {operation} is {row.state}: {row.result}")
        return True

    def compare(self) -> None:
        """Each operation is done or waits, and no row is lost."""
        with Client(self.server.uri, token=self.server.token) as client:
            states = [(each, _row(client, each)) for each in self.operations]
            for number, row in states:
                if row.state not in ("done", "waiting"):
                    self.faults.append(f"operation {number} is {row.state}: {row.result}")
        for name, ids in self.ids.items():
            rows = self.table(name).scan().to_arrow()
            if sorted(rows["id"].to_pylist()) != ids:
                self.faults.append(f"{name} has {len(rows)} rows, and {len(ids)} were written")

    def close(self) -> None:
        """End the executor, and read the waits that it logged."""
        if self.executor is not None:
            end(self.executor)
            text = (self.logs / "maintenance.log").read_text(errors="replace")
            self.waits = re.findall(r"operation \d+ waits: [^\n]*", text)

    def _table_of(self, operation: int) -> str:
        return self._tables[operation]

    def _turns(self) -> Sequence[str]:
        at = len(self.operations) % len(CARED)
        return (*CARED[at:], *CARED[:at])

    def _ensure_executor(self) -> None:
        if self.executor is None or self.executor.poll() is not None:
            words = [
                *LIMNOS,
                "maintenance",
                "work",
                "--threads",
                "1",
                "--executor-wait",
                "60",
                *(self.where or self.flags),
            ]
            self.executor = self._spawn(words, log="maintenance.log")

    def _add_files(self, name: str) -> None:
        table, ids = self.table(name), self.ids.setdefault(name, [])
        for _ in range(FILES):
            new = range(len(ids), len(ids) + 200)
            ids.extend(new)
            table.append(pa.table([pa.array(new), pa.array([f"w{each % 7}" for each in new])], schema=_FIELDS))


@dataclass(kw_only=True)
class SqlppStatements(WorkKind):
    """Queries of SQL++ whose tasks the cluster executes, and statements that insert objects."""

    name: str = "SQL++"
    chance: random.Random = field(default_factory=lambda: random.Random(51))
    batches: set[int] = field(default_factory=lambda: {0})
    """The batches that were inserted; 0 are the objects of the start."""
    tried: int = 0
    refused: list[float] = field(default_factory=list)
    """After how many seconds a statement was refused for lack of an executor."""

    def prepare(self) -> None:
        """Make the dataset. Raises RuntimeError if a statement fails."""
        for text in (
            "create dataverse shop; use shop; create type Visit as {id: bigint};",
            "use shop; create dataset Visits(Visit) primary key id;",
            f"use shop; insert into Visits (select value {{'id': r, 'page': r % 11}} from range(1, {OBJECTS}) as r);",
        ):
            status, body = self.send(text)
            if status != 200:
                raise RuntimeError(f"{text} gets {status}: {body}")

    def ids(self) -> list[int]:
        """Return the ids of the objects that must be there."""
        ids = list(range(1, OBJECTS + 1))
        for batch in sorted(self.batches - {0}):
            ids += range(OBJECTS + (batch - 1) * BATCH + 1, OBJECTS + batch * BATCH + 1)
        return ids

    def unit(self) -> bool:
        """Send a query, or each fourth time an insert, and compare the result."""
        if self.units % 4 == 3:
            return self._insert()
        return self._query(self.chance.randint(2, 12))

    def send(self, text: str) -> tuple[int, Any]:
        """Send statements. Returns the HTTP status and the body."""
        body = json.dumps({"statement": text, "timeout": "200s"}).encode()
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.server.uri}/query/service", data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=ANSWERS_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def compare(self) -> None:
        """The dataset has the inserted objects, and no other one."""
        rows = sorted(self.table("main.shop.Visits").scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())
        if rows != self.ids():
            self.faults.append(f"the dataset has {len(rows)} objects, and {len(self.ids())} were inserted")

    def _query(self, parts: int) -> bool:
        began = time.monotonic()
        status, body = self.send(
            f"use shop; select k, count(*) as n, sum(v.id) as s from Visits as v group by v.id % {parts} as k order by k"
        )
        if status != 200:
            return self._refused(status, body, seconds=time.monotonic() - began)
        by_key: dict[int, list[int]] = {}
        for each in self.ids():
            by_key.setdefault(each % parts, []).append(each)
        expected = [{"k": key, "n": len(ids), "s": sum(ids)} for key, ids in sorted(by_key.items())]
        if body["results"] != expected:
            self.faults.append(f"groups of {parts}: {body['results']}, not {expected}")
        return True

    def _insert(self) -> bool:
        self.tried += 1
        batch, began = self.tried, time.monotonic()
        first = OBJECTS + (batch - 1) * BATCH + 1
        status, body = self.send(
            "use shop; insert into Visits (select value {'id': r, 'page': r % 11} from"
            f" range({first}, {first + BATCH - 1}) as r);"
        )
        if status == 200:
            self.batches.add(batch)
            return True
        rows = self.table("main.shop.Visits").scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
        count = sum(first <= each < first + BATCH for each in rows)
        if count not in (0, BATCH):
            self.faults.append(f"a refused insert left {count} of {BATCH} objects")
        if count:
            self.batches.add(batch)
        return self._refused(status, body, seconds=time.monotonic() - began)

    def _refused(self, status: int, body: Any, *, seconds: float) -> bool:  # noqa: ANN401 - JSON
        message = str(body["errors"][0]["msg"]) if isinstance(body, dict) and body.get("errors") else str(body)
        if status == 503 and "no executor" in message:
            self.refused.append(seconds)
            self.waits.append(f"after {seconds:.0f} s: {message}")
        else:
            self.faults.append(f"a statement gets {status}: {message}")
        return False


@dataclass(kw_only=True)
class SystemReads(WorkKind):
    """Reads of the system table `nodes` by a Spark application, compared with the export."""

    name: str = "system tables"
    reader: subprocess.Popen[str] | None = None

    def unit(self) -> bool:
        """Read the table, and compare its ids with the exports before and after."""
        reader = self.reader
        if reader is None:
            words = [sys.executable, "-m", "conformance.cluster.reader", self.server.uri, self.master]
            words.append(json.dumps(dict(self.conf)))
            reader = self.reader = self._spawn(words, log="reader.log", stdin=subprocess.PIPE)
        before = self._exported()
        print("read", file=_pipe(reader.stdin), flush=True)
        line = _pipe(reader.stdout).readline()
        if not line:
            raise RuntimeError(f"the reader ended with {reader.wait()}")
        rows = json.loads(line)
        after = self._exported()
        if len(set(rows)) != len(rows) or not before & after <= set(rows) <= before | after:
            self.faults.append(f"{len(rows)} rows, and {len(before)} to {len(after)} objects of the export")
        return True

    def close(self) -> None:
        """End the application."""
        if self.reader is not None:
            end(self.reader)
        log = self.logs / "reader.log"
        warnings = re.findall(r"Initial job has not accepted any resources[^\n]*", log.read_text(errors="replace"))
        self.waits += [f"Spark's log: {each}" for each in warnings]

    def _exported(self) -> set[int]:
        with Client(self.server.uri, token=self.server.token) as client:
            lines = b"".join(client.export("lake", format="json")).splitlines()
        kinds = ("metalake", "catalog", "namespace", "table", "entity")
        return {int(record[kind]["id"]) for record in map(json.loads, lines) for kind in kinds if kind in record}


def _row(client: Client, operation: int) -> MaintenanceOperation:
    """Return the row of an operation."""
    return client.maintenance.status("main", before=operation + 1).operations[0]


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise RuntimeError("the process has no pipe")
    return stream


def of_user(server: LiveServer, token: str) -> LiveServer:
    """Return the server with another token."""
    return replace(server, token=token)


def inherited() -> dict[str, str]:
    """Return the environment of this process, without a token and a server."""
    return {key: value for key, value in os.environ.items() if key not in ("LIMNOS_TOKEN", "LIMNOS_URI")}
