# SPDX-License-Identifier: Apache-2.0
"""`limnos lance serve` with Lance's own clients: a directory in each layout, and another implementation."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import lance
import lance_namespace_urllib3_client as generated
import lancedb
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import (
    CountTableRowsRequest,
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    ListTableVersionsRequest,
    QueryTableRequest,
    RegisterTableRequest,
    RenameTableRequest,
    TableExistsRequest,
)
from lance_namespace.errors import (
    InvalidInputError,
    InvalidTableStateError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from tests.integration.live import LIMNOS

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = pa.table({"id": [1, 2, 3], "vector": pa.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], pa.list_(pa.float32(), 2))})


@contextmanager
def adapter(*words: str) -> Iterator[str]:
    """Serve, and yield the address; the process must exit with code 0."""
    command = [*LIMNOS, "lance", "serve", *words, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("ready "), line
            yield line[6:].strip()
        finally:
            process.terminate()
            code = process.wait(timeout=300)
    assert code == 0


def rest(uri: str) -> RestNamespace:
    """Lance's own client."""
    return RestNamespace(uri=uri)


def test_directory_is_served_to_all_lance_clients(tmp_path: Path) -> None:
    """A directory serves namespaces, tables, rows, queries, versions and all modes to pylance, lancedb and the
    generated client.
    """
    with adapter(str(tmp_path)) as uri:
        client = rest(uri)
        client.create_namespace(CreateNamespaceRequest(id=["a"], properties={"k": "v"}))
        client.create_namespace(CreateNamespaceRequest(id=["a", "b c"]))
        existing = client.create_namespace(CreateNamespaceRequest(id=["a"], mode="ExistOk"))
        assert existing.properties == {"k": "v"}
        with pytest.raises(NamespaceAlreadyExistsError):
            client.create_namespace(CreateNamespaceRequest(id=["a"]))
        docs = ["a", "b c", "docs"]
        lance.write_dataset(ROWS, namespace_client=client, table_id=docs, mode="create")
        lance.write_dataset(ROWS, namespace_client=client, table_id=docs, mode="append")

        description = client.describe_table(DescribeTableRequest(id=docs))
        assert (description.version, description.namespace, description.is_only_declared) == (2, ["a", "b c"], False)
        assert client.count_table_rows(CountTableRowsRequest(id=docs)).count == 6
        query = QueryTableRequest(id=docs, k=1, vector={"single_vector": [0.0, 1.0]}, vector_column="vector")
        assert pa.ipc.open_file(client.query_table(query).data).read_all()["id"].to_pylist() == [1]
        assert len(client.list_table_versions(ListTableVersionsRequest(id=docs)).versions) == 2
        with pytest.raises(TableVersionNotFoundError):
            client.describe_table(DescribeTableRequest(id=docs, version=9))
        with pytest.raises(TableNotFoundError):
            client.count_table_rows(CountTableRowsRequest(id=["a", "none"]))
        for missing in (ListTablesRequest(id=["x"]), ListTablesRequest(id=["a", "x"])):
            with pytest.raises(NamespaceNotFoundError):
                client.list_tables(missing)
        _names(client, tmp_path)
        _others(uri)
        with pytest.raises(NamespaceNotEmptyError):
            client.drop_namespace(DropNamespaceRequest(id=["a"]))
        client.drop_namespace(DropNamespaceRequest(id=["a"], behavior="Cascade"))
        client.drop_namespace(DropNamespaceRequest(id=["a"], mode="Skip"))
        assert client.list_namespaces(ListNamespacesRequest(id=[])).namespaces == []
    assert [each.name for each in tmp_path.iterdir()] == ["__manifest"]


def _names(client: RestNamespace, root: Path) -> None:
    """Declare, rename, deregister, register and page."""
    for name in ("x", "y", "z"):
        client.declare_table(DeclareTableRequest(id=["a", name], properties={"n": name}))
    first = client.list_tables(ListTablesRequest(id=["a"], limit=2))
    rest_of = client.list_tables(ListTablesRequest(id=["a"], limit=2, page_token=first.page_token))
    assert (first.tables, rest_of.tables, rest_of.page_token) == (["x", "y"], ["z"], None)
    assert client.list_tables(ListTablesRequest(id=["a"], include_declared=False)).tables == []
    client.rename_table(RenameTableRequest(id=["a", "b c", "docs"], new_table_name="pages", new_namespace_id=["a"]))
    deregistered = client.deregister_table(DeregisterTableRequest(id=["a", "pages"]))
    client.register_table(RegisterTableRequest(id=["a", "pages"], location=deregistered.location))
    client.table_exists(TableExistsRequest(id=["a", "pages"]))
    with pytest.raises((InvalidInputError, InvalidTableStateError)):
        client.register_table(RegisterTableRequest(id=["a", "out"], location="/etc"))
    folder = Path(deregistered.location.removeprefix("file://"))
    assert folder.is_relative_to(root)
    client.drop_table(DropTableRequest(id=["a", "pages"]))
    assert not folder.exists()


def _others(uri: str) -> None:
    """LanceDB in namespace mode, and the generated client with another delimiter."""
    db = lancedb.connect_namespace("rest", {"uri": uri})
    table = db.create_table("items", ROWS, namespace_path=["a"])
    assert table.search([1.0, 0.0]).limit(1).to_list()[0]["id"] == 2
    api = generated.TableApi(generated.ApiClient(generated.Configuration(host=uri)))
    assert api.describe_table("a::items", generated.DescribeTableRequest(), delimiter="::").version == 1
    assert "a::items" in api.list_all_tables(delimiter="::").tables
    with pytest.raises(generated.exceptions.ApiException) as refused:
        api.alter_table_backfill_columns(
            "a::items", generated.AlterTableBackfillColumnsRequest(column="x"), delimiter="::"
        )
    assert refused.value.status == 406


def test_v1_layout_directory_is_served_without_versions(tmp_path: Path) -> None:
    """In layout V1 an empty folder exists, but describing it is an error. A table can be opened; versions and
    namespaces are not supported.
    """
    lance.write_dataset(ROWS, str(tmp_path / "table1"))
    (tmp_path / "empty").mkdir()
    with adapter(str(tmp_path)) as uri:
        client = rest(uri)

        assert client.list_tables(ListTablesRequest(id=[])).tables == ["empty", "table1"]
        client.table_exists(TableExistsRequest(id=["empty"]))
        with pytest.raises(InvalidTableStateError, match="does not comply with the Lance table format"):
            client.describe_table(DescribeTableRequest(id=["empty"]))
        assert lance.dataset(namespace_client=client, table_id=["table1"]).count_rows() == 3
        assert client.count_table_rows(CountTableRowsRequest(id=["table1"])).count == 3
        with pytest.raises(InvalidTableStateError):
            client.count_table_rows(CountTableRowsRequest(id=["empty"]))
        with pytest.raises(UnsupportedOperationError):
            client.list_table_versions(ListTableVersionsRequest(id=["table1"]))
        with pytest.raises(UnsupportedOperationError):
            client.create_namespace(CreateNamespaceRequest(id=["a"]))


def test_row_operations_run_in_worker_processes(tmp_path: Path) -> None:
    """Worker processes create, add, merge, update, delete, index, search, alter and restore; errors have the codes of a
    server.
    """
    with adapter(str(tmp_path)) as uri:
        api = generated.ApiClient(generated.Configuration(host=uri))
        data, tables, indices = generated.DataApi(api), generated.TableApi(api), generated.IndexApi(api)
        created = data.create_table("t", stream(ROWS), mode="Create", properties='{"k": "v"}')
        assert (created.version, created.properties) == (1, {"k": "v"})
        assert data.insert_into_table("t", stream(ROWS)).num_inserted_rows == 3
        merged = data.merge_insert_into_table("t", body=stream(ROWS), on=["id"], when_matched_update_all=True)
        assert merged.num_updated_rows == 6
        update = generated.UpdateTableRequest(updates=[["id", "id + 10"]], predicate="id = 1")
        assert data.update_table("t", update).updated_rows == 2
        data.delete_from_table("t", generated.DeleteFromTableRequest(predicate="id = 11"))
        index = generated.CreateTableIndexRequest(column="id", index_type="BTREE")
        assert indices.create_table_scalar_index("t", index).transaction_id
        assert len(indices.list_table_indices("t", generated.ListTableIndicesRequest()).indexes) == 1
        query_body = {"k": 1, "vector": {"single_vector": [1.0, 0.0]}, "with_row_id": True}
        arrow_file = data.query_table("t", generated.QueryTableRequest.from_dict(query_body))
        assert pa.ipc.open_file(arrow_file).read_all()["id"].to_pylist() == [2]
        plan = data.explain_table_query_plan(
            "t", generated.ExplainTableQueryPlanRequest.from_dict({"query": query_body})
        )
        assert "LanceRead" in plan
        assert tables.get_table_stats("t", generated.GetTableStatsRequest()).num_rows == 4
        for wrong, status in (("nothing = 1", 404), ("id = ", 400)):
            with pytest.raises(generated.exceptions.ApiException) as refused:
                data.count_table_rows("t", generated.CountTableRowsRequest(predicate=wrong))
            assert refused.value.status == status
        tables.restore_table("t", generated.RestoreTableRequest(version=1))
    assert lance.dataset(str(tmp_path / "t.lance")).count_rows() == 3


def stream(rows: pa.Table) -> bytes:
    """Return rows as a request body."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def test_truncated_and_too_large_bodies_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncated bodies commit nothing and create no table. The limits of a settings file apply, and the environment
    overrides them.
    """
    limits = tmp_path / "limits.toml"
    limits.write_text("[lance]\nbatch_bytes_max = 10000\ndata_timeout_s = 0.001\n")
    monkeypatch.setenv("LIMNOS__LANCE__DATA_TIMEOUT_S", "600")
    whole = stream(ROWS)
    behind = len(whole) - 8
    with adapter(str(tmp_path), "--config", str(limits)) as uri:
        data = generated.DataApi(generated.ApiClient(generated.Configuration(host=uri)))
        data.create_table("t", whole)
        for action in ("t/insert", "t/create?mode=overwrite", "u/create", "t/merge_insert?on=id"):
            for end in (behind, len(whole), behind - 20):
                broken_off(uri, action, whole[:end])
        large = stream(pa.concat_tables([ROWS] * 500).combine_chunks())
        for name, send in (("t", data.insert_into_table), ("u", data.create_table)):
            with pytest.raises(generated.exceptions.ApiException) as refused:
                send(name, large)
            assert (refused.value.status, name) == (413, name), refused.value.body
        assert data.count_table_rows("t", generated.CountTableRowsRequest()) == 3
        assert generated.TableApi(data.api_client).list_tables("$").tables == ["t"]
    assert lance.dataset(str(tmp_path / "t.lance")).version == 1


def broken_off(uri: str, action: str, part: bytes) -> None:
    """Send a part of a chunked body and close the connection; returns after the server has closed it, too."""
    address = urlsplit(uri)
    with socket.create_connection((address.hostname, address.port), timeout=60) as wire:
        head = f"POST /v1/table/{action} HTTP/1.1\r\nHost: {address.netloc}\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.sendall(head.encode() + b"%x\r\n%b\r\n" % (len(part), part))
        wire.shutdown(socket.SHUT_WR)
        while wire.recv(1 << 16):
            pass


def test_impl_option_selects_the_served_implementation(tmp_path: Path) -> None:
    """`--impl` serves Lance's own implementation, and another server through a second adapter; errors keep their
    codes.
    """
    with (
        adapter("--impl", "dir", "--property", f"root={tmp_path}") as first,
        adapter("--impl", "rest", "--property", f"uri={first}") as second,
    ):
        client = rest(second)
        client.create_namespace(CreateNamespaceRequest(id=["a"]))
        lance.write_dataset(ROWS, namespace_client=client, table_id=["a", "t"], mode="create")

        assert client.list_tables(ListTablesRequest(id=["a"])).tables == ["t"]
        with pytest.raises(TableNotFoundError):
            client.describe_table(DescribeTableRequest(id=["a", "none"]))


@pytest.mark.parametrize(
    "words, message",
    [
        ((".", "--listen", "0.0.0.0:0"), "can be reached from other machines"),
        ((), "takes a directory or --impl"),
        ((".", "--impl", "dir"), "takes a directory or --impl"),
        (("--impl", "no.such.Class"), "cannot be used as a namespace"),
        (("/no/such/directory",), "there is no directory"),
    ],
)
def test_invalid_arguments_are_refused_before_listening(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Invalid arguments are refused with advice before the adapter listens."""
    from limnos.cli.main import main

    assert main(["lance", "serve", *words]) != 0
    assert message in capsys.readouterr().err
