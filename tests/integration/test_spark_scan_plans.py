# SPDX-License-Identifier: Apache-2.0
"""Scans that the server plans for Spark: the rows equal those of Spark's own planning; of a restricted table only
visible rows are returned.

`LIMNOS_TEST_PLANS` is the number of random filters; the complete check uses 400.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.spark import session
from tests.integration.live import LiveServer, serving

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
COUNT = int(os.environ.get("LIMNOS_TEST_PLANS", "25"))
MODE = "spark.sql.catalog.main.scan-planning-mode"
PLANNED, OWN = "org.apache.iceberg.rest.RESTTable", "org.apache.iceberg.BaseTable"
CITIES = ("Rome", "Oslo", "Ōsaka", "O''Fallon", "")
STORY = (
    (
        "CREATE TABLE main.plan.cards (id INT, city STRING, paid DECIMAL(9,2), born DATE, tags ARRAY<STRING>) USING"
        " iceberg PARTITIONED BY (city)"
    ),
    (
        "ALTER TABLE main.plan.cards SET TBLPROPERTIES ('write.delete.mode'='merge-on-read',"
        " 'write.update.mode'='merge-on-read')"
    ),
    "INSERT INTO main.plan.cards {rows}",
    "DELETE FROM main.plan.cards WHERE id % 7 = 3",
    "ALTER TABLE main.plan.cards ADD PARTITION FIELD bucket(3, id)",
    "INSERT INTO main.plan.cards {rows}",
    "ALTER TABLE main.plan.cards ALTER COLUMN id TYPE BIGINT",
    "ALTER TABLE main.plan.cards DROP PARTITION FIELD city",
    "ALTER TABLE main.plan.cards ADD PARTITION FIELD years(born)",
    "INSERT INTO main.plan.cards {rows}",
    "UPDATE main.plan.cards SET paid = paid + 1 WHERE id % 5 = 1",
    "ALTER TABLE main.plan.cards RENAME COLUMN paid TO amount",
)
"""Statements for a table in four layouts, with position deletes, a widened column and a renamed one."""


class Lake(NamedTuple):
    """A server with the table, and two administrators in Spark: for one Spark plans scans, for the other the server."""

    server: LiveServer
    own: SparkSession
    planned: SparkSession
    dice: random.Random

    def plans(self) -> int:
        """Return the number of scans that the server has planned."""
        logs = self.server.data.parent.glob("*.log")
        return sum(log.read_text(encoding="utf-8").count('"operation":"plan-scan"') for log in logs)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A server whose table `main.plan.cards` has a history of commits."""
    dice = random.Random(20261122)
    with serving(tmp_path_factory.mktemp("planned") / "data") as server:
        own = session(server.uri, token=server.token)
        planned = session(server.uri, token=server.token, config={MODE: "server"})
        own.sql("CREATE NAMESPACE main.plan")
        for first, statement in enumerate(STORY):
            own.sql(statement.format(rows=_rows(dice, first * 100)))
        planned.sql("SHOW NAMESPACES IN main")  # the first session that names a catalog determines its settings
        yield Lake(server, own, planned, dice)


def _rows(dice: random.Random, first: int) -> str:
    row_values = ", ".join(
        f"({first + each}, {_or_null(dice, repr_of(dice.choice(CITIES)))},"
        f" {_or_null(dice, f'{dice.randint(-500, 500)}.25')}, {_or_null(dice, f'DATE {_day(dice)}')}, array('a',"
        f" {_or_null(dice, repr_of(str(each)))}))"
        for each in range(40)
    )
    return f"VALUES {row_values}"


def repr_of(text: str) -> str:
    """Return a text as an SQL literal; quotes in it are doubled already."""
    return f"'{text}'"


def _day(dice: random.Random) -> str:
    return f"'{dice.randint(1995, 2005)}-0{dice.randint(1, 9)}-1{dice.randint(0, 9)}'"


def _or_null(dice: random.Random, text: str) -> str:
    return "NULL" if dice.random() < 0.1 else text


def _condition(dice: random.Random, depth: int) -> str:
    if depth and dice.random() < 0.6:
        left, right = _condition(dice, depth - 1), _condition(dice, depth - 1)
        return dice.choice((f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"))
    compared, city = dice.choice(("=", "<", "<=", ">", ">=", "<>")), repr_of(dice.choice(CITIES))
    return dice.choice(
        (
            f"id {compared} {dice.randint(0, 1000)}",
            f"id IN ({dice.randint(0, 40)}, {dice.randint(400, 440)}, {dice.randint(800, 840)})",
            f"city {compared} {city}",
            f"city IN ({city}, 'Rome')",
            "city IS NULL",
            f"amount {compared} {dice.randint(-500, 500)}.25",
            "amount IS NOT NULL",
            f"born {compared} DATE {_day(dice)}",
            "born IS NULL",
            f"year(born) = {dice.randint(1995, 2005)}",
        )
    )


def _seen(spark: SparkSession, text: str) -> list[str]:
    return sorted(str(tuple(row)) for row in spark.sql(text).collect())


def _kind(spark: SparkSession, name: str) -> str:
    spark3 = spark._jvm.org.apache.iceberg.spark.Spark3Util  # type: ignore[union-attr]
    return str(spark3.loadIcebergTable(spark._jsparkSession, name).getClass().getName())


def test_server_planning_returns_the_rows_of_spark_planning(lake: Lake) -> None:
    """For random filters, versions and columns both ways of planning return the same rows, and one of them is the
    server's.
    """
    assert (_kind(lake.own, "main.plan.cards"), _kind(lake.planned, "main.plan.cards")) == (OWN, PLANNED)
    versions = [row[0] for row in lake.own.sql("SELECT snapshot_id FROM main.plan.cards.snapshots").collect()]

    before = lake.plans()
    row_count = 0
    for number in range(COUNT):
        version = f" VERSION AS OF {lake.dice.choice(versions)}" if number % 4 == 3 else ""
        columns = "*" if version or number % 3 else "tags, id"
        condition = _condition(lake.dice, 3) if not version else "id % 2 = 0 AND city <> 'Rome'"
        text = f"SELECT {columns} FROM main.plan.cards{version} WHERE {condition}"
        rows = _seen(lake.planned, text)
        assert rows == _seen(lake.own, text), text
        row_count += len(rows)

    assert row_count > COUNT
    assert lake.plans() - before >= COUNT // 2  # Spark does not start a scan whose filter is always false


@pytest.mark.parametrize("who", ["table", "catalog", "nobody"])
def test_planning_mode_is_set_by_table_or_catalog(lake: Lake, who: str) -> None:
    """A table's planning mode overrides the session's setting; a catalog's mode applies without one."""
    with Client(lake.server.uri, token=lake.server.token) as client:
        client.catalogs.create(who)
        if who == "catalog":
            client.catalogs.alter(who, updates={"scan-planning-mode": "server"})
    config = {MODE.replace("main", who): "client"} if who == "table" else {}
    spark = session(lake.server.uri, token=lake.server.token, catalogs=(who,), config=config)
    properties = " TBLPROPERTIES ('scan-planning-mode'='server')" if who == "table" else ""
    spark.sql(f"CREATE NAMESPACE {who}.a")
    spark.sql(f"CREATE TABLE {who}.a.t (id INT) USING iceberg{properties}")
    spark.sql(f"INSERT INTO {who}.a.t VALUES (1), (2)")

    before = lake.plans()
    assert _seen(spark, f"SELECT id FROM {who}.a.t WHERE id > 1") == ["(2,)"]
    assert _kind(spark, f"{who}.a.t") == (OWN if who == "nobody" else PLANNED)
    assert (lake.plans() > before) == (who != "nobody")


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_are_changed_with_server_planning(lake: Lake, mode: str) -> None:
    """DELETE, UPDATE and MERGE, whose scans select metadata columns such as `_file`, work with server planning."""
    name = f"main.plan.{mode.replace('-', '_')}"
    modes = ", ".join(f"'write.{verb}.mode'='{mode}'" for verb in ("delete", "update", "merge"))
    lake.planned.sql(f"CREATE TABLE {name} (id INT, city STRING) USING iceberg TBLPROPERTIES ({modes})")
    lake.planned.sql(f"INSERT INTO {name} VALUES (1, 'Rome'), (2, 'Oslo'), (3, 'Bonn')")

    before = lake.plans()
    lake.planned.sql(f"DELETE FROM {name} WHERE city = 'Oslo'")
    lake.planned.sql(f"UPDATE {name} SET city = 'Kyiv' WHERE id = 3")
    lake.planned.sql(
        f"MERGE INTO {name} t USING (SELECT 1 AS id, 'Lima' AS city) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET city = s.city"
    )

    assert lake.plans() - before >= 3
    assert _seen(lake.planned, f"SELECT * FROM {name}") == ["(1, 'Lima')", "(3, 'Kyiv')"]
    assert _seen(lake.own, f"SELECT * FROM {name}") == ["(1, 'Lima')", "(3, 'Kyiv')"]


def test_restricted_user_gets_only_permitted_masked_rows(lake: Lake) -> None:
    """Restricted users get the permitted rows, masked, with any setting of their session; the owner gets all rows."""
    lake.own.sql("CREATE TABLE main.plan.secret (id INT, city STRING, card STRING) USING iceberg PARTITIONED BY (city)")
    lake.own.sql(
        "INSERT INTO main.plan.secret VALUES (1, 'Rome', '1111-2222'), (2, 'Oslo', '3333-4444'), (3, 'Rome', NULL)"
    )
    lake.own.sql("INSERT INTO main.plan.secret VALUES (4, 'Rome', '5555-6666'), (5, NULL, '7777-8888')")
    with Client(lake.server.uri, token=lake.server.token) as client:
        client.users.add("bob")
        client.roles.create("readers")
        client.roles.allow("readers", ["USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE"], on="main", kind="catalog")
        client.roles.grant_to_user("bob", ["readers"])
        client.restrictions.set(
            "r", "main.plan.secret", kind="table", filter="city = 'Rome'", masks={"card": "show-last-4"}
        )
    bob = session(lake.server.uri, user="bob")

    assert _seen(bob, "SELECT * FROM main.plan.secret") == [
        "(1, 'Rome', 'xxxxx2222')",
        "(3, 'Rome', None)",
        "(4, 'Rome', 'xxxxx6666')",
    ]
    assert _seen(bob, "SELECT id FROM main.plan.secret WHERE city = 'Oslo' OR card LIKE '3%' OR id = 4") == ["(4,)"]
    assert len(_seen(lake.own, "SELECT * FROM main.plan.secret")) == 5
