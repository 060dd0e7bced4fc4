# SPDX-License-Identifier: Apache-2.0
"""Each write mode writes rows to a step's branch, and nowhere else."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from limnos.pipeline.declaration import WriteDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.branches import BASE_MARK
from limnos.pipeline.engine.metadata import require_metadata
from tests.pipeline.engine.steps import on_branch, on_main, step_of, written

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_replace_writes_the_branch_and_not_main(spark: SparkSession, place: Parts) -> None:
    """A new table is empty for readers while its rows are on the branch, with run, step and base in the snapshot's
    summary.
    """
    step = step_of((*place, "t"))

    branch, done = written(spark, step, spark.sql("SELECT 1 AS id, 'a' AS s UNION ALL SELECT 2, NULL"))

    assert on_branch(spark, branch) == [(1, "a"), (2, None)]
    assert on_main(spark, step.table) == []
    assert branch.is_new
    assert branch.base is None
    metadata = require_metadata(spark, step.table)
    summary = metadata.snapshot(metadata.head(branch.name)).summary
    assert (done.head, done.rows) == (metadata.head(branch.name), 2)
    assert done.bytes == int(summary["added-files-size"]) > 0
    assert {key: value for key, value in summary.items() if key.startswith("limnos.")} == {
        "limnos.run": "0123456789ab",
        "limnos.step": step.name,
        "limnos.part": "1 of 1",
        BASE_MARK: "none",
    }


def test_replace_without_rows_empties_the_branch(spark: SparkSession, place: Parts) -> None:
    """A query without rows leaves an empty branch, not the previous rows."""
    step = step_of((*place, "t"))
    spark.sql(f"CREATE TABLE main.{place[1]}.t AS SELECT 1 AS id")

    branch, done = written(spark, step, spark.sql("SELECT 1 AS id WHERE false"))

    assert on_branch(spark, branch) == []
    assert on_main(spark, step.table) == [(1,)]
    assert done.rows == 0


def test_replace_covers_all_partitions_under_dynamic_overwrite(spark: SparkSession, place: Parts) -> None:
    """Partitions without new rows are replaced, too, also in a session with dynamic overwrite."""
    step = step_of((*place, "t"), partition=("p",))
    spark.sql(f"CREATE TABLE main.{place[1]}.t (id int, p int) PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO main.{place[1]}.t VALUES (1, 1), (2, 2)")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")

    branch, _ = written(spark, step, spark.sql("SELECT 9 AS id, 2 AS p"))

    assert on_branch(spark, branch) == [(9, 2)]
    assert spark.conf.get("spark.sql.sources.partitionOverwriteMode") == "dynamic"


def test_append_adds_rows_to_published_ones(spark: SparkSession, place: Parts) -> None:
    """The branch has the rows of `main` and the new ones; after a full read it has only the new ones."""
    step = step_of((*place, "t"), WriteDeclaration(mode=WriteMode.APPEND))
    spark.sql(f"CREATE TABLE main.{place[1]}.t AS SELECT 1 AS id")
    new = spark.sql("SELECT 1 AS id UNION ALL SELECT 2")

    branch, _ = written(spark, step, new)
    added = on_branch(spark, branch)
    again, _ = written(spark, step, new, whole=True, branch="run_0123456789ab_2")

    assert added == [(1,), (1,), (2,)]
    assert on_branch(spark, again) == [(1,), (2,)]
    assert on_main(spark, step.table) == [(1,)]
