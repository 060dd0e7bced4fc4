# SPDX-License-Identifier: Apache-2.0
"""`pipeline check | plan | schema`: checks of a pipeline's file, and the plan of a run.

None of the commands writes anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, RUN_S, CommonFlags
from limnos.cli.extras import import_extra
from limnos.cli.failures import ExitCode, UsageError
from limnos.cli.output import Format, to_json, visible
from limnos.client.errors import UnavailableError
from limnos.names import display
from limnos.rooms.pipelines.cli.helper.client import HelperFlag, HelperWish, answer
from limnos.rooms.pipelines.cli.pipeline_runs import (
    LOCAL,
    ConnectFlag,
    EnvironmentFlag,
    ExcludeFlag,
    MasterFlag,
    SelectFlag,
)

if TYPE_CHECKING:
    from limnos.pipeline.checks import CheckResult
    from limnos.pipeline.declaration import Pipeline
    from limnos.pipeline.engine.preview import StepPreview
    from limnos.pipeline.plan import StepPlan
    from limnos.pipeline.problems import Problem
    from limnos.pipeline.topic_offsets import TopicLookup

OfflineFlag = Annotated[bool, Parameter(negative="", help="Without a server: check names and queries only.")]


def check(
    file: Path,
    /,
    *,
    env: EnvironmentFlag = None,
    offline: OfflineFlag = False,
    helper: HelperFlag = None,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Check a pipeline's file: keys, queries with Spark's grammar, order of steps; with a server tables and rights.

    Nothing is run or written. Skipped checks are listed, for example if Spark is not installed or no server answers.

    Parameters
    ----------
    file
        The pipeline, a file that ends in .yaml or .py.
    """
    exit_code = answer(HelperWish(flag=helper), common=common)
    if exit_code is not None:
        return exit_code
    pipeline = check_file(file, environment=env, offline=offline, common=common)
    return _show_check(file, pipeline, planned=False, output_format=common.output_format)


def plan(
    file: Path,
    /,
    *,
    env: EnvironmentFlag = None,
    no_columns: Annotated[
        bool, Parameter(negative="", help="Start no Spark, and show no changes of tables' columns.")
    ] = False,
    select: SelectFlag = None,
    exclude: ExcludeFlag = None,
    master: MasterFlag = LOCAL,
    connect: ConnectFlag = None,
    helper: HelperFlag = None,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Show what a run of a pipeline would do: the order, inputs with reasons, missing rights, and changes of tables.

    Spark analyzes the queries for changes of tables. Queries of loops are run, and no query of a step; nothing is
    written. Python steps are called with empty DataFrames.

    Parameters
    ----------
    file
        The pipeline, a file that ends in .yaml or .py.
    """
    exit_code = answer(HelperWish(flag=helper), common=common, master=connect or master)
    if exit_code is not None:
        return exit_code
    pipeline = check_file(file, environment=env, offline=False, common=common)
    reasons: dict[str, str] = {}
    select_steps = partial(_select_steps, select=select, exclude=exclude, common=common, reasons=reasons)
    has_loops = not isinstance(pipeline, tuple) and pipeline.loops is not None
    selected = None if has_loops else select_steps(pipeline)
    previews: Mapping[str, StepPreview] = {}
    topics: Mapping[str, TopicLookup | str] = {}
    if not no_columns and not isinstance(pipeline, tuple) and _can_compare_columns(pipeline):
        pipeline, previews, topics = _previews(file, pipeline, master=master, connect=connect, common=common)
    if has_loops:  # the names of all steps are known now
        selected = select_steps(pipeline)
    if selected is not None:
        previews = {name: one for name, one in previews.items() if name in selected}
    return _show_check(
        file,
        pipeline,
        planned=True,
        output_format=common.output_format,
        previews=previews,
        topics=topics,
        selected=selected,
        reasons=reasons,
    )


def schema() -> None:
    """Print the JSON Schema of a pipeline's file. Editors use it to complete keys and mark errors."""
    print(import_extra("limnos.pipeline.file", extra="pipelines").schema_text(), end="")


def check_file(
    file: Path, *, environment: str | None, offline: bool, common: CommonFlags, with_columns: bool = False
) -> CheckResult | tuple[Problem, ...]:
    """Return the check's result, or the problems of a file that is not a valid declaration.

    Of an invalid file the readable steps are checked too, so that one check reports all mistakes. `with_columns` also
    returns all columns with their origins.
    """
    problems = import_extra("limnos.pipeline.problems", extra="pipelines")
    try:
        declaration: Pipeline = import_extra("limnos.pipeline.file", extra="pipelines").load(file)
    except problems.InvalidPipeline as error:
        return _check_readable(file, error.problems, offline=offline, common=common)
    try:
        declaration = import_extra("limnos.pipeline.environments", extra="pipelines").in_environment(
            declaration, environment
        )
    except problems.InvalidPipeline as error:
        every: tuple[Problem, ...] = error.problems
        return every
    check_result = _check_declaration(declaration, offline=offline, common=common, with_columns=with_columns)
    if offline:
        return check_result
    return replace(
        check_result, unchecked=(*check_result.unchecked, *_missing_files(declaration, file.parent.absolute()))
    )


def _check_readable(
    file: Path, problems: tuple[Problem, ...], *, offline: bool, common: CommonFlags
) -> tuple[Problem, ...]:
    """Return the problems of an invalid file: those of its keys, and those of its readable entries."""
    rules = import_extra("limnos.pipeline.problems", extra="pipelines")
    readable = import_extra("limnos.pipeline.file", extra="pipelines").load_readable(file)
    if readable is None:
        return problems
    check_result = _check_declaration(readable.pipeline, offline=offline, common=common, unreadable=readable.unreadable)
    every: tuple[Problem, ...] = rules.InvalidPipeline(
        dict.fromkeys([*problems, *readable.problems, *check_result.problems])
    ).problems
    return every


def _check_declaration(
    declaration: Pipeline,
    *,
    offline: bool,
    common: CommonFlags,
    unreadable: frozenset[tuple[str, ...]] = frozenset(),
    with_columns: bool = False,
) -> CheckResult:
    rules = import_extra("limnos.pipeline.checks", extra="pipelines")
    check_rules: Callable[..., CheckResult] = partial(
        rules.check, declaration, unreadable=unreadable, with_columns=with_columns
    )
    if offline:
        return check_rules()
    try:
        with common.client() as client:
            return check_rules(client=client)
    except UnavailableError as error:
        if error.sent:
            raise
        return check_rules(unasked=error.message)


def _select_steps(
    result: CheckResult | tuple[Problem, ...],
    *,
    select: list[str] | None,
    exclude: list[str] | None,
    common: CommonFlags,
    reasons: dict[str, str],
) -> frozenset[str] | None:
    """Return the names of the selected steps; None for all of them. Raises BadRequest for an invalid selection.

    A selection by state adds the changed steps to `reasons`, with what has changed.
    """
    if isinstance(result, tuple) or not (select or exclude):
        return None
    rules = import_extra("limnos.pipeline.run.options", extra="spark")
    options = rules.RunOptions(select=tuple(select or ()), exclude=tuple(exclude or ()))
    rules.require_known_steps(result.pipeline, options)
    if result.reads is None or not result.levels:
        raise UsageError("steps cannot be selected before the problems are solved", hint="run 'limnos pipeline check'")
    reads = {name: one.tables for name, one in result.reads.items()}
    needs = import_extra("limnos.pipeline.run.attempt", extra="spark").needs_of(result.pipeline, reads)
    compare = import_extra("limnos.pipeline.modified_steps", extra="pipelines").modified_steps
    with common.client() as client:

        def find_modified() -> dict[str, str]:
            reasons.update(compare(client, result.pipeline, reads=reads))
            return reasons

        names: tuple[str, ...] = rules.select_steps(result.pipeline, options, needs=needs, modified=find_modified)
    return frozenset(names)


def _missing_files(declaration: Pipeline, directory: Path) -> Iterator[str]:
    """Return notes on sources without files.

    They are not problems: files may arrive before the run, or be elsewhere.
    """
    files = import_extra("limnos.pipeline.source_declarations", extra="pipelines").Files
    is_missing = import_extra("limnos.pipeline.directory", extra="pipelines").files_are_missing
    for source in declaration.sources:
        if isinstance(source.kind, files) and is_missing(source.kind.path, directory=directory):
            yield f"source {source.name}: there is no file {source.kind.path} in {directory}; a run without it fails"


def _can_compare_columns(result: CheckResult) -> bool:
    """Return whether the steps' columns can be compared with the existing tables: a server answered, and the check
    found no problems.
    """
    return result.holds and result.table_lookups is not None


def _previews(
    file: Path, result: CheckResult, *, master: str, connect: str | None, common: CommonFlags
) -> tuple[CheckResult, Mapping[str, StepPreview], Mapping[str, TopicLookup | str]]:
    """Start Spark with the server's catalogs, and return the expected changes of each step's table, and the present
    offsets of topics. The result has the steps of loops over queries, whose rows are read.
    """
    launch = import_extra("limnos.pipeline.engine.launch", extra="spark")
    engine = import_extra("limnos.pipeline.engine.preview", extra="spark")
    sources = import_extra("limnos.pipeline.engine.sources", extra="spark")
    token, user = common.credential(os.environ, lifetime_s=RUN_S)
    connection = launch.ServerConnection(
        uri=common.server_url, metalake=common.metalake, token=token, user=user, ca_file=common.ca_path
    )
    bound = import_extra("limnos.pipeline.python", extra="pipelines").bind_functions
    with launch.spark_for(connection, master=master, connect=connect) as spark:
        if result.loops is not None:
            read_rows = import_extra("limnos.pipeline.run.loop_rows", extra="spark").check_with_rows
            with common.client() as client:
                result = read_rows(result, spark, client=client)
            if not result.holds:
                return result, {}, {}
        pipeline = bound(result.pipeline, file.parent.absolute())
        previews: Mapping[str, StepPreview] = engine.preview(
            spark, pipeline, levels=result.levels, catalogs=result.catalogs, lance_catalogs=result.lance_catalogs
        )
        topics: Mapping[str, TopicLookup | str] = sources.look_up_topics(
            spark, pipeline.sources, directory=file.parent.absolute()
        )
    return result, result.without_stand_ins(previews), topics


def _show_check(
    file: Path,
    result: CheckResult | tuple[Problem, ...],
    *,
    planned: bool,
    output_format: Format,
    previews: Mapping[str, StepPreview] | None = None,
    topics: Mapping[str, TopicLookup | str] | None = None,
    selected: frozenset[str] | None = None,
    reasons: Mapping[str, str] | None = None,
) -> int:
    previews, reasons = previews or {}, reasons or {}
    if isinstance(result, tuple):
        document = _document(file, result, planned=())
        lines = list(_problem_lines(result))
    else:
        steps: tuple[StepPlan, ...] = import_extra("limnos.pipeline.plan", extra="pipelines").plan(
            result, selected=selected, topics=topics
        )
        document = _document(file, result.problems, planned=steps, previews=previews) | _check_fields(result)
        if planned:
            document["changed"] = {name: why for name, why in reasons.items() if name in (selected or ())}
        lines = [
            *_lines(result, steps, planned=planned, previews=previews, reasons=reasons),
            *([_nothing_selected(reasons)] if selected is not None and not selected else []),
            *_problem_lines(result.problems),
            *_last_lines(result, refused=sum(one.refused is not None for one in previews.values())),
        ]
    print(to_json(document) if output_format == "json" else visible("\n".join(lines)))
    problems = result if isinstance(result, tuple) else result.problems
    if problems or any(one.refused is not None for one in previews.values()):
        return ExitCode.USAGE
    return ExitCode.DENIED if not isinstance(result, tuple) and result.missing else ExitCode.OK


def _document(
    file: Path,
    problems: tuple[Problem, ...],
    *,
    planned: tuple[StepPlan, ...],
    previews: Mapping[str, StepPreview] | None = None,
) -> dict[str, object]:
    previews = previews or {}
    return {
        "file": str(file),
        "problems": [{"message": one.message, **(one.at._asdict() if one.at is not None else {})} for one in problems],
        "steps": [_step_document(one) | _preview_document(previews.get(one.step.name)) for one in planned],
    }


def _step_document(one: StepPlan) -> dict[str, object]:
    return {
        "name": one.step.name,
        "level": one.level + 1,
        "write": one.step.write.mode.value,
        "new": one.is_new,
        "format": "lance" if one.is_lance else "iceberg",
        "reads": [
            {"name": each.name, "kind": each.kind, "snapshot": each.snapshot, "why": each.why} for each in one.reads
        ],
        "aside": [display.render(table) for table in one.aside],
    }


def _preview_document(one: StepPreview | None) -> dict[str, object]:
    if one is None:
        return {}
    return {
        "statements": list(one.statements),
        "drops": list(one.drops),
        "refused": one.refused,
        "unknown": one.unknown,
        **({} if one.at is None else one.at._asdict()),
    }


def _check_fields(result: CheckResult) -> dict[str, object]:
    return {
        "pipeline": result.pipeline.name,
        "catalog": result.pipeline.catalog,
        "holds": result.holds,
        "unchecked": list(result.unchecked),
        "missing": [
            {"on": display.render(one.table), "needed_for": one.needed_for, "grants": list(one.grants)}
            for one in result.missing
        ],
    }


def _nothing_selected(reasons: Mapping[str, str]) -> str:
    """Return why a selection by state has no step. `reasons` has the changed steps."""
    if reasons:
        return f"no changed step is selected (changed: {', '.join(reasons)}): a run would do nothing"
    return "no step has changed since it was published: a run would do nothing"


def _lines(
    result: CheckResult,
    steps: tuple[StepPlan, ...],
    *,
    planned: bool,
    previews: Mapping[str, StepPreview],
    reasons: Mapping[str, str],
) -> Iterator[str]:
    levels = f" in {len(result.levels)} levels" if len(result.levels) > 1 and result.reads is not None else ""
    many = "1 step" if len(result.pipeline.steps) == 1 else f"{len(result.pipeline.steps)} steps"
    is_environment = result.pipeline.environment is not None
    catalogs = (
        dict.fromkeys(step.table[0] for step in result.pipeline.steps) if is_environment else [result.pipeline.catalog]
    )
    yield f"pipeline {result.pipeline.name}: {many}{levels}, tables in catalog {', '.join(catalogs)}"
    for one in steps if planned else ():
        kind = "Lance table" if one.is_lance else "table"
        new = f", a new {kind}" if one.is_new else f", a {kind}" if one.is_lance else ""
        yield f"{one.level + 1}. {one.step.name} ({one.step.write.mode.value}{new})"
        if one.step.name in reasons:
            yield f"     changed: {reasons[one.step.name]}"
        for each in one.reads:
            at = f" at {each.snapshot}" if each.snapshot is not None else ""
            kind = "" if each.kind == "unknown" else f"{each.kind} "
            yield f"     reads {kind}{each.name}{at}: {each.why}"
        yield from (f"     keeps rows that it leaves out in {display.render(table)}" for table in one.aside)
        if one.step.name in previews:
            yield from _preview_lines(previews[one.step.name])


def _preview_lines(one: StepPreview) -> Iterator[str]:
    if one.refused is not None:
        yield f"     is refused: {one.refusal}"
    if one.unknown is not None:
        yield f"     columns are not known before it runs: {one.unknown}"
    yield from (f"     first: {statement}" for statement in one.statements)
    yield from (f"     when it is published: column {column} is dropped" for column in one.drops)


def _problem_lines(problems: tuple[Problem, ...]) -> Iterator[str]:
    yield from (str(one) for one in problems)
    if problems:
        yield f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"


def _last_lines(result: CheckResult, *, refused: int) -> Iterator[str]:
    yield from (f"not checked: {one}" for one in result.unchecked)
    for one in result.missing:
        yield f"you may not {one.needed_for} {display.render(one.table) or 'the metalake'}"
    if result.missing:
        more = "; what is not checked yet may need more" if result.unchecked else ""
        yield f"grants that a run needs (ROLE: a role that you hold{more}):"
        yield from dict.fromkeys(f"  {line}" for one in result.missing for line in one.grants)
    if refused:
        yield f"{refused} step{'s are' if refused > 1 else ' is'} refused"
    elif result.holds:
        yield "no problems found" + (" as far as was checked" if result.unchecked else "")
