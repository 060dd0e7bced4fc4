"""Compaction: small files of a dataset become few large ones, old states of it go, and what killed statements left.

May import the sibling modules, `sqlpp.jobs` and PySpark. Must not know plans or why it is done. Iceberg's own actions do the work; each commits by itself, so what was
reached stays when it is ended. Rows are the same before and after.
"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Final

from limnos.engine.tables import load_iceberg_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

    from limnos.sqlpp.jobs import CompactionOptions, DatasetRef

logger = logging.getLogger(__name__)
GROUP_BYTES: Final = 512 << 20
"""How much is rewritten by one commit."""
DELETES_OF_A_FILE: Final = 8
"""A file of any size is written anew when so many files say what is deleted in it."""
SWEPT: Final = "sqlpp.swept-before-ms"
"""Of a state: files older than this had been swept, as far as nothing named them."""
SWEEP_EVERY_MS: Final = 86_400_000
_PLAIN: Final = re.compile(r"(file|s3|s3a)://?/?[A-Za-z0-9_./=-]+")
"""Locations that every library spells alike: elsewhere a live file might be taken for another one."""


def compact_dataset(
    spark: SparkSession, ref: DatasetRef, *, tidying: CompactionOptions, number: str, stop: Callable[[], None]
) -> Iterator[str]:
    """Do it; gives one line of JSON that says what was done."""
    table = load_iceberg_table(spark, ref)
    told = {"rewritten": 0, "written": 0, "debris": 0}
    if table.currentSnapshot() is not None:
        stop()
        sweeps_to, marked = sweep_plan(_marks(table), tidying.debris_before_ms)
        found = _rewrite_files(spark, table, tidying=tidying, said={"sqlpp.statement": number, SWEPT: marked})
        told |= {"rewritten": int(found.rewrittenDataFilesCount()), "written": int(found.addedDataFilesCount())}
        stop()
        table.refresh()
        before_ms = expires_before(table, tidying)
        if _has_older(table, before_ms):
            _actions(spark).expireSnapshots(table).expireOlderThan(before_ms).retainLast(1).execute()
        stop()
        if sweeps_to is not None:
            told["debris"] = _swept(spark, table, before_ms=sweeps_to)
    yield json.dumps(told)


def sweep_plan(marks: Iterable[str], before_ms: int | None) -> tuple[int | None, str | None]:
    """Before which moment files are swept now, if at all, and how far they have been then: to be written down in the state that is made."""
    before = max((int(each) for each in marks if each.isascii() and each.isdigit()), default=None)
    if before_ms is None:
        return None, None if before is None else str(before)
    if before is not None and before_ms < before + SWEEP_EVERY_MS:
        return None, str(before)
    return before_ms, str(before_ms)


def _marks(table: JavaObject) -> list[str]:
    """How far the table's states say that files have been swept."""
    return [str(found) for one in table.snapshots() if (found := one.summary().get(SWEPT)) is not None]


def _has_older(table: JavaObject, before_ms: int) -> bool:
    """Whether a former state may go: to look for its files takes longer than all else."""
    current = table.currentSnapshot().snapshotId()
    return any(one.timestampMillis() < before_ms for one in table.snapshots() if one.snapshotId() != current)


def _actions(spark: SparkSession) -> JavaObject:
    machine = spark._jvm  # noqa: SLF001 - PySpark has no other way to Iceberg's actions
    if machine is None:
        raise RuntimeError("Spark has been stopped")
    return machine.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)  # noqa: SLF001


def _rewrite_files(
    spark: SparkSession, table: JavaObject, *, tidying: CompactionOptions, said: Mapping[str, str | None]
) -> JavaObject:
    action = _actions(spark).rewriteDataFiles(table).binPack()
    for name, text in said.items():
        if text is not None:
            action = action.snapshotProperty(name, text)
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


def expires_before(table: JavaObject, tidying: CompactionOptions) -> int:
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
