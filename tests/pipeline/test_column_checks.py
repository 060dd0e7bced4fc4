# SPDX-License-Identifier: Apache-2.0
"""One check reports all mistakes of a file: keys, queries, columns, types, functions, and names in keys of steps."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from limnos.pipeline.checks import check
from limnos.pipeline.file import load, load_readable, read
from limnos.pipeline.problems import InvalidPipeline, Problem
from limnos.pipeline.table_columns import spark_columns

pytestmark = pytest.mark.integration

HEAD = """\
pipeline: shop
catalog: main
parameters: {least: {type: double, default: 5}, day: date}
sources:
  orders: {files: data/orders.csv, schema: "id bigint, customer string, amount decimal(9,2), at date, tags array<string>"}
  untyped: data/untyped.csv
"""
PLANTED = (
    # a step with a slip of the pen: what the check says about it
    ("raw.a: {laod: orders}", "unknown key 'laod'; did you mean 'load'?"),
    ("raw.b: {load: ordres}", "raw.b: no source 'ordres'; did you mean 'orders'?"),
    ("raw.c: {sql: SELECT id FORM orders}", "raw.c: not SQL that Spark can read"),
    ("raw.d: {sql: SELECT custmer FROM orders}", "with name `custmer` cannot be resolved"),
    ("raw.e: {sql: SELECT id FROM raw.good WHERE amuont > 1}", "with name `amuont` cannot be resolved"),
    ("raw.f: {sql: SELECT uper(customer) AS u FROM orders}", "Spark has no function 'uper'; did you mean 'upper'?"),
    ('raw.g: {sql: "SELECT date_add(at, tags) AS d FROM orders"}', 'however "tags" has the type "ARRAY<STRING>"'),
    ("raw.h: {sql: SELECT id FROM orders WHERE amount > :leest}", "no parameter ':leest'; did you mean 'least'?"),
    ("raw.i: {load: orders, write: {mode: merge, keys: idd}}", "the keys of 'write' has a column 'idd'"),
    ("raw.j: {load: orders, expect: [{unique: idd}]}", "expectation 'unique idd' has a column 'idd'"),
    ("raw.i2: {load: orders, expect: [amount > :leest]}", "no parameter ':leest'; did you mean 'least'?"),
    ("raw.k: {load: orders, expect: [amuont > 0]}", "expectation 'amuont > 0': A column"),
    ("raw.l: {load: orders, write: upsert}", "'upsert' is not one of replace, append, partitions; merge and history"),
    ("raw.m: {load: orders, partition: dya}", "'partition' has a column 'dya', which the step does not make"),
    ("raw.n: {load: orders, after: raw.godo}", "'after' of raw.n names raw.godo, which no step writes; did you mean"),
    (
        'raw.o: {sql: "SELECT customer, amount FROM orders GROUP BY customer"}',
        'expression "amount" is based on columns',
    ),
    ("raw.p: {sql: SELECT id AS _file FROM orders}", "raw.p:"),
    ("raw.q: {load: orders, expect: [customer]}", "expectation 'customer': "),
    ("raw.r: {load: orders, columns: {amuont: Money.}}", "'columns' has a column 'amuont'"),
)
SOUND = """\
raw.good: {load: orders, expect: [amount > 0, {unique: id}], partition: "days(at)", columns: {amount: Money.}}
raw.history: {load: orders, write: {mode: history, keys: ID, as_of: at}}
raw.current: {sql: SELECT customer FROM raw.history WHERE is_current AND valid_from < :run_at}
raw.qualified: {sql: "SELECT raw.good.customer, g.amount + :least AS x FROM raw.good JOIN raw.good g USING (id)"}
raw.cte: {sql: "WITH t AS (SELECT explode(tags) AS tag FROM orders) SELECT tag, count(*) AS n FROM t GROUP BY ALL"}
raw.lateral: {sql: "SELECT o.id, x.y FROM orders o, LATERAL (SELECT o.amount * 2 AS y) x WHERE at = :day"}
raw.unknown: {sql: SELECT anything FROM untyped}
raw.after_unknown: {sql: SELECT whatever FROM raw.unknown, expect: [whatever > 1], write: {mode: merge, keys: k}}
raw.outside: {sql: SELECT whatever FROM other.table WHERE id IN (SELECT id FROM orders)}
raw.function: {sql: SELECT main.tools.shout(customer) AS s FROM orders}
raw.past: {sql: SELECT whatever FROM raw.good VERSION AS OF 1}
raw.limits: {sql: "SELECT id, left(customer, 1) AS l, count(*) FILTER (WHERE amount > 1) AS n FROM orders GROUP BY 1, 2"}
"""


def _text(steps: str) -> str:
    return f"{HEAD}steps:\n{textwrap.indent(steps, '  ')}"


def _all_problems(file: Path) -> list[Problem]:
    """Return the problems that one check of a file reports."""
    try:
        return list(check(load(file)).problems)
    except InvalidPipeline as error:
        readable = load_readable(file)
        assert readable is not None
        checked = check(readable.pipeline, unreadable=readable.unreadable)
        return [*error.problems, *readable.problems, *checked.problems]


def test_check_reports_all_planted_mistakes_at_once(tmp_path: Path) -> None:
    """Of the planted mistakes in one file, one check reports all, each in its line; nothing else is reported."""
    file = tmp_path / "shop.yaml"
    steps = [text for text, _ in PLANTED]
    file.write_text(_text("\n".join([*steps, *SOUND.splitlines()]) + "\n"))
    first = HEAD.count("\n") + 2

    problems = _all_problems(file)

    by_line: dict[int, str] = {}
    for one in problems:
        assert one.at is not None
        by_line[one.at.line] = by_line.get(one.at.line, "") + one.message
    missed = [text for line, (_, text) in enumerate(PLANTED, start=first) if text not in by_line.get(line, "")]
    assert missed == []
    assert {line for line in by_line if line >= first + len(PLANTED)} == set()


def test_sound_steps_have_no_problems(tmp_path: Path) -> None:
    """Queries over known and unknown inputs, functions of catalogs, histories and older states are not reported."""
    file = tmp_path / "shop.yaml"
    file.write_text(_text(SOUND))

    assert [str(one) for one in _all_problems(file)] == []


@pytest.mark.parametrize(
    "query, place",
    [
        ("SELECT id,\n  nope\nFROM raw.good", (9, 3)),
        ("SELECT raw.good.nope FROM raw.good", (8, 8)),
        ("SELECT 1 AS a FROM raw.good, orders o WHERE :least > 1 AND o.nope = 1", (8, 60)),
        ("SELECT id FROM (SELECT id FROM raw.good) WHERE nope", (8, 48)),
    ],
)
def test_position_of_a_column_is_that_of_the_file(query: str, place: tuple[int, int], tmp_path: Path) -> None:
    """The position of an unknown column is its place in the file, although names and parameters were replaced."""
    file = tmp_path / "shop.yaml"
    block = textwrap.indent(query, "      ")
    file.write_text(_text("raw.good: {load: orders}\n") + f"  raw.x:\n    sql: |\n{block}\n")
    offset = HEAD.count("\n") + 5 - 8

    problem = _all_problems(file)[0]

    assert problem.at is not None
    assert (problem.at.line, problem.at.column) == (place[0] + offset, place[1] + 6)


def test_columns_of_tables_follow_from_their_metadata() -> None:
    """Every type of Iceberg has Spark's type; a table with a type that Spark cannot read has no known columns."""
    struct = {"type": "struct", "fields": [{"id": 2, "name": "a b", "type": "decimal(9, 2)", "required": True}]}
    kinds: list[object] = ["long", "timestamptz", "fixed[3]", {"type": "list", "element": struct}]
    kinds.append({"type": "map", "key": "string", "value": "uuid"})
    fields = [{"id": index, "name": f"c{index}", "type": kind} for index, kind in enumerate(kinds)]
    metadata = {"current-schema-id": 1, "schemas": [{"schema-id": 0, "fields": []}, {"schema-id": 1, "fields": fields}]}

    assert spark_columns(metadata) == (
        ("c0", "BIGINT"),
        ("c1", "TIMESTAMP"),
        ("c2", "BINARY"),
        ("c3", "ARRAY<STRUCT<`a b`: DECIMAL(9,2)>>"),
        ("c4", "MAP<STRING, STRING>"),
    )
    fields.append({"id": 9, "name": "t", "type": "time"})
    assert spark_columns(metadata) is None
    assert spark_columns(None) is None


def test_column_names_in_sources_cannot_leave_the_query() -> None:
    """A column whose name has a quote or SQL in it stays a name in the analysis."""
    hostile = "x` FROM secret; DROP TABLE y --"
    text = (
        f"pipeline: p\ncatalog: main\nsources:\n  s: {{files: x.csv, schema: '`{hostile.replace('`', '``')}` int'}}\n"
    )
    pipeline = read(f"{text}steps: {{a.t: {{sql: SELECT nope FROM s}}}}\n", file="p.yaml", directory=Path())

    problems = check(pipeline).problems

    assert len(problems) == 1
    assert "`nope` cannot be resolved" in problems[0].message
