# SPDX-License-Identifier: Apache-2.0
"""A node with a connector catalog `far` of the catalog `main` of another node, over a socket that can be cut or stop
answering.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx2

from limnos.config.storage import SourcesSection
from tests.bridges import Bridge
from tests.http.driver import API, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.wire import SCHEMA
from tests.http.sockets import ServedNode

FAR = "/iceberg/v1/lake.far"
SPACES = f"{FAR}/namespaces"
MAIN = "/iceberg/v1/lake.main"


class FarCatalog(NamedTuple):
    """A node with catalog `far`, the bridge to the other node, and that node's own address."""

    node: DriverNode
    bridge: Bridge
    uri: str
    token: str
    properties: dict[str, str]
    client: httpx2.Client

    def source(self, method: str, path: str, body: object = None) -> httpx2.Response:
        """Send a request directly to the source."""
        headers = {"authorization": f"Bearer {self.token}"}
        return self.client.request(method, f"{self.uri}{path}", json=body, headers=headers)

    def made(self, method: str, path: str, body: object = None) -> None:
        """Send a request directly to the source; it must succeed."""
        answer = self.source(method, path, body)
        assert answer.status_code in (200, 204), answer.text

    def names(self, *namespace: str, user: str = "admin", what: str = "tables", query: str = "") -> list[str]:
        """Return the names in a user's list of tables."""
        answer = self.node.get(f"{space(*namespace)}/{what}{query}", user=user)
        assert answer.status == 200, answer.body
        return [each["name"] for each in answer.json()["identifiers"]]

    def use(self, user: str, privileges: str, *, on: str = "far", kind: str = "CATALOG") -> str:
        """Grant privileges to a user."""
        return grant(self.node, user, privileges, kind=kind, on=on)


def space(*levels: str, root: str = FAR) -> str:
    """Return the URL of a namespace."""
    return f"{root}/namespaces/{'%1F'.join(quote(level, safe='') for level in levels)}"


def table(*levels: str, root: str = FAR, kind: str = "tables") -> str:
    """Return the URL of a table."""
    return f"{space(*levels[:-1], root=root)}/{kind}/{quote(levels[-1], safe='')}"


def new_table(name: str, **more: object) -> dict[str, object]:
    """Return the request body that creates a table."""
    return {"name": name, "schema": SCHEMA, **more}


def setting(key: str, value: str, *requirements: dict[str, object]) -> dict[str, object]:
    """Return the body of a commit that sets a property."""
    return {"requirements": list(requirements), "updates": [{"action": "set-properties", "updates": {key: value}}]}


def catalog(properties: dict[str, str], name: str = "far") -> dict[str, object]:
    """Return the body that creates a catalog of the provider."""
    return {"name": name, "type": "relational", "provider": "iceberg-rest", "properties": properties}


def refused(answer: DriverAnswer) -> tuple[int, str]:
    """Return status and type of a refusal."""
    return answer.status, answer.json()["error"]["type"]


@contextmanager
def far_at(near: Path, away: Path, *, timeout_s: float = 10.0, **more: str) -> Iterator[FarCatalog]:
    """Serve both nodes. The source has namespace `sales`."""
    served = ServedNode(away, lane=True)
    bridge = Bridge(served.port)
    try:
        token = (away / "admin.token").read_text().strip()
        properties = {"uri": f"http://127.0.0.1:{bridge.port}/iceberg", "warehouse": "main", "token": token, **more}
        sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{bridge.port}",), timeout_s=timeout_s)
        with node_at(near, sources=sources) as node, httpx2.Client(trust_env=False, timeout=30) as client:
            node.done("POST", f"{API}/lake/catalogs", catalog(properties))
            far = FarCatalog(
                node=node,
                bridge=bridge,
                uri=f"http://127.0.0.1:{served.port}",
                token=token,
                properties=properties,
                client=client,
            )
            far.made("POST", f"{MAIN}/namespaces", {"namespace": ["sales"]})
            yield far
    finally:
        bridge.close()
        served.stop()
