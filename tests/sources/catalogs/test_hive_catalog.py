# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables of a real Hive metastore: entries and their kinds, commits that lose, and metastores without locks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest
from hive_metastore.ttypes import (
    Database,
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from limnos.model.errors import (
    AlreadyExists,
    BadRequest,
    CommitConflict,
    InvalidTable,
    NotFound,
    SourceFailed,
    UnsupportedOperation,
)
from limnos.sources.catalogs import hive_catalog
from limnos.sources.catalogs.hive_catalog import HiveCatalog
from tests.metastores import HiveServer, hive_server

pytestmark = pytest.mark.integration
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[HiveServer]:
    """A metastore with the tables of locks."""
    with hive_server(has_locks=True) as running:
        yield running


@pytest.fixture
def hive(server: HiveServer) -> Iterator[HiveCatalog]:
    """The metastore's catalog."""
    with closing(HiveCatalog(f"thrift://127.0.0.1:{server.bridge.port}", timeout_s=30.0)) as catalog:
        yield catalog


def make_database(server: HiveServer, **tables: dict[str, str]) -> str:
    """Create a database with tables of these parameters. Returns its name."""
    name = f"d{next(_NUMBERS)}"
    with server.client() as client:
        client.create_database(Database(name=name, description="of the shop", parameters={"k": "v"}))
        for table, parameters in tables.items():
            is_view = parameters.get("kind") == "VIRTUAL_VIEW"
            client.create_table(
                Table(
                    tableName=table,
                    dbName=name,
                    tableType=parameters.get("kind", "EXTERNAL_TABLE"),
                    parameters={key: value for key, value in parameters.items() if key != "kind"},
                    partitionKeys=[],
                    viewOriginalText="SELECT 1" if is_view else None,
                    viewExpandedText="SELECT 1" if is_view else None,
                    sd=StorageDescriptor(
                        cols=[FieldSchema("id", "bigint", None)],
                        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.OpenCSVSerde"),
                    ),
                )
            )
    return name


def iceberg(file: str = "m1", **more: str) -> dict[str, str]:
    """Return the parameters of an Iceberg table."""
    return {"EXTERNAL": "TRUE", "table_type": "ICEBERG", "metadata_location": file, **more}


def test_databases_and_tables_are_listed_with_their_kinds(hive: HiveCatalog, server: HiveServer) -> None:
    """Iceberg's tables and views are distinguished from Hive's own by their parameters."""
    name = make_database(
        server,
        orders=iceberg(),
        broken={"EXTERNAL": "TRUE", "table_type": "iceberg"},
        logs={"EXTERNAL": "TRUE"},
        recent={"kind": "VIRTUAL_VIEW", "table_type": "iceberg-view", "metadata_location": "v1"},
        old_view={"kind": "VIRTUAL_VIEW"},
    )

    properties = hive.namespace_properties((name,))

    assert (name,) in hive.namespaces()
    assert (properties["k"], properties["comment"], "location" in properties) == ("v", "of the shop", True)
    assert hive.names((name,)) == [
        ("broken", "table"),
        ("logs", "other"),
        ("old_view", "other"),
        ("orders", "table"),
        ("recent", "view"),
    ]
    assert hive.entry((name, "recent")).metadata_location == "v1"
    assert hive.entry((name, "logs")).note == "a table of Hive (OpenCSVSerde)"
    assert hive.entry((name, "old_view")).note == "a view of Hive"
    with pytest.raises(InvalidTable):
        hive.entry((name, "broken"))
    with pytest.raises(NotFound):
        hive.names(("no_such",))


def test_commit_needs_the_expected_file(hive: HiveCatalog, server: HiveServer) -> None:
    """A commit on the table's file succeeds, also of one whose writers take no lock; one on a former file fails."""
    name = make_database(server, t=iceberg(), free=iceberg(**{"engine.hive.lock-enabled": "false"}))

    for table in ("t", "free"):
        hive.replace((name, table), "m2", expected="m1", properties={"limnos.moved-to": "here"})
        with pytest.raises(CommitConflict):
            hive.replace((name, table), "m3", expected="m1", properties={})

    with server.client() as client:
        parameters = client.get_table(name, "t").parameters
    assert (parameters["metadata_location"], parameters["previous_metadata_location"]) == ("m2", "m1")
    assert parameters["limnos.moved-to"] == "here"


def test_metastore_compares_the_file_itself(
    hive: HiveCatalog, server: HiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of a writer without a lock, between the look and the change, makes the change fail."""
    name = make_database(server, t=iceberg(**{"engine.hive.lock-enabled": "false"}))
    plain = hive_catalog._alter

    def alter_late(client: object, path: tuple[str, ...], *, table: Table, expected: str) -> None:
        with server.client() as other:
            current = other.get_table(*path)
            current.parameters["metadata_location"] = "m9"
            other.alter_table(*path, current)
        plain(client, path, table=table, expected=expected)

    monkeypatch.setattr(hive_catalog, "_alter", alter_late)

    with pytest.raises(CommitConflict):
        hive.replace((name, "t"), "m2", expected="m1", properties={})
    assert hive.entry((name, "t")).metadata_location == "m9"


def test_locked_table_is_not_changed(hive: HiveCatalog, server: HiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another client has the lock, a change waits, and is given up."""
    monkeypatch.setattr(hive_catalog, "LOCK_WAIT_S", 0.5)
    name = make_database(server, t=iceberg())
    part = LockComponent(
        level=LockLevel.TABLE, type=LockType.EXCLUSIVE, dbname=name, tablename="t", isTransactional=True
    )
    with server.client() as client:
        client.lock(LockRequest(component=[part], user="u", hostname="h"))

    with pytest.raises(CommitConflict, match="has a lock"):
        hive.replace((name, "t"), "m2", expected="m1", properties={})
    assert hive.entry((name, "t")).metadata_location == "m1"


def test_retired_table_has_the_new_name(hive: HiveCatalog, server: HiveServer) -> None:
    """An external table is renamed and keeps its location; a managed one is refused, as is a name that is taken."""
    name = make_database(
        server, t=iceberg(), taken=iceberg(), managed={"kind": "MANAGED_TABLE", **iceberg(EXTERNAL="FALSE")}
    )
    with server.client() as client:
        before = client.get_table(name, "t").sd.location

    assert hive.retire((name, "t"), name="t__moved") == "t__moved"

    with server.client() as client:
        assert client.get_table(name, "t__moved").sd.location == before
    with pytest.raises(NotFound):
        hive.entry((name, "t"))
    with pytest.raises(AlreadyExists):
        hive.retire((name, "taken"), name="t__moved")
    with pytest.raises(UnsupportedOperation, match="--cut-over mark"):
        hive.retire((name, "managed"), name="managed__moved")


def test_metastore_without_locks_is_not_changed(hive_server: HiveServer) -> None:
    """Where no lock is given, a change is refused, because it could lose a commit."""
    name = make_database(hive_server, t=iceberg())

    with closing(HiveCatalog(f"thrift://127.0.0.1:{hive_server.bridge.port}", timeout_s=60.0)) as catalog:
        with pytest.raises(UnsupportedOperation, match="gives no locks"):
            catalog.replace((name, "t"), "m2", expected="m1", properties={})
        assert catalog.entry((name, "t")).metadata_location == "m1"


def test_silent_metastore_does_not_answer(server: HiveServer) -> None:
    """A metastore that takes the connection and says nothing is given up after the deadline."""
    server.bridge.silent = True
    try:
        catalog = HiveCatalog(f"thrift://127.0.0.1:{server.bridge.port}", timeout_s=1.0)
        with closing(catalog), pytest.raises(SourceFailed):
            catalog.namespaces()
    finally:
        server.bridge.silent = False


@pytest.mark.parametrize("uri", ["", "http://h:1", "thrift://u:s3cret@h:9083", "thrift://h:0"])
def test_other_address_is_refused(uri: str) -> None:
    """An address that is none of a metastore is refused without its password."""
    with pytest.raises(BadRequest) as caught:
        HiveCatalog(uri, timeout_s=1.0)

    assert "s3cret" not in caught.value.message
