# SPDX-License-Identifier: Apache-2.0
"""The top-level keys of a file, and the declaration built from them.

Must not know cycles and duplicates among steps, which `graph` finds.
"""

from __future__ import annotations

import dataclasses

from limnos.pipeline import declaration
from limnos.pipeline.compound_schemas import ListOf, MapOf, Record, RecordKey
from limnos.pipeline.declared_values import Parts, SourcePosition
from limnos.pipeline.keys.environments import ENVIRONMENTS
from limnos.pipeline.keys.loops import StepsMap
from limnos.pipeline.keys.parameters import PARAMETER
from limnos.pipeline.keys.schedule import SCHEDULE
from limnos.pipeline.keys.shared import PIPELINE_NAME, TEXT, WORD, pairs
from limnos.pipeline.keys.sources import SOURCE
from limnos.pipeline.keys.steps import STEP, StepDraft
from limnos.pipeline.keys.unit_tests import named_tests
from limnos.pipeline.node_schemas import NodeSite, ProblemNotes, TableName, Values
from limnos.pipeline.problems import nearest_word
from limnos.pipeline.reads import RUN_PARAMETERS
from limnos.pipeline.source_declarations import DeclaredSource, PythonSource, TableSource

SOURCE_PARAMETERS = {"last_days": declaration.ParameterType.INT, "footers": declaration.ParameterType.BOOLEAN}
"""Keys of sources whose value is the name of a parameter, and its type."""
SESSION = "spark"
"""The name of a function's argument that receives the session."""


def build_pipeline(values: Values, site: NodeSite) -> declaration.Pipeline:
    """Build the declaration from the values of the file's keys."""
    parameters = _parameters(values, site.notes)
    _check_source_parameters(values, parameters=parameters, notes=site.notes)
    _check_watched_sources(values, notes=site.notes)
    return declaration.Pipeline(
        name=values["pipeline"],
        catalog=values["catalog"],
        comment=values.get("comment"),
        parameters=parameters,
        sources=tuple(
            DeclaredSource(name=name, kind=kind, comment=comment, at=at)
            for name, (kind, comment), at in values.get("sources", ())
        ),
        steps=_steps(values, parameters=parameters, notes=site.notes),
        python_files=_python_files(values, site),
        environments=tuple(
            dataclasses.replace(rule, name=name, at=at) for name, rule, at in values.get("environments", ())
        ),
        schedule=values.get("schedule"),
        loops=tuple(site.notes.query_loops),
        at=site.at,
    )


def _parameters(values: Values, notes: ProblemNotes) -> tuple[declaration.Parameter, ...]:
    result = values.get("parameters", ())
    for name, _, at in result:
        if name in RUN_PARAMETERS:
            notes.add(f"every run has '{name}' already: choose another name", at)
    return tuple(dataclasses.replace(parameter, name=name, at=at) for name, parameter, at in result)


def _check_source_parameters(
    values: Values, *, parameters: tuple[declaration.Parameter, ...], notes: ProblemNotes
) -> None:
    """Check that the parameters that sources name are declared, with the type that the source needs."""
    types = {one.name: one.type for one in parameters}
    for _, (kind, _), at in values.get("sources", ()):
        for key, needed in SOURCE_PARAMETERS.items():
            name = getattr(kind, key, None)
            if name is None:
                continue
            if name not in types:
                words = (
                    f"'{key}' names a parameter, and there is no parameter '{name}'{nearest_word(name, list(types))}"
                )
                notes.add(f"{words}: add it, as parameters: {{{name}: {needed.value}}}", at)
            elif types[name] is not needed:
                notes.add(f"'{key}' needs a parameter of type {needed.value}, and '{name}' is {types[name].value}", at)


def _check_watched_sources(values: Values, *, notes: ProblemNotes) -> None:
    """Check that a pipeline that runs when its inputs have changed reads tables only, whose changes the server sees."""
    schedule = values.get("schedule")
    if schedule is None or not schedule.if_changed:
        return
    for name, (kind, _), at in values.get("sources", ()):
        if not isinstance(kind, TableSource):
            notes.add(
                f"source '{name}' is no table, and the schedule has 'if_changed': the server sees changes of tables"
                " only; leave 'if_changed' out",
                at,
            )


def _steps(
    values: Values, *, parameters: tuple[declaration.Parameter, ...], notes: ProblemNotes
) -> tuple[declaration.StepDeclaration, ...]:
    names = frozenset((*(one.name for one in parameters), *RUN_PARAMETERS, SESSION))
    catalogs = {parts: draft.values.get("catalog", values["catalog"]) for parts, draft, _ in values["steps"]}
    return tuple(
        _build_step(
            _with_inputs(draft, names, at=at, notes=notes),
            parts,
            at=at,
            catalog=values["catalog"],
            catalogs=catalogs,
            notes=notes,
        )
        for parts, draft, at in values["steps"]
    )


def _with_inputs(draft: StepDraft, entries: frozenset[str], *, at: SourcePosition, notes: ProblemNotes) -> StepDraft:
    """Derive a function's inputs from its arguments, or compare declared inputs with the arguments."""
    body = draft.body
    if not isinstance(body, declaration.PythonStep) or draft.arguments is None:
        return draft
    names = [one.name for one in draft.arguments]
    if "inputs" not in draft.values:
        inputs = {one.name: one.name for one in draft.arguments if one.required and one.name not in entries}
        return dataclasses.replace(draft, body=dataclasses.replace(body, inputs=inputs))
    for name in body.inputs:
        if name not in names:
            notes.add(f"{body.function} has no argument '{name}'{nearest_word(name, names)}", at)
    for one in draft.arguments:
        if one.required and one.name not in body.inputs and one.name not in entries:
            notes.add(f"{body.function} needs '{one.name}', and 'inputs' has no value for it", at)
    return draft


def _build_step(
    draft: StepDraft,
    parts: Parts,
    *,
    at: SourcePosition,
    catalog: str,
    catalogs: dict[Parts, str],
    notes: ProblemNotes,
) -> declaration.StepDeclaration:
    """Build a step. `catalog` is the pipeline's catalog, `catalogs` that of each step."""
    values = draft.values
    own_catalog = catalogs[parts]
    if parts[0] == own_catalog and len(parts) > 2:
        notes.add(f"leave the catalog out: write {'.'.join(parts[1:])}", at)
    same = {name: values[name] for name in ("write", "incremental", "partition", "sort", "comment") if name in values}
    return declaration.StepDeclaration(
        table=(own_catalog, *parts),
        body=draft.body,
        properties=dict(pairs(values.get("properties", ()))),
        vectors=dict(pairs(values.get("vectors", ()))),
        indexes=values.get("indexes", ()),
        embed=values.get("embed"),
        columns=tuple(dataclasses.replace(column, name=name) for name, column, _ in values.get("columns", ())),
        allowed=values.get("allow", declaration.AllowedChanges()),
        expectations=values.get("expect", ()),
        tags=values.get("tags", ()),
        tests=named_tests(values.get("tests", ())),
        after=tuple((catalogs.get(name, catalog), *name) for name in values.get("after", ())),
        at=at,
        **same,
    )


def _python_files(values: Values, site: NodeSite) -> tuple[str, ...]:
    """Return the files to ship to executors: the listed files, and the files of the pipeline's functions."""
    results: dict[str, None] = {}
    for written_path in values.get("python_files", ()):
        try:
            site.beside.inside(written_path)
        except ValueError as error:
            site.add(str(error))
        results[written_path] = None
    bodies = [draft.body for _, draft, _ in values["steps"]] + [kind for _, (kind, _), _ in values.get("sources", ())]
    functions = [body.function for body in bodies if isinstance(body, (declaration.PythonStep, PythonSource))]
    for _, draft, _ in values["steps"]:
        if (embed := draft.values.get("embed")) is not None:
            functions += [embed.function] if embed.model is None else [embed.function, embed.model]
    for function in functions:
        shipped = site.beside.shipped_path(function.partition(":")[0])
        results.update({shipped: None} if shipped else {})
    return tuple(results)


FILE = Record(
    name="the file",
    keys={
        "pipeline": RecordKey(
            value_schema=PIPELINE_NAME, description="Name of the pipeline.", example="pipeline: flights", required=True
        ),
        "catalog": RecordKey(
            value_schema=WORD,
            description=(
                "The catalog of the steps' tables. A step may name another one of the metalake; one commit publishes"
                " all."
            ),
            example="catalog: main",
            required=True,
        ),
        "comment": RecordKey(
            value_schema=TEXT, description="Purpose of the pipeline.", example="comment: Delays by carrier and day."
        ),
        "parameters": RecordKey(
            value_schema=MapOf(WORD, PARAMETER),
            description="Values for each run; SQL refers to them as `:name`.",
            example="parameters: {day: date}",
        ),
        "sources": RecordKey(
            value_schema=MapOf(WORD, SOURCE),
            description="Inputs other than tables, by names of one part.",
            example="sources: {flights: data/flights.csv}",
        ),
        "steps": RecordKey(
            value_schema=StepsMap(TableName(word="a table's name"), STEP),
            description="The step of each table, by the table's name below the catalog.",
            example="steps: {curated.nyc.delays: {sql: SELECT 1}}",
            required=True,
        ),
        "python_files": RecordKey(
            value_schema=ListOf(TEXT),
            description="Further Python files and packages that are sent to executors.",
            example="python_files: [units.py]",
        ),
        "environments": RecordKey(
            value_schema=ENVIRONMENTS,
            description="The names of the tables that `--env NAME` writes instead: a catalog, a prefix, or both.",
            example="environments: {dev: {prefix: dev_}}",
        ),
        "schedule": RecordKey(
            value_schema=SCHEDULE,
            description="When a server runs the pipeline, after `limnos pipeline schedule FILE`.",
            example='schedule: {cron: "0 6 * * *", time_zone: Europe/Paris}',
        ),
    },
    build=build_pipeline,
)
"""The schema of the whole file."""
