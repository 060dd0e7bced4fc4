# SPDX-License-Identifier: Apache-2.0
"""PyIceberg on an object store with authorization: credentials for one table, their expiry and renewal, and signed
requests, without keys of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.utils.concurrent import ExecutorFactory

from limnos.client import Client
from tests.integration.live import LiveServer, serving
from tests.objects import BUCKET, ObjectStoreServer, authorized

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "text": ["a", "b", "c"]})
SIGNED = {"header.X-Iceberg-Access-Delegation": "remote-signing", "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """The object store."""
    with authorized() as object_store:
        yield object_store


@pytest.fixture(scope="module")
def server(store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with a catalog in the store that vends credentials and signs requests; ana may read its tables."""
    data = tmp_path_factory.mktemp("authorized") / "data"
    flags = ("--allow-root", "s3://lake", "--allow-endpoint", store.uri)
    with serving(data, *flags) as running, Client(running.uri, token=running.token) as client:
        properties = {**store.properties, "warehouse": "s3://lake/ice", "s3.remote-signing-enabled": "true"}
        client.catalogs.create("ice", properties=properties)
        client.users.add("ana")
        client.roles.create("readers")
        client.roles.allow("readers", ["USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE"], on="ice", kind="catalog")
        client.roles.grant_to_user("ana", ["readers"])
        yield running


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all credentials of the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyIceberg 0.12 hangs its signer on a file system anew in each thread, and sent a request without a signature
    in 4 of 104 rounds; with one thread in none of 120.
    """
    monkeypatch.setenv("PYICEBERG_MAX_WORKERS", "1")
    monkeypatch.setattr(ExecutorFactory, "_instance", None)


def catalog(server: LiveServer, *, user: str | None = None, **more: str) -> RestCatalog:
    """Return a client, by default as the administrator."""
    with Client(server.uri, token=server.token) as client:
        token = server.token if user is None else client.tokens.create(user=user).token
    rest_catalog = load_catalog("ice", type="rest", uri=f"{server.uri}/iceberg", warehouse="ice", token=token, **more)
    assert isinstance(rest_catalog, RestCatalog)
    return rest_catalog


@pytest.mark.parametrize("more", [{}, SIGNED], ids=["vended", "signed"])
def test_pyiceberg_works_with_vended_access_only(
    server: LiveServer, store: ObjectStoreServer, more: dict[str, str]
) -> None:
    """With vended credentials or signatures alone, tables are created, written, read and overwritten, and read by a
    reader. The store checks each request.
    """
    space = "signed" if more else "vended"
    client = catalog(server, **more)
    client.create_namespace(space)
    table = client.create_table(f"{space}.t", schema=ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    table.delete("id = 2")
    assert sorted(client.load_table(f"{space}.t").scan().to_arrow()["id"].to_pylist()) == [1, 1, 3, 3]

    reader = catalog(server, user="ana", **more).load_table(f"{space}.t")
    assert reader.scan().to_arrow().num_rows == 4
    with pytest.raises(Exception, match=r"(?i)denied|forbidden|sign"):
        reader.append(ROWS)
    assert client.load_table(f"{space}.t").scan().to_arrow().num_rows == 4


def test_vended_credentials_expire_and_are_renewed(server: LiveServer, store: ObjectStoreServer) -> None:
    """Credentials open one table only: neither a sibling with the same prefix nor another table. Expired ones open
    nothing; renewed ones work.
    """
    client = catalog(server)
    client.create_namespace("ends")
    for name in ("t", "t2", "other"):
        client.create_table(f"ends.{name}", schema=ROWS.schema, location=f"s3://lake/ice/ends/{name}").append(ROWS)
    table = client.load_table("ends.t")
    config = dict(table.io.properties)

    def outcome(keys: dict[str, str], key: str) -> str:
        s3 = store.client(keys["s3.access-key-id"], keys["s3.secret-access-key"], keys["s3.session-token"])
        try:
            s3.list_objects_v2(Bucket=BUCKET, Prefix=key)
            s3.put_object(Bucket=BUCKET, Key=f"{key}probe", Body=b"x")
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        finally:
            s3.close()
        return "ok"

    assert outcome(config, "ice/ends/t/data/") == "ok"
    assert {outcome(config, f"ice/ends/{name}/data/") for name in ("t2", "other")} == {"AccessDenied"}
    assert int(config["s3.session-token-expires-at-ms"]) > time.time() * 1000
    store.end_all()
    assert outcome(config, "ice/ends/t/data/") == "AccessDenied"
    with Client(server.uri, token=server.token) as own:  # a new grant, so that no cached answer is used
        own.catalogs.alter("ice", updates={"s3.token-expire-in-secs": "1800"})
    renewed = client._load_credentials("ends.t").storage_credentials
    assert outcome(dict(renewed[0].config), "ice/ends/t/data/") == "ok"
