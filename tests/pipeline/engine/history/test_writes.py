# SPDX-License-Identifier: Apache-2.0
"""The write mode `history`, case by case; test_modes has random stories."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from limnos.model.errors import BadRequest
from limnos.names import engine
from limnos.pipeline.declaration import StepDeclaration, WriteDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.branches import head
from limnos.pipeline.engine.history import writes
from limnos.pipeline.engine.keys import KeyViolation
from tests.pipeline.engine.steps import RUN_AT, on_branch, step_of, written
from tests.pipeline.engine.write_models import instant

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TIMED = WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",), as_of="at", tracked=("v",), delete_when="v = 'gone'")
AT = [instant(minute) for minute in range(10)]


@pytest.mark.parametrize(
    "batches, expected",
    [
        pytest.param([[("a", 1), ("b", 3)]], [("a", 1, 3), ("b", 3, None)], id="several-at-once"),
        pytest.param([[("a", 1)], [("a", 3)]], [("a", 1, None)], id="no-change"),
        pytest.param([[("a", 1)], [("b", 3)], [("c", 2)]], [("a", 1, 2), ("b", 3, None), ("c", 2, 3)], id="late"),
        pytest.param([[("a", 3)], [("b", 1)]], [("a", 3, None), ("b", 1, 3)], id="before-all"),
        pytest.param([[("a", 3)], [("a", 1)]], [("a", 1, None)], id="known-earlier"),
        pytest.param([[("a", 1)], [("b", 1)]], [("b", 1, None)], id="same-moment-corrected"),
        pytest.param([[("a", 1)], [("gone", 3)]], [("a", 1, 3)], id="end"),
        pytest.param([[("a", 1)], [("gone", 3)], [("gone", 5)]], [("a", 1, 3)], id="ended-twice"),
        pytest.param([[("a", 1)], [("gone", 3)], [("a", 5)]], [("a", 1, 3), ("a", 5, None)], id="return"),
        pytest.param([[("a", 1)], [("gone", 3)], [("a", 3)]], [("a", 1, None)], id="end-taken-back"),
        pytest.param([[("a", 1)], [("gone", 1)]], [], id="never-was"),
        pytest.param([[("a", 1), ("b", 5)], [("gone", 3)]], [("a", 1, 3), ("b", 5, None)], id="late-end"),
        pytest.param([[(None, 1)], [("a", 2)], [(None, 3)]], [("a", 2, 3), (None, 1, 2), (None, 3, None)], id="nulls"),
    ],
)
def test_key_states_give_expected_timeline(
    spark: SparkSession,
    place: Parts,
    batches: list[list[tuple[str | None, int]]],
    expected: list[tuple[str | None, int, int | None]],
) -> None:
    """Late, duplicate, ended and returning states of a key give the expected timeline."""
    step = step_of((*place, "t"), replace(TIMED, delete_when="v <=> 'gone'"))

    timelines = timelines_of(spark, step, batches)

    assert timelines == {(v, AT[start], None if end is None else AT[end], end is None) for v, start, end in expected}


def test_events_that_follow_their_rows_need_no_timeline(
    spark: SparkSession, place: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New, changed, equal and ended states after the newest row of a key are written without the key's timeline; the
    time of a history without `as_of` is that of the run.
    """
    monkeypatch.setattr(writes, "timeline_events", None)
    now = step_of((*place, "now"), WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",)))
    batches = [[("a", 1)], [("a", 2)], [("b", 3)], [("gone", 4)], [("gone", 5)], [("b", 6)]]

    timelines = timelines_of(spark, step_of((*place, "t"), TIMED), batches)
    current = timelines_of(spark, now, [[("a", 1)], [("b", 1)]])

    assert timelines == {
        ("a", AT[1], AT[3], False),
        ("b", AT[3], AT[4], False),
        ("b", AT[6], None, True),
    }
    first = RUN_AT.replace(tzinfo=None)
    second = first + dt.timedelta(days=1)
    assert current == {("a", first, second, False), ("b", second, None, True)}


def timelines_of(
    spark: SparkSession, step: StepDeclaration, batches: list[list[tuple[str | None, int]]]
) -> set[tuple[object, ...]]:
    """Return the rows of one key after the batches."""
    frames = [[(1, value, AT[minute]) for value, minute in batch] for batch in batches]
    name = engine.render_spark(step.table)
    for number, rows in enumerate(frames):
        frame = spark.createDataFrame(rows, "id int, v string, at timestamp")
        run_at = RUN_AT + dt.timedelta(days=number)
        branch, _ = written(spark, step, frame, branch=f"run_0123456789ab_{number + 1}", run_at=run_at)
        if branch.base is not None:
            spark.sql(f"CALL main.system.fast_forward('{'.'.join(step.table[1:])}', 'main', '{branch.name}')")
        else:
            spark.sql(f"ALTER TABLE {name} CREATE BRANCH main AS OF VERSION {head(spark, branch)}")
    rows = spark.sql(f"SELECT v, valid_from, valid_to, is_current FROM {name}").collect()
    assert len(rows) == len({tuple(row) for row in rows})
    return {tuple(row) for row in rows}


def test_duplicate_and_missing_times_are_refused(spark: SparkSession, place: Parts) -> None:
    """A source may have several states of a key, but one per time, and each needs a time."""
    step = step_of((*place, "t"), TIMED)
    for moments in ((AT[1], AT[1]), (AT[1], None)):
        rows = [(1, "a", moments[0]), (1, "b", moments[1])]

        with pytest.raises(KeyViolation):
            written(spark, step, spark.createDataFrame(rows, "id int, v string, at timestamp"))


def test_unchanged_timelines_add_no_snapshot(spark: SparkSession, place: Parts) -> None:
    """A source that changes no timeline adds no snapshot, and the step is done."""
    step = step_of((*place, "t"), WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",)))
    branch, _ = written(spark, step, spark.sql("SELECT 1 AS id, 'a' AS v"))
    spark.sql(f"ALTER TABLE {engine.render_spark(step.table)} CREATE BRANCH main AS OF VERSION {head(spark, branch)}")

    again, done = written(
        spark,
        step,
        spark.sql("SELECT 1 AS id, 'a' AS v"),
        branch="run_0123456789ab_2",
        run_at=RUN_AT + dt.timedelta(days=1),
    )

    assert (done.head, done.rows) == (again.head, 0)


def test_maps_are_compared_and_lists_of_maps_refused(spark: SparkSession, place: Parts) -> None:
    """Maps are compared by their entries; for a list of maps the error says what to declare instead."""
    step = step_of((*place, "t"), WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",)))
    deep = step_of((*place, "deep"), WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",)))

    branch, _ = written(spark, step, spark.sql("SELECT 1 AS id, map('a', 1, 'b', 2) AS m"))

    assert [row[:2] for row in on_branch(spark, branch)] == [(1, {"a": 1, "b": 2})]
    with pytest.raises(BadRequest, match="with `tracked`"):
        written(spark, deep, spark.sql("SELECT 1 AS id, array(map('a', 1)) AS m"))


def test_time_columns_have_the_type_of_as_of(spark: SparkSession, place: Parts) -> None:
    """The history's time columns have the type of `as_of`."""
    step = step_of(
        (*place, "t"), WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",), as_of="day", valid_from="from_day")
    )

    branch, _ = written(spark, step, spark.sql("SELECT 1 AS id, DATE'2026-01-02' AS day"))

    assert on_branch(spark, branch) == [(1, dt.date(2026, 1, 2), dt.date(2026, 1, 2), None, True)]
