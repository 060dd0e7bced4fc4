# SPDX-License-Identifier: Apache-2.0
"""What needs the user about pipelines, for the first page of the console: failed and held runs, schedules that do not
run, and a picture of the runs of fourteen days.

Each source is bounded, and one that the caller may not read, or that fails, is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

from limnos.model.entities import Node
from limnos.model.errors import LimnosError
from limnos.rooms.console.http.addresses import run_path
from limnos.rooms.console.http.home_needs import DAY_MS, DayBar, HomeNeeds, NeedLine
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import count_text
from limnos.rooms.pipelines.console.states import state_chip
from limnos.rooms.pipelines.services.schedules import ScheduleView, schedules_stopped
from limnos.services.runs.run_access import RunView
from limnos.services.runs.run_lists import runs_list

DAYS: Final = 14
RUNS_READ: Final = 200
"""The number of the newest runs that are read; the picture has the days that they cover."""
LINES_MAX: Final = 5
"""The number of lines about runs, and of those about schedules."""
_BAR: Final = 14
"""The width of a day in the picture, with its gap."""
_HEIGHT: Final = 40
_FAILED: Final = frozenset({"failed", "lost"})


async def pipeline_needs(page_request: PageRequest, metalake: str, *, catalogs: Sequence[Node]) -> HomeNeeds:
    """Return lines about runs and schedules of a metalake, and the picture of its newest runs."""
    del catalogs
    runs: list[RunView] = []
    with suppress(LimnosError):
        runs, _ = await runs_list(
            page_request.ctx, metalake=metalake, pipeline=None, state="", before=2**53, limit=RUNS_READ
        )
    lines = (*_run_lines(page_request, metalake, runs=runs), *await _schedule_lines(page_request, metalake))
    bars, picture = run_bars(runs, now_ms=page_request.now_ms)
    return HomeNeeds(lines, bars, picture, {each.run.uuid: each.pipeline for each in runs})


def _run_lines(page_request: PageRequest, metalake: str, *, runs: Sequence[RunView]) -> Sequence[NeedLine]:
    """Return lines about held runs, and about pipelines whose newest run failed."""
    seen_pipelines: set[str] = set()
    lines: list[NeedLine] = []
    for view in runs:
        is_newest = view.pipeline not in seen_pipelines
        seen_pipelines.add(view.pipeline)
        state = view.state
        if state != "held" and not (state in _FAILED and is_newest):
            continue
        chip = state_chip(state)
        href = page_request.base + run_path(metalake, run=view.run.uuid)
        words = f"The run {view.run.uuid[:8]} of the pipeline {view.pipeline}"
        at_ms = view.run.started_at if view.run.ended_at is None else view.run.ended_at
        lines.append(
            NeedLine(
                what=chip.text,
                look=chip.look,
                icon=chip.icon,
                text=words,
                href=href,
                at_ms=at_ms,
                detail=view.run.message or "",
            )
        )
    return lines[:LINES_MAX]


async def _schedule_lines(page_request: PageRequest, metalake: str) -> list[NeedLine]:
    """Return lines about schedules that are late, or that the server paused."""
    views: Sequence[ScheduleView] = ()
    with suppress(LimnosError):
        views = await schedules_stopped(page_request.ctx, metalake=metalake, limit=LINES_MAX)
    href = f"{page_request.base}/schedules?{urlencode({'metalake': metalake})}"
    return [
        NeedLine(
            what="paused" if view.schedule.paused else "late",
            look="warn" if view.schedule.paused else "bad",
            icon="alert",
            text=f"The schedule of the pipeline {view.pipeline}",
            href=href,
            at_ms=None if view.schedule.paused else view.schedule.next_at,
            detail=view.schedule.reason or "",
        )
        for view in views
    ]


def run_bars(runs: Sequence[RunView], *, now_ms: int) -> tuple[tuple[DayBar, ...], str]:
    """Return the bars of the last fourteen days, in UTC and the oldest first, and the picture in words."""
    today = now_ms // DAY_MS
    started = [(DAYS - 1 - today + view.run.started_at // DAY_MS, view.state in _FAILED) for view in runs]
    counts, failed_counts = (
        Counter(day for day, is_failed in started if 0 <= day < DAYS and (is_failed or not only))
        for only in (False, True)
    )
    if not counts:
        return (), ""
    most = max(counts.values())
    bars = tuple(_bar(day, counts[day], failed=failed_counts[day], most=most) for day in range(DAYS))
    total, bad = counts.total(), failed_counts.total()
    more = "the latest " if len(runs) == RUNS_READ else ""
    return bars, f"{more}{count_text(total)} run{'' if total == 1 else 's'} in {DAYS} days, {count_text(bad)} failed"


def _bar(day: int, count: int, *, failed: int, most: int) -> DayBar:
    height = max(2, round(_HEIGHT * count / most)) if count else 1
    bad = max(2, round(_HEIGHT * failed / most)) if failed else 0
    ago = DAYS - 1 - day
    when = "today" if not ago else f"{ago} day{'' if ago == 1 else 's'} ago"
    return DayBar(
        x=day * _BAR,
        y=_HEIGHT - height,
        height=height,
        bad_y=_HEIGHT - bad,
        bad_height=bad,
        words=f"{when}: {count_text(count)} run{'' if count == 1 else 's'}, {count_text(failed)} failed",
    )
