# SPDX-License-Identifier: Apache-2.0
"""A step's table is created as declared, gets new columns of its query, and loses only columns that the declaration
allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.model.errors import BadRequest
from limnos.names import engine
from limnos.pipeline.declaration import AllowedChanges, DeclaredColumn, WriteDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.metadata import require_metadata
from limnos.pipeline.engine.tables import preparation, prepare
from tests.pipeline.engine.steps import BRANCH, on_branch, on_main, published, rows, step_of, written

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_new_table_is_as_declared_and_created_once(spark: SparkSession, place: Parts) -> None:
    """Namespaces, partitioning, sort order, properties and comments are created once; the same declaration again
    changes nothing.
    """
    step = step_of(
        (*place, "deep", "er", "t"),
        partition=("days(at)", "bucket(4, id)", "truncate(2, `odd name`)", "kind"),
        sort=("id DESC", "at ASC NULLS LAST"),
        properties={"write.format.default": "orc", "it's": "a 'quote' \\ and ${env:HOME}"},
        columns=(
            DeclaredColumn(name="id", comment="it's ${env:HOME}"),
            DeclaredColumn(name="place.city", comment="nested"),
        ),
        comment="a table's comment",
    )
    frame = spark.sql(
        "SELECT 1L AS id, TIMESTAMP'2026-01-01 00:00:00' AS at, 'x' AS `odd name`, 'k' AS kind, "
        "named_struct('city', 'here') AS place"
    )

    prepare(spark, step, frame=frame, branch=BRANCH)

    again = preparation(spark, step, frame=frame)
    metadata = require_metadata(spark, step.table)
    assert (again.is_new, again.statements, bool(again.changes)) == (False, (), False)
    assert [(each.transform, each.name) for each in metadata.spec.fields] == [
        ("day", "at_day"),
        ("bucket[4]", "id_bucket"),
        ("truncate[2]", "odd name_trunc"),
        ("identity", "kind"),
    ]
    assert [(each.direction, each.null_order) for each in metadata.order.fields] == [
        ("desc", "nulls-last"),
        ("asc", "nulls-last"),
    ]
    assert metadata.properties["it's"] == "a 'quote' \\ and ${env:HOME}"
    assert metadata.properties["comment"] == "a table's comment"
    assert metadata.schema.fields[0].doc == "it's ${env:HOME}"
    assert metadata.snapshots == ()


def test_changed_declaration_is_applied_to_table(spark: SparkSession, place: Parts) -> None:
    """Properties, comments, sort order and partitioning follow the declaration; properties that are no longer declared
    remain.
    """
    frame = spark.sql("SELECT 1 AS id, named_struct('city', 'here') AS place, 'k' AS kind")
    table = (*place, "t")
    prepare(spark, step_of(table, partition=("kind",), properties={"a": "1", "b": "1"}), frame=frame, branch=BRANCH)
    step = step_of(
        table,
        partition=("bucket(2, id)",),
        sort=("id",),
        properties={"a": "2", "format-version": "3"},
        columns=(DeclaredColumn(name="kind", comment="c"), DeclaredColumn(name="place.city", comment="d")),
        comment="new",
    )

    prepare(spark, step, frame=frame, branch=BRANCH)

    metadata = require_metadata(spark, table)
    assert preparation(spark, step, frame=frame).statements == ()
    assert [each.transform for each in metadata.spec.fields if each.transform != "void"] == ["bucket[2]"]
    assert {key: metadata.properties[key] for key in "ab"} == {"a": "2", "b": "1"}
    assert metadata.format_version == 3


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("1 AS id", "1L AS id", "bigint"),
        ("1L AS id", "1 AS id", "bigint"),
        ("CAST(1 AS float) AS id", "CAST(1 AS double) AS id", "double"),
        ("CAST(1 AS decimal(10,2)) AS id", "CAST(1 AS decimal(12,1)) AS id", "decimal(13,2)"),
        ("CAST(1 AS decimal(10,2)) AS id", "1 AS id", "decimal(12,2)"),
        ("CAST(1 AS decimal(12,2)) AS id", "1 AS id", "decimal(12,2)"),
        ("CAST(1 AS double) AS id", "1 AS id", "double"),
        ("1 AS id", "CAST(1 AS tinyint) AS id", "int"),
        ("array(1) AS id", "array(1L) AS id", "array<bigint>"),
        ("map('a', 1) AS id", "map('a', 1L) AS id", "map<string,bigint>"),
        ("named_struct('a', 1) AS id", "named_struct('A', 1L) AS id", "struct<a:bigint>"),
        (
            "array(named_struct('a', 1)) AS id",
            "array(named_struct('b', 'x', 'a', 1)) AS id",
            "array<struct<a:int,b:string>>",
        ),
        ("1 AS id", "NULL AS id", "int"),
        ("TIMESTAMP'2026-01-01 00:00:00' AS id", "DATE'2026-01-01' AS id", "timestamp"),
    ],
)
def test_column_is_widened_as_the_query_needs(
    spark: SparkSession, place: Parts, old: str, new: str, expected: str
) -> None:
    """A column is widened as far as the query needs; old and new rows are readable."""
    step = step_of((*place, "t"), WriteDeclaration(mode=WriteMode.APPEND))
    spark.sql(f"CREATE TABLE {engine.render_spark(step.table)} AS SELECT {old}")

    branch, _ = written(spark, step, spark.sql(f"SELECT {new}"))

    assert spark.table(engine.render_spark(step.table)).schema["id"].dataType.simpleString() == expected
    assert len(on_branch(spark, branch)) == 2


@pytest.mark.parametrize(
    "old, new, word",
    [
        ("1 AS id", "'x' AS id", "int in the table and string in the query"),
        ("'x' AS id", "1 AS id", "string in the table and int in the query"),
        ("1 AS id", "1.5D AS id", "int in the table and double"),
        ("CAST(1 AS decimal(10,2)) AS id", "CAST(1 AS decimal(10,4)) AS id", r"decimal\(10,2\) in the table"),
        ("CAST(1 AS decimal(38,2)) AS id", "CAST(1 AS decimal(38,0)) AS id", r"decimal\(38,2\) in the table"),
        ("1L AS id", "CAST(1 AS float) AS id", "bigint in the table and float"),
        ("map(1, 'a') AS id", "map(1L, 'a') AS id", "id.key"),
        ("named_struct('a', 1) AS id", "1 AS id", "struct<a: int> in the table"),
        ("DATE'2026-01-01' AS id", "TIMESTAMP'2026-01-01 00:00:00' AS id", "date in the table and timestamp"),
        ("1 AS id, 2 AS b", "1 AS id", r"drop: \[b\]"),
        ("named_struct('a', 1, 'b', 2) AS id", "named_struct('a', 1) AS id", r"drop: \[id\.b\]"),
        ("1 AS id", "1 AS id, 2 AS ID", "two columns"),
        ("1 AS id", "1 AS id, NULL AS x", "always NULL"),
    ],
)
def test_lossy_change_is_refused_and_table_is_unchanged(
    spark: SparkSession, place: Parts, old: str, new: str, word: str
) -> None:
    """A change that loses columns or values is refused by name, and the table is unchanged."""
    step = step_of((*place, "t"))
    spark.sql(f"CREATE TABLE {engine.render_spark(step.table)} AS SELECT {old}")
    before = require_metadata(spark, step.table)

    with pytest.raises(BadRequest, match=word):
        prepare(spark, step, frame=spark.sql(f"SELECT {new}"), branch=BRANCH)

    assert require_metadata(spark, step.table) == before


def test_narrowed_column_of_an_unpublished_table_is_explained(spark: SparkSession, place: Parts) -> None:
    """If the table is one that an earlier attempt of the run has made, the error says so and proposes a new run: no
    reader sees that table.
    """
    step = step_of((*place, "t"))
    prepare(spark, step, frame=spark.sql("SELECT 1 AS id"), branch=BRANCH)

    with pytest.raises(BadRequest, match="made and not published"):
        prepare(spark, step, frame=spark.sql("SELECT 'x' AS id"), branch=BRANCH)
    with pytest.raises(BadRequest, match="Cast it in the query"):
        prepare(spark, step, frame=spark.sql("SELECT 'x' AS id"), branch="run_ffffffffffff_1")


def test_allowed_narrowing_casts_values(spark: SparkSession, place: Parts) -> None:
    """Values of a column in `narrow` are cast to the table's type; values that do not fit are an error."""
    step = step_of((*place, "t"), allowed=AllowedChanges(narrow=("id",)))
    spark.sql(f"CREATE TABLE {engine.render_spark(step.table)} AS SELECT 1 AS id")

    branch, _ = written(spark, step, spark.sql("SELECT '7' AS id"))

    assert on_branch(spark, branch) == [(7,)]
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        written(spark, step, spark.sql("SELECT 'x' AS id"))


def test_allowed_column_drop_takes_effect_at_publication(spark: SparkSession, place: Parts, admin: Client) -> None:
    """An allowed drop takes effect when the run is published; before that readers see the column. Nested columns are
    dropped, too.
    """
    step = step_of((*place, "t"), allowed=AllowedChanges(drop=("b", "place.zip", "many.element.y")))
    spark.sql(
        f"CREATE TABLE {engine.render_spark(step.table)} AS SELECT 1 AS id, 'b' AS b, "
        "named_struct('city', 'x', 'zip', 1) AS place, array(named_struct('x', 1, 'y', 2)) AS many"
    )
    frame = spark.sql("SELECT 2 AS id, named_struct('city', 'y') AS place, array(named_struct('x', 3)) AS many")

    branch, _ = written(spark, step, frame)
    meanwhile = spark.table(engine.render_spark(step.table)).columns
    published(admin, spark, branch)

    assert branch.columns_to_drop == ("b", "place.zip", "many.element.y")
    assert meanwhile == ["id", "b", "place", "many"]
    schema = spark.table(engine.render_spark(step.table)).schema
    assert schema.simpleString() == "struct<id:int,place:struct<city:string>,many:array<struct<x:int>>>"
    assert rows(spark, f"SELECT id, place.city, many[0].x FROM {engine.render_spark(step.table)}") == [(2, "y", 3)]


def test_partition_or_sort_column_is_not_dropped(spark: SparkSession, place: Parts) -> None:
    """A column that the partitioning or the sort order uses is not dropped, even if the drop is allowed."""
    step = step_of((*place, "t"), allowed=AllowedChanges(drop=("p",)))
    spark.sql(f"CREATE TABLE {engine.render_spark(step.table)} (id int, p int) PARTITIONED BY (p)")

    with pytest.raises(BadRequest, match="partitioned or sorted by it"):
        preparation(spark, step, frame=spark.sql("SELECT 1 AS id"))


def test_required_column_to_be_dropped_accepts_null(spark: SparkSession, place: Parts) -> None:
    """A required column that is to be dropped accepts NULL until then; other required columns remain required."""
    step = step_of((*place, "t"), allowed=AllowedChanges(drop=("b",)))
    spark.sql(f"CREATE TABLE {engine.render_spark(step.table)} (id int NOT NULL, b int NOT NULL)")

    branch, _ = written(spark, step, spark.sql("SELECT 1 AS id"))

    assert on_branch(spark, branch) == [(1, None)]
    with pytest.raises(Exception, match=r"(?i)null"):
        written(spark, step, spark.sql("SELECT CAST(NULL AS int) AS id"))


def test_column_added_by_discarded_run_is_null(spark: SparkSession, place: Parts) -> None:
    """A column that a discarded run added is NULL for readers, and the rows are unchanged."""
    step = step_of((*place, "t"))
    spark.sql(f"CREATE TABLE {engine.render_spark(step.table)} AS SELECT 1 AS id")

    branch, _ = written(spark, step, spark.sql("SELECT 'new' AS added, 2 AS id"))

    assert on_main(spark, step.table) == [(1, None)]
    assert on_branch(spark, branch) == [(2, "new")]


def test_partitions_mode_is_refused_after_repartitioning(spark: SparkSession, place: Parts) -> None:
    """After a change of partitioning, the mode `partitions` is refused until `replace` has run, because rows of the old
    layout would remain.
    """
    table = (*place, "t")
    frame = spark.sql("SELECT 1 AS id, 1 AS p")
    step = step_of(table, WriteDeclaration(mode=WriteMode.PARTITIONS), partition=("p",))
    spark.sql(f"CREATE TABLE {engine.render_spark(table)} PARTITIONED BY (id) AS SELECT 1 AS id, 2 AS p")

    with pytest.raises(BadRequest, match="mode: replace"):
        preparation(spark, step, frame=frame)
    spark.sql(f"ALTER TABLE {engine.render_spark(table)} REPLACE PARTITION FIELD id WITH p")
    with pytest.raises(BadRequest, match="before its partitioning was changed"):
        preparation(spark, step, frame=frame)
    spark.sql(f"INSERT OVERWRITE {engine.render_spark(table)} SELECT 1, 1")

    assert preparation(spark, step, frame=frame).statements == ()


@pytest.mark.parametrize(
    "more, word",
    [
        ({"write": WriteDeclaration(mode=WriteMode.MERGE)}, "needs `keys`"),
        ({"write": WriteDeclaration(mode=WriteMode.MERGE, keys=("nope",))}, "`keys` names 'nope'"),
        (
            {"write": WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",), tracked=("nope",))},
            "`tracked` names 'nope'",
        ),
        (
            {"write": WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",), valid_to="s")},
            "a column 's', which its history creates",
        ),
        ({"write": WriteDeclaration(mode=WriteMode.PARTITIONS)}, "Write `partition:`"),
        ({"columns": (DeclaredColumn(name="nope", comment="x"),)}, "`columns` names 'nope'"),
        ({"partition": ("weeks(at)",)}, "no transform 'weeks'"),
        ({"partition": ("bucket(id)",)}, "needs a number"),
        ({"partition": ("a b",)}, "is not a column"),
        ({"sort": ("",)}, "sort"),
    ],
)
def test_declarations_that_do_not_fit_the_query_are_refused(
    spark: SparkSession, place: Parts, more: Mapping[str, Any], word: str
) -> None:
    """Columns that a declaration names and the query lacks are reported before anything is created."""
    step = step_of((*place, "t"), more.get("write"), **{key: value for key, value in more.items() if key != "write"})

    with pytest.raises(BadRequest, match=word):
        prepare(spark, step, frame=spark.sql("SELECT 1 AS id, 's' AS s"), branch=BRANCH)


def test_special_characters_in_names_are_preserved(spark: SparkSession, place: Parts) -> None:
    """Dots, quotes, spaces and other characters in names of columns and tables are preserved."""
    step = step_of((*place, "od d`t"), WriteDeclaration(mode=WriteMode.MERGE, keys=("a.b",)))
    frame = spark.sql("SELECT 1 AS `a.b`, 'x' AS `it's`, named_struct('q`q', 1) AS `Ü`")

    first, _ = written(spark, step, frame)

    assert rows(
        spark, f"SELECT `a.b`, `it's`, `Ü`.`q``q` FROM {engine.render_spark(step.table)} VERSION AS OF '{first.name}'"
    ) == [(1, "x", 1)]
