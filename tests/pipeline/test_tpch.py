# SPDX-License-Identifier: Apache-2.0
"""TPC-H through the declared pipeline, three deliveries, compared with plain Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.tpch.data import TABLES
from conformance.tpch.plain import MARTS, checksum

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.pipeline.conftest import TpchRuns

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.integration,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("day", [0, 1, 2])
def test_every_table_equals_the_plain_computation(tpch: TpchRuns, day: int) -> None:
    """After the base and after each day of changes, all thirteen tables have the rows that plain Spark SQL computes
    from the files.
    """
    lines = tpch.lines[day]

    assert {line.table for line in lines} == {f"raw.tpch.{name}" for name in TABLES} | set(MARTS)
    assert [str(line) for line in lines if not line.equal] == []
    assert all(line.found[0] > 0 for line in lines)


def test_each_day_changes_exactly_the_dependent_tables(tpch: TpchRuns) -> None:
    """Each day changes exactly the tables that depend on the changed data."""
    moved = [
        {new.table for old, new in zip(tpch.lines[day - 1], tpch.lines[day], strict=True) if old.found != new.found}
        for day in (1, 2)
    ]

    assert moved == [{"raw.tpch.customer", "raw.tpch.orders", "raw.tpch.lineitem", *MARTS}] * 2


def test_checksum_detects_differences_of_rows(spark: SparkSession) -> None:
    """Another value, NULL, an additional row or a duplicate row changes the checksum; the order of rows and columns
    does not.
    """
    one = checksum(spark.sql("SELECT * FROM VALUES (1, 'a'), (2, NULL) AS t(x, y)"))

    assert checksum(spark.sql("SELECT y, x FROM VALUES (2, NULL), (1, 'a') AS t(x, y)")) == one
    for rows in ("(1, 'a'), (2, 'a')", "(1, 'a'), (2, '')", "(1, 'a'), (1, 'a')", "(1, 'a'), (2, NULL), (2, NULL)"):
        assert checksum(spark.sql(f"SELECT * FROM VALUES {rows} AS t(x, y)")) != one
