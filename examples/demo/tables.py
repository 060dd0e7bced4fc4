# SPDX-License-Identifier: Apache-2.0
"""The content of the published tables, read with Spark SQL: compared with the source, and the numbers of the page.

Job: queries and the comparison. May import `model`, the demo's `data` and PySpark's types; it must not know how the
tables were made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.demo.data import Census
from limnos.model.errors import LimnosError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from examples.demo.data import DemoTable

RAW = "main.raw.nyc"
DELAYS = "main.curated.nyc.delays"

_COUNT_DELAYS = f"SELECT count(*), count(DISTINCT struct(flight_date, carrier, flight, origin)) FROM {DELAYS}"
COMMITS = f"""
SELECT date_format(s.committed_at, 'yyyy-MM-dd HH:mm:ss'), s.operation, CAST(s.summary['total-records'] AS BIGINT)
FROM {DELAYS}.history h JOIN {DELAYS}.snapshots s ON s.snapshot_id = h.snapshot_id ORDER BY h.made_current_at
"""
HOURLY = f"""
SELECT origin, scheduled_hour, avg(dep_delay) FROM {DELAYS}
WHERE NOT cancelled AND scheduled_hour >= 5 GROUP BY origin, scheduled_hour ORDER BY origin, scheduled_hour
"""
AIRLINES = f"""
SELECT airline, count(*), count_if(arr_delay > 15) / count(*), count_if(cancelled) / count(*)
FROM {DELAYS} GROUP BY airline
"""
_REMEDY = "Delete the demo's directory and run it again; if it stays so, it is a bug."


class CountsDiffer(LimnosError):
    """The content of a table differs from its source."""

    code = "counts-differ"


def raw_table_name(table: str) -> str:
    """Return the full name of a raw table."""
    return f"{RAW}.{table}"


def verify(spark: SparkSession, source: DemoTable) -> int:
    """Compare a raw table with its source, rows and values per column; returns its number of rows. Raises CountsDiffer
    on any difference.
    """
    table = raw_table_name(source.name)
    table_census = census(spark, table, columns=source.column_names)
    if table_census.rows != source.census.rows:
        raise CountsDiffer(f"{table} has {table_census.rows:,} rows, its source {source.census.rows:,}. {_REMEDY}")
    for column, filled in source.census.filled.items():
        if table_census.filled[column] != filled:
            raise CountsDiffer(
                f"{table}.{column} has {table_census.filled[column]:,} values, its source {filled:,}. {_REMEDY}"
            )
    return table_census.rows


def verify_delays(spark: SparkSession, flights: DemoTable) -> int:
    """Check that `delays` has every flight exactly once; returns its number of rows."""
    rows, keys = spark.sql(_COUNT_DELAYS).collect()[0]
    if (rows, keys) != (flights.census.rows, flights.census.rows):
        raise CountsDiffer(
            f"{DELAYS} has {rows:,} rows for {keys:,} flights, the source {flights.census.rows:,}. {_REMEDY}"
        )
    return int(rows)


def census(spark: SparkSession, table: str, *, columns: tuple[str, ...]) -> Census:
    """Count a table's rows and the values of each column in one job."""
    counted = spark.table(table).selectExpr("count(*)", *(f"count(`{column}`)" for column in columns)).collect()[0]
    return Census(rows=int(counted[0]), filled={name: int(n) for name, n in zip(columns, counted[1:], strict=True)})
