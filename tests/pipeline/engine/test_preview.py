# SPDX-License-Identifier: Apache-2.0
"""The columns in a plan: Spark analyzes the queries, and nothing is run or written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline import load
from limnos.pipeline.checks import check
from limnos.pipeline.engine.preview import preview

pytestmark = [pytest.mark.integration, pytest.mark.spark]

TEXT = """
pipeline: p
catalog: main
parameters: {{least: double, day: date}}
sources:
  files: {{files: data/*.csv, schema: "id bigint, day date, amount float"}}
  untyped: data/*.csv
steps:
  {ns}.old: {{sql: "SELECT id, amount, :least AS least FROM files WHERE day > :day"}}
  {ns}.grown: {{python: "functions:grown", inputs: {{old: {ns}.old}}}}
  {ns}.fallen: {{sql: SELECT 1 AS a}}
  {ns}.allowed: {{sql: SELECT 1 AS a, allow: {{drop: b}}}}
  {ns}.wrong: {{sql: SELECT nope FROM {ns}.old}}
  {ns}.after_wrong: {{sql: SELECT * FROM {ns}.wrong}}
  {ns}.unknown: {{load: untyped}}
  {ns}.after_unknown: {{sql: SELECT * FROM {ns}.unknown}}
"""


def test_plan_lists_table_changes_per_step(spark: SparkSession, admin: Client, tmp_path: Path) -> None:
    """Per step, a plan lists new tables, added and widened columns, refused or allowed losses, and what cannot be
    determined.
    """
    name = "columns_of_a_plan"
    spark.sql(f"CREATE NAMESPACE main.{name}")
    for table, columns in (("old", "id INT"), ("fallen", "a INT, b INT"), ("allowed", "a INT, b INT")):
        spark.sql(f"CREATE TABLE main.{name}.{table} ({columns}) USING iceberg")
    (tmp_path / "functions.py").write_text(
        "def grown(old, least):\n    return old.withColumn('twice', old.amount * least)"
    )
    (tmp_path / "p.yaml").write_text(TEXT.format(ns=name))
    pipeline = load(tmp_path / "p.yaml").bind_functions()
    views = {view.name for view in spark.catalog.listTables() if view.isTemporary}

    checked = check(pipeline, spark=spark, client=admin)
    previews = preview(spark, pipeline, levels=checked.levels, catalogs=frozenset({"main"}))

    step_previews = {step.removeprefix(f"{name}."): one for step, one in previews.items()}
    assert [problem.message.partition(":")[0] for problem in checked.problems] == [f"{name}.wrong"]
    assert "`nope` cannot be resolved" in checked.problems[0].message
    assert set(step_previews["old"].statements) == {
        f"ALTER TABLE main.{name}.old ALTER COLUMN id TYPE bigint",
        f"ALTER TABLE main.{name}.old ADD COLUMN amount float",
        f"ALTER TABLE main.{name}.old ADD COLUMN least double",
    }
    assert "twice double" in step_previews["grown"].statements[-1]
    assert step_previews["grown"].statements[-1].startswith(f"CREATE TABLE main.{name}.grown")
    assert "the table has b" in str(step_previews["fallen"].refused)
    assert step_previews["allowed"].drops == ("b",)
    assert "nope" in str(step_previews["wrong"].refused)
    wrong_line = TEXT.format(ns=name).splitlines().index(f"  {name}.wrong: {{sql: SELECT nope FROM {name}.old}}") + 1
    assert str(step_previews["wrong"].refusal).startswith(f"{tmp_path / 'p.yaml'}:{wrong_line}:")
    assert str(step_previews["fallen"].refusal).startswith(f"{tmp_path / 'p.yaml'}:")
    assert step_previews["old"].refusal is None
    assert step_previews["after_wrong"].unknown == f"step {name}.wrong is refused"
    assert step_previews["unknown"].unknown == "source untyped has no 'schema'"
    assert step_previews["after_unknown"].unknown == "source untyped has no 'schema'"
    assert not spark.catalog.tableExists(f"main.{name}.grown")
    assert spark.table(f"main.{name}.old").columns == ["id"]
    assert {view.name for view in spark.catalog.listTables() if view.isTemporary} == views
