# SPDX-License-Identifier: Apache-2.0
"""`pipeline run | promote | resume | publish | discard | diff`: runs of pipelines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from limnos.cli.common import DEFAULTS, RUN_S, CommonFlags, YesFlag, confirm
from limnos.cli.extras import import_extra
from limnos.cli.failures import ExitCode, StoppedError, UsageError
from limnos.cli.operation.short_ids import is_short
from limnos.cli.operation.spark_conf import spark_conf
from limnos.cli.output import show_done, show_rows, visible
from limnos.client.errors import ArgumentError, ClientError
from limnos.rooms.pipelines.cli.helper.client import HelperFlag, HelperWish, answer
from limnos.rooms.pipelines.cli.run_ids import LAST, complete_run_id

if TYPE_CHECKING:
    from limnos.pipeline.run.backfill import BackfillResult
    from limnos.pipeline.run.dry_run import DryRun, StepIntent
    from limnos.pipeline.run.events import Listener
    from limnos.pipeline.run.result import RunResult

SPARK = Group("Spark", sort_key=90)
MasterFlag = Annotated[
    str, Parameter(group=SPARK, env_var="LIMNOS_SPARK_MASTER", help="Spark master: local[4], spark://host:7077, yarn.")
]
ConnectFlag = Annotated[
    str | None,
    Parameter(group=SPARK, env_var="LIMNOS_SPARK_CONNECT", help="Spark Connect server, sc://host:15002."),
]
ConfFlag = Annotated[
    list[str] | None,
    Parameter(group=SPARK, negative="", help="KEY=VALUE for Spark; may be repeated."),
]
AtOnceFlag = Annotated[
    int | None,
    Parameter(group=SPARK, help="Maximum number of concurrent steps; by default 4, on few local cores fewer."),
]
Lease = Annotated[int, Parameter(help="Seconds after the last heartbeat when the run can be resumed elsewhere.")]
Param = Annotated[list[str] | None, Parameter(negative="", help="NAME=VALUE of a parameter; may be repeated.")]
OnlyFlag = Annotated[list[str] | None, Parameter(negative="", help="Run only this step; may be repeated.")]
SinceFlag = Annotated[
    list[str] | None,
    Parameter(name="--from", negative="", help="Run this step and all steps that depend on it; may be repeated."),
]
SelectFlag = Annotated[
    list[str] | None,
    Parameter(negative="", help="Steps to take: NAME, raw.*, +NAME, NAME+, tag:T, source:S, state:modified."),
]
ExcludeFlag = Annotated[list[str] | None, Parameter(negative="", help="Steps to leave out, written as for --select.")]
EnvironmentFlag = Annotated[
    str | None, Parameter(help="Environment of the file whose tables are written and read; production if left out.")
]
Backfill = Annotated[
    str | None,
    Parameter(help="NAME=FIRST..LAST[/STEP]: a run for each day or number in the range, in order, until one fails."),
]
DryRunFlag = Annotated[bool, Parameter(negative="", help="Show what would be read and written, without running it.")]
LOCAL = "local[*]"


def run(
    file: Path,
    /,
    *,
    env: EnvironmentFlag = None,
    param: Param = None,
    only: OnlyFlag = None,
    since: SinceFlag = None,
    select: SelectFlag = None,
    exclude: ExcludeFlag = None,
    full: Annotated[bool, Parameter(negative="", help="Incremental steps read their whole sources.")] = False,
    backfill: Backfill = None,
    dry_run: DryRunFlag = False,
    hold: Annotated[bool, Parameter(negative="", help="Don't publish: `pipeline publish RUN` does it later.")] = False,
    due: Annotated[
        str | None, Parameter(help="Due time of the run, stored with it; the server's schedules set it.")
    ] = None,
    wait: Annotated[float, Parameter(help="Maximum wait for another run of the pipeline to end, in seconds.")] = 0,
    away: Annotated[float, Parameter(help="Maximum wait for an unreachable server, in seconds.")] = 600,
    lease: Lease = 30,
    at_once: AtOnceFlag = None,
    master: MasterFlag = LOCAL,
    connect: ConnectFlag = None,
    conf: ConfFlag = None,
    helper: HelperFlag = None,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Run a pipeline: each step on a branch of its table, then publish all tables by one atomic commit.

    Exit codes: 0 published (or held), 4 a right is missing, 5 conflict with another run or writer, 6 the server was
    unreachable for too long, 10 an expectation was broken, 11 a step failed, 12 cancelled, 13 another process has
    resumed the run, 130 interrupted.

    Parameters
    ----------
    file
        The pipeline's file, YAML or Python, or shipped:NAME.
    """
    if backfill is not None and (hold or dry_run):
        raise UsageError("--backfill publishes one run before the next begins", hint="leave --hold and --dry-run out")
    if helper and conf:
        raise UsageError("--helper uses a Spark that has its settings already", hint="leave --conf or --helper out")
    wish = HelperWish(flag=False if conf else helper, default="never", is_live=True)
    exit_code = answer(wish, common=common, master=connect or master)
    if exit_code is not None:
        return exit_code
    options = import_extra("limnos.pipeline.run.options", extra="spark").RunOptions(
        only=tuple(only or ()),
        since=tuple(since or ()),
        select=tuple(select or ()),
        exclude=tuple(exclude or ()),
        full=full,
        hold=hold,
        due=due,
        wait_s=wait,
        away_s=away,
        lease_s=lease,
        at_once=at_once,
    )
    if due is not None:
        pipeline = import_extra("limnos.pipeline.file", extra="pipelines").load(file)
        import_extra("limnos.pipeline.scheduled_files", extra="pipelines").require_no_repeated_files(
            pipeline, file.parent
        )
    command = _command()
    request = {
        "connection": _connection(common),
        "spark": command.SparkOptions(master=master, connect=connect, config=spark_conf(conf)),
        "parameters": _pairs(param),
        "options": options,
        "environment": env,
    }
    if backfill is not None:
        backfill_result: BackfillResult = command.backfill(file, over=backfill, listener=_listener(common), **request)
        return _report_backfill(backfill_result)
    return _perform(file, request, dry_run=dry_run, common=common)


def promote(
    file: Path,
    /,
    *,
    env: Annotated[str, Parameter(help="Environment whose published tables are taken to production.")],
    param: Param = None,
    select: SelectFlag = None,
    exclude: ExcludeFlag = None,
    dry_run: DryRunFlag = False,
    hold: Annotated[bool, Parameter(negative="", help="Don't publish: `pipeline publish RUN` does it later.")] = False,
    wait: Annotated[float, Parameter(help="Maximum wait for another run of the pipeline to end, in seconds.")] = 0,
    away: Annotated[float, Parameter(help="Maximum wait for an unreachable server, in seconds.")] = 600,
    lease: Lease = 30,
    at_once: AtOnceFlag = None,
    master: MasterFlag = LOCAL,
    connect: ConnectFlag = None,
    conf: ConfFlag = None,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Publish in production what an environment has published since, by one atomic commit.

    The rows of a step are copied from the environment's table if its definition and all of its inputs are the same in
    production; other steps are computed, and the reason is printed. Exit codes are those of `pipeline run`.

    Parameters
    ----------
    file
        The pipeline's file, YAML or Python.
    """
    options = import_extra("limnos.pipeline.run.options", extra="spark").RunOptions(
        promotes=env,
        select=tuple(select or ()),
        exclude=tuple(exclude or ()),
        hold=hold,
        wait_s=wait,
        away_s=away,
        lease_s=lease,
        at_once=at_once,
    )
    command = _command()
    request = {
        "connection": _connection(common),
        "spark": command.SparkOptions(master=master, connect=connect, config=spark_conf(conf)),
        "parameters": _pairs(param),
        "options": options,
    }
    return _perform(file, request, dry_run=dry_run, common=common)


def _perform(file: Path, request: Mapping[str, object], *, dry_run: bool, common: CommonFlags) -> int:
    """Run a pipeline's file, or print what each of its steps would read and write. Returns the exit code."""
    command = _command()
    if dry_run:
        return _show_dry_run(command.dry_run(file, **request), common=common)
    run_result: RunResult = command.run_file(file, listener=_listener(common), **request)
    return run_result.exit_code


def _show_dry_run(planned: DryRun, *, common: CommonFlags) -> int:
    """Print what a run would do, or why it would not begin. Returns the exit code, which is that of `pipeline plan`."""
    if (ended := planned.ended) is not None:
        text = f"nothing would be run: {ended.message}" if ended.why.value == "done" else f"refused: {ended.message}"
        show_done(text, _fields(ended), output_format=common.output_format)
        return ended.exit_code
    refused_count = sum(each.refused is not None for each in planned.steps)
    if common.output_format == "table":
        lines = [line for each in planned.steps for line in _intent_lines(each)]
        lines += [f"{refused_count} step{'s are' if refused_count > 1 else ' is'} refused"] if refused_count else []
        print(visible("\n".join(lines)))
    else:
        columns = ["step", "after", "reads", "writes", "refused"]
        show_rows([asdict(each) for each in planned.steps], columns, output_format=common.output_format)
    return ExitCode.USAGE if refused_count else ExitCode.OK


def _intent_lines(intent: StepIntent) -> Iterator[str]:
    """Return the actions of a step as lines, like those of a plan."""
    yield f"{intent.step}{' after ' if intent.after else ''}{', '.join(intent.after)}"
    yield from (f"     reads {each}" for each in intent.reads)
    yield f"     writes {intent.writes}"
    if intent.refused is not None:
        yield f"     is refused: {intent.refused}"


def _report_backfill(result: BackfillResult) -> int:
    """Print how to continue an incomplete backfill to standard error. Returns the exit code."""
    if result.left is not None:
        print(visible(f"{result.done} runs were published; --backfill {result.left} continues"), file=sys.stderr)
    return result.ended.exit_code


def resume(
    run_id: str,
    file: Path | None = None,
    /,
    *,
    away: Annotated[float, Parameter(help="Maximum wait for an unreachable server, in seconds.")] = 600,
    lease: Lease = 30,
    at_once: AtOnceFlag = None,
    master: MasterFlag = LOCAL,
    connect: ConnectFlag = None,
    conf: ConfFlag = None,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Resume a failed, held, cancelled or killed run: finished steps are reused, changed steps run again.

    A cancelled run is resumed by its id, and not by `last`: its user may have wanted it to end.

    Parameters
    ----------
    run_id
        The run, as `limnos list runs` shows it, or `last`.
    file
        The pipeline's file, if it differs from the file with which the run was started.
    """
    options = import_extra("limnos.pipeline.run.options", extra="spark").RunOptions(
        away_s=away, lease_s=lease, at_once=at_once
    )
    command = _command()
    run_result: RunResult = command.resume_run(
        _resumable_id(common, run_id),
        file=file,
        connection=_connection(common),
        spark=command.SparkOptions(master=master, connect=connect, config=spark_conf(conf)),
        options=options,
        listener=_listener(common),
    )
    return run_result.exit_code


def publish(run_id: str, /, *, common: CommonFlags = DEFAULTS) -> int:
    """Publish a held run: all tables by one atomic commit, if no other writer has changed them.

    Parameters
    ----------
    run_id
        The run, as `limnos list runs` shows it, or `last`.
    """
    over = import_extra("limnos.pipeline.run.held_runs", extra="spark")
    with common.client() as client:
        run_result: RunResult = over.publish_held(client, complete_run_id(client, run_id))
    return _show_result(run_result, common)


def discard(run_id: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> int:
    """Discard an unpublished run: drop its branches, and the tables that it created and no other client wrote.

    Parameters
    ----------
    run_id
        The run, as `limnos list runs` shows it, or `last`.
    """
    run_id = _complete_id(common, run_id)
    confirm(f"Discard run {run_id}?", yes=yes)
    over = import_extra("limnos.pipeline.run.held_runs", extra="spark")
    with common.client() as client:
        ended, left = over.discard(client, run_id)
    result = {**_fields(ended), "branches": list(left.branches), "tables": list(left.tables)}
    show_done(
        f"discarded run {run_id}: {len(left.branches)} branches, {len(left.tables)} tables",
        result,
        output_format=common.output_format,
    )
    return 0


def diff(
    run_id: str,
    /,
    *,
    rows: Annotated[int, Parameter(help="Maximum number of differing rows to show, per table.")] = 0,
    master: MasterFlag = LOCAL,
    connect: ConnectFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Compare a run's branches with the tables' states when it began: rows added, removed and changed.

    Parameters
    ----------
    run_id
        The run, as `limnos list runs` shows it, or `last`.
    """
    command = _command()
    result = command.diff_run(
        _complete_id(common, run_id),
        connection=_connection(common),
        spark=command.SparkOptions(master=master, connect=connect),
        rows=rows,
    )
    columns = ["table", "added", "removed", "changed", "columns_added", "columns_removed"]
    show_rows([asdict(each) for each in result], columns, output_format=common.output_format, empty="no table differs")
    for each in result if common.output_format == "table" else ():
        if each.sample:
            print(
                visible(
                    f"\n{each.table}: {len(each.sample)} of"
                    f" {each.added + each.removed + 2 * (each.changed or 0)} rows that differ"
                )
            )
            show_rows(each.sample, list(each.sample[0]), output_format="table", verbatim=True)


def _command() -> ModuleType:
    return import_extra("limnos.pipeline.run.command", extra="spark")


def _connection(common: CommonFlags) -> object:
    token, user = common.credential(os.environ, lifetime_s=RUN_S)
    make = import_extra("limnos.pipeline.engine.launch", extra="spark").ServerConnection
    return make(uri=common.server_url, metalake=common.metalake, token=token, user=user, ca_file=common.ca_path)


def _listener(common: CommonFlags) -> Listener:
    """Return a listener: JSON lines, colored lines on a terminal, or plain lines."""
    module_type = import_extra("limnos.pipeline.run.event_text", extra="spark")
    if common.output_format == "json":
        make: Callable[[Callable[[str], None]], Listener] = module_type.json_lines
        return make(_write)
    if sys.stdout.isatty():
        from rich.console import Console

        terminal: Listener = module_type.terminal(Console())
        return terminal
    make = module_type.plain_lines
    return make(_write)


def _write(line: str) -> None:
    print(visible(line), flush=True)


def _pairs(names: list[str] | None) -> dict[str, str]:
    results: dict[str, str] = {}
    for pair in names or ():
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise UsageError(f"'{pair}' is not NAME=VALUE", hint="write for example --param day=2026-01-31")
        results[name] = value
    return results


def _fields(ended: RunResult) -> dict[str, object]:
    fields = asdict(ended)
    return {**fields, "why": ended.why.value}


def _show_result(ended: RunResult, common: CommonFlags) -> int:
    show_done(f"run {ended.run} {ended.state}: {ended.message}", _fields(ended), output_format=common.output_format)
    return ended.exit_code


def _resumable_id(common: CommonFlags, typed: str) -> str:
    """Return the id of the run to resume. For a cancelled one it prints when that was, and what the resumption does.

    Raises StoppedError if the newest run, which was named by `last`, was cancelled; and as `whole_run_id`.
    """
    try:
        with common.client() as client:
            run = client.runs.load(complete_run_id(client, typed))
    except (ClientError, ArgumentError):  # the runner reports it, and waits for a server that is away
        return typed
    if run.state != "cancelled":
        return run.id
    reason = f" ({run.message})" if run.message else ""
    text = f"run {run.id} of pipeline {run.pipeline} was cancelled at {run.ended_at}{reason}"
    if typed == LAST:
        raise StoppedError(
            text,
            code="conflict",
            hint=f"'limnos pipeline resume {run.id}' goes on and publishes it, 'limnos delete run {run.id}' drops"
            " what it wrote",
        )
    print(visible(f"note: {text}; it goes on with the steps that it lacks, and publishes all"), file=sys.stderr)
    return run.id


def _complete_id(common: CommonFlags, typed: str) -> str:
    """Return the id of the run whose id begins with what was typed; any other text without a request."""
    if not is_short(typed):
        return typed
    with common.client() as client:
        return complete_run_id(client, typed)
