# SPDX-License-Identifier: Apache-2.0
"""Unique keys under concurrent writers: sixteen callers on two nodes write overlapping keys, another client appends,
and engines are killed.

A statement writes a contested key and a key of its own. A statement is executed completely or not at all, so the second
key shows whether it was executed. Files are compacted meanwhile. `LIMNOS_TEST_KEYS_S` is the duration in seconds;
`LIMNOS_TEST_FAULTS=all` adds PostgreSQL.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import BadRequestError, CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from tests.faults.rig import FULL
from tests.nodes.process import Process
from tests.nodes.stores import database_of
from tests.rooms.sqlpp.engine.query_requests import answer_of

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

SECONDS = float(os.environ.get("LIMNOS_TEST_KEYS_S", "5"))
CALLERS, KEYS = 16, 60
FEW = "4"
"""The number of files from which the dataset is compacted."""
OWN_FROM = 1_000_000
WARM_S = 240.0
SETTLED_S = 600.0
LONG_S = 60.0
"""Seconds of a run after which the files are checked to be compacted."""
MADE = "create type Entry as { id: bigint, maker: bigint }; create dataset entries(Entry) primary key id;"
NOTHING = "nothing was changed"


@dataclass(kw_only=True)
class Crowd:
    """The callers, and the answers that they got."""

    nodes: list[Process]
    token: str
    until: float = 0.0
    told: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    """By a statement's own key: INSERT or UPSERT, the other key, and the outcome."""
    strange: list[str] = field(default_factory=list)
    kills: int = 0
    outsider: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(OWN_FROM, 1 << 40)))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self) -> int:
        """Return a key that no other statement writes."""
        with self._lock:
            return next(self._numbers)

    def call(self, caller: int) -> None:
        """Send statements until the time is over."""
        source = random.Random(caller)
        node = self.nodes[caller % len(self.nodes)]
        while True:
            word, shared, own = source.choice(("insert", "upsert")), source.randrange(KEYS), self.number()
            objects = f"[{{'id': {shared}, 'maker': {own}}}, {{'id': {own}, 'maker': {own}}}]"
            status, body = answer_of(node.uri, self.token, f"{word} into entries ({objects})")
            self.told[own] = (word, shared, self._became(status, body))
            if time.monotonic() > self.until:
                return

    def _became(self, status: int, body: dict[str, object]) -> str:
        errors = body.get("errors")
        if status == 200 and not errors:
            return "done"
        message = str(errors)
        if "HYR0033" in message:
            return "duplicate"
        if NOTHING in message:
            return "nothing"
        self.strange.append(f"{status} {message}")
        return "unknown"

    def done(self) -> int:
        """Return the number of executed statements."""
        return sum(became == "done" for _, _, became in list(self.told.values()))

    def kill(self) -> None:
        """Kill an engine while statements run, each time that a number of statements were executed."""
        source, seen = random.Random(5), 0
        while time.monotonic() < self.until:
            time.sleep(source.uniform(1.0, 4.0))
            engines = [each for node in self.nodes for each in engines_of(node)]
            if engines and self.done() > seen:
                seen = self.done()
                os.kill(source.choice(engines), signal.SIGKILL)
                self.kills += 1

    def append(self, table: Table) -> None:
        """Append existing keys, as any user with the privilege to write may try."""
        row = pa.table({"id": [0], "maker": [1]}, schema=table.schema().select("id", "maker").as_arrow())
        while time.monotonic() < self.until:
            try:
                with pytest.raises(BadRequestError, match="accepts rows only from SQL"):
                    table.refresh().append(row)
                self.outsider += 1
            except CommitFailedException:  # a statement committed first, and that conflict is checked first
                pass
            time.sleep(0.5)


def engines_of(node: Process) -> list[int]:
    """Return the engine processes of a node."""
    children = psutil.Process(node.running.pid).children()
    return [
        child.pid
        for child in children
        if child.status() != psutil.STATUS_ZOMBIE and "limnos.rooms.sqlpp.engine.process" in child.cmdline()
    ]


def await_compacted(node: Process) -> None:
    """Wait until no compaction is waiting. Its engine is not killed any more."""
    until = time.monotonic() + SETTLED_S
    request = urllib.request.Request(
        f"{node.uri}/api/limnos/v1/tasks?state=waiting", headers={"Authorization": f"Bearer {node.token}"}
    )
    while True:
        with urllib.request.urlopen(request) as answer:
            waiting = answer.read()
        if b"compact-dataset" not in waiting:
            return
        assert time.monotonic() < until, waiting
        time.sleep(1)


@pytest.fixture(params=["sqlite", "postgresql"] if FULL else ["sqlite"])
def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Process]]:
    """Two nodes over one store, each with a small engine."""
    env = {"LIMNOS__ENGINE__MEMORY": "768m", "LIMNOS__SQLPP__COMPACT_FILES": FEW}
    with database_of(request.param) as database:
        pair = [
            Process(tmp_path / "data", log=tmp_path / f"{name}.log", database=database, env=env)
            for name in ("one", "two")
        ]
        try:
            for node in pair:
                node.start()
            yield pair
        finally:
            for node in pair:
                node.stop()


def test_keys_stay_unique_under_concurrent_writers(nodes: list[Process]) -> None:
    """Every key exists once, every confirmed statement was executed, no refused one was, and the other client wrote
    nothing.
    """
    crowd = Crowd(nodes=nodes, token=nodes[0].token)
    status, body = answer_of(nodes[0].uri, crowd.token, MADE)
    assert status == 200, body
    with ThreadPoolExecutor(2) as pool:  # both engines run before one is killed
        warm = [pool.submit(answer_of, node.uri, crowd.token, "select value e.id from entries e") for node in nodes]
        assert [each.result(WARM_S)[0] for each in warm] == [200, 200]
    catalog = load_catalog("lake", uri=f"{nodes[0].uri}/iceberg", token=crowd.token, warehouse="lake/main")
    table = catalog.load_table(("Default", "entries"))
    crowd.until = time.monotonic() + SECONDS

    with ThreadPoolExecutor(CALLERS + 2) as pool:
        working = [pool.submit(crowd.call, caller) for caller in range(CALLERS)]
        working += [pool.submit(crowd.kill), pool.submit(crowd.append, table)]
        for each in working:
            each.result()

    if SECONDS >= LONG_S:
        await_compacted(nodes[0])
    rows = table.refresh().scan().to_arrow().to_pylist()
    compacted = sum(
        each.summary is not None and each.summary.operation is Operation.REPLACE for each in table.snapshots()
    )
    ids = Counter(row["id"] for row in rows)
    became = Counter((word, outcome) for word, _, outcome in crowd.told.values())
    inserted = Counter(shared for word, shared, outcome in crowd.told.values() if (word, outcome) == ("insert", "done"))
    print(
        f"\n{SECONDS:g} s: {dict(became)}, engines killed {crowd.kills}, outsider refused {crowd.outsider}, rows"
        f" {len(rows)}, compacted {compacted} times"
    )
    assert [key for key, count in ids.items() if count > 1] == []
    for own, (_, shared, outcome) in crowd.told.items():
        if outcome != "unknown":
            assert (own in ids) == (outcome == "done"), (own, outcome)
        if outcome == "done":
            assert shared in ids
    assert [key for key, count in inserted.items() if count > 1] == []
    assert {row["maker"] for row in rows} <= {
        own for own, (_, _, outcome) in crowd.told.items() if outcome in ("done", "unknown")
    }
    assert crowd.strange == []
    assert became["upsert", "done"]
    assert compacted or SECONDS < LONG_S, "nothing was compacted"
    assert crowd.outsider
