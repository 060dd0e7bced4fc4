# SPDX-License-Identifier: Apache-2.0
"""Schedules of pipelines: state, last start and next due time of each, and buttons that pause and resume it.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.rooms.console.http.frame import Link, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import (
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetPage,
    hidden_fields,
    sheet_response,
)
from limnos.rooms.console.http.tabs import Chip, ChipLook
from limnos.rooms.pipelines.console.pipelines import pipeline_url
from limnos.rooms.pipelines.services.schedules import (
    ScheduleState,
    ScheduleView,
    schedule_pause,
    schedule_state,
    schedules_list,
)

_CHIPS: Final[Mapping[ScheduleState, tuple[ChipLook, str]]] = {
    ScheduleState.PAUSED: ("warn", "alert"),
    ScheduleState.LATE: ("bad", "alert"),
    ScheduleState.FAILED: ("bad", "cross"),
    ScheduleState.IN_PROGRESS: ("info", "ring"),
    ScheduleState.SKIPPED: ("plain", ""),
    ScheduleState.SUCCEEDED: ("ok", "check"),
    ScheduleState.NOT_STARTED: ("plain", ""),
}
_COLUMNS: Final = (
    SheetColumn(text="Pipeline"),
    SheetColumn(text="State"),
    SheetColumn(text="Last start"),
    SheetColumn(text="Next due time"),
    SheetColumn(text="Due at", is_code=True, hides=True),
    SheetColumn(text="By", hides=True),
    SheetColumn(text="Reason", is_long=True),
    SheetColumn(text=""),
)


async def schedules_page(page_request: PageRequest) -> Response:
    """Show the schedules of the pipelines that the user may load."""
    frame = await frame_of(page_request, "Schedules", section="pipelines")
    metalake = frame.metalake
    views = await schedules_list(page_request.ctx, metalake=metalake, count=1)
    sheet = Sheet(
        title="",
        columns=_COLUMNS,
        rows=tuple(_row(page_request, metalake, view=each) for each in views),
        note="No pipeline that you may use has a schedule. Register one with limnos pipeline schedule FILE.",
    )
    page = SheetPage(
        frame=frame,
        title="Schedules",
        icon="run",
        intro=f"Pipelines of {metalake} that the server runs at due times, with the rights of the user who registered"
        " each. A schedule is late if no server has started it a few minutes after its due time.",
        crumbs=(Link("Pipelines", f"{page_request.base}/pipelines?{urlencode({'metalake': metalake})}"),),
        sheets=(sheet,),
    )
    return sheet_response(page_request, page)


def _row(page_request: PageRequest, metalake: str, *, view: ScheduleView) -> tuple[SheetCell, ...]:
    schedule = view.schedule
    state = schedule_state(view, now_ms=page_request.now_ms)
    change_note = " if inputs changed" if schedule.terms.if_changed else ""
    job = "" if view.job is None else f"{page_request.base}/job?{urlencode({'metalake': metalake, 'id': view.job})}"
    return (
        SheetCell(text=view.pipeline, href=pipeline_url(page_request, metalake, name=view.pipeline), is_name=True),
        SheetCell(chips=(Chip(state.value, *_CHIPS[state]),)),
        SheetCell(at_ms=schedule.run_due_at, small=view.job_state or "", href=job),
        SheetCell(moment_ms=None if schedule.paused else schedule.next_at),
        SheetCell(text=f"{schedule.terms.cron} {schedule.terms.time_zone}{change_note}"),
        SheetCell(text=schedule.user),
        SheetCell(text=schedule.reason or ""),
        SheetCell(form=_pause_form(page_request, metalake, view=view)),
    )


def _pause_form(page_request: PageRequest, metalake: str, *, view: ScheduleView) -> FormView | None:
    """Return the button that pauses a schedule; for its own user, who alone may resume it, the one that resumes it."""
    schedule = view.schedule
    if schedule.paused and schedule.user != page_request.user:
        return None
    word, then = ("Resume", "false") if schedule.paused else ("Pause", "true")
    return FormView(
        action=f"{page_request.base}/schedules/pause",
        button=word,
        label=f"{word} the schedule of {view.pipeline}",
        fields=hidden_fields(metalake=metalake, pipeline=view.pipeline, paused=then),
        is_inline=True,
    )


async def pause(page_request: PageRequest) -> Response:
    """Pause a schedule, or resume it, and redirect to the list."""
    fields = await page_request.form()
    metalake, pipeline, paused = (fields.get(name, "") for name in ("metalake", "pipeline", "paused"))
    if not metalake or not pipeline or paused not in {"true", "false"}:
        raise BadRequest("The form must have a metalake, a pipeline, and 'paused' as true or false")
    view = await schedule_pause(page_request.ctx, metalake=metalake, pipeline=pipeline, is_paused=paused == "true")
    word = "paused" if view.schedule.paused else "resumed"
    query = {"metalake": metalake, "done": f"The schedule of {pipeline} is {word}"}
    return redirect(f"{page_request.base}/schedules?{urlencode(query)}")


ROUTES = (
    ConsoleRoute(
        method="GET", path="/schedules", handler=schedules_page, operation="schedules-page", query=("metalake", "done")
    ),
    ConsoleRoute(method="POST", path="/schedules/pause", handler=pause, operation="pause-schedule-from-console"),
)
