# SPDX-License-Identifier: Apache-2.0
"""Writes of a step's rows to its branch: replace, append, merge, partitions or history.

Each write is one statement and one snapshot, only on the branch, with run and step in the summary. Must not know
sources or expectations.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from limnos.model.errors import NotFound
from limnos.names import engine
from limnos.pipeline.declaration import WriteMode
from limnos.pipeline.engine.branches import WriteKind, base_mark, branch_identifier, restore
from limnos.pipeline.engine.changes import fit_frame
from limnos.pipeline.engine.first_loads import FirstLoad, is_large_first_load
from limnos.pipeline.engine.history.writes import HistorySource, keep_history
from limnos.pipeline.engine.inserting import insert
from limnos.pipeline.engine.keys import KeyViolation
from limnos.pipeline.engine.merging import merge
from limnos.pipeline.engine.metadata import LoadedTable, TableMetadata, require_metadata
from limnos.pipeline.engine.session import settings, snapshot_summary_settings
from limnos.pipeline.failures import WholeReadNeeded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from limnos.pipeline.declaration import StepDeclaration
    from limnos.pipeline.outcomes import StepBranch

logger = logging.getLogger(__name__)

PART_MARK = "limnos.part"
_RECORDS = "added-records"
_BYTES = "added-files-size"
_MERGED = tuple(f"spark.merge-into.num-target-rows-{each}" for each in ("inserted", "updated", "deleted"))
_INSERTS = {
    WriteMode.REPLACE: WriteKind.OVERWRITE,
    WriteMode.APPEND: WriteKind.APPEND,
    WriteMode.PARTITIONS: WriteKind.OVERWRITE_PARTITIONS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The result of a write: the branch's head, and the counts of rows and bytes written; zero if nothing changed."""

    head: int
    rows: int
    bytes: int


def write(
    spark: SparkSession,
    step: StepDeclaration,
    *,
    frame: DataFrame,
    branch: StepBranch,
    marks: Mapping[str, str],
    whole: bool = False,
    run_at: dt.datetime | None = None,
    schema: StructType | None = None,
    excluded: DataFrame | None = None,
    on_staged: Callable[[DataFrame], None] | None = None,
) -> WriteResult:
    """Write the step's rows to `branch` in the step's mode, with `marks` in the snapshot's summary.

    If the response to the commit is lost, the branch is read: a commit that succeeded is not an error.

    Args:
        spark: The session.
        step: The step, with its write mode.
        frame: The rows.
        branch: The branch, which is new or unchanged since its last write.
        marks: Entries for the snapshot's summary.
        whole: Whether an incremental step read all rows, so that in mode `append` they replace the earlier rows.
        run_at: The run's time, required for a history without `as_of` or with `delete_missing`.
        schema: The table's columns, if they are known.
        excluded: Rows that rules took out, whose keys are not missing (`delete_missing`).
        on_staged: Called with the staged rows of a merge before anything is written.

    Raises:
        WholeReadNeeded: An incremental step must read all of its inputs. Nothing is written.
        KeyViolation: The branch is as before.
        BadRequest: The plan would write elsewhere. Nothing is written.
        NotFound: The branch or its table was dropped by another client.
    """
    columns = schema or spark.table(engine.render_spark(branch.table)).schema
    entries = {**marks, **base_mark(branch), PART_MARK: "1 of 1"}
    if is_large_first_load(step, frame, branch=branch):
        load = FirstLoad(step, frame, branch=branch, schema=columns)
        metadata = _run_write(spark, load.insert, branch=branch, entries=entries)
        try:
            is_done = load.check(head=metadata.head(branch.name), on_written=on_staged)
        except KeyViolation:
            restore(spark, branch)
            raise
        if is_done:
            return _write_result(metadata, branch=branch)
        restore(spark, branch)
    carry_out = partial(
        _carry_out,
        step,
        frame=frame,
        branch=branch,
        schema=columns,
        whole=whole,
        run_at=run_at,
        excluded=excluded,
        on_staged=on_staged,
    )
    return _write_result(_run_write(spark, carry_out, branch=branch, entries=entries), branch=branch)


def _run_write(
    spark: SparkSession,
    carry_out: Callable[[], LoadedTable | None],
    *,
    branch: StepBranch,
    entries: Mapping[str, str],
) -> TableMetadata:
    """Write a snapshot with entries in its summary, and return the table's metadata after it. A commit whose response
    was lost is no error.
    """
    loaded = None
    with settings(spark, snapshot_summary_settings(entries)):
        try:
            loaded = carry_out()
        except WholeReadNeeded:
            raise
        except Exception:
            metadata = require_metadata(spark, branch.table)
            if not _has_landed(metadata, branch=branch, marks=entries):
                raise
            logger.info("The response to a write to %s was lost, but the write succeeded", branch_identifier(branch))
    return require_metadata(spark, branch.table) if loaded is None else loaded.metadata


def _carry_out(
    step: StepDeclaration,
    *,
    frame: DataFrame,
    branch: StepBranch,
    schema: StructType,
    whole: bool,
    run_at: dt.datetime | None,
    excluded: DataFrame | None,
    on_staged: Callable[[DataFrame], None] | None,
) -> LoadedTable | None:
    """Write the rows. Returns the table as the commit left it, if that is known."""
    mode = step.write.mode
    if mode is WriteMode.MERGE:
        return merge(step, frame, branch=branch, schema=schema, excluded=excluded, on_staged=on_staged)
    if mode is WriteMode.HISTORY:
        increment = step.incremental and not whole and branch.base is not None
        source = HistorySource(frame=frame, run_at=run_at, increment=increment, excluded=excluded)
        return keep_history(step, source, branch=branch, schema=schema)
    kind = WriteKind.OVERWRITE if mode is WriteMode.APPEND and whole else _INSERTS[mode]
    return insert(fit_frame(frame, schema), branch=branch, kind=kind)


def _has_landed(metadata: TableMetadata, *, branch: StepBranch, marks: Mapping[str, str]) -> bool:
    head = metadata.snapshot(metadata.head(branch.name))
    if head is None or head.snapshot_id == branch.head:
        return False
    return all(head.summary.get(key) == value for key, value in marks.items())


def _write_result(metadata: TableMetadata, *, branch: StepBranch) -> WriteResult:
    head = metadata.head(branch.name)
    if head is None:
        raise NotFound(f"Branch {branch.name} was dropped by another client. Run the pipeline again.", kind="branch")
    snapshot = metadata.snapshot(head)
    if head == branch.head or snapshot is None:
        return WriteResult(head=head, rows=0, bytes=0)
    summary = snapshot.summary
    merged_counts = [int(summary.get(each, "0")) for each in _MERGED]
    rows = sum(merged_counts) if any(each in summary for each in _MERGED) else int(summary.get(_RECORDS, "0"))
    return WriteResult(head=head, rows=rows, bytes=int(summary.get(_BYTES, "0")))
