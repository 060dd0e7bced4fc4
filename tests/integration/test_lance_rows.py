# SPDX-License-Identifier: Apache-2.0
"""Rows of Lance tables through a server, by Lance's own clients with access control on, and over connections that
break.
"""

from __future__ import annotations

import io
import os
import re
import socket
from typing import Any
from urllib.parse import urlsplit

import lance
import lance_namespace_urllib3_client as generated
import lancedb
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, DescribeTableRequest

from limnos.client import Client
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SIZE = 16
ROWS = pa.table(
    {
        "id": pa.array(range(300), pa.int64()),
        "text": [f"word{number % 7} cat" for number in range(300)],
        "vector": pa.array(
            [[float(number + place) for place in range(SIZE)] for number in range(300)], pa.list_(pa.float32(), SIZE)
        ),
    }
)
NEAR = [float(17 + place) for place in range(SIZE)]
CUTS = int(os.environ.get("LIMNOS_TEST_CUTS", "5"))
"""Number of truncations of each of six kinds of bodies."""


def stream(table: pa.Table = ROWS, *, batches: int = 3) -> bytes:
    """Rows as a stream of several batches."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=table.num_rows // batches):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def home(server: LiveServer, request: pytest.FixtureRequest) -> list[str]:
    """A namespace two levels deep, of the test's own."""
    path = ["lance", re.sub(r"\W", "_", request.node.name), "in ner"]
    namespace = RestNamespace(**{"uri": f"{server.uri}/lance", "header.Authorization": f"Bearer {server.token}"})
    for depth in (2, 3):
        namespace.create_namespace(CreateNamespaceRequest(id=path[:depth]))
    return path


def remote(server: LiveServer, token: str | None = None) -> Any:  # noqa: ANN401 - LanceDB's
    """The catalog as a database of LanceDB's remote client."""
    return lancedb.connect("db://lance", api_key=token or server.token, host_override=f"{server.uri}/lance")


def test_lancedb_does_all_its_work_on_the_server(server: LiveServer, home: list[str]) -> None:
    """The server creates, adds, searches, updates, merges, deletes, indexes, alters and restores; the client accesses
    no file.
    """
    db, inner = remote(server), home[1:]
    table = db.create_table("t", ROWS, namespace_path=inner)
    table.add(ROWS.slice(0, 5))
    assert (table.count_rows(), table.count_rows("id < 5"), table.version) == (305, 10, 2)
    table.update(where="id = 1", values={"text": "changed"})
    table.merge_insert("id").when_not_matched_insert_all().execute(
        ROWS.slice(0, 3).set_column(0, "id", pa.array([0, 1, 999]))
    )
    assert table.delete("id < 5 OR id = 999").num_deleted_rows == 11

    table.create_index(metric="l2", vector_column_name="vector", index_type="IVF_FLAT")
    table.create_scalar_index("id")
    table.create_fts_index("text")
    assert {each.name for each in table.list_indices()} == {"vector_idx", "id_idx", "text_idx"}
    assert table.index_stats("id_idx").num_indexed_rows == 295
    assert table.search(NEAR).limit(2).select(["id"]).to_arrow()["id"].to_pylist()[:1] == [17]
    assert table.search(NEAR).limit(1).select({"twice": "id * 2"}).to_arrow().column("twice").to_pylist() == [34]
    assert {row["id"] % 7 for row in table.search("word3", query_type="fts").limit(9).to_list()} == {3}
    assert table.search(query_type="hybrid").vector(NEAR).text("word3").limit(3).to_arrow()["id"].to_pylist()[0] == 17
    assert table.search().where("id > 290").to_arrow().num_rows == 9
    assert table.search([NEAR, NEAR]).limit(2).to_arrow().num_rows == 4

    table.add_columns({"more": "id + 1"})
    table.alter_columns({"path": "more", "rename": "less"})
    table.drop_columns(["less"])
    assert table.stats()["num_rows"] == 295
    table.checkout(1)
    assert table.count_rows() == 300
    table.restore()
    assert db.open_table("t", namespace_path=inner).count_rows() == 300
    with pytest.raises(Exception, match="No field named nope"):
        table.count_rows("nope > 1")
    assert db.create_table("t", ROWS.slice(0, 2), mode="overwrite", namespace_path=inner).count_rows() == 2


def test_generated_client_calls_every_row_operation(server: LiveServer, home: list[str]) -> None:
    """The client generated from the OpenAPI document calls each operation on rows."""
    api = generated.ApiClient(generated.Configuration(host=f"{server.uri}/lance"))
    api.set_default_header("Authorization", f"Bearer {server.token}")
    tables, data, indices = generated.TableApi(api), generated.DataApi(api), generated.IndexApi(api)
    name, by = "::".join([*home, "t"]), {"delimiter": "::"}

    created = data.create_table(name, stream(), mode="Create", properties='{"k": "v"}', **by)
    assert (created.version, created.properties) == (1, {"k": "v"})
    assert data.insert_into_table(name, stream(), mode="append", **by).num_inserted_rows == 300
    assert data.count_table_rows(name, generated.CountTableRowsRequest(predicate="id < 10"), **by) == 20
    merged = data.merge_insert_into_table(name, body=stream(), on=["id", "text"], when_matched_update_all=True, **by)
    assert merged.num_updated_rows == 600
    updated = data.update_table(name, generated.UpdateTableRequest(updates=[["text", "'x'"]], predicate="id = 1"), **by)
    assert updated.updated_rows == 2
    data.delete_from_table(name, generated.DeleteFromTableRequest(predicate="id = 2"), **by)
    query = generated.QueryTableRequest(
        k=3, vector=generated.QueryTableRequestVector(single_vector=NEAR), with_row_id=True
    )
    nearest_rows = pa.ipc.open_file(io.BytesIO(data.query_table(name, query, **by))).read_all()
    assert nearest_rows["id"].to_pylist()[:2] == [17, 17]
    explained = generated.ExplainTableQueryPlanRequest(query=query, verbose=True)
    assert "LanceRead" in data.explain_table_query_plan(name, explained, **by)
    index_request = generated.CreateTableIndexRequest(column="id", index_type="BTREE")
    assert indices.create_table_scalar_index(name, index_request, **by).transaction_id
    (index,) = indices.list_table_indices(name, generated.ListTableIndicesRequest(), **by).indexes
    assert (index.index_name, index.num_unindexed_rows) == ("id_idx", 0)
    stats = indices.describe_table_index_stats(name, "id_idx", generated.DescribeTableIndexStatsRequest(), **by)
    assert stats.index_type == "BTree"
    transaction_id = indices.drop_table_index(name, "id_idx", **by).transaction_id
    transaction = generated.TransactionApi(api).describe_transaction(
        f"{name}::{transaction_id}", generated.DescribeTransactionRequest(), **by
    )
    assert transaction.status == "SUCCEEDED"
    assert tables.get_table_stats(name, generated.GetTableStatsRequest(), **by).num_rows == 598
    assert tables.update_table_schema_metadata(name, {"a": "b"}, **by) == {"a": "b"}
    tables.restore_table(name, generated.RestoreTableRequest(version=1), **by)
    assert data.count_table_rows(name, generated.CountTableRowsRequest(), **by) == 300


def test_reader_is_denied_writes(server: LiveServer, home: list[str]) -> None:
    """A user who may only read is denied writes by LanceDB; a user without rights is denied everything."""
    user = home[1]
    table = remote(server).create_table("t", ROWS, namespace_path=home[1:])
    assert table.count_rows() == 300
    with Client(server.uri, token=server.token) as admin:
        admin.users.add(user)
        token = admin.tokens.create(user=user, name="t").token
        with pytest.raises(Exception, match="403"):
            remote(server, token).create_table("u", ROWS, namespace_path=home[1:])
        admin.roles.create(user)
        admin.roles.allow(user, ["use_catalog", "use_schema", "select_table"], on="lance", kind="catalog")
        admin.roles.grant_to_user(user, [user])

        theirs = remote(server, token).open_table("t", namespace_path=home[1:])
        assert len(theirs.search(NEAR).limit(2).to_list()) == 2
        for change in (
            lambda: theirs.add(ROWS),
            lambda: theirs.delete("true"),
            lambda: theirs.create_scalar_index("id"),
        ):
            with pytest.raises(Exception, match="403"):
                change()
    assert table.count_rows() == 300


def send(server: LiveServer, path: str, body: bytes, *, headers: str, end: bytes = b"") -> bytes:
    """Send a request, chunked or with a length, over its own socket, and close it without waiting for an answer."""
    address = urlsplit(server.uri)
    with socket.create_connection((address.hostname, address.port), timeout=10) as wire:
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n{headers}\r\n\r\n"
        wire.sendall(head.encode() + body + end)
        if not end:
            wire.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := wire.recv(1 << 16):
            received += chunk
            if b"\r\n\r\n" in received and end:
                break
        return received


def test_a_body_that_breaks_off_is_never_committed(server: LiveServer, home: list[str]) -> None:
    """A truncated body, chunked or with a length, after a batch, after the stream or in the middle, adds no version and
    no row; the next insert works.
    """
    remote(server).create_table("t", ROWS, namespace_path=home[1:])
    data = stream()
    path = f"/lance/v1/table/{'%24'.join([*home, 't']).replace(' ', '%20')}/insert"
    reader = pa.ipc.open_stream(data)
    (first, *_) = (batch for batch in reader)
    boundary = len(stream(pa.Table.from_batches([first]), batches=1)) - 8

    for _ in range(CUTS):
        for piece in (data[:boundary], data, data[: boundary + 50]):
            chunk = b"%x\r\n%b\r\n" % (len(piece), piece)
            send(server, path, chunk, headers="Transfer-Encoding: chunked")
            send(server, path, piece, headers=f"Content-Length: {len(data) + 1}")

    namespace = RestNamespace(**{"uri": f"{server.uri}/lance", "header.Authorization": f"Bearer {server.token}"})
    description = namespace.describe_table(DescribeTableRequest(id=[*home, "t"]))
    assert (description.version, lance.dataset(description.location).count_rows()) == (1, 300)
    whole = send(
        server, path, b"%x\r\n%b\r\n" % (len(data), data), headers="Transfer-Encoding: chunked", end=b"0\r\n\r\n"
    )
    assert b'"num_inserted_rows":300' in whole
    assert lance.dataset(description.location).count_rows() == 600
