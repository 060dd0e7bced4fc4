# SPDX-License-Identifier: Apache-2.0
"""Inserts into a branch by one statement: append, overwrite all, or overwrite partitions.

The statement is checked to write the branch. Must not know merges or histories.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from limnos.pipeline.engine.branches import WriteKind, branch_identifier, require_branch, run_on_branch
from limnos.pipeline.engine.metadata import LoadedTable, is_classic
from limnos.pipeline.engine.session import settings, temporary_view
from limnos.pipeline.outcomes import StepBranch

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def insert(frame: DataFrame, *, branch: StepBranch, kind: WriteKind) -> LoadedTable | None:
    """Insert the DataFrame's columns by position in one statement that is checked to write the branch. Returns the
    table as the commit left it; None over Spark Connect.
    """
    spark = frame.sparkSession
    verb = "INTO" if kind is WriteKind.APPEND else "OVERWRITE"
    mode = "dynamic" if kind is WriteKind.OVERWRITE_PARTITIONS else "static"
    with temporary_view(frame) as view, settings(spark, {_OVERWRITE_MODE: mode}):
        statement = f"INSERT {verb} {branch_identifier(branch)} SELECT * FROM {view}"
        if is_classic(spark):
            return run_on_branch(spark, statement, branch=branch, kinds=frozenset({kind}))
        require_branch(spark, statement, branch=branch, kinds=frozenset({kind}))
        _insert_connected(frame, branch=branch, kind=kind)
        return None


def _insert_connected(frame: DataFrame, *, branch: StepBranch, kind: WriteKind) -> None:
    """Insert by the DataFrame's own writer: over Spark Connect, observed counts are reported only to the call that runs
    the plan.
    """
    writer = frame.writeTo(branch_identifier(branch))
    if kind is WriteKind.APPEND:
        writer.append()
    elif kind is WriteKind.OVERWRITE:
        writer.overwrite(f.lit(True))
    else:
        writer.overwritePartitions()
