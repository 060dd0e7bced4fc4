# SPDX-License-Identifier: Apache-2.0
"""Deletion of old rows on Spark, by SQL in an operation's session.

Must not know policies: the options name the column, its type, and the day in UTC before whose midnight rows are
deleted. Rows with NULL in the column stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from limnos.rooms.maintenance.engine.outcomes import quote_identifier, table_identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.client.operation.maintenance_values import LeasedOperation

RETENTION: Final = "retention"
_LITERALS: Final = {
    "date": "DATE '{}'",
    "timestamp": "TIMESTAMP_NTZ '{} 00:00:00'",
    "timestamptz": "TIMESTAMP '{} 00:00:00+00:00'",
}
"""The first moment of a day in UTC as a literal of Spark SQL, by the column's type in Iceberg."""


def delete_old_rows(spark: SparkSession, operation: LeasedOperation) -> str:
    """Delete the rows of an operation's table that are too old. Returns the result as human-readable text.

    A table without such rows gets no new snapshot.
    """
    table = table_identifier(operation.path)
    column, before = operation.options["column"], operation.options["before"]
    condition = f"{quote_identifier(column)} < {_LITERALS[operation.options['column-type']].format(before)}"
    (row,) = spark.sql(f"SELECT count(*) AS number FROM {table} WHERE {condition}").collect()  # noqa: S608 - quoted
    if not row["number"]:
        return f"no rows have {column} before {before}"
    spark.sql(f"DELETE FROM {table} WHERE {condition}").collect()  # noqa: S608
    return f"deleted {row['number']} rows with {column} before {before}"
