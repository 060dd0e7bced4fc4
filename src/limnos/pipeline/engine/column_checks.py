# SPDX-License-Identifier: Apache-2.0
"""Checks of columns without data: of queries, of expectations, and of the names in the keys of a step.

Follows the columns from sources with a schema and from existing tables through the steps, by Spark's analyzer. Where
columns are not known (a source without a schema, a Python function, a view) nothing is reported. Must not know servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from limnos.pipeline.declaration import (
    Load,
    ParameterType,
    Pipeline,
    PythonStep,
    RuleKind,
    Sql,
    StepDeclaration,
    WriteMode,
)
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.analysis import AnalyzedColumn, Columns, QueryAnalyzer, UnknownColumns, relation_text
from limnos.pipeline.engine.relations import query_names
from limnos.pipeline.problems import InvalidQuery, Problem, nearest_word, within
from limnos.pipeline.reads import table_of
from limnos.pipeline.source_declarations import Stream, TableSource

_LITERALS = {
    ParameterType.STRING: "'text'",
    ParameterType.INT: "1L",
    ParameterType.DOUBLE: "1.0D",
    ParameterType.BOOLEAN: "true",
    ParameterType.DATE: "DATE'2000-01-01'",
    ParameterType.TIMESTAMP: "TIMESTAMP'2000-01-01 00:00:00'",
}
_PLAIN_COLUMN = re.compile(r"[A-Za-z_]\w*")
_SELECT = "SELECT * FROM {} WHERE "


_TYPES: Final = (
    *("bigint", "binary", "boolean", "date", "decimal", "double"),
    *("float", "int", "smallint", "string", "timestamp", "tinyint"),
)
"""Simple types of Spark, for proposals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChecker:
    """The known columns of a pipeline's inputs. Columns of steps are added in their order."""

    pipeline: Pipeline
    analyzer: QueryAnalyzer
    tables: Mapping[Parts, Columns]
    """The columns of existing tables that no step makes."""
    catalogs: frozenset[str]
    unreadable: frozenset[Parts] = frozenset()
    """Steps and sources whose declarations cannot be read, so that their columns are not known."""
    known: dict[Parts, Columns] = field(default_factory=dict)
    body_columns: dict[Parts, Columns] = field(default_factory=dict)
    """The columns that the body of each step makes, as far as they are known."""
    without_schema: dict[str, list[str]] = field(default_factory=dict)
    """The steps whose queries were not analyzed because a source has no schema, by source."""
    unknown: dict[Parts, str] = field(default_factory=dict)
    """Why the columns of a step are not known, by its table."""

    def problems(self, levels: Sequence[Sequence[StepDeclaration]], *, skipped: frozenset[str]) -> list[Problem]:
        """Return the problems of all steps in the order of execution. `skipped` are steps that have other problems."""
        problems = list(self._source_problems())
        for level in levels:
            for step in level:
                if step.name in skipped or step.table in self.unreadable:
                    continue
                try:
                    self.body_columns[step.table] = self._columns(step)
                    columns = (*self.body_columns[step.table], *_embedding_columns(step))
                except UnknownColumns as error:
                    self._note_unknown(step, str(error))
                    continue
                except InvalidQuery as error:
                    at = step.body.at if isinstance(step.body, Sql) else None
                    problems.append(Problem(f"{step.name}: {error.message}", within(at, error)))
                    continue
                self.known[step.table] = (*columns, *_history_columns(step))
                problems += self._key_problems(step, columns)
                problems += self._rule_problems(step, columns)
        return problems

    def loop_problems(self) -> Iterator[Problem]:
        """Yield the problems of loops' queries over published tables, and variables that their rows do not have."""
        for loop in self.pipeline.loops:
            try:
                names = query_names(None, loop.query, grammar=self.analyzer.grammar)
                catalog, catalogs = self.pipeline.catalog, self.catalogs
                full = {one.parts: table_of(one.parts, catalog=catalog, catalogs=catalogs) for one in names.relations}
                if any(one.travels for one in names.relations) or not self.tables.keys() >= set(full.values()):
                    continue
                tables = {parts: self.tables[table] for parts, table in full.items()}
                columns = self.analyzer.columns(loop.query, tables=tables, parameters=self.parameters())
            except UnknownColumns:
                continue
            except InvalidQuery as error:
                yield Problem(f"{loop.name}: {error.message}", within(loop.query_at, error))
                continue
            column_names = [one.name for one in columns]
            for name in loop.variables:
                if name not in column_names:
                    advice = nearest_word(name, column_names) or f"; it has {', '.join(column_names[:20])}"
                    yield Problem(f"{loop.name}: the loop's query has no column '{name}'{advice}", loop.query_at)

    def input_columns(self, parts: Parts) -> Columns | None:
        """Return the columns of a source or table as a step names it; None if they are not known."""
        try:
            return self._input(parts)
        except UnknownColumns:
            return None

    def full_name(self, parts: Parts) -> Parts:
        """Return the full path of a table as a step names it, and the name of a source."""
        if len(parts) == 1:
            return parts
        return self.pipeline.actual_table(table_of(parts, catalog=self.pipeline.catalog, catalogs=self.catalogs))

    def _note_unknown(self, step: StepDeclaration, name: str) -> None:
        self.unknown[step.table] = f"they depend on {name}"
        sources = {source.name for source in self.pipeline.sources if source.schema is None}
        if name in sources and isinstance(step.body, Sql):
            self.without_schema.setdefault(name, []).append(step.name)

    def _source_problems(self) -> Iterator[Problem]:
        for source in self.pipeline.sources:
            schema = source.schema
            if schema is None or (source.name,) in self.unreadable:
                continue
            columns = self.analyzer.schema(schema)
            if columns is None:
                fault = self._unknown_type(schema) or "'schema' is not a list of columns"
                yield Problem(f"source {source.name}: {fault}; write 'id bigint, name string'", source.at)
            else:
                self.known[source.name,] = columns

    def _unknown_type(self, schema: str) -> str | None:
        """Return which column of a list has a type that Spark does not know; None if the list is wrong in another way.

        A comma within a type, as in `decimal(9,2)`, separates no columns.
        """
        for column in re.findall(r"(?:[^,(<]|\([^)]*\)|<[^,]*(?:,[^,]*)*>)+", schema):
            name, _, type_ = column.strip().partition(" ")
            if re.fullmatch(r"[A-Za-z_]+", type_.strip()) and self.analyzer.schema(column) is None:
                near = nearest_word(type_.strip().lower(), _TYPES)
                return f"column {name} has an unknown type '{type_.strip()}'{near}"
        return None

    def _columns(self, step: StepDeclaration) -> Columns:
        body = step.body
        if isinstance(body, Load):
            return self._input((body.source,))
        if isinstance(body, PythonStep):
            raise UnknownColumns(body.function)
        names = query_names(None, body.text, grammar=self.analyzer.grammar)
        if any(one.travels for one in names.relations) or "_metadata" in body.text.lower():
            raise UnknownColumns("a state of a table")
        tables = {one.parts: self._input(one.parts) for one in names.relations}
        return self.analyzer.columns(body.text, tables=tables, parameters=self.parameters())

    def _input(self, parts: Parts) -> Columns:
        """Return the columns of a source or table. Raises UnknownColumns."""
        if len(parts) == 1:
            if parts in self.known:
                return self.known[parts]
            source = next((one for one in self.pipeline.sources if one.name == parts[0]), None)
            kind = None if source is None else source.kind
            table = kind.table if isinstance(kind, (TableSource, Stream)) else None
            if table is None:
                raise UnknownColumns(parts[0])
            parts = table
        full = self.full_name(parts)
        columns = self.known.get(full) or (None if self._is_step(full) else self.tables.get(full))
        if columns is None:
            raise UnknownColumns(".".join(full))
        return columns

    def _is_step(self, table: Parts) -> bool:
        return any(step.table == table for step in self.pipeline.steps)

    def parameters(self) -> dict[str, str]:
        """Return a literal of each parameter's type, by its name."""
        declared_values = {one.name: _LITERALS[one.type] for one in self.pipeline.parameters}
        run = {"run_id": _LITERALS[ParameterType.STRING], "run_at": _LITERALS[ParameterType.TIMESTAMP]}
        return {**declared_values, **run}

    def _key_problems(self, step: StepDeclaration, columns: Columns) -> Iterator[Problem]:
        """Find columns that a step's keys name and that the step does not make."""
        history = [one.name for one in _history_columns(step)]
        names = [*(one.name for one in columns), *history]
        mentions = {
            "the columns of 'embed'": () if step.embed is None else step.embed.columns,
            "'indexes'": tuple(one.column for one in step.indexes),
            "'vectors'": tuple(step.vectors),
            "the keys of 'write'": step.write.keys,
            "'tracked'": step.write.tracked,
            "'partition'": tuple(one for one in step.partition if _PLAIN_COLUMN.fullmatch(one)),
            "'columns'": tuple(one.name for one in step.columns if _PLAIN_COLUMN.fullmatch(one.name)),
        }
        for place, mentioned in mentions.items():
            for name in mentioned:
                if not _has(names, name):
                    yield Problem(_absent(f"{step.name}: {place} has", name, names=names), step.at)
        for place, condition in (("'delete_when'", step.write.delete_when), ("'as_of'", step.write.as_of)):
            if condition is not None:
                text = condition if place == "'delete_when'" else f"({condition}) IS NOT NULL"
                if (error := self._condition_error(text, columns)) is not None:
                    yield Problem(f"{step.name}: {place}: {error.message}", step.at)

    def _rule_problems(self, step: StepDeclaration, columns: Columns) -> Iterator[Problem]:
        names = [one.name for one in (*columns, *_history_columns(step))]
        for rule in step.expectations:
            if rule.kind is RuleKind.ROW and rule.condition is not None:
                error = self._condition_error(rule.condition, columns)
                if error is not None:
                    yield Problem(f"{step.name}: expectation '{rule.name}': {error.message}", within(rule.at, error))
                continue
            for name in rule.columns:
                if rule.kind is not RuleKind.KEY and not _has(names, name):
                    yield Problem(_absent(f"{step.name}: expectation '{rule.name}' has", name, names=names), rule.at)

    def _condition_error(self, condition: str, columns: Columns) -> InvalidQuery | None:
        """Return the error of a condition on rows with these columns; None if there is none, or none can be decided."""
        prefix = _SELECT.format(f"{relation_text(columns)} AS _")
        try:
            self.analyzer.columns(f"{prefix}{condition}", tables={}, parameters=self.parameters())
        except UnknownColumns:
            return None
        except InvalidQuery as error:
            column = error.column - len(prefix) if error.line == 1 else error.column
            return InvalidQuery(error.message, line=error.line, column=max(column, 1))
        return None


def _history_columns(step: StepDeclaration) -> Columns:
    write = step.write
    if write.mode is not WriteMode.HISTORY:
        return ()
    return (
        AnalyzedColumn(write.valid_from, "TIMESTAMP"),
        AnalyzedColumn(write.valid_to, "TIMESTAMP"),
        AnalyzedColumn(write.current, "BOOLEAN"),
    )


def _embedding_columns(step: StepDeclaration) -> Columns:
    if step.embed is None:
        return ()
    return (AnalyzedColumn(step.embed.into, "ARRAY<FLOAT>"), AnalyzedColumn(step.embed.hash_column, "STRING"))


def _has(names: Sequence[str], name: str) -> bool:
    return name.lower() in {one.lower() for one in names}


def _absent(text: str, name: str, *, names: Sequence[str]) -> str:
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"{text} a column '{name}', which the step does not make{nearest_word(name, names)}; it makes {listed}"
