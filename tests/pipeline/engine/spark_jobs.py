"""Counts Spark's jobs, for tests that say how often data is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkJobCount:
    """The jobs of this thread since it was made."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._group = f"jobs-{id(self)}"
        self._context.setJobGroup(self._group, "counted")

    def count(self) -> int:
        """How many were begun since; counting ends."""
        jobs = len(self._context.statusTracker().getJobIdsForGroup(self._group))
        self._context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        return jobs
