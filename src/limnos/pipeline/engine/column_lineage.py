# SPDX-License-Identifier: Apache-2.0
"""Columns of all sources and tables of a pipeline with their origins, by Spark's analyzer and without data.

Follows a check of columns, which knows the columns of each step. A reason is given where columns are not known.
Must not know servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from limnos.names import display
from limnos.pipeline.declaration import Load, PythonStep, Sql, StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.analysis import Columns, UnknownColumns
from limnos.pipeline.engine.column_checks import ColumnChecker
from limnos.pipeline.engine.plan_columns import AGGREGATION, IDENTITY, TRANSFORMATION, ColumnOrigin, Origins
from limnos.pipeline.engine.relations import query_names
from limnos.pipeline.problems import InvalidQuery
from limnos.pipeline.source_declarations import DeclaredSource, Files, Jdbc, Kafka, PythonSource, Stream, TableSource
from limnos.pipeline.table_lineage import PipelineColumns, ResolvedColumn, TableLineage

_NO_ORIGINS: Origins = frozenset()


def pipeline_columns(
    checker: ColumnChecker, *, tables: Iterable[Parts], reasons: Mapping[Parts, str]
) -> PipelineColumns:
    """Return the columns of all sources and steps, and of `tables` that no step makes, after a check of them.

    `reasons` says why the columns of a table are not known.
    """
    pipeline = checker.pipeline
    entries: dict[Parts, TableLineage] = {}
    for source in pipeline.sources:
        columns = checker.input_columns((source.name,))
        entries[source.name,] = _plain(columns, unknown=_source_reason(source, checker, reasons=reasons))
    steps = {step.table for step in pipeline.steps}
    for table in set(tables) - steps:
        entries[table] = _plain(checker.tables.get(table), unknown=reasons.get(table, "no server was asked"))
    for step in pipeline.steps:
        entries[step.table] = _of_step(checker, step)
    return PipelineColumns(tables=entries)


def _plain(columns: Columns | None, *, unknown: str, is_published: bool = False) -> TableLineage:
    if columns is None:
        return TableLineage(unknown=unknown)
    return TableLineage(
        columns=tuple([ResolvedColumn(one.name, one.type) for one in columns]), is_published=is_published
    )


def _source_reason(source: DeclaredSource, checker: ColumnChecker, *, reasons: Mapping[Parts, str]) -> str:
    """Return why the columns of a source are not known."""
    kind = source.kind.files or source.kind if isinstance(source.kind, Stream) else source.kind
    if isinstance(kind, TableSource | Stream) and kind.table is not None:
        table = checker.full_name(kind.table)
        return reasons.get(table) or checker.unknown.get(table) or "no server was asked"
    if isinstance(kind, Files):
        return "the source has no 'schema': the first run finds its columns"
    if isinstance(kind, Jdbc):
        return "the database has its columns, which only a run asks"
    if isinstance(kind, Kafka):
        return "its Avro schema is read by a run"
    return "its function makes the columns" if isinstance(kind, PythonSource) else "only a run knows its columns"


def _of_step(checker: ColumnChecker, step: StepDeclaration) -> TableLineage:
    known = checker.known.get(step.table)
    if known is None:
        return _plain(checker.tables.get(step.table), unknown=_step_reason(checker, step), is_published=True)
    body = checker.body_columns[step.table]
    origins, rows = _origins(checker, step, body=body)
    origins_by_name = dict(zip([one.name.lower() for one in body], origins, strict=False))
    if step.embed is not None:
        inputs = [each for name in step.embed.columns for each in origins_by_name.get(name.lower(), _NO_ORIGINS)]
        origins_by_name |= dict.fromkeys([name.lower() for name in step.embed.added], _mark_computed(inputs))
    columns = tuple(
        [ResolvedColumn(one.name, one.type, _sort_origins(origins_by_name.get(one.name.lower(), ()))) for one in known]
    )
    return TableLineage(columns=columns, rows=_sort_origins(rows))


def _step_reason(checker: ColumnChecker, step: StepDeclaration) -> str:
    if isinstance(step.body, PythonStep):
        return f"the function {step.body.function} makes them, which a check does not call"
    return checker.unknown.get(step.table, "the query was not analyzed")


def _origins(
    checker: ColumnChecker, step: StepDeclaration, *, body: Columns
) -> tuple[Sequence[Iterable[ColumnOrigin]], Iterable[ColumnOrigin]]:
    """Return the origins of each column of a step's body and of its rows; none if the plan cannot be read."""
    if isinstance(step.body, Load):
        source = (step.body.source,)
        return [[ColumnOrigin(source, one.name, IDENTITY, True)] for one in body], ()
    if not isinstance(step.body, Sql):
        return [], ()
    names = query_names(None, step.body.text, grammar=checker.analyzer.grammar)
    tables = {one.parts: checker.input_columns(one.parts) for one in names.relations}
    known_tables = {parts: columns for parts, columns in tables.items() if columns}
    try:
        columns, rows = checker.analyzer.origins(step.body.text, tables=known_tables, parameters=checker.parameters())
    except (InvalidQuery, UnknownColumns, KeyError, TypeError, ValueError):  # a plan that Spark cannot write as JSON
        return [], ()
    return [_in_pipeline(checker, each) for each in columns], _in_pipeline(checker, rows)


def _in_pipeline(checker: ColumnChecker, origins: Iterable[ColumnOrigin]) -> list[ColumnOrigin]:
    """Return the origins with full paths of tables."""
    return [each._replace(source=checker.full_name(each.source)) for each in origins if isinstance(each.source, tuple)]


def _mark_computed(origins: Iterable[ColumnOrigin]) -> Origins:
    return frozenset(
        [
            each._replace(subtype=TRANSFORMATION) if each.direct and each.subtype != AGGREGATION else each
            for each in origins
        ]
    )


def _sort_origins(origins: Iterable[ColumnOrigin]) -> tuple[ColumnOrigin, ...]:
    return tuple(sorted(origins, key=lambda one: (not one.direct, display.render(_parts(one)), one.column)))


def _parts(origin: ColumnOrigin) -> Parts:
    return origin.source if isinstance(origin.source, tuple) else (str(origin.source),)
