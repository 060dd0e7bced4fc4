# SPDX-License-Identifier: Apache-2.0
"""An incremental step reads only new rows if the result is the same; otherwise it reads all rows and gives the
reason.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession

from limnos.client import Client
from limnos.names import engine
from limnos.pipeline.checkpoints import INPUTS
from limnos.pipeline.declaration import Pipeline, Sql, StepDeclaration, WriteDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.definitions import DEFINITION, encode
from limnos.pipeline.engine.branches import begin
from limnos.pipeline.engine.definitions import definition_of
from limnos.pipeline.engine.incremental import (
    ReadChoice,
    choose,
    incremental_rows,
    marks_of,
    published_checkpoint,
    read_whole,
)
from limnos.pipeline.engine.pinned_reads import pin_tables, with_reads
from limnos.pipeline.engine.relations import query_names, relations
from limnos.pipeline.engine.session import settings, snapshot_summary_settings
from limnos.pipeline.engine.tables import prepare
from limnos.pipeline.engine.writes import write
from tests.pipeline.engine.steps import BRANCH, RUN_AT, on_main, published, step_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
APPEND = WriteDeclaration(mode=WriteMode.APPEND)


@pytest.fixture
def source(spark: SparkSession, place: Parts) -> Parts:
    """A table with two rows, and a second table."""
    spark.sql(f"CREATE TABLE main.{place[1]}.names AS SELECT 1 AS id, 'one' AS name")
    table = (*place, "source")
    spark.sql(f"CREATE TABLE {engine.render_spark(table)} AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(id, v)")
    return table


def declared(source: Parts, sql: str, how: WriteDeclaration = APPEND) -> StepDeclaration:
    """An incremental step over the source (`S`) and the names (`N`)."""
    text = re.sub(r"\bS\b", f"main.{source[1]}.source", sql)
    text = re.sub(r"\bN\b", f"main.{source[1]}.names", text)
    return replace(step_of((*source[:2], "made"), how, incremental=True), body=Sql(text=text))


def defined(spark: SparkSession, step: StepDeclaration) -> dict[str, str]:
    """Return the definition of a step of a pipeline without sources and parameters."""
    pipeline = Pipeline(name="p", catalog="main", steps=(step,))
    query = query_names(spark, step.body.text)
    return definition_of(spark, step, pipeline=pipeline, sources=(), query=query, values={})


def reading(
    spark: SparkSession, step: StepDeclaration, source: Parts, *, full: bool = False
) -> tuple[ReadChoice, DataFrame, dict]:
    """Return the step's next read and its DataFrame; all rows if the plan requires it."""
    pins = pin_tables(spark, [source, (*source[:2], "names")])
    checkpoint = published_checkpoint(spark, step.table, is_lance=False)
    chosen = choose(spark, step, pins=pins, definition=defined(spark, step), checkpoint=checkpoint, full=full)
    named = relations(spark, step.body.text)
    frame = spark.sql(with_reads(spark, step.body.text, pinned_reads=chosen.pinned_reads, named=named, catalog="main"))
    new = None if chosen.whole_because or chosen.nothing_new else incremental_rows(frame, chosen)
    if new is not None and new.whole_because is None:
        return chosen, new.frame, pins
    reason = None if new is None else new.whole_because
    if reason is not None:
        chosen = read_whole(spark, pins=pins, reason=reason)
        frame = spark.sql(
            with_reads(spark, step.body.text, pinned_reads=chosen.pinned_reads, named=named, catalog="main")
        )
    return chosen, frame, pins


def run(spark: SparkSession, admin: Client, step: StepDeclaration, source: Parts) -> ReadChoice:
    """Run the step once, and publish it."""
    chosen, frame, pins = reading(spark, step, source)
    prepare(spark, step, frame=frame, branch=BRANCH)
    branch = begin(spark, step, branch=BRANCH)
    whole = chosen.whole_because is not None
    marks = marks_of(pins, definition=defined(spark, step))
    write(spark, step, frame=frame, branch=branch, marks=marks, whole=whole, run_at=RUN_AT)
    published(admin, spark, branch)
    return chosen


def test_second_run_reads_only_appended_rows(spark: SparkSession, admin: Client, source: Parts) -> None:
    """The first run reads all rows, the second the appended ones, and the run after an update all rows again."""
    step = declared(source, "SELECT s.id, upper(v) AS v FROM S AS s WHERE id > 1")
    name = engine.render_spark(source)

    first = run(spark, admin, step, source)
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c')")
    second = run(spark, admin, step, source)
    third = reading(spark, step, source)[0]
    spark.sql(f"UPDATE {name} SET v = 'x' WHERE id = 2")
    fourth = run(spark, admin, step, source)

    assert first.whole_because == "nothing was published yet"
    assert (second.whole_because, second.increments) == (None, {source})
    assert second.pinned_reads[source].pin.since == first.pinned_reads[source].pin.snapshot
    assert third.nothing_new
    assert "append" in (fourth.whole_because or "")
    assert on_main(spark, step.table) == [(2, "X"), (3, "C")]


NONE, NOT_READ = "the checkpoint of the published table can't be read", "was not read before"
FORGED = [
    ("{", NONE),
    ("[1]", NONE),
    ("17", NONE),
    ('{"T": 17}', "has expired, or the table was replaced"),
    ('{"T": "x"}', NOT_READ),
    ('{"T": [1]}', NOT_READ),
    ('{"T": true}', NOT_READ),
    ("{}", NOT_READ),
]


def test_invalid_checkpoint_causes_full_read(spark: SparkSession, admin: Client, source: Parts) -> None:
    """A forged or malformed checkpoint, which any writer of the table can set, causes a full read with the reason, and
    no failure.
    """
    step = declared(source, "SELECT id, v FROM S")
    run(spark, admin, step, source)
    table = engine.render_spark(source)
    reasons = []
    for mark, _ in FORGED:
        forged = {INPUTS: mark.replace("T", table), DEFINITION: encode(defined(spark, step))}
        with settings(spark, snapshot_summary_settings(forged)):
            spark.sql(f"INSERT INTO {engine.render_spark(step.table)} VALUES (9, 'z')")
        reasons.append(reading(spark, step, source)[0].whole_because or "")
    repaired = run(spark, admin, step, source)

    assert [
        reason for (_, reason), actual_reason in zip(FORGED, reasons, strict=True) if reason not in actual_reason
    ] == []
    assert repaired.whole_because is not None
    assert on_main(spark, step.table) == [(1, "a"), (2, "b")]


def test_merge_step_reads_changed_rows_incrementally(spark: SparkSession, admin: Client, source: Parts) -> None:
    """A step that merges by key reads changed rows incrementally."""
    step = declared(source, "SELECT id, v FROM S", WriteDeclaration(mode=WriteMode.MERGE, keys=("id",)))

    run(spark, admin, step, source)
    spark.sql(f"UPDATE {engine.render_spark(source)} SET v = 'x' WHERE id = 2")
    second = reading(spark, step, source)[1].collect()
    chosen = run(spark, admin, step, source)

    assert [tuple(row) for row in second] == [(2, "x")]
    assert chosen.whole_because is None
    assert on_main(spark, step.table) == [(1, "a"), (2, "x")]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, v FROM S",
        "SELECT s.id, n.name AS v FROM S s LEFT JOIN N n ON s.id = n.id",
        "SELECT s.id, n.name AS v FROM N n RIGHT JOIN S s ON s.id = n.id",
        "SELECT id, v FROM S WHERE id NOT IN (SELECT id FROM N)",
        "WITH c AS (SELECT * FROM S) SELECT id, v FROM c UNION ALL SELECT id, name FROM N",
        "SELECT s.id, (SELECT max(name) FROM N) AS v FROM S s",
        "SELECT id, explode(array(v, v)) AS v FROM S",
        "SELECT s.id, v FROM S s JOIN (SELECT id, count(*) c FROM N GROUP BY id) USING (id)",
    ],
)
def test_row_by_row_queries_are_incremental(spark: SparkSession, admin: Client, source: Parts, sql: str) -> None:
    """For queries that work row by row, the step reads new rows only, and the result equals that of a full run."""
    step = declared(source, sql)
    run(spark, admin, step, source)
    spark.sql(f"INSERT INTO {engine.render_spark(source)} VALUES (1, 'new'), (7, 'new')")

    chosen = run(spark, admin, step, source)

    assert chosen.whole_because is None
    step_rows = on_main(spark, step.table)
    assert step_rows == sorted([tuple(row) for row in spark.sql(step.body.text).collect()], key=repr)


@pytest.mark.parametrize(
    "sql, word",
    [
        ("SELECT id, max(v) AS v FROM S GROUP BY id", "an aggregate"),
        ("SELECT DISTINCT id, v FROM S", "DISTINCT"),
        ("SELECT id, first_value(v) OVER (ORDER BY id) AS v FROM S", "a window"),
        ("SELECT id, v FROM S ORDER BY id LIMIT 1", "LIMIT"),
        ("SELECT id, v FROM S EXCEPT SELECT id, name FROM N", "EXCEPT"),
        ("SELECT a.id, b.v FROM S a JOIN S b ON a.id = b.id", "both changed"),
        ("WITH c AS (SELECT * FROM S) SELECT a.id, b.v FROM c a JOIN c b ON a.id = b.id", "both changed"),
        ("SELECT n.id, s.v FROM N n LEFT JOIN S s ON s.id = n.id", "LeftOuter"),
        ("SELECT n.id, n.name AS v FROM N n LEFT ANTI JOIN S s ON s.id = n.id", "LeftAnti"),
        ("SELECT n.id, s.v FROM N n FULL JOIN S s ON s.id = n.id", "FullOuter"),
        ("SELECT id, name AS v FROM N WHERE id IN (SELECT id FROM S)", "subquery"),
        ("SELECT id, v FROM S TABLESAMPLE (50 PERCENT)", "TABLESAMPLE"),
    ],
)
def test_queries_over_several_rows_cause_full_read(
    spark: SparkSession, admin: Client, source: Parts, sql: str, word: str
) -> None:
    """Queries over several rows cause a full read, and the reason names the part of the query."""
    step = declared(source, sql)
    run(spark, admin, step, source)
    spark.sql(f"INSERT INTO {engine.render_spark(source)} VALUES (3, 'c')")

    chosen, _, _ = reading(spark, step, source)

    assert word in (chosen.whole_because or "")
    assert {each.pin.since for each in chosen.pinned_reads.values()} == {None}


@pytest.mark.parametrize(
    "how, word",
    [
        (WriteDeclaration(), "`replace` rewrites"),
        (WriteDeclaration(mode=WriteMode.PARTITIONS), "`partitions` replaces"),
        (WriteDeclaration(mode=WriteMode.MERGE, keys=("id",), delete_missing=True), "`delete_missing`"),
    ],
)
def test_modes_that_need_all_rows_cause_full_read_after_a_change(
    spark: SparkSession, admin: Client, source: Parts, how: WriteDeclaration, word: str
) -> None:
    """Write modes that need all rows cause a full read with the reason, if an input has changed."""
    partition = ("id",) if how.mode is WriteMode.PARTITIONS else ()
    step = replace(declared(source, "SELECT id, v FROM S", how), partition=partition)
    run(spark, admin, step, source)

    unchanged, _, _ = reading(spark, step, source)
    spark.sql(f"INSERT INTO {engine.render_spark(source)} VALUES (3, 'c')")
    chosen, _, _ = reading(spark, step, source)

    assert (unchanged.nothing_new, unchanged.whole_because) == (True, None)
    assert word in (chosen.whole_because or "")


def test_changed_query_causes_full_read_and_rollback_does_not(
    spark: SparkSession, admin: Client, source: Parts
) -> None:
    """Another query or `full` causes a full read; after a rollback the step continues from the restored state."""
    step = declared(source, "SELECT id, v FROM S")
    run(spark, admin, step, source)
    name, result_table = engine.render_spark(source), f"{source[1]}.made"
    before = spark.sql(f"SELECT snapshot_id FROM main.{result_table}.refs WHERE name = 'main'").collect()[0][0]
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c')")
    run(spark, admin, step, source)

    other = reading(spark, declared(source, "SELECT id, lower(v) AS v FROM S"), source)[0]
    full = reading(spark, step, source, full=True)[0]
    spark.sql(f"CALL main.system.rollback_to_snapshot('{result_table}', {before})")
    again = run(spark, admin, step, source)

    assert other.whole_because == "the query changed since it was published"
    assert full.whole_because == "a full run was requested"
    assert again.whole_because is None
    assert on_main(spark, step.table) == [(1, "a"), (2, "b"), (3, "c")]


def test_views_are_read_incrementally_through_their_tables(spark: SparkSession, admin: Client, source: Parts) -> None:
    """A view is read incrementally through its tables; a changed definition causes a full read."""
    view = (*source[:2], "v")
    spark.sql(
        f"CREATE VIEW {engine.render_spark(view)} AS SELECT id, v FROM {engine.render_spark(source)} WHERE id > 0"
    )
    step = replace(declared(source, "SELECT id FROM S"), body=Sql(text=f"SELECT v.id FROM {engine.render_spark(view)}"))

    run(spark, admin, step, view)
    spark.sql(f"INSERT INTO {engine.render_spark(source)} VALUES (3, 'c')")
    rows = [tuple(row) for row in reading(spark, step, view)[1].collect()]
    second = run(spark, admin, step, view)
    spark.sql(f"CREATE OR REPLACE VIEW {engine.render_spark(view)} AS SELECT 9 AS id, 'z' AS v")
    third = reading(spark, step, view)[0]

    assert rows == [(3,)]
    assert second.whole_because is None
    assert on_main(spark, step.table) == [(1,), (2,), (3,)]
    assert "had another definition" in (third.whole_because or "")
