# SPDX-License-Identifier: Apache-2.0
"""Events across two nodes: the node that delivers a webhook is killed, the receiver stops and returns, and a stopping
node answers callers who wait for changes.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.app.receivers import Receiver, receiving
from tests.nodes.process import Process
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import OWN, PREFIX, Wire, namespace_body

WITHIN_S = 300
LAKE = f"{OWN}/metalakes/lake"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running webhook receiver."""
    with receiving() as webhook_receiver:
        yield webhook_receiver


@pytest.fixture(params=["sqlite", "postgresql"])
def nodes(request: pytest.FixtureRequest, tmp_path: Path, receiver: Receiver) -> Iterator[list[Process]]:
    """Two nodes on one store that may deliver to the receiver."""
    cluster = PostgresCluster() if request.param == "postgresql" else None
    database = cluster.database() if cluster else None
    env = {"LIMNOS__EVENTS__ALLOWED_URLS": receiver.url, "LIMNOS__EVENTS__TIMEOUT_S": "2"}
    processes = [Process(tmp_path / "data", log=tmp_path / f"node{i}.log", database=database, env=env) for i in (0, 1)]
    try:
        processes[0].start()
        processes[1].start()
        yield processes
    finally:
        for node in processes:
            node.stop()
        if cluster is not None:
            cluster.stop()


Ask = Callable[[Process], Wire]


@pytest.fixture
def admin() -> Iterator[Ask]:
    """Return clients of the admin at a node. They are closed at the end."""
    wires: list[Wire] = []

    def ask(node: Process) -> Wire:
        wires.append(Wire(node.uri, token=node.token))
        return wires[-1]

    yield ask
    for wire in wires:
        wire.close()


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    until = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def make(wire: Wire, *names: str) -> None:
    """Create namespaces."""
    for name in names:
        wire.do("POST", f"{PREFIX}/namespaces", namespace_body(name))


def test_events_arrive_in_order_after_node_kill(nodes: list[Process], receiver: Receiver, admin: Ask) -> None:
    """A node is killed while it delivers, and the receiver stops and returns. Each event is delivered, and none before
    an earlier one.
    """
    names = [f"n{number}" for number in range(60)]
    webhook = admin(nodes[0]).do("POST", f"{LAKE}/webhooks", {"url": f"{receiver.url}/hook"}).body
    receiver.secret = str(webhook["secret"])
    make(admin(nodes[0]), *names[:10])
    wait_for(lambda: len(receiver.events) >= 10)
    receiver.status = 500
    make(admin(nodes[0]), *names[10:30])
    wait_for(lambda: receiver.refused > 0)
    nodes[0].kill()
    make(admin(nodes[1]), *names[30:])
    receiver.status = 204

    wait_for(lambda: any(event["data"]["path"][-1] == names[-1] for event in receiver.events))

    first = list(dict.fromkeys(event["data"]["path"][-1] for event in receiver.events))
    assert first == names
    assert receiver.wrong == []


def test_waiting_caller_is_released_by_change_or_stop(nodes: list[Process], admin: Ask) -> None:
    """A change on the other node ends the wait of a caller. A stop of the node answers waiting callers without
    delay.
    """
    waiting, writing = admin(nodes[0]), admin(nodes[1])
    at = waiting.do("GET", f"{LAKE}/changes?after=now").body["next"]
    waiting.send("GET", f"{LAKE}/changes?after={at}&wait_s=60")
    make(writing, "a")
    feed_answer = waiting.receive()
    waiting.send("GET", f"{LAKE}/changes?after={feed_answer.body['next']}&wait_s=60")
    wait_for(lambda: "limnos_feed_waiting 1.0" in metrics(nodes[0]))
    began = time.monotonic()
    stopping = threading.Thread(target=nodes[0].stop)
    stopping.start()
    released = waiting.receive()
    stopping.join(WITHIN_S)

    changes = feed_answer.body["changes"]
    assert isinstance(changes, list)
    assert [change["path"] for change in changes] == [["main", "a"]]
    assert (released.status, released.body["changes"]) == (200, [])
    assert time.monotonic() - began < 30


def metrics(node: Process) -> str:
    """Return the metrics of a node."""
    with urllib.request.urlopen(f"{node.uri}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text
