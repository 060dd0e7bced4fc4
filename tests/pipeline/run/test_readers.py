# SPDX-License-Identifier: Apache-2.0
"""Readers during runs: two tables always show the result of the same run, to every reader at any time.

`LIMNOS_TEST_READS` is the minimum number of reads of both tables; `conformance/run proofs` uses ten thousand.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Self, cast

import pytest

from limnos.client import Client
from limnos.pipeline.declaration import Parameter, ParameterType
from tests.integration.live import LiveServer
from tests.pipeline.run.test_spark import Place, place

__all__ = ["place"]

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

READS = int(os.environ.get("LIMNOS_TEST_READS", "400"))
READERS = 4
RUNS_MIN = 3


class Readers:
    """Read both tables repeatedly, each reader with its own connection."""

    def __init__(self, server: LiveServer, tables: tuple[str, str]) -> None:
        self.server = server
        self.tables = tables
        self.seen: Counter[tuple[int, int]] = Counter()
        self.failed: list[BaseException] = []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.read, daemon=True) for _ in range(READERS)]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(timeout=60)

    def read(self) -> None:
        """Read one table, the other, and the first again: the pair counts if the first is unchanged."""
        try:
            with Client(self.server.uri, token=self.server.token) as client:
                while not self.stop.is_set():
                    first, second, again = (rows_of(client, table) for table in (*self.tables, self.tables[0]))
                    if first == again:
                        self.seen[(first, second)] += 1
        except BaseException as error:
            self.failed.append(error)


def rows_of(client: Client, table: str) -> int:
    """Return the number of rows of the table's current snapshot; -1 without a snapshot."""
    metadata = client.tables.load(table).metadata
    current = metadata.get("current-snapshot-id")
    snapshots = cast("list[Mapping[str, object]]", metadata.get("snapshots") or [])
    summaries = (cast("Mapping[str, str]", each["summary"]) for each in snapshots if each["snapshot-id"] == current)
    return next((int(summary["total-records"]) for summary in summaries), -1)


def test_readers_never_see_a_partly_published_run(
    place: Place, server: LiveServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run gives both tables as many rows as its number; no reader sees two different numbers."""
    steps = (
        place.step("numbers", "SELECT id AS x FROM range(:n)"),
        place.step("doubled", "SELECT numbers.x * 2 AS x FROM @.numbers"),
    )
    n = (Parameter(name="n", type=ParameterType.INT),)
    assert place.run(*steps, parameters=n, parameter_values={"n": "1"}).state == "published"
    number = 1

    with Readers(server, (f"main.{place.name}.numbers", f"main.{place.name}.doubled")) as readers:
        while not readers.failed and (number <= RUNS_MIN or readers.seen.total() < READS):
            number += 1
            ended = place.run(*steps, parameters=n, parameter_values={"n": str(number)})
            assert ended.state == "published", ended.message
    with capsys.disabled():
        print(f"\n{readers.seen.total():,} reads of two tables beside {number - 1} runs")

    assert readers.failed == []
    assert {pair for pair in readers.seen if pair[0] != pair[1]} == set()
    assert {first for first, _ in readers.seen} >= {1, number}
