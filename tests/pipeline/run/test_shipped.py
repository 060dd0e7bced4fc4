# SPDX-License-Identifier: Apache-2.0
"""Pipelines that come with the product, run over Spark against a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from limnos.client import Client
from limnos.model.errors import BadRequest, LimnosError
from limnos.pipeline.engine.launch import ServerConnection
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.project import load
from limnos.pipeline.run import command
from limnos.pipeline.run.events import ignore_event
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.result import RunFailed
from limnos.pipeline.shipped import shipped_pipelines
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Lake:
    """A namespace with a table of three rows, and the shipped pipelines."""

    def __init__(self, spark: SparkSession, client: Client, *, server: LiveServer) -> None:
        self.spark, self.client, self._server = spark, client, server

    def run(self, name: str, *, select: tuple[str, ...] = (), **parameters: object) -> None:
        """Run a shipped pipeline by its name, or some of its steps, and publish its tables."""
        options = RunOptions(select=select)
        load(f"shipped:{name}").run(self.spark, parameters=parameters, options=options, client=self.client).require()

    def options(self) -> dict[str, Any]:
        """Return the arguments of the command line's functions, whose Spark is this one."""
        connection = ServerConnection(uri=self._server.uri, metalake="lake", token=self._server.token)
        return {"connection": connection, "spark": command.SparkOptions(), "listener": ignore_event}

    def rows(self, query: str) -> list[Row]:
        """Query the published tables."""
        return self.spark.sql(query).collect()


@pytest.fixture
def lake(spark: SparkSession, server: LiveServer) -> Iterator[Lake]:
    """The lake of this module's tests."""
    with Client(server.uri, token=server.token) as client:
        for name in ("lake_history", "shipped"):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS main.{name}")
        spark.sql("CREATE TABLE IF NOT EXISTS main.shipped.trips AS SELECT id FROM range(3)")
        yield Lake(spark, client, server=server)


def test_access_of_the_past_is_a_query(lake: Lake) -> None:
    """A user who loses a role had access in the period of validity of the row, and has it no longer."""
    lake.client.users.add("shipped-reader")
    lake.client.access.grant_preset("reader", "main.shipped.trips", kind="table", user="shipped-reader")
    lake.run("access-history")
    lake.client.access.revoke_preset("reader", "main.shipped.trips", kind="table", user="shipped-reader")
    lake.run("access-history")
    states = lake.rows(
        "SELECT levels, is_current, valid_to > valid_from AS was FROM main.lake_history.access"
        " WHERE path = 'main.shipped.trips' AND user_name = 'shipped-reader'"
    )

    assert [(row.levels, row.is_current, row.was) for row in states] == [("read", False, True)]


def test_tree_history_has_dropped_objects(lake: Lake) -> None:
    """A dropped table keeps the row of its past state; owners and grants have rows."""
    lake.spark.sql("CREATE TABLE main.shipped.brief (id INT)")
    lake.run("tree-history")
    lake.spark.sql("DROP TABLE main.shipped.brief")
    lake.run("tree-history")
    states = lake.rows("SELECT path, is_current FROM main.lake_history.objects WHERE path LIKE 'main.shipped.%'")

    assert {(row.path, row.is_current) for row in states} == {
        ("main.shipped.trips", True),
        ("main.shipped.brief", False),
    }
    owners = lake.rows("SELECT owner FROM main.lake_history.owners WHERE path = 'main.shipped.trips'")
    assert [row.owner for row in owners] == ["admin"]


def test_storage_has_rows_and_bytes(lake: Lake) -> None:
    """Each run adds the totals of owners and namespaces, as the summaries of current snapshots have them."""
    lake.run("storage-by-owner", euros_per_terabyte_month=1e9)
    (space,) = lake.rows("SELECT * FROM main.lake_history.storage_by_namespace WHERE namespace = 'main.shipped'")
    (owner,) = lake.rows("SELECT * FROM main.lake_history.storage_by_owner WHERE owner = 'admin'")

    assert (space.table_count, space.row_count) == (1, 3)
    assert space.byte_count > 0
    assert space.euros_per_month == round(space.byte_count / 1e3, 2)
    assert owner.table_count >= space.table_count


def test_totals_that_writers_claim_end_no_run(lake: Lake) -> None:
    """Totals of more than 64 bits are cut, and the other rows are right. The namespace of a table whose name has a dot,
    a back-quote and a backslash is its own.
    """
    lake.spark.sql("CREATE NAMESPACE main.shipped_names")
    paths = [("main", "shipped_names", name) for name in ("dot.ted", r"a`.\b")]
    for number, path in enumerate(paths):
        lake.spark.sql(f"CREATE TABLE main.shipped_names.t{number} AS SELECT id FROM range(2)")
        lake.client.tables.move(f"main.shipped_names.t{number}", path)
    lake.run("storage-by-owner")
    lake.spark.sql(
        "INSERT INTO main.lake_history.storage SELECT namespace, owner, owner_kind, 1, 1e29BD, 1e29BD"
        " FROM main.lake_history.storage WHERE namespace = 'main.shipped'"
    )
    lake.run("storage-by-owner", select=("lake_history.storage_by_namespace", "lake_history.storage_by_owner"))
    rows = lake.rows(
        "SELECT namespace, table_count, row_count FROM main.lake_history.storage_by_namespace"
        " WHERE at = (SELECT max(at) FROM main.lake_history.storage_by_namespace) AND namespace LIKE '%shipped%'"
    )
    for path in paths:
        lake.client.tables.drop(path)
    lake.spark.sql("DROP NAMESPACE main.shipped_names")

    assert {row.namespace: row.row_count for row in rows} == {"main.shipped": (1 << 63) - 1, "main.shipped_names": 4}


def test_columns_have_values_nulls_and_bounds(lake: Lake) -> None:
    """Each column of a table has the sums and bounds of its files; a table without a snapshot has columns without
    files, and one whose manifests are gone has the problem.
    """
    lake.spark.sql(
        "CREATE OR REPLACE TABLE main.shipped.measured AS SELECT id, CAST(id / 4 AS decimal(9, 2)) AS share,"
        " IF(id < 2, NULL, concat('name ', id)) AS name, struct(date_add(DATE'2026-01-01', CAST(id AS int)) AS day)"
        " AS at FROM range(0, 8, 1, 2)"
    )
    lake.spark.sql("DELETE FROM main.shipped.measured WHERE id = 7")
    lake.spark.sql("CREATE OR REPLACE TABLE main.shipped.empty (id INT)")
    lake.spark.sql("CREATE OR REPLACE TABLE main.shipped.broken AS SELECT 1 AS id")
    (manifest,) = lake.rows("SELECT path FROM main.shipped.broken.manifests")
    Path("/" + manifest.path.removeprefix("file:").lstrip("/")).unlink()
    lake.run("column-statistics")
    table = "main.lake_history.column_statistics"
    rows = lake.rows(f"SELECT * FROM {table} WHERE path LIKE 'main.shipped.%' ORDER BY path, field_id")
    measured = {row.name: row for row in rows if row.path == "main.shipped.measured"}
    for name in ("broken", "empty", "measured"):
        lake.spark.sql(f"DROP TABLE main.shipped.{name}")

    assert {name: (row.value_count, row.null_count, row.lower, row.upper) for name, row in measured.items()} == {
        "id": (7, 0, "0", "6"),
        "share": (7, 0, "0.00", "1.50"),
        "name": (7, 2, "name 2", "name 6"),
        "at.day": (7, 0, "2026-01-01", "2026-01-07"),
    }
    assert {(row.files, row.measured_files, row.row_count, row.has_deletes) for row in measured.values()} == {
        (2, 2, 7, False)
    }
    (empty,) = [row for row in rows if row.path == "main.shipped.empty"]
    assert (empty.name, empty.files, empty.row_count, empty.lower, empty.problem) == ("id", 0, 0, None, None)
    (broken,) = [row for row in rows if row.path == "main.shipped.broken"]
    assert (broken.name, broken.problem) == (None, "it does not exist")


def test_table_that_others_derive_from_is_used(lake: Lake) -> None:
    """A table without lineage is unused once it has not changed for the given days; a source of another is used."""
    lake.run("unused-tables", days=0)
    unused = {row.path for row in lake.rows("SELECT path FROM main.lake_history.unused_tables")}
    lake.spark.sql("CREATE TABLE main.shipped.derived AS SELECT id FROM main.shipped.trips")
    trips, derived = ({"namespace": "limnos://lake", "name": f"main.shipped.{name}"} for name in ("trips", "derived"))
    lake.client.lineage.send(
        {
            "eventType": "COMPLETE",
            "eventTime": "2026-01-31T00:00:00Z",
            "producer": "https://example.com",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {"runId": "one"},
            "job": {"namespace": "tests", "name": "shipped"},
            "inputs": [trips],
            "outputs": [derived],
        }
    )
    lake.run("unused-tables", days=0)
    later = {row.path for row in lake.rows("SELECT path FROM main.lake_history.unused_tables")}

    assert "main.shipped.trips" in unused
    assert "main.shipped.derived" in later
    assert "main.shipped.trips" not in later
    lake.run("unused-tables")
    assert lake.rows("SELECT path FROM main.lake_history.unused_tables") == []


def test_names_that_differ_by_case_are_listed(lake: Lake) -> None:
    """Siblings whose names differ by case, and names that need quotes, are listed with their paths."""
    for name in ("Twin", "twin", "two words"):
        lake.client.namespaces.create(("main", "shipped", name))
    lake.run("name-conflicts")
    conflicts = [row.paths for row in lake.rows("SELECT paths FROM main.lake_history.name_conflicts")]
    quoted = {row.name for row in lake.rows("SELECT name FROM main.lake_history.quoted_names")}

    assert "main.shipped.Twin, main.shipped.twin" in conflicts
    assert "two words" in quoted
    assert "twin" not in quoted


def test_every_shipped_pipeline_is_tested_and_has_a_comment() -> None:
    """Each has a comment for the list, and a test in this module or in one of its own."""
    assert all(shipped_pipelines().values())
    text = Path(__file__).read_text() + Path(__file__).with_name("test_verify.py").read_text()
    assert [name for name in shipped_pipelines() if f'"{name}"' not in text and f'"shipped:{name}"' not in text] == []


def test_rollup_of_the_audit_counts_days_again(lake: Lake) -> None:
    """The roll-up has the counts of the audit by day, also after a second run; later records are added."""
    lake.client.users.add("rollup_absent")
    query = (
        "SELECT sum(count) AS total, count(*) AS rows, max(action) AS action FROM main.lake_history.audit_daily"
        " WHERE path = 'rollup_absent' AND user_name = 'admin' AND outcome = 'done'"
    )
    lake.run("audit-rollup")
    first = lake.rows(query)
    lake.client.users.disable("rollup_absent")
    lake.run("audit-rollup")

    assert [(row.total, row.rows, row.action) for row in first] == [(1, 1, "user_manage")]
    assert [(row.total, row.rows) for row in lake.rows(query)] == [(2, 1)]
    assert lake.rows("SELECT * FROM main.lake_history.audit_anomalies") == []


def test_days_that_differ_are_anomalies(lake: Lake) -> None:
    """A user whose actions or refusals rise far above the days before, and who uses an object for the first time."""
    lake.run("audit-rollup")
    days = [
        *((day, "eve", 1, "done", 4) for day in range(1, 9)),
        (9, "eve", 1, "done", 90),
        (9, "eve", 1, "refused", 30),
    ]
    days += [(day, "sam", 2, "done", 40) for day in range(1, 10)]
    days += [(9, "eve", 2, "done", 1), (10, "new", 2, "done", 500), (9, "eve", 3, "done", 1)]
    for day, user, number, outcome, count in days:
        lake.spark.sql(
            f"INSERT INTO main.lake_history.audit_daily VALUES (DATE '2026-01-{day:02}', '{user}', {number}, 'table',"
            f" 'load', '{outcome}', 'main.t{number}', {count}, TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-01')"
        )
    lake.run("audit-rollup")
    rows = lake.rows(
        "SELECT day, user_name, reason, path, count, usual FROM main.lake_history.audit_anomalies"
        " WHERE year(day) = 2026 AND month(day) = 1"
    )

    assert {(row.day.day, row.user_name, row.reason, row.path, row["count"], row.usual) for row in rows} == {
        (9, "eve", "many actions", "", 122, 4.0),
        (9, "eve", "many refusals", "", 30, 0.0),
        (9, "eve", "first access", "main.t2", 1, 0.0),
    }


@pytest.mark.parametrize(
    "days,message",
    [
        (-1, "the parameter days must be a number of days from 0 to 36500"),
        (36_501, "the parameter days must be a number of days from 0 to 36500"),
        ("two", "days"),
        (2.5, "days"),
        (True, "days"),
        (10**30, "days"),
    ],
)
def test_wrong_number_of_days_is_refused(lake: Lake, days: object, message: str) -> None:
    """A number of days that is no number, negative or too large is refused with the parameter's name."""
    with pytest.raises((LimnosError, RunFailed), match=message):
        lake.run("audit-rollup", days=days)


def test_held_run_of_shipped_pipeline_is_resumed_by_its_id(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of a run has the name of the pipeline, by which `resume` finds it; it is held again."""
    monkeypatch.setattr(command, "spark_for", lambda *_, **__: nullcontext(lake.spark))
    before = command.run_file(
        Path("shipped:name-conflicts"), parameters={}, options=RunOptions(hold=True), **lake.options()
    )
    resumed = command.resume_run(before.run, file=None, options=RunOptions(), **lake.options())

    assert (before.state, before.attempt) == ("held", 1)
    assert (resumed.run, resumed.state, resumed.attempt) == (before.run, "held", 2)
    assert lake.client.runs.load(before.run).options["file"] == "shipped:name-conflicts"


def test_dry_run_refuses_what_a_plan_refuses(lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A dry run has the problems of a check, with their positions, and the steps that their tables' columns refuse."""
    monkeypatch.setattr(command, "spark_for", lambda *_, **__: nullcontext(lake.spark))
    lake.spark.sql("CREATE TABLE IF NOT EXISTS main.shipped.wide (a INT, b INT)")
    options = {name: value for name, value in lake.options().items() if name != "listener"}
    wrong, narrow = tmp_path / "wrong.yaml", tmp_path / "narrow.yaml"
    head = "pipeline: dry\ncatalog: main\nsteps:\n"
    wrong.write_text(f"{head}  shipped.new: {{sql: SELECT nope FROM main.shipped.trips}}\n")
    narrow.write_text(f"{head}  shipped.wide: {{sql: SELECT 1 AS a}}\n  shipped.next: {{sql: SELECT 1 AS a}}\n")

    with pytest.raises(InvalidPipeline, match=r"wrong.yaml:4:\d+: .*nope"):
        command.dry_run(wrong, parameters={}, options=RunOptions(), **options)
    planned = command.dry_run(narrow, parameters={}, options=RunOptions(), **options)

    assert planned.ended is None
    refused = {each.step: each.refused for each in planned.steps}
    assert refused["shipped.next"] is None
    assert re.search(r"narrow.yaml:4:\d+: .*the table has b", refused["shipped.wide"] or "") is not None


def test_dry_run_of_selected_steps_needs_no_other_to_be_right(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Problems of steps that a run leaves out are not its problems; those of a selected step are."""
    monkeypatch.setattr(command, "spark_for", lambda *_, **__: nullcontext(lake.spark))
    options = {name: value for name, value in lake.options().items() if name != "listener"}
    file = tmp_path / "half.yaml"
    file.write_text(
        "pipeline: half\ncatalog: main\nsteps:\n"
        "  shipped.right: {sql: SELECT 1 AS a}\n"
        "  shipped.wrong: {sql: SELECT nope FROM main.shipped.trips}\n"
    )

    planned = command.dry_run(file, parameters={}, options=RunOptions(select=("shipped.right",)), **options)
    with pytest.raises(InvalidPipeline, match=r"half.yaml:5:\d+: .*nope"):
        command.dry_run(file, parameters={}, options=RunOptions(select=("shipped.wrong",)), **options)

    assert [(each.step, each.refused) for each in planned.steps] == [("shipped.right", None)]


def test_dry_run_of_changed_steps_ends_when_nothing_has_changed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a changed step, a dry run of `state:modified` has that reason, and checks no step: neither an empty
    pipeline nor the previews fail.
    """
    monkeypatch.setattr(command, "spark_for", lambda *_, **__: nullcontext(lake.spark))
    options = {name: value for name, value in lake.options().items() if name != "listener"}
    file = tmp_path / "same.yaml"
    file.write_text("pipeline: same\ncatalog: main\nsteps:\n  shipped.same: {sql: SELECT 1 AS a}\n")
    published = command.run_file(file, parameters={}, options=RunOptions(), **lake.options())
    checks: list[object] = []
    monkeypatch.setattr(command, "check", lambda *checked, **_: checks.append(checked))

    planned = command.dry_run(file, parameters={}, options=RunOptions(select=("state:modified",)), **options)

    assert (published.state, planned.steps, checks) == ("published", (), [])
    assert planned.ended is not None
    assert planned.ended.message.startswith("no step is selected: nothing has changed")


def test_resumed_run_of_unknown_shipped_pipeline_is_refused(lake: Lake) -> None:
    """A file that a run is resumed from may be a shipped pipeline; an unknown name is refused with those there are."""
    lake.run("name-conflicts")
    run = lake.client.runs.list(pipeline="name-conflicts")[0].id
    with pytest.raises(BadRequest, match="No pipeline nothing"):
        command.resume_run(run, file=Path("shipped:nothing"), options=RunOptions(), **lake.options())
    with pytest.raises(BadRequest, match="does not exist here"):
        command.resume_run(run, file=Path("nothing.yaml"), options=RunOptions(), **lake.options())


def test_backfill_of_shipped_pipeline_runs_for_each_value(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range of a parameter gives a run each; a value that is refused ends the backfill, and says what is left."""
    monkeypatch.setattr(command, "spark_for", lambda *_, **__: nullcontext(lake.spark))
    name = Path("shipped:audit-rollup")
    done = command.backfill(name, over="days=1..2", parameters={}, options=RunOptions(), **lake.options())
    ended = command.backfill(name, over="days=36500..36501", parameters={}, options=RunOptions(), **lake.options())

    assert (done.done, done.left) == (2, None)
    assert (ended.done, ended.left) == (1, "days=36501..36501")
    assert "days from 0 to 36500" in ended.ended.message
    with pytest.raises(BadRequest, match="more than 10,000 runs"):
        command.backfill(name, over="days=1..36501", parameters={}, options=RunOptions(), **lake.options())


@pytest.mark.parametrize("reference,message", [("nothing", "No pipeline nothing"), ("", "No pipeline")])
def test_unknown_name_is_refused(reference: str, message: str) -> None:
    """A name that no shipped pipeline has is refused with the names that there are."""
    with pytest.raises(BadRequest, match=message):
        load(f"shipped:{reference}")


def test_name_may_have_a_catalog() -> None:
    """The tables are in the catalog after `@`, by default in main; every shipped pipeline can be loaded."""
    for name in shipped_pipelines():
        assert load(f"shipped:{name}").declaration.catalog == "main"
    project = load("shipped:audit-rollup@other_one")

    assert project.declaration.catalog == "other_one"
    assert str(project.file) == "shipped:audit-rollup@other_one"
