# SPDX-License-Identifier: Apache-2.0
"""Runs that read a database by increments: the published table equals the database after each run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psycopg
import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.project import load
from tests.backends import PostgresServer
from tests.mariadbs import MariaServer
from tests.pipeline.reachable_socket import reachable

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.integration,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PASSWORD, VARIABLE = "read-only-words", "LIMNOS_TEST_SHOP_PASSWORD"
PIPELINE = """
pipeline: SPACE
catalog: main
sources:
  orders:
    jdbc: URL
    table: orders
    user: USER
    password_env: VARIABLE
    cursor_column: changed
    lateness: 10 minutes
steps:
  SPACE.orders:
    load: orders
    incremental: true
    write: {mode: merge, keys: id, delete_when: gone}
  SPACE.copies:
    catalog: lance
    load: orders
    incremental: true
    write: {mode: merge, keys: id, delete_when: gone}
  SPACE.totals:
    sql: SELECT count(*) AS n, sum(amount) AS amount FROM orders WHERE NOT gone
"""
ROUNDS = 6


class Orders(Protocol):
    """A table of orders in a database: `id`, `amount`, `changed` and `gone`."""

    url: str
    user: str

    def put(self, number: int, *, amount: int, changed_s: int, is_deleted: bool) -> None:
        """Add or change an order. `changed_s` is its time in seconds since 1970."""

    def present(self) -> list[tuple[object, ...]]:
        """Return the ids and amounts of the orders that are not marked as gone."""

    def delete_newest(self) -> None:
        """Delete the orders with the highest time, as a restored database lacks them."""


class PostgresOrders:
    """Orders in PostgreSQL."""

    user = "cora"

    def __init__(self, connection: psycopg.Connection, url: str) -> None:
        self.url = url
        self._connection = connection
        with suppress(psycopg.errors.DuplicateObject):  # roles belong to the server, which serves the other tests, too
            connection.execute(f"CREATE ROLE cora LOGIN PASSWORD '{PASSWORD}'".encode())
        connection.execute("CREATE TABLE orders (id INT PRIMARY KEY, amount INT, changed TIMESTAMPTZ, gone BOOL)")
        connection.execute("GRANT SELECT ON orders TO cora")

    def put(self, number: int, *, amount: int, changed_s: int, is_deleted: bool) -> None:
        """Add or change an order."""
        self._connection.execute(
            "INSERT INTO orders VALUES (%s, %s, to_timestamp(%s), %s) ON CONFLICT (id) DO UPDATE"
            " SET amount = excluded.amount, changed = excluded.changed, gone = excluded.gone",
            (number, amount, changed_s, is_deleted),
        )

    def present(self) -> list[tuple[object, ...]]:
        """Return the ids and amounts of the orders that are not marked as gone."""
        return self._connection.execute("SELECT id, amount FROM orders WHERE NOT gone ORDER BY id").fetchall()

    def delete_newest(self) -> None:
        """Delete the orders with the highest time."""
        self._connection.execute("DELETE FROM orders WHERE changed = (SELECT max(changed) FROM orders)")


class MariaOrders:
    """Orders in MariaDB, whose user reads them alone."""

    def __init__(self, server: MariaServer, database: str) -> None:
        self.url, self.user = f"jdbc:mariadb://127.0.0.1:{server.port}/{database}", f"u{database[-20:]}"
        self._server, self._table = server, f"{database}.orders"
        server.sql(
            f"CREATE DATABASE {database}",
            f"CREATE TABLE {self._table} (id INT PRIMARY KEY, amount INT, changed TIMESTAMP(6) NOT NULL, gone BOOLEAN)",
            f"CREATE USER '{self.user}'@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT SELECT ON {self._table} TO '{self.user}'@'%'",
        )

    def put(self, number: int, *, amount: int, changed_s: int, is_deleted: bool) -> None:
        """Add or change an order."""
        values = f"{number}, {amount}, from_unixtime({changed_s}), {is_deleted}"
        self._server.sql(f"REPLACE INTO {self._table} VALUES ({values})")

    def present(self) -> list[tuple[object, ...]]:
        """Return the ids and amounts of the orders that are not marked as gone."""
        return list(self._server.sql(f"SELECT id, amount FROM {self._table} WHERE NOT gone ORDER BY id"))

    def delete_newest(self) -> None:
        """Delete the orders with the highest time."""
        ((newest,),) = self._server.sql(f"SELECT max(changed) FROM {self._table}")
        self._server.sql(f"DELETE FROM {self._table} WHERE changed = '{newest}'")


class Shop:
    """A table of orders, whose clock is a number of seconds, and the pipeline that copies it."""

    def __init__(self, orders: Orders, *, file: Path, spark: SparkSession, client: Client) -> None:
        self.orders = orders
        self._clock_s = 0
        self.file = file
        self.spark = spark
        self.client = client

    def change(self, chance: random.Random) -> None:
        """Add, change and mark orders; some changes get a time of up to nine minutes ago, as if committed late."""
        self._clock_s += 3600
        for number in {chance.randrange(60) for _ in range(12)}:
            late_s = chance.choice([0, 0, 540])
            self.orders.put(
                number,
                amount=chance.randrange(1000),
                changed_s=self._clock_s - late_s,
                is_deleted=chance.random() < 0.2,
            )

    def run(self) -> dict[str, str | None]:
        """Run the pipeline. Returns for each step why it read all rows; None for an increment."""
        ended = load(self.file).run(self.spark)
        assert ended.state == "published", ended.message
        steps = self.client.runs.load(ended.run).steps
        whole = {step.name.rpartition(".")[2]: [each.get("whole_because") for each in step.inputs] for step in steps}
        return {name: next((str(each) for each in reasons if each), None) for name, reasons in whole.items()}

    def published(self) -> list[tuple[object, ...]]:
        """The published rows."""
        rows = self.spark.table(f"main.{self.file.stem}.orders").select("id", "amount").collect()
        return sorted(tuple(row) for row in rows)

    def copied(self) -> list[tuple[object, ...]]:
        """The published rows of the Lance table."""
        dataset = self.client.lance.dataset(f"lance.{self.file.stem}.copies")
        return sorted((row["id"], row["amount"]) for row in dataset.to_table(columns=["id", "amount"]).to_pylist())


@contextmanager
def postgres_orders(server: PostgresServer) -> Iterator[Orders]:
    """Orders in a database of their own in PostgreSQL."""
    with psycopg.connect(server.empty_database(), autocommit=True) as connection:
        row = connection.execute("SHOW unix_socket_directories").fetchone()
        assert row is not None
        with reachable(Path(str(row[0])) / ".s.PGSQL.5432") as port:
            yield PostgresOrders(connection, f"jdbc:postgresql://127.0.0.1:{port}/{connection.info.dbname}")


@contextmanager
def maria_orders(server: MariaServer, database: str) -> Iterator[Orders]:
    """Orders in a database of their own in MariaDB."""
    yield MariaOrders(server, database)


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    admin: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Shop]:
    """An empty table of orders in a database, and a pipeline in a namespace of its own."""
    space = "d" + "".join(filter(str.isalnum, tmp_path.name))[-20:].lower()
    admin.namespaces.create(f"main.{space}")
    monkeypatch.setenv(VARIABLE, PASSWORD)
    opened = (
        postgres_orders(request.getfixturevalue("postgres_server"))
        if request.param == "postgresql"
        else maria_orders(request.getfixturevalue("maria_server"), space)
    )
    with opened as orders:
        file = tmp_path / f"{space}.yaml"
        text = PIPELINE.replace("SPACE", space).replace("URL", orders.url).replace("USER", orders.user)
        file.write_text(text.replace("VARIABLE", VARIABLE))
        yield Shop(orders, file=file, spark=spark, client=admin)


def test_increments_equal_the_database_after_each_run(shop: Shop) -> None:
    """Added, changed, late and marked rows are in an Iceberg table and a Lance table after each run, by increments; a
    run without changes writes nothing, and a restored database is read as a whole.
    """
    chance = random.Random(51)
    for number in range(ROUNDS):
        shop.change(chance)
        reasons = shop.run()
        assert shop.published() == shop.copied() == shop.orders.present(), number
        assert (reasons["orders"] is None) == (reasons["copies"] is None) == (number > 0), reasons

    snapshots = shop.spark.table(f"main.{shop.file.stem}.orders.snapshots").count()
    version = shop.client.lance.load(f"lance.{shop.file.stem}.copies").version
    assert shop.run()["orders"] is None
    assert shop.spark.table(f"main.{shop.file.stem}.orders.snapshots").count() == snapshots
    assert shop.client.lance.load(f"lance.{shop.file.stem}.copies").version == version
    totals = shop.spark.table(f"main.{shop.file.stem}.totals").collect()[0]
    assert (totals.n, totals.amount) == (len(shop.orders.present()), sum(row[1] for row in shop.orders.present()))

    shop.orders.delete_newest()
    reasons = shop.run()
    assert "lower newest changed" in str(reasons["orders"])
    assert reasons["copies"] == reasons["orders"]


def test_increments_without_keys_are_refused_by_check(shop: Shop) -> None:
    """`check` refuses to append or replace by increments of a database, and says what to write."""
    text = shop.file.read_text()
    shop.file.write_text(text.replace("write: {mode: merge, keys: id, delete_when: gone}", "write: append", 1))

    problems = [each.message for each in load(shop.file).check().problems]

    assert len([each for each in problems if "write: {mode: merge, keys: …}" in each]) == 1, problems
