# SPDX-License-Identifier: Apache-2.0
"""Connector catalogs of MySQL, here MariaDB: databases and tables over Gravitino REST, with the rights of the tree,
also while the server fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from limnos.config.storage import SourcesSection
from tests.http.driver import API, DriverNode, grant, node_at
from tests.mariadbs import PASSWORD, USER, MariaServer, maria_server
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

STORE = f"{API}/lake/catalogs/store"
COLUMNS = [{"name": "id", "type": "long", "nullable": False}, {"name": "who", "type": "varchar(20)", "comment": "whom"}]
BY_ID = {"indexType": "PRIMARY_KEY", "name": "PRIMARY", "fieldNames": [["id"]]}
_NUMBERS = count(1)


class Store(NamedTuple):
    """A node with a catalog `store` of a server, the server, and a separate schema."""

    node: DriverNode
    server: MariaServer
    schema: str

    @property
    def tables(self) -> str:
        """Return the URL of a schema's tables."""
        return f"{STORE}/schemas/{self.schema}/tables"

    def sql(self, *statements: str) -> tuple[tuple[object, ...], ...]:
        """Execute statements directly in the schema."""
        return self.server.sql(f"USE `{self.schema}`", *statements)


@pytest.fixture
def store(maria_server: MariaServer, fresh: Callable[[str], Path]) -> Iterator[Store]:
    """A node, and the server behind the bridge."""
    with _store(maria_server, fresh("store"), timeout_s=25.0) as running_store:
        yield running_store


@pytest.fixture
def hasty(maria_server: MariaServer, fresh: Callable[[str], Path]) -> Iterator[Store]:
    """A node whose requests to the source have a short timeout."""
    with _store(maria_server, fresh("hasty"), timeout_s=2.0) as running_store:
        yield running_store


@contextmanager
def _store(server: MariaServer, folder: Path, *, timeout_s: float) -> Iterator[Store]:
    sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{server.bridge.port}",), timeout_s=timeout_s)
    with node_at(folder, sources=sources) as node:
        node.done("POST", f"{API}/lake/catalogs", _catalog(server.bridge.port))
        running_store = Store(node, server, f"s{next(_NUMBERS)}")
        server.sql(f"CREATE DATABASE {running_store.schema} CHARACTER SET utf8mb4")
        yield running_store


def _catalog(port: int, name: str = "store", **more: str) -> dict[str, object]:
    properties = {
        "jdbc-url": f"jdbc:mysql://127.0.0.1:{port}",
        "jdbc-user": USER,
        "jdbc-password": PASSWORD,
        "jdbc-driver": "com.mysql.cj.jdbc.Driver",
    } | more
    return {"name": name, "type": "relational", "provider": "jdbc-mysql", "properties": properties}


NASTY = "100% of 'them' \\ \"x\" `y` é\nz"


def test_created_table_exists_in_the_server(store: Store) -> None:
    """A table created over Gravitino REST exists in the server with types, keys, defaults and comments, and is loaded
    unchanged.
    """
    now = {"type": "function", "funcName": "current_timestamp", "funcArgs": []}
    literal = {"type": "literal", "dataType": "varchar(20)", "value": "it's \\ 5%"}
    body = {
        "name": "orders",
        "comment": NASTY,
        "indexes": [BY_ID, {"indexType": "UNIQUE_KEY", "name": "one", "fieldNames": [["who"], ["at"]]}],
        "columns": [
            {**COLUMNS[0], "autoIncrement": True},
            {**COLUMNS[1], "comment": NASTY, "defaultValue": literal},
            {"name": "at", "type": "timestamp(3)", "defaultValue": now},
            {
                "name": "o`dd 5%",
                "type": "boolean",
                "defaultValue": {"type": "literal", "dataType": "boolean", "value": "true"},
            },
        ],
    }

    table = store.node.done("POST", store.tables, body)["table"]

    assert table == store.node.done("GET", f"{store.tables}/orders")["table"]
    assert (table["comment"], table["properties"], table["audit"]["creator"]) == (NASTY, {"engine": "InnoDB"}, "admin")
    columns = {each["name"]: each for each in table["columns"]}
    assert [(name, each["type"], each["nullable"], each["autoIncrement"]) for name, each in columns.items()] == [
        ("id", "long", False, True),
        ("who", "varchar(20)", True, False),
        ("at", "timestamp(3)", True, False),
        ("o`dd 5%", "boolean", True, False),
    ]
    assert (columns["who"]["comment"], columns["who"]["defaultValue"]) == (NASTY, literal)
    assert (columns["at"]["defaultValue"], columns["o`dd 5%"]["defaultValue"]["value"]) == (now, "true")
    assert table["indexes"] == body["indexes"]
    store.sql("INSERT INTO orders () VALUES ()")
    assert store.sql("SELECT id, who, `o``dd 5%` FROM orders") == ((1, "it's \\ 5%", 1),)
    assert listed(store.node, store.tables) == ["orders"]
    again = store.node.post(store.tables, body)
    assert (again.status, again["type"]) == (409, "TableAlreadyExistsException")


PLAIN = (
    "boolean",
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "byte unsigned",
    "short unsigned",
    "integer unsigned",
    "long unsigned",
    "decimal(38,10)",
    "string",
    "char(3)",
    "varchar(300)",
    "fixed(16)",
    "binary",
    "date",
    "time",
    "time(6)",
    "timestamp",
    "timestamp(6)",
    "timestamp_tz(2)",
)
EXTERNAL = ("year", "mediumint", "tinytext", "varbinary(9)", "bit(5)", "uuid", "inet6", "point")


def test_every_type_is_returned_under_its_name(store: Store) -> None:
    """Every type is returned under Gravitino's name, or as external under the server's name if Gravitino lacks it."""
    kinds = [*PLAIN, *({"type": "external", "catalogString": each} for each in EXTERNAL)]
    columns = [{"name": f"c{at}", "type": kind} for at, kind in enumerate(kinds)]

    table = store.node.done("POST", store.tables, {"name": "t", "columns": columns})["table"]

    assert [each["type"] for each in table["columns"]] == kinds


def test_existing_tables_with_special_features_are_shown(store: Store) -> None:
    """Existing tables with special types, prefix keys, expressions, views and sequences are shown correctly."""
    store.sql(
        "CREATE TABLE t (a ENUM('x','y'), b JSON, c INT(5) ZEROFILL, d TEXT, e VARCHAR(200), f INT AS (c + 1), g"
        " TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, h INT DEFAULT (1 + 1), UNIQUE KEY"
        " part (e(10)), UNIQUE KEY whole (c)) ENGINE=Aria COMMENT='theirs'",
        "CREATE VIEW v AS SELECT 1 AS a",
        "CREATE SEQUENCE s",
    )

    table = store.node.done("GET", f"{store.tables}/t")["table"]

    assert listed(store.node, store.tables) == ["t"]
    assert (table["comment"], table["properties"]) == ("theirs", {"engine": "Aria"})
    kinds = {each["name"]: each["type"] for each in table["columns"]}
    assert kinds["a"] == {"type": "external", "catalogString": "enum('x','y')"}
    assert (kinds["b"], kinds["d"], kinds["g"]) == ("string", "string", "timestamp_tz")
    assert [each["name"] for each in table["indexes"]] == ["whole"]
    defaults = {each["name"]: each.get("defaultValue") for each in table["columns"]}
    assert (defaults["f"], defaults["h"]["type"], defaults["g"]["funcName"]) == (None, "unparsed", "current_timestamp")
    for name in ("v", "s"):
        assert store.node.get(f"{store.tables}/{name}").status == 404
        assert store.node.done("DELETE", f"{store.tables}/{name}")["dropped"] is False


def test_schemas_can_be_created_and_dropped(store: Store) -> None:
    """Databases can be created, and dropped while empty. System databases are not listed."""
    node, name = store.node, f"{store.schema}.Odd-one"
    one = f"{STORE}/schemas/{name}"
    assert node.done("POST", f"{STORE}/schemas", {"name": name})["schema"]["name"] == name

    names = listed(node, f"{STORE}/schemas")
    assert {name, store.schema} <= set(names)
    assert not {"mysql", "information_schema", "performance_schema", "sys"} & set(names)
    for hidden in ("mysql", "INFORMATION_SCHEMA", "none", store.schema.upper()):
        assert node.get(f"{STORE}/schemas/{hidden}").status == 404
        assert node.get(f"{STORE}/schemas/{hidden}/tables").status == 404
    assert node.post(f"{STORE}/schemas", {"name": "MySQL"}).status == 400
    assert node.post(f"{STORE}/schemas", {"name": "x", "comment": "c"}).status == 405
    for inside, drop_statement in (
        ("CREATE TABLE t (a INT)", "DROP TABLE t"),
        ("CREATE VIEW v AS SELECT 1 AS a", "DROP VIEW v"),
        ("CREATE PROCEDURE p() SELECT 1", "DROP PROCEDURE p"),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 YEAR DO SELECT 1", "DROP EVENT e"),
    ):
        store.sql(inside)
        full = node.delete(f"{STORE}/schemas/{store.schema}")
        assert (full.status, full["type"]) == (409, "NonEmptySchemaException"), inside
        store.sql(drop_statement)
    for each in (one, f"{STORE}/schemas/{store.schema}"):
        assert node.done("DELETE", each)["dropped"] is True
        assert node.done("DELETE", each)["dropped"] is False


def test_supported_table_changes_are_applied_together(store: Store) -> None:
    """One request adds, moves, changes and removes columns, keys and comments, and leaves everything else unchanged."""
    store.sql(
        "CREATE TABLE t (id BIGINT NOT NULL, who VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT 'a\\\\b'"
        " COMMENT 'whom', at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), old"
        " INT, kind ENUM('a','b') NOT NULL DEFAULT 'b')",
        "INSERT INTO t (id, who) VALUES (7, 'bea')",
    )
    seven = {"type": "literal", "dataType": "integer", "value": "7"}
    after = store.node.done(
        "PUT",
        f"{store.tables}/t",
        updates(
            change("addColumn", "n", type="integer", comment="number", defaultValue=seven, position={"after": "id"}),
            change("addColumn", "u", type="fixed(16)", position="first"),
            change("addColumn", "z", type="string"),
            change("renameColumn", oldFieldName=["who"], newFieldName="whom"),
            change("updateColumnComment", "at", newComment="it's then"),
            change("updateColumnNullability", "whom", nullable=False),
            change("updateColumnComment", "kind", newComment="k"),
            change("updateColumnDefaultValue", "n", newDefaultValue={**seven, "value": "8"}),
            change("updateColumnPosition", "kind", newPosition={"after": "whom"}),
            change("deleteColumn", "old", ifExists=False),
            change("deleteColumn", "none", ifExists=True),
            change("addTableIndex", index=BY_ID),
            change("addTableIndex", index={"indexType": "UNIQUE_KEY", "name": "one", "fieldNames": [["whom"]]}),
            change("updateColumnAutoIncrement", "id", autoIncrement=True),
            change("updateComment", newComment=NASTY),
        ),
    )["table"]

    columns = {each["name"]: each for each in after["columns"]}
    assert list(columns) == ["u", "id", "n", "whom", "kind", "at", "z"]
    assert (columns["id"]["autoIncrement"], columns["whom"]["nullable"], columns["n"]["defaultValue"]["value"]) == (
        True,
        False,
        "8",
    )
    assert (columns["kind"]["comment"], columns["at"]["comment"], after["comment"]) == ("k", "it's then", NASTY)
    assert [each["name"] for each in after["indexes"]] == ["PRIMARY", "one"]
    ((spelled,),) = ((each[1],) for each in store.sql("SHOW CREATE TABLE t"))
    assert "COLLATE latin1_bin NOT NULL DEFAULT 'a\\\\b' COMMENT 'whom'" in spelled
    assert "DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3) COMMENT 'it''s then'" in spelled
    assert "enum('a','b') NOT NULL DEFAULT 'b' COMMENT 'k'" in spelled
    assert store.sql("SELECT id, whom, kind FROM t") == ((7, "bea", "b"),)
    last = store.node.done(
        "PUT",
        f"{store.tables}/t",
        updates(
            change("updateColumnAutoIncrement", "id", autoIncrement=False),
            change("updateColumnType", "whom", newType="string"),
            change("updateColumnDefaultValue", "whom", newDefaultValue=None),
            change("updateComment", newComment=None),
            change("deleteTableIndex", name="one", ifExists=False),
            change("deleteTableIndex", name="one2", ifExists=True),
        ),
    )
    final_table = last["table"]
    assert ([each["name"] for each in final_table["indexes"]], final_table.get("comment")) == (["PRIMARY"], None)
    assert [each["autoIncrement"] for each in final_table["columns"]] == [False] * 7
    assert store.node.done("PUT", f"{store.tables}/t", updates())["table"] == final_table


WRONG: tuple[tuple[int, dict[str, object]], ...] = (
    (405, set_to("engine", "MEMORY")),
    (405, removed("engine")),
    (400, change("addColumn", "x", type="list")),
    (400, change("addColumn", "x", type={"type": "external", "catalogString": "int); DROP TABLE t; --"})),
    (400, change("addColumn", "x", type={"type": "external", "catalogString": "enum('a')"})),
    (400, change("addColumn", "a", "b", type="long")),
    (400, change("addColumn", "ID", type="long")),
    (400, change("addColumn", "x" * 65, type="long")),
    (400, change("addColumn", "x ", type="long")),
    (400, change("addColumn", "x", type="string", autoIncrement=True)),
    (400, change("addColumn", "x", type="integer", autoIncrement=True)),
    (
        400,
        change("addColumn", "x", type="integer", defaultValue={"type": "literal", "dataType": "string", "value": "y"}),
    ),
    (
        405,
        change(
            "addColumn", "x", type="integer", defaultValue={"type": "function", "funcName": "sleep", "funcArgs": []}
        ),
    ),
    (400, change("addColumn", "x", type="integer", position={"after": "none"})),
    (400, change("updateComment", newComment="😀")),
    (400, change("deleteColumn", "none")),
    (400, change("updateColumnType", "who", newType="date")),
    (405, change("updateColumnComment", "made", newComment="x")),
    (405, change("updateColumnComment", "doc", newComment="x")),
    (400, change("renameColumn", oldFieldName=["who"], newFieldName="Id")),
    (400, change("deleteTableIndex", name="none")),
    (405, change("addTableIndex", index={"indexType": "BTREE", "fieldNames": [["id"]]})),
    (400, change("addTableIndex", index={"indexType": "PRIMARY_KEY", "fieldNames": ["id"]})),
    (400, change("addTableIndex", index={"indexType": "UNIQUE_KEY", "name": "u", "fieldNames": [["none"]]})),
    (400, change("addTableIndex", index={"indexType": "UNIQUE_KEY", "name": "u", "fieldNames": [["who"]]})),
)


def test_invalid_change_is_refused_and_nothing_applied(store: Store) -> None:
    """Each invalid change is refused with a message, and earlier changes of the request are not made."""
    store.sql(
        "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, who VARCHAR(20), made INT AS (id + 1), doc JSON)",
        "INSERT INTO t (id, who) VALUES (1, 'bea'), (2, 'bea')",
    )
    before = store.node.done("GET", f"{store.tables}/t")
    for status, wrong in WRONG:
        answer = store.node.put(f"{store.tables}/t", updates(change("addColumn", "first", type="long"), wrong))

        assert answer.status == status, (wrong, answer.body)
        assert store.node.done("GET", f"{store.tables}/t") == before, wrong


def test_invalid_table_is_refused(store: Store) -> None:
    """Unknown names, layouts and properties are refused, and nothing is created."""
    for status, body in (
        (405, {"properties": {"engine": "CONNECT"}}),
        (405, {"properties": {"data-directory": "/etc"}}),
        (400, {"columns": []}),
        (405, {"partitioning": [{"strategy": "identity", "fieldName": ["id"]}]}),
        (400, {"columns": [*COLUMNS, {"name": "ID", "type": "long"}]}),
        (400, {"name": "x" * 65}),
        (400, {"name": "x "}),
        (400, {"columns": [{"name": "a", "type": "varchar(70000)"}]}),
    ):
        answer = store.node.post(store.tables, {"name": "t", "columns": COLUMNS, **body})
        assert answer.status == status, (body, answer.body)
    assert store.node.done("GET", store.tables)["identifiers"] == []


def test_tables_can_be_renamed_within_and_between_schemas(store: Store) -> None:
    """A table can be renamed within and between schemas, with its placeholder node. Names in use and referenced tables
    are refused.
    """
    node, other = store.node, f"{store.schema}_b"
    node.done("POST", f"{STORE}/schemas", {"name": other})
    for name in ("t", "taken"):
        node.done("POST", store.tables, {"name": name, "columns": COLUMNS, "indexes": [BY_ID]})
    grant(node, "bea", "use_catalog use_schema", kind="CATALOG", on="store")
    grant(node, "bea", "select_table", kind="TABLE", on=f"store.{store.schema}.t")

    assert node.put(f"{store.tables}/t", updates({"@type": "rename", "newName": "taken"})).status == 409
    node.done("PUT", f"{store.tables}/t", updates({"@type": "rename", "newName": "u", "newSchemaName": other}))

    assert (listed(node, store.tables), listed(node, store.tables, user="bea")) == (["taken"], [])
    assert listed(node, f"{STORE}/schemas/{other}/tables", user="bea") == ["u"]
    store.sql(f"CREATE TABLE kid (id BIGINT, FOREIGN KEY (id) REFERENCES {other}.u (id))")
    needed = node.delete(f"{STORE}/schemas/{other}/tables/u")
    assert (needed.status, needed["code"]) == (400, 1001)
    store.sql("DROP TABLE kid")
    assert node.delete(f"{STORE}/schemas/{other}/tables/u?purge=true").status == 405
    assert node.done("DELETE", f"{STORE}/schemas/{other}/tables/u")["dropped"] is True
    assert node.done("DELETE", f"{STORE}/schemas/{other}/tables/u")["dropped"] is False


def test_only_the_exact_name_of_a_table_is_accepted(store: Store, fresh: Callable[[str], Path]) -> None:
    """Only the exact name of a table is found, whatever the server's case rules. On a lower-case server, names with
    upper-case letters cannot be created.
    """
    store.sql("CREATE TABLE t (a INT)", "CREATE TABLE T (b INT)", "CREATE TABLE `é` (c INT)")
    columns = {name: store.node.done("GET", f"{store.tables}/{name}")["table"]["columns"] for name in ("t", "T")}
    assert {name: each[0]["name"] for name, each in columns.items()} == {"t": "a", "T": "b"}
    for name in ("e", "t%20", "E"):
        assert store.node.get(f"{store.tables}/{name}").status == 404
    assert store.node.done("DELETE", f"{store.tables}/e")["dropped"] is False
    with maria_server(small=True) as folding, _store(folding, fresh("small"), timeout_s=25.0) as small:
        small.sql("CREATE TABLE t (a INT)")
        for path in (f"{small.tables}/T", f"{STORE}/schemas/{small.schema.upper()}/tables/t"):
            assert small.node.get(path).status == 404
            assert small.node.delete(path).json().get("dropped") in (False, None)
        assert small.node.post(small.tables, {"name": "T2", "columns": COLUMNS}).status == 400
        assert small.node.post(f"{STORE}/schemas", {"name": "Big"}).status == 400
        assert small.node.put(f"{small.tables}/t", updates({"@type": "rename", "newName": "U"})).status == 400
        assert listed(small.node, small.tables) == ["t"]


def test_grants_apply_to_the_next_request_and_creator_owns_table(store: Store) -> None:
    """A grant on an existing table, and its revoke, take effect immediately. The creator of a table owns it."""
    store.sql("CREATE TABLE a (x INT)", "CREATE TABLE b (x INT)")
    node = store.node
    grant(node, "bea", "use_catalog use_schema create_table", kind="CATALOG", on="store")
    assert listed(node, store.tables, user="bea") == []
    role = grant(node, "bea", "select_table", kind="TABLE", on=f"store.{store.schema}.b")

    assert listed(node, store.tables, user="bea") == ["b"]
    assert node.get(f"{store.tables}/a", user="bea").status == 403
    node.done("PUT", f"{API}/lake/permissions/users/bea/revoke", {"roleNames": [role]})
    assert listed(node, store.tables, user="bea") == []
    node.done("POST", store.tables, {"name": "mine", "columns": COLUMNS}, user="bea")
    assert listed(node, store.tables, user="bea") == ["mine"]
    assert node.done("DELETE", f"{store.tables}/mine", user="bea")["dropped"] is True


def test_unreachable_server_returns_502_without_affecting_others(hasty: Store) -> None:
    """While the server is disconnected or does not answer, its requests are refused with 502 and code 1007. Other
    catalogs are answered, and access is decided. Afterwards requests succeed again.
    """
    node, bridge = hasty.node, hasty.server.bridge
    grant(node, "bea", "use_catalog", kind="CATALOG", on="store")
    hasty.sql("CREATE TABLE t (x INT)")
    assert listed(node, hasty.tables) == ["t"]
    one = f"{hasty.tables}/t"
    requests = (
        ("GET", hasty.tables, None),
        ("GET", one, None),
        ("POST", hasty.tables, {"name": "u", "columns": COLUMNS}),
    )

    sees_it_cut(node, bridge, requests=requests, known=STORE, unable="bea")
    wait_for(node, hasty.tables)
    sees_it_silent(node, bridge, looks=hasty.tables, changes=("DELETE", one, None))
    wait_for(node, hasty.tables)
    assert set(listed(node, hasty.tables)) <= {"t"}


def test_connection_test_refuses_properties_to_another_host(store: Store) -> None:
    """A connection test connects to the server and reports its errors without the password. Properties that lead to
    another host are refused.
    """
    node, port, new = store.node, store.server.bridge.port, f"{API}/lake/catalogs/testConnection"
    assert node.done("POST", new, _catalog(port, "x"))["code"] == 0
    wrong = node.done("POST", new, _catalog(port, "x", **{"jdbc-password": "wrong"}))
    assert (wrong["code"], wrong["type"]) == (1007, "ConnectionFailedException")
    assert "wrong" not in str(wrong["message"])
    assert node.done("GET", STORE)["catalog"]["properties"]["jdbc-password"] == "******"
    url = f"jdbc:mysql://127.0.0.1:{port}"
    tls = node.done("POST", new, _catalog(port, "x", **{"jdbc-url": f"{url}/?sslMode=REQUIRED"}))
    assert tls["code"] in (0, 1007)  # as the server writes it
    for url_suffix in ("?allowLoadLocalInfile=true", "/shop", "?sslMode=VERIFY_CA", "?user=root"):
        assert (
            node.post(f"{API}/lake/catalogs", _catalog(port, "x", **{"jdbc-url": f"{url}{url_suffix}"})).status == 400
        ), url_suffix
    away = node.post(f"{API}/lake/catalogs", _catalog(port, "x", **{"jdbc-url": "jdbc:mysql://10.0.0.1"}))
    assert (away.status, "--allow-source 10.0.0.1:3306" in str(away["message"])) == (400, True)


def test_missing_source_privilege_returns_502_with_reason(store: Store) -> None:
    """A permission error of the source is answered with 502. The message says that the account of this server lacks the
    privilege.
    """
    store.sql(
        f"CREATE USER IF NOT EXISTS 'poor_{store.schema}'@'%' IDENTIFIED BY 'x'",
        f"GRANT SELECT ON {store.schema}.* TO 'poor_{store.schema}'@'%'",
        "CREATE TABLE t (x INT)",
    )
    poor = _catalog(store.server.bridge.port, "poor", **{"jdbc-user": f"poor_{store.schema}", "jdbc-password": "x"})
    store.node.done("POST", f"{API}/lake/catalogs", poor)
    tables = f"{API}/lake/catalogs/poor/schemas/{store.schema}/tables"

    assert listed(store.node, tables) == ["t"]
    for answer in (
        store.node.delete(f"{tables}/t"),
        store.node.post(tables, {"name": "u", "columns": COLUMNS}),
        store.node.put(f"{tables}/t", updates(change("updateComment", newComment="x"))),
    ):
        assert (answer.status, "refuses this operation of its user" in str(answer["message"])) == (
            502,
            True,
        ), answer.body
