# SPDX-License-Identifier: Apache-2.0
"""Jobs that the server's nodes run themselves: start, load, list, cancel. Runners, not nodes, run pipelines.

Must not know any wire format, and runs nothing: a job waits in the store until a node leases it (`app`). The rules of
runs (`services.runs.runs`) decide who may see and stop a job. It runs as the operating system's user that the settings
name, not with its owner's rights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import uuid4

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino.job_templates import content_read, fill_placeholders
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, ServiceUnavailable, UnsupportedOperation
from limnos.model.jobs import QUEUED, JobOutput, TemplateJob
from limnos.model.permits import Permit
from limnos.services.lookup.metalake_objects import metalake_object_find
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.job_rules import CONF_MAX, JOB_RULES, JobWork, work_check
from limnos.services.runs.job_templates import KIND, record_of, template_find
from limnos.services.runs.run_access import (
    RunView,
    caller_identity,
    is_run_visible,
    now_ms_of,
    pipeline_of,
    run_authorize,
)
from limnos.services.runs.run_lists import caller_of, runs_list
from limnos.store.activity.template_jobs import job_output_read, job_read, template_jobs_read
from limnos.store.tx import Tx

LIST_MAX = 1000
_ANY = 1 << 53


class JobView(NamedTuple):
    """A job with the name of its template, and the current time."""

    job: TemplateJob
    template: str
    now_ms: int

    @property
    def state(self) -> str:
        """The job's state at `now_ms`: a job whose lease has expired counts as failed or cancelled."""
        return self.job.display_state(self.now_ms)


class JobCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a job, which waits until a node runs it."""

    template: Node
    work: JobWork
    conf: str
    user: str
    user_id: int
    owner_id: int | None
    waiting_max: int


class JobStop(msgspec.Struct, frozen=True):
    """The command to cancel a waiting or running job."""

    job_id: int
    template: Node


async def job_run(ctx: Context, *, metalake: str, template: str, conf: Mapping[str, str]) -> JobView:
    """Start a job of a template; the caller owns it.

    Raises BadRequest for invalid values or content, NotFound, NotInUse, PermissionDenied, UnsupportedOperation for a
    pipeline or if the server runs no jobs, and ServiceUnavailable if the caller has too many unfinished jobs.
    """
    text = msgspec.json.encode(conf).decode()
    if len(text) > CONF_MAX:
        raise BadRequest(
            f"Field jobConf has at most {CONF_MAX} characters as JSON: put the remaining content into a file and"
            " name it"
        )
    rules = JOB_RULES.of(ctx.services)

    def decide(request_view: RequestView) -> Permit[JobCreate]:
        metalake_object = metalake_object_find(request_view, KIND, name=template, action=Action.JOB_RUN)
        record = record_of(metalake_object.entity)
        if not record.job_type:
            raise UnsupportedOperation(
                "The server does not start runs of pipelines: run it with a runner (limnos.pipeline), and it appears"
                " here as a job"
            )
        rules.require_enabled()
        work = work_check(rules, record.job_type, content=fill_placeholders(content_read(record.content), conf))
        user, user_id = caller_identity(request_view)
        command = JobCreate(
            template=metalake_object.entity,
            work=work,
            conf=text,
            user=user,
            user_id=user_id,
            owner_id=request_view.maker_id,
            waiting_max=rules.waiting_max,
        )
        return request_view.permit(command, metalake_object.decision)

    job = await ctx.write(RequestScope(metalake), decide, job_insert)
    ctx.services.wake_executor()
    return JobView(job, template, now_ms_of(ctx))


def job_insert(tx: Tx, permit: Permit[JobCreate]) -> TemplateJob:
    """Insert the job. Raises ServiceUnavailable if its user has `waiting_max` unfinished jobs."""
    command = permit.command
    template = tx.nodes.confirm(command.template)
    if tx.template_jobs.waiting_of(template.parent_id, command.user) >= command.waiting_max:
        raise ServiceUnavailable(
            f"User {command.user} has {command.waiting_max} waiting or running jobs: wait until one of them has ended",
            retry_after_s=10,
        )
    job = TemplateJob(
        id=0,
        metalake_id=template.parent_id,
        template_id=template.id,
        uuid=str(uuid4()),
        user=command.user,
        user_id=command.user_id,
        state=QUEUED,
        holder="",
        beat_at=0,
        lease_ms=0,
        message=None,
        exit_code=None,
        queued_at=tx.now_ms,
        started_at=None,
        ended_at=None,
        owner_id=command.owner_id,
    )
    return tx.template_jobs.create(job, conf=command.conf, work=command.work.text)


async def job_load(ctx: Context, *, metalake: str, uuid: str) -> JobView | None:
    """Return a job by its UUID; None if no job has it.

    Raises NotFound for a missing metalake or a job that is not visible to the caller, NotInUse, PermissionDenied.
    """
    job = await _look_up(ctx, metalake, uuid=uuid)
    return None if job is None else await _authorize_job(ctx, metalake, job=job)


async def job_output(ctx: Context, *, metalake: str, uuid: str) -> tuple[JobView, JobOutput]:
    """Return a job with the last part of its output, which is stored when the job ends. Raises NotFound, NotInUse,
    PermissionDenied.
    """
    metalake_id = await _metalake_id(ctx, metalake)
    result = await ctx.look_up(lambda: job_output_read(metalake_id, uuid))
    job = None if result is None else result[0]
    decision = await ctx.read(
        RequestScope(metalake), lambda request_view: run_authorize(request_view, job, uuid=uuid, action=Action.JOB_LOAD)
    )
    return JobView(decision.run, decision.pipeline.name, now_ms_of(ctx)), JobOutput() if result is None else result[1]


async def _metalake_id(ctx: Context, metalake: str) -> int:
    return await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake.id)


async def _look_up(ctx: Context, metalake: str, *, uuid: str) -> TemplateJob | None:
    metalake_id = await _metalake_id(ctx, metalake)
    return await ctx.look_up(lambda: job_read(metalake_id, uuid))


async def _authorize_job(ctx: Context, metalake: str, *, job: TemplateJob) -> JobView:
    decision = await ctx.read(
        RequestScope(metalake),
        lambda request_view: run_authorize(request_view, job, uuid=job.uuid, action=Action.JOB_LOAD),
    )
    return JobView(decision.run, decision.pipeline.name, now_ms_of(ctx))


async def job_cancel(ctx: Context, *, metalake: str, uuid: str) -> JobView | None:
    """Cancel a job: a waiting job immediately; a running job is set to cancelling until its node has ended it.

    An ended job is not changed. Returns the job; None if no job has the UUID. Raises as `job_load`.
    """
    template_job = await _look_up(ctx, metalake, uuid=uuid)
    if template_job is None:
        return None

    def decide(request_view: RequestView) -> Permit[JobStop]:
        decision = run_authorize(request_view, template_job, uuid=uuid, action=Action.JOB_CANCEL)
        return request_view.permit(JobStop(decision.run.id, decision.pipeline), decision.decision)

    job, template = await ctx.write(RequestScope(metalake), decide, job_stop)
    ctx.services.wake_executor()
    return JobView(job, template, now_ms_of(ctx))


def job_stop(tx: Tx, permit: Permit[JobStop]) -> tuple[TemplateJob, str]:
    """Cancel a waiting job, or set a running job to cancelling. Returns the job and its template's name."""
    template = tx.nodes.confirm(permit.command.template)
    job = tx.template_jobs.by_id(permit.command.job_id)
    if job is None:
        tx.stale()
    tx.template_jobs.cancel(job)
    return tx.template_jobs.by_id(job.id) or job, template.name


async def jobs_list(ctx: Context, *, metalake: str, template: str | None) -> list[RunView | JobView]:
    """Return the newest jobs and pipeline runs that are visible to the caller, newest first; of all templates or of
    one.

    Raises NotFound, NotInUse, PermissionDenied.
    """

    def look(request_view: RequestView) -> tuple[int, bool]:
        if template is None:
            return request_view.metalake.id, True
        node = template_find(request_view, template)
        return node.id, not record_of(node).job_type

    of, has_runs = await ctx.read(RequestScope(metalake), look)
    views: list[RunView | JobView] = []
    if has_runs:
        views += (await runs_list(ctx, metalake=metalake, pipeline=template, state="", before=_ANY, limit=LIST_MAX))[0]
    if template is None or not has_runs:
        views += await _template_jobs(ctx, metalake, of=of, of_template=template is not None)
    return sorted(views, key=lambda each: -(each.run.id if isinstance(each, RunView) else each.job.id))[:LIST_MAX]


async def _template_jobs(ctx: Context, metalake: str, *, of: int, of_template: bool) -> list[JobView]:
    caller, now_ms = await ctx.read(RequestScope(metalake), caller_of), now_ms_of(ctx)
    rows = await ctx.look_up(lambda: template_jobs_read(of, caller, of_template=of_template, limit=LIST_MAX))

    def visible_jobs(request_view: RequestView) -> list[JobView]:
        """Return the visible jobs among the rows. The SQL query filtered by owner; an owner may have changed since, so
        access to each job is decided again.
        """
        result = ((job, pipeline_of(request_view, job)) for job in rows)
        return [
            JobView(job, node.name, now_ms)
            for job, node in result
            if node is not None and is_run_visible(request_view, job, pipeline=node)
        ]

    return await ctx.read(RequestScope(metalake), visible_jobs)
