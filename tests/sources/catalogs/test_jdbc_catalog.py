# SPDX-License-Identifier: Apache-2.0
"""JDBC catalogs in SQLite and PostgreSQL: both versions of the schema, commits that lose, databases that are no
catalog, lie, refuse the sign-in or say nothing.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from limnos.model.errors import (
    AlreadyExists,
    BadRequest,
    CommitConflict,
    InvalidTable,
    NotFound,
    SourceFailed,
    SourceRefused,
)
from limnos.sources.catalogs.jdbc_catalog import JdbcCatalog
from tests.backends import PostgresServer
from tests.bridges import Bridge

V0 = (
    """CREATE TABLE iceberg_tables (catalog_name VARCHAR(255), table_namespace VARCHAR(255), table_name VARCHAR(255),
    metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),
    PRIMARY KEY (catalog_name, table_namespace, table_name))""",
    """CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255), namespace VARCHAR(255),
    property_key VARCHAR(255), property_value VARCHAR(1000))""",
)
V1 = (*V0, "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
TABLE = ("a", "t")


def filled(path: Path, *statements: str) -> str:
    """Create an SQLite database. Returns its address."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return f"sqlite:///{path}"


def row(namespace: str, name: str, *, catalog: str = "prod", file: str = "'m1'") -> str:
    """Return a statement that adds a table."""
    columns = "catalog_name, table_namespace, table_name, metadata_location"
    return f"INSERT INTO iceberg_tables ({columns}) VALUES ('{catalog}', '{namespace}', '{name}', {file})"


def opened(uri: str, *, name: str | None = None, password: str | None = None, timeout_s: float = 20.0) -> JdbcCatalog:
    """Open a catalog."""
    return JdbcCatalog(uri, name=name, password=password, timeout_s=timeout_s)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[JdbcCatalog]:
    """A V1 catalog with two namespaces, a nested one, tables, a view, and a row of an unknown type."""
    rows = (
        row("a", "t"),
        row("a.b.c", "deep"),
        "INSERT INTO iceberg_tables VALUES ('prod', 'a', 'v', 'v1', NULL, 'VIEW')",
        "INSERT INTO iceberg_tables VALUES ('prod', 'a', 'x', 'x1', NULL, 'INDEX')",
        "INSERT INTO iceberg_tables VALUES ('prod', 'a', 'new', 'm1', NULL, 'TABLE')",
        row("a", "lost", file="NULL"),
        "INSERT INTO iceberg_namespace_properties VALUES ('prod', 'empty', 'exists', 'true')",
        "INSERT INTO iceberg_namespace_properties VALUES ('prod', 'a', 'exists', 'true')",
        "INSERT INTO iceberg_namespace_properties VALUES ('prod', 'a', 'owner', 'them')",
    )
    with closing(opened(filled(tmp_path / "names.db", *V1, *rows))) as running:
        yield running


def test_catalog_lists_namespaces_with_those_above(catalog: JdbcCatalog) -> None:
    """Namespaces come from tables and properties, parents first; the row that only says that one exists is no
    property.
    """
    assert catalog.namespaces() == [("a",), ("a", "b"), ("a", "b", "c"), ("empty",)]
    assert catalog.namespace_properties(("a",)) == {"owner": "them"}
    assert catalog.namespace_properties(("empty",)) == {}


def test_catalog_names_tables_and_views_by_their_type(catalog: JdbcCatalog) -> None:
    """A row without a type is a table, as in the rows of V0; an unknown type is neither."""
    assert catalog.names(("a",)) == [
        ("lost", "table"),
        ("new", "table"),
        ("t", "table"),
        ("v", "view"),
        ("x", "other"),
    ]
    assert (catalog.entry(TABLE).metadata_location, catalog.entry(("a", "v")).kind) == ("m1", "view")
    with pytest.raises(InvalidTable):
        catalog.entry(("a", "lost"))
    with pytest.raises(NotFound):
        catalog.entry(("a", "none"))


def test_commit_needs_the_expected_file(catalog: JdbcCatalog) -> None:
    """A commit on the row's file succeeds, one on a former file does not, and the row keeps the file before."""
    catalog.replace(TABLE, "m2", expected="m1", properties={})

    with pytest.raises(CommitConflict):
        catalog.replace(TABLE, "m3", expected="m1", properties={})
    with pytest.raises(NotFound):
        catalog.replace(("a", "none"), "m3", expected="m1", properties={})
    assert catalog.entry(TABLE).metadata_location == "m2"


def test_retired_row_has_the_new_name(catalog: JdbcCatalog) -> None:
    """A rename leaves the file, refuses a name that is taken, and a table that is gone."""
    assert catalog.retire(TABLE, name="t__moved") == "t__moved"

    assert catalog.entry(("a", "t__moved")).metadata_location == "m1"
    with pytest.raises(AlreadyExists):
        catalog.retire(("a", "new"), name="t__moved")
    with pytest.raises(NotFound):
        catalog.retire(TABLE, name="else")


def test_database_of_version_0_has_tables_alone(tmp_path: Path) -> None:
    """Without the column of types each row is a table, and the schema is not changed."""
    file = tmp_path / "names.db"
    with closing(opened(filled(file, *V0, row("a", "t")))) as catalog:
        names = catalog.names(("a",))
        catalog.replace(TABLE, "m2", expected="m1", properties={})

    with closing(sqlite3.connect(file)) as connection:
        columns = [each[1] for each in connection.execute("PRAGMA table_info(iceberg_tables)")]
        last = connection.execute("SELECT * FROM iceberg_tables").fetchone()
    assert names == [("t", "table")]
    assert "iceberg_type" not in columns
    assert last == ("prod", "a", "t", "m2", "m1")


def test_catalog_is_named_if_there_are_several(tmp_path: Path) -> None:
    """Without a name of several, and for a name that does not exist, the message lists those that do."""
    uri = filled(tmp_path / "names.db", *V1, row("a", "t"), row("a", "t", catalog="dev"))

    with pytest.raises(BadRequest, match="2 catalogs: name one with --warehouse; it has: dev, prod"):
        opened(uri)
    with pytest.raises(BadRequest, match="no catalog 'pord'; it has: dev, prod"):
        opened(uri, name="pord")
    with closing(opened(uri, name="dev")) as catalog:
        assert catalog.namespaces() == [("a",)]


def test_database_that_is_no_catalog_is_refused(tmp_path: Path) -> None:
    """A database without the tables, and a file that is no database, are refused; nothing is written to them."""
    text = tmp_path / "notes.txt"
    text.write_text("no database at all, but long enough to be read as the head of one " * 20)
    before = text.read_bytes()

    with pytest.raises(SourceRefused, match="no Iceberg JDBC catalog"):
        opened(filled(tmp_path / "other.db", "CREATE TABLE t (a INTEGER)"))
    with pytest.raises(SourceRefused, match="not a database"):
        opened(f"sqlite:///{text}")
    with pytest.raises(BadRequest, match="There is no SQLite database"):
        opened(f"sqlite:///{tmp_path}/none.db")
    assert text.read_bytes() == before
    assert not (tmp_path / "none.db").exists()


def test_statement_without_an_end_is_interrupted(tmp_path: Path) -> None:
    """A view in place of the table that never ends its rows is given up after the deadline."""
    endless = (
        "CREATE VIEW iceberg_tables AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
        " 'prod' AS catalog_name, 'a' AS table_namespace, 't' AS table_name, 'm' AS metadata_location FROM n"
    )
    began = time.monotonic()

    with pytest.raises(SourceFailed):
        opened(filled(tmp_path / "names.db", endless), timeout_s=0.5)
    assert time.monotonic() - began < 15


def test_values_of_other_types_are_no_files(tmp_path: Path) -> None:
    """SQLite stores any type in any column: a number in place of a file is an error of that table."""
    uri = filled(tmp_path / "names.db", *V1, row("a", "t", file="x'00ff'"))

    with closing(opened(uri)) as catalog, pytest.raises(InvalidTable):
        catalog.entry(TABLE)


@pytest.mark.integration
def test_postgresql_refuses_a_wrong_password_and_the_message_lacks_it(postgres_server: PostgresServer) -> None:
    """A sign-in that PostgreSQL refuses is reported as such, at once, without the password."""
    uri = postgres_server.empty_database()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS mover")
        connection.execute("CREATE ROLE mover LOGIN PASSWORD 'right-one'")
        row_of_file = connection.execute("SHOW hba_file").fetchone()
        assert row_of_file is not None
        rules = Path(row_of_file[0])
        rules.write_text(f"local all mover scram-sha-256\n{rules.read_text()}")
        connection.execute("SELECT pg_reload_conf()")
    address = uri.replace("//postgres:@", "//mover@")

    with pytest.raises(SourceRefused) as caught:
        opened(address, password="wrong-s3cret")
    with pytest.raises(SourceRefused, match="no Iceberg JDBC catalog"):
        opened(address, password="right-one")

    assert "wrong-s3cret" not in str(caught.value)


@pytest.mark.integration
def test_silent_postgresql_ends_after_the_deadline(postgres_server: PostgresServer) -> None:
    """A database that stops to answer in the middle fails the call; the next one works when it answers again."""
    uri = postgres_server.empty_database()
    with psycopg.connect(uri, autocommit=True) as connection:
        for statement in (*V1, row("a", "t")):
            connection.execute(statement.encode())
        socket_file = Path(connection.info.host) / f".s.PGSQL.{connection.info.port}"
        database = connection.info.dbname
    bridge = Bridge(socket_file)
    try:
        with closing(opened(f"postgresql://postgres@127.0.0.1:{bridge.port}/{database}", timeout_s=2.0)) as catalog:
            assert catalog.entry(TABLE).metadata_location == "m1"
            bridge.silent = True
            began = time.monotonic()
            with pytest.raises(SourceFailed):
                catalog.entry(TABLE)
            waited = time.monotonic() - began
            bridge.silent = False
            last = catalog.entry(TABLE).metadata_location
    finally:
        bridge.close()

    assert waited < 30
    assert last == "m1"
