# SPDX-License-Identifier: Apache-2.0
"""Connector catalogs whose source leads back to the server itself: one hop, and a clear refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from limnos.model.permits import upkeep_permit
from limnos.rooms.connectors.server import load_functions
from limnos.services.federation.sources import SOURCES, SourceConnectors
from limnos.sources.connectors.hops import HOPS_MAX
from limnos.sources.connectors.opening import SourceLimits
from limnos.store.activity.node_beats import NodeHeartbeat
from tests.bridges import Bridge
from tests.http.driver import API, DriverAnswer
from tests.http.iceberg.federated import SPACES, FarCatalog, catalog, far_at
from tests.http.sockets import ServedNode

pytestmark = pytest.mark.integration

LOOP = "/iceberg/v1/lake.loop/namespaces"
LEADS_BACK = "leads back to a server"


class Loop:
    """A served node behind a bridge that records the requests, and a client with the admin's token."""

    def __init__(self, data: Path) -> None:
        self.served = ServedNode(data, lane=True)
        self.bridge = Bridge(self.served.port)
        self.bridge.heard = bytearray()
        self.token = (data / "admin.token").read_text().strip()
        self.client = httpx2.Client(
            trust_env=False,
            timeout=30,
            base_url=f"http://127.0.0.1:{self.served.port}",
            headers={"authorization": f"Bearer {self.token}"},
        )

    def show(self, other: Loop, *, warehouse: str) -> None:
        """Create the catalog `loop`, which shows a catalog of another node or of this one."""
        address = f"127.0.0.1:{other.bridge.port}"
        limits = SourceLimits((address,), timeout_s=20.0)
        sources = SourceConnectors(limits, load=load_functions)
        SOURCES.put(self.served.built.services, sources)
        properties = {"uri": f"http://{address}/iceberg", "warehouse": warehouse, "token": other.token}
        created = self.client.post(f"{API}/lake/catalogs", json=catalog(properties, "loop"))
        assert created.status_code == 200, created.text

    def requests(self) -> int:
        """Return the number of requests that came over the bridge."""
        assert self.bridge.heard is not None
        return self.bridge.heard.count(b"x-limnos-hops: ")

    def close(self) -> None:
        """Stop the node."""
        self.client.close()
        self.bridge.close()
        self.served.stop()


@contextmanager
def nodes(*places: Path) -> Iterator[list[Loop]]:
    """Serve a node in each directory."""
    served = [Loop(each) for each in places]
    try:
        yield served
    finally:
        for each in served:
            each.close()


def test_catalog_that_shows_itself_is_refused_after_one_hop(tmp_path: Path) -> None:
    """A request to a catalog that shows itself is refused, after one request to the server itself."""
    with nodes(tmp_path) as (node,):
        node.show(node, warehouse="loop")

        listed = node.client.get(LOOP)
        schemas = node.client.get(f"{API}/lake/catalogs/loop/schemas")

        assert (listed.status_code, listed.json()["error"]["type"]) == (508, "LoopDetectedException")
        assert LEADS_BACK in listed.text
        assert LEADS_BACK in schemas.text
        assert node.requests() == 2


def test_catalog_that_shows_another_one_of_its_server_is_served(tmp_path: Path) -> None:
    """A catalog may show a catalog of the same server that has no source."""
    with nodes(tmp_path) as (node,):
        node.show(node, warehouse="main")
        created = node.client.post("/iceberg/v1/lake.main/namespaces", json={"namespace": ["sales"]})
        assert created.status_code == 200

        assert node.client.get(LOOP).json()["namespaces"] == [["sales"]]


def test_loop_of_two_servers_is_refused_where_it_closes(tmp_path: Path) -> None:
    """If catalogs of two servers show each other, the first one refuses its own request, and the second tells it."""
    with nodes(tmp_path / "one", tmp_path / "two") as (one, two):
        one.show(two, warehouse="loop")
        two.show(one, warehouse="loop")

        listed = one.client.get(LOOP)

        assert listed.status_code == 508
        assert LEADS_BACK in listed.text
        assert (one.requests(), two.requests()) == (1, 1)


@pytest.fixture
def far(fresh: Callable[[str], Path]) -> Iterator[FarCatalog]:
    """Two nodes; the first has a connector catalog of the second one."""
    with far_at(fresh("near"), fresh("away")) as pair:
        yield pair


def list_with(far: FarCatalog, hops: str) -> DriverAnswer:
    """List the namespaces of the source, as a server does that passed the request on."""
    return far.node.ask("GET", SPACES, x_limnos_hops=hops)


def test_request_of_another_node_of_the_server_is_refused(far: FarCatalog) -> None:
    """A request that another node of the same store passed on is refused, as one of this node is; a request of another
    server is passed on, with the ids of both.
    """
    heartbeat = NodeHeartbeat(
        id="otherNode", name="host, process 2", version="0", started_at=0, seen_at=0, clock_offset_ms=0
    )
    far.node.runner.run(
        far.node.built.services.store.submit(upkeep_permit("limnos"), lambda tx: tx.node_beats.beat(heartbeat))
    )
    far.bridge.heard = bytearray()
    refused = list_with(far, "someServer, otherNode")
    requests = len(far.bridge.heard)
    passed_on = list_with(far, "someServer")

    assert (refused.status, requests) == (508, 0)
    assert passed_on.status == 200
    assert b"x-limnos-hops: someServer, " in far.bridge.heard


def test_request_that_passed_many_servers_is_refused(far: FarCatalog) -> None:
    """A request is passed on by a limited number of servers, whatever they call themselves."""
    assert list_with(far, ",".join(f"s{number}" for number in range(HOPS_MAX - 1))).status == 200
    assert list_with(far, ",".join(f"s{number}" for number in range(HOPS_MAX))).status == 508
    assert list_with(far, ",".join(["s"] * 1000)).status == 508
