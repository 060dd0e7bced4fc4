# SPDX-License-Identifier: Apache-2.0
"""Names of the columns that a step makes, as far as its declaration has them, with their positions.

Reads the names from Spark's grammar: of the SELECT list of a query, of the declared columns of a source that is loaded,
and of a history's own columns. Stars, and the columns of Python functions, are known only when the step is analyzed.
Must not know tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from limnos.names.columns import case_twins, is_reserved, reserved_column_message
from limnos.pipeline.declaration import Load, Pipeline, Sql, StepDeclaration, WriteMode
from limnos.pipeline.engine.parser import SparkGrammar, grammar_of
from limnos.pipeline.problems import InvalidQuery, Problem, within
from limnos.spark.gateway import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.pipeline.declared_values import SourcePosition
    from limnos.pipeline.source_declarations import DeclaredSource

_COLUMN = re.compile(r"[^\W\d][\w.`]*|`[\w.`]+")


class OutputColumn(NamedTuple):
    """The name of a column that a step makes, and its position in the declaration."""

    name: str
    at: SourcePosition | None


def column_problems(pipeline: Pipeline, *, spark: SparkSession | None) -> list[Problem]:
    """Return the problems of the columns that the steps make: names that Iceberg reserves, and names that are equal or
    differ by case alone. Raises as `grammar_of`.
    """
    grammar = grammar_of(spark)
    sources = {source.name: source for source in pipeline.sources}
    return [problem for step in pipeline.steps for problem in _step_problems(grammar, step, sources=sources)]


def _step_problems(
    grammar: SparkGrammar, step: StepDeclaration, *, sources: dict[str, DeclaredSource]
) -> Iterator[Problem]:
    columns = [*_body_columns(grammar, step, sources=sources), *_history_columns(step)]
    for column in columns:
        if is_reserved(column.name):
            yield Problem(f"{step.name}: {reserved_column_message(column.name)}", column.at)
    positions = {column.name: column.at for column in columns}
    for earlier, name in case_twins([column.name for column in columns]):
        text = "has two columns" if earlier == name else f"has the columns {earlier!r} and"
        words = f"{text} {name!r}" + ("" if earlier == name else ", which differ by case alone")
        yield Problem(f"{step.name} {words}: rename one with AS", positions[name])


def _body_columns(
    grammar: SparkGrammar, step: StepDeclaration, *, sources: dict[str, DeclaredSource]
) -> list[OutputColumn]:
    if isinstance(step.body, Sql):
        return list(_query_columns(grammar, step.body))
    source = sources.get(step.body.source) if isinstance(step.body, Load) else None
    schema = None if source is None else source.schema
    if schema is None:
        return []
    try:
        names = grammar.sql_parser.parseTableSchema(schema).fieldNames()
    except Exception:  # noqa: BLE001  (not a list of columns: the source's reader says so)
        return []
    return [OutputColumn(str(name), step.at) for name in names]


def _history_columns(step: StepDeclaration) -> list[OutputColumn]:
    write = step.write
    if write.mode is not WriteMode.HISTORY:
        return []
    return [OutputColumn(name, step.at) for name in (write.valid_from, write.valid_to, write.current)]


def _query_columns(grammar: SparkGrammar, body: Sql) -> Iterator[OutputColumn]:
    """Yield the named columns of the query's own SELECT list; of a UNION those of the first query, which name the
    result.
    """
    try:
        statement = grammar.tree(body.text).root.statement()
        if statement is None or str(statement.getClass().getSimpleName()) != "StatementDefaultContext":
            return  # not a query, which is reported where the query's names are read
        clause = _select_clause(statement.query())
    except InvalidQuery:
        return  # it is reported where the query's names are read
    if clause is None:
        return
    for expression in _children(clause.namedExpressionSeq(), "NamedExpressionContext"):
        token, alias = expression.getStart(), expression.errorCapturingIdentifier()
        text = body.text[token.getStartIndex() : expression.getStop().getStopIndex() + 1]
        if alias is not None:
            token, text = alias.getStart(), str(alias.getText())
        elif not _COLUMN.fullmatch(text):
            continue
        place = InvalidQuery("", line=token.getLine(), column=token.getCharPositionInLine() + 1)
        yield OutputColumn(grammar.name(text)[-1], within(body.at, place))


def _select_clause(context: Java) -> Java | None:
    """Return the SELECT clause that names the columns of a query; None for VALUES, TABLE and TRANSFORM."""
    while True:
        kind = str(context.getClass().getSimpleName())
        if kind == "RegularQuerySpecificationContext":
            return context.selectClause()
        following = _next(context, kind)
        if following is None:
            return None
        context = following


def _next(context: Java, kind: str) -> Java | None:
    """Return the part of a query whose columns are the query's own."""
    methods = {
        "QueryContext": "queryTerm",
        "QueryTermDefaultContext": "queryPrimary",
        "SubqueryContext": "query",
        "QueryPrimaryDefaultContext": "querySpecification",
    }
    if kind == "SetOperationContext":
        return next(iter(_children(context, "QueryTermDefaultContext", "SetOperationContext")), None)
    return getattr(context, methods[kind])() if kind in methods else None


def _children(context: Java, *kinds: str) -> list[Java]:
    every = [context.getChild(number) for number in range(context.getChildCount())]
    return [child for child in every if str(child.getClass().getSimpleName()) in kinds]
