# SPDX-License-Identifier: Apache-2.0
"""Starts of scheduled pipelines: what is due becomes a job, on behalf of the schedule's user, once for each due time.

Must not know how a job runs. The start is one conditional statement in the transaction that inserts the job, so that of
several nodes only one starts it. A schedule with `if_changed` starts nothing while the tables that its last run read
are as they were. A schedule waits while its last job, or another run of the pipeline, is in progress;
the due times of that time are missed, and missed times run once. A job whose server was killed or stopped is started
again for the same due time. Decision record 0304.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import uuid4

import msgspec
from msgspec import structs

from limnos.access.actions import Action
from limnos.access.authentication import Credential
from limnos.formats.gravitino.job_templates import TemplateContent
from limnos.model.entities import Node
from limnos.model.errors import LimnosError, NotFound, NotInUse
from limnos.model.jobs import FAILED, LOST_MESSAGES, QUEUED, TemplateJob
from limnos.model.kinds import Kind
from limnos.model.permits import upkeep_permit
from limnos.model.schedules import Schedule
from limnos.rooms.pipelines.services.changed_inputs import inputs_changed
from limnos.rooms.pipelines.services.due_times import LATE_MS, look_ms, next_due_ms
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.job_rules import PIPELINE, JobWork
from limnos.store.activity.schedules import schedules_due
from limnos.store.identity.principals import principal_by_id_read
from limnos.store.objects.node_reads import node_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.schedules")
AT_ONCE: Final = 100
"""The maximum number of schedules that one step looks at."""
ATTEMPTS_MAX: Final = 3
"""The maximum number of jobs for one due time."""
BUSY_MS: Final = 10_000
"""The time between two looks at a schedule while another run of its pipeline is in progress, in milliseconds."""
STARTS = Counter("limnos_scheduled_starts_total", "Jobs that this node started for due times of schedules.", ())


class DuePipeline(NamedTuple):
    """A schedule to look at, and its pipeline's name."""

    schedule: Schedule
    name: str
    refusal: str | None
    """Why its user may not run it now; None if the user may."""
    is_changed: bool = True
    """Whether a table that its last run read has changed; True for schedules that do not depend on it."""


async def schedules_step(services: NodeServices) -> None:
    """Look at the schedules that are due, and start, plan or pause each."""
    now_ms = services.store.time.now_ms()
    for schedule in await services.gate.look_up(lambda: schedules_due(now_ms, limit=AT_ONCE)):
        try:
            await _look_at(services, schedule)
        except LimnosError as error:  # the others are looked at; the next step tries again
            log.warning("a schedule could not be started", pipeline=schedule.pipeline_id, error=error.message)


async def _look_at(services: NodeServices, schedule: Schedule) -> None:
    node = await services.gate.look_up(lambda: node_read(schedule.pipeline_id))
    if node is None:
        return  # dropped; a task deletes the schedule
    due = DuePipeline(
        schedule,
        node.name,
        await _refusal(services, schedule, node=node),
        is_changed=await inputs_changed(services, schedule),
    )
    permit = upkeep_permit(schedule.user, zone=schedule.metalake_id)
    if await services.store.submit(permit, lambda tx: schedule_start(tx, due)):
        STARTS[()] += 1
        services.wake_executor()


async def _refusal(services: NodeServices, schedule: Schedule, *, node: Node) -> str | None:
    """Return why the schedule's user may not run its pipeline now; None if the user may."""
    if not services.rules.access_enabled:
        return None
    if schedule.user_id:
        user = await services.gate.look_up(lambda: principal_by_id_read(schedule.user_id))
        if user is None or user.name != schedule.user:
            return f"user {schedule.user} was removed: another user registers the schedule again"
        if not user.enabled:
            return f"user {schedule.user} is disabled: enable the user, who then resumes the schedule"
    metalake = await services.gate.look_up(lambda: node_read(schedule.metalake_id))
    if metalake is None:
        return None
    ctx = Context(services, Credential(user=schedule.user), "schedule")

    def decide(request_view: RequestView) -> str | None:
        request_view.require_in_metalake_use()
        template, chain = request_view.find_outside(Kind.JOB_TEMPLATE, (node.name,))
        if template is None or template.id != node.id:
            return None
        decision = request_view.decide_for(schedule.user, Action.JOB_RUN, chain)
        return None if decision.allowed else decision.message()

    try:
        return await ctx.read(RequestScope(metalake.name), decide)
    except (NotInUse, NotFound) as error:
        return error.message


def schedule_start(tx: Tx, due: DuePipeline) -> bool:
    """Start a job for a schedule that is due, pause it if its user may not run it, or write when it is due next and why
    nothing is started.

    Returns whether a job was started. Does nothing if the schedule has changed since it was read.
    """
    schedule, now_ms = due.schedule, tx.now_ms
    job = None if schedule.job_id is None else tx.template_jobs.by_id(schedule.job_id)
    is_again = (
        job is not None
        and job.state == FAILED
        and job.message in LOST_MESSAGES
        and schedule.run_due_at is not None
        and schedule.attempts < ATTEMPTS_MAX
    )
    if not is_again and schedule.next_at > now_ms:
        next_at = next_due_ms(schedule.terms, after_ms=now_ms)  # again: a clock that was wrong may have written it
        tx.schedules.plan(schedule, due_at=look_ms(next_at, now_ms=now_ms), next_at=next_at)
        return False
    if tx.schedules.of(schedule.pipeline_id) != schedule:
        return False
    if due.refusal is not None:
        tx.schedules.pause(schedule, reason=due.refusal, name=due.name)
        return False
    if not due.is_changed and not is_again:
        next_at = next_due_ms(schedule.terms, after_ms=now_ms)
        why = f"no run at {due_instant(schedule.next_at)}: no table that the last run read has changed"
        tx.schedules.skip(schedule, due_at=look_ms(next_at, now_ms=now_ms), next_at=next_at, reason=why)
        return False
    if any(run.is_held(now_ms) for run in tx.runs.live_of(schedule.pipeline_id)):
        if tx.schedules.plan(schedule, due_at=now_ms + BUSY_MS, next_at=schedule.next_at):
            _note_late(tx, due)
        return False
    return _start(tx, due, is_again=is_again)


def _note_late(tx: Tx, due: DuePipeline) -> None:
    """Write the change `late` of a schedule at the first look that finds it late: the look before was in time."""
    schedule, late_at = due.schedule, due.schedule.next_at + LATE_MS
    if late_at <= tx.now_ms and schedule.due_at - BUSY_MS < late_at:
        tx.schedules.add_change("late", schedule, name=due.name, detail=f"due {due_instant(schedule.next_at)}")


def _start(tx: Tx, due: DuePipeline, *, is_again: bool) -> bool:
    """Insert the job of a schedule, and record it."""
    schedule, now_ms = due.schedule, tx.now_ms
    run_due_at = schedule.run_due_at if is_again and schedule.run_due_at is not None else schedule.next_at
    next_at = schedule.next_at if is_again else next_due_ms(schedule.terms, after_ms=now_ms)
    due_text = due_instant(run_due_at)
    content = TemplateContent(executable=schedule.terms.file)
    job = tx.template_jobs.create(
        TemplateJob(
            id=0,
            metalake_id=schedule.metalake_id,
            template_id=schedule.pipeline_id,
            uuid=str(uuid4()),
            user=schedule.user,
            user_id=schedule.user_id,
            state=QUEUED,
            holder="",
            beat_at=0,
            lease_ms=0,
            message=None,
            exit_code=None,
            queued_at=now_ms,
            started_at=None,
            ended_at=None,
            owner_id=schedule.user_id or None,
        ),
        conf=msgspec.json.encode({"due": due_text}).decode(),
        work=JobWork(PIPELINE, content).text,
    )
    after = structs.replace(
        schedule,
        job_id=job.id,
        run_due_at=run_due_at,
        attempts=schedule.attempts + 1 if is_again else 1,
        due_at=now_ms,
        next_at=next_at,
    )
    if not tx.schedules.start(schedule, after):
        tx.stale()
    if not is_again:
        _note_late(tx, due)
    tx.note_detail = f"due {due_text}"
    return True


def due_instant(at_ms: int) -> str:
    """Return a due time as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).isoformat().replace("+00:00", "Z")
