# SPDX-License-Identifier: Apache-2.0
"""Promotions on Spark: rows of an environment are copied where all inputs are the same, and computed where not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from limnos.pipeline import load
from limnos.pipeline.context import StepContext
from limnos.pipeline.engine.promotion import _other_table
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.run.options import RunOptions
from tests.pipeline.run.test_second_runs import Folder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STEPS = """
parameters: {least: {type: int, default: 2}}
environments: {dev: {prefix: dev_}}
sources:
  src: {files: "d/*.csv", options: {header: true}, schema: "id int, v int"}
steps:
  @.outside: {sql: "SELECT id, rand() AS random FROM @.external"}
  @.filed: {sql: SELECT id FROM src}
  @.chosen: {sql: "SELECT id FROM @.external WHERE id >= :least"}
  @.stamped: {sql: "SELECT id, concat('run ', :run_id) AS run FROM @.external"}
  @.below: {sql: "SELECT id + 1 AS id FROM @.filed", expect: [{not_null: id}]}
"""


@pytest.fixture
def folder(spark: SparkSession, place: tuple[str, str], tmp_path: Path) -> Folder:
    """The directory of a pipeline that reads a table, a file, a parameter and an earlier step."""
    folder = Folder(spark, place, tmp_path)
    spark.sql(f"CREATE TABLE main.`{folder.name}`.external AS SELECT 1 AS id UNION ALL SELECT 2").collect()
    folder.write("d/1.csv", "id,v\n1,1\n2,1\n")
    folder.declare(STEPS)
    load(folder.directory / "p.yaml").in_environment("dev").run(spark).require()
    return folder


def _promote(folder: Folder, **parameters: object) -> dict[str, str]:
    """Promote all steps. Returns the message of each, by the last part of its name."""
    folder.events.clear()
    options = RunOptions(promotes="dev", select=("*",))
    ended = load(folder.directory / "p.yaml").run(
        folder.spark, parameters=parameters, options=options, listener=folder.events.append
    )
    ended.require()
    return {
        str(event.step).rpartition(".")[2]: str(event.message)
        for event in folder.events
        if event.step is not None and event.state == "done"
    }


def test_rows_of_equal_inputs_are_copied(folder: Folder) -> None:
    """Each step whose inputs are the same has the environment's very rows, random values too, and is not computed."""
    messages = _promote(folder)

    assert {name for name, message in messages.items() if message.startswith("copied from")} == {
        "outside",
        "filed",
        "chosen",
        "below",
    }
    assert messages["stamped"].startswith("computed, not copied: the step uses run_id")
    own = folder.spark.sql(f"SELECT * FROM main.`dev_{folder.name}`.outside").collect()
    assert folder.rows("outside") == sorted((tuple(row) for row in own), key=repr)
    assert folder.rows("filed") == [(1,), (2,)]
    assert folder.rows("chosen") == [(2,)]
    assert folder.rows("below") == [(2,), (3,)]


def test_rows_of_other_inputs_are_computed(folder: Folder) -> None:
    """A step is computed if a table, a file, a parameter or an earlier step that it reads is another one now, and the
    reason is said. Production's table then has the rows of now.
    """
    folder.spark.sql(f"INSERT INTO main.`{folder.name}`.external VALUES (3)").collect()
    folder.write("d/2.csv", "id,v\n7,1\n")

    messages = _promote(folder, least=1)

    reasons = {name: message.partition("computed, not copied: ")[2] for name, message in messages.items()}
    assert reasons["outside"] == f"main.{folder.name}.external has changed since the environment's run read it"
    assert reasons["filed"] == "source src has changed since the environment's run read it"
    assert reasons["chosen"].startswith("parameter least changed")
    assert reasons["below"] == f"main.{folder.name}.filed, which it reads, was computed in this run"
    assert folder.rows("filed") == [(1,), (2,), (7,)]
    assert folder.rows("chosen") == [(1,), (2,), (3,)]
    assert folder.rows("below") == [(2,), (3,), (8,)]


ADDING = """
environments: {dev: {prefix: dev_}}
sources:
  src: {files: "d/*.csv", options: {header: true}, schema: "id int, v int, op string, at timestamp"}
steps:
  @.merged:
    load: src
    incremental: true
    write: {mode: merge, keys: id, delete_when: op = 'D'}
    expect: [v >= 0]
  @.log: {sql: "SELECT id, v FROM @.merged WHERE v > 0", write: append, incremental: true}
  @.states: {sql: "SELECT id, v, at FROM @.merged", write: {mode: history, keys: id, as_of: at, tracked: v}}
  @.ruled: {sql: "SELECT id, v FROM @.log", write: {mode: merge, keys: id}, expect: [{row: id > 0}, {unique: id}]}
"""


@pytest.fixture
def adding(spark: SparkSession, place: tuple[str, str], tmp_path: Path) -> Folder:
    """The directory of a pipeline whose steps add to their tables, published in the environment by one run."""
    folder = Folder(spark, place, tmp_path)
    folder.write("d/1.csv", "id,v,op,at\n1,1,U,2026-01-01\n2,2,U,2026-01-01\n3,3,D,2026-01-01\n4,0,U,2026-01-01\n")
    folder.declare(ADDING)
    load(folder.directory / "p.yaml").in_environment("dev").run(spark).require()
    return folder


def test_steps_that_add_are_copied_into_empty_tables_and_go_on(adding: Folder) -> None:
    """Merges, appends, increments and histories of one run are copied into empty tables. The next run of production
    reads only what is new, and its tables equal those of a pipeline that was never promoted.
    """
    messages = _promote(adding)
    assert all(message.startswith("copied from") for message in messages.values()), messages
    promoted = {name: adding.rows(name) for name in ("merged", "log", "ruled")}
    assert [row[:2] for row in promoted["merged"]] == [(1, 1), (2, 2), (4, 0)]
    assert promoted["log"] == promoted["ruled"] == [(1, 1), (2, 2)]

    adding.write("d/2.csv", "id,v,op,at\n1,9,U,2026-02-01\n5,5,U,2026-02-01\n2,0,D,2026-02-01\n")
    load(adding.directory / "p.yaml").run(adding.spark).require()

    assert [row[:2] for row in adding.rows("merged")] == [(1, 9), (4, 0), (5, 5)]
    states = [row[:2] for row in adding.rows("states")]
    assert states.count((1, 1)) == states.count((1, 9)) == states.count((5, 5)) == 1
    assert adding.rows("ruled") == sorted({*adding.rows("ruled")})


def test_steps_that_add_are_computed_where_earlier_rows_count(adding: Folder) -> None:
    """They are computed if production has rows, and if several runs have made the environment's table."""
    adding.write("d/2.csv", "id,v,op,at\n7,7,U,2026-02-01\n")
    load(adding.directory / "p.yaml").in_environment("dev").run(adding.spark).require()

    first = _promote(adding)
    again = _promote(adding)

    assert "several runs have made the rows of" in first["merged"]
    assert "its rows depend on those that its table has already" in again["merged"]
    assert [row[:2] for row in adding.rows("merged")] == [(1, 1), (2, 2), (4, 0), (7, 7)]


@pytest.mark.parametrize(
    "recorded, reads, difference",
    [
        ({"main.a": 1}, {"main.a": 1}, None),
        ({"main.a": 1}, {"main.a": 2}, "main.a has changed since the environment's run read it"),
        ({"main.dev_a": 1}, {"main.a": 1}, "the environment's run read main.dev_a, and this run reads main.a"),
        ({"main.a": 1}, {}, "the environment's run read main.a, and this run reads no table in its place"),
        ({}, {"main.a": 1}, "the environment's run read no table in its place, and this run reads main.a"),
        ({"src": "7", "main.a": 1}, {"main.a": 1}, None),
    ],
)
def test_difference_names_the_tables_of_either_run(
    recorded: dict[str, int | str | None], reads: dict[str, int], difference: str | None
) -> None:
    """The difference is a table in another state, or names the tables that the environment's run read and those that
    this run reads. Sources are compared elsewhere.
    """
    pins = {tuple(name.split(".")): ReadPin(name=name, snapshot=state) for name, state in reads.items()}
    context = cast("StepContext", SimpleNamespace(copied={}, done_branches={}))

    assert _other_table(recorded, context=context, pins=pins, sources=["src"]) == difference
