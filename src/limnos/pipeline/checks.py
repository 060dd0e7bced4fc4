# SPDX-License-Identifier: Apache-2.0
"""Checks of a pipeline: names, order of steps, queries, columns, tables and rights, all problems in one pass.

`check` uses only the declaration unless it has a client. It uses only the grammar and the analyzer of Spark, in a JVM
that it starts if there is no session. It writes nothing. Must not know plans of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from limnos.model.errors import ServiceUnavailable, UnsupportedOperation
from limnos.pipeline.declaration import LoopRows, Pipeline, PythonStep, StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.analysis import AnalyzedColumn, query_analyzer
from limnos.pipeline.engine.column_checks import ColumnChecker
from limnos.pipeline.engine.column_lineage import pipeline_columns
from limnos.pipeline.engine.output_columns import column_problems
from limnos.pipeline.engine.parser import grammar_of
from limnos.pipeline.engine.relations import QueryNames, query_names
from limnos.pipeline.engine.unit_test_checks import unit_test_problems
from limnos.pipeline.environments import foreign_tables, rule_problems
from limnos.pipeline.graph import order_steps, steps_by_inputs
from limnos.pipeline.lance_outputs import lance_catalogs, lance_problems
from limnos.pipeline.loop_previews import (
    STAND_INS,
    LoopPreview,
    independent_problems,
    loop_preview,
    rows_of_newest_run,
)
from limnos.pipeline.near_tables import near_tables
from limnos.pipeline.problems import InvalidPipeline, Problem
from limnos.pipeline.query_loops import absent_loop_tables, loop_tables
from limnos.pipeline.reads import StepReads, collect_reads, tables
from limnos.pipeline.rights import (
    MissingRight,
    TableLookup,
    absent_tables,
    look_up_tables,
    missing_rights,
    storage_managed_outputs,
    unseen_catalog_problem,
    unseen_pipeline,
    unwritable_catalogs,
    with_checkpoints,
    written_tables,
)
from limnos.pipeline.table_columns import lance_columns, spark_columns
from limnos.pipeline.table_conflicts import declared_by_others
from limnos.pipeline.table_lineage import PipelineColumns

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.pipeline.engine.driver import Session

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of a check. `unchecked` lists skipped checks with the reasons."""

    pipeline: Pipeline
    problems: tuple[Problem, ...] = ()
    unchecked: tuple[str, ...] = ()
    reads: Mapping[str, StepReads] | None = None
    levels: tuple[tuple[StepDeclaration, ...], ...] = ()
    table_lookups: Mapping[Parts, TableLookup] | None = None
    """The server's information about each table; None without a server."""
    missing: tuple[MissingRight, ...] = ()
    catalogs: frozenset[str] = frozenset()
    """The metalake's catalogs that the caller may see."""
    lance_catalogs: frozenset[str] = frozenset()
    """The catalogs that have Lance tables; empty without a server."""
    unreadable: frozenset[Parts] = frozenset()
    """Tables of steps, and sources by one part, whose declarations cannot be read."""
    columns: PipelineColumns | None = None
    """The columns of sources and tables with their origins, if they were requested and Spark's analyzer is there."""
    loops: LoopPreview | None = None
    """The steps of loops over queries; None for a pipeline without such loops."""
    source: Pipeline | None = None
    """The declaration that was checked, if its loops have steps in `pipeline`."""

    def with_variables(self, text: str) -> str:
        """Return a text with the variables of loops in place of the words that stand for their values."""
        return text if self.loops is None else self.loops.with_variables(text)

    def without_stand_ins(self, entries: Mapping[str, S]) -> dict[str, S]:
        """Return the entries, by names of steps, without those of steps that stand for any row of a loop."""
        stand_ins = () if self.loops is None else self.loops.stand_ins
        left_out = {step.name for step in self.pipeline.steps if step.table in stand_ins}
        return {name: entry for name, entry in entries.items() if name not in left_out}

    @property
    def declared(self) -> Pipeline:
        """The declaration that was checked, whose loops over queries have no steps."""
        return self.pipeline if self.source is None else self.source

    @property
    def skipped(self) -> frozenset[str]:
        """The steps whose queries cannot be read, so that their columns are not analyzed."""
        return frozenset(step.name for step in self.pipeline.steps if step.name not in (self.reads or {}))

    @property
    def holds(self) -> bool:
        """Whether a run could begin: no problems and no missing rights in the checked parts."""
        return not self.problems and not self.missing


def check(
    pipeline: Pipeline,
    *,
    spark: Session | None = None,
    client: Client | None = None,
    unasked: str = "without a server",
    unreadable: frozenset[Parts] = frozenset(),
    with_columns: bool = False,
    loop_rows: Mapping[str, LoopRows] | None = None,
) -> CheckResult:
    """Check names and the order of steps; with a client also tables and rights. Nothing is changed.

    `unasked` is the reason why there is no client, for `unchecked`; `unreadable` are tables of steps, and sources,
    whose declarations cannot be read. All problems are found in one pass. `with_columns` also returns all columns with
    their origins. `loop_rows` are the present rows of loops over queries; of others the check takes those of the newest
    run, or a row that stands for any. Raises the client's errors, for example UnavailableError, and InvalidPipeline for
    `loop_rows` that make no valid steps.
    """
    scope = _CheckScope(spark=spark, client=client, unasked=unasked, unreadable=unreadable, with_columns=with_columns)
    if not pipeline.loops:
        return _check_expanded(pipeline, scope)
    run, recorded = ("", {}) if client is None else rows_of_newest_run(client, pipeline)
    preview = partial(loop_preview, pipeline, rows=loop_rows, recorded=recorded, run=run)
    preview_result = preview()
    result = _check_expanded(preview_result.pipeline, scope)
    if any(map(preview_result.is_about_stand_in, result.problems)):
        other = preview(stand_in=STAND_INS - 1)
        second = _check_expanded(other.pipeline, scope)
        problems = tuple(independent_problems(result.problems, second.problems, preview=preview_result))
        if len(second.problems) < len(result.problems):
            result, preview_result = second, other
        result = replace(result, problems=problems)
    missing = tuple([one for one in result.missing if not preview_result.depends_on_row(".".join(one.table))])
    return replace(
        result,
        missing=missing,
        unchecked=(*preview_result.notes, *result.unchecked),
        loops=preview_result,
        source=pipeline,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckScope:
    """The means and the extent of a check, as the arguments of `check`."""

    spark: Session | None
    client: Client | None
    unasked: str
    unreadable: frozenset[Parts]
    with_columns: bool


def _check_expanded(pipeline: Pipeline, scope: _CheckScope) -> CheckResult:
    """Check a pipeline whose loops have steps."""
    client, spark = scope.client, scope.spark
    providers = {} if client is None else {one.name: one.provider for one in client.catalogs.list()}
    catalogs, lance = frozenset(providers), lance_catalogs(providers)
    problems = [*rule_problems(pipeline), *_foreign(pipeline, catalogs), *unwritable_catalogs(pipeline, providers)]
    reads, unchecked, read_problems = _reads(pipeline, spark, catalogs=catalogs)
    problems += read_problems
    looped, loop_problems = _loop_reads(pipeline, spark, catalogs=catalogs) if reads is not None else ({}, [])
    problems += loop_problems
    if client is not None:
        problems += lance_problems(pipeline, providers, reads=tables(reads or {}))
    levels: tuple[tuple[StepDeclaration, ...], ...] = ()
    try:
        levels = order_steps(pipeline, tables(reads) if reads is not None else {})
    except InvalidPipeline as error:
        problems += error.problems
    partial_result = CheckResult(
        pipeline=pipeline,
        unchecked=unchecked,
        reads=reads,
        levels=levels,
        catalogs=catalogs,
        lance_catalogs=lance,
        unreadable=scope.unreadable,
        columns=PipelineColumns() if scope.with_columns else None,
    )
    if client is None or reads is None:
        reasons = () if client is not None else (f"tables and rights: {scope.unasked}",)
        return _without_tables(partial_result, problems, spark=spark, reasons=reasons)
    if unseen := [each for each in pipeline.catalogs if each not in catalogs]:
        message = unseen_catalog_problem(client, unseen[0], visible=catalogs)
        if isinstance(message, Problem):
            positions = (step.at for step in pipeline.steps if step.table[0] == unseen[0] != pipeline.catalog)
            problems.append(Problem(message.message, next(positions, pipeline.at)))
        missing = () if isinstance(message, Problem) else (message,)
        reasons = (f"tables and rights: they are in catalog {unseen[0]}, which you may not see",)
        return _without_tables(replace(partial_result, missing=missing), problems, spark=spark, reasons=reasons)
    named_tables = {table for one in reads.values() for table in (*one.tables, *one.past)}
    named_tables |= {table for each in looped.values() for table in each}
    lookups = look_up_tables(client, frozenset({*named_tables, *written_tables(pipeline, reads)}), catalogs=catalogs)
    lookups = with_checkpoints(client, lookups, pipeline=pipeline)
    near = cache(partial(near_tables, client))
    problems += absent_tables(reads, lookups, pipeline=pipeline, near=near)
    absent = frozenset(table for table, one in lookups.items() if one.kind == "absent")
    problems += absent_loop_tables(pipeline, looped, absent=absent, near=near)
    problems += storage_managed_outputs(pipeline, lookups)
    problems += declared_by_others(client, pipeline)
    problems += foreign_tables(pipeline, _properties(lookups))
    analyzed = _analyzed_columns(partial_result, spark=spark, lookups=lookups)
    unseen_name = unseen_pipeline(client, pipeline)
    return replace(
        partial_result,
        problems=_unique([*problems, *analyzed.problems]),
        unchecked=(*unchecked, *analyzed.unchecked, *([unseen_name] if unseen_name else [])),
        columns=analyzed.columns,
        table_lookups=lookups,
        missing=missing_rights(client, pipeline, reads=reads, lookups=lookups),
    )


def _without_tables(
    result: CheckResult, problems: Sequence[Problem], *, spark: Session | None, reasons: Sequence[str]
) -> CheckResult:
    """Return the result of a check that could not look at tables, for these reasons."""
    analyzed = _analyzed_columns(result, spark=spark, lookups={})
    unchecked = (*result.unchecked, *reasons, *analyzed.unchecked)
    return replace(
        result, problems=_unique([*problems, *analyzed.problems]), unchecked=unchecked, columns=analyzed.columns
    )


def _properties(lookups: Mapping[Parts, TableLookup]) -> dict[Parts, Mapping[str, object]]:
    """Return the properties of the existing tables."""
    table_properties: dict[Parts, Mapping[str, object]] = {}
    for table, one in lookups.items():
        properties = one.lance.properties if one.lance is not None else (one.metadata or {}).get("properties")
        if one.kind == "table":
            table_properties[table] = properties if isinstance(properties, Mapping) else {}
    return table_properties


@dataclass(frozen=True, slots=True)
class _ColumnAnalysis:
    """The result of an analysis of columns. `unchecked` says what was not analyzed, with the reasons."""

    problems: Sequence[Problem] = ()
    unchecked: Sequence[str] = ()
    columns: PipelineColumns | None = None


def _analyzed_columns(
    result: CheckResult, *, spark: Session | None, lookups: Mapping[Parts, TableLookup]
) -> _ColumnAnalysis:
    """Return the problems of columns: reserved and repeated names, and columns and types that queries get wrong. Also
    returns what was not analyzed, because a source has no schema.
    """
    reads = result.reads
    if reads is None:
        return _ColumnAnalysis()
    pipeline = result.pipeline
    has_python = any(isinstance(step.body, PythonStep) for step in pipeline.steps)
    try:
        problems = column_problems(pipeline, spark=spark)
        grammar = grammar_of(spark)
    except UnsupportedOperation as error:
        return _ColumnAnalysis(unchecked=[f"columns: {error.message}"])
    analyzer = query_analyzer(grammar, only_builtin=spark is None and not has_python)
    known_columns = {
        table: tuple(AnalyzedColumn(*each) for each in columns)
        for table, one in lookups.items()
        if (columns := _columns_of(one)) is not None
    }
    checker = ColumnChecker(
        pipeline=pipeline,
        analyzer=analyzer,
        tables=known_columns,
        catalogs=result.catalogs,
        unreadable=result.unreadable,
    )
    levels = result.levels or (steps_by_inputs(pipeline, tables(reads)),)
    problems += checker.problems(levels, skipped=result.skipped)
    problems += unit_test_problems(checker, skipped=result.skipped)
    problems += checker.loop_problems()
    unknown = [
        f"columns in {', '.join(steps)}: source {source} has no 'schema', so only the run finds wrong names"
        for source, steps in checker.without_schema.items()
    ]
    resolved: PipelineColumns | None = None
    if result.columns is not None:
        named_tables = {table for one in reads.values() for table in (*one.tables, *one.past)}
        reasons = {table: _unknown_columns(one) for table, one in lookups.items()}
        resolved = pipeline_columns(checker, tables=named_tables, reasons=reasons)
    return _ColumnAnalysis(problems, unknown, resolved)


def _unknown_columns(lookup: TableLookup) -> str:
    """Return why the columns of a table are not known, if they are not."""
    return {
        "absent": "the table does not exist yet",
        "hidden": "you may not read the table",
        "outside": "the table is in no catalog of the metalake",
        "view": "it is a view, whose columns only Spark knows",
    }.get(lookup.kind, "it has a type that Spark does not have, or the server does not tell its columns")


def _columns_of(lookup: TableLookup) -> tuple[tuple[str, str], ...] | None:
    """Return the columns of an existing table; None if they are not known."""
    return spark_columns(lookup.metadata) if lookup.lance is None else lance_columns(lookup.lance.table_schema)


def _unique(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems in the order of the file, each once."""
    return InvalidPipeline(dict.fromkeys(problems)).problems


def _reads(
    pipeline: Pipeline, spark: Session | None, *, catalogs: frozenset[str]
) -> tuple[dict[str, StepReads] | None, tuple[str, ...], list[Problem]]:
    """Return the reads of all steps, reasons for skipped checks, and problems. The reads are None if Spark's grammar is
    unavailable.
    """
    queries: Callable[[str], QueryNames] = partial(query_names, spark)
    try:
        reads, problems = collect_reads(pipeline, queries=queries, catalogs=catalogs)
    except (UnsupportedOperation, ServiceUnavailable) as error:
        return None, (f"queries, what they read, and their order: {error.message}",), []
    return reads, (), problems


def _loop_reads(
    pipeline: Pipeline, spark: Session | None, *, catalogs: frozenset[str]
) -> tuple[dict[str, frozenset[Parts]], list[Problem]]:
    """Return the tables that the queries of loops read, and the problems of these queries."""
    known_catalogs = catalogs.union(pipeline.catalogs)
    try:
        return loop_tables(pipeline, queries=partial(query_names, spark), catalogs=known_catalogs)
    except (UnsupportedOperation, ServiceUnavailable):  # their steps are named as not checked
        return {}, []


def _foreign(pipeline: Pipeline, catalogs: frozenset[str]) -> tuple[Problem, ...]:
    """Find steps whose name begins with another catalog. A query with that name would read the other catalog."""
    return tuple(
        Problem(
            f"{step.name} begins with the name of catalog '{table[1]}', and the step writes a table in '{table[0]}':"
            f" leave it out and write 'catalog: {table[1]}' in the step, or choose another namespace",
            step.at,
        )
        for step in pipeline.steps
        if len(table := step.declared_table) > 1 and table[1] in catalogs and table[1] != table[0]
    )
