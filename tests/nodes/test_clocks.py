# SPDX-License-Identifier: Apache-2.0
"""Two nodes on one PostgreSQL, one with its clock an hour ahead or behind: it reports the difference, and no answer is
wrong.
"""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from limnos.store.backends.migrate import migrate
from tests.nodes.process import Process
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import OWN, PREFIX, Wire, namespace_body, properties_body, table_body, table_path

HOUR_S = 3600
NEAR_MS = 5_000
"""Milliseconds by which a node may be wrong about the store's clock, far less than an hour."""
GIVEN_UP_S = 30


class Pair(NamedTuple):
    """A node with a correct clock, and one whose clock is `ahead_s` seconds ahead."""

    right: Process
    off: Process
    ahead_s: int


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgresCluster]:
    """The database's server."""
    running = PostgresCluster()
    yield running
    running.stop()


@pytest.fixture(scope="module", params=[HOUR_S, -HOUR_S], ids=["ahead", "behind"])
def pair(
    request: pytest.FixtureRequest, cluster: PostgresCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Both nodes."""
    directory, database = tmp_path_factory.mktemp("clocks"), cluster.database()
    migrate(database)
    wrong = {"PYTHONPATH": str(Path(__file__).parent / "clock"), "LIMNOS_TEST_AHEAD_S": str(request.param)}
    nodes = [
        Process(directory / "data", log=directory / f"{name}.log", database=database, env=env)
        for name, env in (("right", {}), ("off", wrong))
    ]
    for node in nodes:
        node.start()
    right, off = nodes
    yield Pair(right, off, request.param)
    for node in nodes:
        node.stop()


@pytest.fixture
def wires(pair: Pair) -> Iterator[list[Wire]]:
    """The admin's connections to the node with the correct clock and to the other one."""
    both = [Wire(node.uri, user="admin") for node in pair[:2]]
    yield both
    for wire in both:
        wire.close()


def snapshot(number: int, location: str) -> dict[str, object]:
    """Write a commit of an engine with a correct clock."""
    added = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "manifest-list": f"{location}/metadata/{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    if number > 1:
        added["parent-snapshot-id"] = number - 1
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
    return {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": added}, main]}


def test_commits_on_both_nodes_use_the_stores_time(wires: list[Wire]) -> None:
    """Commits of properties and of snapshots on alternating nodes are all accepted, and every time in the metadata is
    the store's.
    """
    right, off = wires
    off.do("POST", f"{PREFIX}/namespaces", namespace_body("a"))
    table = off.do("POST", f"{PREFIX}/namespaces/a/tables", table_body("t"))
    location = str(table.body["metadata"]["location"])  # type: ignore[index]
    answers = []
    began_ms = time.time_ns() // 1_000_000  # the clock of this machine is also the database's

    for number in range(1, 7):
        first, second = (off, right) if number % 2 else (right, off)
        answers += [
            wire.ask("POST", table_path("a", "t"), properties_body(mark=str(number))) for wire in (first, second)
        ]
        answers.append(second.ask("POST", table_path("a", "t"), snapshot(number, location)))

    assert [answer.status for answer in answers] == [200] * 18, answers
    documents = [answer.body["metadata"] for answer in answers]
    times = [document["last-updated-ms"] for document in documents if isinstance(document, dict)]
    assert times == sorted(times)
    assert began_ms - NEAR_MS < times[0] <= times[-1] < time.time_ns() // 1_000_000 + NEAR_MS


def test_node_with_wrong_clock_reports_the_difference(pair: Pair, wires: list[Wire]) -> None:
    """The node with the wrong clock reports the difference in its log, a metric and its health. The other node reports
    none.
    """
    health = [wire.ask("GET", "/api/health/ready") for wire in wires]
    metrics = []
    for node in pair[:2]:
        with urllib.request.urlopen(f"{node.uri}/metrics", timeout=30) as answer:
            metrics.append(
                float(re.findall(r"^limnos_clock_offset_seconds (\S+)", answer.read().decode(), re.MULTILINE)[0])
            )
    logs = ["clock differs from" in node.log.read_text() for node in pair[:2]]

    assert [answer.status for answer in health] == [200, 200]
    assert ["clock" in str(answer.body) for answer in health] == [False, True]
    assert f"{pair.ahead_s:+d}"[:3] in str(health[1].body) or f"{pair.ahead_s:+d}"[:2] in str(health[1].body)
    assert abs(metrics[0]) < 5
    assert abs(metrics[1] - pair.ahead_s) < 5
    assert logs == [False, True]


def test_token_expires_on_both_nodes_by_store_clock(pair: Pair, wires: list[Wire]) -> None:
    """The expiry of a token depends on the store's clock, whichever node created it: it is valid on both nodes, and
    then on neither.
    """
    for maker in wires:
        long = str(maker.do("POST", f"{OWN}/tokens", {"name": "long", "expires_in_s": 600}).body["token"])
        short = str(maker.do("POST", f"{OWN}/tokens", {"name": "short", "expires_in_s": 1}).body["token"])
        with_long, with_short = ([Wire(node.uri, token=each) for node in pair[:2]] for each in (long, short))
        try:
            assert [wire.ask("GET", f"{OWN}/whoami").status for wire in with_long] == [200, 200]
            until = time.monotonic() + GIVEN_UP_S
            for wire in with_short:
                while wire.ask("GET", f"{OWN}/whoami").status != 401:
                    assert time.monotonic() < until
        finally:
            for wire in (*with_long, *with_short):
                wire.close()
