# SPDX-License-Identifier: Apache-2.0
"""Loops over the rows of a query: the steps that rows make, wrong rows, and what a check says without rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.checks import check
from limnos.pipeline.declaration import LoopRows, Pipeline, QueryLoop, Sql
from limnos.pipeline.declaration_json import encode_declaration
from limnos.pipeline.environments import in_environment
from limnos.pipeline.file import load_readable, read
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.query_loops import encode_loops, recorded_rows, with_loop_steps

QUERY = "SELECT country, least FROM raw.countries"
NAME = "raw.orders_{{country}}"
TEXT = f"""pipeline: p
catalog: main
environments: {{dev: {{prefix: dev_}}}}
steps:
  {NAME}:
    for_each:
      query: {QUERY}
    sql: SELECT '{{{{country}}}}' AS country FROM raw.all WHERE x > {{{{least}}}}
    expect: [{{rows: {{min: '{{{{least}}}}'}}}}]
  marts.all: {{sql: SELECT * FROM raw.orders_de}}
"""
Row = tuple[str | int | None, ...]


def pipeline_of(text: str = TEXT) -> Pipeline:
    """Return the pipeline of a file."""
    return read(text, file="p.yaml", directory=Path())


def made(*rows: Row, columns: tuple[str, ...] = ("country", "least"), pipeline: Pipeline | None = None) -> Pipeline:
    """Return the pipeline with the steps of these rows."""
    loops = {NAME: LoopRows(query=QUERY, columns=columns, rows=rows)}
    return with_loop_steps(pipeline or pipeline_of(), loops, directory=Path())


def refused(*rows: Row, columns: tuple[str, ...] = ("country", "least")) -> list[str]:
    """Return the problems of these rows."""
    with pytest.raises(InvalidPipeline) as error:
        made(*rows, columns=columns)
    return [str(problem) for problem in error.value.problems]


def test_each_row_makes_a_step() -> None:
    """The columns of a row are the variables of a step, in the place of its loop; a whole number stays a number."""
    known = pipeline_of()

    pipeline = made(("de", 1), ("fr", 20))

    assert [one.name for one in known.steps] == ["marts.all"]
    assert known.loops == (QueryLoop(name=NAME, query=QUERY, variables=("country", "least")),)
    assert [one.name for one in pipeline.steps] == ["raw.orders_de", "raw.orders_fr", "marts.all"]
    assert pipeline.steps[1].body == Sql(text="SELECT 'fr' AS country FROM raw.all WHERE x > 20")
    assert pipeline.steps[1].expectations[0].rows_min == 20
    assert pipeline.loops == ()
    assert "loops" not in encode_declaration(pipeline)


def test_environment_has_the_steps_of_its_loops() -> None:
    """The steps that rows make in an environment write the environment's tables."""
    pipeline = made(("de", 1), pipeline=in_environment(pipeline_of(), "dev"))

    assert pipeline.name == "p.dev"
    assert [one.table for one in pipeline.steps] == [("main", "dev_raw", "orders_de"), ("main", "dev_marts", "all")]


WRONG: dict[str, tuple[Row, ...]] = {
    'country = "de\' OR 1=1 --", which is not a word': (("de' OR 1=1 --", 1),),
    "country = 'd\"e', which is not a word": (('d"e', 1),),
    "country = 'a\\nb', which is not a word": (("a\nb", 1),),
    "country = 'a--b', which is not a word": (("a--b", 1),),
    "country = '', which is not a word": (("", 1),),
    "country = 'é', which is not a word": (("é", 1),),
    "least = '-1', which is not a word": (("de", -1),),
    "a country of more than 64 characters, which begins with 'xxxxxxxxxxxxxxxxxxxx'": (("x" * 65, 1),),
    "a NULL in country: leave it out, as WHERE country IS NOT NULL": ((None, 1),),
    "country = de, least = 1 more than once: write SELECT DISTINCT": (("de", 1), ("fr", 1), ("de", 1)),
    "returns no row, so it makes no step": (),
}


@pytest.mark.parametrize("words,rows", WRONG.items(), ids=WRONG)
def test_wrong_rows_are_answered_at_the_loop(words: str, rows: tuple[Row, ...]) -> None:
    """Values that are no words, missing ones, repeated rows and no rows are one problem, at the place of the query."""
    problems = refused(*rows)

    assert len(problems) == 1
    assert problems[0].startswith("p.yaml:7:7: the loop's query ")
    assert words in problems[0]


def test_rows_of_one_name_need_further_variables() -> None:
    """Two different rows that make one step are answered as items of a list are."""
    assert refused(("de", 1), ("de", 2)) == [
        "p.yaml:5:3: this loop makes raw.orders_de again: name {{country}} and {{least}} in the step's name"
    ]


def test_wrong_columns_are_answered() -> None:
    """A variable that the query lacks, a column that is no variable, and too many columns are problems."""
    assert refused(("de",), columns=("country",))[0] == "p.yaml:8:10: the loop has no variable 'least'; it has country"
    assert (
        "the column 'count(1)', which is no variable: rename it with AS"
        in refused(("a", 1), columns=("a", "count(1)"))[0]
    )
    many = tuple(f"c{number}" for number in range(9))
    assert "more than 8 columns" in refused(many, columns=many)[0]


def test_name_of_another_step_is_not_made_again() -> None:
    """A row must not make a step that the file has."""
    name = "marts.{{country}}"
    rows = {name: LoopRows(query=QUERY, columns=("country", "least"), rows=(("all", 1),))}
    pipeline = pipeline_of(TEXT.replace(NAME, name))

    with pytest.raises(InvalidPipeline, match=r"this loop makes marts\.all again"):
        with_loop_steps(pipeline, rows, directory=Path())


MISTAKES = {
    "sqll: SELECT 1": "p.yaml:8:5: unknown key 'sqll'; did you mean 'sql'?",
    "sql: SELECT 1\n    write: replce": "p.yaml:9:12: 'replce' is not one of replace, append, partitions",
}


@pytest.mark.parametrize("body,message", MISTAKES.items(), ids=MISTAKES)
def test_mistakes_of_a_loop_are_found_without_rows(body: str, message: str) -> None:
    """A mistake that has nothing to do with the values is found when the file is read."""
    begin, _, _ = TEXT.partition("    sql:")

    with pytest.raises(InvalidPipeline) as error:
        pipeline_of(f"{begin}    {body}\n")

    assert any(str(each).startswith(message) for each in error.value.problems), error.value.problems


@pytest.mark.parametrize(
    "loop,message",
    [
        ("{query: 5}", "p.yaml:4:33: a query is expected, not '5'; its columns are the variables"),
        ("{query: ''}", "p.yaml:4:33: a query is expected"),
        ("{query: SELECT 1, x: [a]}", "p.yaml:4:25: a loop has a query, or lists: leave one out"),
    ],
)
def test_wrong_loops_are_answered(loop: str, message: str) -> None:
    """A query that is no text, and a query beside lists are problems."""
    with pytest.raises(InvalidPipeline) as error:
        pipeline_of(f"pipeline: p\ncatalog: main\nsteps:\n  a.t_{{{{x}}}}: {{for_each: {loop}, sql: SELECT 1}}\n")

    assert str(error.value.problems[0]).startswith(message), error.value.problems


def test_check_names_unknown_steps() -> None:
    """A check without rows checks one step of the loop, says so, and finds mistakes of its query."""
    checked = check(pipeline_of())
    wrong = check(
        pipeline_of(TEXT.replace(QUERY, "SELECT country, least FROM countries WHERE day = :dya AND at < :run_at"))
    )
    broken = check(pipeline_of(TEXT.replace(QUERY, "SELEC country")))

    assert checked.problems == ()
    assert [one.name for one in checked.pipeline.steps] == [NAME, "marts.all"]
    assert f"the steps of {NAME}, beyond one for any row: a run makes one of each row" in checked.unchecked
    messages = [each.message for each in wrong.problems]
    assert any("reads published tables, and 'countries' is none" in each for each in messages), messages
    assert any("no parameter ':dya'" in each for each in messages), messages
    assert any("has no ':run_at'" in each for each in messages), messages
    assert [str(each.at) for each in broken.problems] == ["p.yaml:7:14"]


def test_file_with_another_mistake_keeps_its_loops(tmp_path: Path) -> None:
    """A check of a file with a mistake elsewhere knows the loop, and the tables that it may make."""
    path = tmp_path / "p.yaml"
    path.write_text(TEXT + "  marts.more: {sqll: SELECT 1}\n")

    readable = load_readable(path)

    assert readable is not None
    assert [one.name for one in readable.pipeline.loops] == [NAME]
    assert readable.pipeline.loops[0].may_make(("main", "raw", "orders_de"))
    assert not readable.pipeline.loops[0].may_make(("main", "raw", "ordersde"))


def test_record_has_the_rows_of_a_run() -> None:
    """A resumed run has the rows of its record; a loop with another query, or without rows there, is refused."""
    rows = {NAME: LoopRows(query=QUERY, columns=("country", "least"), rows=(("de", 1), ("fr", 2)))}

    assert recorded_rows(pipeline_of(), encode_loops(rows), run="r1") == rows
    for text in (TEXT.replace("raw.countries", "raw.lands"), TEXT.replace(NAME, "raw.sales_{{country}}")):
        with pytest.raises(BadRequest, match="another query than when run r1 began"):
            recorded_rows(pipeline_of(text), encode_loops(rows), run="r1")
