# SPDX-License-Identifier: Apache-2.0
"""Large first loads of merges: no stage, keys checked in the written rows, the branch restored after a refusal."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from limnos.pipeline.declaration import WriteDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine import first_loads, inserting, staging, writes
from limnos.pipeline.engine.keys import KeyViolation
from limnos.pipeline.engine.metadata import require_metadata
from tests.pipeline.engine.steps import BRANCH, on_branch, on_main, step_of, written

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
BY_ID = WriteDeclaration(mode=WriteMode.MERGE, keys=("id",))


@pytest.fixture
def no_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every first load count as large, and a stage of rows fail."""

    def refuse(frame: DataFrame) -> DataFrame:
        raise AssertionError(f"staged: {frame}")

    monkeypatch.setattr(staging, "LARGE_BYTES", 0)
    monkeypatch.setattr(staging, "stage", refuse)


@pytest.mark.usefixtures("no_stage")
@pytest.mark.parametrize("delete_when", [None, "v = 'gone'"])
def test_large_first_load_is_inserted_without_a_stage(
    spark: SparkSession, place: Parts, delete_when: str | None
) -> None:
    """Rows of a new table are written by one insert of the source, whose rows differ at each evaluation."""
    step = step_of((*place, "t"), replace(BY_ID, delete_when=delete_when))
    frame = spark.range(200).select(f.col("id"), f.rand().cast("string").alias("v"))

    branch, done = written(spark, step, frame)

    assert done.rows == 200
    assert {row[0] for row in on_branch(spark, branch)} == set(range(200))
    assert [each.operation for each in require_metadata(spark, step.table).snapshots] == ["append", "append"]


@pytest.mark.usefixtures("no_stage")
@pytest.mark.parametrize(
    "rows, violation",
    [("(1, 'a'), (1, 'b'), (2, 'c')", (2, "id=1")), ("(1, 'a'), (NULL, 'b')", (1, "id=NULL"))],
)
def test_large_first_load_with_bad_keys_leaves_its_branch(
    spark: SparkSession, place: Parts, rows: str, violation: tuple[int, str]
) -> None:
    """NULL and duplicate keys of rows that were inserted are counted and shown, and the branch is as before."""
    step = step_of((*place, "t"), BY_ID)

    with pytest.raises(KeyViolation, match=violation[1]) as refused:
        written(spark, step, spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, v)"))

    assert refused.value.finding.broken == violation[0]
    metadata = require_metadata(spark, step.table)
    assert metadata.snapshot(metadata.head(BRANCH)).summary.get("added-records") is None
    assert on_main(spark, step.table) == []


def test_large_first_load_with_rows_to_delete_is_staged(
    spark: SparkSession, place: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of a row to delete counts as a duplicate, also if the row is not written."""
    monkeypatch.setattr(staging, "LARGE_BYTES", 0)
    step = step_of((*place, "t"), replace(BY_ID, delete_when="v = 'gone'"))

    branch, _ = written(spark, step, spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'gone') AS t(id, v)"))
    with pytest.raises(KeyViolation, match="id=1"):
        written(
            spark,
            step,
            spark.sql("SELECT * FROM VALUES (1, 'a'), (1, 'gone') AS t(id, v)"),
            branch="run_0123456789ab_2",
        )

    assert on_branch(spark, branch) == [(1, "a")]


@pytest.mark.parametrize("rows, is_refused", [("(1, 'a'), (2, 'b')", False), ("(1, 'a'), (1, 'b')", True)])
def test_keys_of_a_large_first_load_are_checked_after_a_lost_response(
    spark: SparkSession, place: Parts, monkeypatch: pytest.MonkeyPatch, rows: str, is_refused: bool
) -> None:
    """If the response to the insert is lost, the written rows count, and their keys are checked."""

    def insert_and_lose(*arguments: object, **more: object) -> None:
        inserting.insert(*arguments, **more)
        raise ConnectionError("the response is lost")

    monkeypatch.setattr(staging, "LARGE_BYTES", 0)
    monkeypatch.setattr(first_loads, "insert", insert_and_lose)
    step = step_of((*place, "t"), BY_ID)
    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, v)")

    with pytest.raises(KeyViolation) if is_refused else nullcontext():
        written(spark, step, frame)

    metadata = require_metadata(spark, step.table)
    assert metadata.snapshot(metadata.head(BRANCH)).summary.get("added-records") == (None if is_refused else "2")


@pytest.mark.parametrize("rows", ["(1, 'a'), (1, 'b')", "(1, 'a'), (2, 'gone')"], ids=["bad keys", "deletes"])
def test_unrestored_branch_is_no_success(
    spark: SparkSession, place: Parts, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    """If the branch cannot be set back, the written rows, whose keys are bad or unknown, do not count as a success."""

    def fail(*_: object) -> None:
        raise ConnectionError("the server is away")

    monkeypatch.setattr(staging, "LARGE_BYTES", 0)
    monkeypatch.setattr(writes, "restore", fail)
    step = step_of((*place, "t"), replace(BY_ID, delete_when="v = 'gone'"))

    with pytest.raises(ConnectionError):
        written(spark, step, spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, v)"))
