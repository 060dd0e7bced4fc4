# SPDX-License-Identifier: Apache-2.0
"""Whole runs over Spark: rows that are read, written, published, and read again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.request_counts import count_requests
from limnos.client import Client
from limnos.pipeline.declaration import (
    Expectation,
    ExpectationAction,
    Load,
    Parameter,
    ParameterType,
    Pipeline,
    RuleKind,
    Sql,
    StepDeclaration,
    WriteDeclaration,
    WriteMode,
)
from limnos.pipeline.engine.differences import BranchDifference, difference
from limnos.pipeline.engine.driver import SparkEngine
from limnos.pipeline.project import load
from limnos.pipeline.run.dry_run import intents
from limnos.pipeline.run.events import RunEvent
from limnos.pipeline.run.held_runs import branches_of, publish_held, tables_of_run
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.refs import inspected_tables
from limnos.pipeline.run.request import RunMeans
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.pipeline.run.resume import resume
from limnos.pipeline.run.start import start
from limnos.pipeline.run.stop import StopSignal
from limnos.pipeline.source_declarations import DeclaredSource, Files, MalformedRowPolicy
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Place:
    """A namespace of the test's own, and its runs."""

    def __init__(self, spark: SparkSession, server: LiveServer, *, name: str) -> None:
        self.spark = spark
        self.name = name
        self.client = Client(server.uri, token=server.token)
        self.heartbeat_client = Client(server.uri, token=server.token)
        self.engine = SparkEngine(spark)
        self.events: list[RunEvent] = []
        self.asked = lambda: count_requests(server.uri, server.token)
        self.client.namespaces.create(f"main.{name}")

    def means(self) -> RunMeans:
        """Return the engine and the session for runs."""
        return RunMeans(
            client=self.client,
            heartbeat_client=self.heartbeat_client,
            engine=self.engine,
            stop=StopSignal(),
            listener=self.events.append,
        )

    def step(self, table: str, sql: str, **further: object) -> StepDeclaration:
        """Return a step of an SQL query, where `@` is replaced by the namespace."""
        return StepDeclaration(
            table=("main", self.name, table), body=Sql(text=sql.replace("@", f"main.{self.name}")), **further
        )  # type: ignore[arg-type]

    def pipeline(
        self, *steps: StepDeclaration, parameters: tuple[Parameter, ...] = (), sources: tuple[DeclaredSource, ...] = ()
    ) -> Pipeline:
        """Return a pipeline of these steps."""
        return Pipeline(name=self.name, catalog="main", steps=steps, parameters=parameters, sources=sources)

    def run(
        self,
        *steps: StepDeclaration,
        parameters: tuple[Parameter, ...] = (),
        sources: tuple[DeclaredSource, ...] = (),
        parameter_values: dict[str, object] | None = None,
        **options: object,
    ) -> RunResult:
        """Run the steps."""
        pipeline = self.pipeline(*steps, parameters=parameters, sources=sources)
        return start(
            pipeline, self.means(), directory=Path(), parameters=parameter_values, options=RunOptions(**options)
        )  # type: ignore[arg-type]

    def tables(self) -> set[str]:
        """Return the names of all tables of the namespace."""
        return {table[-1] for table in self.client.tables.list(f"main.{self.name}")}

    def rows(self, table: str) -> list[tuple[object, ...]]:
        """Return the published rows of a table."""
        return sorted(tuple(row) for row in self.spark.sql(f"SELECT * FROM main.{self.name}.{table}").collect())


@pytest.fixture
def place(spark: SparkSession, server: LiveServer, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A place for the test."""
    opened_place = Place(spark, server, name=request.node.name.partition("[")[0][-60:])
    yield opened_place
    opened_place.client.close()
    opened_place.heartbeat_client.close()


def test_dependent_steps_are_published_together(place: Place) -> None:
    """Three steps run in the order of their inputs; a second run replaces all rows."""
    steps = (
        place.step("total", "SELECT sum(x) AS s, count(*) AS n FROM @.doubled"),
        place.step("doubled", "SELECT numbers.x * 2 AS x FROM @.numbers"),
        place.step("numbers", "SELECT id AS x FROM range(:n)"),
    )
    n = (Parameter(name="n", type=ParameterType.INT),)

    ended = place.run(*steps, parameters=n, parameter_values={"n": "4"})

    assert ended.state == "published", ended.message
    assert place.rows("doubled") == [(0,), (2,), (4,), (6,)]
    assert place.rows("total") == [(12, 4)]
    assert place.run(*steps, parameters=n, parameter_values={"n": 2}).state == "published"
    assert place.rows("total") == [(2, 2)]
    assert [step.rows for step in place.client.runs.load(ended.run).steps] == [1, 4, 4]


def test_tables_of_two_catalogs_are_published_together(place: Place) -> None:
    """A step of another catalog reads this run's rows of the first, and both tables appear by one commit."""
    other = f"other_{len(place.name)}_{place.name[-8:]}".replace("-", "_")
    place.client.catalogs.create(other)
    prefix, settings = "spark.sql.catalog.main", place.spark.conf.getAll
    for key, value in settings.items():
        if key == prefix or key.startswith(f"{prefix}."):
            named = value.replace("main", other) if key.endswith((".warehouse", ".prefix")) else value
            place.spark.conf.set(key.replace(prefix, f"spark.sql.catalog.{other}", 1), named)
    numbers = place.step("numbers", "SELECT id AS x FROM range(4)")
    doubled = StepDeclaration(
        table=(other, place.name, "doubled"), body=Sql(text=f"SELECT x * 2 AS x FROM main.{place.name}.numbers")
    )

    ended = place.run(numbers, doubled)

    assert ended.state == "published", ended.message
    rows = place.spark.sql(f"SELECT * FROM {other}.{place.name}.doubled").collect()
    assert sorted(tuple(row) for row in rows) == [(0,), (2,), (4,), (6,)]
    assert place.rows("numbers") == [(0,), (1,), (2,), (3,)]


def test_step_sends_a_fixed_number_of_requests(place: Place) -> None:
    """A step on an existing table sends a fixed number of requests; none is sent twice without need."""
    step = place.step(
        "one", "SELECT 1 AS x", expectations=(Expectation(name="x", kind=RuleKind.ROW, condition="x > 0"),)
    )
    place.run(step)
    before = place.asked()

    ended = place.run(step)

    assert ended.state == "published", ended.message
    request_counts = place.asked() - before
    # These depend on the duration, the start of the session, and the number of pipelines.
    for name in ("beat-run", "load-config", "load-pipeline"):
        request_counts.pop(name, None)
    assert request_counts == {
        "load-table": 7,
        "commit-table": 2,
        "put-step": 2,
        "report-metrics": 1,
        "put-pipeline": 1,
        "start-run": 1,
        "transaction": 1,
        "list-pipelines": 1,
        "explain-access": 2,
        "list-catalogs": 2,
    }


def test_failed_query_is_reported_without_stack_trace(place: Place) -> None:
    """The message of a failed query is that of Spark, without a stack trace, and the exit code is that of failed
    code.
    """
    ended = place.run(
        place.step("a", "SELECT 1 AS x"), place.step("b", "SELECT CAST(raise_error('no good') AS int) AS y FROM @.a")
    )

    assert (ended.why, ended.exit_code) == (EndReason.CODE, 11)
    assert "no good" in ended.message
    assert "\tat " not in ended.message
    assert place.tables() == set()


def test_duplicate_merge_keys_are_invalid_data(place: Place) -> None:
    """A merge whose source has a key twice publishes nothing, and is reported as invalid data."""
    merged = WriteDeclaration(mode=WriteMode.MERGE, keys=("x",))

    ended = place.run(place.step("a", "SELECT * FROM VALUES (1, 2), (1, 3) AS t(x, y)", write=merged))

    assert (ended.why, ended.exit_code) == (EndReason.DATA, 10)
    assert place.tables() == set()


def row_rule(name: str, condition: str, action: ExpectationAction) -> Expectation:
    """Return a row rule."""
    return Expectation(name=name, kind=RuleKind.ROW, action=action, condition=condition)


def test_violating_rows_are_dropped_quarantined_or_reported(place: Place) -> None:
    """Dropped rows are not published, quarantined rows are in the quarantine table with their rule, and all tables are
    published together.
    """
    rules = (
        row_rule("positive", "x > 0", ExpectationAction.DROP),
        row_rule("small", "x < 3", ExpectationAction.QUARANTINE),
        row_rule("odd", "x % 2 = 1", ExpectationAction.WARN),
    )

    ended = place.run(place.step("a", "SELECT id AS x FROM range(5)", expectations=rules))

    assert ended.state == "published", ended.message
    assert ended.message == f"published main.{place.name}.a, main.{place.name}.a__quarantine"
    assert place.rows("a") == [(1,), (2,)]
    files = place.spark.sql(f"SELECT sum(file_size_in_bytes) FROM main.{place.name}.a.files").collect()
    assert place.client.runs.load(ended.run).steps[0].bytes == files[0][0]
    assert [row[:3] for row in place.rows("a__quarantine")] == [
        (3, ["small"], ended.run),
        (4, ["small"], ended.run),
    ]
    findings = {each.rule: each for each in place.client.runs.load(ended.run).findings}
    assert {name: (each.broken, each.held) for name, each in findings.items()} == {
        "positive": (1, True),
        "small": (2, True),
        "odd": (1, False),
    }


def test_violated_rule_publishes_no_table_of_the_run(place: Place) -> None:
    """A rule of the second step's table is evaluated on its branch; the first step's rows are not published either."""
    unique = Expectation(name="one each", kind=RuleKind.UNIQUE, columns=("y",))
    steps = (
        place.step(
            "a", "SELECT id AS x FROM range(4)", expectations=(row_rule("any", "x >= 0", ExpectationAction.FAIL),)
        ),
        place.step("b", "SELECT x % 2 AS y FROM @.a", expectations=(unique,)),
    )

    ended = place.run(*steps)

    assert (ended.state, ended.why) == ("failed", EndReason.DATA)
    assert "one each" in ended.message
    assert place.tables() == set()
    differences = diff_of(place, ended)
    assert place.tables() == set()
    assert [(each.added, each.removed) for each in differences] == [(4, 0), (4, 0)]


def test_resume_reloads_corrected_file(place: Place, tmp_path: Path) -> None:
    """A row violates a rule two steps after its file is loaded; after the file is corrected, the resume loads it again
    and publishes.
    """
    file = tmp_path / "prices.csv"
    file.write_text("x\n1\n-2\n")
    source = DeclaredSource(
        name="prices", kind=Files(path=str(file), format="csv", schema="x INT", options={"header": "true"})
    )
    steps = (
        StepDeclaration(table=("main", place.name, "raw"), body=Load(source="prices")),
        place.step("other", "SELECT 1 AS one"),
        place.step("b", "SELECT x FROM @.raw", expectations=(row_rule("positive", "x > 0", ExpectationAction.FAIL),)),
    )
    ended = place.run(*steps, sources=(source,))
    assert (ended.state, ended.why) == ("failed", EndReason.DATA)
    file.write_text("x\n1\n2\n")

    pipeline = place.pipeline(*steps, sources=(source,))
    place.events.clear()
    second = resume(pipeline, place.means(), run_id=ended.run, directory=Path())

    assert second.state == "published", second.message
    assert place.rows("b") == [(1,), (2,)]
    assert {event.step.rpartition(".")[2] for event in place.events if event.step} == {"raw", "b"}


def diff_of(place: Place, ended: RunResult) -> list[BranchDifference]:
    """Return the changes that publishing the run would make."""
    seen = place.client.runs.load(ended.run)
    new = [table for table, is_new in tables_of_run(seen).items() if is_new]
    with inspected_tables(place.client, new, run=seen.id) if seen.state == "failed" else nullcontext():
        return [difference(place.spark, branch) for branch in branches_of(seen)]


def test_diff_of_merge_counts_changed_rows(place: Place) -> None:
    """The diff of a held run counts a row with an existing key as changed."""
    merged = WriteDeclaration(mode=WriteMode.MERGE, keys=("k",))
    place.run(place.step("a", "SELECT * FROM VALUES (1, 'x'), (2, 'y') AS t(k, v)", write=merged))

    ended = place.run(place.step("a", "SELECT * FROM VALUES (2, 'z'), (3, 'w') AS t(k, v)", write=merged), hold=True)

    branch = branches_of(place.client.runs.load(ended.run))[0]
    diff = difference(place.spark, branch, keys=("k",), rows=10)
    assert (diff.added, diff.removed, diff.changed) == (1, 0, 1)
    assert {(row["side"], row["k"]) for row in diff.sample} == {("added", 2), ("added", 3), ("removed", 2)}
    assert place.rows("a") == [(1, "x"), (2, "y")]


def test_incremental_step_reads_rows_since_last_publication(place: Place) -> None:
    """The second run reads only the second day, a third finds nothing new, and `full` reads everything again."""
    place.spark.sql(f"CREATE TABLE main.{place.name}.raw (x INT)")
    place.spark.sql(f"INSERT INTO main.{place.name}.raw VALUES (1), (2)")
    step = place.step(
        "a", "SELECT x * 10 AS y FROM @.raw", write=WriteDeclaration(mode=WriteMode.APPEND), incremental=True
    )

    first = place.run(step)
    place.spark.sql(f"INSERT INTO main.{place.name}.raw VALUES (3)")
    second = place.run(step)
    third = place.run(step)
    whole = place.run(step, full=True)

    assert [ended.rows for ended in (first, second, third, whole)] == [2, 1, 0, 3]
    assert place.rows("a") == [(10,), (20,), (30,)]
    first_input = place.client.runs.load(first.run).steps[0].inputs[0]
    assert "whole_because" in first_input


def test_file_source_is_read_by_name_and_incrementally(place: Place, tmp_path: Path) -> None:
    """A query reads a source by its name; the second run of an incremental load reads only the new file."""
    (tmp_path / "1.csv").write_text("x,y\n1,a\n2,b\n")
    source = DeclaredSource(
        name="days",
        kind=Files(path=f"{tmp_path}/*.csv", format="csv", schema="x INT, y STRING", options={"header": "true"}),
    )
    load = StepDeclaration(
        table=("main", place.name, "raw"),
        body=Load(source="days"),
        write=WriteDeclaration(mode=WriteMode.APPEND),
        incremental=True,
    )
    query = place.step("b", "SELECT days.y, count(*) AS n FROM days GROUP BY days.y")

    first = place.run(load, query, sources=(source,))
    (tmp_path / "2.csv").write_text("x,y\n3,a\n")
    second = place.run(load, query, sources=(source,))

    assert (first.state, second.state) == ("published", "published"), first.message + second.message
    assert place.rows("raw") == [(1, "a"), (2, "b"), (3, "a")]
    assert place.rows("b") == [("a", 2), ("b", 1)]
    rows = {step.name.rpartition(".")[2]: step.rows for step in place.client.runs.load(second.run).steps}
    assert rows == {"raw": 1, "b": 2}
    lineage = place.client.lineage.up(f"main.{place.name}.raw")
    assert [each.name for each in lineage.nodes if each.kind == "outside"] == [str(tmp_path)]


def test_malformed_texts_are_published_in_one_side_table(place: Place, tmp_path: Path) -> None:
    """Malformed texts of both joined files are in one table, which is published, counted and shown like a quarantine
    table.
    """
    file_options = {
        "format": "csv",
        "schema": "x INT, y INT",
        "options": {"header": "true"},
        "malformed": MalformedRowPolicy.KEEP,
    }
    for name, text in (("left", "x,y\n1,1\nfour,4\n"), ("right", "x,y\n1,2\n3,five\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    sources = tuple(
        DeclaredSource(name=name, kind=Files(path=f"{tmp_path}/{name}.csv", **file_options))  # type: ignore[arg-type]
        for name in ("left", "right")
    )
    step = place.step("both", "SELECT l.x, l.y, r.y AS z FROM left AS l JOIN right AS r ON l.x = r.x")

    ended = place.run(step, sources=sources)

    assert ended.state == "published", ended.message
    assert place.rows("both") == [(1, 1, 2)]
    beside = place.spark.sql(f"SELECT _text, _source, _run FROM main.{place.name}.both__malformed").collect()
    assert {tuple(row) for row in beside} == {("four,4", "left", ended.run), ("3,five", "right", ended.run)}
    seen = place.client.runs.load(ended.run)
    assert ["main", place.name, "both__malformed"] in seen.options["tables"]  # type: ignore[operator]
    assert [output["table"][-1] for output in seen.steps[0].outputs] == ["both", "both__malformed"]  # type: ignore[index]
    assert {each.rule: each.broken for each in seen.findings} == {"left is well formed": 1, "right is well formed": 1}
    assert {each.action for each in seen.findings} == {"keep"}
    assert ended.message == f"published main.{place.name}.both, main.{place.name}.both__malformed"


def test_lineage_is_reported_when_run_is_published(place: Place) -> None:
    """The columns of a published table and of its quarantine have lineage; those of a held run have none before it is
    published.
    """
    small = row_rule("small", "y < 3", ExpectationAction.QUARANTINE)
    steps = (
        place.step("a", "SELECT id AS x FROM range(3)"),
        place.step("b", "SELECT x + 1 AS y FROM @.a", expectations=(small,)),
    )

    def sources(table: str, column: str) -> set[tuple[object, ...]]:
        graph = place.client.lineage.up(f"main.{place.name}.{table}", column=column)
        return {(*(node.path or ()), node.column) for node in graph.nodes if node.id != graph.root}

    held_run = place.run(*steps, hold=True)
    assert held_run.state == "held", held_run.message
    assert sources("b", "y") == set()
    publish_held(place.client, held_run.run)

    assert [sources(table, "y") for table in ("b", "b__quarantine")] == [{("main", place.name, "a", "x")}] * 2


def test_pipeline_file_can_be_run_from_python(place: Place, tmp_path: Path) -> None:
    """A pipeline file is loaded and run from Python, with the server and the credential of the session's catalog."""
    file = tmp_path / "p.yaml"
    file.write_text(
        f"pipeline: loaded\ncatalog: main\nparameters:\n  n: {{type: int}}\n"
        f"steps:\n  {place.name}.a:\n    sql: SELECT id AS x FROM range(:n)\n"
    )

    ended = load(file).run(place.spark, parameters={"n": 3}).require()

    assert (ended.state, ended.rows) == ("published", 3)
    assert place.rows("a") == [(0,), (1,), (2,)]
    assert place.client.runs.load(ended.run).options["file"] == str(file)


def test_plan_lists_steps_and_creates_nothing(place: Place) -> None:
    """A plan lists the steps in order with their inputs; it creates no table and starts no run."""
    steps = (place.step("b", "SELECT * FROM @.a"), place.step("a", "SELECT 1 AS x"))

    planned_steps = intents(place.pipeline(*steps), place.means(), parameters={}, options=RunOptions()).steps

    a, b = f"{place.name}.a", f"{place.name}.b"
    assert [(each.step, each.after, each.reads) for each in planned_steps] == [
        (a, (), ()),
        (b, (a,), (f"main.{a} of this run",)),
    ]
    assert not place.client.tables.exists(f"main.{a}")
    assert place.name not in {each.name for each in place.client.pipelines.list()}


def test_an_environment_is_built_from_production(place: Place, tmp_path: Path) -> None:
    """In an environment a selected step reads production's rows, in SQL, in Python and in a rule; quarantined rows and
    history go to tables of its own, production's rows stay, and a second run continues from its own table.
    """
    name = place.name
    (tmp_path / "own.py").write_text(
        "def doubled(orders):\n    return orders.selectExpr('id', 'amount * 2 AS amount')\n"
    )
    text = f"""
pipeline: {name}
catalog: main
environments: {{dev: {{prefix: dev_}}}}
steps:
  {name}.orders: {{sql: "SELECT * FROM VALUES (1, 10), (2, -1) AS t(id, amount)"}}
  {name}.good:
    sql: SELECT * FROM {name}.orders
    expect: [{{row: amount > 0, action: quarantine}}, {{references: {name}.orders, columns: id}}]
  {name}.doubled: {{python: own:doubled, inputs: {{orders: {name}.good}}}}
  {name}.past: {{sql: SELECT * FROM main.{name}.good, write: {{mode: history, keys: id}}}}
"""
    (tmp_path / "p.yaml").write_text(text)
    project = load(tmp_path / "p.yaml")
    own = project.in_environment("dev")
    published = project.run(place.spark, client=place.client)
    before = {table: place.rows(table) for table in place.tables()}

    ended = own.run(place.spark, client=place.client, options=RunOptions(select=(f"{name}.good+",)))
    again = own.run(place.spark, client=place.client)

    def rows(table: str) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in place.spark.sql(f"SELECT * FROM main.dev_{name}.{table}").collect())

    assert (published.state, ended.state, again.state) == ("published",) * 3, (ended.message, again.message)
    assert {table: place.rows(table) for table in place.tables()} == before
    assert rows("good") == [(1, 10)]
    assert rows("doubled") == [(1, 20)]
    assert [row[:2] for row in rows("past")] == [(1, 10)]
    assert [row[:2] for row in rows("good__quarantine")] == [(2, -1), (2, -1)]
    assert {table[-1] for table in place.client.tables.list(f"main.dev_{name}")} == {
        *("orders", "good", "doubled", "past", "good__quarantine")
    }
    lineage = place.client.lineage.up(f"main.dev_{name}.good", column="amount")
    assert {node.path[1] for node in lineage.nodes if node.kind == "table"} <= {f"dev_{name}", name}
