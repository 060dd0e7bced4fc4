# SPDX-License-Identifier: Apache-2.0
"""Totals by SQL++ over narrow columns of tables that PyIceberg and Spark wrote, compared with those of the two
engines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog import load_catalog

from tests.rooms.sqlpp.engine.query_requests import answer_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.spark,
    pytest.mark.heavy,
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SPACE = "totals"
COLUMNS = ("s", "n", "f")
ROWS = (
    (32_767, 2_000_000_000, 16_777_216.0),
    (32_767, 2_000_000_000, 1.0),
    (-3, -7, 0.1),
    (None, None, None),
    (32_767, 2_000_000_000, 3.0e38),
    (1, 5, 1.0e-3),
)
TOTALS = ", ".join(f"{of}(t.{name}) as {of}_{name}" for name in COLUMNS for of in ("sum", "avg"))


def sqlpp(server: LiveServer, statement: str) -> list[object]:
    """The results of a SQL++ statement."""
    status, answer = answer_of(server.uri, server.token, statement)
    assert status == 200, answer
    results = answer["results"]
    assert isinstance(results, list)
    return results


def test_sums_have_the_width_of_spark_sums(server: LiveServer, spark: SparkSession) -> None:
    """Sums of `smallint`, `int` and `float` have the width of Spark's sums."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS main.{SPACE}")
    name = f"main.{SPACE}.by_spark"
    spark.sql(f"CREATE TABLE {name} (s SMALLINT, n INT, f FLOAT)")
    spark.createDataFrame(ROWS, "s smallint, n int, f float").writeTo(name).append()

    (expected,) = spark.sql(f"SELECT {TOTALS} FROM {name} t").collect()
    (by_all,) = sqlpp(server, f"SELECT {TOTALS} FROM {SPACE}.by_spark t")
    by_sign = "SELECT sum(t.n) AS n, sum(t.f) AS f FROM {} t GROUP BY t.s > 0 ORDER BY t.s > 0"
    of_groups = sqlpp(server, by_sign.format(f"{SPACE}.by_spark"))
    grouped = spark.sql(by_sign.format(name)).collect()

    assert by_all == expected.asDict()
    assert of_groups == [row.asDict() for row in grouped]


def test_sums_equal_the_arrow_sums_of_pyiceberg(server: LiveServer) -> None:
    """Sums of `int` and `float` equal those that Arrow computes for PyIceberg's scan."""
    catalog = load_catalog("lake", uri=f"{server.uri}/iceberg", token=server.token, warehouse="lake/main")
    catalog.create_namespace_if_not_exists((SPACE,))
    rows = pa.table(
        {
            "n": pa.array([row[1] for row in ROWS], pa.int32()),
            "f": pa.array([row[2] for row in ROWS], pa.float32()),
        }
    )
    table = catalog.create_table((SPACE, "by_pyiceberg"), schema=rows.schema)
    table.append(rows)

    scan = table.scan().to_arrow()
    (sums,) = sqlpp(server, f"SELECT sum(t.n) AS n, sum(t.f) AS f FROM {SPACE}.by_pyiceberg t")

    assert sums == {"n": pc.sum(scan["n"]).as_py(), "f": pc.sum(scan["f"]).as_py()}
