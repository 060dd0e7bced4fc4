"""Job templates and jobs, which are pipelines and their runs: list, load, alter, drop templates; list, load, cancel jobs.

May import `access`, `model`, `services` and this package. A pipeline is declared over the own API, and run by a runner: neither is done here,
and who may do it elsewhere is told so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from limnos.access.actions import Action
from limnos.http.gravitino import dto
from limnos.http.gravitino.dto import ok
from limnos.http.gravitino.told import Body, names_of, told
from limnos.http.gravitino.updates import Rename, Update, UpdateComment, edits_of
from limnos.http.request import Request
from limnos.http.routing import Route
from limnos.model.errors import BadRequest, NotFound, RunConflict, Unsupported
from limnos.model.kinds import Kind
from limnos.services import pipelines, runs
from limnos.services.scene import Scope

if TYPE_CHECKING:
    from limnos.http.application import Handler
    from limnos.http.response import Response
    from limnos.services.context import Context
    from limnos.services.runs import Told
    from limnos.services.scene import Scene

_NEWEST = 1 << 53


class UpdateTemplate(Body, frozen=True, tag_field="@type", tag="updateTemplate"):
    """What a template runs, which is its pipeline's declaration to say."""

    new_template: dict[str, object]


class TemplateUpdates(Body, frozen=True):
    """Changes of a template."""

    updates: Sequence[Update | UpdateTemplate]


class TemplateRegister(Body, frozen=True):
    """A template to be made."""

    job_template: dict[str, object]


class JobRun(Body, frozen=True):
    """A job to be started."""

    job_template_name: str
    job_conf: dict[str, str] | None = None


async def templates_list(request: Request, ctx: Context) -> Response:
    """Answer the templates that the caller may use: their names, or with `details` all of them."""
    found = await ctx.read(Scope(*names_of(request)), pipelines.pipelines_list)
    if request.query_flag("details"):
        return ok(jobTemplates=[dto.job_template(each.node) for each in found])
    return ok(names=[each.node.name for each in found])


async def template_register(request: Request, ctx: Context) -> Response:
    """Refuse: a template is made by declaring its pipeline."""
    Request.decode(await request.body(), TemplateRegister)

    def require(scene: Scene) -> None:
        scene.require_in_metalake_use()
        scene.require(Action.JOB_TEMPLATE_CREATE, scene.settled.outer)

    await ctx.read(Scope(*names_of(request)), require)
    raise Unsupported(
        "Job templates are pipelines here: declare one with PUT /api/limnos/v1/metalakes/{m}/pipelines/{p}"
    )


async def template_load(request: Request, ctx: Context) -> Response:
    """Answer one template."""
    metalake, name = names_of(request)
    found = await ctx.read(Scope(metalake), lambda scene: pipelines.pipeline_find(scene, name))
    return ok(jobTemplate=dto.job_template(found.node))


async def template_alter(request: Request, ctx: Context) -> Response:
    """Rename a template, or change its comment; what it runs is declared elsewhere."""
    body = Request.decode(await request.body(), TemplateUpdates)
    metalake, name = names_of(request)
    plain = [each for each in body.updates if isinstance(each, (Rename, UpdateComment))]
    if len(plain) < len(body.updates):

        def require(scene: Scene) -> None:
            scene.look_up(Kind.JOB_TEMPLATE, (name,), Action.JOB_TEMPLATE_ALTER)

        await ctx.read(Scope(metalake), require)
        raise Unsupported(
            "What a pipeline runs is its declaration: change that with PUT /api/limnos/v1/metalakes/{m}/pipelines/{p}"
        )
    found = await pipelines.pipeline_alter(ctx, metalake=metalake, name=name, edits=edits_of(plain))
    return ok(jobTemplate=dto.job_template(found.node))


async def template_drop(request: Request, ctx: Context) -> Response:
    """Drop a template with its jobs; a missing one is no failure."""
    metalake, name = names_of(request)
    try:
        await pipelines.pipeline_drop(ctx, metalake=metalake, name=name)
    except NotFound as error:
        if error.kind != Kind.JOB_TEMPLATE.word:
            raise
        return ok(dropped=False)
    return ok(dropped=True)


async def jobs_list(request: Request, ctx: Context) -> Response:
    """Answer the newest jobs that the caller sees, of a template if it is named: a thousand at most."""
    (metalake,) = names_of(request)
    name = request.query("jobTemplateName")
    found, _ = await runs.runs_list(
        ctx, metalake=metalake, pipeline=name, state="", before=_NEWEST, limit=runs.PAGE_MAX
    )
    return ok(jobs=[_job(each) for each in found])


async def job_run(request: Request, ctx: Context) -> Response:
    """Refuse: the server carries nothing out."""
    body = Request.decode(await request.body(), JobRun)

    def require(scene: Scene) -> None:
        scene.require_in_metalake_use()
        scene.look_up(Kind.JOB_TEMPLATE, (body.job_template_name,), Action.JOB_RUN)

    if not body.job_template_name:
        raise BadRequest("Field jobTemplateName is empty: name a template")
    await ctx.read(Scope(*names_of(request)), require)
    raise Unsupported(
        "The server starts no jobs: run the pipeline with a runner (limnos.pipeline), and it shows here as a job"
    )


async def job_load(request: Request, ctx: Context) -> Response:
    """Answer one job."""
    metalake, uuid = names_of(request)
    return ok(job=_job(await runs.run_load(ctx, metalake=metalake, uuid=uuid)))


async def job_cancel(request: Request, ctx: Context) -> Response:
    """Ask a job to stop; one that has ended is answered as it is."""
    metalake, uuid = names_of(request)
    try:
        found = await runs.run_cancel(ctx, metalake=metalake, uuid=uuid)
    except RunConflict:
        found = await runs.run_load(ctx, metalake=metalake, uuid=uuid)
    return ok(job=_job(found))


def _job(found: Told) -> dict[str, object]:
    return dto.job(found.run, template=found.pipeline, state=found.state)


_UNDER = "under metalake [{0}]"
_TEMPLATES = f"Failed to operate job template(s) operation [%s] {_UNDER}"
_TEMPLATE = f"Failed to operate job template {{1}} operation [%s] {_UNDER}"
_JOBS = f"Failed to operate job(s) operation [%s] {_UNDER}"
_JOB = f"Failed to operate job {{1}} operation [%s] {_UNDER}"
_ALL, _RUNS = "/metalakes/{m}/jobs/templates", "/metalakes/{m}/jobs/runs"
ROUTES: tuple[Route[Handler], ...] = (
    Route("GET", _ALL, told(_TEMPLATES % "LIST", templates_list), "list-job-templates"),
    Route("POST", _ALL, told(_TEMPLATES % "REGISTER", template_register), "register-job-template"),
    Route("GET", f"{_ALL}/{{template}}", told(_TEMPLATE % "GET", template_load), "load-job-template"),
    Route(
        "PUT", f"{_ALL}/{{template}}", told(_TEMPLATE % "ALTER", template_alter), "alter-job-template"
    ),
    Route("DELETE", f"{_ALL}/{{template}}", told(_TEMPLATE % "DELETE", template_drop), "drop-job-template"),
    Route("GET", _RUNS, told(_JOBS % "LIST", jobs_list), "list-jobs"),
    Route("POST", _RUNS, told(_JOBS % "RUN", job_run), "run-job"),
    Route("GET", f"{_RUNS}/{{job}}", told(_JOB % "GET", job_load), "load-job"),
    Route("POST", f"{_RUNS}/{{job}}", told(_JOB % "CANCEL", job_cancel), "cancel-job"),
)  # fmt: skip
