# SPDX-License-Identifier: Apache-2.0
"""Schedules of pipelines: register, load, list, pause, resume, delete.

Must not know any wire format, nor the content of a pipeline's files. A schedule belongs to its pipeline, and runs with
the rights that its user has at the time of each run (`schedule_starts`). Decision record 0304.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.schedule_files import files_encode
from limnos.model.decisions import Decision
from limnos.model.entities import Node
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.jobs import ENDED, SUCCEEDED
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.schedules import Schedule, ScheduleTerms
from limnos.rooms.pipelines.services.due_times import LATE_MS, calendar_of, look_ms, next_due_ms, terms_check
from limnos.services.identity.tokens import origin_of, require_minting
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.job_rules import JOB_RULES
from limnos.services.runs.pipelines import pipeline_find, pipelines_list, require_pipeline_type
from limnos.services.runs.run_access import caller_identity, now_ms_of
from limnos.store.activity.schedules import schedule_read, schedules_read
from limnos.store.activity.template_jobs import job_by_id_read
from limnos.store.tx import Tx

COUNT_MAX: Final = 20
"""The maximum number of due times of a schedule in an answer."""
CALENDAR_MAX: Final = 200
"""The maximum number of due times of all schedules in a list; each has one at least."""


_PAUSED_BY: Final = "paused by "
"""The first words of the reason of a schedule that a user paused."""


class ScheduleView(NamedTuple):
    """A schedule with the name of its pipeline, its next due times, and the UUID and state of its last job, which is
    None before the first start and after the job's record was deleted.
    """

    schedule: Schedule
    pipeline: str
    calendar: tuple[int, ...]
    job: str | None = None
    job_state: str | None = None


class ScheduleState(Enum):
    """The state of a schedule, or the reason why it does not run, in the words of lists."""

    PAUSED = "paused"
    LATE = "late"
    """No node has looked at it for a few minutes after its due time: no server with jobs is running, or it is busy."""
    IN_PROGRESS = "in progress"
    FAILED = "failed"
    SKIPPED = "skipped"
    SUCCEEDED = "succeeded"
    NOT_STARTED = "not started yet"


class SchedulePut(msgspec.Struct, frozen=True, kw_only=True):
    """The command to register the schedule of a pipeline. `before` is the user of the schedule that it replaces."""

    pipeline: Node
    terms: ScheduleTerms
    files: bytes
    user: str
    user_id: int
    trust: str
    before: tuple[str, int] | None


class ScheduleChange(msgspec.Struct, frozen=True, kw_only=True):
    """The command to pause, resume or delete a schedule."""

    pipeline: Node
    user: tuple[str, int]


async def schedule_put(
    ctx: Context, *, metalake: str, pipeline: str, terms: ScheduleTerms, files: Mapping[str, bytes]
) -> ScheduleView:
    """Register the schedule of a pipeline, on behalf of the caller. It replaces an earlier one, which needs the
    ownership of the pipeline if another user registered it.

    Raises BadRequest for invalid terms or files, NotFound, NotInUse, PermissionDenied, UnsupportedOperation if the
    server runs no pipelines.
    """
    text = files_encode(files, file=terms.file)
    terms_check(terms)
    former_schedule = await _schedule_of(ctx, metalake, pipeline=pipeline)

    def decide(request_view: RequestView) -> Permit[SchedulePut]:
        request_view.require_in_metalake_use()
        result = request_view.look_up(Kind.JOB_TEMPLATE, (pipeline,), Action.JOB_RUN)
        node = require_pipeline_type(result.entity)
        require_minting(ctx, request_view)
        user, user_id = caller_identity(request_view)
        previous = None if former_schedule is None else (former_schedule.user, former_schedule.user_id)
        if previous not in (None, (user, user_id)):
            _, chain = request_view.find_outside(Kind.JOB_TEMPLATE, (pipeline,))
            request_view.require(Action.JOB_TEMPLATE_ALTER, chain)
        JOB_RULES.of(ctx.services).require_pipelines()
        command = SchedulePut(
            pipeline=node,
            terms=terms,
            files=text,
            user=user,
            user_id=user_id,
            trust=origin_of(ctx, request_view, user=user).trust.value,
            before=previous,
        )
        return request_view.permit(command, result.decision)

    schedule = await ctx.write(RequestScope(metalake), decide, schedule_insert)
    return _view(schedule, pipeline, now_ms=now_ms_of(ctx), count=1)


def schedule_insert(tx: Tx, permit: Permit[SchedulePut]) -> Schedule:
    """Insert the schedule, or replace the earlier one. Returns it."""
    command = permit.command
    node = tx.nodes.confirm(command.pipeline)
    _confirm(tx, node, user=command.before)
    next_at = next_due_ms(command.terms, after_ms=tx.now_ms)
    schedule = Schedule(
        pipeline_id=node.id,
        metalake_id=node.parent_id,
        user=command.user,
        user_id=command.user_id,
        trust=command.trust,
        terms=command.terms,
        created_at=tx.now_ms,
        due_at=look_ms(next_at, now_ms=tx.now_ms),
        next_at=next_at,
        paused=False,
        reason=None,
        job_id=None,
        run_due_at=None,
        attempts=0,
    )
    tx.schedules.put(schedule, files=command.files, name=node.name)
    return schedule


async def schedule_load(ctx: Context, *, metalake: str, pipeline: str, count: int) -> ScheduleView:
    """Return the schedule of a pipeline with its next `count` due times. Raises NotFound, also without a schedule,
    NotInUse, PermissionDenied.
    """
    schedule = await _schedule_of(ctx, metalake, pipeline=pipeline)
    return await _with_job(ctx, _view(_require(schedule, pipeline), pipeline, now_ms=now_ms_of(ctx), count=count))


async def schedules_list(ctx: Context, *, metalake: str, count: int) -> list[ScheduleView]:
    """Return the schedules of the pipelines that the caller may load, by name, each with its next `count` due times.

    Raises NotFound, NotInUse, PermissionDenied.
    """
    return [await _with_job(ctx, each) for each in await _views(ctx, metalake, count=count)]


async def schedules_stopped(ctx: Context, *, metalake: str, limit: int) -> list[ScheduleView]:
    """Return at most `limit` of the schedules that the caller may load and that do not run although no user paused
    them: the server paused them, or they are late. Raises NotFound, NotInUse, PermissionDenied.
    """
    now_ms = now_ms_of(ctx)
    stopped = (ScheduleState.PAUSED, ScheduleState.LATE)
    views = [each for each in await _views(ctx, metalake, count=1) if schedule_state(each, now_ms=now_ms) in stopped]
    by_server = [each for each in views if not (each.schedule.reason or "").startswith(_PAUSED_BY)][:limit]
    with_jobs = [await _with_job(ctx, each) for each in by_server]
    return [each for each in with_jobs if schedule_state(each, now_ms=now_ms) in stopped]


async def _views(ctx: Context, metalake: str, *, count: int) -> list[ScheduleView]:
    """Return the schedules of the pipelines that the caller may load, by name, without their jobs."""
    metalake_id = await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake.id)
    rows = {each.pipeline_id: each for each in await ctx.look_up(lambda: schedules_read(metalake_id))}
    versions = await ctx.read(RequestScope(metalake), pipelines_list)
    now_ms = now_ms_of(ctx)
    count = min(count, max(1, CALENDAR_MAX // max(1, len(rows))))
    return [
        _view(rows[each.node.id], each.node.name, now_ms=now_ms, count=count)
        for each in versions
        if each.node.id in rows
    ]


def schedule_state(view: ScheduleView, *, now_ms: int) -> ScheduleState:
    """Return the state of a schedule at the time `now_ms`."""
    schedule = view.schedule
    if schedule.paused:
        return ScheduleState.PAUSED
    if view.job_state is not None and view.job_state not in ENDED:
        return ScheduleState.IN_PROGRESS
    if schedule.next_at < now_ms - LATE_MS:
        return ScheduleState.LATE
    if schedule.reason is not None:
        return ScheduleState.SKIPPED
    if view.job_state is None:
        return ScheduleState.NOT_STARTED
    return ScheduleState.SUCCEEDED if view.job_state == SUCCEEDED else ScheduleState.FAILED


async def schedule_pause(ctx: Context, *, metalake: str, pipeline: str, is_paused: bool) -> ScheduleView:
    """Pause a schedule, or resume it with its next due time: what it missed is not run. A paused or running one is
    not changed.

    The schedule's user may do both, the owners of its pipeline and of the metalake may pause it. Raises NotFound,
    NotInUse, PermissionDenied, and to resume it UnsupportedOperation if the server runs no pipelines.
    """
    schedule = _require(await _schedule_of(ctx, metalake, pipeline=pipeline), pipeline)

    def decide(request_view: RequestView) -> Permit[ScheduleChange]:
        if is_paused:
            return _decide_change(request_view, pipeline, schedule=schedule)
        request_view.require_in_metalake_use()
        result = request_view.look_up(Kind.JOB_TEMPLATE, (pipeline,), Action.JOB_RUN)
        if caller_identity(request_view) != (schedule.user, schedule.user_id):
            raise PermissionDenied(
                f"The schedule of {pipeline} runs with the rights of user {schedule.user}, who alone may resume it:"
                " register your own with 'limnos pipeline schedule FILE'"
            )
        JOB_RULES.of(ctx.services).require_pipelines()
        return request_view.permit(_change(result.entity, schedule), result.decision)

    has_changed = await ctx.write(RequestScope(metalake), decide, _pause if is_paused else _resume)
    return _view(has_changed, pipeline, now_ms=now_ms_of(ctx), count=1)


async def schedule_delete(ctx: Context, *, metalake: str, pipeline: str) -> None:
    """Delete a schedule with its files; its user and the owners of the pipeline and the metalake may. A job that waits
    or runs goes on. Raises NotFound, NotInUse, PermissionDenied.
    """
    schedule = _require(await _schedule_of(ctx, metalake, pipeline=pipeline), pipeline)

    def decide(request_view: RequestView) -> Permit[ScheduleChange]:
        return _decide_change(request_view, pipeline, schedule=schedule)

    await ctx.write(RequestScope(metalake), decide, _delete)


def _decide_change(request_view: RequestView, pipeline: str, *, schedule: Schedule) -> Permit[ScheduleChange]:
    """Authorize the pause or the deletion of a schedule."""
    request_view.require_in_metalake_use()
    node = pipeline_find(request_view, pipeline).node
    is_own = caller_identity(request_view) == (schedule.user, schedule.user_id)
    action = Action.JOB_TEMPLATE_LOAD if is_own else Action.JOB_TEMPLATE_ALTER
    decision: Decision = request_view.look_up(Kind.JOB_TEMPLATE, (pipeline,), action).decision
    return request_view.permit(_change(node, schedule), decision)


def _change(node: Node, schedule: Schedule) -> ScheduleChange:
    return ScheduleChange(pipeline=node, user=(schedule.user, schedule.user_id))


def _confirm(tx: Tx, node: Node, *, user: tuple[str, int] | None) -> Schedule | None:
    """Read the schedule again. Raises StalePermit if its user is not the one of the decision; None for no schedule."""
    schedule = tx.schedules.of(node.id)
    if (None if schedule is None else (schedule.user, schedule.user_id)) != user:
        tx.stale()
    return schedule


def _pause(tx: Tx, permit: Permit[ScheduleChange]) -> Schedule:
    node = tx.nodes.confirm(permit.command.pipeline)
    schedule = _existing(tx, permit.command, node=node)
    tx.schedules.pause(schedule, reason=f"{_PAUSED_BY}{tx.actor}", name=node.name)
    return tx.schedules.of(node.id) or schedule


def _resume(tx: Tx, permit: Permit[ScheduleChange]) -> Schedule:
    node = tx.nodes.confirm(permit.command.pipeline)
    schedule = _existing(tx, permit.command, node=node)
    next_at = next_due_ms(schedule.terms, after_ms=tx.now_ms)
    tx.schedules.resume(schedule, due_at=look_ms(next_at, now_ms=tx.now_ms), next_at=next_at, name=node.name)
    return tx.schedules.of(node.id) or schedule


def _delete(tx: Tx, permit: Permit[ScheduleChange]) -> None:
    node = tx.nodes.confirm(permit.command.pipeline)
    tx.schedules.drop(_existing(tx, permit.command, node=node), name=node.name)


def _existing(tx: Tx, command: ScheduleChange, *, node: Node) -> Schedule:
    schedule = _confirm(tx, node, user=command.user)
    if schedule is None:
        tx.stale()
    return schedule


async def _schedule_of(ctx: Context, metalake: str, *, pipeline: str) -> Schedule | None:
    """Read the schedule of a pipeline that the caller may load; None without a schedule."""
    version = await ctx.read(RequestScope(metalake), lambda request_view: pipeline_find(request_view, pipeline))
    return await ctx.look_up(lambda: schedule_read(version.node.id))


def _require(schedule: Schedule | None, pipeline: str) -> Schedule:
    if schedule is None:
        raise NotFound(
            f"Pipeline {pipeline} has no schedule: register one with 'limnos pipeline schedule FILE'", kind="schedule"
        )
    return schedule


def _view(schedule: Schedule, pipeline: str, *, now_ms: int, count: int) -> ScheduleView:
    calendar = () if schedule.paused else calendar_of(schedule.terms, after_ms=now_ms, count=count)
    return ScheduleView(schedule=schedule, pipeline=pipeline, calendar=calendar)


async def _with_job(ctx: Context, view: ScheduleView) -> ScheduleView:
    job_id = view.schedule.job_id
    job = None if job_id is None else await ctx.look_up(lambda: job_by_id_read(job_id))
    return view if job is None else view._replace(job=job.uuid, job_state=job.display_state(now_ms_of(ctx)))
