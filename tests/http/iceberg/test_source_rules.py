# SPDX-License-Identifier: Apache-2.0
"""Access decisions around a request to another Iceberg catalog: before it is sent, while it runs, and after its answer.

The source is a script, so each test defines its content; `test_federated_refusals` has the access decisions, cell by
cell.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from limnos.app.node_builder import DATABASE_FILE
from limnos.config.storage import SourcesSection
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.http.iceberg.federated import catalog, refused, space, table
from tests.http.interference import InterferencePoint, interfere
from tests.scripted_server import ScriptedAnswer, ScriptedServer, scripted

pytestmark = pytest.mark.room("connectors")

TABLES = "/v1/namespaces/a/tables"
TABLE, VIEW, SPACE = f"{TABLES}/t", "/v1/namespaces/a/views/v", "/v1/namespaces/a"
OBJECTS = f"{OWN}/metalakes/lake/objects"


@pytest.fixture
def source() -> Iterator[ScriptedServer]:
    """A fake source with namespace `a`, table `a.t` and view `a.v` that accepts every change."""
    with scripted() as scripted_source:
        loaded = ScriptedAnswer(body={"metadata-location": "x", "metadata": {}})
        scripted_source.answers |= {
            "GET /v1/config": ScriptedAnswer(body={}),
            f"GET {SPACE}": ScriptedAnswer(body={"namespace": ["a"]}),
            f"HEAD {SPACE}": ScriptedAnswer(204),
            f"GET {TABLE}": loaded,
            f"HEAD {TABLE}": ScriptedAnswer(204),
            f"GET {VIEW}": loaded,
            f"HEAD {VIEW}": ScriptedAnswer(204),
            f"POST {TABLES}": loaded,
            f"DELETE {TABLE}": ScriptedAnswer(204),
            f"DELETE {VIEW}": ScriptedAnswer(204),
            f"DELETE {SPACE}": ScriptedAnswer(204),
        }
        yield scripted_source


@pytest.fixture
def node(fresh: Callable[[str], Path], source: ScriptedServer) -> Iterator[DriverNode]:
    """A node with a connector catalog `far` of the source."""
    sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{source.port}",), timeout_s=60.0)
    with node_at(fresh("near"), sources=sources) as running:
        properties = {"uri": f"http://127.0.0.1:{source.port}"}
        running.done("POST", f"{API}/lake/catalogs", catalog(properties))
        yield running


def changes(source: ScriptedServer) -> list[str]:
    """Return the changes that the source received."""
    return [each for each in source.targets() if not each.startswith(("GET ", "HEAD "))]


def stands(node: DriverNode, kind: str, name: str) -> None:
    """Create a placeholder node for an object of the source, owned by the admin."""
    node.done("PUT", f"{API}/lake/owners/{kind}/{name}", {"name": "admin", "type": "USER"})


@pytest.mark.parametrize("path", [table("a", "t"), space("a")])
@pytest.mark.parametrize("stood_for", [False, True])
def test_drop_in_protected_catalog_sends_no_source_request(
    node: DriverNode, source: ScriptedServer, path: str, stood_for: bool
) -> None:
    """In a catalog that is protected with its content, drops are refused without a request to the source."""
    if stood_for:
        stands(node, "TABLE", "far.a.t")
    node.done("PUT", f"{OBJECTS}/CATALOG/far/protection", {"below": True})

    answer = node.delete(path)

    assert answer.status == 409, answer
    assert b"protected" in answer.body
    assert changes(source) == []
    node.done("DELETE", f"{OBJECTS}/CATALOG/far/protection")
    assert node.delete(path).status == 204
    assert len(changes(source)) == 1


def test_revoked_privilege_stops_requests_to_the_source(node: DriverNode, source: ScriptedServer) -> None:
    """Each request is decided separately: after a revoke, no request is sent to the source."""
    role = grant(node, "ana", "use_catalog use_schema create_table", kind="CATALOG", on="far")
    body = {"name": "t", "schema": {"type": "struct", "fields": []}}
    assert node.post(f"{space('a')}/tables", body, user="ana").status == 200
    node.done("PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": [role]})

    assert refused(node.post(f"{space('a')}/tables", body, user="ana"))[0] == 403
    assert changes(source) == [f"POST {TABLES}"]


def test_concurrent_placeholder_creates_share_one_node(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two concurrent requests that create a placeholder node, the later one uses the node of the earlier one, and
    both change the same node.
    """
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    owner = f"{API}/lake/owners/TABLE/far.a.t"

    async def act() -> None:
        answer = await node.answer("PUT", owner, {"name": "admin", "type": "USER"})
        assert answer.status == 200, answer

    with interfere(node, monkeypatch, step=InterferencePoint.SUBMIT, act=act) as interference:
        node.done("PUT", owner, {"name": "ana", "type": "USER"})

    assert interference.is_done
    assert node.done("GET", owner)["owner"]["name"] == "ana"


def test_twenty_concurrent_requests_create_one_placeholder_node(node: DriverNode) -> None:
    """If twenty concurrent requests are the first to attach something to a table of the source, all succeed and one
    node is created.
    """
    owner = f"{API}/lake/owners/TABLE/far.a.t"

    async def crowd() -> list[int]:
        body = {"name": "admin", "type": "USER"}
        return [each.status for each in await asyncio.gather(*(node.answer("PUT", owner, body) for _ in range(20)))]

    assert node.runner.run(crowd()) == [200] * 20


@pytest.mark.parametrize("step", InterferencePoint)
def test_concurrent_first_owners_share_placeholder_nodes(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, step: InterferencePoint
) -> None:
    """If two requests set the first owner of an object of the source, both succeed, with one placeholder node for each
    level of its name.
    """
    path, body = f"{API}/lake/owners/TABLE/far.a.t", {"name": "admin", "type": "USER"}

    async def own() -> None:
        assert (await node.answer("PUT", path, body)).status == 200

    with interfere(node, monkeypatch, step=step, act=own) as interference:
        answer = node.ask("PUT", path, body)

    assert interference.is_done
    assert answer.status == 200, answer
    with closing(sqlite3.connect(node.data / DATABASE_FILE)) as store:
        ((far,),) = store.execute("SELECT id FROM node WHERE name = 'far' AND deleted = 0")
        live = store.execute("SELECT name FROM node WHERE zone = ? AND deleted = 0 ORDER BY name", (far,)).fetchall()
    assert live == [("a",), ("t",)]
