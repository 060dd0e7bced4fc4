# SPDX-License-Identifier: Apache-2.0
"""A counter of Spark's jobs, for tests of how often data is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkJobCount:
    """The number of jobs that this thread has started since the object was created."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._group = f"jobs-{id(self)}"
        self._context.setJobGroup(self._group, "counted")

    def count(self) -> int:
        """Return the number of jobs, and stop counting."""
        jobs = len(self._context.statusTracker().getJobIdsForGroup(self._group))
        self._context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        return jobs
