# SPDX-License-Identifier: Apache-2.0
"""Table names in queries with their positions, from the parse tree of Spark's own grammar.

`query_names` returns each table name of a step's SQL with its span, and the parameters. `splice_names` replaces the
spans, so that a query reads pinned snapshots and branches. The tree is searched by the grammar's rules, so no name is
overlooked. Spans count code points, like Python's strings. Names bound by WITH are excluded, by scope. Must not know
catalogs or the objects behind names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from limnos.names import display, engine
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.parser import ParseTree, SparkGrammar, grammar_of
from limnos.pipeline.problems import InvalidQuery
from limnos.spark.gateway import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_FORMATS = frozenset({"csv", "json", "parquet", "orc", "text", "avro", "xml", "binaryfile"})
"""Formats for which Spark reads ``parquet.`/path` `` as a file, without any catalog."""

_PARSED: dict[tuple[str, tuple[bool, ...]], QueryNames] = {}
"""The names in queries that were parsed, by text and settings. A run asks several times for the same text, and a parse
takes some 40 exchanges with the Java machine.
"""
_PARSED_MAX = 1000


class NameForm(Enum):
    """The syntactic form of a name, as a template for its replacement: `{}` is the table's text."""

    NAME = "{}"
    STATEMENT = "(SELECT * FROM {})"
    """The form `TABLE t` as a whole query; the span includes the word TABLE."""
    ARGUMENT = "SELECT * FROM {}"
    """The form of an argument `f(TABLE(t))`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRelation:
    """A name of a table or source in a query: `sql[start:stop]`."""

    parts: Parts
    start: int
    stop: int
    form: NameForm = NameForm.NAME
    travels: bool = False
    """Whether the query has its own VERSION or TIMESTAMP AS OF. Such a name is not pinned and depends on no step of a
    run.
    """
    alias_at: int | None = field(default=None, compare=False)
    """The position for an alias; None if the query has one, or allows none there."""
    qualifiers: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    """Spans of the table's name before columns, as `la.orders` in `la.orders.id`."""
    alias: str | None = field(default=None, compare=False)
    """The alias under which another relation can replace this one; None if no alias keeps the query's meaning."""


@dataclass(frozen=True, slots=True)
class QueryNames:
    """Names in a query: relations in the order of the text, and parameters."""

    relations: tuple[NamedRelation, ...]
    parameters: frozenset[str]
    stamps: frozenset[str] = frozenset()
    """The parameters that are only columns of the result (`:run_at AS loaded_at`), so that they choose no rows."""


@dataclass(frozen=True, slots=True)
class _WithClause:
    """A WITH clause: the span of its query, and its names with the spans of their definitions."""

    start: int
    stop: int
    recursive: bool
    named: tuple[tuple[str, int, int], ...]

    def binds(self, name: str, at: int) -> bool:
        """Return whether a name at a position of the text refers to this clause."""
        if not self.start <= at < self.stop:
            return False
        visible = set()
        for bound, start, stop in self.named:
            if start <= at < stop:
                return name in visible or (self.recursive and name == bound)
            visible.add(bound)
        return name in visible


def query_names(spark: SparkSession | None, sql: str, *, grammar: SparkGrammar | None = None) -> QueryNames:
    """Find the names in a query. If `spark` is None, a JVM is started for parsing.

    Raises InvalidQuery if the text is not a query, or has a name that is only determined when it runs.
    """
    _refuse_variables(sql)
    grammar = grammar or grammar_of(spark)
    settings = grammar.settings()
    names = _PARSED.get((sql, settings))
    if names is None:
        names = _parse_names(grammar, sql)
        if len(_PARSED) >= _PARSED_MAX:
            _PARSED.clear()
        _PARSED[sql, settings] = names
    return names


def _parse_names(grammar: SparkGrammar, sql: str) -> QueryNames:
    tree = grammar.tree(sql)
    _require_query(tree)
    parameters, stamps = _parameters(tree)
    if not parameters:  # Spark can plan a parameterized query only with the values
        grammar.accept(sql)
    clauses = [_with(context, grammar, sql=sql) for context in tree.find_contexts("ctes", mark="WITH")]
    result = (_relation(context, grammar, sql=sql) for context in tree.find_contexts("identifierReference"))
    entries = [one for one in result if not _is_bound(one, clauses)]
    ordered = _with_qualifiers(tree, sorted(entries, key=lambda one: one.start), grammar=grammar, sql=sql)
    return QueryNames(relations=ordered, parameters=parameters, stamps=stamps)


def relations(spark: SparkSession | None, sql: str) -> tuple[NamedRelation, ...]:
    """Return the names of tables and sources in a query, in the order of the text. Raises InvalidQuery as `query_names`
    does.
    """
    return query_names(spark, sql).relations


def splice_names(
    sql: str,
    relations: Sequence[NamedRelation],
    *,
    texts: Mapping[Parts, str],
    renamed: frozenset[Parts] = frozenset(),
    past: Mapping[Parts, str] | None = None,
) -> str:
    """Replace names by texts: ``c.a.t VERSION AS OF 12``, ``c.a.t.`branch_r` ``, or another name.

    Names without a text stay unchanged. Names with their own AS OF have their texts in `past`, which are names alone.
    Tables in `renamed` get an alias, by which columns are then qualified: `la.t.column` becomes `t.column`.
    """
    pieces: list[str] = []
    end = 0
    for start, stop, text in sorted(set(query_edits(relations, texts=texts, renamed=renamed, past=past))):
        pieces += [sql[end:start], text]
        end = stop
    return "".join([*pieces, sql[end:]])


def query_edits(
    relations: Sequence[NamedRelation],
    *,
    texts: Mapping[Parts, str],
    renamed: frozenset[Parts],
    past: Mapping[Parts, str] | None = None,
) -> list[tuple[int, int, str]]:
    """Return the replacements that `splice_names` makes: each with its start, its end and the new text."""
    edits: list[tuple[int, int, str]] = []
    for one in relations:
        if one.travels and past is not None and one.parts in past:
            edits.append((one.start, one.stop, past[one.parts]))
        if one.travels or one.parts not in texts:
            continue
        edits.append((one.start, one.stop, one.form.value.format(texts[one.parts])))
        if one.parts in renamed and one.alias_at is not None:
            alias = engine.render_spark((one.alias or one.parts[-1],))
            edits.append((one.alias_at, one.alias_at, f" AS {alias}"))
            edits += [(start, stop, alias) for start, stop in one.qualifiers if one.alias is not None]
    return edits


def _refuse_variables(sql: str) -> None:
    at = sql.find("${")
    if at >= 0:
        line, column = sql.count("\n", 0, at) + 1, at - (sql.rfind("\n", 0, at) + 1) + 1
        raise InvalidQuery(
            "'${…}' would be replaced as text before Spark reads the query: declare a parameter and write :name",
            line=line,
            column=column,
        )


def _require_query(tree: ParseTree) -> None:
    """Raise InvalidQuery unless the statement is a query: a step's SQL must not write, set or call anything."""
    statement = tree.root.statement()
    if statement is None or _kind(statement) != "StatementDefaultContext":
        raise _at(
            tree.root,
            "a step's SQL must be one query (SELECT, WITH … SELECT, VALUES, TABLE, FROM …): the step writes its result",
        )
    streams = tree.find_contexts("streamRelationPrimary", mark="STREAM")
    if streams:
        raise _at(
            streams[0], "STREAM is not allowed in a step's SQL: declare a source with 'stream' and read it by name"
        )


def _parameters(tree: ParseTree) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of all parameters, and of those that are only columns of the result."""
    nameless = tree.find_contexts("QUESTION", mark="?")
    if nameless:
        raise _at(nameless[0].getParent(), "'?' has no name: declare a parameter and write :name")
    markers = [
        (str(context.getText())[1:], context) for context in tree.find_contexts("namedParameterMarker", mark=":")
    ]
    names = frozenset(name for name, _ in markers)
    return names, names - {name for name, context in markers if not _is_result_column(context)}


def _is_result_column(context: Java) -> bool:
    """Return whether an expression is by itself a column of the statement's result, not of a subquery or a CTE."""
    while _kind(context) != "NamedExpressionContext":
        context = context.getParent()
        if context is None or (context.getChildCount() > 1 and _kind(context) != "NamedExpressionContext"):
            return False
    selects = 0
    while context is not None:
        if _kind(context) == "NamedQueryContext":
            return False
        selects += _kind(context) == "RegularQuerySpecificationContext"
        context = context.getParent()
    return selects == 1


def _with(context: Java, grammar: SparkGrammar, *, sql: str) -> _WithClause:
    query = context.getParent()
    named = [
        (grammar.name(_text(one.errorCapturingIdentifier(), sql))[0].lower(), *_span(one))
        for one in context.namedQuery()
    ]
    start, stop = _span(query)
    return _WithClause(start=start, stop=stop, recursive=context.RECURSIVE() is not None, named=tuple(named))


def _is_bound(relation: NamedRelation, clauses: Sequence[_WithClause]) -> bool:
    if len(relation.parts) > 1:
        return False
    name = relation.parts[0].lower()
    return any(clause.binds(name, relation.start) for clause in clauses)


def _relation(context: Java, grammar: SparkGrammar, *, sql: str) -> NamedRelation:
    parent = context.getParent()
    if context.multipartIdentifier() is None:
        raise _at(context, "IDENTIFIER(…) names a table only when the query runs: write the table's name")
    parts = grammar.name(_text(context, sql))
    _refuse_files(context, parts)
    start, stop = _span(context)
    kind = _kind(parent)
    if kind == "TableNameContext":
        alias = None if parent.tableAlias().strictIdentifier() is not None else _span(parent)[1]
        return NamedRelation(
            parts=parts, start=start, stop=stop, travels=parent.temporalClause() is not None, alias_at=alias
        )
    if kind == "TableContext":
        return NamedRelation(parts=parts, start=_span(parent)[0], stop=stop, form=NameForm.STATEMENT)
    if kind == "FunctionTableSubqueryArgumentContext":
        return NamedRelation(parts=parts, start=start, stop=stop, form=NameForm.ARGUMENT)
    raise _at(context, f"'{display.render(parts)}' is in a place where a step's SQL can't name a table")


def _with_qualifiers(
    tree: ParseTree, relations: Sequence[NamedRelation], *, grammar: SparkGrammar, sql: str
) -> tuple[NamedRelation, ...]:
    """Add to each table without an alias the places where its name qualifies a column, and a safe alias.

    The alias is the table's last part. If several tables have the same last part, and nothing is qualified by it alone,
    it is the whole name in one word.
    """
    tables = [one for one in relations if one.alias_at is not None and len(one.parts) > 1]
    if not tables:
        return tuple(relations)
    paths = [_column_path(context, grammar, sql=sql) for context in _outermost_paths(tree)]
    names = {one.parts[-1].lower() for one in tables}
    several = {name for name in names if len({one.parts for one in tables if one.parts[-1].lower() == name}) > 1}
    bare = {path[0][0].lower() for path in paths if path}
    results: list[NamedRelation] = []
    for one in relations:
        last = one.parts[-1].lower()
        alias: str | None = one.parts[-1]
        if last in several:
            alias = None if last in bare else "__".join(one.parts)
        spans = tuple(span for path in paths if (span := _qualifier(path, one.parts)) is not None)
        results.append(replace(one, qualifiers=spans, alias=alias) if one in tables else one)
    return tuple(results)


_ColumnPath = tuple[tuple[str, int, int], ...]
"""The parts of a qualified column in a query: each name with the start of the path and its own end."""


def _outermost_paths(tree: ParseTree) -> list[Java]:
    """Return the qualified columns of a query, and the qualified stars."""
    columns = [
        context
        for context in tree.find_contexts("primaryExpression")
        if _kind(context) == "DereferenceContext" and _kind(context.getParent()) != "DereferenceContext"
    ]
    stars = [each.qualifiedName() for each in tree.find_contexts("primaryExpression") if _kind(each) == "StarContext"]
    return [*columns, *(each for each in stars if each is not None)]


def _column_path(context: Java, grammar: SparkGrammar, *, sql: str) -> _ColumnPath:
    """Return the parts of a qualified column; empty if it is a field of another expression."""
    if _kind(context) == "QualifiedNameContext":
        tokens = list(context.identifier())
    else:
        tokens = []
        while _kind(context) == "DereferenceContext":
            tokens.append(context.identifier())
            context = context.primaryExpression()
        if _kind(context) != "ColumnReferenceContext":
            return ()
        tokens = [context, *reversed(tokens)]
    start = _span(tokens[0])[0]
    return tuple((grammar.name(_text(token, sql))[0], start, _span(token)[1]) for token in tokens)


def _qualifier(path: _ColumnPath, table: Parts) -> tuple[int, int] | None:
    """Return the span of the table's name, of at least two parts, at the start of a column's path."""
    names = tuple(name.lower() for name, _, _ in path)
    lowered = tuple(part.lower() for part in table)
    for length in range(len(path), 1, -1):
        common = min(length, len(lowered))
        if names[length - common : length] == lowered[-common:] and common > 1:
            return path[0][1], path[length - 1][2]
    return None


def _refuse_files(context: Java, parts: Parts) -> None:
    if len(parts) == 2 and parts[0].lower() in FILE_FORMATS and ("/" in parts[1] or ":" in parts[1]):
        raise _at(
            context,
            f"'{display.render(parts)}' reads files outside of every catalog: declare a source "
            f"(files: {parts[1]}, format: {parts[0].lower()}) and read it by name",
        )


def _kind(context: Java) -> str:
    return str(context.getClass().getSimpleName())


def _span(context: Java) -> tuple[int, int]:
    return context.getStart().getStartIndex(), context.getStop().getStopIndex() + 1


def _text(context: Java, sql: str) -> str:
    start, stop = _span(context)
    return sql[start:stop]


def _at(context: Java, message: str) -> InvalidQuery:
    token = context.getStart()
    return InvalidQuery(message, line=token.getLine(), column=token.getCharPositionInLine() + 1)
