# SPDX-License-Identifier: Apache-2.0
"""A driver or a server is killed at a random moment: a resumed run ends with the same tables as an undisturbed one."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client, NotFoundError
from tests.integration.live import LIMNOS, LiveServer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KILLS = 30 if os.environ.get("LIMNOS_TEST_FAULTS") == "all" else 2
PIPELINE = """
pipeline: SPACE
catalog: main
steps:
  SPACE.raw:
    sql: SELECT id, sha2(cast(id AS string), 256) AS h FROM range(0, 400000, 1, 4)
  SPACE.odd:
    sql: SELECT id, h FROM SPACE.raw WHERE id % 2 = 1
    write: {mode: merge, keys: [id]}
  SPACE.total:
    sql: SELECT count(*) AS n, sum(crc32(h)) AS s FROM SPACE.odd
"""


class Driver:
    """A process of `limnos pipeline …`, and the events that it prints."""

    def __init__(
        self,
        server: LiveServer,
        *words: str,
        where: Sequence[str] = ("--master", "local[2]"),
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        variables = {**environment, "LIMNOS_URI": server.uri, "LIMNOS_TOKEN": server.token, "LIMNOS_OUTPUT": "json"}
        command = [*LIMNOS, "pipeline", *words, "--lease", "3", *where]
        self.process = subprocess.Popen(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.errors: list[str] = []
        self._reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr or ()), daemon=True)
        self._reader.start()

    def events(self) -> Iterator[dict[str, object]]:
        """Yield each event."""
        for line in self.process.stdout or ():
            yield json.loads(line)

    def ended(self) -> dict[str, object]:
        """Return the last event."""
        last: dict[str, object] = {}
        for event in self.events():
            last = event
        assert self.process.wait(timeout=120) is not None
        self._reader.join(timeout=10)
        assert last, "".join(self.errors)[-2000:]
        return last


@pytest.fixture
def file(admin: Client, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A pipeline of three steps in a namespace of the test's own, which has the name of the file."""
    space = "k" + "".join(filter(str.isalnum, request.node.name))[-20:].lower()
    admin.namespaces.create(f"main.{space}")
    path = tmp_path / f"{space}.yaml"
    path.write_text(PIPELINE.replace("SPACE", space))
    return path


def answer(spark: SparkSession, space: str) -> list[tuple[object, ...]]:
    """Return the rows of the pipeline's last table, and the number of rows of the others."""
    total = [tuple(row) for row in spark.sql(f"SELECT * FROM main.{space}.total").collect()]
    return [*total, *((spark.table(f"main.{space}.{name}").count(),) for name in ("raw", "odd"))]


def expected(spark: SparkSession) -> list[tuple[object, ...]]:
    """Return the same, computed with plain Spark SQL."""
    odd = "SELECT sha2(cast(id AS string), 256) AS h FROM range(0, 400000) WHERE id % 2 = 1"
    total = [tuple(row) for row in spark.sql(f"SELECT count(*), sum(crc32(h)) FROM ({odd})").collect()]
    return [*total, (400000,), (200000,)]


def published_snapshots(client: Client, table: str) -> list[str]:
    """Return the runs of the ancestor snapshots of `main`, newest first."""
    metadata = client.tables.load(table).metadata
    known = {each["snapshot-id"]: each for each in metadata["snapshots"]}  # type: ignore[attr-defined]
    refs: dict[str, dict[str, int]] = metadata["refs"]  # type: ignore[assignment]
    runs, at = [], refs.get("main", {}).get("snapshot-id")
    while at is not None:
        summary = known[at]["summary"]
        if "limnos.run" in summary:
            runs.append(summary["limnos.run"])
        at = known[at].get("parent-snapshot-id")
    return runs


@contextmanager
def watched(server: LiveServer, space: str) -> Iterator[list[str]]:
    """Poll which of the tables have rows: after one has some, every table that is read later must have some."""
    broken: list[str] = []
    over = threading.Event()

    def look() -> None:
        with Client(server.uri, token=server.token) as client:
            for order in itertools.cycle(itertools.permutations(("raw", "odd", "total"))):
                row_flags = [has_rows(client, f"main.{space}.{name}") for name in order]
                if row_flags != sorted(row_flags):
                    broken.append(f"{order}: {row_flags}")
                if over.wait(0.05):
                    return

    reader = threading.Thread(target=look, daemon=True)
    reader.start()
    try:
        yield broken
    finally:
        over.set()
        reader.join(timeout=30)
        assert not reader.is_alive()


def has_rows(client: Client, table: str) -> bool:
    """Return whether `main` of a table has a snapshot."""
    try:
        refs = client.tables.load(table).metadata["refs"]
    except NotFoundError:
        return False
    return "main" in refs  # type: ignore[operator]


@dataclass(kw_only=True)
class Moment:
    """When a driver was killed, and the state at that time."""

    number: int
    began: float = field(default_factory=time.monotonic)
    step: str = ""
    delay_s: float = 0.0
    state: str = ""
    done: int = 0

    def __str__(self) -> str:
        seconds = time.monotonic() - self.began
        return (
            f"{self.number:2}  {self.step:5} + {self.delay_s:.2f} s  {self.done} steps done  {self.state:9}  published"
            f" after {seconds:.0f} s"
        )


@pytest.mark.parametrize("number", range(KILLS))
def test_resume_after_driver_kill_publishes_snapshots_once(
    server: LiveServer, admin: Client, spark: SparkSession, file: Path, number: int
) -> None:
    """After a kill at a random moment, with Java still writing, the resume publishes what an undisturbed run would,
    each snapshot once, and readers see no partial result.
    """
    chance, moment = random.Random(number), Moment(number=number)
    moment.step, moment.delay_s = chance.choice(["raw", "odd", "total"]), chance.uniform(0, 4)
    with watched(server, file.stem) as broken:
        driver, run = Driver(server, "run", str(file)), ""
        for event in driver.events():
            run = str(event["run"])
            if str(event.get("step", "")).endswith(moment.step) and event["state"] == "running":
                break
        time.sleep(moment.delay_s)
        os.kill(driver.process.pid, signal.SIGKILL)
        driver.process.wait()
        seen = admin.runs.load(run)
        while seen.state == "running":
            time.sleep(0.2)
            seen = admin.runs.load(run)
        moment.state, moment.done = seen.state, sum(step.state == "done" for step in seen.steps)
        if seen.state == "lost":
            assert not any(has_rows(admin, f"main.{file.stem}.{name}") for name in ("raw", "odd", "total"))
            ended = Driver(server, "resume", run).ended()
            assert (ended["state"], ended["exit_code"]) == ("published", 0), ended
    print(moment)

    assert broken == []
    assert answer(spark, file.stem) == expected(spark)
    for name in ("raw", "odd", "total"):
        assert published_snapshots(admin, f"main.{file.stem}.{name}") == [run]
