# SPDX-License-Identifier: Apache-2.0
"""Verification of tables on an object store with authorization: by vended credentials, and by the server's check."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from limnos.client import Client
from limnos.spark.lance.server_access import ServerAccess
from limnos.spark.verification.objects import COLUMNS, VerificationTask
from tests.integration.live import LiveServer, serving
from tests.objects import BUCKET, ObjectStoreServer, authorized

pytestmark = pytest.mark.integration
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """The object store."""
    with authorized() as object_store:
        yield object_store


@pytest.fixture(scope="module")
def server(store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with two catalogs in the store: one vends credentials, one does not. Each has three tables."""
    data = tmp_path_factory.mktemp("verification") / "data"
    keys = {key: value for key, value in store.properties.items() if key != "s3-role-arn"}
    with (
        serving(data, "--allow-root", "s3://lake", "--allow-endpoint", store.uri) as running,
        Client(running.uri, token=running.token) as client,
    ):
        client.catalogs.create("vended", properties={**store.properties, "warehouse": "s3://lake/vended"})
        client.catalogs.create("kept", properties={**keys, "warehouse": "s3://lake/kept"})
        for name in ("vended", "kept"):
            client.namespaces.create((name, "a"))
            properties = {"type": "rest", "uri": f"{running.uri}/iceberg", "warehouse": name, "token": running.token}
            catalog = load_catalog("limnos", **properties, **keys)
            for number in range(3):
                catalog.create_table(("a", f"t{number}"), ROWS.schema).append(ROWS)
        yield running


def findings(server: LiveServer, catalog: str, *, user: str | None = None) -> list[tuple[str, str | None, int | None]]:
    """Check the tables of a catalog. Returns paths, findings and numbers of checked files."""
    home = ServerAccess(uri=server.uri, metalake="lake", token=None if user else server.token, user=user)
    with home.client() as client:
        streams = client.system_tables.read("tables", columns=COLUMNS, where=[("path", ">=", catalog)])
    batches = [batch for stream in streams for batch in pa.ipc.open_stream(stream)]
    rows = [row for batch in VerificationTask(home=home, footers=True)(batches) for row in batch.to_pylist()]
    return [
        (row["path"], row["finding"], row["files"])
        for row in rows
        if row["row"] != "file" and row["path"].startswith(f"{catalog}.")
    ]


@pytest.mark.parametrize("catalog", ["vended", "kept"])
def test_lost_object_is_found(server: LiveServer, store: ObjectStoreServer, catalog: str) -> None:
    """A healthy table has no finding, and one whose data file was deleted has one, by either way."""
    assert {each[1] for each in findings(server, catalog)} == {None}
    client = store.client()
    for key in [key for key in store.names(f"{catalog}/") if key.endswith(".parquet")][:1]:
        client.delete_object(Bucket=BUCKET, Key=key)
    client.close()
    results = findings(server, catalog)

    assert [each[1] for each in results if each[1]] == ["data file missing"]
    assert len([each for each in results if each[1] is None and (each[2] or 0) >= 3]) == 3


def test_vended_credentials_are_used(server: LiveServer, store: ObjectStoreServer) -> None:
    """Files are read with sessions, whose policies allow each request. The store counts requests of sessions alone."""
    store.asked.clear()
    store.refused.clear()
    findings(server, "vended")

    assert store.asked["s3:GetObject"] >= 3 * 4
    assert store.refused == []


def test_caller_without_rights_gets_no_files(server: LiveServer) -> None:
    """A user who may see tables and not read them has the finding that they were not checked."""
    with Client(server.uri, token=server.token) as admin:
        admin.users.add("vera")
        admin.roles.create("lookers")
        admin.roles.allow("lookers", ["USE_CATALOG", "USE_SCHEMA"], on="vended", kind="catalog")
        admin.roles.grant_to_user("vera", ["lookers"])
    results = findings(server, "vended", user="vera")

    assert {each[1] for each in results if each[1]} <= {"not checked"}
    assert all(each[2] is None for each in results)
