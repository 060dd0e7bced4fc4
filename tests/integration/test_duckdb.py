# SPDX-License-Identifier: Apache-2.0
"""DuckDB attaches a catalog of a real server and reads its tables; the extensions come from PyPI wheels."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from tests.integration.duckdb_client import attached
from tests.integration.live import LiveServer

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "city", StringType(), required=False))
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])


@pytest.fixture
def duck(server: LiveServer) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the server's catalog attached as `lake`, by the administrator's token."""
    with attached(server) as connection:
        yield connection


@pytest.fixture
def table(server: LiveServer, request: pytest.FixtureRequest) -> Iterator[Table]:
    """A table `towns` with two rows, created by PyIceberg in a namespace with the test's name."""
    catalog = load_catalog("limnos", type="rest", uri=f"{server.uri}/iceberg", warehouse="main", token=server.token)
    space = str(request.node.name)
    catalog.create_namespace((space,))
    created_table = catalog.create_table((space, "towns"), SCHEMA)
    created_table.append(pa.Table.from_pylist([{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Rome"}], schema=ARROW))
    yield created_table
    catalog.close()


def test_table_is_read_by_its_name(duck: duckdb.DuckDBPyConnection, table: Table) -> None:
    """A table is read by its name in the attached catalog."""
    assert duck.sql("SELECT id, city FROM lake.test_table_is_read_by_its_name.towns ORDER BY id").fetchall() == [
        (1, "Oslo"),
        (2, "Rome"),
    ]


def test_commit_of_another_client_is_visible_immediately(duck: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Rows that another client commits are visible at the next query."""
    query = "SELECT count(*) FROM lake.test_commit_of_another_client_is_visible_immediately.towns"
    before = duck.sql(query).fetchall()

    table.append(pa.Table.from_pylist([{"id": 3, "city": "Kyiv"}], schema=ARROW))

    assert (before, duck.sql(query).fetchall()) == ([(2,)], [(3,)])


def test_earlier_snapshot_is_read_by_id(duck: duckdb.DuckDBPyConnection, table: Table) -> None:
    """A snapshot is read by its id."""
    first = table.current_snapshot()
    assert first is not None
    table.append(pa.Table.from_pylist([{"id": 3, "city": "Kyiv"}], schema=ARROW))

    earlier = f"lake.test_earlier_snapshot_is_read_by_id.towns AT (VERSION => {first.snapshot_id})"
    assert duck.sql(f"SELECT count(*) FROM {earlier}").fetchall() == [(2,)]


def test_inserted_rows_are_read_by_pyiceberg(duck: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Rows that DuckDB inserts are read by PyIceberg."""
    duck.sql("INSERT INTO lake.test_inserted_rows_are_read_by_pyiceberg.towns VALUES (3, 'Kyiv')")

    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_nested_namespace_is_read_by_dotted_name(duck: duckdb.DuckDBPyConnection, table: Table) -> None:
    """A table four levels deep is read under its namespace's dotted spelling."""
    catalog = table.catalog
    path = ("test_nested_namespace_is_read_by_dotted_name", "a", "b", "c")
    for depth in range(2, 5):
        catalog.create_namespace(path[:depth])
    deep = catalog.create_table((*path, "t"), SCHEMA)
    deep.append(pa.Table.from_pylist([{"id": 9, "city": "Bern"}], schema=ARROW))

    assert duck.sql(f'SELECT city FROM lake."{".".join(path)}".t').fetchall() == [("Bern",)]


def test_created_and_altered_table_is_read_by_pyiceberg(duck: duckdb.DuckDBPyConnection, table: Table) -> None:
    """PyIceberg reads a table that DuckDB creates, updates, deletes from and alters; after a drop it does not exist."""
    for statement in (
        "CREATE SCHEMA lake.test_of_duck",
        "CREATE TABLE lake.test_of_duck.n (id BIGINT, city VARCHAR)",
        "INSERT INTO lake.test_of_duck.n VALUES (1, 'Oslo'), (2, 'Rome')",
        "UPDATE lake.test_of_duck.n SET city = 'Roma' WHERE id = 2",
        "DELETE FROM lake.test_of_duck.n WHERE id = 1",
        "ALTER TABLE lake.test_of_duck.n ADD COLUMN size INTEGER",
    ):
        duck.execute(statement)
    loaded_table = table.catalog.load_table(("test_of_duck", "n"))

    assert loaded_table.scan().to_arrow().to_pylist() == [{"id": 2, "city": "Roma", "size": None}]
    duck.execute("DROP TABLE lake.test_of_duck.n")
    duck.execute("DROP SCHEMA lake.test_of_duck")
    assert not table.catalog.namespace_exists(("test_of_duck",))


def transactions(server: LiveServer) -> int:
    """Return the number of multi-table commits that the server has answered."""
    with urllib.request.urlopen(f"{server.uri}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    counted = [line for line in lines if line.startswith("limnos_requests_total") and '"commit-transaction"' in line]
    return sum(int(float(line.rpartition(" ")[2])) for line in counted)


def test_two_tables_are_written_in_one_transaction(
    server: LiveServer, duck: duckdb.DuckDBPyConnection, table: Table
) -> None:
    """Writes to two tables between BEGIN and COMMIT are one request; if one table has changed meanwhile, neither is
    written.
    """
    space = "lake.test_two_tables_are_written_in_one_transaction"
    duck.execute(f"CREATE TABLE {space}.other (id BIGINT)")
    before = transactions(server)

    duck.execute(f"BEGIN; INSERT INTO {space}.towns VALUES (3, 'Kyiv'); INSERT INTO {space}.other VALUES (3); COMMIT")

    counts = f"SELECT (SELECT count(*) FROM {space}.towns), (SELECT count(*) FROM {space}.other)"
    assert duck.sql(counts).fetchall() == [(3, 1)]
    assert transactions(server) == before + 1
    duck.execute(f"BEGIN; INSERT INTO {space}.other VALUES (4); INSERT INTO {space}.towns VALUES (4, 'Lima')")
    table.refresh().append(pa.Table.from_pylist([{"id": 5, "city": "Pune"}], schema=ARROW))
    with pytest.raises(duckdb.Error, match=r"table test_two_tables_are_written_in_one_transaction\.towns"):
        duck.execute("COMMIT")
    assert duck.sql(counts).fetchall() == [(4, 1)]
