# SPDX-License-Identifier: Apache-2.0
"""`pipeline list | show | runs | cancel | findings | drop`: the server's records of pipelines and runs.

The commands that run pipelines are in `pipeline_checks` and `pipeline_runs`, which register them on `app`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.output import Format, show_done, show_fields, show_rows, visible
from limnos.client.activity.runs import EarlierAttempt, Run, RunFindingInfo, RunStep, sample_lines
from limnos.names import display
from limnos.rooms.pipelines.cli.run_ids import complete_run_id

app = App(name="pipeline")
State = Literal["running", "cancelling", "lost", "held", "failed", "cancelled", "discarded", "published"]
FindingState = Literal["broken", "tolerated", "holds"]
_SEARCHED_MAX: Final = 10_000
"""The number of newest findings among which those of a state are searched."""
Limit = Annotated[int, Parameter(help="Maximum number to show.")]
_STEP_COLUMNS: Final = (
    "name",
    "state",
    "attempt",
    "rows",
    "bytes",
    "started_at",
    "ended_at",
    "phases_s",
    "output",
    "message",
)
_ATTEMPT_COLUMNS: Final = ("earlier_attempt", "state", "started_at", "ended_at", "phases_s", "holder", "message")
_PARTS: Final = ("earlier_attempts", "steps", "findings")
"""The fields of a run that are tables of their own."""
_FINDING_COLUMNS: Final = ("step", "rule", "result", "checked", "at", "run_id", "tolerated", "message")
_RUNNER_OPTIONS = ("digests", "new", "outputs", "pins", "states")
"""Options of a run that only a resumed run, or the selection of changed steps, reads."""


@app.command(name="list")
def list_pipelines(*, common: CommonFlags = DEFAULTS) -> None:
    """List the pipelines that you may use."""
    with common.client() as client:
        rows = [msgspec.structs.asdict(each) for each in client.pipelines.list()]
    for row in rows:
        del row["declaration"]
    columns = ["name", "version", "modified_at", "modified_by", "created_by", "comment"]
    show_rows(rows, columns, output_format=common.output_format, empty="no pipelines")


@app.command
def runs(
    pipeline: str | None = None,
    /,
    *,
    state: Annotated[State | None, Parameter(help="Only runs in this state.")] = None,
    limit: Limit = 20,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List runs, newest first: your own, and all of pipelines that you own.

    Parameters
    ----------
    pipeline
        Only runs of this pipeline.
    """
    with common.client() as client:
        result = client.runs.list(pipeline=pipeline, state=state, limit=limit)
    rows = [_without_parts(run) for run in result]
    columns = ["id", "pipeline", "state", "attempt", "user", "started_at", "ended_at", "message"]
    show_rows(rows, columns, output_format=common.output_format, empty="no runs")


@app.command
def show(run: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show a run: its process, its attempts before a resume, the state of each step, and the findings.

    Parameters
    ----------
    run
        Its id, as `limnos list runs` shows it, or `last`.
    """
    with common.client() as client:
        result = client.runs.load(complete_run_id(client, run))
    if common.output_format == "json":
        show_fields(msgspec.structs.asdict(result), output_format="json")
        return
    show_fields(_table_fields(result), output_format="table")
    _show_attempts(result.earlier_attempts)
    _show_steps(result.steps)
    _show_findings(result.findings, output_format="table")


def _without_parts(run: Run) -> dict[str, object]:
    """Return the fields of a run without its attempts, steps and findings, for a list of runs."""
    return {key: value for key, value in msgspec.structs.asdict(run).items() if key not in _PARTS}


def _table_fields(run: Run) -> dict[str, object]:
    """Return a run's fields for a table, with its options as flags. The runner's own options are in the JSON only."""
    options = {key: value for key, value in run.options.items() if key not in _RUNNER_OPTIONS and value}
    if isinstance(options.get("tables"), list):
        options["tables"] = _tables(run)
    return {**_without_parts(run), "options": options, "phases_s": _phases(run.phases_s)}


def _tables(run: Run) -> list[str]:
    """Return the tables that the steps wrote, including tables such as quarantines."""
    table_names = [
        display.render(tuple(map(str, table)))
        for step in run.steps
        for each in step.outputs
        if isinstance(table := each.get("table"), list)
    ]
    return list(dict.fromkeys([*(step.output for step in run.steps if step.output), *table_names]))


def _phases(seconds: Mapping[str, float]) -> str:
    """Format the seconds by phase: `read 1.20, write 3.45`."""
    return ", ".join(f"{phase} {value:.2f}" for phase, value in seconds.items())


def _show_attempts(attempts: Sequence[EarlierAttempt]) -> None:
    """Print the attempts before the newest one, whose message and times the run's own fields no longer have."""
    if attempts:
        print()
        rows = [
            msgspec.structs.asdict(each) | {"earlier_attempt": each.attempt, "phases_s": _phases(each.phases_s)}
            for each in attempts
        ]
        show_rows(rows, _ATTEMPT_COLUMNS, output_format="table", beside=(*_STEP_COLUMNS, *_FINDING_COLUMNS))


def _show_steps(steps: Sequence[RunStep]) -> None:
    if steps:
        print()
        rows = [msgspec.structs.asdict(step) | {"phases_s": _phases(step.phases_s)} for step in steps]
        show_rows(rows, _STEP_COLUMNS, output_format="table", beside=(*_ATTEMPT_COLUMNS, *_FINDING_COLUMNS))


def _show_findings(findings: Sequence[RunFindingInfo], *, output_format: Format, empty: str = "") -> None:
    rows = [msgspec.structs.asdict(each) | {"result": _result(each), "run_id": each.run} for each in findings]
    if output_format == "json" or empty or rows:
        if output_format == "table" and not empty:
            print()
        if output_format == "json":
            rows = [msgspec.structs.asdict(each) for each in findings]
        else:
            rows = [{**row, "tolerated": _tolerated(each)} for row, each in zip(rows, findings, strict=True)]
        used = [name for name in _FINDING_COLUMNS if name != "run_id" or any(row["run"] for row in rows)]
        step_columns = () if empty else (*_ATTEMPT_COLUMNS, *_STEP_COLUMNS)
        show_rows(rows, used, output_format=output_format, empty=empty, beside=step_columns)
    for each in findings if output_format == "table" else ():
        for row in sample_lines(each.sample) if each.broken else ():
            print(visible(f"{each.step}, {each.rule}: such as {row}"))


def _state_of(finding: RunFindingInfo) -> FindingState:
    """Return whether a rule was broken, and whether its breaks were tolerated, set aside or dropped."""
    if not finding.held:
        return "broken"
    return "tolerated" if finding.broken else "holds"


_KEPT_ASIDE: Final = {"quarantine": "in quarantine", "keep": "kept as malformed", "drop": "dropped"}
"""The effect of each action on rows that break a rule, in words."""


def _tolerated(finding: RunFindingInfo) -> float | str:
    """Return the share of rows that may break a rule; a rule that removes rows and holds may have no limit."""
    return "" if finding.held and finding.action in _KEPT_ASIDE and not finding.tolerated else finding.tolerated


def _result(finding: RunFindingInfo) -> str:
    """Return what a rule has found: `holds`, or the number of rows that break it and what became of them or the run."""
    if finding.held:
        return f"{finding.broken:,} {_KEPT_ASIDE.get(finding.action, 'tolerated')}" if finding.broken else "holds"
    effect = "a warning" if finding.action == "warn" else "the run failed"
    return f"{finding.broken:,} broken, {effect}" if finding.broken else effect


@app.command
def cancel(run: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Cancel a run: its process stops at the next heartbeat.

    Parameters
    ----------
    run
        Its id, as `limnos list runs` shows it, or `last`.
    """
    with common.client() as client:
        result = client.runs.cancel(complete_run_id(client, run))
    requested = f"run {result.id} is being cancelled: its process at {result.holder} stops at its next heartbeat"
    text = requested if result.state == "cancelling" else f"run {result.id} is {result.state}"
    show_done(text, {"id": result.id, "state": result.state}, output_format=common.output_format)


@app.command
def findings(
    pipeline: str,
    /,
    *,
    rule: Annotated[str | None, Parameter(help="Only findings of this rule.")] = None,
    step: Annotated[str | None, Parameter(help="Only findings of this step.")] = None,
    state: Annotated[
        FindingState | None, Parameter(help="Only broken rules, those whose breaks were tolerated, or those that hold.")
    ] = None,
    limit: Limit = 100,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the findings of a pipeline's runs, newest first.

    Parameters
    ----------
    pipeline
        Its name.
    """
    with common.client() as client:
        searched = limit if state is None else max(limit, _SEARCHED_MAX)
        infos = client.pipelines.findings(pipeline, rule=rule, step=step, limit=searched)
    if state is not None:
        if len(infos) == searched:
            print(f"note: only the newest {searched} findings were searched", file=sys.stderr)
        infos = tuple(each for each in infos if _state_of(each) == state)[:limit]
    _show_findings(infos, output_format=common.output_format, empty="no findings")


@app.command
def drop(pipeline: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Drop a pipeline and the records of its runs; its tables stay.

    Parameters
    ----------
    pipeline
        Its name.
    """
    confirm(f"Drop pipeline {pipeline} with its runs?", yes=yes)
    with common.client() as client:
        client.pipelines.drop(pipeline)
    show_done(f"dropped pipeline {pipeline}", {"dropped": pipeline}, output_format=common.output_format)


for _module, _names in {
    "limnos.rooms.pipelines.cli.pipeline_checks": {
        "check": "Check a pipeline's file: keys, queries, order, tables and rights.",
        "plan": "Show what a run of a pipeline would do.",
        "schema": "Print the JSON Schema of a pipeline's file.",
    },
    "limnos.rooms.pipelines.cli.pipeline_pictures": {
        "graph": "Draw the steps, sources and tables of a pipeline.",
        "docs": "Write pages about the tables of a pipeline.",
    },
    "limnos.rooms.pipelines.cli.pipeline_runs": {
        "run": "Run a pipeline, and publish all of its tables or none.",
        "promote": "Publish in production what an environment has built, without computing it again.",
        "resume": "Resume a run that failed, was held, cancelled or killed.",
        "publish": "Publish a run that was held.",
        "discard": "Delete the unpublished results of a run.",
        "diff": "Compare a run's branches with the tables published when it began.",
    },
}.items():
    for _name, _help in _names.items():
        app.command(f"{_module}:{_name}", name=_name, help=_help)
app.command(
    "limnos.rooms.pipelines.cli.new_pipeline:create",
    name="create",
    help="Write the file of a small pipeline, to begin with.",
)
app.command(
    "limnos.rooms.pipelines.cli.pipeline_watch:watch",
    name="watch",
    help="Check a pipeline's file at every save.",
)
app.command(
    "limnos.rooms.pipelines.cli.pipeline_tests:unit_test",
    name="test",
    help="Run the unit tests of a pipeline's steps.",
)
app.command(
    "limnos.rooms.pipelines.cli.schedules:schedule",
    name="schedule",
    help="Let the server run a pipeline at its due times.",
)
app.command(
    "limnos.rooms.pipelines.cli.schedules:calendar",
    name="calendar",
    help="Show the next due times of scheduled pipelines.",
)
app.command(
    "limnos.rooms.pipelines.cli.shipped_pipelines:list_shipped",
    name="shipped",
    help="List or print pipelines that come with Limnos, to copy.",
)
