# SPDX-License-Identifier: Apache-2.0
"""Compares the results of one random query with the evaluator's.

May import `sqlpp`, DuckDB, the tests' random queries and this package. It must not start Spark.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import duckdb

from conformance.sqlpp_random.sql_queries import RandomQuery, SqlQueries
from conformance.sqlpp_random.tables import EvaluatorTables, duckdb_with_tables
from limnos.rooms.sqlpp.language import SqlppError
from tests.rooms.sqlpp.language.relations import relation_queries
from tests.rooms.sqlpp.language.relations.random_queries import Queries

if TYPE_CHECKING:
    from collections.abc import Iterator

Outcome = Literal["same", "refused by both", "left out", "different"]


class Comparison(NamedTuple):
    """The outcome of a comparison, the query, and both results if they differ."""

    outcome: Outcome
    text: str
    difference: str = ""


class EngineQuery(NamedTuple):
    """A query for an engine with the evaluator's results, or its error, and whether their order is defined."""

    text: str
    results: list[object] | SqlppError
    is_ordered: bool


def normal_form(value: object) -> object:
    """Return a value in a form that both sides share: nine digits of numbers, texts of dates and times."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | decimal.Decimal):
        number = float(value)
        return float(f"{number:.9g}") + 0.0 if math.isfinite(number) else str(number)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, list):
        return [normal_form(item) for item in value]
    return {name: normal_form(item) for name, item in value.items()} if isinstance(value, dict) else value


def difference_of(results: list[object], expected: list[object], *, is_ordered: bool) -> str:
    """Return how two lists of results differ; an empty text if they are equal."""
    left, right = ([json.dumps(normal_form(each), sort_keys=True) for each in rows] for rows in (results, expected))
    if not is_ordered:
        left, right = sorted(left), sorted(right)
    pairs = zip(left, right, strict=False)
    place = next(
        (at for at, pair in enumerate(pairs) if not _is_same(*map(json.loads, pair))), min(len(left), len(right))
    )
    if place == len(left) == len(right):
        return ""
    return (
        f"{len(left)} results, {len(right)} expected; number {place}: {left[place : place + 2]}, expected"
        f" {right[place : place + 2]}"
    )


def _is_same(one: object, other: object) -> bool:
    """Return whether two normal forms are equal, numbers to nine digits: halves may be rounded differently.

    A variance of equal values is 0 or, if an engine adds parts of a group, a number such as 7e-27.
    """
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=2e-8, abs_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[name], other[name]) for name in one)
    return type(one) is type(other) and one == other


class DuckDBComparison:
    """Runs random queries of one seed in DuckDB."""

    def __init__(self, seed: int) -> None:
        self._queries = SqlQueries(seed)
        self._evaluator = EvaluatorTables()
        self._connection = duckdb_with_tables()

    def next(self) -> Comparison:
        """Compare the next query. A query that DuckDB cannot execute, or that both refuse, has no difference."""
        query = self._queries.query()
        text = f"{query.sqlpp}\n    as SQL: {query.sql}"
        try:
            expected = [list(row) for row in self._connection.execute(query.sql).fetchall()]
        except duckdb.NotImplementedException:
            return Comparison("left out", text)
        except duckdb.Error as error:
            return self._refusal(query, text, error=str(error))
        try:
            results = [_columns(each, query.columns) for each in self._evaluator.results(query.sqlpp)]
        except SqlppError as error:
            return Comparison("different", text, f"refused: {error}")
        difference = difference_of(list(results), list(expected), is_ordered=query.is_ordered)
        return Comparison("different" if difference else "same", text, difference)

    def _refusal(self, query: RandomQuery, text: str, *, error: str) -> Comparison:
        try:
            self._evaluator.results(query.sqlpp)
        except SqlppError:
            return Comparison("refused by both", text)
        return Comparison("different", text, f"refused by DuckDB alone: {error}")


def _columns(result: object, count: int) -> list[object]:
    """Return the columns of a result; MISSING is NULL."""
    return [result.get(f"c{at}") if isinstance(result, dict) else None for at in range(count)]


def engine_queries(seed: int) -> Iterator[EngineQuery]:
    """Yield random queries in turn from the two generators, each with the evaluator's results."""
    sql_queries, queries, tables = SqlQueries(seed), Queries(seed), EvaluatorTables()
    while True:
        query = sql_queries.query()
        try:
            yield EngineQuery(query.sqlpp, tables.results(query.sqlpp), query.is_ordered)
        except SqlppError as error:
            yield EngineQuery(query.sqlpp, error, is_ordered=False)
        text = queries.query()
        is_ordered = "order by" in text and "over (" not in text
        try:
            yield EngineQuery(text, [json.loads(each) for each in relation_queries.by_evaluator(text)], is_ordered)
        except SqlppError as error:
            yield EngineQuery(text, error, is_ordered)
