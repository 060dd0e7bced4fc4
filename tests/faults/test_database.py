# SPDX-License-Identifier: Apache-2.0
"""Kill -9 of the database under a node: the node recovers by itself, and all of its answers were true."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.faults.measurements import note
from tests.faults.mutations import file_of, properties_of
from tests.faults.rig import Rig
from tests.faults.store_integrity import complaints
from tests.faults.traffic import CERTAIN, UNKNOWN, Traffic, WriteAttempt
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import (
    PREFIX,
    Wire,
    WireAnswer,
    namespace_body,
    namespace_path,
    properties_body,
    table_body,
    table_path,
)

RUNNING_S = 0.5
RECOVERS_WITHIN_S = 300


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresCluster]:
    """A PostgreSQL that these tests kill."""
    cluster = PostgresCluster()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def rig(own_cluster: PostgresCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node on that PostgreSQL."""
    with Rig(tmp_path_factory.mktemp("node"), own_cluster.database()) as running:
        yield running


def wait_for_success(attempts: list[WriteAttempt], since: int) -> None:
    """Wait until a writer gets a success after this number of answers."""
    until = time.monotonic() + RECOVERS_WITHIN_S
    while not any(one.status == 200 for one in attempts[since:]):
        assert time.monotonic() < until, f"the node did not recover; it answers {attempts[-3:]}"
        time.sleep(0.02)


def test_node_survives_killed_database(rig: Rig, own_cluster: PostgresCluster) -> None:
    """While the database is down, writes get 503 or 500. Every acknowledged write exists, and no write with 503
    does.
    """
    traffic = Traffic(rig)

    with traffic.running():
        time.sleep(RUNNING_S)
        own_cluster.kill()
        time.sleep(RUNNING_S)
        own_cluster.start()
        began = time.monotonic()
        for attempts in traffic.told:
            wait_for_success(attempts, len(attempts))
        note(killed_database_all_served_again=time.monotonic() - began)

    statuses = {one.status for one in traffic.answers()}
    assert traffic.untrue() == []
    assert None not in statuses, "the node broke connections of its callers"
    assert statuses & {CERTAIN, UNKNOWN}, "the node did not notice that the database was down"
    assert complaints(rig.database) == []


def stopped_then_killed(rig: Rig, cluster: PostgresCluster, point: str, path: str, body: object) -> WireAnswer:
    """Send a mutation, and kill the database while the node is stopped at a point. Returns the answer."""
    wire = Wire(rig.node.uri, user="admin")
    rig.arm(point, stop=True)
    wire.send("POST", path, body)
    rig.node.wait_paused()
    cluster.kill()
    rig.node.go_on()
    answer = wire.receive()
    wire.close()
    cluster.start()
    return answer


@pytest.mark.parametrize("kind", ["table", "commit"])
def test_commit_without_answer_returns_500_unknown_state(rig: Rig, own_cluster: PostgresCluster, kind: str) -> None:
    """If the database dies during the COMMIT, the answer is 500 with the type for an unknown state, and the metadata
    file is kept.
    """
    home = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(home))
    rig.admin.do("POST", f"{namespace_path(home)}/tables", table_body("t"))
    directory = file_of(rig, home, "t").parents[2]
    path, body = (
        (f"{namespace_path(home)}/tables", table_body("u"))
        if kind == "table"
        else (table_path(home, "t"), properties_body(mark="1"))
    )
    before = set(directory.rglob("*.metadata.json"))

    answer = stopped_then_killed(rig, own_cluster, "before-commit", path, body)

    assert (answer.status, answer.kind) == (500, "CommitStateUnknownException")
    assert len(set(directory.rglob("*.metadata.json")) - before) == 1
    wait_until_served(rig)
    assert complaints(rig.database) == []


def test_database_death_before_commit_returns_503_without_files(rig: Rig, own_cluster: PostgresCluster) -> None:
    """If the database dies inside the transaction and stays down, the answer is 503 with Retry-After, and no file
    remains.
    """
    home = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(home))
    rig.admin.do("POST", f"{namespace_path(home)}/tables", table_body("t"))
    file = file_of(rig, home, "t")

    answer = stopped_then_killed(rig, own_cluster, "written", table_path(home, "t"), properties_body(mark="1"))

    assert answer.status == 503
    assert "retry-after" in answer.headers
    assert list(file.parent.iterdir()) == [file]
    wait_until_served(rig)
    assert "mark" not in properties_of(rig, home, "t")
    assert complaints(rig.database) == []


def wait_until_served(rig: Rig) -> None:
    """Wait until the node reads and writes again. Until then it must answer only 503."""
    until = time.monotonic() + RECOVERS_WITHIN_S
    tag = rig.tag()
    for method, path, body in (
        ("GET", f"{PREFIX}/namespaces", None),
        ("POST", f"{PREFIX}/namespaces", namespace_body(tag)),
    ):
        while (answer := rig.admin.ask(method, path, body)).status != 200:
            assert answer.status == 503, f"{method} {path}: {answer}"
            assert time.monotonic() < until, "the node did not recover"
            time.sleep(0.02)
