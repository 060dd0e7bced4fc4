# SPDX-License-Identifier: Apache-2.0
"""Staging of rows: they are computed and stored once, so that several readers see the same rows.

`stage` computes a DataFrame and returns one that reads the result; `release` frees it. It is used for rows that are
split between two writes, keys that are checked before a merge, and sources that return different rows on a second read.
It uses Spark's local checkpoint: executors store the rows, so no shared directory is needed and nothing remains when
Spark ends. On several executors each block has a second copy, because a lost executor would lose its rows. Must not
know the use of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

LARGE_BYTES = 16 * 1024 * 1024
"""The estimated size in bytes of rows that are cheaper to read again from a table than to store or count beside it."""


def is_large(frame: DataFrame) -> bool:
    """Return whether Spark estimates at least `LARGE_BYTES` for the rows. False over Spark Connect, which does not
    tell.
    """
    java: Any = getattr(frame, "_jdf", None)
    return java is not None and int(java.queryExecution().optimizedPlan().stats().sizeInBytes()) >= LARGE_BYTES


def stage(frame: DataFrame) -> DataFrame:
    """Compute `frame` and return a DataFrame of its rows, which are the same on each read."""
    return frame.localCheckpoint(eager=True, storageLevel=_level(frame))


@contextmanager
def staged_rows(frame: DataFrame) -> Iterator[DataFrame]:
    """Stage the rows of `frame` for the body of a `with`."""
    data_frame = stage(frame)
    try:
        yield data_frame
    finally:
        release(data_frame)


def release(frame: DataFrame) -> None:
    """Free the rows that `stage` stored for `frame`. No-op for a DataFrame that is not staged.

    Over Spark Connect the server frees them itself when the client discards the DataFrame.
    """
    analyzed = _analyzed_plan(frame)
    if analyzed is not None and analyzed.getClass().getSimpleName() == "LogicalRDD":
        analyzed.rdd().unpersist(False)


def _level(frame: DataFrame) -> StorageLevel:
    """Return the storage level: two copies on several machines, one deserialized copy on a single machine.

    PySpark's MEMORY_AND_DISK stores rows serialized, which costs more than the processing itself.
    """
    master = frame.sparkSession.conf.get("spark.master", "") or ""
    return StorageLevel.MEMORY_AND_DISK_DESER if master.startswith("local") else StorageLevel.MEMORY_AND_DISK_2


def _analyzed_plan(frame: DataFrame):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a Java object
    java = getattr(frame, "_jdf", None)
    return None if java is None else java.queryExecution().analyzed()
