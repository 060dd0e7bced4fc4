# SPDX-License-Identifier: Apache-2.0
"""Environments: the same file, run against tables of its own.

Translates a declaration into that of an environment: the steps write the environment's tables, and names in queries
stand for them. An environment has a pipeline of its own at the server, `shop.dev`, so its runs, locks and conflicts are
those of any pipeline. Every table that a run of an environment creates has a property that names the environment, and
a run writes no existing table without it. Must not know Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from limnos.client import Client
from limnos.client.activity.runs import Run
from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.pipeline.context import OF_ENVIRONMENT, is_run_branch
from limnos.pipeline.declaration import Environment, EnvironmentRule, Pipeline, StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.problems import InvalidPipeline, Problem, nearest_word
from limnos.pipeline.run.refs import TableHeads, heads_of
from limnos.pipeline.side_tables import side_table, tables_of
from limnos.pipeline.source_declarations import DeclaredSource, RegistrationSource, Stream, TableSource

PRODUCTION: Final = "prod"
"""The name of the tables that the file declares. No rule may have it."""
NAME_MAX: Final = 64
"""The largest number of characters in the name of a pipeline at the server."""


def in_environment(pipeline: Pipeline, name: str | None) -> Pipeline:
    """Return the declaration for an environment; the same one for None and for production.

    Raises BadRequest for an environment that the file does not have, InvalidPipeline for a rule that maps two tables to
    one, or a table to one that the file declares.
    """
    if name is None or name == PRODUCTION:
        return pipeline
    rule = next((one for one in pipeline.environments if one.name == name), None)
    if rule is None:
        raise BadRequest(f"there is no environment '{name}'{_advice(pipeline, name)}")
    if problems := list(rule_problems(pipeline)):
        raise InvalidPipeline(problems)
    tables = {step.table: rule.table(step.table) for step in pipeline.steps}
    return _bind_environment(pipeline, rule=rule, tables=tables)


def environment_of(run: Run) -> str | None:
    """Return the name of the environment in a run's record; None for a run of production."""
    record = run.options.get("environment")
    return str(record.get("name")) if isinstance(record, Mapping) else None


def environment_record(pipeline: Pipeline) -> dict[str, object]:
    """Return the options of a run's record by which a resumed run reads the same tables; empty for production."""
    environment = pipeline.environment
    if environment is None:
        return {}
    published = [table for step in pipeline.steps if (table := step.declared_table) not in environment.tables]
    return {"environment": {"name": environment.name, "published": [list(table) for table in published]}}


def as_recorded(pipeline: Pipeline, run: Run) -> Pipeline:
    """Return the declaration in the environment of a recorded run, with the same tables of production.

    Raises BadRequest as `in_environment` does.
    """
    if pipeline.environment is None:
        pipeline = in_environment(pipeline, environment_of(run))
    record = run.options.get("environment")
    published = record.get("published") if isinstance(record, Mapping) else None
    return reading_production(pipeline, {tuple(map(str, one)) for one in published or () if isinstance(one, list)})


def missing_tables(client: Client, pipeline: Pipeline, *, left_out: frozenset[str]) -> frozenset[Parts]:
    """Return the declared tables of the steps `left_out` of which the environment has nothing yet.

    A table that only a run's branches fill, such as a held run's, counts as nothing. Raises DeniedError for a table
    whose existence the caller may not learn.
    """
    if pipeline.environment is None:
        return frozenset()
    return frozenset(
        step.declared_table
        for step in pipeline.steps
        if step.name in left_out and _is_unpublished(heads_of(client, step.table))
    )


def reading_production(pipeline: Pipeline, tables: frozenset[Parts] | set[Parts]) -> Pipeline:
    """Return the declaration in which these declared tables stand for themselves, because the environment has none."""
    environment = pipeline.environment
    if environment is None or not tables:
        return pipeline
    own_tables = {declared: actual for declared, actual in environment.tables.items() if declared not in tables}
    return replace(
        pipeline,
        environment=replace(environment, tables=own_tables),
        sources=_sources(environment.production, tables=own_tables),
    )


def actual_reads(pipeline: Pipeline, reads: Mapping[str, frozenset[Parts]]) -> dict[str, frozenset[Parts]]:
    """Return the tables that each step reads, after `reading_production` changed what names stand for."""
    if pipeline.environment is None:
        return dict(reads)
    own_tables = pipeline.environment.tables
    back = {step.table: step.declared_table for step in pipeline.steps if step.declared_table not in own_tables}
    return {name: frozenset(back.get(table, table) for table in tables) for name, tables in reads.items()}


def foreign_tables(pipeline: Pipeline, properties: Mapping[Parts, Mapping[str, object]]) -> Iterator[Problem]:
    """Yield a problem for each existing table that a run would write and that no run of the environment created.

    `properties` has those of the existing tables.
    """
    if pipeline.environment is None:
        return
    for step in pipeline.steps:
        for table in tables_of(pipeline, step):
            if table in properties and properties[table].get(OF_ENVIRONMENT) != pipeline.name:
                yield Problem(
                    f"{step.name}: {display.render(table)} exists, and no run of environment "
                    f"{pipeline.environment.name} of {pipeline.environment.pipeline} created it, so none writes it: "
                    "choose another rule, or rename that table",
                    step.at,
                )


def require_own_outputs(client: Client, pipeline: Pipeline, *, names: frozenset[str]) -> None:
    """Raise InvalidPipeline if a step among `names` would write a table that is not the environment's."""
    if pipeline.environment is None:
        return
    steps = tuple(step for step in pipeline.steps if step.name in names)
    output_properties = {
        table: heads.metadata.get("properties") or {}
        for step in steps
        for table in tables_of(pipeline, step)
        if (heads := heads_of(client, table)) is not None
    }
    if problems := list(foreign_tables(replace(pipeline, steps=steps), output_properties)):
        raise InvalidPipeline(problems)


def rule_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield a problem for each environment with a table that is a table of another step or environment, or that the
    file declares. Side tables count.
    """
    suffixes = {
        step.table: [table[-1].removeprefix(step.table[-1]) for table in tables_of(pipeline, step)]
        for step in pipeline.steps
        if pipeline.environments
    }
    owners = {
        side_table(table, suffix): f"the file declares it (step {'.'.join(table[1:])})"
        for table, each in suffixes.items()
        for suffix in each
    }
    for rule in pipeline.environments:
        if (problem := _first_collision(rule, suffixes, owners=owners)) is not None:
            yield problem


def _first_collision(
    rule: EnvironmentRule, suffixes: Mapping[Parts, list[str]], *, owners: dict[Parts, str]
) -> Problem | None:
    """Add the environment's tables to `owners`. Returns the problem of the first table that has an owner."""
    for declared, each in suffixes.items():
        step = ".".join(declared[1:])
        for suffix in each:
            table = side_table(rule.table(declared), suffix)
            owner = owners.setdefault(table, "")
            if owner:
                return Problem(
                    f"environment {rule.name} would write {display.render(table)} for step {step}, and {owner}: choose "
                    "another catalog or prefix",
                    rule.at,
                )
            owners[table] = f"step {step} writes it in environment {rule.name}"
    return None


def _bind_environment(pipeline: Pipeline, *, rule: EnvironmentRule, tables: Mapping[Parts, Parts]) -> Pipeline:
    name = f"{pipeline.name}.{rule.name}"  # no pipeline of a file has a dot in its name
    if len(name) > NAME_MAX:
        raise BadRequest(
            f"the environment's pipeline would be called '{name}', longer than {NAME_MAX} characters: choose a shorter "
            "name of the environment or the pipeline"
        )
    environment = Environment(name=rule.name, pipeline=pipeline.name, production=pipeline, tables=tables)
    return replace(
        pipeline,
        name=name,
        steps=tuple(_step(step, name=name, tables=tables) for step in pipeline.steps),
        sources=_sources(pipeline, tables=tables),
        environments=(),
        environment=environment,
    )


def _step(step: StepDeclaration, *, name: str, tables: Mapping[Parts, Parts]) -> StepDeclaration:
    return replace(
        step,
        table=tables[step.table],
        declared=step.table,
        properties={**step.properties, OF_ENVIRONMENT: name},
        after=tuple(tables.get(table, table) for table in step.after),
    )


def _sources(production: Pipeline, *, tables: Mapping[Parts, Parts]) -> tuple[DeclaredSource, ...]:
    """Return the sources, of which those that are tables of steps are the environment's tables."""

    def actual(table: Parts) -> Parts:
        return tables.get(table) or tables.get((production.catalog, *table), table)

    def source(one: DeclaredSource) -> DeclaredSource:
        kind = one.kind
        if isinstance(kind, TableSource | RegistrationSource):
            return replace(one, kind=replace(kind, table=actual(kind.table)))
        if isinstance(kind, Stream) and kind.table is not None:
            return replace(one, kind=replace(kind, table=actual(kind.table)))
        return one

    return tuple(source(one) for one in production.sources)


def _is_unpublished(heads: TableHeads | None) -> bool:
    return heads is None or (heads.main is None and any(is_run_branch(name) for name in heads.refs))


def _advice(pipeline: Pipeline, name: str) -> str:
    names = [one.name for one in pipeline.environments]
    if not names:
        example = f"environments: {{{name}: {{prefix: {name}_}}}}"
        return f": the file has no key 'environments'; add {example}, or leave --env out"
    return nearest_word(name, names) or f"; the file has {', '.join(names[:10])}, and prod is what it declares"
