# SPDX-License-Identifier: Apache-2.0
"""`schedule list | show | pause | resume | delete` and `pipeline schedule | calendar`: pipelines that a server runs."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.extras import import_extra
from limnos.cli.failures import UsageError
from limnos.cli.output import Row, show_done, show_fields, show_rows
from limnos.client.activity.schedules import Schedule
from limnos.client.errors import ConflictError, DeniedError, RefusedError

if TYPE_CHECKING:
    from limnos.pipeline.declaration import Pipeline, ScheduleRule

app = App(name="schedule")
CronFlag = Annotated[
    str | None, Parameter(help="Due times instead of those of the file: minute, hour, day, month, day of week.")
]
ZoneFlag = Annotated[str | None, Parameter(help="Time zone of --cron, such as Europe/Paris; UTC if left out.")]
CountFlag = Annotated[int, Parameter(help="Maximum number of due times, at most 20.")]


def schedule(
    file: Path,
    /,
    *,
    cron: CronFlag = None,
    time_zone: ZoneFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Let the server run a pipeline at the times of its `schedule`, with your rights at the time of each run.

    The files of the pipeline's directory are sent to the server, which runs them until the next `pipeline schedule`.

    Parameters
    ----------
    file
        The pipeline's file, YAML or Python, or shipped:NAME.
    """
    pipeline: Pipeline = import_extra("limnos.pipeline.file", extra="pipelines").load(file)
    rule = _rule(pipeline, cron, time_zone=time_zone)
    copies = import_extra("limnos.pipeline.scheduled_files", extra="pipelines")
    copies.require_no_repeated_files(pipeline, file.parent)
    name, files = copies.scheduled_files(file)
    for source, path in copies.copied_sources(pipeline, file.parent).items():
        print(
            f"note: source {source} reads the copy of {path} of now: files that come later are not read; for these name"
            " an absolute path in the server's setting jobs.readable, or a URL",
            file=sys.stderr,
        )
    declared = import_extra("limnos.pipeline.declaration_json", extra="pipelines").encode_declaration(pipeline)
    conflicts = import_extra("limnos.pipeline.table_conflicts", extra="pipelines")
    with common.client() as client:
        conflicts.require_own_tables(client, pipeline)
        former_declaration = conflicts.find_declaration(client, pipeline.name)
        conflicts.put_declaration(client, pipeline, declaration=declared, before=former_declaration)
        try:
            result = client.schedules.put(
                pipeline.name,
                file=name,
                files=files,
                cron=rule.cron,
                time_zone=rule.time_zone,
                if_changed=rule.if_changed,
            )
        except (ConflictError, DeniedError, RefusedError):  # a refused schedule registers no pipeline
            conflicts.restore_declaration(client, pipeline.name, before=former_declaration)
            raise
    show_done(
        f"pipeline {result.pipeline} is due at {_local(result, 0)}, and runs with the rights of {result.user}",
        msgspec.structs.asdict(result),
        output_format=common.output_format,
    )


def _rule(pipeline: Pipeline, cron: str | None, *, time_zone: str | None) -> ScheduleRule:
    """Return the schedule of the file, with the due times of the flags if there are any. Raises UsageError if there is
    neither.
    """
    if cron is not None:
        rule: ScheduleRule = import_extra("limnos.pipeline.declaration", extra="pipelines").ScheduleRule(
            cron=cron,
            time_zone=time_zone or "UTC",
            if_changed=pipeline.schedule is not None and pipeline.schedule.if_changed,
        )
        if faults := import_extra("limnos.pipeline.keys.schedule", extra="pipelines").rule_faults(rule):
            raise UsageError("; ".join(faults), hint='as --cron "0 6 * * *" --time-zone Europe/Paris')
        return rule
    if time_zone is not None:
        raise UsageError("--time-zone is that of --cron", hint="add --cron, or write the time zone into the file")
    if pipeline.schedule is None:
        raise UsageError(
            f"pipeline {pipeline.name} has no schedule",
            hint='write one into the file, as schedule: {cron: "0 6 * * *", time_zone: Europe/Paris}, or use --cron',
        )
    return pipeline.schedule


def calendar(pipeline: str | None = None, /, *, count: CountFlag = 10, common: CommonFlags = DEFAULTS) -> None:
    """Show the next due times of scheduled pipelines, in their time zones.

    Parameters
    ----------
    pipeline
        Only this pipeline.
    """
    with common.client() as client:
        if pipeline is None:
            schedules = client.schedules.list(count=count)
        else:
            schedules = (client.schedules.load(pipeline, count=count),)
    rows: list[Row] = sorted(
        (
            {"due_at": at, "local": _local(each, index), "pipeline": each.pipeline, "user": each.user}
            for each in schedules
            for index, at in enumerate(each.next)
        ),
        key=lambda row: (row["due_at"], row["pipeline"]),
    )
    columns = ["due_at", "local", "pipeline", "user"]
    show_rows(rows[:count], columns, output_format=common.output_format, empty="nothing is due")


@app.command(name="list")
def list_schedules(*, common: CommonFlags = DEFAULTS) -> None:
    """List the schedules of the pipelines that you may use."""
    with common.client() as client:
        rows = [_row(each) for each in client.schedules.list()]
    columns = ["pipeline", "state", "due", "next_at", "user", "last_due_at", "last_job", "reason"]
    show_rows(rows, columns, output_format=common.output_format, empty="no schedules")


@app.command
def show(pipeline: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show a pipeline's schedule: when it is due, whose rights it has, its last job, and why it is paused or
    the last due time started no run.

    Parameters
    ----------
    pipeline
        Its name.
    """
    with common.client() as client:
        result = client.schedules.load(pipeline)
    show_fields(msgspec.structs.asdict(result), output_format=common.output_format)


@app.command
def pause(pipeline: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Pause a pipeline's schedule. A job that runs goes on.

    Parameters
    ----------
    pipeline
        Its name.
    """
    with common.client() as client:
        result = client.schedules.pause(pipeline)
    show_done(f"the schedule of {pipeline} is paused", _row(result), output_format=common.output_format)


@app.command
def resume(pipeline: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Resume your paused schedule. The due times that it missed are not run.

    Parameters
    ----------
    pipeline
        The pipeline's name.
    """
    with common.client() as client:
        result = client.schedules.resume(pipeline)
    show_done(f"pipeline {pipeline} is due at {_local(result, 0)}", _row(result), output_format=common.output_format)


@app.command
def delete(pipeline: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Delete a pipeline's schedule, and the files that the server has of it. The pipeline and its runs stay.

    Parameters
    ----------
    pipeline
        Its name.
    """
    confirm(f"Delete the schedule of pipeline {pipeline}?", yes=yes)
    with common.client() as client:
        client.schedules.delete(pipeline)
    show_done(f"deleted the schedule of {pipeline}", {"deleted": pipeline}, output_format=common.output_format)


def _row(one: Schedule) -> Row:
    return {
        "pipeline": one.pipeline,
        "state": "paused" if one.paused else "active",
        "due": f"{one.cron} {one.time_zone}{' if changed' if one.if_changed else ''}",
        "next_at": one.next[0] if one.next else None,
        "user": one.user,
        "last_due_at": one.last_due_at,
        "last_job": one.job and f"{one.job[:8]} {one.job_state}",
        "reason": one.reason,
    }


def _local(one: Schedule, place: int) -> str:
    """Return a due time in the schedule's time zone; in UTC if this machine does not know the zone."""
    if place >= len(one.next):
        return "no time: it is paused"
    moment = datetime.fromisoformat(one.next[place])
    try:
        zone = ZoneInfo(one.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"{moment:%a %Y-%m-%d %H:%M} UTC"
    return f"{moment.astimezone(zone):%a %Y-%m-%d %H:%M} {one.time_zone}"
