"""Catalogs that show a PostgreSQL: schemas and tables over Gravitino REST, by rights of the tree, whatever the source does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from limnos.config.settings import Sources
from tests.backends import PostgresServer
from tests.bridges import Bridge, bridge_to
from tests.http.driver import API, Node, grant, node_at

pytestmark = pytest.mark.integration

SHOP = f"{API}/lake/catalogs/shop"
ORDERS = f"{SHOP}/schemas/sales/tables"
COLUMNS = [{"name": "id", "type": "long", "nullable": False}, {"name": "who", "type": "varchar(20)", "comment": "whom"}]


class Shop(NamedTuple):
    """A node with catalog `shop`, which shows a database, and the way to that."""

    node: Node
    bridge: Bridge
    database: str
    properties: dict[str, str]

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements in the source itself; returns the rows of the last."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            found = [connection.execute(each.encode()) for each in statements]
            return found[-1].fetchall() if found[-1].description else []

    def names(self, path: str, *, user: str = "admin") -> list[str]:
        """The names of a list."""
        answer = self.node.get(path, user=user)
        assert answer.status == 200, answer.body
        return [each["name"] for each in answer.json()["identifiers"]]


@pytest.fixture
def shop(postgres_server: PostgresServer, fresh: Callable[[str], Path]) -> Iterator[Shop]:
    """A node, and a database of its own with schema `sales`."""
    database = postgres_server.empty_database()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA sales")
        name, user = connection.info.dbname, connection.info.user
    with bridge_to(database) as bridge:
        sources = Sources(allowed_addresses=(f"127.0.0.1:{bridge.port}",), timeout_s=4.0)
        properties = {
            "jdbc-url": f"jdbc:postgresql://127.0.0.1:{bridge.port}/", "jdbc-database": name, "jdbc-user": user, "jdbc-password": "s3cret-Word",
            "jdbc-driver": "org.postgresql.Driver",
        }  # fmt: skip
        with node_at(fresh("shop"), sources=sources) as node:
            node.done("POST", f"{API}/lake/catalogs", _catalog(properties))
            yield Shop(node, bridge, database, properties)


def _catalog(properties: dict[str, str], name: str = "shop") -> dict[str, object]:
    return {"name": name, "type": "relational", "provider": "jdbc-postgresql", "properties": properties}


def test_table_is_made_loaded_and_known_to_the_source(shop: Shop) -> None:
    """What is made over Gravitino REST stands in the database with types, keys and comments, and is told the same."""
    body = {
        "name": "orders", "comment": "100% of 'them'", "columns": [*COLUMNS, {"name": "at", "type": "timestamp_tz", "defaultValue": {
            "type": "function", "funcName": "current_timestamp", "funcArgs": []}}],
        "indexes": [{"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"]]}],
    }  # fmt: skip

    made = shop.node.done("POST", ORDERS, body)["table"]

    assert made == shop.node.done("GET", f"{ORDERS}/orders")["table"]
    assert made["comment"] == "100% of 'them'"
    assert [(each["name"], each["type"], each["nullable"]) for each in made["columns"]] == [
        ("id", "long", False), ("who", "varchar(20)", True), ("at", "timestamp_tz", True),
    ]  # fmt: skip
    assert made["columns"][2]["defaultValue"]["funcName"] == "current_timestamp"
    assert made["indexes"] == [{"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"]]}]
    assert made["audit"]["creator"] == "admin"
    shop.sql("INSERT INTO sales.orders (id, who) VALUES (1, 'bea')")
    assert shop.names(ORDERS) == ["orders"]
    again = shop.node.post(ORDERS, body)
    assert (again.status, again["type"]) == (409, "TableAlreadyExistsException")


def test_schemas_come_and_go(shop: Shop) -> None:
    """Schemas are listed without the system's, made with a comment, and dropped when they are empty."""
    made = shop.node.done("POST", f"{SHOP}/schemas", {"name": "Odd-one", "comment": "5% \"x\" 'y'"})["schema"]

    assert (made["comment"], made["name"]) == ("5% \"x\" 'y'", "Odd-one")
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
