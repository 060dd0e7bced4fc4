# SPDX-License-Identifier: Apache-2.0
"""Analysis of queries by Spark's analyzer without a session: columns, types and functions, with positions.

The analyzer runs in the JVM of the parser. Tables and sources are replaced by constant subqueries with their columns,
so that no catalog is asked and no row is read. Must not know declarations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from limnos.names import engine
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.parser import SparkGrammar
from limnos.pipeline.engine.plan_columns import Json, Origins, PlanTrace, trace
from limnos.pipeline.engine.relations import query_edits, query_names
from limnos.pipeline.problems import InvalidQuery, nearest_word
from limnos.spark.gateway import Java

_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_ANALYSIS_ERRORS = ("ExtendedAnalysisException", "AnalysisException", "ParseException")


class AnalyzedColumn(NamedTuple):
    """A column of a query's result: its name, and its type in Spark's SQL."""

    name: str
    type: str


Columns = tuple[AnalyzedColumn, ...]

_MARK: Final = "limnos-relation-"
"""The beginning of the text by which a constant subquery is found in an analyzed plan; its number follows."""


class UnknownColumns(Exception):
    """Raised if the analyzer cannot tell whether a query is right, for a reason that the message has."""


@dataclass(frozen=True, slots=True)
class QueryAnalyzer:
    """Spark's analyzer with its own functions and without tables."""

    grammar: SparkGrammar
    analyzer: Java
    functions: Java
    only_builtin: bool = True
    """Whether queries can use only Spark's own functions: no Python code of the pipeline can register others."""

    def columns(self, sql: str, *, tables: Mapping[Parts, Columns], parameters: Mapping[str, str]) -> Columns:
        """Return the columns of a query whose names are all in `tables`. `parameters` maps names to SQL literals.

        Raises InvalidQuery with the position in `sql`, UnknownColumns if the analyzer cannot decide.
        """
        if self.only_builtin:
            self._refuse_unknown_functions(sql)
        texts = {parts: relation_text(columns) for parts, columns in tables.items()}
        return _columns(self._plan(sql, texts=texts, parameters=parameters).schema())

    def origins(
        self, sql: str, *, tables: Mapping[Parts, Columns], parameters: Mapping[str, str]
    ) -> tuple[tuple[Origins, ...], Origins]:
        """Return the origins of each column of a query, and those of its rows (filters, joins, groups). Sources are the
        names in `tables`. Raises as `columns` does.
        """
        marks = dict(enumerate(tables))
        texts = {parts: relation_text(tables[parts], mark=f"{_MARK}{number}") for number, parts in marks.items()}
        plan = self._plan(sql, texts=texts, parameters=parameters)
        leaves: dict[int, Parts] = {}
        nodes = _with_leaves(json.loads(str(plan.toJSON())), marks=marks, leaves=leaves)
        traced: PlanTrace = trace(nodes, leaves)
        return traced.columns, traced.rows

    def schema(self, text: str) -> Columns | None:
        """Return the columns of a column list such as `id bigint, name string`; None if it is not one."""
        try:
            return _columns(self.grammar.sql_parser.parseTableSchema(text))
        except Exception:  # noqa: BLE001  (not a list of columns: the source's reader says so)
            return None

    def _plan(self, sql: str, *, texts: Mapping[Parts, str], parameters: Mapping[str, str]) -> Java:
        """Return the analyzed plan of a query with `texts` in place of names. Raises as `columns` does."""
        names = query_names(None, sql, grammar=self.grammar)
        edits = [
            *query_edits(names.relations, texts=texts, renamed=frozenset(texts)),
            *_parameter_edits(self.grammar, sql, parameters=parameters),
        ]
        text, origins = _edit_text(sql, sorted(set(edits)))
        return self._analyze(sql, text, origins=origins)

    def _analyze(self, sql: str, text: str, *, origins: Sequence[tuple[int, int]]) -> Java:
        jvm = self.grammar.jvm
        try:
            plan = self.grammar.sql_parser.parsePlan(text)
            tracker = jvm.org.apache.spark.sql.catalyst.QueryPlanningTracker(jvm.scala.Option.empty())
            return self.analyzer.executeAndCheck(plan, tracker)
        except Exception as error:
            thrown = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
            if thrown is None:
                raise
            raise _refusal(thrown, sql=sql, text=text, origins=origins) from error

    def _refuse_unknown_functions(self, sql: str) -> None:
        """Raise InvalidQuery for a function of one part that Spark does not have."""
        for context in self.grammar.tree(sql).find_contexts("functionName"):
            token = context.getStart()
            text = sql[token.getStartIndex() : context.getStop().getStopIndex() + 1]
            if not re.fullmatch(r"[A-Za-z_]\w*", text) or self._has_function(text):
                continue
            function_names = [str(each) for each in self._function_names()]
            raise InvalidQuery(
                f"Spark has no function '{text}'{nearest_word(text.lower(), function_names)}",
                line=token.getLine(),
                column=token.getCharPositionInLine() + 1,
            )

    def _has_function(self, name: str) -> bool:
        jvm = self.grammar.jvm
        ident = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name.lower())
        return bool(self.functions.functionExists(ident)) or name.upper() in _SYNTAX

    def _function_names(self) -> list[str]:
        listed = self.functions.listFunction()
        return [str(listed.apply(index).funcName()) for index in range(listed.size())]


_SYNTAX = frozenset({"FILTER", "LEFT", "RIGHT", "IF", "CAST", "TRY_CAST", "COALESCE", "STRUCT", "TIMESTAMP", "DATE"})
"""Words that the grammar takes for functions, and that have rules of their own."""


def query_analyzer(grammar: SparkGrammar, *, only_builtin: bool = True) -> QueryAnalyzer:
    """Build an analyzer in the JVM of a grammar."""
    jvm = grammar.jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    functions = catalyst.analysis.FunctionRegistry.builtin()
    tables = catalyst.analysis.TableFunctionRegistry.builtin()
    memory = catalyst.catalog.InMemoryCatalog(
        jvm.org.apache.spark.SparkConf(False), jvm.org.apache.hadoop.conf.Configuration()
    )
    catalog = catalyst.catalog.SessionCatalog(memory, functions, tables)
    return QueryAnalyzer(grammar, catalyst.analysis.Analyzer(catalog), functions, only_builtin)


def relation_text(columns: Columns, *, mark: str | None = None) -> str:
    """Return a subquery without rows that has these columns. Its plan has the text `mark`, if there is one."""
    condition = "false" if mark is None else f"'{mark}' = ''"
    items = ", ".join(f"CAST(NULL AS {one.type}) AS {engine.render_spark((one.name,))}" for one in columns)
    return f"(SELECT {items} WHERE {condition})"


def _with_leaves(nodes: list[Json], *, marks: Mapping[int, Parts], leaves: dict[int, Parts]) -> list[Json]:
    """Return a plan in pre-order with a leaf in place of each marked subquery. `leaves` gets the source of each leaf,
    by the id of its first column.
    """
    results: list[Json] = []
    skip = 0
    for index, node in enumerate(nodes):
        if skip:
            skip -= 1
            continue
        source = _marked_source(nodes[index : index + 3], marks)
        if source is None:
            results.append({key: _field_of_subquery(value, marks=marks, leaves=leaves) for key, value in node.items()})
            continue
        output = [[{**each[0], "num-children": 0}] for each in node["projectList"]]
        leaves[int(output[0][0]["exprId"]["id"])] = source
        results.append({"class": "MarkedRelation", "num-children": 0, "output": output})
        skip = 2
    return results


def _field_of_subquery(value: Any, *, marks: Mapping[int, Parts], leaves: dict[int, Parts]) -> Any:  # noqa: ANN401
    """Return a field of a node with leaves in the plans of its subqueries."""
    if not isinstance(value, list):
        return value
    if value and isinstance(value[0], dict) and "num-children" in value[0]:
        return _with_leaves(value, marks=marks, leaves=leaves)
    return [_field_of_subquery(each, marks=marks, leaves=leaves) for each in value]


def _marked_source(nodes: Sequence[Json], marks: Mapping[int, Parts]) -> Parts | None:
    """Return the source of a marked subquery, whose plan are these three nodes; None for other nodes."""
    kinds = [str(node.get("class", "")).rpartition(".")[2] for node in nodes]
    if kinds != ["Project", "Filter", "OneRowRelation"]:
        return None
    return next((marks[number] for number in _numbers(nodes[1].get("condition")) if number in marks), None)


def _numbers(condition: object) -> Iterator[int]:
    """Yield the numbers of the marks in a condition."""
    for each in condition if isinstance(condition, list) else ():
        value = each.get("value") if isinstance(each, dict) else None
        if isinstance(value, str) and value.startswith(_MARK) and value.removeprefix(_MARK).isdecimal():
            yield int(value.removeprefix(_MARK))


def _columns(schema: Java) -> Columns:
    fields = schema.fields()
    return tuple(AnalyzedColumn(str(field.name()), str(field.dataType().sql())) for field in fields)


def _parameter_edits(grammar: SparkGrammar, sql: str, *, parameters: Mapping[str, str]) -> list[tuple[int, int, str]]:
    edits = []
    for context in grammar.tree(sql).find_contexts("namedParameterMarker"):
        name = str(context.getText())[1:]
        if name not in parameters:
            raise UnknownColumns(f"parameter {name}")
        edits.append((context.getStart().getStartIndex(), context.getStop().getStopIndex() + 1, parameters[name]))
    return edits


def _edit_text(sql: str, edits: Sequence[tuple[int, int, str]]) -> tuple[str, list[tuple[int, int]]]:
    """Return the edited text, and pairs of positions in it with those of the original text at which pieces begin."""
    pieces: list[str] = []
    origins: list[tuple[int, int]] = []
    length = end = 0
    for start, stop, text in edits:
        origins += [(length, end), (length + start - end, start)]
        pieces += [sql[end:start], text]
        length += start - end + len(text)
        end = stop
    origins.append((length, end))
    return "".join([*pieces, sql[end:]]), origins


def _refusal(thrown: Java, *, sql: str, text: str, origins: Sequence[tuple[int, int]]) -> Exception:
    name = str(thrown.getClass().getSimpleName())
    message = str(thrown.getMessage()).split("\n", 1)[0]
    message = _CONDITION.sub("", message.split(" SQLSTATE:", 1)[0]).strip()
    if name not in _ANALYSIS_ERRORS or "routine" in message:  # a function of a catalog, which is not asked
        return UnknownColumns(message)
    line, start = thrown.line(), thrown.startPosition()
    index = _index(text, line.get() if line.isDefined() else 1, column=start.get() if start.isDefined() else 0)
    origin = _origin(index, origins, length=len(sql))
    before = sql[:origin]
    return InvalidQuery(message, line=before.count("\n") + 1, column=origin - (before.rfind("\n") + 1) + 1)


def _index(text: str, line: int, *, column: int) -> int:
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
    return at + column


def _origin(index: int, origins: Sequence[tuple[int, int]], *, length: int) -> int:
    """Return the position in the original text; within a replacement, the position of what was replaced."""
    result = index
    for position, origin in origins:
        if position > index:
            break
        result = origin + index - position
    following = min((origin for position, origin in origins if position > index), default=length)
    return min(result, following, length)
