"""Table names in queries with their positions, from the parse tree of Spark's own grammar.

`query_names` returns each table name of a step's SQL with its span, and the parameters. `splice_names` replaces the
spans, so that a query reads pinned snapshots and branches. The tree is searched by the grammar's rules, so no name is
overlooked. Spans count code points, like Python's strings. Names bound by WITH are excluded, by scope. May import
`declaration`, `parser`, `problems`, `names` and PySpark's types. Must not know catalogs or the objects behind names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from limnos.names import display, engine
from limnos.pipeline.declaration import Parts
from limnos.pipeline.engine.parser import Java, ParseTree, SparkGrammar, grammar_of
from limnos.pipeline.problems import InvalidQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_FORMATS = frozenset({"csv", "json", "parquet", "orc", "text", "avro", "xml", "binaryfile"})
"""Formats for which Spark reads ``parquet.`/path` `` as a file, without any catalog."""


class NameForm(Enum):
    """The syntactic form of a name, as a template for its replacement: `{}` is the table's text."""

    NAME = "{}"
    STATEMENT = "(SELECT * FROM {})"
    """The form `TABLE t` as a whole query; the span includes the word TABLE."""
    ARGUMENT = "SELECT * FROM {}"
    """The form of an argument `f(TABLE(t))`."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class QueryNames:
    """Names in a query: relations in the order of the text, and parameters."""

    relations: tuple[NamedRelation, ...]
    parameters: frozenset[str]


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


def query_names(spark: SparkSession | None, sql: str) -> QueryNames:
    """Find the names in a query. If `spark` is None, a JVM is started for parsing.

    Raises InvalidQuery if the text is not a query, or has a name that is only determined when it runs.
    """
    _refuse_variables(sql)
    grammar = grammar_of(spark)
    tree = grammar.tree(sql)
    _require_query(tree)
    parameters = _parameters(tree)
    if not parameters:  # Spark can plan a parameterized query only with the values
        grammar.accept(sql)
    clauses = [_with(context, grammar, sql=sql) for context in tree.find_contexts("ctes")]
    result = (_relation(context, grammar, sql=sql) for context in tree.find_contexts("identifierReference"))
    entries = [one for one in result if not _is_bound(one, clauses)]
    return QueryNames(relations=tuple(sorted(entries, key=lambda one: one.start)), parameters=parameters)


def relations(spark: SparkSession | None, sql: str) -> tuple[NamedRelation, ...]:
    """Return the names of tables and sources in a query, in the order of the text. Raises InvalidQuery as `query_names`
    does.
    """
    return query_names(spark, sql).relations


def splice_names(
    sql: str, relations: Sequence[NamedRelation], *, texts: Mapping[Parts, str], renamed: frozenset[Parts] = frozenset()
) -> str:
    """Replace names by texts: ``c.a.t VERSION AS OF 12``, ``c.a.t.`branch_r` ``, or another name.

    Names without a text, and names with their own AS OF, stay unchanged. Tables in `renamed` get their own name as
    alias, so that `t.column` keeps its meaning.
    """
    edits: list[tuple[int, int, str]] = []
    for one in relations:
        if one.parts not in texts or one.travels:
            continue
        edits.append((one.start, one.stop, one.form.value.format(texts[one.parts])))
        if one.parts in renamed and one.alias_at is not None:
            edits.append((one.alias_at, one.alias_at, f" AS {engine.render_spark(one.parts[-1:])}"))
    pieces: list[str] = []
    end = 0
    for start, stop, text in sorted(edits):
        pieces += [sql[end:start], text]
        end = stop
    return "".join([*pieces, sql[end:]])


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
    streams = tree.find_contexts("streamRelationPrimary")
    if streams:
        raise _at(
            streams[0], "STREAM is not allowed in a step's SQL: declare a source with 'stream' and read it by name"
        )


def _parameters(tree: ParseTree) -> frozenset[str]:
    nameless = tree.find_contexts("QUESTION")
    if nameless:
        raise _at(nameless[0].getParent(), "'?' has no name: declare a parameter and write :name")
    return frozenset(str(context.getText())[1:] for context in tree.find_contexts("namedParameterMarker"))


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
        return NamedRelation(parts, start, stop, travels=parent.temporalClause() is not None, alias_at=alias)
    if kind == "TableContext":
        return NamedRelation(parts, _span(parent)[0], stop, form=NameForm.STATEMENT)
    if kind == "FunctionTableSubqueryArgumentContext":
        return NamedRelation(parts, start, stop, form=NameForm.ARGUMENT)
    raise _at(context, f"'{display.render(parts)}' is in a place where a step's SQL can't name a table")


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
