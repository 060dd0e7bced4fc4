# SPDX-License-Identifier: Apache-2.0
"""Spark's filters as Lance SQL: a pushed filter finds the same rows, others are left to Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark

from limnos.spark.lance.filters import condition_of, sql_of

ROWS = pa.table(
    {
        "id": [1, 2, 3, None],
        "text": ["it's", "abc", None, "x%y"],
        "day": [dt.date(2020, 1, 1), dt.date(2021, 1, 1), None, None],
        "in ner": [{"b.c": 1}, {"b.c": 2}, {"b.c": None}, {"b.c": 3}],
        "ok": [True, False, None, True],
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    """A table with nulls, quotes and unusual names."""
    place: Path = tmp_path_factory.mktemp("filters") / "t"
    return lance.write_dataset(ROWS, str(place))


@pytest.mark.parametrize(
    "condition, places",
    [
        (spark.EqualTo(("id",), 2), [1]),
        (spark.GreaterThan(("id",), 1), [1, 2]),
        (spark.GreaterThanOrEqual(("id",), 2), [1, 2]),
        (spark.LessThan(("id",), 2), [0]),
        (spark.LessThanOrEqual(("id",), 2), [0, 1]),
        (spark.In(("id",), (1, 3)), [0, 2]),
        (spark.IsNull(("text",)), [2]),
        (spark.IsNotNull(("id",)), [0, 1, 2]),
        (spark.Not(spark.EqualTo(("id",), 2)), [0, 2]),
        (spark.EqualTo(("text",), "it's"), [0]),
        (spark.StringStartsWith(("text",), "it'"), [0]),
        (spark.StringEndsWith(("text",), "bc"), [1]),
        (spark.StringContains(("text",), "%"), [3]),
        (spark.EqualTo(("day",), dt.date(2021, 1, 1)), [1]),
        (spark.EqualTo(("ok",), True), [0, 3]),
        (spark.EqualTo(("in ner", "b.c"), 2), [1]),
        (spark.EqualNullSafe(("id",), 2), [1]),
        (spark.Not(spark.EqualNullSafe(("id",), 2)), [0, 2, 3]),
    ],
)
def test_pushed_filter_returns_the_rows_that_spark_would(
    table: lance.LanceDataset, condition: spark.Filter, places: list[int]
) -> None:
    """A pushed filter finds the rows that Spark would find, with nulls, negations, quotes and nested fields."""
    sql = sql_of(condition)
    assert sql is not None

    assert table.to_table(filter=sql).to_pylist() == [ROWS.to_pylist()[place] for place in places]


@pytest.mark.parametrize(
    "condition",
    [
        spark.EqualTo(("x",), 1.5),
        spark.GreaterThan(("x",), float("nan")),
        spark.EqualTo(("x",), Decimal("1.5")),
        spark.EqualTo(("x",), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        spark.EqualTo(("x",), 2**64),
        spark.EqualTo(("a`b",), 1),
        spark.In(("x",), (1, None)),
        spark.In(("x",), tuple(range(1001))),
        spark.EqualNullSafe(("x",), None),
        spark.Not(spark.EqualTo(("x",), 1.5)),
    ],
)
def test_ambiguous_filters_are_left_to_spark(condition: spark.Filter) -> None:
    """Filters on floating-point numbers, decimals and times, and on names that cannot be quoted, are left to Spark."""
    assert sql_of(condition) is None


def test_conditions_are_joined() -> None:
    """Several filters are joined with AND; without filters there is no condition."""
    assert condition_of(["a OR b", "c"]) == "(a OR b) AND (c)"
    assert condition_of([]) is None
