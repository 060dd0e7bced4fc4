"""Compaction: small files of a dataset become few large ones, old states of it go, and what killed statements left.

May import the sibling modules, `sqlpp.jobs` and PySpark. Must not know plans or why it is done. Iceberg's own actions do the work; each commits by itself, so what was
reached stays when it is ended. Rows are the same before and after.
"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Final

from limnos.engine.tables import loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

    from limnos.sqlpp.jobs import DatasetRef, Tidying

logger = logging.getLogger(__name__)
GROUP_BYTES: Final = 512 << 20
"""How much is rewritten by one commit."""
DELETES_OF_A_FILE: Final = 8
"""A file of any size is written anew when so many files say what is deleted in it."""
_PLAIN: Final = re.compile(r"(file|s3|s3a)://?/?[A-Za-z0-9_./=-]+")
"""Locations that every library spells alike: elsewhere a live file might be taken for another one."""


def compacted(
    spark: SparkSession, ref: DatasetRef, *, tidying: Tidying, number: str, stop: Callable[[], None]
) -> Iterator[str]:
    """Do it; gives one line of JSON that says what was done."""
    table = loaded(spark, ref)
    told = {"rewritten": 0, "written": 0, "debris": 0}
    if table.currentSnapshot() is not None:
        stop()
        found = _rewritten(spark, table, tidying=tidying, number=number)
        told |= {"rewritten": int(found.rewrittenDataFilesCount()), "written": int(found.addedDataFilesCount())}
        stop()
        table.refresh()
        before_ms = expires_before(table, tidying)
        _actions(spark).expireSnapshots(table).expireOlderThan(before_ms).retainLast(1).execute()
        stop()
        if tidying.debris_before_ms is not None:
            told["debris"] = _swept(spark, table, before_ms=tidying.debris_before_ms)
    yield json.dumps(told)


def _actions(spark: SparkSession) -> JavaObject:
    machine = spark._jvm  # noqa: SLF001 - PySpark has no other way to Iceberg's actions
    if machine is None:
        raise RuntimeError("Spark has been stopped")
    return machine.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)  # noqa: SLF001


def _rewritten(spark: SparkSession, table: JavaObject, *, tidying: Tidying, number: str) -> JavaObject:
    action = _actions(spark).rewriteDataFiles(table).binPack().snapshotProperty("sqlpp.statement", number)
    for name, value in (
        ("target-file-size-bytes", tidying.target_bytes),
        ("max-file-group-size-bytes", GROUP_BYTES),
        ("min-input-files", 2),
        ("delete-file-threshold", DELETES_OF_A_FILE),
        ("remove-dangling-deletes", "true"),
        ("partial-progress.enabled", "true"),
        ("max-concurrent-file-group-rewrites", 1),
    ):
        action = action.option(name, str(value))
    return action.execute()


def expires_before(table: JavaObject, tidying: Tidying) -> int:
    """Before which moment states go: by their age, and where there are too many of them."""
    made = sorted(int(one.timestampMillis()) for one in table.snapshots())
    too_many = made[-tidying.states_max] if len(made) > tidying.states_max else 0
    return max(tidying.expires_before_ms, min(too_many, tidying.keeps_after_ms))


def _swept(spark: SparkSession, table: JavaObject, *, before_ms: int) -> int:
    """Delete files of the table that no state of it names and that are older; returns how many."""
    location = str(table.location())
    if not _PLAIN.fullmatch(location):
        logger.info("Files that killed statements left stay at %s: its name is spelled in two ways", location)
        return 0
    found = _actions(spark).deleteOrphanFiles(table).olderThan(before_ms).execute()
    return sum(1 for _ in found.orphanFileLocations())
