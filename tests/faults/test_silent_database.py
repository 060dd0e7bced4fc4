# SPDX-License-Identifier: Apache-2.0
"""A database that is silent, paused or unreachable: a node detects it, reports it, and recovers by itself."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.faults.measurements import TickClock, note, timed
from tests.faults.mutations import properties_of
from tests.faults.proxy import Proxy
from tests.faults.rig import Rig
from tests.faults.store_integrity import complaints
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import (
    GRAVITINO,
    OWN,
    PREFIX,
    Wire,
    WireAnswer,
    namespace_body,
    namespace_path,
    properties_body,
    table_body,
    table_path,
)

ANSWERS_WITHIN_S = 5.0
REPORT_WITHIN_S = 2.0
REFUSED_WITHIN_S = 4.0
BUSY_S = 0.5
"""What a node on a busy machine needs for its own work besides its timers, which a clock of sleeps does not count."""
LOG_OFF_S = 0.5
"""The maximum difference between a request's duration for its caller and in the log, on a busy machine."""
DRAINED_WITHIN_S = 10.0
"""The drain time of the node."""
GIVEN_UP_S = 40.0


@pytest.fixture(scope="module")
def proxy(cluster: PostgresCluster) -> Iterator[Proxy]:
    """The proxy between the node and its database."""
    with Proxy(cluster.database()) as running:
        yield running


@pytest.fixture(scope="module")
def rig(proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node behind the proxy."""
    drain = {"LIMNOS__SERVER__DRAIN_TIMEOUT_S": str(DRAINED_WITHIN_S)}
    with Rig(tmp_path_factory.mktemp("silent"), proxy.url, env=drain) as running:
        yield running


@pytest.fixture
def home(rig: Rig) -> str:
    """A namespace with a table, and idle connections of every kind."""
    tag = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(tag))
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("t"))
    assert rig.admin.ask("GET", "/api/health/ready").status == 200
    return tag


def until_answered(ask: Callable[[], WireAnswer]) -> float:
    """Repeat a request until it succeeds. Returns the seconds until then; other answers than 503 fail."""
    began = time.monotonic()
    while (answer := ask()).status != 200:
        assert answer.status == 503, answer
        assert time.monotonic() - began < GIVEN_UP_S, "the node did not recover"
    return time.monotonic() - began


def readiness(rig: Rig) -> tuple[int, float]:
    """Request the readiness of a node on a new connection. Returns the status and the duration."""
    wire = Wire(rig.node.uri, user="admin")
    answer, seconds = timed(lambda: wire.ask("GET", "/api/health/ready"))
    wire.close()
    return answer.status, seconds


def test_reads_succeed_when_connections_fall_silent(rig: Rig, proxy: Proxy, home: str) -> None:
    """If all open connections are silent and new ones work, reads are answered within five seconds."""
    proxy.silence()

    took = until_answered(lambda: rig.admin.ask("GET", table_path(home, "t")))

    note(read_after_silence=took)
    assert took < ANSWERS_WITHIN_S
    assert readiness(rig)[0] == 200


def test_writes_are_executed_once_when_connections_fall_silent(rig: Rig, proxy: Proxy, home: str) -> None:
    """A write that uses silent connections is executed once, within five seconds."""
    proxy.silence()

    took = until_answered(lambda: rig.admin.ask("POST", table_path(home, "t"), properties_body(mark=home)))

    note(write_after_silence=took)
    assert took < ANSWERS_WITHIN_S
    assert properties_of(rig, home, "t")["mark"] == home
    assert complaints(rig.database) == []


def test_cold_reads_succeed_when_connections_fall_silent(rig: Rig, proxy: Proxy, home: str) -> None:
    """A fact that the view lacks is loaded again on a new connection, if the load's connection is silent."""
    role = f"role_{home}"
    rig.admin.do("POST", "/api/metalakes/lake/roles", {"name": role, "properties": {}, "securableObjects": []})
    proxy.silence()

    took = until_answered(lambda: rig.admin.ask("GET", f"/api/metalakes/lake/roles/{role}"))

    note(cold_read_after_silence=took)
    assert took < ANSWERS_WITHIN_S


def test_readiness_follows_database_reachability(rig: Rig, proxy: Proxy, home: str) -> None:
    """While the database is unreachable, the node reports within two seconds that it is not ready. It reports when it
    is ready again.
    """
    proxy.silence(new=True)
    down, down_s = readiness(rig)
    read = Wire(rig.node.uri, user="admin")
    answer, read_s = timed(lambda: read.ask("GET", table_path(home, "t")))

    proxy.hear()
    began = time.monotonic()
    while (up := readiness(rig))[0] != 200:
        assert time.monotonic() - began < GIVEN_UP_S
    recovered_s = time.monotonic() - began

    note(ready_says_down=down_s, read_refused=read_s, ready_again=recovered_s)
    assert (down, answer.status) == (503, 503)
    assert down_s < REPORT_WITHIN_S
    assert up[1] < REPORT_WITHIN_S
    assert recovered_s < ANSWERS_WITHIN_S
    assert until_answered(lambda: read.ask("GET", table_path(home, "t"))) < ANSWERS_WITHIN_S
    read.close()


def test_read_is_retried_after_connection_is_closed(rig: Rig, proxy: Proxy, home: str) -> None:
    """A read whose connections were closed is sent again on a new connection, and answered."""
    role = f"dead_{home}"
    rig.admin.do("POST", "/api/metalakes/lake/roles", {"name": role, "properties": {}, "securableObjects": []})
    statuses = []

    for path in (table_path(home, "t"), f"/api/metalakes/lake/roles/{role}", "/api/health/ready") * 3:
        proxy.cut()
        statuses.append(rig.admin.ask("GET", path).status)

    assert statuses == [200] * 9


def test_paused_database_returns_503_until_resumed(rig: Rig, cluster: PostgresCluster, home: str) -> None:
    """While the database is paused, requests get 503. After it continues, the node succeeds within five seconds."""
    family = cluster.family()
    for each in family:
        os.kill(each, signal.SIGSTOP)
    try:
        status, told_s = readiness(rig)
        answer = rig.admin.ask("GET", table_path(home, "t"))
    finally:
        for each in family:
            os.kill(each, signal.SIGCONT)
    took = until_answered(lambda: rig.admin.ask("POST", table_path(home, "t"), properties_body(mark="on")))

    note(paused_ready_says_down=told_s, paused_write_again=took)
    assert (status, answer.status) == (503, 503)
    assert told_s < REPORT_WITHIN_S
    assert took < ANSWERS_WITHIN_S
    assert complaints(rig.database) == []


def requests_of(home: str) -> list[tuple[str, str, object | None]]:
    """Return a request of each protocol, among them those whose answers the node keeps."""
    table = table_path(home, "t")
    return [
        ("GET", table, None),
        ("HEAD", table, None),
        ("GET", f"{GRAVITINO}/catalogs/main/schemas/{home}/tables/t", None),
        ("GET", f"{namespace_path(home)}/tables", None),
        ("GET", f"{GRAVITINO}/catalogs", None),
        ("GET", "/lance/v1/namespace/lance/list", None),
        ("POST", "/query/service", {"statement": "select value 1"}),
        ("GET", f"{OWN}/whoami", None),
        ("GET", f"{OWN}/audit?limit=1", None),
        ("GET", f"{OWN}/metalakes/lake/system-tables/nodes", None),
        ("GET", f"{OWN}/metalakes/lake/system-tables/tables/rows?columns=id", None),
        ("POST", table, properties_body(mark="never")),
        ("POST", f"{PREFIX}/namespaces", namespace_body(f"{home}_never")),
    ]


def test_every_route_returns_503_within_four_seconds(rig: Rig, cluster: PostgresCluster, home: str) -> None:
    """While the database is paused, each request of each protocol is 503 within four seconds, kept answers as well as
    others, and also if it arrives while others wait. The log has the time that the caller waited.
    """
    requests = requests_of(home)
    wires = [Wire(rig.node.uri, user="admin") for _ in range(2 * len(requests))]
    for wire, request in zip(wires, requests * 2, strict=True):
        if request[0] != "POST":
            assert [wire.ask(*request).status in (200, 204) for _ in range(3)] == [True] * 3, request

    family = cluster.family()
    for each in family:
        os.kill(each, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(len(wires)) as threads:
            sent = []
            for number, (wire, request) in enumerate(zip(wires, requests * 2, strict=True)):
                if number == len(requests):
                    time.sleep(2)  # the second half arrives while the first one waits
                sent.append(threads.submit(timed, lambda wire=wire, request=request: wire.ask(*request)))
            answers = [each.result() for each in sent]
    finally:
        for each in family:
            os.kill(each, signal.SIGCONT)

    late = [
        (request[:2], answer.status, seconds)
        for request, (answer, seconds) in zip(requests * 2, answers, strict=True)
        if answer.status != 503 or seconds > REFUSED_WITHIN_S
    ]
    assert late == []
    logged_s = refusals_logged(rig)
    assert [
        (request[:2], seconds, logged_s.get(answer.headers["x-request-id"]))
        for request, (answer, seconds) in zip(requests * 2, answers, strict=True)
        if abs(logged_s.get(answer.headers["x-request-id"], 0.0) - seconds) > LOG_OFF_S
    ] == []
    note(paused_every_route=max(seconds for _, seconds in answers))
    until_answered(lambda: rig.admin.ask("GET", table_path(home, "t")))
    for wire in wires:
        wire.close()


def test_read_in_progress_returns_503_within_four_seconds(rig: Rig, cluster: PostgresCluster, home: str) -> None:
    """A read that the database is executing when it is paused is 503 within four seconds, too."""
    role = f"read_{home}"
    rig.admin.do("POST", "/api/metalakes/lake/roles", {"name": role, "properties": {}, "securableObjects": []})
    wire = Wire(rig.node.uri, user="admin")
    family: list[int] = []

    with psycopg.connect(rig.database) as other:
        other.execute("LOCK TABLE role IN ACCESS EXCLUSIVE MODE")
        wire.send("GET", f"/api/metalakes/lake/roles/{role}")
        time.sleep(0.5)  # the read waits for the lock
        family = cluster.family()
        for each in family:
            os.kill(each, signal.SIGSTOP)
        try:
            with TickClock() as clock:
                answer, seconds = timed(wire.receive)
                waited_s = clock.seconds
        finally:
            for each in family:
                os.kill(each, signal.SIGCONT)

    note(paused_read_in_progress=seconds)
    assert answer.status == 503
    assert waited_s < REFUSED_WITHIN_S + BUSY_S
    until_answered(lambda: rig.admin.ask("GET", f"/api/metalakes/lake/roles/{role}"))
    wire.close()


def refusals_logged(rig: Rig) -> dict[str, float]:
    """Return the seconds of each logged 503 by request id."""
    time.sleep(0.2)  # the log is written every 50 ms
    lines = [json.loads(line) for line in rig.node.log.read_text().splitlines() if '"duration_ms"' in line]
    return {line["request_id"]: line["duration_ms"] / 1000 for line in lines if line["status"] == 503}


def test_node_stops_on_sigterm_with_silent_connections(rig: Rig, proxy: Proxy, home: str) -> None:
    """After SIGTERM during a write and a read on silent connections, the node ends soon and can be started again."""
    wires = [Wire(rig.node.uri, user="admin") for _ in range(2)]
    proxy.silence(new=True)
    wires[0].send("POST", table_path(home, "t"), properties_body(mark="x"))
    wires[1].send("GET", table_path(home, "t"))
    time.sleep(0.2)

    began = time.monotonic()
    rig.node.stop()
    took = time.monotonic() - began

    proxy.hear()
    note(stopped_while_silent=took)
    assert took < DRAINED_WITHIN_S
    rig.start()
    assert complaints(rig.database) == []
    for wire in wires:
        wire.close()
