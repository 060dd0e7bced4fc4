# SPDX-License-Identifier: Apache-2.0
"""Inputs of each step: tables by full name, sources and parameters, and errors in their names.

Derives the tables that order the steps and need rights, from a declaration and the names in its queries. The engine
finds names in queries; the server checks which tables exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from limnos.names import display
from limnos.pipeline.declaration import Load, Pipeline, Sql, StepDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts, SourcePosition
from limnos.pipeline.engine.relations import QueryNames
from limnos.pipeline.problems import InvalidPipeline, InvalidQuery, Problem, nearest_word, offset, within
from limnos.pipeline.source_declarations import (
    DeclaredSource,
    Files,
    Jdbc,
    Kafka,
    MalformedRowPolicy,
    RegistrationSource,
    Stream,
    TableSource,
)

RUN_PARAMETERS = ("run_id", "run_at")
"""Parameters that each run has: its id and its start time."""

SELECTORS = ("branch_", "tag_", "snapshot_id_", "at_timestamp_")
"""Prefixes of the last name part by which Iceberg selects a state of a table."""

METADATA_TABLES = frozenset(
    {
        "all_data_files",
        "all_delete_files",
        "all_entries",
        "all_files",
        "all_manifests",
        "data_files",
        "delete_files",
        "entries",
        "files",
        "history",
        "manifests",
        "metadata_log_entries",
        "partitions",
        "position_deletes",
        "refs",
        "snapshots",
    }
)

Queries = Callable[[str], QueryNames]
"""A function that finds the names in a query. Raises InvalidQuery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReads:
    """The inputs of one step. Table paths begin with the catalog."""

    tables: frozenset[Parts]
    """The tables that order the steps: inputs of the step's body or of its expectations."""
    past: frozenset[Parts] = frozenset()
    """Tables that the query reads at a stated time or version, which do not affect the order of steps."""
    sources: frozenset[str]
    parameters: frozenset[str]


def table_of(parts: Parts, *, catalog: str, catalogs: frozenset[str]) -> Parts:
    """Return the full name of a table in a query: in a catalog of the session, else in the pipeline's catalog.

    `parts` has at least two parts; a single part is a source or a CTE.
    """
    return parts if parts[0] in catalogs or parts[0] == catalog else (catalog, *parts)


def all_reads(pipeline: Pipeline, *, queries: Queries, catalogs: frozenset[str]) -> dict[str, StepReads]:
    """Return the inputs of each step by its name. Raises InvalidPipeline with the problems of all steps."""
    reads, problems = collect_reads(pipeline, queries=queries, catalogs=catalogs)
    if problems:
        raise InvalidPipeline(problems)
    return reads


def collect_reads(
    pipeline: Pipeline, *, queries: Queries, catalogs: frozenset[str]
) -> tuple[dict[str, StepReads], list[Problem]]:
    """Return the inputs of each step by its name, as far as they can be read, and the problems of all steps."""
    declared = pipeline if pipeline.environment is None else pipeline.environment.production
    scope = _NameScope(
        catalog=pipeline.catalog,
        catalogs=catalogs.union(pipeline.catalogs, declared.catalogs),
        actual_table=pipeline.actual_table,
        sources={source.name: source for source in pipeline.sources},
        parameters=frozenset((*(one.name for one in pipeline.parameters), *RUN_PARAMETERS)),
        output_tables=frozenset(step.table for step in pipeline.steps),
        queries=queries,
    )
    problems: list[Problem] = []
    return {step.name: _reads(scope, step, problems=problems) for step in pipeline.steps}, problems


def tables(reads: Mapping[str, StepReads]) -> dict[str, frozenset[Parts]]:
    """Return the tables of each step's inputs, in the form that `graph` takes."""
    return {name: reads.tables for name, reads in reads.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _NameScope:
    """The names that a pipeline's steps can refer to."""

    catalog: str
    catalogs: frozenset[str]
    actual_table: Callable[[Parts], Parts]
    """Maps a full name to the table that it stands for in an environment."""
    sources: Mapping[str, DeclaredSource]
    parameters: frozenset[str]
    output_tables: frozenset[Parts]
    queries: Queries


@dataclass(frozen=True, slots=True)
class _NameMention:
    """A name of a source or table, with its position."""

    parts: Parts
    at: SourcePosition | None
    travels: bool = False


def _reads(scope: _NameScope, step: StepDeclaration, *, problems: list[Problem]) -> StepReads:
    body, parameters = _of_body(scope, step, problems=problems)
    mentions, more = _of_expectations(scope, step, problems=problems)
    full = [(_full_name(scope, one), one) for one in (*body, *mentions) if len(one.parts) > 1]
    names = [one for one in (*body, *mentions) if len(one.parts) == 1]
    problems += [problem for one in names for problem in _unknown_source(scope, one, step=step)]
    problems += [problem for table, one in full for problem in _refuse_table_states(scope, table, at=one.at)]
    sources = frozenset(one.parts[0] for one in names)
    problems += _refuse_rows_without_keys(scope, step, sources=[one.parts[0] for one in body if len(one.parts) == 1])
    problems += _refuse_repeated_topics(scope, step, sources=sources)
    problems += _refuse_cursors_without_keys(scope, step, sources=sources)
    tables = {table for table, one in full if not one.travels}
    return StepReads(
        tables=frozenset(tables | {table for name in sources for table in _source_tables(scope, name)}),
        past=frozenset(table for table, one in full if one.travels),
        sources=sources,
        parameters=parameters | more,
    )


def _of_body(
    scope: _NameScope, step: StepDeclaration, *, problems: list[Problem]
) -> tuple[list[_NameMention], frozenset[str]]:
    """Return the names of tables and sources in the step's body, and the names of the parameters in it."""
    body = step.body
    if isinstance(body, Sql):
        return _of_query(scope, step, text=body.text, at=body.at, problems=problems)
    if isinstance(body, Load):
        return [_NameMention((body.source,), step.at)], frozenset()
    argument = (value if isinstance(value, tuple) else (value,) for value in body.inputs.values())
    return [_NameMention(parts, step.at) for parts in argument], frozenset()


def _of_expectations(
    scope: _NameScope, step: StepDeclaration, *, problems: list[Problem]
) -> tuple[list[_NameMention], frozenset[str]]:
    """Return the names in the step's expectations, without the step's own table."""
    mentions: list[_NameMention] = []
    parameters: frozenset[str] = frozenset()
    for one in step.expectations:
        if one.table is not None:
            mentions.append(_NameMention(one.table, one.at))
        if one.query is not None:
            results, more = _of_query(scope, step, text=one.query, at=one.at, problems=problems)
            mentions += results
            parameters |= more
        if one.condition is not None:
            parameters |= _of_condition(scope, step, text=one.condition, at=one.at, problems=problems)
    return [one for one in mentions if _full_name(scope, one) != step.table], parameters


def _of_condition(
    scope: _NameScope, step: StepDeclaration, *, text: str, at: SourcePosition | None, problems: list[Problem]
) -> frozenset[str]:
    """Return the parameters in a condition. Its syntax is checked with the rows that it is about."""
    try:
        query = scope.queries(f"SELECT ({text})")
    except InvalidQuery:
        return frozenset()
    _require_parameters(scope, step, text=text, used=query.parameters, at=at, problems=problems)
    return query.parameters


def _require_parameters(
    scope: _NameScope,
    step: StepDeclaration,
    *,
    text: str,
    used: frozenset[str],
    at: SourcePosition | None,
    problems: list[Problem],
) -> None:
    """Add a problem for each parameter of a text that the pipeline does not declare."""
    for name in sorted(used - scope.parameters):
        nearest = nearest_word(name, sorted(scope.parameters))
        message = f"{step.name}: no parameter ':{name}'{nearest}; declare it under 'parameters'"
        problems.append(Problem(message, offset(at, text, index=text.find(f":{name}"))))


def _of_query(
    scope: _NameScope, step: StepDeclaration, *, text: str, at: SourcePosition | None, problems: list[Problem]
) -> tuple[list[_NameMention], frozenset[str]]:
    try:
        query = scope.queries(text)
    except InvalidQuery as error:
        problems.append(Problem(f"{step.name}: {error.message}", within(at, error)))
        return [], frozenset()
    _require_parameters(scope, step, text=text, used=query.parameters, at=at, problems=problems)
    mentions = [
        _NameMention(one.parts, offset(at, text, index=one.start), travels=one.travels) for one in query.relations
    ]
    return mentions, query.parameters


def _full_name(scope: _NameScope, mention: _NameMention) -> Parts:
    if len(mention.parts) == 1:
        return mention.parts
    return _table(scope, mention.parts)


def _table(scope: _NameScope, parts: Parts) -> Parts:
    return scope.actual_table(table_of(parts, catalog=scope.catalog, catalogs=scope.catalogs))


def _source_tables(scope: _NameScope, name: str) -> Sequence[Parts]:
    """Return the path of the table that a source reads; empty for a source that is not a table."""
    source = scope.sources.get(name)
    kind = source.kind if source else None
    if isinstance(kind, TableSource | RegistrationSource):
        return [_table(scope, kind.table)]
    if isinstance(kind, Stream) and kind.table is not None:
        return [_table(scope, kind.table)]
    return []


def _unknown_source(scope: _NameScope, mention: _NameMention, *, step: StepDeclaration) -> Sequence[Problem]:
    name = mention.parts[0]
    if name in scope.sources:
        return []
    results = [table for table in sorted(scope.output_tables) if table[-1] == name]
    text = nearest_word(name, sorted(scope.sources)) or (
        f"; did you mean {display.render(results[0][1:])}?" if results else ""
    )
    message = (
        f"{step.name}: no source '{display.render((name,))}'{text}; declare it under 'sources', or write a table with "
        "its namespace"
    )
    return [Problem(message, mention.at)]


def _refuse_rows_without_keys(scope: _NameScope, step: StepDeclaration, *, sources: Sequence[str]) -> Sequence[Problem]:
    """Refuse `delete_missing` over files whose malformed rows are left out: their keys would count as missing."""
    if not step.write.delete_missing:
        return []
    kinds = {name: scope.sources[name].kind for name in dict.fromkeys(sources) if name in scope.sources}
    files = {name: kind.files if isinstance(kind, Stream) else kind for name, kind in kinds.items()}
    return [
        Problem(
            f"{step.name}: `delete_missing` would delete the keys of malformed rows, which source {name} leaves out "
            f"(`malformed: {one.malformed.value}`): write `malformed: fail`, or leave `delete_missing` out",
            step.at,
        )
        for name, one in files.items()
        if isinstance(one, Files | Kafka) and one.malformed is not MalformedRowPolicy.FAIL
    ]


def _refuse_repeated_topics(scope: _NameScope, step: StepDeclaration, *, sources: frozenset[str]) -> Sequence[Problem]:
    """Refuse to append all records of a topic in each run."""
    if step.incremental or step.write.mode is not WriteMode.APPEND:
        return []
    topics = [name for name in sorted(sources) if name in scope.sources and isinstance(scope.sources[name].kind, Kafka)]
    return [
        Problem(
            f"{step.name}: each run would append all records of topic source {name} again: write 'incremental: true', "
            "or 'write: replace' for a table of the topic's present records",
            step.at,
        )
        for name in topics
    ]


def _refuse_cursors_without_keys(
    scope: _NameScope, step: StepDeclaration, *, sources: frozenset[str]
) -> Sequence[Problem]:
    """Refuse increments of a database that are not written by key, because rows are read again."""
    if not step.incremental or step.write.mode in (WriteMode.MERGE, WriteMode.HISTORY):
        return []
    kinds = {name: scope.sources[name].kind for name in sorted(sources) if name in scope.sources}
    return [
        Problem(
            f"{step.name}: increments of source {name} read rows near its cursor again, which `write:"
            f" {step.write.mode.value}` would repeat: write `write: {{mode: merge, keys: …}}`",
            step.at,
        )
        for name, kind in kinds.items()
        if isinstance(kind, Jdbc) and kind.cursor_column is not None
    ]


def _refuse_table_states(scope: _NameScope, table: Parts, *, at: SourcePosition | None) -> Sequence[Problem]:
    """Refuse branches, tags and metadata tables of the pipeline's tables, because a run reads its own branch."""
    owner, last = table[:-1], table[-1]
    if owner not in scope.output_tables or table in scope.output_tables:
        return []
    if last not in METADATA_TABLES and not last.startswith(SELECTORS):
        return []
    return [
        Problem(
            f"{display.render(table)} is a state of a table that this pipeline writes: a run reads its own branch of"
            f" it; name {display.render(owner)}, or an older state with VERSION AS OF",
            at,
        )
    ]
