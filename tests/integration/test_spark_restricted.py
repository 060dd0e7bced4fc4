# SPDX-License-Identifier: Apache-2.0
"""Restricted tables read by Spark: over random filters, masks and queries it shows exactly the rows of a model in plain
Python.

Files are partitioned, with position deletes of format 2 and deletion vectors of format 3. `LIMNOS_TEST_RESTRICTIONS` is
the number of filters and masks; the complete check uses 1,000.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from limnos.spark import session
from tests.formats.restricting.model import (
    FITTING,
    FIXED,
    Cell,
    Filter,
    Row,
    convert_cell,
    holds,
    random_filter,
    same,
    shown_of,
)
from tests.integration.live import serving
from tests.integration.test_restricted_scans import SCHEMA, SPEC, Shop

pytestmark = [
    pytest.mark.spark,
    pytest.mark.integration,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
COUNT = int(os.environ.get("LIMNOS_TEST_RESTRICTIONS", "12"))
TABLES = ("two", "three")
_COMPARED = {"eq": "=", "not-eq": "<>", "lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">="}


class Spark(NamedTuple):
    """The tables in two formats, the rows that remain in them, and bob in Spark, without a setting for scan
    planning.
    """

    shop: Shop
    rows: list[Row]
    owner: SparkSession
    bob: SparkSession

    def seen(self, query: str) -> list[Row]:
        """Return the rows that bob reads."""
        local_rows: list[Row] = self.bob.sql(query).toArrow().to_pylist()
        return [{column: _in_utc(value) for column, value in row.items()} for row in local_rows]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """A server with the tables, and a long timeout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMNOS__SERVER__REQUEST_TIMEOUT_S", "300")
        with serving(tmp_path_factory.mktemp("shop") / "data") as server:
            shop = Shop(server)
            owner = session(server.uri, token=server.token)
            lazily = {"write.delete.mode": "merge-on-read"}
            two = shop.owner.create_table(("shop", "two"), SCHEMA, partition_spec=SPEC, properties=lazily)
            two.append(pa.Table.from_pylist(shop.rows, schema=SCHEMA.as_arrow()))
            owner.sql(
                "CREATE TABLE main.shop.three USING iceberg TBLPROPERTIES ('format-version'='3',"
                " 'write.delete.mode'='merge-on-read') AS SELECT * FROM main.shop.cards"
            )
            for name in TABLES:
                owner.sql(f"DELETE FROM main.shop.{name} WHERE id % 7 = 3")
            rows = [row for row in shop.rows if row["id"] % 7 != 3]
            yield Spark(shop, rows, owner, session(server.uri, user="bob"))
            shop.http.close()


def _in_utc(value: Cell) -> Cell:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def sql_of(filter_: Filter) -> str:
    """A filter as Spark's SQL."""
    word = filter_["type"]
    if word in ("and", "or"):
        return f"({sql_of(filter_['left'])} {word} {sql_of(filter_['right'])})"
    if word == "not":
        return f"(not {sql_of(filter_['child'])})"
    column = filter_["term"]
    if word in ("is-null", "not-null"):
        return f"{column} is {'not ' * (word == 'not-null')}null"
    if word in ("in", "not-in"):
        values = ", ".join(_literal(column, each) for each in filter_["values"])
        return f"{column} {'not ' * (word == 'not-in')}in ({values})"
    if word in ("starts-with", "not-starts-with"):
        return f"{column} {'not ' * word.startswith('not')}like '{filter_['value']}%'"
    return f"{column} {_COMPARED[word]} {_literal(column, filter_['value'])}"


def _literal(column: str, written: Cell) -> str:
    value = convert_cell(column, written)
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat()}'"
    if isinstance(value, date):
        return f"date '{value}'"
    if isinstance(value, str):
        return f"'{value}'"
    return f"{value}D" if isinstance(value, float) else str(value)


def test_random_restrictions_return_the_rows_of_the_model(spark: Spark) -> None:
    """With random filters, masks and queries, Spark returns exactly the rows of the model."""
    dice, read = spark.shop.dice, 0
    for number in range(COUNT):
        name = TABLES[number % 2]
        filter_ = None if dice.random() < 0.1 else random_filter(dice, spark.rows)
        masks = {column: dice.choice(FITTING[column]) for column in dice.sample(tuple(FIXED), dice.randrange(1, 4))}
        spark.shop.restrict(filter_, masks, table=name)
        query_filter = random_filter(dice, spark.rows)
        query = f"SELECT * FROM main.shop.{name} WHERE {sql_of(query_filter)}"
        expected = [row for row in shown_of(spark.rows, filter_, masks) if holds(query_filter, row) is True]

        same(spark.seen(query), expected)
        read += len(expected)

    assert read > COUNT


def test_counts_joins_and_groups_use_only_permitted_rows(spark: Spark) -> None:
    """Counts, joins and groups see only permitted rows; an older version is restricted as the newest, with the current
    columns.
    """
    versions = [
        row[0]
        for row in spark.owner.sql("SELECT snapshot_id FROM main.shop.two.snapshots ORDER BY committed_at").collect()
    ]
    spark.shop.restrict({"type": "eq", "term": "city", "value": "Bonn"}, {"card": "replace-with-null"}, table="two")
    seen = [row for row in spark.rows if row["city"] == "Bonn"]

    (counted,) = spark.seen(
        "SELECT count(*) AS n, count(card) AS cards, min(city) AS city, max(id) AS id FROM main.shop.two"
    )
    joined = spark.seen("SELECT a.id FROM main.shop.two a JOIN main.shop.two b ON a.id = b.id WHERE b.city <> 'Wien'")
    older = spark.seen(f"SELECT id FROM main.shop.two VERSION AS OF {versions[0]}")
    assert counted == {"n": len(seen), "cards": 0, "city": "Bonn", "id": max(row["id"] for row in seen)}
    assert sorted(row["id"] for row in joined) == [row["id"] for row in seen]
    assert sorted(row["id"] for row in older) == [row["id"] for row in spark.shop.rows if row["city"] == "Bonn"]
