# SPDX-License-Identifier: Apache-2.0
"""Compaction of a dataset: merges small files, expires old snapshots and removes orphan files of killed statements.

Must not know plans or requests. Iceberg's own actions do the work. Each action is a separate commit, so the finished
actions of an interrupted compaction remain. The rows of the dataset do not change.
"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Final

from limnos.rooms.sqlpp.engine.tables import load_iceberg_table, require_pinned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

    from limnos.rooms.sqlpp.language.jobs import CompactionOptions, DatasetRef

logger = logging.getLogger(__name__)
GROUP_BYTES: Final = 512 << 20
"""Size of the data files that one commit rewrites."""
DELETES_OF_A_FILE: Final = 8
"""The minimum number of delete files with which a data file is rewritten, regardless of its size."""
SWEPT: Final = "sqlpp.swept-before-ms"
"""Summary property of a snapshot: orphan files older than this time (in ms) have been removed."""
SWEEP_EVERY_MS: Final = 86_400_000
_PLAIN: Final = re.compile(r"(file|s3|s3a)://?/?[A-Za-z0-9_./=-]+")
"""Locations that every library spells in the same way. At other locations Iceberg could mistake a live file for an
orphan file.
"""


def compact_dataset(
    spark: SparkSession, ref: DatasetRef, *, options: CompactionOptions, number: str, stop: Callable[[], None]
) -> Iterator[str]:
    """Compact a dataset: rewrite small files, expire old snapshots, and delete orphan files if that is due.

    Args:
        spark: The session of the statement.
        ref: The dataset.
        options: The target file size, and the retention of snapshots and orphan files.
        number: The statement's id, which the new snapshot records.
        stop: Raises if the job has been cancelled or timed out; called before each step.

    Yields:
        One line of JSON with counts of files: `{"rewritten": 12, "written": 1, "debris": 0}`.
    """
    table = load_iceberg_table(spark, ref)
    require_pinned(table, ref)
    entries = {"rewritten": 0, "written": 0, "debris": 0}
    if table.currentSnapshot() is not None:
        stop()
        sweeps_to, marked = sweep_plan(_sweep_times(table), options.debris_before_ms)
        rewrite_files = _rewrite_files(
            spark, table, options=options, properties={"sqlpp.statement": number, SWEPT: marked}
        )
        entries |= {
            "rewritten": int(rewrite_files.rewrittenDataFilesCount()),
            "written": int(rewrite_files.addedDataFilesCount()),
        }
        stop()
        table.refresh()
        before_ms = expires_before(table, options)
        if _has_older(table, before_ms) and has_checked_only(table, options.expirable, before_ms=before_ms):
            _actions(spark).expireSnapshots(table).expireOlderThan(before_ms).retainLast(1).execute()
        stop()
        if sweeps_to is not None:
            entries["debris"] = _delete_orphan_files(spark, table, before_ms=sweeps_to)
    yield json.dumps(entries)


def sweep_plan(marks: Iterable[str], before_ms: int | None) -> tuple[int | None, str | None]:
    """Decide whether orphan files are removed now: at most once a day.

    Args:
        marks: The values of the property `SWEPT` in the table's snapshots.
        before_ms: Orphan files older than this may be removed; None if none may be removed.

    Returns:
        The time before which orphan files are removed now, or None; and the value of `SWEPT` for the new snapshot.
    """
    before = max((int(each) for each in marks if each.isascii() and each.isdigit()), default=None)
    if before_ms is None:
        return None, None if before is None else str(before)
    if before is not None and before_ms < before + SWEEP_EVERY_MS:
        return None, str(before)
    return before_ms, str(before_ms)


def _sweep_times(table: JavaObject) -> list[str]:
    """Return the values of the property `SWEPT` in the table's snapshots."""
    return [str(result) for one in table.snapshots() if (result := one.summary().get(SWEPT)) is not None]


def _has_older(table: JavaObject, before_ms: int) -> bool:
    """Return whether a snapshot other than the current one is older than `before_ms`.

    If there is none, the caller skips the expiry of snapshots: listing their files is the slowest step.
    """
    current = table.currentSnapshot().snapshotId()
    return any(one.timestampMillis() < before_ms for one in table.snapshots() if one.snapshotId() != current)


def has_checked_only(table: JavaObject, checked: Sequence[str], *, before_ms: int) -> bool:
    """Return whether the server has checked the files of all snapshots older than `before_ms`.

    Expiring a snapshot deletes the files that its manifests name, so others are left for the next compaction.
    """
    expiring = {str(one.manifestListLocation()) for one in table.snapshots() if int(one.timestampMillis()) < before_ms}
    return expiring <= frozenset(checked)


def _actions(spark: SparkSession) -> JavaObject:
    machine = spark._jvm  # noqa: SLF001 - PySpark has no other way to Iceberg's actions
    if machine is None:
        raise RuntimeError("Spark has been stopped")
    return machine.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)  # noqa: SLF001


def _rewrite_files(
    spark: SparkSession, table: JavaObject, *, options: CompactionOptions, properties: Mapping[str, str | None]
) -> JavaObject:
    action = _actions(spark).rewriteDataFiles(table).binPack()
    for name, text in properties.items():
        if text is not None:
            action = action.snapshotProperty(name, text)
    for name, value in (
        ("target-file-size-bytes", options.target_bytes),
        ("max-file-group-size-bytes", GROUP_BYTES),
        ("min-input-files", 2),
        ("delete-file-threshold", DELETES_OF_A_FILE),
        ("remove-dangling-deletes", "true"),
        ("partial-progress.enabled", "true"),
        ("max-concurrent-file-group-rewrites", 1),
    ):
        action = action.option(name, str(value))
    return action.execute()


def expires_before(table: JavaObject, options: CompactionOptions) -> int:
    """Return the time before which snapshots expire: by age, or a later time if there are too many snapshots.

    A dataset retains about `states_max` snapshots. This limit does not expire snapshots made after `retained_after_ms`.
    """
    results = sorted(int(one.timestampMillis()) for one in table.snapshots())
    too_many = results[-options.states_max] if len(results) > options.states_max else 0
    return max(options.expires_before_ms, min(too_many, options.retained_after_ms))


def _delete_orphan_files(spark: SparkSession, table: JavaObject, *, before_ms: int) -> int:
    """Delete the table's orphan files: older than `before_ms`, and referenced by no snapshot. Returns their count.

    If the table's location can be spelled in several ways, no file is deleted and the result is 0.
    """
    location = str(table.location())
    if not _PLAIN.fullmatch(location):
        logger.info("Orphan files are not deleted at %s: this location can be spelled in several ways", location)
        return 0
    result = _actions(spark).deleteOrphanFiles(table).olderThan(before_ms).execute()
    return sum(1 for _ in result.orphanFileLocations())
