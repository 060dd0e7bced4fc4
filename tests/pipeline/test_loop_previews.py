# SPDX-License-Identifier: Apache-2.0
"""Steps of loops over queries before a run: known rows, examples, and rows that stand for any."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from limnos.client import Client
from limnos.client.activity.runs import Run
from limnos.client.errors import NotFoundError
from limnos.pipeline.checks import CheckResult, check
from limnos.pipeline.declaration import LoopRows, Pipeline
from limnos.pipeline.drawn_graph import graph_of
from limnos.pipeline.environments import in_environment
from limnos.pipeline.file import read
from limnos.pipeline.loop_previews import loop_preview, rows_of_newest_run
from limnos.pipeline.plan import plan
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.query_loops import encode_loops

QUERY = "SELECT country, least FROM raw.countries"
NAME = "raw.orders_{{country}}"
HEAD = """pipeline: p
catalog: main
environments: {dev: {prefix: dev_}}
sources:
  orders: {files: data/orders.csv, schema: "id bigint, country string, amount double"}
steps:
"""
LOOP = f'  {NAME}: {{for_each: {{query: "{QUERY}"}}, '
BODY = "sql: \"SELECT id, amount FROM orders WHERE country = '{{country}}' AND amount >= {{least}}\"}\n"
TEXT = HEAD + LOOP + BODY
ROWS = {NAME: LoopRows(query=QUERY, columns=("country", "least"), rows=(("de", 1), ("fr", 2)))}


def pipeline_of(text: str = TEXT) -> Pipeline:
    """Return the pipeline of a file."""
    return read(text, file="p.yaml", directory=Path())


def checked(body: str, *, more: str = "") -> CheckResult:
    """Return the check of a loop with this body and of more steps."""
    return check(pipeline_of(f"{HEAD}{LOOP}{body}}}\n{more}"), with_columns=True)


def test_known_rows_make_the_steps_of_a_preview() -> None:
    """Rows that were read now make all steps, and nothing is left to say about the loop."""
    preview = loop_preview(pipeline_of(), rows=ROWS)

    assert [one.name for one in preview.pipeline.steps] == ["raw.orders_de", "raw.orders_fr"]
    assert preview.pipeline.loops == ()
    assert (preview.notes, preview.stand_ins) == ((), {})


def test_wrong_rows_are_refused() -> None:
    """Rows that were read now and that make no steps are an error, as for a run."""
    rows = {NAME: LoopRows(query=QUERY, columns=("country", "least"), rows=(("de", 1), ("de", 1)))}

    with pytest.raises(InvalidPipeline, match="more than once: write SELECT DISTINCT"):
        loop_preview(pipeline_of(), rows=rows)


def test_rows_of_a_run_make_steps_and_a_note() -> None:
    """Rows of the newest run make steps, the note says of which run they are, and the loop may still make others."""
    preview = loop_preview(pipeline_of(), recorded=ROWS, run="r-7")

    assert [one.name for one in preview.pipeline.steps] == ["raw.orders_de", "raw.orders_fr"]
    assert preview.notes == (
        f"steps of {NAME} for other rows than those of run r-7: a run reads its query when it starts",
    )
    assert preview.pipeline.loops[0].may_make(("main", "raw", "orders_it"))


def test_step_with_variables_is_made_without_rows() -> None:
    """Without rows the loop has one step with the variables in its name, in the tables of an environment if chosen."""
    preview = loop_preview(in_environment(pipeline_of(), "dev"))

    (step,) = preview.pipeline.steps
    assert step.name == NAME
    assert step.table == ("main", "dev_raw", "orders_any_country")
    assert preview.notes == (f"the steps of {NAME}, beyond one for any row: a run makes one of each row",)


def test_example_is_the_row_of_a_preview() -> None:
    """The words of an example are those of the only step, and the note says so."""
    text = TEXT.replace(f'query: "{QUERY}"', f'query: "{QUERY}", example: {{country: de, least: 3}}')

    preview = loop_preview(pipeline_of(text))

    assert preview.pipeline.steps[0].table == ("main", "raw", "orders_de")
    assert "country = 'de' AND amount >= 3" in str(preview.pipeline.steps[0].body)
    assert preview.notes == (f"the steps of {NAME}, beyond one for the example: a run makes one of each row",)


@pytest.mark.parametrize(
    "example,message",
    [
        ("{land: de}", "the step has no variable 'land'; it has country, least"),
        ("{cuntry: de}", "the step has no variable 'cuntry'; did you mean 'country'?"),
        ("{country: d'e}", "'d'e' is not a word"),
        ("{country: 1.5}", "a word is expected, not '1.5'"),
        ("[de]", "a mapping from variables to words is expected"),
    ],
)
def test_wrong_examples_are_answered(example: str, message: str) -> None:
    """An example has words, and variables that the step has."""
    with pytest.raises(InvalidPipeline) as error:
        pipeline_of(TEXT.replace(f'query: "{QUERY}"', f'query: "{QUERY}", example: {example}'))

    assert message in str(error.value.problems[0])


def test_mistakes_in_the_body_of_a_loop_are_found() -> None:
    """A column that the source does not have is found in the loop's step, whose name has its variables."""
    result = checked("sql: \"SELECT amuont FROM orders WHERE country = '{{country}}'\"")

    assert len(result.problems) == 1
    assert result.problems[0].message.startswith(f"{NAME}: ")
    assert "`amuont` cannot be resolved" in result.problems[0].message
    assert "any_country" not in result.problems[0].message


@pytest.mark.parametrize(
    "body",
    [
        'sql: "SELECT {{country}} AS c FROM orders"',
        'sql: "SELECT id FROM orders LIMIT {{country}}"',
        "sql: \"SELECT id FROM orders WHERE DATE'{{country}}' < current_date()\"",
        'sql: "SELECT id FROM orders_{{country}}"',
        'sql: "SELECT id FROM landing.orders_{{country}}"',
        'sql: "SELECT cast(id AS {{country}}) AS id FROM orders"',
        "load: orders, write: {mode: merge, keys: '{{country}}'}",
        'load: orders, expect: ["{{country}} > 0"]',
        "load: orders, expect: [{rows: {min: '{{country}}'}}]",
        "load: orders, write: '{{country}}'",
    ],
)
def test_mistakes_of_single_rows_are_not_reported(body: str) -> None:
    """Columns, types, numbers, sources and tables that a row names may be right, so a check does not report them."""
    result = checked(body)

    assert result.problems == ()
    assert any(NAME in one for one in result.unchecked)


def test_steps_may_read_those_of_a_loop() -> None:
    """A step may read a table that a row makes, and one of another loop is read under the same variables."""
    more = (
        "  marts.all: {sql: SELECT whatever FROM raw.orders_it}\n"
        f'  marts.sum_{{{{country}}}}: {{for_each: {{query: "{QUERY}"}}, '
        'sql: "SELECT sum(amount) AS s FROM raw.orders_{{country}}"}\n'
    )

    result = checked("sql: \"SELECT id, amount FROM orders WHERE country = '{{country}}'\"", more=more)

    assert result.problems == ()
    assert result.columns is not None
    (total,) = result.columns.tables["main", "marts", "sum_any_country"].columns
    assert [(one.source, one.column) for one in total.origins] == [(("main", "raw", "orders_any_country"), "amount")]


def test_pictures_and_plans_name_the_variables() -> None:
    """A drawing has the loop's step as a box, and a plan its tables, under names with the variables."""
    more = (
        f'  marts.sum_{{{{country}}}}: {{for_each: {{query: "{QUERY}"}}, '
        'sql: "SELECT sum(amount) AS s FROM raw.orders_{{country}}"}\n'
    )
    result = checked("load: orders, expect: [{row: amount > 0, action: quarantine}]", more=more)

    graph = graph_of(result.pipeline, result.reads or {})
    plans = plan(result)

    assert [node.name for node in graph.nodes] == ["orders", NAME, "marts.sum_{{country}}"]
    assert graph.nodes[1].place == "replace, in main, for each row"
    assert [one.step.name for one in plans] == [NAME, "marts.sum_{{country}}"]
    assert plans[0].aside == (("main", "raw", "orders_{{country}}__quarantine"),)
    assert [each.name for each in plans[1].reads] == ["main.raw.orders_{{country}}"]


class RunsClient:
    """A client whose only run has these options; without options there is no pipeline."""

    def __init__(self, options: dict[str, object] | None) -> None:
        self.runs = self
        self._options = options

    def list(self, *, pipeline: str, state: str, limit: int) -> list[Run]:
        """Return the run without its options, as the server lists it."""
        assert (pipeline, state, limit) == ("p", "published", 1)
        if self._options is None:
            raise NotFoundError("no pipeline p", status=404, code="not-found")
        return [Run(id="r-7", pipeline="p", state="published", attempt=1, user="ana", holder="h")]

    def load(self, run: str) -> Run:
        """Return the run."""
        return Run(
            id=run, pipeline="p", state="published", attempt=1, user="a", holder="h", options=cast("Any", self._options)
        )


def rows_known(options: dict[str, object] | None) -> tuple[str, dict[str, LoopRows]]:
    """Return the rows that the newest run with these options has."""
    return rows_of_newest_run(cast("Client", RunsClient(options)), pipeline_of())


def test_rows_of_the_newest_run_are_known() -> None:
    """The rows of the newest run are those of loops with the same query; without a run there are none."""
    other = {NAME: LoopRows(query="SELECT 1 AS country", columns=("country",), rows=(("de",),))}

    assert rows_known(dict(encode_loops(ROWS))) == ("r-7", ROWS)
    assert rows_known(dict(encode_loops(other))) == ("r-7", {})
    assert rows_known({}) == ("r-7", {})
    assert rows_known(None) == ("", {})
