# SPDX-License-Identifier: Apache-2.0
"""Runs of pipelines with loops over the rows of a query: the rows are those of the run's start, also in its resume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.model.errors import BadRequest, NotFound
from limnos.pipeline.checks import check
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.project import load
from limnos.pipeline.run.dry_run import intents
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.start import start
from tests.integration.live import LiveServer
from tests.pipeline.run.lance_place import FailingEngine, LancePlace

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PIPELINE = """
pipeline: SPACE
catalog: main
parameters: {day: {type: int, default: 1}}
environments: {dev: {prefix: dev_}}
steps:
  SPACE.orders_{{country}}:
    for_each: {query: "SELECT lower(country) AS country, least FROM SPACE.countries WHERE since <= :day"}
    python: 'MODULE:orders'
    inputs: {countries: SPACE.countries}
    expect: [{row: "country = '{{country}}' OR least >= {{least}}", action: drop}]
    tags: '{{country}}'
  SPACE.all: {sql: SELECT count(*) AS n FROM SPACE.orders_de}
"""
CODE = """
def orders(countries):
    return countries.selectExpr("lower(country) AS country", "least")
"""


@pytest.fixture
def place(
    spark: SparkSession, server: LiveServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LancePlace]:
    """A place with a table of countries."""
    space = "q" + "".join(filter(str.isalnum, request.node.name))[-30:].lower()
    opened = LancePlace(spark, server, file=tmp_path / f"{space}.yaml", space=space)
    (tmp_path / f"code_{space}.py").write_text(CODE)
    opened.write(PIPELINE.replace("MODULE", f"code_{space}"))
    spark.sql(f"CREATE TABLE main.{space}.countries (country STRING, least INT, since INT)")
    insert(opened, "('DE', 1, 1), ('FR', 2, 1), ('IT', 3, 2)")
    yield opened
    opened.client.close()
    opened.heartbeat_client.close()


def insert(place: LancePlace, values: str) -> None:
    """Add countries."""
    place.spark.sql(f"INSERT INTO main.{place.space}.countries VALUES {values}")


def steps_of(place: LancePlace, run: str) -> list[str]:
    """Return the names of a run's steps, without their namespace."""
    return sorted(step.name.rpartition(".")[2] for step in place.client.runs.load(run).steps)


def refusal(place: LancePlace, query: str) -> str:
    """Return the message of a run with this query."""
    text = place.file.read_text()
    begin, _, end = text.partition('{query: "')
    place.file.write_text(f'{begin}{{query: "{query}"}}{end[end.index("}") + 1 :]}')
    with pytest.raises((BadRequest, InvalidPipeline, NotFound)) as error:
        place.run()
    place.file.write_text(text)
    assert place.space not in [each.pipeline for each in place.client.runs.list()]
    return str(error.value)


def test_rows_make_the_steps_of_a_run(place: LancePlace) -> None:
    """Each row of the query makes a step, with the run's parameters; the next run has the rows of its own start. A
    selection names made steps, and a dry run has them without a run.
    """
    checked = check(place.pipeline, spark=place.spark, client=place.client)
    assert checked.problems == ()
    assert any(f"the steps of {place.space}.orders_{{{{country}}}}" in each for each in checked.unchecked)
    first = place.run()
    assert first.state == "published", first.message
    assert steps_of(place, first.run) == ["all", "orders_de", "orders_fr"]
    planned = intents(
        place.pipeline, place.means(), parameters={"day": 2}, options=RunOptions(), directory=place.file.parent
    )
    assert [each.step.rpartition(".")[2] for each in planned.steps] == ["orders_de", "orders_fr", "orders_it", "all"]

    second = place.run(day=2, select=(f"{place.space}.orders_i*",))
    third = place.run(day=2, select=("tag:fr",))

    assert second.state == third.state == "published", (second.message, third.message)
    assert steps_of(place, second.run) == ["orders_it"]
    assert steps_of(place, third.run) == ["orders_fr"]
    rows = place.spark.table(f"main.{place.space}.orders_it").collect()
    assert sorted(row["country"] for row in rows) == ["it"]


def test_resume_uses_the_rows_of_the_start(place: LancePlace) -> None:
    """A run that was ended and resumed has the steps of its start, although the table has other rows since; a changed
    query is refused. The next run has the new rows.
    """
    good = place.file.read_text()
    place.file.write_text(good.replace("count(*) AS n", "raise_error('later') AS n"))
    failed = place.run()
    assert failed.state == "failed", failed.message
    place.spark.sql(f"DELETE FROM main.{place.space}.countries WHERE country = 'FR'")
    insert(place, "('ES', 1, 1)")
    place.file.write_text(good.replace("since <= :day", "since = :day"))
    with pytest.raises(BadRequest, match="another query than when run"):
        place.resume(failed.run)
    place.file.write_text(good)
    carried: list[str] = []

    resumed = place.resume(failed.run, engine=FailingEngine(place.spark, after="", carried=carried))

    assert resumed.state == "published", resumed.message
    assert carried == [f"{place.space}.all"]
    assert steps_of(place, failed.run) == ["all", "orders_de", "orders_fr"]
    last = place.run()
    assert steps_of(place, last.run) == ["all", "orders_de", "orders_es"]


def test_plan_reads_the_rows_and_a_check_those_of_the_newest_run(place: LancePlace) -> None:
    """A plan has the steps of the rows of now, with their tables' changes; a check has those of the newest published
    run, and before any run one step for any row.
    """
    project = load(place.file)
    names = [f"{place.space}.{name}" for name in ("orders_de", "orders_fr", "all")]

    before = check(place.pipeline, client=place.client)
    planned = project.plan(place.spark, client=place.client)
    ended = place.run()
    insert(place, "('ES', 1, 1)")
    after = check(place.pipeline, client=place.client)
    again = project.plan(place.spark, client=place.client)

    assert [step.name for step in before.pipeline.steps] == [f"{place.space}.orders_{{{{country}}}}", names[2]]
    assert before.problems == ()
    assert [one.step.name for one in planned.steps] == names
    assert planned.checked.unchecked == ()
    assert planned.previews[names[0]].statements != ()
    assert ended.state == "published", ended.message
    assert [step.name for step in after.pipeline.steps] == names
    loop = f"{place.space}.orders_{{{{country}}}}"
    note = f"steps of {loop} for other rows than those of run {ended.run}: a run reads its query when it starts"
    assert after.unchecked == (note,)
    assert f"{place.space}.orders_es" in [one.step.name for one in again.steps]


def test_check_finds_variables_that_the_query_lacks(place: LancePlace) -> None:
    """The columns of the query are known from its tables, so a misspelt one, in the query or as a variable, is found
    before a run.
    """
    text = place.file.read_text()
    place.file.write_text(text.replace("least FROM", "least AS lest FROM"))
    variable = [each.message for each in check(place.pipeline, client=place.client).problems]
    place.file.write_text(text.replace("lower(country)", "lower(cuntry)"))
    column = [each.message for each in check(place.pipeline, client=place.client).problems]

    loop = f"{place.space}.orders_{{{{country}}}}"
    assert variable == [f"{loop}: the loop's query has no column 'least'; did you mean 'lest'?"]
    assert len(column) == 1
    assert column[0].startswith(f"{loop}: ")
    assert "`cuntry` cannot be resolved" in column[0]


def test_plan_refuses_rows_that_make_no_steps(place: LancePlace) -> None:
    """A row that is repeated is a problem of a plan, as it is of a run; a query without a parameter's value is named as
    not checked.
    """
    text = place.file.read_text()
    place.file.write_text(
        text.replace("SELECT lower(country) AS country, least FROM", "SELECT 'x' AS country, 1 AS least FROM")
    )
    repeated = load(place.file).plan(place.spark, client=place.client)
    place.file.write_text(text.replace("{type: int, default: 1}", "int"))
    unread = load(place.file).plan(place.spark, client=place.client)

    assert ["more than once: write SELECT DISTINCT" in each.message for each in repeated.checked.problems] == [True]
    assert repeated.steps == ()
    assert "parameter day (int) has no default" in unread.checked.unchecked[0]
    assert unread.steps[0].step.name.endswith("_{{country}}")


def test_environments_make_their_own_steps(place: LancePlace) -> None:
    """In an environment the query reads production's table, and the steps write the environment's."""
    project = load(place.file).in_environment("dev")
    ended = start(
        project.bind_functions(),
        place.means(),
        directory=place.file.parent,
        parameters={},
        options=RunOptions(lease_s=5),
    )

    assert ended.state == "published", ended.message
    assert place.spark.table(f"main.dev_{place.space}.orders_fr").count() == 2
    assert not place.spark.catalog.tableExists(f"main.{place.space}.orders_fr")


def test_hostile_rows_are_answered_before_a_run_begins(place: LancePlace) -> None:
    """Quotes, line breaks, a text of a megabyte, NULLs, repeated names, too many rows, no rows and wrong queries are
    answered with what to change; no run is registered.
    """
    assert 'country = "x\'y", which is not a word' in refusal(
        place, "SELECT concat('x', char(39), 'y') AS country, 1 AS least"
    )
    assert "country = 'x\\ny', which is not a word" in refusal(
        place, "SELECT concat('x', char(10), 'y') AS country, 1 AS least"
    )
    assert "of more than 64 characters, which begins with 'zzzz" in refusal(
        place, "SELECT repeat('z', 1048576) AS country, 1 AS least FROM range(200)"
    )
    assert "a NULL in country" in refusal(place, "SELECT CAST(NULL AS STRING) AS country, 1 AS least")
    assert "country = de, least = 1 more than once: write SELECT DISTINCT" in refusal(
        place, "SELECT 'de' AS country, 1 AS least FROM range(2)"
    )
    assert "least = '1.5', which is not a word" in refusal(place, "SELECT 'de' AS country, 1.5 AS least")
    assert "returns no row" in refusal(place, "SELECT 'de' AS country, 1 AS least WHERE false")
    assert "more than 10,000 rows" in refusal(place, "SELECT concat('c', id) AS country, 1 AS least FROM range(10001)")
    assert "has no variable 'least'; it has country" in refusal(place, "SELECT 'de' AS country")
    assert "two columns country" in refusal(place, "SELECT 'de' AS country, 'fr' AS country")
    assert "the column 'count(1)', which is no variable" in refusal(
        place, "SELECT count(1), 'de' AS country, 1 AS least"
    )
    assert "has no ':run_id'" in refusal(place, "SELECT :run_id AS country, 1 AS least")
    assert "'countries' is none: write a table with its namespace" in refusal(place, "SELECT * FROM countries")
    assert "does not exist, or you may not see it" in refusal(place, f"SELECT * FROM {place.space}.nothing")
    problems = [each.message for each in check(place.pipeline, client=place.client).problems]
    assert problems == []
    text = place.file.read_text()
    place.file.write_text(text.replace(f"FROM {place.space}.countries WHERE", f"FROM {place.space}.lands WHERE"))
    (absent,) = [each.message for each in check(place.pipeline, client=place.client).problems]
    assert f"the loop's query reads main.{place.space}.lands, which does not exist" in absent
