# SPDX-License-Identifier: Apache-2.0
"""Increments are correct; if none can be computed, the reason is reported."""

from __future__ import annotations

import os
import random

import pytest
from pyspark.sql import SparkSession

from limnos.names import engine
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.increments import Increment, increment
from limnos.pipeline.engine.metadata import require_metadata
from tests.pipeline.engine.steps import ordered, rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STORIES = int(os.environ.get("LIMNOS_TEST_STORIES", "1"))


def head(spark: SparkSession, table: Parts) -> int | None:
    """The newest snapshot of `main`."""
    return require_metadata(spark, table).head()


def increment_to_head(spark: SparkSession, table: Parts, *, since: int | None) -> Increment:
    """Return the increment up to the head."""
    return increment(spark, table, since=since, until=head(spark, table))


def increment_rows(increment: Increment) -> list[tuple[object, ...]]:
    """Return the rows of an increment, sorted."""
    assert increment.frame is not None, increment.whole_because
    return ordered([tuple(row) for row in increment.frame.collect()])


def make(
    spark: SparkSession, place: Parts, *, properties: str = "'format-version'='2'", columns: str = "id int, v string"
) -> Parts:
    """A table with two rows."""
    table = (*place, "t")
    spark.sql(f"CREATE TABLE {engine.render_spark(table)} ({columns}) TBLPROPERTIES ({properties})")
    return table


def test_increment_has_only_appended_rows_after_compaction(spark: SparkSession, place: Parts) -> None:
    """Only appended rows are returned, also if files were compacted in between."""
    table = make(spark, place)
    name = engine.render_spark(table)
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    start = head(spark, table)
    spark.sql(f"INSERT INTO {name} VALUES (2, 'b')")
    spark.sql(
        f"CALL main.system.rewrite_data_files(table => '{table[1]}.t', options => map('min-input-files', '1',"
        " 'rewrite-all', 'true'))"
    )
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c')")

    increment = increment_to_head(spark, table, since=start)

    assert "replace" in {each.operation for each in require_metadata(spark, table).snapshots}
    assert increment_rows(increment) == [(2, "b"), (3, "c")]
    assert increment.only_new


def test_increment_from_head_is_empty(spark: SparkSession, place: Parts) -> None:
    """If the start is the head, the increment is empty and says so."""
    table = make(spark, place)
    spark.sql(f"INSERT INTO {engine.render_spark(table)} VALUES (1, 'a')")

    increment = increment_to_head(spark, table, since=head(spark, table))

    assert (increment_rows(increment), increment.is_empty) == ([], True)


@pytest.mark.parametrize(
    "statement", ["UPDATE {} SET v = 'z' WHERE id = 1", "INSERT OVERWRITE {} VALUES (1, 'z'), (2, 'b')"]
)
@pytest.mark.parametrize("version", ["2", "3"])
def test_increment_with_updates_is_reported_as_such(
    spark: SparkSession, place: Parts, statement: str, version: str
) -> None:
    """An increment with updates says that it has more than new rows; unchanged rows of a changelog are left out."""
    table = make(spark, place, properties=f"'format-version'='{version}'")
    name = engine.render_spark(table)
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    start = head(spark, table)
    spark.sql(statement.format(name))

    increment = increment_to_head(spark, table, since=start)

    assert (1, "z") in increment_rows(increment)
    if "UPDATE" in statement or version == "2":
        assert increment_rows(increment) == [(1, "z")]
    assert not increment.only_new


def test_version_2_delete_files_cause_full_read(spark: SparkSession, place: Parts) -> None:
    """Rows that delete files removed are not in a changelog: all rows are read, and the reason recommends format
    version 3.
    """
    table = make(spark, place, properties="'format-version'='2', 'write.delete.mode'='merge-on-read'")
    name = engine.render_spark(table)
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b')")
    start = head(spark, table)
    spark.sql(f"DELETE FROM {name} WHERE id = 1")

    increment = increment_to_head(spark, table, since=start)

    assert increment.frame is None
    assert "format version 3" in (increment.whole_because or "")


def test_table_upgraded_to_version_3_uses_changelog(spark: SparkSession, place: Parts) -> None:
    """Rows from before the upgrade to version 3 have no row lineage at the start: the changelog is used and is
    correct.
    """
    table = make(spark, place)
    name = engine.render_spark(table)
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    start = head(spark, table)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='3')")
    spark.sql(f"UPDATE {name} SET v = 'z' WHERE id = 2")

    assert increment_rows(increment_to_head(spark, table, since=start)) == [(2, "z")]


def test_map_column_causes_full_read_with_reason(spark: SparkSession, place: Parts) -> None:
    """If a changed table has a map column and no row lineage, all rows are read, because a changelog cannot compare
    maps. The reason says so.
    """
    table = make(spark, place, columns="id int, v map<string, int>")
    name = engine.render_spark(table)
    spark.sql(f"INSERT INTO {name} VALUES (1, map('a', 1))")
    start = head(spark, table)
    spark.sql(f"UPDATE {name} SET v = map('b', 2)")

    assert "maps" in (increment_to_head(spark, table, since=start).whole_because or "")


def test_unusable_start_causes_full_read_with_reason(spark: SparkSession, place: Parts) -> None:
    """Expired, rolled-back, replaced and unknown starts cause a full read, each with its reason."""
    table = make(spark, place)
    name = engine.render_spark(table)
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    first = head(spark, table)
    spark.sql(f"INSERT INTO {name} VALUES (2, 'b')")
    second = head(spark, table)

    unread = increment_to_head(spark, table, since=None)
    spark.sql(f"CALL main.system.rollback_to_snapshot('{table[1]}.t', {first})")
    rolled_back = increment_to_head(spark, table, since=second)
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c')")
    other_way = increment_to_head(spark, table, since=second)
    spark.sql(f"CALL main.system.expire_snapshots(table => '{table[1]}.t', snapshot_ids => array({first}))")
    expired = increment_to_head(spark, table, since=first)
    spark.sql(f"CREATE OR REPLACE TABLE {name} AS SELECT 1 AS id, 'x' AS v")
    replaced = increment_to_head(spark, table, since=head(spark, table))
    spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TABLE {name} AS SELECT 1 AS id, 'x' AS v")
    another = increment_to_head(spark, table, since=second)

    assert unread.whole_because == f"main.{table[1]}.t was not read before"
    assert "rolled back" in (rolled_back.whole_because or "")
    assert "rolled back" in (other_way.whole_because or "")
    assert "expired" in (expired.whole_because or "")
    assert replaced.is_empty
    assert "replaced" in (another.whole_because or "")


@pytest.mark.parametrize(
    "properties",
    [
        "'format-version'='2'",
        "'format-version'='3'",
        (
            "'format-version'='3', 'write.merge.mode'='merge-on-read', 'write.update.mode'='merge-on-read',"
            " 'write.delete.mode'='merge-on-read'"
        ),
    ],
)
def test_random_increments_bring_a_copy_up_to_date(spark: SparkSession, place: Parts, properties: str) -> None:
    """After any changes, a copy by key that applies each increment, and removes deleted keys, equals the table."""
    for number in range(STORIES):
        chance = random.Random(f"{properties} {number}")
        spark.sql(f"DROP TABLE IF EXISTS {engine.render_spark((*place, 't'))}")
        table = make(spark, place, properties=properties)
        name = engine.render_spark(table)
        spark.sql(f"INSERT INTO {name} VALUES (0, 'a'), (1, 'b')")
        copy = dict(rows(spark, f"SELECT * FROM {name}"))
        seen = head(spark, table)
        for turn in range(3):
            for _ in range(chance.randrange(1, 3)):
                spark.sql(
                    chance.choice(_CHANGES).format(
                        name, chance.randrange(5), f"n{turn}", 100 + chance.randrange(10_000)
                    )
                )
            increment = increment_to_head(spark, table, since=seen)
            seen = head(spark, table)
            copy |= dict(increment_rows(increment))
            now = dict(rows(spark, f"SELECT * FROM {name}"))

            assert {key: copy[key] for key in now} == now, f"{properties} {number} {turn}"
            assert all(now[key] == value for key, value in increment_rows(increment))


_CHANGES = (
    "INSERT INTO {0} VALUES ({3}, '{2}')",
    "UPDATE {0} SET v = '{2}' WHERE id = {1}",
    "DELETE FROM {0} WHERE id = {1}",
    (
        "MERGE INTO {0} t USING (SELECT {1} AS id, '{2}' AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT"
        " MATCHED THEN INSERT *"
    ),
    "INSERT OVERWRITE {0} VALUES ({1}, '{2}')",
)
