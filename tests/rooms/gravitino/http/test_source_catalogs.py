# SPDX-License-Identifier: Apache-2.0
"""Connector catalogs of PostgreSQL: schemas and tables over Gravitino REST, with the rights of the tree, also while the
source fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from limnos.config.storage import SourcesSection
from tests.backends import PostgresServer
from tests.bridges import Bridge, bridge_to
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.http.iceberg.wire import rows_of
from tests.rooms.gravitino.http.source_catalogs import (
    change,
    listed,
    removed,
    sees_it_cut,
    sees_it_silent,
    set_to,
    updates,
)

pytestmark = [pytest.mark.integration, pytest.mark.room("connectors")]

SHOP = f"{API}/lake/catalogs/shop"
ORDERS = f"{SHOP}/schemas/sales/tables"
COLUMNS = [{"name": "id", "type": "long", "nullable": False}, {"name": "who", "type": "varchar(20)", "comment": "whom"}]


class Shop(NamedTuple):
    """A node with a catalog `shop` of a database, and a connection to that database."""

    node: DriverNode
    bridge: Bridge
    database: str
    properties: dict[str, str]

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        """Execute statements in the source. Returns the rows of the last one."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            cursors = [connection.execute(each.encode()) for each in statements]
            return cursors[-1].fetchall() if cursors[-1].description else []

    def names(self, path: str, *, user: str = "admin") -> list[str]:
        """Return the names of a list."""
        return listed(self.node, path, user=user)


@pytest.fixture
def shop(postgres_server: PostgresServer, fresh: Callable[[str], Path]) -> Iterator[Shop]:
    """A node, and a separate database with schema `sales`."""
    database = postgres_server.empty_database()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA sales")
        name, user = connection.info.dbname, connection.info.user
    with bridge_to(database) as bridge:
        sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{bridge.port}",), timeout_s=4.0)
        properties = {
            "jdbc-url": f"jdbc:postgresql://127.0.0.1:{bridge.port}/",
            "jdbc-database": name,
            "jdbc-user": user,
            "jdbc-password": "s3cret-Word",
            "jdbc-driver": "org.postgresql.Driver",
        }
        with node_at(fresh("shop"), sources=sources) as node:
            node.done("POST", f"{API}/lake/catalogs", _catalog(properties))
            yield Shop(node, bridge, database, properties)


def _catalog(properties: dict[str, str], name: str = "shop") -> dict[str, object]:
    return {"name": name, "type": "relational", "provider": "jdbc-postgresql", "properties": properties}


def test_created_table_exists_in_the_database(shop: Shop) -> None:
    """A table created over Gravitino REST exists in the database with types, keys and comments, and is loaded
    unchanged.
    """
    body = {
        "name": "orders",
        "comment": "100% of 'them'",
        "columns": [
            *COLUMNS,
            {
                "name": "at",
                "type": "timestamp_tz",
                "defaultValue": {"type": "function", "funcName": "current_timestamp", "funcArgs": []},
            },
        ],
        "indexes": [{"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"]]}],
    }

    table = shop.node.done("POST", ORDERS, body)["table"]

    assert table == shop.node.done("GET", f"{ORDERS}/orders")["table"]
    assert table["comment"] == "100% of 'them'"
    assert [(each["name"], each["type"], each["nullable"]) for each in table["columns"]] == [
        ("id", "long", False),
        ("who", "varchar(20)", True),
        ("at", "timestamp_tz", True),
    ]
    assert table["columns"][2]["defaultValue"]["funcName"] == "current_timestamp"
    assert table["indexes"] == [{"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"]]}]
    assert table["audit"]["creator"] == "admin"
    shop.sql("INSERT INTO sales.orders (id, who) VALUES (1, 'bea')")
    assert shop.names(ORDERS) == ["orders"]
    again = shop.node.post(ORDERS, body)
    assert (again.status, again["type"]) == (409, "TableAlreadyExistsException")


def test_schemas_can_be_created_and_dropped(shop: Shop) -> None:
    """Schemas can be created with a comment, and dropped while empty. System schemas are not listed."""
    schema = shop.node.done("POST", f"{SHOP}/schemas", {"name": "Odd-one", "comment": "5% \"x\" 'y'"})["schema"]

    assert (schema["comment"], schema["name"]) == ("5% \"x\" 'y'", "Odd-one")
    assert shop.names(f"{SHOP}/schemas") == ["Odd-one", "public", "sales"]
    shop.node.done("POST", ORDERS, {"name": "t", "columns": COLUMNS})
    full = shop.node.delete(f"{SHOP}/schemas/sales")
    assert (full.status, full["type"]) == (409, "NonEmptySchemaException")
    assert shop.node.done("DELETE", f"{SHOP}/schemas/Odd-one")["dropped"] is True
    assert shop.node.done("DELETE", f"{SHOP}/schemas/Odd-one")["dropped"] is False
    for name, status in (("pg_catalog", 404), ("information_schema", 404), ("none", 404)):
        assert shop.node.get(f"{SHOP}/schemas/{name}").status == status
        assert shop.node.get(f"{SHOP}/schemas/{name}/tables").status == status
    assert shop.node.post(f"{SHOP}/schemas", {"name": "pg_mine"}).status == 400
    assert shop.node.put(f"{SHOP}/schemas/sales", {"updates": []}).status == 405


def test_supported_table_changes_are_applied_together(shop: Shop) -> None:
    """Columns, keys and comments can be added, changed and removed. All changes of a request are carried out
    together.
    """
    shop.node.done("POST", ORDERS, {"name": "t", "columns": COLUMNS})
    after = shop.node.done(
        "PUT",
        f"{ORDERS}/t",
        updates(
            change(
                "addColumn",
                "n",
                type="integer",
                comment="number",
                defaultValue={"type": "literal", "dataType": "integer", "value": "7"},
            ),
            change("addColumn", "u", type="uuid", nullable=True, position="default"),
            {"@type": "renameColumn", "oldFieldName": ["who"], "newFieldName": "whom"},
            change("updateColumnType", "whom", newType="string"),
            change("updateColumnComment", "whom", newComment="it's them"),
            change("updateColumnNullability", "whom", nullable=False),
            change(
                "updateColumnDefaultValue",
                "n",
                newDefaultValue={"type": "literal", "dataType": "integer", "value": "8"},
            ),
            change("updateColumnAutoIncrement", "id", autoIncrement=True),
            change("deleteColumn", "u", ifExists=False),
            change("deleteColumn", "none", ifExists=True),
            change("addTableIndex", index={"indexType": "UNIQUE_KEY", "name": "one", "fieldNames": [["whom"]]}),
            change("updateComment", newComment="new"),
        ),
    )["table"]

    columns = {each["name"]: each for each in after["columns"]}
    assert list(columns) == ["id", "whom", "n"]
    assert columns["id"]["autoIncrement"] is True
    assert (columns["whom"]["type"], columns["whom"]["comment"], columns["whom"]["nullable"]) == (
        "string",
        "it's them",
        False,
    )
    assert columns["n"]["defaultValue"] == {"type": "literal", "dataType": "integer", "value": "8"}
    assert (after["comment"], [each["name"] for each in after["indexes"]]) == ("new", ["one"])
    again = updates(
        change("deleteTableIndex", name="one", ifExists=False),
        change("deleteTableIndex", name="one", ifExists=True),
        change("updateColumnAutoIncrement", "id", autoIncrement=False),
        change("updateColumnDefaultValue", "n", newDefaultValue=None),
        change("updateComment", newComment=None),
    )
    last = shop.node.done("PUT", f"{ORDERS}/t", again)["table"]
    assert (last["indexes"], last.get("comment")) == ([], None)
    assert [(each["autoIncrement"], "defaultValue" in each) for each in last["columns"]] == [(False, False)] * 3


WRONG: tuple[tuple[int, dict[str, object]], ...] = (
    (405, set_to("a", "b")),
    (405, removed("a")),
    (405, change("updateColumnPosition", "id", newPosition="first")),
    (405, change("addColumn", "x", type="long", position={"after": "id"})),
    (400, change("addColumn", "x", type="struct<a>")),
    (400, change("addColumn", "x", type={"type": "external", "catalogString": "int); DROP TABLE sales.t; --"})),
    (400, change("addColumn", "a", "b", type="long")),
    (400, change("addColumn", "id", type="long")),
    (400, change("addColumn", "x" * 64, type="long")),
    (400, change("addColumn", "x", type="string", autoIncrement=True)),
    (
        400,
        change("addColumn", "x", type="integer", defaultValue={"type": "literal", "dataType": "string", "value": "y"}),
    ),
    (
        405,
        change(
            "addColumn", "x", type="integer", defaultValue={"type": "unparsed", "unparsedExpression": "pg_sleep(9)"}
        ),
    ),
    (400, change("deleteColumn", "none")),
    (400, change("updateColumnType", "who", newType="date")),
    (400, {"@type": "renameColumn", "oldFieldName": ["none"], "newFieldName": "z"}),
    (400, change("deleteTableIndex", name="none")),
    (405, change("addTableIndex", index={"indexType": "BTREE", "fieldNames": [["id"]]})),
    (400, change("addTableIndex", index={"indexType": "PRIMARY_KEY", "fieldNames": ["id"]})),
)


def test_invalid_change_is_refused_and_rolled_back(shop: Shop) -> None:
    """Each invalid change is refused with a message, and earlier changes of the request are rolled back."""
    shop.node.done("POST", ORDERS, {"name": "t", "columns": COLUMNS})
    before = shop.node.done("GET", f"{ORDERS}/t")["table"]
    for status, wrong in WRONG:
        first = change("addColumn", "first", type="long")
        answer = shop.node.put(f"{ORDERS}/t", updates(first, wrong))

        assert (answer.status, answer["code"]) == (status, 1001 if status == 400 else 1006), (wrong, answer.body)
    assert shop.node.done("GET", f"{ORDERS}/t")["table"] == before


TYPES = (
    "boolean",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "decimal(12,3)",
    "string",
    "char(3)",
    "varchar(9)",
    "date",
    "time",
    "time(3)",
    "timestamp",
    "timestamp(3)",
    "timestamp_tz",
    "timestamp_tz(0)",
    "binary",
    "uuid",
    {"type": "list", "elementType": "long", "containsNull": True},
    {"type": "external", "catalogString": "jsonb"},
    {"type": "external", "catalogString": "inet"},
    {"type": "external", "catalogString": "interval"},
    {"type": "external", "catalogString": "numeric"},
)


def test_types_are_returned_unchanged(shop: Shop) -> None:
    """Each documented type is returned unchanged. Types of the source that Gravitino lacks are returned as external."""
    columns = [{"name": f"c{at}", "type": each} for at, each in enumerate(TYPES)]
    columns[7]["defaultValue"] = {"type": "literal", "dataType": "string", "value": ""}

    table = shop.node.done("POST", ORDERS, {"name": "t", "columns": columns})["table"]

    assert tuple(each["type"] for each in table["columns"]) == TYPES
    assert table["columns"][7]["defaultValue"]["value"] == ""
    shop.sql("CREATE TYPE sales.mood AS ENUM ('a')", "CREATE DOMAIN sales.posint AS integer CHECK (VALUE > 0)")
    shop.sql(
        "CREATE TABLE sales.own (m sales.mood, d sales.posint, p point, s serial, g int GENERATED ALWAYS AS (1 + 1)"
        " STORED, x text DEFAULT lower('A'), b bit(3), t text DEFAULT 'it''s', n int DEFAULT -5, huge numeric(50,2), w"
        " time with time zone, tiny \"char\", label name, e text DEFAULT '')"
    )
    columns_by_name = {each["name"]: each for each in shop.node.done("GET", f"{ORDERS}/own")["table"]["columns"]}
    assert columns_by_name["s"]["autoIncrement"] is True
    assert "defaultValue" not in columns_by_name["s"]
    assert "defaultValue" not in columns_by_name["g"]
    assert columns_by_name["x"]["defaultValue"]["type"] == "unparsed"
    assert (columns_by_name["t"]["defaultValue"]["value"], columns_by_name["n"]["defaultValue"]["value"]) == (
        "it's",
        "-5",
    )
    assert [columns_by_name[name]["type"]["catalogString"] for name in ("tiny", "label")] == ['"char"', "name"]
    assert columns_by_name["e"]["defaultValue"]["value"] == ""
    assert {name: columns_by_name[name]["type"]["type"] for name in ("m", "d", "p", "b", "huge", "w")} == dict.fromkeys(
        ("m", "d", "p", "b", "huge", "w"), "external"
    )


def test_tables_can_be_renamed_and_dropped_but_not_purged(shop: Shop) -> None:
    """A renamed table keeps owner and grants, and a dropped one is 404. Purges and moves to another schema are
    refused.
    """
    shop.node.done("POST", ORDERS, {"name": "t", "columns": COLUMNS})
    grant(shop.node, "bea", "use_catalog use_schema", kind="CATALOG", on="shop")
    grant(shop.node, "bea", "select_table", kind="TABLE", on="shop.sales.t")

    shop.node.done("PUT", f"{ORDERS}/t", updates({"@type": "rename", "newName": "u"}))

    assert shop.names(ORDERS, user="bea") == ["u"]
    assert shop.node.get(f"{ORDERS}/t").status == 404
    elsewhere = shop.node.put(f"{ORDERS}/u", updates({"@type": "rename", "newName": "v", "newSchemaName": "public"}))
    assert elsewhere.status == 405
    shop.sql("CREATE TABLE sales.taken (id int)", "CREATE VIEW sales.rests AS SELECT * FROM sales.u")
    assert shop.node.put(f"{ORDERS}/u", updates({"@type": "rename", "newName": "taken"})).status == 409
    assert shop.node.delete(f"{ORDERS}/u").status == 400
    shop.sql("DROP VIEW sales.rests")
    assert shop.node.delete(f"{ORDERS}/u?purge=true").status == 405
    assert shop.node.done("DELETE", f"{ORDERS}/u")["dropped"] is True
    assert shop.node.done("DELETE", f"{ORDERS}/u")["dropped"] is False
    shop.node.done("POST", ORDERS, {"name": "u", "columns": COLUMNS})
    assert shop.names(ORDERS, user="bea") == []
    assert shop.node.get(f"{ORDERS}/u", user="bea").status == 403


def test_grants_and_denials_apply_to_the_next_request(shop: Shop) -> None:
    """A grant on a table of the source, and its revoke, take effect immediately. A denial hides one of many tables."""
    shop.sql("CREATE TABLE sales.a (id int)", "CREATE TABLE sales.b (id int)", "CREATE SCHEMA other")
    node = shop.node
    grant(node, "bea", "use_catalog", kind="CATALOG", on="shop")
    assert shop.names(f"{SHOP}/schemas", user="bea") == []
    grant(node, "bea", "use_schema", kind="SCHEMA", on="shop.sales")
    assert shop.names(f"{SHOP}/schemas", user="bea") == ["sales"]
    assert shop.names(ORDERS, user="bea") == []
    role = grant(node, "bea", "select_table", kind="TABLE", on="shop.sales.a")

    assert shop.names(ORDERS, user="bea") == ["a"]
    assert [node.get(f"{ORDERS}/{name}", user="bea").status for name in ("a", "b", "none")] == [200, 403, 403]
    assert node.get(f"{SHOP}/schemas/other", user="bea").status == 403
    assert node.delete(f"{ORDERS}/a", user="bea").status == 403
    node.done(
        "PUT",
        f"{API}/lake/permissions/roles/{role}/table/shop.sales.a/revoke",
        {"privileges": [{"name": "select_table", "condition": "allow"}]},
    )
    assert shop.names(ORDERS, user="bea") == []
    assert node.get(f"{ORDERS}/a", user="bea").status == 403
    grant(node, "bea", "select_table", kind="CATALOG", on="shop")
    grant(node, "bea", "select_table", kind="TABLE", on="shop.sales.b", condition="deny")
    assert shop.names(ORDERS, user="bea") == ["a"]
    assert node.get(f"{ORDERS}/none", user="bea").status == 404
    shop.sql("DROP TABLE sales.a")
    assert node.get(f"{ORDERS}/a", user="bea").status == 404
    assert shop.names(ORDERS) == ["b"]


def test_existing_tables_can_get_owners_tags_and_roles(shop: Shop) -> None:
    """The creator of a table owns it; existing tables can get an owner and tags; missing objects get no node."""
    node, lake = shop.node, f"{API}/lake"
    shop.sql("CREATE TABLE sales.a (id int)")
    grant(node, "bea", "use_catalog use_schema create_table", kind="CATALOG", on="shop")
    node.done("POST", ORDERS, {"name": "mine", "columns": COLUMNS}, user="bea")
    assert node.done("GET", f"{lake}/owners/table/shop.sales.mine")["owner"]["name"] == "bea"
    assert shop.names(ORDERS, user="bea") == ["mine"]
    assert node.done("GET", f"{lake}/owners/table/shop.sales.a").get("owner") is None
    node.done("PUT", f"{lake}/owners/table/shop.sales.a", {"name": "bea", "type": "USER"})
    node.done("POST", f"{lake}/tags", {"name": "red"})
    node.done("POST", f"{lake}/objects/table/shop.sales.a/tags", {"tagsToAdd": ["red"]})

    assert shop.names(ORDERS, user="bea") == ["a", "mine"]
    assert node.done("GET", f"{lake}/objects/table/shop.sales.a/tags")["names"] == ["red"]
    assert node.done("GET", f"{lake}/tags/red/objects")["metadataObjects"] == [
        {"fullName": "shop.sales.a", "type": "table"}
    ]
    assert node.get(f"{lake}/owners/table/shop.sales.none").status == 404
    assert node.get(f"{lake}/owners/table/shop.sales.none", user="bea").status == 403
    body = {"privileges": [{"name": "select_table", "condition": "allow"}]}
    assert node.put(f"{lake}/permissions/roles/r/table/shop.none.a/grant", body).status == 404
    assert node.done("DELETE", f"{ORDERS}/mine", user="bea")["dropped"] is True


def test_reads_of_attachments_create_no_placeholder_node(shop: Shop) -> None:
    """Reads of owner, tags, policies, statistics, roles, credentials and protection create no placeholder node."""
    node, lake = shop.node, f"{API}/lake"
    shop.sql("CREATE TABLE sales.a (id int)")
    node.done("POST", f"{lake}/tags", {"name": "red"})
    node.done("POST", f"{lake}/objects/catalog/shop/tags", {"tagsToAdd": ["red"]})
    before = rows_of(node)
    attachments = {}
    for way in ("tags", "policies", "statistics", "statistics/partitions?from=a", "roles", "credentials"):
        answer = node.done("GET", f"{lake}/objects/table/shop.sales.a/{way}")
        attachments[way] = next(value for key, value in answer.items() if key != "code")
    owner = node.done("GET", f"{lake}/owners/table/shop.sales.a")
    protection = node.get(f"{OWN}/metalakes/lake/objects/table/shop.sales.a/protection")
    inherited = node.done("GET", f"{lake}/objects/table/shop.sales.a/tags/red")["tag"]["inherited"]
    refused = [node.get(f"{lake}/objects/table/shop.sales.{name}/tags", user="bea").status for name in ("a", "none")]

    assert attachments == {
        "tags": ["red"],
        "policies": [],
        "statistics": [],
        "statistics/partitions?from=a": [],
        "roles": [],
        "credentials": [],
    }
    assert (owner.get("owner"), inherited, protection.status) == (None, True, 200)
    assert refused == [403, 403]
    assert node.get(f"{lake}/objects/table/shop.sales.none/tags").status == 404
    assert rows_of(node) == before


def test_list_of_two_thousand_tables_is_fast(shop: Shop) -> None:
    """A user of all tables gets all of two thousand in a list, and a user of a few gets those."""
    shop.sql("DO $$ BEGIN FOR i IN 1..2000 LOOP EXECUTE format('CREATE TABLE sales.t%s (id int)', i); END LOOP; END $$")
    grant(shop.node, "bea", "use_catalog use_schema", kind="CATALOG", on="shop")
    for at in (7, 1999):
        grant(shop.node, "bea", "select_table", kind="TABLE", on=f"shop.sales.t{at}")

    began = time.process_time()
    names = shop.names(ORDERS)

    assert len(names) == 2000
    assert time.process_time() - began < 2.0
    assert shop.names(ORDERS, user="bea") == ["t1999", "t7"]


def test_unreachable_source_returns_502_without_affecting_others(shop: Shop) -> None:
    """While the source is disconnected or does not answer, its requests are refused with 502 and code 1007. Other
    catalogs are answered, and access is decided. Afterwards requests succeed again.
    """
    node = shop.node
    node.done("POST", ORDERS, {"name": "t", "columns": COLUMNS})
    grant(node, "bea", "use_catalog", kind="CATALOG", on="shop")
    requests = (
        ("GET", ORDERS, None),
        ("GET", f"{ORDERS}/t", None),
        ("POST", ORDERS, {"name": "v", "columns": COLUMNS}),
    )

    sees_it_cut(node, shop.bridge, requests=requests, known=SHOP, unable="bea")
    assert shop.names(ORDERS) == ["t"]
    added = updates(change("addColumn", "x", type="long"))
    sees_it_silent(node, shop.bridge, looks=ORDERS, changes=("PUT", f"{ORDERS}/t", added))
    assert shop.names(ORDERS) == ["t"]


def test_connection_test_reports_errors_without_the_password(shop: Shop) -> None:
    """A connection test connects to the database and reports its errors. No answer contains the password."""
    node, new = shop.node, f"{API}/lake/catalogs/testConnection"

    assert node.done("POST", f"{SHOP}/testConnection")["code"] == 0
    assert node.done("POST", new, _catalog(shop.properties, "other"))["code"] == 0
    wrong = {**shop.properties, "jdbc-database": "none"}
    answer = node.done("POST", new, _catalog(wrong, "other"))
    assert (answer["code"], answer["type"]) == (1007, "ConnectionFailedException")
    assert "s3cret" not in str(node.done("GET", SHOP))
    assert node.done("GET", SHOP)["catalog"]["properties"]["jdbc-password"] == "******"
    edited = node.done("POST", f"{SHOP}/testConnection", updates(set_to("jdbc-database", "no")))
    assert edited["code"] == 1007


def test_properties_that_redirect_to_another_host_are_refused(shop: Shop) -> None:
    """A catalog whose properties would lead to another host can be neither created nor altered."""
    elsewhere = {"jdbc-url": "jdbc:postgresql://10.0.0.1:5432/"}
    created = shop.node.post(f"{API}/lake/catalogs", _catalog({**shop.properties, **elsewhere}, "other"))
    altered = shop.node.put(SHOP, updates(set_to("jdbc-url", elsewhere["jdbc-url"])))

    for answer in (created, altered):
        assert (answer.status, answer["code"]) == (400, 1001), answer.body
        assert "--allow-source 10.0.0.1:5432" in str(answer["message"])
    assert shop.names(ORDERS) == []


def test_iceberg_rest_refuses_source_catalog_operations(shop: Shop) -> None:
    """Over Iceberg REST lists are empty; views, models, moves and protection are refused by name, and nothing is
    created.
    """
    node = shop.node
    node.done("POST", ORDERS, {"name": "t", "columns": COLUMNS})
    prefix = "/iceberg/v1/lake.shop"

    assert node.get(f"{prefix}/namespaces").json()["namespaces"] == []
    assert node.get(f"{prefix}/namespaces/sales").status == 406
    assert node.post(f"{prefix}/namespaces", {"namespace": ["x"], "properties": {}}).status == 406
    assert node.delete(f"{prefix}/namespaces/sales").status == 406
    assert node.get(f"{prefix}/namespaces/sales/tables/t").status == 404
    assert node.get(f"{prefix}/namespaces/sales/tables").json()["identifiers"] == []
    for path in ("views", "filesets", "topics", "models"):
        answer = node.get(f"{SHOP}/schemas/sales/{path}")
        assert (answer.status, answer["code"]) == (405, 1006), path
    assert node.get(f"{ORDERS}/t/partitions").status == 405
    assert (
        node.post(
            "/api/limnos/v1/metalakes/lake/catalogs/shop/move",
            {"kind": "table", "source": ["sales", "t"], "target": ["sales", "u"]},
        ).status
        == 405
    )
    assert shop.names(ORDERS) == ["t"]


def test_catalog_with_placeholder_nodes_can_be_dropped(shop: Shop) -> None:
    """A catalog with placeholder nodes can be dropped, and the source keeps its objects."""
    shop.node.done("POST", ORDERS, {"name": "t", "columns": COLUMNS})
    shop.node.patch(SHOP, {"inUse": False})
    assert shop.node.get(ORDERS).status == 409

    assert shop.node.done("DELETE", SHOP)["dropped"] is True
    assert shop.sql("SELECT count(*) FROM sales.t") == [(0,)]
    shop.node.done("POST", f"{API}/lake/catalogs", _catalog(shop.properties))
    assert shop.names(ORDERS) == ["t"]


def test_table_of_a_protected_catalog_cannot_be_dropped(shop: Shop) -> None:
    """While a catalog is protected with its content, the server refuses to drop a table of the source."""
    shop.sql("CREATE TABLE sales.a (id int)")
    protection = "/api/limnos/v1/metalakes/lake/objects/{}/protection"
    assert shop.node.put(protection.format("table/shop.sales.a"), {}).status == 405
    shop.node.done("PUT", protection.format("catalog/shop"), {"below": True})

    answer = shop.node.delete(f"{ORDERS}/a")

    assert (answer.status, answer["code"]) == (409, 1010)
    assert shop.names(ORDERS) == ["a"]
