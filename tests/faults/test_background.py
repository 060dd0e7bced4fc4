# SPDX-License-Identifier: Apache-2.0
"""Background work beside a store that fails for some seconds, and after a clock that was a day ahead: webhooks, jobs
and indexing go on without a restart of the node, readiness says meanwhile what fails, and the node stops with code 0.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.app.receivers import Receiver, receiving
from tests.faults.measurements import note
from tests.faults.proxy import Proxy
from tests.faults.rig import BACKENDS, SETTLED_WITHIN_S, Rig
from tests.nodes.wire import GRAVITINO, OWN, PREFIX, namespace_body

IN_REACH = {"PYTHONPATH": str(Path(__file__).parent / "disk")}
MARK = "broken"
FAULT_S = 8.0
FAULTS = (
    ("sqlite", "read errors"),
    ("sqlite", "damage"),
    ("sqlite", "silence"),
    ("postgresql", "renamed tables"),
    ("postgresql", "silence"),
)
JOBS = "/api/metalakes/lake/jobs"
AWAY = ("webhook", "template_job", "task", "search_position")
"""Tables that are renamed, as by a mistake in a database that others administer."""
DAY_MS = 86_400_000
LEASED = {
    "task": ("due_at", "leased_until"),
    "webhook": ("due_at", "leased_until"),
    "search_lease": ("leased_until",),
    "node_seen": ("seen_at",),
}
"""Times that a node with a clock that is ahead writes, by table."""


STEPS = re.compile(r'^limnos_background_steps_total\{.*?loop="([^"]+)".*?\} (\S+)$', re.MULTILINE)
HOURLY = {"store upkeep"}
"""Loops that pause for longer than the test waits."""


class BusyNode(NamedTuple):
    """A node that delivers to a receiver and runs jobs."""

    rig: Rig
    receiver: Receiver
    proxy: Proxy | None
    """Between the node and PostgreSQL."""

    def wait_for(self, is_so: Callable[[], bool]) -> float:
        """Wait until a condition is true. Returns the seconds that it took."""
        began = time.monotonic()
        while not is_so():
            assert time.monotonic() < began + SETTLED_WITHIN_S, "it did not happen in time"
            time.sleep(0.1)
        return time.monotonic() - began

    def require_work(self) -> dict[str, float]:
        """Create a namespace and request a job. Wait until the namespace is delivered and found, and the job is done.

        Returns the seconds until then.
        """
        name = self.rig.tag()
        self.rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(name))
        request = {"jobTemplateName": "program", "jobConf": {}}
        job = self.rig.admin.do("POST", f"{JOBS}/runs", request).body["job"]
        job_path = f"{JOBS}/runs/{job['jobId']}"  # type: ignore[index]
        return {
            "delivered": self.wait_for(lambda: self.is_delivered(name)),
            "job": self.wait_for(lambda: "succeeded" in str(self.rig.admin.do("GET", job_path).body)),
            "indexed": self.wait_for(self.is_indexed),
        }

    def is_delivered(self, name: str) -> bool:
        """Return whether the receiver got the event of a namespace."""
        return any(event["data"]["path"][-1] == name for event in self.receiver.events)

    def is_indexed(self) -> bool:
        """Return whether the search index has all changes."""
        return self.rig.admin.do("GET", f"{OWN}/nodes").body["search"] == {"zones": 0, "changes": 0}

    def steps(self) -> dict[str, float]:
        """Return the number of successful steps of each loop that has run."""
        with urllib.request.urlopen(f"{self.rig.node.uri}/metrics", timeout=SETTLED_WITHIN_S) as answer:
            counts = {name: float(count) for name, count in STEPS.findall(answer.read().decode())}
        return {name: count for name, count in counts.items() if count and name not in HOURLY}

    def is_degraded(self) -> bool:
        """Return whether readiness says that background work, or the store, fails."""
        answer = self.rig.admin.ask("GET", f"{GRAVITINO.partition('/metalakes')[0]}/health/ready")
        return answer.status == 503 or answer.body.get("state") == "degraded"

    def is_degraded_by(self, fault: str) -> bool:
        """Return whether readiness says so during a fault.

        In SQLite another program commits first, so that the node reads pages again that it has cached.
        """
        if self.rig.is_sqlite and fault != "silence":
            self.rig.sql("UPDATE node_seen SET clock_offset_ms = clock_offset_ms + 1")
        return self.is_degraded()


@pytest.fixture(params=BACKENDS)
def busy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BusyNode]:
    """A node with a webhook and a job template, for each database."""
    proxy = Proxy(request.getfixturevalue("cluster").database()) if request.param == "postgresql" else None
    program = tmp_path / "program.sh"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    with receiving() as receiver:
        env = IN_REACH | {
            "LIMNOS_TEST_BROKEN": str(tmp_path / MARK),
            "LIMNOS__EVENTS__ALLOWED_URLS": receiver.url,
            "LIMNOS__JOBS__EXECUTOR": "local",
            "LIMNOS__JOBS__CONFINED": "false",
            "LIMNOS__JOBS__ALLOWED": str(tmp_path),
            "LIMNOS__JOBS__WRITABLE": str(tmp_path),
        }
        with proxy or nullcontext(), Rig(tmp_path, proxy and proxy.url, env=env) as rig:
            rig.admin.do("POST", f"{OWN}/metalakes/lake/webhooks", {"url": f"{receiver.url}/hook"})
            body = {"jobType": "shell", "name": "program", "comment": None, "executable": str(program), "arguments": []}
            rig.admin.do("POST", f"{JOBS}/templates", {"jobTemplate": body})
            yield BusyNode(rig, receiver, proxy)


@contextmanager
def read_errors(busy: BusyNode) -> Iterator[None]:
    """Let reads of the SQLite file fail with EIO."""
    mark = busy.rig.directory / MARK
    mark.write_text("read")
    try:
        yield
    finally:
        mark.unlink()


@contextmanager
def damaged_tables(busy: BusyNode) -> Iterator[None]:
    """Overwrite the first page of tables in the SQLite file, and restore them later."""
    with closing(sqlite3.connect(busy.rig.database)) as connection:
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            time.sleep(0.01)
        size: int = connection.execute("PRAGMA page_size").fetchone()[0]
        query = f"SELECT rootpage FROM sqlite_master WHERE name IN {AWAY}"
        offsets = [(page - 1) * size for (page,) in connection.execute(query)]
    before = {}
    with Path(busy.rig.database).open("r+b", buffering=0) as file:
        for offset in offsets:
            before[offset] = os.pread(file.fileno(), size, offset)
            os.pwrite(file.fileno(), b"\xff" * size, offset)
        try:
            yield
        finally:
            for offset, page in before.items():
                os.pwrite(file.fileno(), page, offset)


@contextmanager
def silent_store(busy: BusyNode) -> Iterator[None]:
    """Let another program lock the SQLite file, or no byte of PostgreSQL arrive."""
    if busy.proxy is not None:
        busy.proxy.silence(new=True)
        try:
            yield
        finally:
            busy.proxy.hear()
        return
    with closing(sqlite3.connect(busy.rig.database, isolation_level=None, timeout=SETTLED_WITHIN_S)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def renamed_tables(busy: BusyNode) -> Iterator[None]:
    """Rename tables of PostgreSQL."""
    for table in AWAY:
        busy.rig.sql(f"ALTER TABLE {table} RENAME TO {table}_away")
    try:
        yield
    finally:
        for table in AWAY:
            busy.rig.sql(f"ALTER TABLE {table}_away RENAME TO {table}")


MAKERS = {
    "read errors": read_errors,
    "damage": damaged_tables,
    "silence": silent_store,
    "renamed tables": renamed_tables,
}


@pytest.mark.parametrize("busy, fault", FAULTS, indirect=["busy"])
def test_background_work_goes_on_after_the_store_failed(busy: BusyNode, fault: str) -> None:
    """The store fails for some seconds. Readiness says so, and afterwards an event is delivered, a job runs, names are
    indexed and every loop takes steps, without a restart. The node then stops with code 0.
    """
    busy.require_work()
    before = busy.steps()

    with MAKERS[fault](busy):
        began = time.monotonic()
        busy.wait_for(lambda: busy.is_degraded_by(fault))
        busy.wait_for(lambda: busy.is_degraded_by(fault) and time.monotonic() - began > FAULT_S)
    during = busy.steps()
    durations = busy.require_work()
    durations["all_loops"] = busy.wait_for(lambda: all(busy.steps()[name] > during[name] for name in before))
    busy.wait_for(lambda: not busy.is_degraded())
    process = busy.rig.node.running
    busy.rig.reconnect()
    process.terminate()

    assert process.wait(SETTLED_WITHIN_S) == 0
    backend = "sqlite" if busy.rig.is_sqlite else "postgresql"
    note(**{f"after_{fault}_{backend}_{name}": seconds for name, seconds in durations.items()})


@pytest.mark.parametrize("busy, fault", FAULTS, indirect=["busy"])
def test_node_stops_with_code_0_while_the_store_fails(busy: BusyNode, fault: str) -> None:
    """A node that gets SIGTERM while its store fails ends with code 0."""
    busy.require_work()
    process = busy.rig.node.running

    with MAKERS[fault](busy):
        busy.wait_for(lambda: busy.is_degraded_by(fault))
        busy.rig.reconnect()
        process.terminate()
        code = process.wait(SETTLED_WITHIN_S)

    assert code == 0


def test_background_work_goes_on_after_a_clock_was_a_day_ahead(busy: BusyNode) -> None:
    """A node is killed whose clock was a day ahead. When it starts with a right clock, an event is delivered, a job
    runs, names are indexed, and no task waits for a day.
    """
    busy.require_work()
    busy.rig.node.kill()
    for table, columns in LEASED.items():
        for column in columns:
            busy.rig.sql(f"UPDATE {table} SET {column} = {column} + {DAY_MS} WHERE {column} < {1 << 50}")
    busy.rig.start()

    durations = busy.require_work()
    far_ms = int(time.time() * 1000) + DAY_MS + 3_600_000
    busy.wait_for(lambda: not busy.rig.rows(f"SELECT 1 FROM task WHERE due_at BETWEEN {far_ms} AND {1 << 50}"))

    note(**{f"after_clock_{busy.rig.is_sqlite}_{name}": seconds for name, seconds in durations.items()})
