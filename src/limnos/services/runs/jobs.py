"""Jobs that nodes run by themselves: ask for one, and see or cancel it; beside runs of pipelines, which runners carry out.

May import the rooms below. Knows no wire format, and runs nothing: a job waits in the store until a node takes it (`app`). Who sees and stops a job is who
sees and stops a run (`services.runs.runs`); it runs with the rights of the machine's user that the settings name, not its owner's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino.job_templates import content_read, resolved
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, Unavailable, Unsupported
from limnos.model.jobs import QUEUED, Job, Output
from limnos.services.lookup.apart import apart_find
from limnos.services.request.scene import Scope
from limnos.services.runs.job_rules import CONF_MAX, JOB_RULES, JobWork, work_checked
from limnos.services.runs.job_templates import KIND, record_of, template_find
from limnos.services.runs.runs import Told, caller_of, judge, me, pipeline_of, runs_list, sees
from limnos.store.template_jobs import job_output_read, job_read, template_jobs_read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.model.permits import Permit
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.store.tx import Tx

LIST_MAX = 1000
_ANY = 1 << 53


class JobTold(NamedTuple):
    """A job with the name of its template, and what time it is."""

    job: Job
    template: str
    now_ms: int

    @property
    def state(self) -> str:
        """The state as it is shown."""
        return self.job.shown(self.now_ms)


class JobAsk(msgspec.Struct, frozen=True):
    """Let a node run a template."""

    template: Node
    work: JobWork
    conf: str
    user: str
    user_id: int
    owner_id: int | None
    waiting_max: int


class JobStop(msgspec.Struct, frozen=True):
    """End a job."""

    job_id: int
    template: Node


async def job_run(ctx: Context, *, metalake: str, template: str, conf: Mapping[str, str]) -> JobTold:
    """Ask for a job of a template; the caller owns it. Raises BadRequest, NotFound, Forbidden, Unsupported, Unavailable."""
    text = msgspec.json.encode(conf).decode()
    if len(text) > CONF_MAX:
        raise BadRequest(f"Field jobConf has at most {CONF_MAX} characters as JSON: name a file that holds the rest")
    rules = JOB_RULES.of(ctx.services)

    def decide(scene: Scene) -> Permit[JobAsk]:
        found = apart_find(scene, KIND, name=template, action=Action.JOB_RUN)
        record = record_of(found.entity)
        if not record.job_type:
            raise Unsupported(
                "The server starts no runs of pipelines: run it with a runner (limnos.pipeline), and it shows here as a job"
            )
        rules.require_enabled()
        work = work_checked(rules, record.job_type, content=resolved(content_read(record.content), conf))
        command = JobAsk(found.entity, work, text, *me(scene), scene.maker_id, rules.waiting_max)
        return scene.permit(command, found.decision)

    job = await ctx.write(Scope(metalake), decide, job_insert)
    ctx.services.wake_executor()
    return JobTold(job, template, _now(ctx))


def job_insert(tx: Tx, permit: Permit[JobAsk]) -> Job:
    """Insert the job, unless its user has too many that have not ended."""
    command = permit.command
    template = tx.nodes.confirm(command.template)
    if tx.template_jobs.waiting_of(template.parent_id, command.user) >= command.waiting_max:
        raise Unavailable(
            f"User {command.user} has {command.waiting_max} jobs that wait or run already: wait until one of them has ended",
            retry_after_s=10,
        )
    job = Job(
        id=0, metalake_id=template.parent_id, template_id=template.id, uuid=str(uuid4()), user=command.user, user_id=command.user_id,
        state=QUEUED, holder="", beat_at=0, lease_ms=0, message=None, exit_code=None, queued_at=tx.now_ms, started_at=None,
        ended_at=None, owner_id=command.owner_id,
    )  # fmt: skip
    return tx.template_jobs.create(job, conf=command.conf, work=command.work.text)


async def job_load(ctx: Context, *, metalake: str, uuid: str) -> JobTold | None:
    """Return a job; None where no node was ever asked for one of that id. Raises NotFound, Forbidden."""
    found = await _look_up(ctx, metalake, uuid=uuid)
    return None if found is None else await _judged(ctx, metalake, job=found)


async def job_output(ctx: Context, *, metalake: str, uuid: str) -> tuple[JobTold, Output]:
    """Return a job with the ends of what it wrote, which are there when it has ended. Raises NotFound, Forbidden."""
    metalake_id = await _metalake_id(ctx, metalake)
    found = await ctx.look_up(lambda: job_output_read(metalake_id, uuid))
    job = None if found is None else found[0]
    judged = await ctx.read(Scope(metalake), lambda scene: judge(scene, job, uuid=uuid, action=Action.JOB_LOAD))
    return JobTold(judged.run, judged.pipeline.name, _now(ctx)), Output() if found is None else found[1]


async def _metalake_id(ctx: Context, metalake: str) -> int:
    return await ctx.read(Scope(metalake), lambda scene: scene.metalake.id)


async def _look_up(ctx: Context, metalake: str, *, uuid: str) -> Job | None:
    metalake_id = await _metalake_id(ctx, metalake)
    return await ctx.look_up(lambda: job_read(metalake_id, uuid))


async def _judged(ctx: Context, metalake: str, *, job: Job) -> JobTold:
    judged = await ctx.read(Scope(metalake), lambda scene: judge(scene, job, uuid=job.uuid, action=Action.JOB_LOAD))
    return JobTold(judged.run, judged.pipeline.name, _now(ctx))


async def job_cancel(ctx: Context, *, metalake: str, uuid: str) -> JobTold | None:
    """End a job: one that waits at once, one that runs as soon as its node hears of it. None where no node was asked for one of that id.

    One that has ended stays as it is. Raises NotFound, Forbidden.
    """
    found = await _look_up(ctx, metalake, uuid=uuid)
    if found is None:
        return None

    def decide(scene: Scene) -> Permit[JobStop]:
        judged = judge(scene, found, uuid=uuid, action=Action.JOB_CANCEL)
        return scene.permit(JobStop(judged.run.id, judged.pipeline), judged.decision)

    job, template = await ctx.write(Scope(metalake), decide, job_stop)
    ctx.services.wake_executor()
    return JobTold(job, template, _now(ctx))


def job_stop(tx: Tx, permit: Permit[JobStop]) -> tuple[Job, str]:
    """Withdraw the job, or set it cancelling."""
    template = tx.nodes.confirm(permit.command.template)
    job = tx.template_jobs.by_id(permit.command.job_id)
    if job is None:
        tx.stale()
    tx.template_jobs.cancel(job)
    return tx.template_jobs.by_id(job.id) or job, template.name


async def jobs_list(ctx: Context, *, metalake: str, template: str | None) -> list[Told | JobTold]:
    """Return the newest jobs that the caller sees, runs of pipelines among them; of a template, if it is named."""

    def look(scene: Scene) -> tuple[int, bool]:
        if template is None:
            return scene.metalake.id, True
        node = template_find(scene, template)
        return node.id, not record_of(node).job_type

    of, has_runs = await ctx.read(Scope(metalake), look)
    found: list[Told | JobTold] = []
    if has_runs:
        found += (await runs_list(ctx, metalake=metalake, pipeline=template, state="", before=_ANY, limit=LIST_MAX))[0]
    if template is None or not has_runs:
        found += await _own(ctx, metalake, of=of, of_template=template is not None)
    return sorted(found, key=lambda each: -(each.run.id if isinstance(each, Told) else each.job.id))[:LIST_MAX]


async def _own(ctx: Context, metalake: str, *, of: int, of_template: bool) -> list[JobTold]:
    caller, now_ms = await ctx.read(Scope(metalake), caller_of), _now(ctx)
    rows = await ctx.look_up(lambda: template_jobs_read(of, caller, of_template=of_template, limit=LIST_MAX))

    def seen(scene: Scene) -> list[JobTold]:
        """Decide on each once more: what was read goes by who owned what then."""
        told = ((job, pipeline_of(scene, job)) for job in rows)
        return [
            JobTold(job, node.name, now_ms)
            for job, node in told
            if node is not None and sees(scene, job, pipeline=node)
        ]

    return await ctx.read(Scope(metalake), seen)


def _now(ctx: Context) -> int:
    return ctx.services.store.time.now_ms()
