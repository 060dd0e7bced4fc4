# SPDX-License-Identifier: Apache-2.0
"""The write mode `merge`: refused with invalid keys, deterministic rows, one snapshot."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from limnos.names import engine
from limnos.pipeline.declaration import WriteDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.branches import leftover_branches
from limnos.pipeline.engine.keys import KeyViolation
from limnos.pipeline.engine.metadata import require_metadata
from tests.pipeline.engine.steps import on_branch, on_main, step_of, written

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
BY_ID = WriteDeclaration(mode=WriteMode.MERGE, keys=("id",))


@pytest.mark.parametrize(
    "rows, violation",
    [
        ("(1, 'a'), (1, 'b'), (2, 'c')", (2, "id=1")),
        ("(1, 'a'), (NULL, 'b')", (1, "id=NULL")),
        ("(NULL, 'a'), (NULL, 'b'), (3, 'c'), (3, 'd'), (4, 'e')", (4, "2 rows have a NULL")),
    ],
)
@pytest.mark.parametrize(
    "how", [BY_ID, WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",))], ids=["merge", "history"]
)
def test_null_and_duplicate_keys_are_refused_before_writing(
    spark: SparkSession, place: Parts, how: WriteDeclaration, rows: str, violation: tuple[int, str]
) -> None:
    """NULL and duplicate keys are counted and shown, and the branch is unchanged."""
    step = step_of((*place, "t"), how)

    with pytest.raises(KeyViolation, match=violation[1]) as refused:
        written(spark, step, spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, v)"))

    assert (refused.value.finding.broken, refused.value.finding.held) == (violation[0], False)
    assert refused.value.finding.kind == "key"
    assert len(require_metadata(spark, step.table).snapshots) == 1
    assert len(leftover_branches(spark, step.table)) == 1


def test_nondeterministic_source_is_evaluated_once(spark: SparkSession, place: Parts) -> None:
    """Rows that differ at each evaluation are evaluated once: the checked keys are the merged ones."""
    step = step_of((*place, "t"), WriteDeclaration(mode=WriteMode.MERGE, keys=("id",), delete_missing=True))
    frame = spark.range(200).select((f.rand() * 1e9).cast("long").alias("id")).dropDuplicates()

    branch, done = written(spark, step, frame)
    again, _ = written(spark, step, frame, branch="run_0123456789ab_2")

    rows = on_branch(spark, branch)
    assert len(rows) == len(set(rows)) == done.rows
    assert len(on_branch(spark, again)) == len(set(on_branch(spark, again)))


def test_unchanged_rows_are_not_updated(spark: SparkSession, place: Parts) -> None:
    """Only rows that differ are updated, with NULLs compared as values, in one snapshot."""
    step = step_of((*place, "t"), BY_ID)
    name = engine.render_spark(step.table)
    spark.sql(f"CREATE TABLE {name} AS SELECT * FROM VALUES (1, 'a'), (2, NULL), (3, 'c') AS t(id, v)")

    branch, done = written(
        spark, step, spark.sql("SELECT * FROM VALUES (1, 'a'), (2, NULL), (3, NULL), (4, 'd') AS t(id, v)")
    )

    assert on_branch(spark, branch) == [(1, "a"), (2, None), (3, None), (4, "d")]
    assert done.rows == 2
    metadata = require_metadata(spark, step.table)
    assert metadata.snapshot(done.head).parent_snapshot_id == branch.base


def test_incomparable_columns_are_always_written(spark: SparkSession, place: Parts) -> None:
    """A column of a type that cannot be compared is written whenever its key is in the source."""
    step = step_of((*place, "t"), BY_ID)
    spark.sql(f"CREATE TABLE {engine.render_spark(step.table)} AS SELECT 1 AS id, map('a', 1) AS m")

    branch, _ = written(spark, step, spark.sql("SELECT 1 AS id, map('b', 2) AS m"))

    assert on_branch(spark, branch) == [(1, {"b": 2})]
    assert on_main(spark, step.table) == [(1, {"a": 1})]


def test_table_of_key_columns_only_inserts_new_keys(spark: SparkSession, place: Parts) -> None:
    """Keys that are not in a table of key columns only are inserted, once."""
    step = step_of((*place, "t"), BY_ID)
    spark.sql(f"CREATE TABLE {engine.render_spark(step.table)} AS SELECT 1 AS id")

    branch, _ = written(spark, step, spark.sql("SELECT 1 AS id UNION ALL SELECT 2"))

    assert on_branch(spark, branch) == [(1,), (2,)]
