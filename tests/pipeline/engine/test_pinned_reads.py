# SPDX-License-Identifier: Apache-2.0
"""A run reads every table at its state at the start of the run, also through views, and reads the branches of its own
steps.
"""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.formats.iceberg.view_fingerprints import metadata_fingerprint
from limnos.model.errors import CommitConflict, NotFound, UnsupportedOperation
from limnos.names import engine
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.pinned_reads import _within, branch_pin, frame_of, pin_tables, reads, with_reads
from limnos.pipeline.engine.relations import relations
from limnos.pipeline.engine.views import _from_catalog, _from_statement
from tests.pipeline.engine.steps import ordered, step_of, written

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def table(spark: SparkSession, place: Parts) -> Parts:
    """A table with one row."""
    name = (*place, "t")
    spark.sql(f"CREATE TABLE {engine.render_spark(name)} AS SELECT 1 AS id")
    return name


def run(spark: SparkSession, sql: str, *tables: Parts, meanwhile: str = "") -> list[tuple[object, ...]]:
    """Pin the tables, run an action, and run the query over the pins."""
    pins = pin_tables(spark, tables)
    if meanwhile:
        spark.sql(meanwhile)
    text = with_reads(spark, sql, pinned_reads=reads(spark, pins), named=relations(spark, sql), catalog="main")
    return ordered([tuple(row) for row in spark.sql(text).collect()])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.id FROM main.{space}.t",
        "SELECT t.id FROM {space}.t",
        "SELECT x.id FROM main.{space}.t x JOIN {space}.t AS y ON x.id = y.id",
        "WITH t AS (SELECT id FROM {space}.t) SELECT id FROM t WHERE id IN (SELECT id FROM {space}.t)",
        "TABLE main.{space}.t",
    ],
)
def test_rows_written_after_pin_are_not_read(spark: SparkSession, table: Parts, sql: str) -> None:
    """Rows that are written after the pin are not in the query's result, for every spelling of the table."""
    later = f"INSERT INTO {engine.render_spark(table)} VALUES (2)"

    assert run(spark, sql.format(space=table[1]), table, meanwhile=later) == [(1,)]


def test_table_without_snapshot_is_read_as_empty(spark: SparkSession, place: Parts) -> None:
    """A table without a snapshot at the start of the run is read as empty, under its own name."""
    spark.sql(f"CREATE TABLE main.{place[1]}.t (id int)")
    later = f"INSERT INTO main.{place[1]}.t VALUES (2)"

    assert run(spark, f"SELECT count(t.id) FROM main.{place[1]}.t", (*place, "t"), meanwhile=later) == [(0,)]


def test_views_are_read_over_pinned_tables(spark: SparkSession, table: Parts) -> None:
    """A view over a view reads pinned tables, under its own column names or an alias."""
    space = table[1]
    spark.sql(f"USE main.{space}")
    spark.sql(f"CREATE VIEW main.{space}.v (number COMMENT 'AS\n', `twice it`) AS SELECT id, t.id * 2 FROM t")
    spark.sql(f"CREATE VIEW main.{space}.w AS SELECT v.number AS n FROM {space}.v")
    spark.sql("USE spark_catalog.default")
    later = f"INSERT INTO {engine.render_spark(table)} VALUES (2)"

    assert run(spark, f"SELECT w.n FROM {space}.w", (*table[:2], "w"), meanwhile=later) == [(1,)]
    sql = f"SELECT a.number, v.`twice it` FROM {space}.v a CROSS JOIN {space}.v TABLESAMPLE (100 PERCENT)"
    assert len(run(spark, sql, (*table[:2], "v"))) == 4
    assert {each.name for each in pin_tables(spark, [(*table[:2], "w")]).values()} == {
        f"main.{space}.{name}" for name in ("w", "v", "t")
    }


def test_view_keeps_its_columns_when_its_table_grows(spark: SparkSession, table: Parts) -> None:
    """A view with `SELECT *` keeps its columns when its table gets more; its definition from its statement equals that
    of the catalog.
    """
    spark.sql(f"CREATE VIEW main.{table[1]}.v AS SELECT * FROM main.{table[1]}.t")
    spark.sql(f"ALTER TABLE {engine.render_spark(table)} ADD COLUMN more string")

    view = (*table[:2], "v")
    by_catalog, by_statement = _from_catalog(spark, view), _from_statement(spark, view)

    assert run(spark, f"SELECT * FROM {table[1]}.v", view) == [(1,)]
    assert by_catalog is not None
    assert by_statement is not None
    assert (by_statement.sql.strip(), by_statement.columns) == (by_catalog.sql.strip(), by_catalog.columns)
    assert _within(spark, by_statement, parts=table) == table
    with pytest.raises(UnsupportedOperation, match="with its catalog"):
        _within(spark, by_statement, parts=("t",))
    assert (_from_catalog(spark, table), _from_statement(spark, table)) == (None, None)


def test_view_changed_during_run_stops_it(spark: SparkSession, table: Parts) -> None:
    """If a view's definition changes during a run, the run stops."""
    spark.sql(f"CREATE VIEW main.{table[1]}.v AS SELECT id FROM main.{table[1]}.t")

    with pytest.raises(CommitConflict, match="was changed or dropped"):
        run(
            spark,
            f"SELECT * FROM {table[1]}.v",
            (*table[:2], "v"),
            meanwhile=f"CREATE OR REPLACE VIEW main.{table[1]}.v AS SELECT 2 AS id",
        )


def test_pinned_table_has_current_column_names(spark: SparkSession, table: Parts) -> None:
    """Columns that were added or renamed after the newest snapshot are available under their current names."""
    name = engine.render_spark(table)
    spark.sql(f"ALTER TABLE {name} ADD COLUMN extra string")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN id TO number")

    assert run(spark, f"SELECT t.number, extra FROM {name}", table) == [(1, None)]


def test_steps_of_the_run_are_read_from_their_branches(spark: SparkSession, table: Parts) -> None:
    """A later step reads what an earlier one wrote on its branch, in SQL and as a DataFrame."""
    branch, done = written(spark, step_of(table), spark.sql("SELECT 5 AS id"))
    pin = branch_pin(type(branch)(**{**_values(branch), "head": done.head}))
    pinned_reads = reads(spark, {table: pin})

    sql = f"SELECT t.id FROM {table[1]}.t"
    text = with_reads(spark, sql, pinned_reads=pinned_reads, named=relations(spark, sql), catalog="main")

    assert [tuple(row) for row in spark.sql(text).collect()] == [(5,)]
    assert [tuple(row) for row in frame_of(spark, pinned_reads[table]).collect()] == [(5,)]
    assert pin.branch == branch.name


def test_server_knows_fingerprints_of_views(spark: SparkSession, admin: Client, table: Parts) -> None:
    """The fingerprint of a pinned view is the one that a server computes from the view's metadata, before and after it
    was replaced.
    """
    view = (*table[:2], "v")
    name, source = engine.render_spark(view), engine.render_spark(table)
    fingerprints = set()
    for columns, query in (
        ("", f"SELECT id\n  FROM {source} -- a view\n"),
        ("(`a b`, two)", f"SELECT id, 2 FROM {source}"),
    ):
        spark.sql(f"CREATE OR REPLACE VIEW {name} {columns} AS {query}")
        pinned = pin_tables(spark, [view])[view].fingerprint
        metadata = admin.views.load(view).metadata

        assert metadata_fingerprint(json.dumps(metadata).encode()) == pinned
        fingerprints.add(pinned)
    assert len(fingerprints) == 2


def test_tables_that_cannot_be_pinned_are_named(
    spark: SparkSession, table: Parts, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The errors for missing, dropped and non-Iceberg tables and for expired snapshots name them."""
    files = tmp_path_factory.mktemp("files").as_uri()
    spark.sql(f"CREATE TABLE IF NOT EXISTS spark_catalog.default.plain (id int) USING parquet LOCATION '{files}/plain'")
    pins = pin_tables(spark, [table])
    head = pins[table].snapshot

    with pytest.raises(NotFound, match="nothing does not exist"):
        pin_tables(spark, [(*table[:2], "nothing")])
    with pytest.raises(UnsupportedOperation, match="declare a source"):
        pin_tables(spark, [("spark_catalog", "default", "plain")])
    spark.sql(f"INSERT INTO {engine.render_spark(table)} VALUES (2)")
    spark.sql(f"CALL main.system.expire_snapshots(table => '{table[1]}.t', snapshot_ids => array({head}))")
    with pytest.raises(NotFound, match="has expired"):
        reads(spark, pins)
    spark.sql(f"DROP TABLE {engine.render_spark(table)}")
    with pytest.raises(NotFound, match="was dropped or renamed"):
        reads(spark, pins)
    spark.sql("DROP TABLE spark_catalog.default.plain")


def _values(branch: object) -> dict[str, object]:
    return {name: getattr(branch, name) for name in branch.__dataclass_fields__}
