# SPDX-License-Identifier: Apache-2.0
"""Steps of tests, executed without the runner: prepared, begun, written, and published by the client."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from limnos.client import Client
from limnos.names import engine
from limnos.pipeline.declaration import Sql, StepDeclaration, WriteDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.branches import begin, head
from limnos.pipeline.engine.tables import prepare
from limnos.pipeline.engine.writes import WriteResult, write
from limnos.pipeline.outcomes import StepBranch
from limnos.pipeline.publish import publish_operations

BRANCH = "run_0123456789ab_1"
RUN_AT = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
Row = tuple[object, ...]


def step_of(table: Parts, how: WriteDeclaration | None = None, **more: object) -> StepDeclaration:
    """Return a step that makes `table`; its body is not used."""
    return StepDeclaration(table=table, body=Sql(text="SELECT 1"), write=how or WriteDeclaration(), **more)


def written(
    spark: SparkSession,
    step: StepDeclaration,
    frame: DataFrame,
    *,
    branch: str = BRANCH,
    run_at: dt.datetime = RUN_AT,
    whole: bool = False,
) -> tuple[StepBranch, WriteResult]:
    """Prepare the table, begin the branch, and write the DataFrame."""
    ready = prepare(spark, step, frame=frame, branch=branch)
    loaded, schema = (ready.existing_table, ready.schema) if ready.is_ready else (None, None)
    step_branch = replace(begin(spark, step, branch=branch, loaded=loaded), columns_to_drop=ready.columns_to_drop)
    marks = {"limnos.run": "0123456789ab", "limnos.step": step.name}
    return step_branch, write(
        spark, step, frame=frame, branch=step_branch, marks=marks, whole=whole, run_at=run_at, schema=schema
    )


def published(admin: Client, spark: SparkSession, *branches: StepBranch) -> None:
    """Publish branches in their current state, in one transaction."""
    now = [replace(each, head=head(spark, each)) for each in branches]
    metadata = {each.table: admin.tables.load(list(each.table)).metadata for each in now if each.columns_to_drop}
    admin.transactions.run(now[0].table[0], publish_operations(now, metadata=metadata))


def on_branch(spark: SparkSession, branch: StepBranch) -> list[Row]:
    """Return the rows of the branch."""
    return rows(spark, f"SELECT * FROM {engine.render_spark(branch.table)} VERSION AS OF '{branch.name}'")


def on_main(spark: SparkSession, table: Parts) -> list[Row]:
    """Return the rows of `main`."""
    return rows(spark, f"SELECT * FROM {engine.render_spark(table)}")


def rows(spark: SparkSession, statement: str) -> list[Row]:
    """Return the rows of a query, sorted."""
    return ordered([tuple(row) for row in spark.sql(statement).collect()])


def ordered(table_rows: Sequence[Row]) -> list[Row]:
    """Sort rows, including NULLs."""
    return sorted(table_rows, key=repr)
