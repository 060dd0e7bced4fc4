# SPDX-License-Identifier: Apache-2.0
"""Files of restricted readers that an executor writes to an object store with authorization: with vended credentials
for the table's location and for its own directory, and without the catalog's keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import ServiceUnavailableError

from limnos.client import Client
from limnos.client.operation.maintenance_values import LeasedOperation
from limnos.client.values import NamedPrincipals
from limnos.rooms.maintenance.engine.restricted_files import RestrictedFileRunner, connect_to, thread_pool
from tests.integration.live import LiveServer, serving
from tests.integration.maintenance_executors import wait_for
from tests.objects import BUCKET, ObjectStoreServer, authorized
from tests.rooms.maintenance.engine.test_executor import FakeRunner

pytestmark = [
    pytest.mark.room("maintenance"),
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
FILES = 4
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "card": ["1111-2222", "3333-4444"]})
RIGHTS = ["USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE"]


@pytest.fixture
def store() -> Iterator[ObjectStoreServer]:
    """The object store."""
    with authorized() as object_store:
        yield object_store


@pytest.fixture
def server(store: ObjectStoreServer, tmp_path: Path) -> Iterator[LiveServer]:
    """A server with a table of four files in a catalog that vends credentials. Ana sees masked cards."""
    settings = {"LIMNOS__ACCESS__ENABLED": "true", "LIMNOS__PLANNING__EXECUTOR_SPANS": "2"}
    roots = ("--allow-root", "s3://lake", "--allow-endpoint", store.uri)
    with (
        serving(tmp_path / "data", *roots, env=settings) as running,
        Client(running.uri, token=running.token) as client,
    ):
        client.catalogs.create("ice", properties={**store.properties, "warehouse": "s3://lake/ice"})
        client.users.add("ana")
        client.roles.create("readers")
        client.roles.allow("readers", RIGHTS, on="ice", kind="catalog")
        client.roles.grant_to_user("ana", ["readers"])
        keys = {key: value for key, value in store.properties.items() if key != "s3-role-arn"}
        owner = load_catalog(
            "ice", type="rest", uri=f"{running.uri}/iceberg", warehouse="ice", token=running.token, **keys
        )
        owner.create_namespace("shop")
        table = owner.create_table("shop.t", schema=ROWS.schema)
        for _ in range(FILES):
            table.append(ROWS)
        only = NamedPrincipals(users=("ana",))
        client.restrictions.set("a", "ice.shop.t", kind="table", masks={"card": "show-last-4"}, to=only)
        yield running


def read(server: LiveServer, token: str) -> list[dict[str, Any]]:
    """Return ana's rows; none while the files are not written."""
    catalog = load_catalog("ice", type="rest", uri=f"{server.uri}/iceberg", warehouse="ice", token=token)
    with suppress(ServiceUnavailableError):
        return catalog.load_table("shop.t").scan().to_arrow().to_pylist()  # type: ignore[no-any-return]
    return []


def outcome(store: ObjectStoreServer, keys: dict[str, str], verb: str, key: str, **more: object) -> str:
    """Return the store's result of a request with an executor's credentials: an error code, or `done`."""
    client = store.client(keys["s3.access-key-id"], keys["s3.secret-access-key"], keys["s3.session-token"])
    try:
        getattr(client, verb)(Bucket=BUCKET, Key=key, **more)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    finally:
        client.close()
    return "done"


def test_executor_writes_with_vended_credentials_alone(server: LiveServer, store: ObjectStoreServer) -> None:
    """An executor reads the table and writes files with two vended credentials, neither of which can write a
    description, or a file of the table. It gets no key of the catalog.
    """
    with Client(server.uri, token=server.token) as admin, ThreadPoolExecutor(1) as threads:
        token = admin.tokens.create(user="ana").token
        admin.maintenance.lease("e", limit=1)
        waiting = threads.submit(lambda: wait_for(lambda: read(server, token)))
        (operation,) = wait_for(lambda: admin.maintenance.lease("e", limit=1).operations)
        assert isinstance(operation, LeasedOperation)
        with Client(server.uri, token=operation.token) as own:
            batch = own.maintenance.spans("ice", operation.operation)
        runner = RestrictedFileRunner(
            FakeRunner(), connect=connect_to(server.uri, metalake="lake", ca_file=None), pool=thread_pool(2)
        )
        end = runner.run(operation)
        admin.maintenance.report("e", operation.operation, outcome=end.outcome, text=end.text)
        rows = waiting.result()

    assert end.text == f"files of {FILES} spans were written"
    assert sorted(row["card"] for row in rows) == sorted(["xxxxx2222", "xxxxx4444"] * FILES)
    assert not [key for key in store.keys if key in json.dumps(batch.common)]
    credentials: dict[str, dict[str, str]] = batch.common["credentials"]
    into = str(batch.common["into"]).removeprefix(f"s3://{BUCKET}/")
    writer = credentials[f"s3://{BUCKET}/{into}"]
    (reader,) = [each for at, each in credentials.items() if each is not writer and at]
    data = next(name for name in store.names("ice/") if name.endswith(".parquet") and "restricted-reads" not in name)
    description = f"{into.rpartition('/')[0]}/{batch.spans[0].name}x.json"
    assert outcome(store, writer, "put_object", f"{into}/more", Body=b"x") == "done"
    assert outcome(store, reader, "get_object", data) == "done"
    refused = [
        outcome(store, keys, "put_object", at, Body=b"x") for keys in (reader, writer) for at in (description, data)
    ]
    assert [*refused, outcome(store, writer, "get_object", data)] == ["AccessDenied"] * 5
