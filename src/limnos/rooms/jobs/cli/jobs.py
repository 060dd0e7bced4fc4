# SPDX-License-Identifier: Apache-2.0
"""`job run | list | show | cancel | register | templates | delete`: jobs and their templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter

from limnos.cli.catalog.tree import require
from limnos.cli.common import DEFAULTS, Comment, CommonFlags, YesFlag, confirm, properties_of
from limnos.cli.failures import UsageError
from limnos.cli.operation.short_ids import whole_id
from limnos.cli.output import Row, show_done, show_fields, show_rows
from limnos.client.activity.jobs import JobInfo, JobTemplate

if TYPE_CHECKING:
    from limnos.client import Client

app = App(name="job")
Conf = Annotated[
    list[str] | None,
    Parameter(name="--conf", negative="", help="KEY=VALUE for a placeholder of the template; may be repeated."),
]
Files = Annotated[list[str] | None, Parameter(negative="", help="A file on the server's machine; may be repeated.")]


@app.command
def run(template: str, /, *, conf: Conf = None, common: CommonFlags = DEFAULTS) -> None:
    """Start a job of a template, and print its id and state.

    Parameters
    ----------
    template
        The job template's name, as `limnos list templates` shows it.
    """
    with common.client() as client:
        job = client.jobs.run(template, conf=properties_of(conf))
    show_done(f"{job.job_id} is {job.status}", _row(job), output_format=common.output_format)


@app.command(name="list")
def list_jobs(template: str | None = None, /, *, common: CommonFlags = DEFAULTS) -> None:
    """List the newest jobs that are visible to you, including runs of pipelines.

    Parameters
    ----------
    template
        Only jobs of this template.
    """
    with common.client() as client:
        rows = [_row(job) for job in client.jobs.list(template)]
    show_rows(
        rows,
        ["id", "template", "status", "user", "queued_at", "ended_at"],
        output_format=common.output_format,
        empty="no jobs",
    )


@app.command
def show(job: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show a job's state and the end of its output.

    Parameters
    ----------
    job
        The job's id.
    """
    with common.client() as client:
        result = client.jobs.result(_complete_id(client, job))
    show_fields(msgspec.structs.asdict(result), output_format=common.output_format)


@app.command
def cancel(job: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Cancel a job. A job that has ended is not changed.

    Parameters
    ----------
    job
        The job's id.
    """
    with common.client() as client:
        info = client.jobs.cancel(_complete_id(client, job))
    show_done(f"{info.job_id} is {info.status}", _row(info), output_format=common.output_format)


@app.command
def register(
    name: str,
    executable: str,
    /,
    *words: str,
    spark: Annotated[bool, Parameter(negative="")] = False,
    class_name: Annotated[str | None, Parameter(name="--class")] = None,
    env: Annotated[list[str] | None, Parameter(negative="")] = None,
    config: Annotated[list[str] | None, Parameter(negative="")] = None,
    script: Files = None,
    jar: Files = None,
    comment: Comment = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Create a job template, which you own. Put `--` before arguments that begin with `-`.

    Parameters
    ----------
    name
        The name of the new job template.
    executable
        The program's path on the server's machine.
    words
        The program's arguments; `{{day}}` is a parameter of the job.
    spark
        Run the program as a Spark application.
    class_name
        The main class of a JAR file.
    env
        KEY=VALUE of an environment variable; may be repeated.
    config
        KEY=VALUE of a Spark property; may be repeated.
    """
    if not spark and (class_name or config or jar):
        raise UsageError("--class, --config and --jar are for Spark applications", hint="add --spark")
    if spark and script:
        raise UsageError("--script is for programs, not for Spark applications", hint="leave out --spark, or use --jar")
    fields: dict[str, object] = {"comment": comment, "arguments": list(words), "environments": properties_of(env)}
    fields |= (
        {"className": class_name, "jars": jar or [], "configs": properties_of(config)}
        if spark
        else {"scripts": script or []}
    )
    with common.client() as client:
        client.job_templates.register(
            name, job_type="spark" if spark else "shell", executable=executable, fields=fields
        )
    show_done(f"registered job template {name}", {"registered": name}, output_format=common.output_format)


@app.command
def templates(*, common: CommonFlags = DEFAULTS) -> None:
    """List the job templates you may use, including pipelines."""
    with common.client() as client:
        rows = [_template_row(each) for each in client.job_templates.list()]
    show_rows(
        rows, ["name", "type", "executable", "comment"], output_format=common.output_format, empty="no job templates"
    )


@app.command
def delete(name: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Delete a job template with the records of its jobs.

    Parameters
    ----------
    name
        The job template's name, as `limnos list templates` shows it.
    """
    confirm(f"Delete job template {name} of metalake {common.metalake}, with its jobs?", yes=yes)
    with common.client() as client:
        require(client.job_templates.delete(name), "job template", name)
    show_done(f"deleted job template {name}", {"deleted": name}, output_format=common.output_format)


def _row(job: JobInfo) -> Row:
    return {
        "id": job.job_id,
        "template": job.job_template_name,
        "status": job.status,
        "user": job.audit.creator,
        "queued_at": job.queued_at,
        "started_at": job.started_at,
        "ended_at": job.finished_at,
    }


def _template_row(template: JobTemplate) -> Row:
    return {
        "name": template.name,
        "type": template.job_type,
        "executable": template.executable,
        "arguments": list(template.arguments),
        "comment": template.comment,
    }


def _complete_id(client: Client, typed: str) -> str:
    """Return the id of the job whose id begins with what was typed. Raises UsageError if several do."""
    return whole_id(typed, kind="job", ids=lambda: (each.job_id for each in client.jobs.list()))
