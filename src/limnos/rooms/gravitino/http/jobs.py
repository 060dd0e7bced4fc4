# SPDX-License-Identifier: Apache-2.0
"""Job templates and jobs: jobs that the server runs, and pipelines with their runs, which runners execute.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest, RunConflict
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.namespace_objects import drop_response
from limnos.rooms.gravitino.http.updates import RenameUpdate, UpdateComment, VariedUpdate, edits_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.runs import job_templates, jobs, runs
from limnos.services.runs.builtin_jobs import (
    BUILTIN_JOBS,
    BuiltinJob,
    BuiltinTemplate,
    is_builtin,
    operation_of,
    refuse_builtin,
)
from limnos.services.runs.job_templates import KIND, TemplateRequest
from limnos.services.runs.jobs import JobView
from limnos.services.runs.run_access import RunView


class UpdateTemplate(VariedUpdate, frozen=True, tag="updateTemplate"):
    """A change of a template's content. Null fields stay unchanged."""

    new_template: dict[str, object]


class TemplateUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a job template: its changes, in order."""

    updates: Sequence[RenameUpdate | UpdateComment | UpdateTemplate]


class TemplateRegister(GravitinoRequestBody, frozen=True):
    """The body of a request to create a job template."""

    job_template: dict[str, object]


class JobRun(GravitinoRequestBody, frozen=True):
    """The body of a request to start a job: the template, and the values of its placeholders."""

    job_template_name: str
    job_conf: dict[str, str] | None = None


async def templates_list(request: Request, ctx: Context) -> Response:
    """Return the templates that the caller may use, and the built-in ones: names, or with `details` all fields."""
    templates = await ctx.read(RequestScope(*names_of(request)), job_templates.templates_list)
    builtin = BUILTIN_JOBS.of(ctx.services).templates
    if request.query_flag("details"):
        own_templates = [dto.job_template(each) for each in templates]
        return ok(jobTemplates=[*own_templates, *map(builtin_template_body, builtin)])
    return ok(names=[*[each.name for each in templates], *[each.name for each in builtin]])


async def template_register(request: Request, ctx: Context, *, body: TemplateRegister) -> Response:
    """Create a template for a program or a Spark application. Pipelines are declared through the admin API."""
    (metalake,) = names_of(request)
    fields = dict(body.job_template)
    name, job_type = (_text(fields.pop(key, None), key) for key in ("name", "jobType"))
    refuse_builtin(name)
    comment = fields.pop("comment", None)
    fields.pop("audit", None)
    template_request = TemplateRequest(job_type, None if comment is None else _text(comment, "comment"), fields)
    await job_templates.template_register(ctx, metalake=metalake, name=name, request=template_request)
    return ok()


def _text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"Field {key} of jobTemplate is required and must be a string")
    return value


async def template_load(request: Request, ctx: Context) -> Response:
    """Return a job template with all fields."""
    metalake, name = names_of(request)
    if is_builtin(name):
        await ctx.read(RequestScope(metalake), job_templates.templates_list)
        return ok(jobTemplate=builtin_template_body(BUILTIN_JOBS.of(ctx.services).template(name)))
    node = await ctx.read(RequestScope(metalake), lambda request_view: job_templates.template_find(request_view, name))
    return ok(jobTemplate=dto.job_template(node))


async def template_alter(request: Request, ctx: Context, *, body: TemplateUpdates) -> Response:
    """Change a template's name, comment or content. A pipeline's content is declared through the admin API."""
    metalake, name = names_of(request)
    refuse_builtin(name)
    edits = edits_of([each for each in body.updates if not isinstance(each, UpdateTemplate)])
    updates = [each.new_template for each in body.updates if isinstance(each, UpdateTemplate)]
    node = await job_templates.template_alter(ctx, metalake=metalake, name=name, edits=edits, updates=updates)
    return ok(jobTemplate=dto.job_template(node))


async def template_drop(request: Request, ctx: Context) -> Response:
    """Drop a template with its jobs; a missing one is not an error."""
    metalake, name = names_of(request)
    refuse_builtin(name)
    return await drop_response(job_templates.template_drop(ctx, metalake=metalake, name=name), KIND.word)


async def jobs_list(request: Request, ctx: Context) -> Response:
    """Return the newest jobs visible to the caller: 1000, and 1000 of built-in templates; or those of one template."""
    (metalake,) = names_of(request)
    template = request.query("jobTemplateName")
    views: list[RunView | JobView | BuiltinJob] = []
    if template is None or not is_builtin(template):
        views += await jobs.jobs_list(ctx, metalake=metalake, template=template)
    if template is None or is_builtin(template):
        views += await BUILTIN_JOBS.of(ctx.services).newest(ctx, metalake, name=template)
    return ok(jobs=[_job(each) for each in views])


async def job_run(request: Request, ctx: Context, *, body: JobRun) -> Response:
    """Start a job of a template, with values for its placeholders."""
    (metalake,) = names_of(request)
    if not body.job_template_name:
        raise BadRequest("Field jobTemplateName is empty: name a template")
    if is_builtin(body.job_template_name):
        builtin = BUILTIN_JOBS.of(ctx.services)
        job = await builtin.run(ctx, metalake, name=body.job_template_name, conf=body.job_conf or {})
        return ok(job=_job(job))
    view = await jobs.job_run(ctx, metalake=metalake, template=body.job_template_name, conf=body.job_conf or {})
    return ok(job=_job(view))


async def job_load(request: Request, ctx: Context) -> Response:
    """Return a job with its status, by its id."""
    metalake, uuid = names_of(request)
    operation = operation_of(uuid)
    if operation is not None:
        return ok(job=_job(await BUILTIN_JOBS.of(ctx.services).load(ctx, metalake, operation=operation)))
    view = await jobs.job_load(ctx, metalake=metalake, uuid=uuid)
    return ok(job=_job(view or await runs.run_load(ctx, metalake=metalake, uuid=uuid)))


async def job_cancel(request: Request, ctx: Context) -> Response:
    """Request that a job stops. A job that has ended is returned unchanged."""
    metalake, uuid = names_of(request)
    operation = operation_of(uuid)
    if operation is not None:
        return ok(job=_job(await BUILTIN_JOBS.of(ctx.services).cancel(ctx, metalake, operation=operation)))
    view = await jobs.job_cancel(ctx, metalake=metalake, uuid=uuid)
    return ok(job=_job(view or await _run_cancel(ctx, metalake, uuid=uuid)))


async def _run_cancel(ctx: Context, metalake: str, *, uuid: str) -> RunView:
    try:
        return await runs.run_cancel(ctx, metalake=metalake, uuid=uuid)
    except RunConflict:
        return await runs.run_load(ctx, metalake=metalake, uuid=uuid)


def _job(view: RunView | JobView | BuiltinJob) -> dict[str, object]:
    if isinstance(view, BuiltinJob):
        return builtin_job_body(view)
    if isinstance(view, JobView):
        return dto.template_job(view.job, template=view.template, state=view.state)
    return dto.job(view.run, template=view.pipeline, state=view.state)


_AUDIT: Final = {"creator": "limnos", "createTime": "1970-01-01T00:00:00Z"}


def builtin_template_body(template: BuiltinTemplate) -> dict[str, object]:
    """Encode a built-in template: a Spark template whose placeholders are the fields of `jobConf`."""
    fields = ("catalog_name", "table_identifier", *template.fields)
    arguments = [word for field in fields for word in (f"--{field.replace('_', '-')}", f"{{{{{field}}}}}")]
    return {
        "jobType": "spark",
        "name": template.name,
        "comment": template.comment,
        "executable": "limnos",
        "arguments": arguments,
        "environments": {},
        "customFields": {"limnos.operation": template.kind},
        "className": None,
        "jars": [],
        "files": [],
        "archives": [],
        "configs": {},
        "audit": _AUDIT,
    }


def builtin_job_body(job: BuiltinJob) -> dict[str, object]:
    """Encode a job of a built-in template."""
    row = job.row
    queued, ended_at = instant(row.started_at), instant(row.ended_at)
    audit = dto.compact(creator=row.user, createTime=queued, lastModifiedTime=ended_at)
    times = dto.compact(queuedAt=queued, startedAt=instant(job.began_at), finishedAt=ended_at)
    return {
        "jobId": job.id,
        "jobTemplateName": job.template,
        "status": job.status,
        "audit": audit,
        **times,
    }


_UNDER = "under metalake [{0}]"
_TEMPLATES = f"Failed to operate job template(s) operation [%s] {_UNDER}"
_TEMPLATE = f"Failed to operate job template {{1}} operation [%s] {_UNDER}"
_JOBS = f"Failed to operate job(s) operation [%s] {_UNDER}"
_JOB = f"Failed to operate job {{1}} operation [%s] {_UNDER}"
_ALL, _RUNS = "/metalakes/{m}/jobs/templates", "/metalakes/{m}/jobs/runs"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_ALL,
        handler=wrap_handler(_TEMPLATES % "LIST", templates_list),
        operation="list-job-templates",
        query=("details",),
    ),
    Route(
        method="POST",
        path=_ALL,
        handler=wrap_body_handler(_TEMPLATES % "REGISTER", TemplateRegister, template_register),
        operation="register-job-template",
    ),
    Route(
        method="GET",
        path=f"{_ALL}/{{template}}",
        handler=wrap_handler(_TEMPLATE % "GET", template_load),
        operation="load-job-template",
    ),
    Route(
        method="PUT",
        path=f"{_ALL}/{{template}}",
        handler=wrap_body_handler(_TEMPLATE % "ALTER", TemplateUpdates, template_alter),
        operation="alter-job-template",
    ),
    Route(
        method="DELETE",
        path=f"{_ALL}/{{template}}",
        handler=wrap_handler(_TEMPLATE % "DELETE", template_drop),
        operation="drop-job-template",
    ),
    Route(
        method="GET",
        path=_RUNS,
        handler=wrap_handler(_JOBS % "LIST", jobs_list),
        operation="list-jobs",
        query=("jobTemplateName",),
    ),
    Route(method="POST", path=_RUNS, handler=wrap_body_handler(_JOBS % "RUN", JobRun, job_run), operation="run-job"),
    Route(method="GET", path=f"{_RUNS}/{{job}}", handler=wrap_handler(_JOB % "GET", job_load), operation="load-job"),
    Route(
        method="POST",
        path=f"{_RUNS}/{{job}}",
        handler=wrap_handler(_JOB % "CANCEL", job_cancel),
        operation="cancel-job",
    ),
)
