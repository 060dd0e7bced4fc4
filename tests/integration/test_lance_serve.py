"""`limnos lance serve` under Lance's own clients: a directory in each layout, and somebody's implementation."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    """Serve, and give the address; it must end with exit code 0."""
    command = [*LIMNOS, "lance", "serve", *words, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("ready "), line
            yield line[6:].strip()
        finally:
            process.terminate()
            code = process.wait(timeout=20)
    assert code == 0


def rest(uri: str) -> RestNamespace:
    """Lance's own client."""
    return RestNamespace(uri=uri)


def test_a_directory_is_served_from_names_to_rows(tmp_path: Path) -> None:
    """Namespaces, tables, rows, queries, versions and all modes, for pylance, lancedb and the generated client."""
    with adapter(str(tmp_path)) as uri:
        client = rest(uri)
        client.create_namespace(CreateNamespaceRequest(id=["a"], properties={"k": "v"}))
        client.create_namespace(CreateNamespaceRequest(id=["a", "b c"]))
        kept = client.create_namespace(CreateNamespaceRequest(id=["a"], mode="ExistOk"))
        assert kept.properties == {"k": "v"}
        with pytest.raises(NamespaceAlreadyExistsError):
            client.create_namespace(CreateNamespaceRequest(id=["a"]))
        docs = ["a", "b c", "docs"]
        lance.write_dataset(ROWS, namespace_client=client, table_id=docs, mode="create")
        lance.write_dataset(ROWS, namespace_client=client, table_id=docs, mode="append")

        told = client.describe_table(DescribeTableRequest(id=docs))
        assert (told.version, told.namespace, told.is_only_declared) == (2, ["a", "b c"], False)
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
    gone = client.deregister_table(DeregisterTableRequest(id=["a", "pages"]))
    client.register_table(RegisterTableRequest(id=["a", "pages"], location=gone.location))
    client.table_exists(TableExistsRequest(id=["a", "pages"]))
    with pytest.raises((InvalidInputError, InvalidTableStateError)):
        client.register_table(RegisterTableRequest(id=["a", "out"], location="/etc"))
    folder = Path(gone.location.removeprefix("file://"))
    assert folder.is_relative_to(root)
    client.drop_table(DropTableRequest(id=["a", "pages"]))
    assert not folder.exists()


def _others(uri: str) -> None:
    """LanceDB in namespace mode, and the client generated from the protocol's document with another delimiter."""
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


def test_a_directory_of_the_first_layout_is_served_for_its_names(tmp_path: Path) -> None:
    """A folder exists even when it is empty; loading it fails in words; a table's place is told, and opened there."""
    lance.write_dataset(ROWS, str(tmp_path / "table1"))
    (tmp_path / "empty").mkdir()
    with adapter(str(tmp_path)) as uri:
        client = rest(uri)

        assert client.list_tables(ListTablesRequest(id=[])).tables == ["empty", "table1"]
        client.table_exists(TableExistsRequest(id=["empty"]))
        with pytest.raises(InvalidTableStateError, match="does not comply with the Lance table format"):
            client.describe_table(DescribeTableRequest(id=["empty"]))
        assert lance.dataset(namespace_client=client, table_id=["table1"]).count_rows() == 3
        with pytest.raises(UnsupportedOperationError):
            client.count_table_rows(CountTableRowsRequest(id=["table1"]))
        with pytest.raises(UnsupportedOperationError):
            client.create_namespace(CreateNamespaceRequest(id=["a"]))


def test_an_implementation_is_served_by_its_name(tmp_path: Path) -> None:
    """Lance's own, and another server behind a second adapter: what it refuses keeps its code."""
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
    "words, told",
    [
        ((".", "--listen", "0.0.0.0:0"), "can be reached from other machines"),
        ((), "takes a directory, or --impl"),
        ((".", "--impl", "dir"), "takes a directory, or --impl"),
        (("--impl", "no.such.Class"), "cannot be used as a namespace"),
        (("/no/such/directory",), "there is no directory"),
    ],
)
def test_what_cannot_be_served_is_told(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything listens, with what to do."""
    from limnos.cli.main import main

    assert main(["lance", "serve", *words]) != 0
    assert told in capsys.readouterr().err
