"""Rows that are held once they are computed, so that several readers see the same ones.

Job: `stage` carries a DataFrame out and gives one that reads what came of it; `release` gives the room back. What needs it:
rows that are parted in two writes, keys that are checked before a merge, and sources that would give other rows when
they are asked again. Uses Spark's local checkpoint: the executors hold the rows, so no directory need be shared between
machines, and nothing stays behind when Spark ends. On several executors each block has a second copy, because a lost
executor would otherwise take the rows with it. May import PySpark; it must not know what the rows are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import StorageLevel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stage(frame: DataFrame) -> DataFrame:
    """Carry `frame` out and return a DataFrame of its rows, the same ones at each reading."""
    return frame.localCheckpoint(eager=True, storageLevel=_level(frame))


@contextmanager
def staged_rows(frame: DataFrame) -> Iterator[DataFrame]:
    """The rows of `frame`, held as long as the block lasts."""
    held = stage(frame)
    try:
        yield held
    finally:
        release(held)


def release(frame: DataFrame) -> None:
    """Give back what `stage` holds for `frame`; a frame that was not staged, or was released, is left alone.

    Over Spark Connect the server does so by itself when the client lets the frame go.
    """
    analysed = _analysed(frame)
    if analysed is not None and analysed.getClass().getSimpleName() == "LogicalRDD":
        analysed.rdd().unpersist(False)


def _level(frame: DataFrame) -> StorageLevel:
    """Two copies where the rows lie outside the driver; one copy where there is but one machine, in memory as they are.

    What Python calls MEMORY_AND_DISK holds rows written out: writing and reading them costs more than all that is done with them.
    """
    master = frame.sparkSession.conf.get("spark.master", "") or ""
    return StorageLevel.MEMORY_AND_DISK_DESER if master.startswith("local") else StorageLevel.MEMORY_AND_DISK_2


def _analysed(frame: DataFrame):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a Java object
    java = getattr(frame, "_jdf", None)
    return None if java is None else java.queryExecution().analyzed()
