# SPDX-License-Identifier: Apache-2.0
"""Lance tables in an object store, end to end: clients with vended credentials only, and rows that the server
writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import lance
import lancedb
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, DescribeTableRequest
from pyiceberg.catalog import load_catalog

from limnos.client import Client
from tests.integration.live import LiveServer, serving
from tests.objects import BUCKET, ObjectStoreServer, objects

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "text": ["a cat", "a dog", "a bird"],
        "vector": pa.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], pa.list_(pa.float32(), 2)),
    }
)
WAIT_S = 300.0


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """An object store with a token service."""
    with objects() as object_store:
        yield object_store


@pytest.fixture(scope="module")
def cloud(store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with an Iceberg and a Lance catalog in the store, which vend credentials; dropped tables are deleted at
    once.
    """
    data = tmp_path_factory.mktemp("cloud") / "data"
    flags = ("--allow-root", "s3://lake", "--allow-endpoint", store.uri)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMNOS__STORE__TRASH_RETENTION_S", "0")
        with serving(data, *flags) as server, Client(server.uri, token=server.token) as client:
            for name, provider in (("ice", "lakehouse-iceberg"), ("vec", "lakehouse-generic")):
                properties = {**store.properties, "warehouse": f"s3://lake/{name}"}
                client.catalogs.create(name, provider=provider, properties=properties)
            yield server


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all credentials of the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def reader(cloud: LiveServer, catalog: str) -> str:
    """The token of a user who may read a catalog."""
    with Client(cloud.uri, token=cloud.token) as client:
        name = f"rita_{catalog}"
        client.users.add(name)
        client.roles.create(name)
        client.roles.allow(name, ["use_catalog", "use_schema", "select_table"], on=catalog, kind="catalog")
        client.roles.grant_to_user(name, [name])
        return client.tokens.create(user=name).token


def namespace_of(cloud: LiveServer, token: str | None = None) -> RestNamespace:
    """Lance's own client."""
    return RestNamespace(**{"uri": f"{cloud.uri}/lance", "header.Authorization": f"Bearer {token or cloud.token}"})


def until(done: Callable[[], bool]) -> None:
    """Wait for background work of the server."""
    end = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_pyiceberg_works_with_vended_credentials(store: ObjectStoreServer, cloud: LiveServer) -> None:
    """With vended credentials alone, PyIceberg creates, appends and scans. The store refuses a reader's append, and
    nothing is committed.
    """
    admin = load_catalog("ice", type="rest", uri=f"{cloud.uri}/iceberg", warehouse="ice", token=cloud.token)
    admin.create_namespace("shop")
    table = admin.create_table("shop.items", schema=ROWS.schema)
    table.append(ROWS)
    used = store.asked["s3:PutObject"]
    theirs = load_catalog("ice", type="rest", uri=f"{cloud.uri}/iceberg", warehouse="ice", token=reader(cloud, "ice"))
    seen = theirs.load_table("shop.items")

    assert used > 0
    assert seen.scan().to_arrow().num_rows == 3
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        seen.append(ROWS)
    assert len(admin.load_table("shop.items").snapshots()) == 1


def test_lance_clients_work_with_vended_credentials(store: ObjectStoreServer, cloud: LiveServer) -> None:
    """With vended credentials alone, pylance and lancedb write and read a storage-managed and a server-managed table; a
    reader cannot write.
    """
    namespace = namespace_of(cloud)
    namespace.create_namespace(CreateNamespaceRequest(id=["vec", "own"]))
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["vec", "own", "docs"], mode="create")
    namespace.declare_table(DeclareTableRequest(id=["vec", "own", "kept"], properties={"managed_versioning": "true"}))
    for _ in range(2):
        lance.write_dataset(ROWS, namespace_client=namespace, table_id=["vec", "own", "kept"], mode="append")
    theirs = namespace_of(cloud, reader(cloud, "vec"))

    for name, rows in (("docs", 3), ("kept", 6)):
        table = ["vec", "own", name]
        options = namespace.describe_table(DescribeTableRequest(id=table)).storage_options
        assert options["aws_access_key_id"] != "key"
        assert lance.dataset(namespace_client=theirs, table_id=table).count_rows() == rows
        with pytest.raises(Exception, match=r"AccessDenied|Access Denied|403"):
            lance.write_dataset(ROWS, namespace_client=theirs, table_id=table, mode="append")
    db = lancedb.connect_namespace(
        "rest", {"uri": f"{cloud.uri}/lance", "header.Authorization": f"Bearer {cloud.token}"}
    )
    docs_table = db.open_table("docs", namespace_path=["vec", "own"])
    docs_table.add(ROWS)
    assert docs_table.count_rows() == 6
    assert docs_table.search([0.0, 1.0], vector_column_name="vector").limit(1).to_list()[0]["text"] == "a cat"


def test_server_changes_rows_without_client_store_access(store: ObjectStoreServer, cloud: LiveServer) -> None:
    """The server creates, inserts, merges, indexes, updates, deletes and queries in the store; the clients do not
    access it.
    """
    namespace_of(cloud).create_namespace(CreateNamespaceRequest(id=["vec", "far"]))
    before = sum(number for name, number in store.asked.items() if name != "sts")
    db = lancedb.connect("db://vec", api_key=cloud.token, host_override=f"{cloud.uri}/lance")
    table = db.create_table("docs", ROWS, namespace_path=["far"])
    table.add(ROWS.slice(0, 1).set_column(0, "id", pa.array([4], pa.int64())))
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(ROWS.slice(0, 2))
    table.create_fts_index("text")
    table.update(where="id = 2", values={"text": "a wolf"})
    table.delete("id = 3")

    assert table.count_rows() == 3
    assert sorted(each["id"] for each in table.search("cat", query_type="fts").limit(9).to_list()) == [1, 4]
    assert sum(number for name, number in store.asked.items() if name != "sts") == before
    location = str(namespace_of(cloud).describe_table(DescribeTableRequest(id=["vec", "far", "docs"])).location)
    prefix = location.removeprefix("s3://lake/")
    owner = store.client()
    owner.put_object(Bucket=BUCKET, Key=f"{prefix}/mine.txt", Body=b"x")
    owner.put_object(Bucket=BUCKET, Key=f"{prefix}2/data/other", Body=b"x")
    owner.close()
    db.drop_table("docs", namespace_path=["far"])
    until(lambda: store.names(prefix) == [f"{prefix}/mine.txt", f"{prefix}2/data/other"])


def test_version_written_by_path_is_moved_aside(store: ObjectStoreServer, cloud: LiveServer) -> None:
    """The committed versions of a managed table are final. A version that was written by path with the owner's keys is
    moved aside and not shown.
    """
    namespace = namespace_of(cloud)
    namespace.create_namespace(CreateNamespaceRequest(id=["vec", "strict"]))
    id_ = ["vec", "strict", "docs"]
    declaration = namespace.declare_table(DeclareTableRequest(id=id_, properties={"managed_versioning": "true"}))
    for _ in range(3):
        lance.write_dataset(ROWS, namespace_client=namespace, table_id=id_, mode="append")
    keys: dict[str, Any] = {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_endpoint": store.uri,
        "aws_region": "us-east-1",
        "allow_http": "true",
    }
    lance.write_dataset(ROWS, str(declaration.location), mode="append", storage_options=keys)
    prefix = str(declaration.location).removeprefix("s3://lake/")
    seen = lance.dataset(namespace_client=namespace, table_id=id_)

    assert (seen.version, seen.count_rows()) == (3, 9)
    finals = [name for name in store.names(f"{prefix}/_versions/") if name.endswith(".manifest")]
    assert len(finals) == 3
    assert len(store.names(f"{prefix}/_bypassed/")) == 1
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=id_, mode="append")
    assert lance.dataset(namespace_client=namespace, table_id=id_).count_rows() == 12
