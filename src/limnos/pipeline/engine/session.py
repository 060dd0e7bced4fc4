"""Small dealings with a Spark session: settings for the time of a statement, frames by name, plans before they run.

May import PySpark. It must not know what a step is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MARK = "spark.sql.iceberg.snapshot-property."


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set the session's settings, and put back what was there."""
    before = {key: spark.conf.get(key, None) for key in values}
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def marking(marks: Mapping[str, str]) -> dict[str, str]:
    """Settings by which the snapshots of the session's statements bear `marks` in their summaries."""
    return {f"{_MARK}{key}": value for key, value in marks.items()}


@contextmanager
def temporary_view(frame: DataFrame) -> Iterator[str]:
    """A name for SQL under which the session reads `frame`, as long as the block lasts."""
    name = f"limnos_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        frame.sparkSession.catalog.dropTempView(name)
