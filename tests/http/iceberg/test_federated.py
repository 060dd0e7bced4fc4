# SPDX-License-Identifier: Apache-2.0
"""Connector catalogs of another Iceberg REST catalog: a real server behind a socket, read and changed under this
server's rights.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from limnos.app.node_builder import DATABASE_FILE
from limnos.config.storage import SourcesSection
from tests.http.driver import API, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.federated import (
    FAR,
    MAIN,
    SPACES,
    FarCatalog,
    catalog,
    far_at,
    new_table,
    refused,
    setting,
    space,
    table,
)
from tests.http.interference import InterferencePoint, interfere
from tests.scripted_server import ScriptedAnswer, scripted

pytestmark = [pytest.mark.integration, pytest.mark.room("connectors")]


@pytest.fixture
def far(fresh: Callable[[str], Path]) -> Iterator[FarCatalog]:
    """Two nodes; the first has a connector catalog of the second one."""
    with far_at(fresh("near"), fresh("away")) as pair:
        yield pair


def test_tables_are_created_loaded_and_changed_in_the_source(far: FarCatalog) -> None:
    """Tables created over this server exist in the source, and both servers return the same metadata."""
    created = far.node.done("POST", f"{space('sales')}/tables", new_table("t", properties={"a": "1"}))

    assert created["metadata"]["properties"]["a"] == "1"
    assert created["config"] == {}
    loaded = far.node.done("GET", table("sales", "t"))
    assert loaded == {**created, "config": {}}
    assert far.source("GET", table("sales", "t", root=MAIN)).json()["metadata"] == loaded["metadata"]
    changed = far.node.done("POST", table("sales", "t"), setting("a", "2"))
    assert changed["metadata"]["properties"]["a"] == "2"
    assert far.names("sales") == ["t"]
    assert far.node.ask("HEAD", table("sales", "t")).status == 204
    assert far.node.ask("HEAD", table("sales", "none")).status == 404
    assert refused(far.node.get(f"{SPACES}//tables/sales")) == (404, "NoSuchTableException")
    assert refused(far.node.post(f"{space('sales')}/tables", new_table("t"))) == (409, "AlreadyExistsException")
    wrong = setting("a", "3", {"type": "assert-table-uuid", "uuid": "0" * 8 + "-0000-4000-8000-" + "0" * 12})
    assert refused(far.node.post(table("sales", "t"), wrong)) == (409, "CommitFailedException")
    assert far.node.delete(f"{table('sales', 't')}?purgeRequested=true").status == 204
    assert refused(far.node.get(table("sales", "t"))) == (404, "NoSuchTableException")


def test_namespaces_can_be_nested_changed_and_dropped(far: FarCatalog) -> None:
    """Namespaces of any depth and spelling are created, changed and dropped."""
    odd = ("a b", "ä/ö+%", "c.d")
    namespace = far.node.done("POST", SPACES, {"namespace": odd, "properties": {"k": "v"}})

    assert namespace["namespace"] == list(odd)
    assert far.node.done("GET", space(*odd))["properties"]["k"] == "v"
    assert far.node.done("GET", f"{SPACES}?parent=a%20b")["namespaces"] == [list(odd[:2])]
    assert [each[0] for each in far.node.done("GET", SPACES)["namespaces"]] == ["a b", "sales"]
    changes = far.node.done("POST", f"{space(*odd)}/properties", {"removals": ["k", "x"], "updates": {"n": "1"}})
    assert changes == {"updated": ["n"], "removed": ["k"], "missing": ["x"]}
    far.node.done("POST", f"{space(*odd)}/tables", new_table("t.t"))
    assert refused(far.node.delete(space(*odd))) == (409, "NamespaceNotEmptyException")
    assert far.names(*odd) == ["t.t"]
    assert far.node.delete(table(*odd, "t.t")).status == 204
    assert far.node.delete(space(*odd)).status == 204
    assert refused(far.node.get(space(*odd))) == (404, "NoSuchNamespaceException")
    assert refused(far.node.get(f"{space(*odd)}/tables")) == (404, "NoSuchNamespaceException")
    assert refused(far.node.get(f"{SPACES}?parent=none")) == (404, "NoSuchNamespaceException")
    assert refused(far.node.post(SPACES, {"namespace": ["sales"]})) == (409, "AlreadyExistsException")


def test_config_has_own_prefix_and_hides_source_secrets(far: FarCatalog) -> None:
    """Clients get this server's prefix and separator and the endpoints for views. The answer does not contain the
    source's token.
    """
    config = far.node.done("GET", "/iceberg/v1/config?warehouse=far")

    assert config["overrides"] == {"prefix": "lake.far", "namespace-separator": "%1F"}
    assert config["defaults"] == {}
    assert "GET /v1/{prefix}/namespaces/{namespace}/views/{view}" in config["endpoints"]
    assert far.properties["token"] not in str(config)


def test_matching_etag_returns_304(far: FarCatalog) -> None:
    """The server converts the source's ETag to its own and answers a match with 304. The ETag is valid for one
    representation of the table, and invalid ones are ignored.
    """
    far.node.done("POST", f"{space('sales')}/tables", new_table("t"))
    loaded = far.node.get(table("sales", "t"))
    tag = loaded.headers["etag"]

    again = far.node.get(table("sales", "t"), If_None_Match=f'"other", {tag}')

    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert far.node.get(f"{table('sales', 't')}?snapshots=refs", If_None_Match=tag).status == 200
    far.node.done("POST", table("sales", "t"), setting("a", "1"))
    assert far.node.get(table("sales", "t"), If_None_Match=tag).status == 200
    for wrong in ("*", 'W/"x-!!"', '"' + tag.split("-")[0].removeprefix('W/"') + '-_____w=="'):
        assert far.node.get(table("sales", "t"), If_None_Match=wrong).status == 200


def test_tables_can_be_renamed_unregistered_and_registered(far: FarCatalog) -> None:
    """Tables can be renamed, moved, unregistered and registered. A commit of several tables is one request to the
    source.
    """
    for name in ("t", "u"):
        far.node.done("POST", f"{space('sales')}/tables", new_table(name))
    far.node.done("POST", SPACES, {"namespace": ["other"]})
    ends = {
        "source": {"namespace": ["sales"], "name": "t"},
        "destination": {"namespace": ["other"], "name": "v"},
    }
    assert far.node.post(f"{FAR}/tables/rename", ends).status == 204
    assert (far.names("sales"), far.names("other")) == (["u"], ["v"])
    assert refused(far.node.post(f"{FAR}/tables/rename", ends))[0] == 404
    changes = [
        {"identifier": {"namespace": [space_of], "name": name}, **setting("k", "1")}
        for space_of, name in (("sales", "u"), ("other", "v"))
    ]
    assert far.node.post(f"{FAR}/transactions/commit", {"table-changes": changes}).status == 204
    assert far.node.done("GET", table("other", "v"))["metadata"]["properties"]["k"] == "1"
    unregistered = far.node.done("POST", f"{table('other', 'v')}/unregister")
    again = {"name": "w", "metadata-location": unregistered["metadata-location"]}
    assert far.node.done("POST", f"{space('other')}/register", again)["metadata"] == unregistered["metadata"]
    assert far.names("other") == ["w"]
    grant(far.node, "ana", "use_catalog use_schema create_table modify_table", kind="CATALOG", on="far")
    over = {**again, "overwrite": True}  # this needs the right to drop the object with that name
    assert refused(far.node.post(f"{space('other')}/register", over, user="ana"))[0] == 403
    staged = far.node.done("POST", f"{space('other')}/tables", new_table("s", **{"stage-create": True}))
    assert far.names("other") == ["w"]
    whole = [
        {"action": "assign-uuid", "uuid": staged["metadata"]["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": staged["metadata"]["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": staged["metadata"]["location"]},
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": whole}
    assert far.node.post(table("other", "s"), body).status == 200
    assert far.names("other") == ["s", "w"]
    assert refused(far.node.post(table("other", "s"), body))[0] == 409


VIEW = {
    "schema": {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]},
    "view-version": {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": ["sales"],
        "representations": [{"type": "sql", "sql": "SELECT 1 AS x", "dialect": "spark"}],
    },
    "properties": {},
}


def test_view_lifecycle(far: FarCatalog) -> None:
    """Views of the source can be created, loaded, replaced, renamed and dropped like its tables."""
    view = far.node.done("POST", f"{space('sales')}/views", {"name": "v", **VIEW})

    assert far.names("sales", what="views") == ["v"]
    at = table("sales", "v", kind="views")
    assert far.node.done("GET", at)["metadata"] == view["metadata"]
    assert far.node.ask("HEAD", at).status == 204
    changed = far.node.done("POST", at, setting("a", "1"))
    assert changed["metadata"]["properties"]["a"] == "1"
    ends = {"source": {"namespace": ["sales"], "name": "v"}, "destination": {"namespace": ["sales"], "name": "w"}}
    assert far.node.post(f"{FAR}/views/rename", ends).status == 204
    assert far.names("sales", what="views") == ["w"]
    assert refused(far.node.get(at)) == (404, "NoSuchViewException")
    assert far.node.delete(table("sales", "w", kind="views")).status == 204
    assert far.names("sales", what="views") == []


def test_grants_apply_to_the_next_request(far: FarCatalog) -> None:
    """A grant on an existing table of the source, and its revoke, take effect immediately. A user without rights cannot
    see which objects exist.
    """
    for name in ("a", "b"):
        far.made("POST", f"{MAIN}/namespaces/sales/tables", new_table(name))
    far.use("bea", "use_catalog use_schema")
    assert far.names("sales", user="bea") == []
    role = far.use("bea", "select_table", on="far.sales.a", kind="TABLE")

    assert far.names("sales", user="bea") == ["a"]
    assert [far.node.get(table("sales", name), user="bea").status for name in ("a", "b", "none")] == [200, 403, 403]
    for wrong in (
        far.node.post(table("sales", "a"), setting("x", "y"), user="bea"),
        far.node.delete(table("sales", "a"), user="bea"),
        far.node.post(f"{space('sales')}/tables", new_table("c"), user="bea"),
        far.node.post(f"{space('sales')}/register", {"name": "c", "metadata-location": "file:/x"}, user="bea"),
        far.node.post(SPACES, {"namespace": ["mine"]}, user="bea"),
        far.node.delete(space("sales"), user="bea"),
    ):
        assert refused(wrong) == (403, "ForbiddenException")
    far.node.done(
        "PUT",
        f"{API}/lake/permissions/roles/{role}/table/far.sales.a/revoke",
        {"privileges": [{"name": "select_table", "condition": "allow"}]},
    )
    assert far.names("sales", user="bea") == []
    assert far.node.get(table("sales", "a"), user="bea").status == 403
    assert far.node.get(SPACES, user="cem").status == 403
    assert far.node.get("/iceberg/v1/config?warehouse=far", user="cem").status == 404


def test_changes_on_one_node_apply_immediately_on_another(far: FarCatalog) -> None:
    """Grants, creates, renames and revokes on one node apply to the next request on another."""
    far.made("POST", f"{MAIN}/namespaces/sales/tables", new_table("a"))
    far.use("bea", "use_catalog use_schema")
    address = far.properties["uri"].removeprefix("http://").partition("/")[0]
    with node_at(far.node.data, sources=SourcesSection(allowed_addresses=(address,), timeout_s=10.0)) as other:
        assert other.get(table("sales", "a"), user="bea").status == 403
        role = far.use("bea", "select_table", on="far.sales.a", kind="TABLE")
        assert other.get(table("sales", "a"), user="bea").status == 200
        ends = {"source": {"namespace": ["sales"], "name": "a"}, "destination": {"namespace": ["sales"], "name": "b"}}
        assert other.post(f"{FAR}/tables/rename", ends).status == 204
        assert far.names("sales", user="bea") == ["b"]
        other.done(
            "PUT",
            f"{API}/lake/permissions/roles/{role}/table/far.sales.b/revoke",
            {"privileges": [{"name": "select_table", "condition": "allow"}]},
        )
        assert far.node.get(table("sales", "b"), user="bea").status == 403


def test_creator_owns_table_and_rename_keeps_grants(far: FarCatalog) -> None:
    """The creator of a table may drop it; a renamed table keeps its grants; one created again has none."""
    far.use("ann", "use_catalog use_schema create_table")
    far.use("bea", "use_catalog use_schema")
    assert far.node.get(table("sales", "t"), user="ann").status == 404, "who makes tables learns that a name is free"
    far.node.done("POST", f"{space('sales')}/tables", new_table("t"), user="ann")
    far.use("bea", "select_table", on="far.sales.t", kind="TABLE")
    ends = {"source": {"namespace": ["sales"], "name": "t"}, "destination": {"namespace": ["sales"], "name": "u"}}

    assert far.node.post(f"{FAR}/tables/rename", ends, user="ann").status == 204

    assert far.names("sales", user="bea") == ["u"]
    assert far.node.delete(table("sales", "u"), user="bea").status == 403
    assert far.node.delete(table("sales", "u"), user="ann").status == 204
    far.node.done("POST", f"{space('sales')}/tables", new_table("u"), user="ann")
    assert far.node.get(table("sales", "u"), user="bea").status == 403
    far.made("POST", f"{MAIN}/namespaces/sales/tables", new_table("theirs"))
    assert far.node.get(table("sales", "theirs"), user="ann").status == 403
    assert far.node.delete(table("sales", "theirs"), user="ann").status == 403


def test_body_cannot_address_another_table_than_the_url(far: FarCatalog) -> None:
    """A body with another table's name, or with a duplicate field, changes only the table in the URL, or is refused."""
    for name in ("mine", "theirs"):
        far.made("POST", f"{MAIN}/namespaces/sales/tables", new_table(name))
    far.use("bea", "use_catalog use_schema")
    far.use("bea", "select_table modify_table", on="far.sales.mine", kind="TABLE")
    smuggled = {"identifier": {"namespace": ["sales"], "name": "theirs"}, **setting("x", "y")}
    assert far.node.post(table("sales", "mine"), smuggled, user="bea").status == 200
    twice = (
        b'{"table-changes":[{"identifier":{"namespace":["sales"],"name":"theirs"},"identifier":{"namespace":["sales"],"name":"mine"},'
        b'"requirements":[],"updates":[{"action":"set-properties","updates":{"z":"1"}}]}]}'
    )
    assert far.node.post(f"{FAR}/transactions/commit", twice, user="bea").status == 204
    both = {
        "table-changes": [
            {"identifier": {"namespace": ["sales"], "name": name}, **setting("w", "1")} for name in ("mine", "theirs")
        ]
    }
    assert far.node.post(f"{FAR}/transactions/commit", both, user="bea").status == 403
    staged = {"requirements": [{"type": "assert-create"}], "updates": []}
    assert far.node.post(table("sales", "new"), staged, user="bea").status == 403

    stored = {name: far.node.done("GET", table("sales", name))["metadata"]["properties"] for name in ("mine", "theirs")}
    assert {name: sorted(stored[name].keys() & {"x", "z", "w"}) for name in stored} == {
        "mine": ["x", "z"],
        "theirs": [],
    }


def test_malformed_requests_are_not_forwarded_to_the_source(far: FarCatalog) -> None:
    """The server refuses malformed requests without forwarding them to the source."""
    far.node.done("POST", f"{space('sales')}/tables", new_table("t"))
    far.bridge.cut()
    wrong = (
        ("POST", f"{space('sales')}/tables", {"schema": {}}),
        ("POST", f"{space('sales')}/tables", b"{"),
        ("POST", table("sales", "t"), {"requirements": 1}),
        ("POST", SPACES, {"namespace": []}),
        ("POST", f"{FAR}/tables/rename", {"source": 1}),
        ("POST", f"{FAR}/transactions/commit", {"table-changes": []}),
        ("GET", f"{space('sales')}/tables?pageSize=0", None),
        ("GET", f"{table('sales', 't')}?snapshots=some", None),
        ("POST", f"{space('sales')}/properties", {"removals": "x"}),
        ("POST", f"{space('sales')}/views", {"name": "v"}),
        ("POST", f"{space('sales')}/register", {"name": "v"}),
        ("GET", f"{FAR}/namespaces/a%00b", None),
    )
    for method, path, body in wrong:
        answer = far.node.ask(method, path, body)

        assert answer.status == 400, (method, path, body, answer.body)
    both = {"removals": ["a"], "updates": {"a": "1"}}
    assert far.node.post(f"{space('sales')}/properties", both).status == 422


def test_pages_continue_with_source_token_and_omit_hidden_objects(far: FarCatalog) -> None:
    """Pages continue with the source's token, and omit hidden objects."""
    for at in range(5):
        far.made("POST", f"{MAIN}/namespaces/sales/tables", new_table(f"t{at}"))
    far.use("bea", "use_catalog use_schema")
    far.use("bea", "select_table", on="far.sales.t3", kind="TABLE")
    admin_names, seen, token = [], [], ""
    while token is not None:
        for user, names in (("admin", admin_names), ("bea", seen)):
            page = far.node.get(f"{space('sales')}/tables?pageSize=2&pageToken={token}", user=user).json()
            names += [each["name"] for each in page["identifiers"]]
        token = page["next-page-token"]

    assert (admin_names, seen) == ([f"t{at}" for at in range(5)], ["t3"])


@pytest.mark.room("lance")
def test_gravitino_rest_lists_source_tables_without_secrets(far: FarCatalog) -> None:
    """Over Gravitino REST, clients get the same tables with their columns, and no answer contains the catalog's
    secrets.
    """
    far.node.done("POST", f"{space('sales')}/tables", new_table("t", properties={"a": "1"}))
    schemas = f"{API}/lake/catalogs/far/schemas"

    assert [each["name"] for each in far.node.done("GET", schemas)["identifiers"]] == ["sales"]
    assert [each["name"] for each in far.node.done("GET", f"{schemas}/sales/tables")["identifiers"]] == ["t"]
    loaded_table = far.node.done("GET", f"{schemas}/sales/tables/t")["table"]
    assert [(each["name"], each["type"]) for each in loaded_table["columns"]] == [("id", "long"), ("city", "string")]
    assert loaded_table["properties"]["a"] == "1"
    assert far.node.done("GET", f"{API}/lake/catalogs/far")["catalog"]["properties"]["token"] == "******"
    far.use("bea", "use_catalog")
    assert far.node.get(f"{API}/lake/catalogs/far", user="bea").json()["catalog"]["properties"] == {"in-use": "true"}
    assert far.node.done("GET", "/lance/v1/namespace/far/list")["namespaces"] == []
    again = far.node.post(f"{API}/lake/catalogs", catalog({**far.properties, "uri": "http://127.0.0.1:1/iceberg"}, "x"))
    assert again.status == 400
    assert "--allow-source 127.0.0.1:1" in again["message"]


def test_unreachable_source_returns_502_without_affecting_others(fresh: Callable[[str], Path]) -> None:
    """Disconnected source: 502, and 503 for a commit, which was not made. Silent source: 502, and 500 for a commit.
    Other requests are answered.
    """
    with far_at(fresh("near"), fresh("away"), timeout_s=3.0) as far:
        far.node.done("POST", f"{space('sales')}/tables", new_table("t"))
        far.node.done("POST", f"{MAIN}/namespaces", {"namespace": ["here"]})
        far.use("bea", "use_catalog use_schema")
        far.bridge.cut()
        assert refused(far.node.get(table("sales", "t"))) == (502, "BadGatewayException")
        assert refused(far.node.get(f"{space('sales')}/tables")) == (502, "BadGatewayException")
        lost = far.node.post(table("sales", "t"), setting("a", "1"))
        assert refused(lost) == (503, "ServiceUnavailableException")
        assert lost.headers["retry-after"].isdigit()
        assert far.node.get(f"{API}/lake/catalogs/far/schemas").json()["code"] == 1007
        assert far.node.get(table("sales", "t"), user="bea").status == 403
        far.bridge.mend()
        assert far.node.get(table("sales", "t")).status == 200

        far.bridge.silent = True
        assert refused(far.node.get(table("sales", "t"))) == (502, "BadGatewayException")
        unknown = far.node.post(table("sales", "t"), setting("a", "2"))
        assert refused(unknown) == (500, "CommitStateUnknownException")
        assert far.node.get(f"{MAIN}/namespaces").status == 200


def test_concurrent_callers_and_large_lists_are_served(far: FarCatalog) -> None:
    """Each of 64 concurrent callers is answered or refused with Retry-After, and a large namespace is listed
    completely.
    """
    for at in range(8):
        far.made("POST", f"{MAIN}/namespaces/sales/tables", new_table(f"t{at}"))

    async def crowd() -> list[DriverAnswer]:
        requests = [far.node.answer("GET", table("sales", f"t{at % 8}")) for at in range(64)]
        return await asyncio.gather(*requests)

    answers = far.node.runner.run(crowd())

    assert {each.status for each in answers} == {200}
    assert [each.json()["metadata"]["location"].rsplit("/", 1)[-1] for each in answers[:8]] == [
        each.json()["metadata"]["location"].rsplit("/", 1)[-1] for each in answers[8:16]
    ]
    count = int(os.environ.get("LIMNOS_TEST_FAR_TABLES", "150"))
    for at in range(count):
        far.made("POST", f"{MAIN}/namespaces/sales/tables", new_table(f"n{at}"))
    assert len(far.names("sales")) == count + 8


HIDDEN = {
    "token": "sourceword",
    "s3.access-key-id": "AKIA",
    "s3.secret-access-key": "verysecret",
    "s3.endpoint": "https://s3.example.com",
    "uri": "https://away.example.com",
    "s3.signer.uri": "https://away.example.com",
    "client.refresh-credentials-endpoint": "v1/far/away",
    "header.authorization": "Bearer sourceword",
}


def test_changed_source_address_needs_the_token_again(far: FarCatalog) -> None:
    """A user who may alter the catalog cannot send its token to another address without setting the token again."""
    to = {"@type": "setProperty", "property": "uri", "value": f"{far.properties['uri']}/other"}
    at = f"{API}/lake/catalogs/far"

    for answer in (far.node.put(at, {"updates": [to]}), far.node.post(f"{at}/testConnection", {"updates": [to]})):
        assert answer["code"] == 1001, answer.body
        assert "send the secret again" in str(answer["message"])
    again = {"@type": "setProperty", "property": "token", "value": "other"}
    assert far.node.put(at, {"updates": [to, again]}).status == 200


@pytest.mark.parametrize(
    "rule, reader, writer", [("never", False, False), ("to-writers", False, True), ("to-readers", True, True)]
)
def test_vended_source_credentials_are_passed_to_permitted_callers(
    fresh: Callable[[str], Path], rule: str, reader: bool, writer: bool
) -> None:
    """Vended credentials of the source are passed to permitted callers on request, with a renewal URL of this server;
    its errors are not. Users who may write and not read never get them.
    """
    entry = {"prefix": "s3://b/t/", "config": HIDDEN}
    load = {
        "metadata-location": "s3://b/t/1",
        "metadata": {"format-version": 2},
        "config": HIDDEN,
        "storage-credentials": [entry],
        "read-restrictions": {"x": 1},
    }
    with scripted() as script:
        script.answers["GET /v1/config"] = ScriptedAnswer(
            body={
                "endpoints": [
                    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
                ]
            }
        )
        script.answers["GET /v1/namespaces/a/tables/t"] = ScriptedAnswer(body=load, headers={"etag": "bare"})
        script.answers["GET /v1/namespaces/a/tables/t/credentials"] = ScriptedAnswer(
            body={"storage-credentials": [entry]}
        )
        address = f"127.0.0.1:{script.port}"
        properties = {"uri": f"http://{address}", "vended-credentials": rule}
        with node_at(fresh("near"), sources=SourcesSection(allowed_addresses=(address,), timeout_s=30.0)) as node:
            node.done("POST", f"{API}/lake/catalogs", catalog(properties))
            grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="far")
            grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="far")
            grant(node, "blind", "use_catalog use_schema modify_table", kind="CATALOG", on="far")
            for user, gets in (("reader", reader), ("writer", writer), ("blind", False)):
                vended = node.get(table("a", "t"), user=user, X_Iceberg_Access_Delegation="vended-credentials")
                renewed = node.get(f"{table('a', 't')}/credentials", user=user).json()["storage-credentials"]
                plain = node.get(table("a", "t"), user=user)

                for answer in (vended, plain):
                    assert answer["read-restrictions"] == {"x": 1}
                    for secret in ("sourceword", "away.example.com", "far/away"):
                        assert secret not in answer.body.decode()
                assert plain["config"] == {"s3.endpoint": "https://s3.example.com"}
                assert "storage-credentials" not in plain.json()
                assert ("verysecret" in vended.body.decode(), "verysecret" in str(renewed)) == (gets, gets), user
                assert (vended.headers.get("cache-control") == "no-store") is gets
                assert (vended.headers["etag"] != plain.headers["etag"]) is gets
                node.get(table("a", "t"), user=user, If_None_Match=plain.headers["etag"])
                assert script.asked[-1].headers["if-none-match"] == "bare"
                if gets:
                    config = vended.json()["storage-credentials"][0]["config"]
                    assert (
                        config["client.refresh-credentials-endpoint"] == "v1/lake.far/namespaces/a/tables/t/credentials"
                    )
            sent = [
                each.headers.get("x-iceberg-access-delegation")
                for each in script.asked
                if each.target.partition("?")[0].endswith("/t")
            ]
            assert ("vended-credentials" in sent) is (rule != "never")


def test_executed_source_change_succeeds_despite_a_late_revoke(
    far: FarCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a right is revoked after the source executed a change, the request succeeds and the tree is updated."""
    node, names = far.node, f"{API}/lake/owners/table/far.sales"
    far.use("mia", "use_catalog use_schema")
    role = far.use("mia", "create_table")
    lost = {"name": "admin", "type": "USER"}
    with interfere(node, monkeypatch, step=InterferencePoint.SUBMIT, act=_takes(node, role)) as interference:
        created = node.post(f"{space('sales')}/tables", new_table("t"), user="mia")
    assert (interference.is_done, created.status) == (True, 200), created.body
    assert node.get(f"{names}.t").json()["owner"]["name"] == "mia"

    other = {"source": {"namespace": ["sales"], "name": "t"}, "destination": {"namespace": ["sales"], "name": "u"}}
    with interfere(
        node, monkeypatch, step=InterferencePoint.SUBMIT, act=_asks(node, "PUT", f"{names}.t", lost)
    ) as interference:
        assert node.post(f"{FAR}/tables/rename", other, user="mia").status == 204
    assert interference.is_done
    assert node.get(f"{names}.u").json()["owner"]["name"] == "admin"
    assert far.names("sales") == ["u"]

    node.done("PUT", f"{names}.u", {"name": "mia", "type": "USER"})
    with interfere(
        node, monkeypatch, step=InterferencePoint.SUBMIT, act=_asks(node, "PUT", f"{names}.u", lost)
    ) as interference:
        assert node.ask("DELETE", table("sales", "u"), user="mia").status == 204
    assert interference.is_done
    assert far.names("sales") == []
    with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection:
        assert connection.execute("SELECT count(*) FROM node WHERE name IN ('t', 'u') AND deleted = 0").fetchone() == (
            0,
        )


def _takes(node: DriverNode, role: str) -> Callable[[], Awaitable[None]]:
    """Return a callback that revokes a role from mia."""
    return _asks(node, "PUT", f"{API}/lake/permissions/users/mia/revoke", {"roleNames": [role]})


def _asks(node: DriverNode, method: str, path: str, body: object) -> Callable[[], Awaitable[None]]:
    """Return a callback that sends a request as the admin."""

    async def act() -> None:
        answer = await node.answer(method, path, body)
        assert answer.status == 200, answer.body

    return act
