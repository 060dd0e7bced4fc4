# SPDX-License-Identifier: Apache-2.0
"""Relations as SQL text for Spark: what the text contains, and what it must never contain."""

from __future__ import annotations

import re

import pytest

from limnos.rooms.sqlpp.engine.relational import is_filtered_join
from limnos.rooms.sqlpp.engine.sql import _CALLS, statement_of
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.relations import UntranslatableExpression
from limnos.rooms.sqlpp.language.relations.nodes import DatasetRead
from limnos.rooms.sqlpp.language.relations.terms import CallTerm, LiteralTerm
from tests.rooms.sqlpp.language.relations.random_queries import Queries
from tests.rooms.sqlpp.language.relations.relation_interpreter import _LENIENT, _STRICT
from tests.rooms.sqlpp.language.relations.relation_queries import rewritten
from tests.rooms.sqlpp.language.relations.test_rewriting import CARRIED


def _text(query: str) -> tuple[str, dict[str, str]]:
    translation = rewritten(query)
    return statement_of(translation.relation, translation.layout, sources=lambda read: f"`{read.name}`")


def test_user_strings_are_parameters() -> None:
    """Strings of users are parameters, not text of the statement; equal strings share one."""
    nasty = "x') union all select * from text.`/etc/passwd` --"

    text, parameters = _text(
        f'select value o.note || "{nasty}" from orders o where o.note != "{nasty}" and o.note like "a%"'
    )

    assert sorted(parameters.values()) == sorted([nasty, "a%", "note"])
    assert "passwd" not in text
    assert "union all" not in text.lower()


def test_names_are_quoted() -> None:
    """A back quote in a column's name is escaped."""
    read = DatasetRead(("d",), "t", ((1, "a`b"),))
    translation = rewritten("select value o.id from orders o")

    text, _ = statement_of(read, translation.layout, sources=lambda one: one.name)

    assert "`a``b` AS c1" in text


def test_coalesce_and_repartition_hints_are_rendered() -> None:
    """The COALESCE hint reads a dataset in a few tasks; with REPARTITION its rows are distributed over many."""
    translation = rewritten("select value o.id from orders o")

    def text(*, is_spread: bool) -> str:
        return statement_of(
            translation.relation, translation.layout, sources=lambda one: one.name, parts=3, is_spread=is_spread
        )[0]

    assert "/*+ COALESCE(3) */" in text(is_spread=False)
    assert "/*+ REPARTITION(3) */" in text(is_spread=True)


@pytest.mark.parametrize(
    "query, is_filtered",
    [
        ("select value [o.id, p.id] from orders o, people p where o.extra.n = p.id", True),
        ("select value [o.id, p.id] from orders o, people p where o.id = p.id", False),
        ("select value o.id from orders o where o.extra.n = 1", False),
    ],
)
def test_joins_filtered_by_evaluator_read_small_parts(query: str, is_filtered: bool) -> None:
    """Joins that the evaluator filters are read in many small parts, because they may have many more rows than
    results.
    """
    assert is_filtered_join(rewritten(query)) is is_filtered


@pytest.mark.parametrize("query", CARRIED)
def test_every_operation_is_rendered(query: str) -> None:
    """Every supported operation can be rendered: parentheses match, and every column that is read exists."""
    text, parameters = _text(query)

    assert text.count("(") == text.count(")")
    defined_names = set(re.findall(r"(?:AS|,) (c\d+)\b", text)) | set(re.findall(r"(c\d+) ->", text))
    assert set(re.findall(r"\bc\d+\b", text)) <= defined_names
    assert set(re.findall(r":(p\d+)\b", text)) == set(parameters)


def test_sql_and_model_support_same_operations() -> None:
    """The operations that are rendered as SQL are those of the Python model, apart from a few such as time-of-day
    functions.
    """
    excluded_names = {"if", "exists", "get_hour", "get_minute", "get_second"}

    assert set(_CALLS) - excluded_names == {*_LENIENT, *_STRICT} - excluded_names


def test_extreme_numbers_are_rendered_exactly() -> None:
    """The extreme numbers of each type are rendered exactly."""
    translation = rewritten("select value o.id from orders o")
    literals = [
        LiteralTerm(-(1 << 63), "bigint"),
        LiteralTerm(float("-inf"), "double"),
        LiteralTerm(1e300, "double"),
        LiteralTerm(None, "date"),
    ]

    layout = translation.layout._replace(
        columns=((CallTerm("coalesce", tuple(literals)), translation.layout.columns[0][1]),)
    )
    text, _ = statement_of(translation.relation, layout, sources=lambda read: read.name)

    assert "CAST(-9223372036854775808 AS BIGINT), CAST('-Infinity' AS DOUBLE), (1e+300D), CAST(NULL AS DATE)" in text


def test_random_queries_can_be_rendered() -> None:
    """Every operation of random queries can be rendered."""
    queries = Queries(3)
    written = 0
    for _ in range(200):
        try:
            text, _ = _text(queries.query())
        except (UntranslatableExpression, SqlppError):
            continue
        written += 1
        assert text.count("(") == text.count(")")

    assert written > 120
