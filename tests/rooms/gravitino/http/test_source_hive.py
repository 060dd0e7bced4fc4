# SPDX-License-Identifier: Apache-2.0
"""Connector catalogs of a Hive metastore: databases and tables over Gravitino REST, with the rights of the tree, also
while the metastore fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from hive_metastore.ttypes import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table

from limnos.config.storage import SourcesSection
from tests.http.driver import API, DriverNode, grant, node_at
from tests.metastores import HiveServer
from tests.rooms.gravitino.http.source_catalogs import (
    change,
    listed,
    removed,
    sees_it_cut,
    sees_it_silent,
    set_to,
    updates,
    wait_for,
)

pytestmark = [pytest.mark.integration, pytest.mark.room("connectors")]

HIVE = f"{API}/lake/catalogs/hive"
COLUMNS = [{"name": "id", "type": "long", "comment": "which"}, {"name": "who", "type": "varchar(20)"}]
DAY = {"name": "day", "type": "date"}
BY_DAY = [{"strategy": "identity", "fieldName": ["day"]}]
_NUMBERS = count(1)


class Warehouse(NamedTuple):
    """A node with a catalog `hive` of a metastore, the metastore, and a separate schema."""

    node: DriverNode
    server: HiveServer
    schema: str

    @property
    def tables(self) -> str:
        """Return the URL of a schema's tables."""
        return f"{HIVE}/schemas/{self.schema}/tables"

    def seen(self, *, user: str = "admin") -> list[str]:
        """Return the names of the tables that a list has."""
        return listed(self.node, self.tables, user=user)

    def made(self, *names: str, kind: str = "MANAGED_TABLE", **parameters: str) -> None:
        """Create tables directly in the metastore."""
        with self.server.client() as client:
            for name in names:
                storage = StorageDescriptor(
                    cols=[FieldSchema("id", "bigint", None)],
                    inputFormat="org.apache.hadoop.mapred.TextInputFormat",
                    numBuckets=-1,
                    parameters={},
                    outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
                    bucketCols=[],
                    sortCols=[],
                    serdeInfo=SerDeInfo(
                        serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
                    ),
                )
                client.create_table(
                    Table(
                        tableName=name,
                        dbName=self.schema,
                        sd=storage,
                        partitionKeys=[],
                        parameters=parameters,
                        tableType=kind,
                        viewOriginalText="SELECT 1",
                        viewExpandedText="SELECT 1",
                    )
                )


@pytest.fixture
def warehouse(hive_server: HiveServer, fresh: Callable[[str], Path]) -> Iterator[Warehouse]:
    """A node, and the metastore behind the bridge."""
    with _warehouse(hive_server, fresh("hive"), timeout_s=25.0) as running_warehouse:
        yield running_warehouse


@pytest.fixture
def hasty(hive_server: HiveServer, fresh: Callable[[str], Path]) -> Iterator[Warehouse]:
    """A node whose requests to the source have a short timeout."""
    with _warehouse(hive_server, fresh("hasty"), timeout_s=2.0) as running_warehouse:
        yield running_warehouse


@contextmanager
def _warehouse(server: HiveServer, folder: Path, *, timeout_s: float) -> Iterator[Warehouse]:
    sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{server.bridge.port}",), timeout_s=timeout_s)
    with node_at(folder, sources=sources) as node:
        node.done("POST", f"{API}/lake/catalogs", _catalog(server.bridge.port))
        running_warehouse = Warehouse(node, server, f"s{next(_NUMBERS)}")
        with server.client() as client:
            client.create_database(Database(name=running_warehouse.schema, description="", parameters={}))
        yield running_warehouse


def _catalog(port: int, name: str = "hive", **more: str) -> dict[str, object]:
    properties = {"metastore.uris": f"thrift://127.0.0.1:{port}", **more}
    return {"name": name, "type": "relational", "provider": "hive", "properties": properties}


def test_created_table_exists_in_the_metastore(warehouse: Warehouse) -> None:
    """A table created over Gravitino REST exists in the metastore with types, partitioning, buckets and format, and is
    loaded unchanged.
    """
    by_id = {"type": "field", "fieldName": ["id"]}
    body = {
        "name": "orders",
        "comment": "whose",
        "columns": [*COLUMNS, DAY],
        "partitioning": BY_DAY,
        "properties": {"format": "orc", "owner.team": "a"},
        "distribution": {"strategy": "hash", "number": 4, "funcArgs": [by_id]},
        "sortOrders": [{"sortTerm": by_id, "direction": "desc"}],
    }

    table = warehouse.node.done("POST", warehouse.tables, body)["table"]

    assert table == warehouse.node.done("GET", f"{warehouse.tables}/orders")["table"]
    assert [(each["name"], each["type"]) for each in table["columns"]] == [
        ("id", "long"),
        ("who", "varchar(20)"),
        ("day", "date"),
    ]
    assert (table["comment"], table["columns"][0]["comment"], table["audit"]["creator"]) == ("whose", "which", "admin")
    assert (table["partitioning"], table["distribution"]["number"]) == (BY_DAY, 4)
    assert table["sortOrders"] == [{"sortTerm": by_id, "direction": "desc", "nullOrdering": "nulls_last"}]
    properties = table["properties"]
    assert (properties["format"], properties["table-type"], properties["owner.team"]) == ("ORC", "MANAGED_TABLE", "a")
    assert Path(properties["location"].removeprefix("file:")).is_dir()
    with warehouse.server.client() as client:
        stored_table = client.get_table(warehouse.schema, "orders")
    assert [each.name for each in stored_table.partitionKeys] == ["day"]
    assert stored_table.sd.serdeInfo.serializationLib.endswith("OrcSerde")
    assert warehouse.seen() == ["orders"]
    again = warehouse.node.post(warehouse.tables, body)
    assert (again.status, again["type"]) == (409, "TableAlreadyExistsException")


def test_schemas_can_be_created_changed_and_dropped(warehouse: Warehouse) -> None:
    """Databases are listed, created with comment and properties, changed, and dropped when they are empty."""
    node, name = warehouse.node, f"{warehouse.schema}_more"
    schema = node.done("POST", f"{HIVE}/schemas", {"name": name, "comment": "c", "properties": {"a": "b"}})["schema"]

    assert (schema["comment"], schema["properties"]["a"], schema["audit"]["creator"]) == ("c", "b", "admin")
    listed = [each["name"] for each in node.done("GET", f"{HIVE}/schemas")["identifiers"]]
    assert {"default", name, warehouse.schema} <= set(listed)
    sets = updates(set_to("x", "y"), removed("a"))
    changed = node.done("PUT", f"{HIVE}/schemas/{name}", sets)["schema"]["properties"]
    assert (changed.get("x"), changed.get("a")) == ("y", None)
    warehouse.made("t")
    full = node.delete(f"{HIVE}/schemas/{warehouse.schema}")
    assert (full.status, full["type"]) == (409, "NonEmptySchemaException")
    assert node.done("DELETE", f"{HIVE}/schemas/{name}")["dropped"] is True
    assert node.done("DELETE", f"{HIVE}/schemas/{name}")["dropped"] is False
    assert node.get(f"{HIVE}/schemas/{name}").status == 404
    assert node.get(f"{HIVE}/schemas/{name}/tables").status == 404
    elsewhere = {"name": "elsewhere", "properties": {"location": f"file://{warehouse.server.warehouse}/s1.db"}}
    assert node.post(f"{HIVE}/schemas", elsewhere).status == 405
    location = updates(set_to("location", "file:///"))
    assert node.put(f"{HIVE}/schemas/{warehouse.schema}", location).status == 405


def test_table_is_altered(warehouse: Warehouse) -> None:
    """One request changes columns, comments and properties. The last column can be dropped."""
    warehouse.node.done("POST", warehouse.tables, {"name": "t", "columns": COLUMNS})
    one = f"{warehouse.tables}/t"
    after = warehouse.node.done(
        "PUT",
        one,
        updates(
            change("addColumn", "n", type="decimal(10,2)", comment="number"),
            {"@type": "renameColumn", "oldFieldName": ["who"], "newFieldName": "whom"},
            change("updateColumnType", "whom", newType="string"),
            change("updateColumnComment", "id", newComment="it"),
            change("updateComment", newComment="new"),
            set_to("a", "b"),
            change("deleteColumn", "none", ifExists=True),
        ),
    )["table"]

    assert [(each["name"], each["type"]) for each in after["columns"]] == [
        ("id", "long"),
        ("whom", "string"),
        ("n", "decimal(10,2)"),
    ]
    assert (after["comment"], after["properties"]["a"], after["columns"][0]["comment"]) == ("new", "b", "it")
    last = warehouse.node.done(
        "PUT",
        one,
        updates(
            change("deleteColumn", "n"),
            removed("a"),
            change("updateComment", newComment=None),
        ),
    )["table"]
    assert [each["name"] for each in last["columns"]] == ["id", "whom"]
    assert ("comment" in last, "a" in last["properties"]) == (False, False)


WRONG: tuple[tuple[int, dict[str, object]], ...] = (
    (405, change("addColumn", "x", type="long", position="first")),
    (405, change("addColumn", "x", type="long", nullable=False)),
    (405, change("addColumn", "id", "x", type="long")),
    (405, change("updateColumnNullability", "id", nullable=False)),
    (405, change("updateColumnPosition", "id", newPosition="first")),
    (405, change("addTableIndex", index={"indexType": "PRIMARY_KEY", "name": "p", "fieldNames": [["id"]]})),
    (405, change("updateColumnType", "day", newType="string")),
    (405, set_to("location", "file:///etc")),
    (405, set_to("EXTERNAL", "TRUE")),
    (405, set_to("external.table.purge", "true")),
    (405, set_to("metadata_location", "s3://x")),
    (405, set_to("avro.schema.url", "http://x")),
    (405, removed("storage_handler")),
    (405, set_to("format", "ORC")),
    (400, change("addColumn", "id", type="long")),
    (400, change("addColumn", "X", type="long")),
    (400, change("addColumn", "x", type="uuid")),
    (400, change("addColumn", "x", type={"type": "external", "catalogString": "uniontype<int>"})),
    (400, change("deleteColumn", "none")),
    (400, change("updateColumnType", "id", newType="boolean")),
)


def test_invalid_change_is_refused_and_nothing_applied(warehouse: Warehouse) -> None:
    """Each invalid change is refused with a message, and earlier changes of the request are not made."""
    body = {"name": "t", "columns": [*COLUMNS, DAY], "partitioning": BY_DAY}
    before = warehouse.node.done("POST", warehouse.tables, body)["table"]
    for status, wrong in WRONG:
        answer = warehouse.node.put(f"{warehouse.tables}/t", updates(change("addColumn", "first", type="long"), wrong))

        assert (answer.status, answer["code"]) == (status, 1001 if status == 400 else 1006), (wrong, answer.body)
    assert warehouse.node.done("GET", f"{warehouse.tables}/t")["table"] == before


def test_invalid_table_is_refused(warehouse: Warehouse) -> None:
    """Tables with unknown names, types and layouts, or reserved properties, are refused."""
    column = {"name": "id", "type": "long"}
    for status, wrong in (
        (400, {"name": "Orders"}),
        (400, {"name": "a-b"}),
        (400, {"columns": []}),
        (400, {"columns": [column, column]}),
        (400, {"columns": [{"name": "id", "type": "time"}]}),
        (405, {"columns": [{**column, "nullable": False}]}),
        (400, {"properties": {"format": "LANCE"}}),
        (400, {"properties": {"table-type": "INDEX_TABLE"}}),
        (405, {"properties": {"location": f"file://{warehouse.server.warehouse}/s1.db/t"}}),
        (405, {"properties": {"serde-lib": "com.evil.SerDe"}}),
        (405, {"properties": {"storage_handler": "com.evil.Handler"}}),
        (405, {"partitioning": [{"strategy": "day", "fieldName": ["id"]}]}),
        (400, {"columns": [DAY, column], "partitioning": BY_DAY}),
        (400, {"columns": [DAY], "partitioning": BY_DAY}),
        (405, {"indexes": [{"indexType": "PRIMARY_KEY", "name": "p", "fieldNames": [["id"]]}]}),
        (
            400,
            {"distribution": {"strategy": "hash", "number": 2, "funcArgs": [{"type": "field", "fieldName": ["none"]}]}},
        ),
    ):
        answer = warehouse.node.post(warehouse.tables, {"name": "t", "columns": [column], **wrong})

        assert answer.status == status, (wrong, answer.body)
    assert warehouse.seen() == []


def test_another_spelling_of_a_name_does_not_bypass_a_denial(warehouse: Warehouse) -> None:
    """A table name in another spelling, which the metastore would accept, is refused as invalid or missing. A denial on
    the table cannot be bypassed with it.
    """
    node = warehouse.node
    warehouse.made("t")
    grant(node, "bea", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="hive")
    grant(node, "bea", "select_table modify_table", kind="TABLE", on=f"hive.{warehouse.schema}.t", condition="deny")
    assert warehouse.seen(user="bea") == []

    for name in ("T", "t ", "t\0", "@hive#t"):
        path = f"{warehouse.tables}/{name.replace(' ', '%20').replace(chr(0), '%00').replace('#', '%23')}"
        assert node.get(path, user="bea").status in (400, 404), name
        assert node.put(path, updates(change("updateComment", newComment="x")), user="bea").status in (400, 404), name
    assert node.get(f"{HIVE}/schemas/{warehouse.schema.upper()}/tables", user="bea").status == 404
    assert node.get(f"{warehouse.tables}/t", user="bea").status == 403


def test_grants_apply_to_the_next_request_and_creator_owns_table(warehouse: Warehouse) -> None:
    """A grant on an existing table, and its revoke, take effect immediately. The creator of a table owns it."""
    node, schema = warehouse.node, warehouse.schema
    warehouse.made("a", "b")
    grant(node, "bea", "use_catalog", kind="CATALOG", on="hive")
    grant(node, "bea", "use_schema create_table", kind="SCHEMA", on=f"hive.{schema}")
    assert warehouse.seen(user="bea") == []
    role = grant(node, "bea", "select_table", kind="TABLE", on=f"hive.{schema}.a")

    assert warehouse.seen(user="bea") == ["a"]
    assert [node.get(f"{warehouse.tables}/{name}", user="bea").status for name in ("a", "b", "none")] == [200, 403, 403]
    assert node.delete(f"{warehouse.tables}/a", user="bea").status == 403
    node.done(
        "PUT",
        f"{API}/lake/permissions/roles/{role}/table/hive.{schema}.a/revoke",
        {"privileges": [{"name": "select_table", "condition": "allow"}]},
    )
    assert node.get(f"{warehouse.tables}/a", user="bea").status == 403
    node.done("POST", warehouse.tables, {"name": "mine", "columns": COLUMNS}, user="bea")
    assert warehouse.seen(user="bea") == ["mine"]
    node.done("PUT", f"{warehouse.tables}/mine", updates({"@type": "rename", "newName": "ours"}), user="bea")
    assert warehouse.seen(user="bea") == ["ours"]
    assert node.put(f"{warehouse.tables}/ours", updates({"@type": "rename", "newName": "a"}), user="bea").status == 409
    assert node.done("DELETE", f"{warehouse.tables}/ours", user="bea")["dropped"] is True
    assert node.done("GET", warehouse.tables)["identifiers"][0]["name"] == "a"


def test_drop_deletes_files_of_managed_tables_only(warehouse: Warehouse) -> None:
    """Dropping a managed table deletes its directory, with and without purge. The directory of an external table stays,
    and purging the table is refused.
    """
    for name, kind, purge in (
        ("m", "MANAGED_TABLE", False),
        ("p", "MANAGED_TABLE", True),
        ("e", "EXTERNAL_TABLE", False),
    ):
        body = {"name": name, "columns": COLUMNS, "properties": {"table-type": kind}}
        table = warehouse.node.done("POST", warehouse.tables, body)["table"]
        place = Path(table["properties"]["location"].removeprefix("file:"))
        (place / "rows").write_text("1")
        assert table["properties"]["table-type"] == kind
        if kind == "EXTERNAL_TABLE":
            assert warehouse.node.delete(f"{warehouse.tables}/{name}?purge=true").status == 405
        path = f"{warehouse.tables}/{name}{'?purge=true' if purge else ''}"

        assert warehouse.node.done("DELETE", path)["dropped"] is True
        assert place.exists() is (kind == "EXTERNAL_TABLE"), name


def test_tables_of_other_formats_are_read_only(warehouse: Warehouse) -> None:
    """Iceberg tables are returned with their format and cannot be changed over this catalog. Views are not listed as
    tables, and secrets in properties are masked.
    """
    warehouse.made(
        "ice", kind="EXTERNAL_TABLE", EXTERNAL="TRUE", table_type="ICEBERG", metadata_location="s3://b/m.json"
    )
    warehouse.made("sparks", **{"spark.sql.sources.provider": "delta", "hive.sql.dbcp.password": "s3cret"})
    warehouse.made("look", kind="VIRTUAL_VIEW")

    ice = warehouse.node.done("GET", f"{warehouse.tables}/ice")["table"]["properties"]
    assert (ice["format"], ice["metadata_location"]) == ("ICEBERG", "s3://b/m.json")
    for name in ("ice", "sparks"):
        answer = warehouse.node.put(f"{warehouse.tables}/{name}", updates(change("addColumn", "x", type="long")))
        assert (answer.status, answer["code"]) == (405, 1006), answer.body
    assert "s3cret" not in str(warehouse.node.done("GET", f"{warehouse.tables}/sparks"))
    assert warehouse.seen() == ["ice", "sparks"]
    assert warehouse.node.get(f"{warehouse.tables}/look").status == 404
    assert warehouse.node.done("DELETE", f"{warehouse.tables}/look")["dropped"] is False
    assert warehouse.node.done("DELETE", f"{warehouse.tables}/ice")["dropped"] is True


def test_unreachable_metastore_returns_502_without_affecting_others(hasty: Warehouse) -> None:
    """While the metastore is disconnected or does not answer, its requests are refused with 502 and code 1007. Other
    catalogs are answered, and access is decided. Afterwards requests succeed again.
    """
    node, bridge = hasty.node, hasty.server.bridge
    grant(node, "bea", "use_catalog", kind="CATALOG", on="hive")
    wait_for(node, hasty.tables)
    one = f"{hasty.tables}/t"
    requests = (
        ("GET", hasty.tables, None),
        ("GET", one, None),
        ("POST", hasty.tables, {"name": "t", "columns": COLUMNS}),
    )

    sees_it_cut(node, bridge, requests=requests, known=HIVE, unable="bea")
    wait_for(node, hasty.tables)
    sees_it_silent(node, bridge, looks=hasty.tables, changes=("DELETE", one, None))
    wait_for(node, hasty.tables)


def test_connection_test_refuses_disallowed_address_and_kerberos(warehouse: Warehouse) -> None:
    """A connection test reaches the metastore; an address that is not allowed, or Kerberos, is refused."""
    node, new, port = warehouse.node, f"{API}/lake/catalogs/testConnection", warehouse.server.bridge.port

    assert node.done("POST", new, _catalog(port, "other"))["code"] == 0
    assert node.done("POST", f"{HIVE}/testConnection")["code"] == 0
    elsewhere = node.post(f"{API}/lake/catalogs", _catalog(warehouse.server.port, "other"))
    assert (elsewhere.status, elsewhere["code"]) == (400, 1001)
    assert f"--allow-source 127.0.0.1:{warehouse.server.port}" in str(elsewhere["message"])
    kerberos = _catalog(port, "other", **{"kerberos.principal": "p"})
    assert node.post(f"{API}/lake/catalogs", kerberos).status == 400
    for wrong in ("", "127.0.0.1:9083", "thrift://u@127.0.0.1:9083", "thrift://127.0.0.1:9083/x", "http://127.0.0.1"):
        body = _catalog(port, "other", **{"metastore.uris": wrong})
        assert node.post(f"{API}/lake/catalogs", body).status == 400, wrong
