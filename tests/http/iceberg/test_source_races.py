# SPDX-License-Identifier: Apache-2.0
"""Rights that are revoked while another catalog is asked: responses contain nothing that was written after the revoke.

The source is a script. Each test stops a request right before it asks the source, and revokes the right there. What the
source returns then may have been written after the revoke.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from limnos.config.storage import SourcesSection
from limnos.services.federation.sources import SourceConnectors
from limnos.services.request.context import Context
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.federated import SPACES, catalog, refused, space, table
from tests.http.iceberg.wire import SCHEMA
from tests.http.interference import Interference, interfere_before
from tests.scripted_server import ScriptedAnswer, ScriptedServer, scripted

pytestmark = pytest.mark.room("connectors")

SOURCE_SPACE = "/v1/namespaces/a"
SOURCE_TABLE = f"{SOURCE_SPACE}/tables/t"
GRAVITINO = f"{API}/lake/catalogs/far/schemas"
DELEGATION = {"X_Iceberg_Access_Delegation": "vended-credentials"}
PRIVILEGES = "use_catalog use_schema create_schema create_table modify_table select_table create_view select_view"
METADATA = {
    "format-version": 2,
    "table-uuid": "11111111-2222-4333-8444-555555555555",
    "location": "s3://b/t",
    "last-updated-ms": 1,
    "last-column-id": 2,
    "schemas": [{**SCHEMA, "schema-id": 0}],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
    "properties": {"a": "later"},
}
VIEW_METADATA = {
    "format-version": 1,
    "view-uuid": "11111111-2222-4333-8444-555555555556",
    "location": "s3://b/v",
    "schemas": [{**SCHEMA, "schema-id": 0}],
    "current-version-id": 1,
    "properties": {"a": "later"},
    "version-log": [{"version-id": 1, "timestamp-ms": 1}],
    "versions": [
        {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "default-namespace": ["a"],
            "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1"}],
        }
    ],
}
ENDPOINTS = [
    f"{method} /v1/{{prefix}}/namespaces{path}"
    for path in (
        "",
        "/{namespace}",
        "/{namespace}/tables",
        "/{namespace}/tables/{table}",
        "/{namespace}/views",
        "/{namespace}/views/{view}",
    )
    for method in ("GET", "HEAD", "POST", "DELETE")
] + ["POST /v1/{prefix}/namespaces/{namespace}/properties", "POST /v1/{prefix}/tables/rename"]
SECRETS = [{"prefix": "s3://b/t/", "config": {"s3.secret-access-key": "verysecret"}}]


@pytest.fixture
def source() -> Iterator[ScriptedServer]:
    """A fake source with namespaces `a` and `secret`, and tables `t` and `secret` and view `v` in `a`."""
    with scripted() as script:
        loaded = ScriptedAnswer(
            body={"metadata-location": "s3://b/t/1", "metadata": METADATA, "storage-credentials": SECRETS}
        )
        names = [{"namespace": ["a"], "name": name} for name in ("secret", "t")]
        script.answers |= {
            "GET /v1/config": ScriptedAnswer(body={"endpoints": ENDPOINTS}),
            "GET /v1/namespaces": ScriptedAnswer(body={"namespaces": [["a"], ["secret"]]}),
            "POST /v1/namespaces": ScriptedAnswer(body={}),
            f"POST {SOURCE_SPACE}/properties": ScriptedAnswer(body={}),
            f"GET {SOURCE_SPACE}": ScriptedAnswer(body={"namespace": ["a"], "properties": {"a": "later"}}),
            f"GET {SOURCE_SPACE}/tables": ScriptedAnswer(body={"identifiers": names}),
            f"GET {SOURCE_SPACE}/views": ScriptedAnswer(body={"identifiers": names}),
            f"GET {SOURCE_TABLE}": loaded,
            f"POST {SOURCE_TABLE}": loaded,
            f"POST {SOURCE_SPACE}/tables": loaded,
            f"GET {SOURCE_SPACE}/tables/u": loaded,
            f"GET {SOURCE_SPACE}/views/v": ScriptedAnswer(
                body={"metadata-location": "s3://b/v/1", "metadata": VIEW_METADATA}
            ),
            "POST /v1/tables/rename": ScriptedAnswer(204),
            f"DELETE {SOURCE_SPACE}/tables/secret": ScriptedAnswer(204),
        }
        paths = (
            SOURCE_SPACE,
            "/v1/namespaces/secret",
            SOURCE_TABLE,
            f"{SOURCE_SPACE}/tables/secret",
            f"{SOURCE_SPACE}/views/v",
            f"{SOURCE_SPACE}/views/secret",
        )
        script.answers |= {f"HEAD {path}": ScriptedAnswer(204) for path in paths}
        yield script


@pytest.fixture
def node(fresh: Callable[[str], Path], source: ScriptedServer) -> Iterator[DriverNode]:
    """A node with a connector catalog `far` of the source, which passes credentials on to writers."""
    sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{source.port}",), timeout_s=60.0)
    with node_at(fresh("near"), sources=sources) as running:
        properties = {"uri": f"http://127.0.0.1:{source.port}", "vended-credentials": "to-writers"}
        running.done("POST", f"{API}/lake/catalogs", catalog(properties))
        yield running


def raced(
    node: DriverNode,
    patch: pytest.MonkeyPatch,
    *,
    request: Callable[[], DriverAnswer],
    act: Callable[[], Awaitable[None]],
    call: int = 1,
) -> DriverAnswer:
    """Send a request, and run `act` right before its given call of the source. Returns the answer."""
    node.settle()
    interference: Interference
    with interfere_before(patch, SourceConnectors, method="ask", act=act, call=call) as interference:
        answer = request()
    assert interference.is_done
    return answer


def revoke(node: DriverNode, role: str) -> Callable[[], Awaitable[None]]:
    """Return a callback that revokes a role from ana."""

    async def act() -> None:
        answer = await node.answer("PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": [role]})
        assert answer.status == 200, answer

    return act


def deny(node: DriverNode, kind: str, *, on: str) -> Callable[[], Awaitable[None]]:
    """Return a callback that denies ana the rights to see a table or schema of the source."""
    names = ("select_table", "modify_table") if kind == "TABLE" else ("use_schema",)
    denials = [{"name": name, "condition": "deny"} for name in names]
    rules = [{"fullName": on, "type": kind, "privileges": denials}]

    async def act() -> None:
        role = {"name": "denial", "properties": {}, "securableObjects": rules}
        assert (await node.answer("POST", f"{API}/lake/roles", role)).status == 200
        to_ana = await node.answer("PUT", f"{API}/lake/permissions/users/ana/grant", {"roleNames": ["denial"]})
        assert to_ana.status == 200

    return act


def test_credentials_are_withheld_if_the_right_is_revoked_during_the_call(
    node: DriverNode, source: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials that the source issued after the revoke of the right to write are discarded: the table is loaded
    again without credentials.
    """
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="far")
    role = grant(node, "ana", "modify_table", kind="CATALOG", on="far")
    assert b"verysecret" in node.get(table("a", "t"), user="ana", **DELEGATION).body

    answer = raced(
        node, monkeypatch, request=lambda: node.get(table("a", "t"), user="ana", **DELEGATION), act=revoke(node, role)
    )

    assert answer.status == 200, answer
    assert b"verysecret" not in answer.body
    sent = [each.headers for each in source.asked if each.target.startswith(SOURCE_TABLE)]
    assert [("x-iceberg-access-delegation" in headers) for headers in sent] == [True, True, False]


def test_credentials_of_a_new_table_are_withheld_after_a_revoke(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table whose creator loses the right to create during the call is created, but its creator gets no credentials
    that were issued after the revoke.
    """
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="far")
    role = grant(node, "ana", "create_table", kind="CATALOG", on="far")
    body = {"name": "t", "schema": SCHEMA}
    assert b"verysecret" in node.ask("POST", f"{space('a')}/tables", body, user="ana", **DELEGATION).body

    answer = raced(
        node,
        monkeypatch,
        request=lambda: node.ask("POST", f"{space('a')}/tables", body, user="ana", **DELEGATION),
        act=revoke(node, role),
    )

    assert answer.status == 200, answer
    assert b"verysecret" not in answer.body


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", table("a", "t")),
        ("HEAD", table("a", "t")),
        ("GET", table("a", "v", kind="views")),
        ("HEAD", table("a", "v", kind="views")),
        ("GET", space("a")),
        ("HEAD", space("a")),
        ("GET", f"{table('a', 't')}/credentials"),
        ("GET", "/iceberg/v1/config?warehouse=far"),
        ("GET", SPACES),
        ("GET", f"{space('a')}/tables"),
        ("GET", f"{space('a')}/views"),
        ("GET", f"{GRAVITINO}/a"),
        ("GET", f"{GRAVITINO}/a/tables/t"),
        ("GET", f"{GRAVITINO}/a/views/v"),
        ("GET", GRAVITINO),
        ("GET", f"{GRAVITINO}/a/tables"),
        ("GET", f"{GRAVITINO}/a/views"),
    ],
)
def test_reads_of_the_source_need_the_right_at_the_end_of_the_request(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    """Loads, lists and checks of existence are refused if the right is revoked before the source is asked."""
    role = grant(node, "ana", PRIVILEGES, kind="CATALOG", on="far")
    assert node.ask(method, path, user="ana").status in (200, 204)

    answer = raced(node, monkeypatch, request=lambda: node.ask(method, path, user="ana"), act=revoke(node, role))

    assert answer.status == 403, answer
    assert b"later" not in answer.body


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_revoked_probe_does_not_reveal_whether_an_object_exists(
    node: DriverNode, source: ScriptedServer, monkeypatch: pytest.MonkeyPatch, exists: bool, method: str
) -> None:
    """A caller who could only learn that a table is missing, and lost that right, gets the same refusal for an existing
    and a missing table.
    """
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="far")
    role = grant(node, "ana", "create_table", kind="CATALOG", on="far")
    revoke_role = revoke(node, role)
    path = table("a", "t")
    source.answers[f"HEAD {SOURCE_TABLE}"] = ScriptedAnswer(204 if exists else 404)
    assert node.ask(method, path, user="ana").status == (403 if exists else 404)

    answer = raced(node, monkeypatch, request=lambda: node.ask(method, path, user="ana"), act=revoke_role)

    assert refused(answer) == (403, "ForbiddenException")
    assert answer.body == node.ask(method, path, user="ana").body


@pytest.mark.parametrize("path", [f"{space('a')}/tables", f"{GRAVITINO}/a/tables", SPACES, GRAVITINO])
def test_name_is_not_listed_if_it_is_denied_during_the_call(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A name that the caller may not see from the moment on at which its object was created is not in a list whose
    filter was computed before.
    """
    grant(node, "ana", PRIVILEGES, kind="CATALOG", on="far")
    kind, name = ("TABLE", "far.a.secret") if "tables" in path else ("SCHEMA", "far.secret")

    answer = raced(
        node,
        monkeypatch,
        request=lambda: node.get(path, user="ana"),
        act=deny(node, kind, on=name),
    )

    assert answer.status == 200, answer
    assert b"secret" not in answer.body
    assert b"secret" not in node.get(path, user="ana").body


@pytest.mark.parametrize("path", [f"{space('a')}/tables", f"{GRAVITINO}/a/tables"])
def test_name_is_hidden_though_its_denial_is_dropped_during_the_call(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A hidden table that is dropped after the source has listed it stays hidden, though nothing hides its name any
    more.
    """
    grant(node, "ana", PRIVILEGES, kind="CATALOG", on="far")
    node.runner.run(deny(node, "TABLE", on="far.a.secret")())

    async def drop() -> None:
        assert (await node.answer("DELETE", table("a", "secret"))).status == 204

    answer = raced(node, monkeypatch, request=lambda: node.get(path, user="ana"), act=drop)

    assert answer.status == 200, answer
    assert b"secret" not in answer.body


def test_attachments_of_a_missing_object_are_refused_after_a_revoke(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller who lost the right to an object does not learn from a list of its tags that the source lacks it."""
    role = grant(node, "ana", PRIVILEGES, kind="CATALOG", on="far")
    path = f"{API}/lake/objects/TABLE/far.a.none/tags"
    assert node.get(path, user="ana").status == 404

    answer = raced(node, monkeypatch, request=lambda: node.get(path, user="ana"), act=revoke(node, role))

    assert answer.status == 403, answer


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", GRAVITINO, {"name": "a"}),
        ("PUT", f"{GRAVITINO}/a", {"updates": [{"@type": "setProperty", "property": "k", "value": "v"}]}),
        ("POST", f"{GRAVITINO}/a/tables", {"name": "t", "columns": [{"name": "id", "type": "long"}]}),
        ("PUT", f"{GRAVITINO}/a/tables/t", {"updates": [{"@type": "setProperty", "property": "k", "value": "v"}]}),
        ("PUT", f"{GRAVITINO}/a/tables/t", {"updates": [{"@type": "rename", "newName": "u"}]}),
    ],
)
def test_result_of_a_change_is_not_shown_after_a_revoke(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: dict[str, object]
) -> None:
    """If the right is revoked between a change and the load of its result, the answer says that the change was made,
    and does not show the object.
    """
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="far")
    node.done("PUT", f"{API}/lake/owners/SCHEMA/far.a", {"name": "ana", "type": "USER"})
    node.done("PUT", f"{API}/lake/owners/SCHEMA/far.a", {"name": "admin", "type": "USER"})
    role = grant(node, "ana", "create_schema create_table", kind="CATALOG", on="far")
    owned = "far.a.t" if "tables/" in path else "far.a" if method == "PUT" else None
    act = revoke(node, role)
    if owned is not None:
        owner = f"{API}/lake/owners/{'TABLE' if owned.count('.') == 2 else 'SCHEMA'}/{owned}"
        node.done("PUT", owner, {"name": "ana", "type": "USER"})

        async def act() -> None:
            later = f"{owner.removesuffix('t')}u" if "rename" in str(body) else owner
            assert (await node.answer("PUT", later, {"name": "admin", "type": "USER"})).status == 200

    answer = raced(node, monkeypatch, request=lambda: node.ask(method, path, body, user="ana"), act=act, call=2)

    assert answer.status == 500, answer
    assert "has made the change" in str(answer["message"])
    assert b"later" not in answer.body


def test_protection_is_not_revealed_after_a_revoke(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller who lost the right to drop a table gets the refusal, not the message that the table is protected."""
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="far")
    owner = f"{API}/lake/owners/TABLE/far.a.t"
    node.done("PUT", owner, {"name": "ana", "type": "USER"})

    async def act() -> None:
        assert (await node.answer("PUT", owner, {"name": "admin", "type": "USER"})).status == 200
        protected = await node.answer("PUT", f"{OWN}/metalakes/lake/objects/CATALOG/far/protection", {"below": True})
        assert protected.status == 200, protected

    with interfere_before(monkeypatch, Context, method="look_up", act=act) as interference:
        answer = node.ask("DELETE", table("a", "t"), user="ana")

    assert interference.is_done
    assert refused(answer) == (403, "ForbiddenException")
