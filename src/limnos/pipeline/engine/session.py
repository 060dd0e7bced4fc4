# SPDX-License-Identifier: Apache-2.0
"""Helpers for a Spark session: temporary settings and temporary views.

Must not know steps.
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
    """Set the session's settings for the body of a `with`, then restore the old values."""
    former_values = {key: spark.conf.get(key, None) for key in values}
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in former_values.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def snapshot_summary_settings(marks: Mapping[str, str]) -> dict[str, str]:
    """Return settings that add `marks` to the summaries of the snapshots that the session writes."""
    return {f"{_MARK}{key}": value for key, value in marks.items()}


@contextmanager
def temporary_view(frame: DataFrame) -> Iterator[str]:
    """Register `frame` as a temporary view for the body of a `with`. Yields the view's name."""
    name = f"limnos_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        frame.sparkSession.catalog.dropTempView(name)
