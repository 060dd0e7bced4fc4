# SPDX-License-Identifier: Apache-2.0
"""Schedules of pipelines: register, list, load, pause, resume and delete them. Has no business rules."""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.model.schedules import ScheduleTerms
from limnos.rooms.pipelines.services import schedules
from limnos.rooms.pipelines.services.schedules import COUNT_MAX, ScheduleView
from limnos.services.request.context import Context

_ONE = "/api/limnos/v1/metalakes/{m}/pipelines/{p}/schedule"


class SchedulePut(AdminRequestBody, frozen=True, kw_only=True):
    """When a pipeline is due, with its files, which are in Base64. `file` is the pipeline's file among them. With
    `if_changed`, a due time starts nothing while the tables that the last run read are as they were.
    """

    file: str
    files: dict[str, bytes]
    cron: str
    time_zone: str = "UTC"
    if_changed: bool = False


class ScheduleState(AdminRequestBody, frozen=True):
    """Whether a schedule is to be paused, or resumed."""

    paused: bool


async def schedule_put(request: Request, ctx: Context) -> Response:
    """Register the schedule of a pipeline, which runs with the caller's rights."""
    metalake, pipeline = names_of(request)
    body = Request.decode(await request.body(), SchedulePut)
    terms = ScheduleTerms(file=body.file, cron=body.cron, time_zone=body.time_zone, if_changed=body.if_changed)
    view = await schedules.schedule_put(ctx, metalake=metalake, pipeline=pipeline, terms=terms, files=body.files)
    return json_response(_encode(view))


async def schedule_load(request: Request, ctx: Context) -> Response:
    """Return the schedule of a pipeline with its next due times, `count` of them."""
    metalake, pipeline = names_of(request)
    view = await schedules.schedule_load(ctx, metalake=metalake, pipeline=pipeline, count=_count(request))
    return json_response(_encode(view))


async def schedules_list(request: Request, ctx: Context) -> Response:
    """Return the schedules of the pipelines that the caller may load, each with its next `count` due times."""
    (metalake,) = names_of(request)
    views = await schedules.schedules_list(ctx, metalake=metalake, count=_count(request))
    return json_response({"schedules": [_encode(each) for each in views]})


async def schedule_set(request: Request, ctx: Context) -> Response:
    """Pause the schedule of a pipeline, or resume it."""
    metalake, pipeline = names_of(request)
    body = Request.decode(await request.body(), ScheduleState)
    view = await schedules.schedule_pause(ctx, metalake=metalake, pipeline=pipeline, is_paused=body.paused)
    return json_response(_encode(view))


async def schedule_delete(request: Request, ctx: Context) -> Response:
    """Delete the schedule of a pipeline."""
    metalake, pipeline = names_of(request)
    await schedules.schedule_delete(ctx, metalake=metalake, pipeline=pipeline)
    return json_response({"deleted": pipeline})


def _count(request: Request) -> int:
    text = request.query("count")
    count = 1 if text is None else number_of(text)
    if count is None or not 0 < count <= COUNT_MAX:
        raise BadRequest(f"Parameter count is the number of due times: give 1 to {COUNT_MAX}")
    return count


def _encode(view: ScheduleView) -> dict[str, object]:
    schedule, terms = view.schedule, view.schedule.terms
    return {
        "pipeline": view.pipeline,
        "user": schedule.user,
        "paused": schedule.paused,
        "reason": schedule.reason,
        "file": terms.file,
        "cron": terms.cron,
        "time_zone": terms.time_zone,
        "if_changed": terms.if_changed,
        "created_at": instant(schedule.created_at),
        "next": [instant(each) for each in view.calendar],
        "last_due_at": instant(schedule.run_due_at),
        "attempts": schedule.attempts,
        "job": view.job,
        "job_state": view.job_state,
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/schedules",
        handler=schedules_list,
        operation="list-schedules",
        query=("count",),
    ),
    Route(
        method="PUT",
        path=_ONE,
        handler=schedule_put,
        operation="put-schedule",
        asks=(Action.JOB_RUN, Action.JOB_TEMPLATE_ALTER),
    ),
    Route(method="GET", path=_ONE, handler=schedule_load, operation="load-schedule", query=("count",)),
    Route(method="POST", path=_ONE, handler=schedule_set, operation="set-schedule"),
    Route(method="DELETE", path=_ONE, handler=schedule_delete, operation="delete-schedule"),
)
