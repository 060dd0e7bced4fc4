# SPDX-License-Identifier: Apache-2.0
"""What needs the user, for the first page: failed and held runs, schedules that do not run, tables to maintain,
requests for access and answers to the user's own, refusals of the day, nodes.

Each source is bounded, and one that the caller may not read, or that fails, is left out: the page never depends on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeVar, cast
from urllib.parse import urlencode

import msgspec

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import load
from limnos.model.entities import Node
from limnos.model.errors import LimnosError
from limnos.names import display
from limnos.rooms.console.http.addresses import run_path
from limnos.rooms.console.http.navigation.console_pages import INSPECTION
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import count_text
from limnos.services.activity.audit import audit_read
from limnos.services.identity.presets.access_requests import OpenRequest, access_requests_list
from limnos.services.identity.presets.own_access_requests import own_access_requests
from limnos.services.runs.run_access import RunView
from limnos.services.runs.run_lists import runs_list
from limnos.services.runs.schedules import schedules_stopped
from limnos.services.upkeep.nodes import server_state
from limnos.store.activity.audit import AuditFilter

DAY_MS: Final = 86_400_000
DAYS: Final = 14
RUNS_READ: Final = 200
"""The number of the newest runs that are read; the picture has the days that they cover."""
RECORDS_READ: Final = 1_000
"""The number of the newest audit records of the last day in which refusals are counted."""
CATALOGS_READ: Final = 5
ANSWERS_MS: Final = 7 * DAY_MS
"""How long an answer to a request of the user is on the first page."""
LINES_MAX: Final = 5
"""The number of lines about runs, and of those about schedules."""
_NAMES: Final = 3
_BAR: Final = 14
"""The width of a day in the picture, with its gap."""
_HEIGHT: Final = 40
_FAILED: Final = frozenset({"failed", "lost"})
Part = TypeVar("Part")


class NeedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line about something to look at. `look` and `icon` are those of a chip with the text `what`."""

    what: str
    look: str
    icon: str
    text: str
    href: str
    at_ms: int | None = None
    detail: str = ""


class DayBar(msgspec.Struct, frozen=True, kw_only=True):
    """The bar of a day in a picture: its place, and the heights of all runs and of the failed ones below."""

    x: int
    y: int
    height: int
    bad_y: int
    bad_height: int
    words: str


class HomeNeeds(msgspec.Struct, frozen=True):
    """What needs the user, and the picture of the runs of fourteen days; `bars` is empty without runs."""

    lines: tuple[NeedLine, ...] = ()
    bars: tuple[DayBar, ...] = ()
    picture: str = ""
    runs: tuple[RunView, ...] = ()


class RoomLines(Protocol):
    """Reads the lines of a room."""

    def __call__(
        self, page_request: PageRequest, metalake: str, *, catalogs: Sequence[Node]
    ) -> Awaitable[Sequence[NeedLine]]:
        """Return what needs the user in some catalogs of a metalake."""


async def home_needs(page_request: PageRequest, metalake: str, *, catalogs: Sequence[Node]) -> HomeNeeds:
    """Return what needs the user in a metalake; `catalogs` are those that the user may use."""
    page = await _or_none(
        runs_list(page_request.ctx, metalake=metalake, pipeline=None, state="", before=2**53, limit=RUNS_READ)
    )
    runs = [] if page is None else page[0]
    lines = [
        *_run_lines(page_request, metalake, runs=runs),
        *await _schedule_lines(page_request, metalake),
        *await _room_lines(page_request, metalake, catalogs=catalogs),
        *await _request_lines(page_request, metalake),
        *await _own_request_lines(page_request, metalake),
        *await _refusal_lines(page_request, metalake),
        *await _node_lines(page_request),
    ]
    bars, picture = run_bars(runs, now_ms=page_request.now_ms)
    return HomeNeeds(tuple(lines), bars, picture, tuple(runs))


async def _or_none(reading: Awaitable[Part]) -> Part | None:
    """Await a source. Returns None if the caller may not read it, or it fails."""
    with suppress(LimnosError):
        return await reading
    return None


def _run_lines(page_request: PageRequest, metalake: str, *, runs: Iterable[RunView]) -> Iterable[NeedLine]:
    """Yield lines about held runs, and about pipelines whose newest run failed."""
    seen: set[str] = set()
    lines: list[NeedLine] = []
    for view in runs:
        is_newest = view.pipeline not in seen
        seen.add(view.pipeline)
        state = view.state
        if state != "held" and not (state in _FAILED and is_newest):
            continue
        look, icon = ("warn", "alert") if state == "held" else ("bad", "cross")
        href = page_request.base + run_path(metalake, run=view.run.uuid)
        words = f"The run {view.run.uuid[:8]} of the pipeline {view.pipeline}"
        at_ms = view.run.started_at if view.run.ended_at is None else view.run.ended_at
        lines.append(
            NeedLine(
                what=state, look=look, icon=icon, text=words, href=href, at_ms=at_ms, detail=view.run.message or ""
            )
        )
    return lines[:LINES_MAX]


async def _schedule_lines(page_request: PageRequest, metalake: str) -> list[NeedLine]:
    """Return lines about schedules that are late, or that the server paused."""
    views = await _or_none(schedules_stopped(page_request.ctx, metalake=metalake, limit=LINES_MAX)) or ()
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


async def _room_lines(page_request: PageRequest, metalake: str, *, catalogs: Sequence[Node]) -> list[NeedLine]:
    """Return the lines of the rooms that are on, about the first catalogs."""
    lines: list[NeedLine] = []
    for room in installed_rooms().manifests:
        if room.home and room.name not in page_request.site.rooms_off:
            read = cast("RoomLines", load(room.home))
            lines += await _or_none(read(page_request, metalake, catalogs=catalogs[:CATALOGS_READ])) or ()
    return lines


async def _request_lines(page_request: PageRequest, metalake: str) -> list[NeedLine]:
    """Return a line about the requests for access that the caller may answer."""
    page = await _or_none(access_requests_list(page_request.ctx, metalake))
    requests = page.requests if page is not None else ()
    if page is None or not requests:
        return []
    names = list(dict.fromkeys(each.user for each in requests))
    more = f" and {count_text(len(names) - _NAMES)} more" if len(names) > _NAMES else ""
    least = "at least " if page.following is not None else ""
    count = f"{least}{count_text(len(requests))} request{'' if len(requests) == 1 else 's'} for access"
    return [
        NeedLine(
            what="asked",
            look="warn",
            icon="key",
            text=f"{count}: {', '.join(names[:_NAMES])}{more}",
            href=f"{page_request.base}/requests?{urlencode({'metalake': metalake})}",
            at_ms=requests[0].asked_at,
        )
    ]


async def _own_request_lines(page_request: PageRequest, metalake: str) -> list[NeedLine]:
    """Return lines about the newest answers of the last days to the caller's own requests for access, and one about
    those that are open.
    """
    requests = await _or_none(own_access_requests(page_request.ctx, metalake)) or ()
    href = f"{page_request.base}/requests?{urlencode({'metalake': metalake})}"
    since = page_request.now_ms - ANSWERS_MS
    answers = [(each.request, each.answer) for each in requests if each.answer and each.answer.answered_at > since]
    lines = [
        NeedLine(
            what=answer.answer,
            look="ok" if answer.answer == "granted" else "info",
            icon="key",
            text=f"{answer.answered_by} {answer.answer} your request for {_preset_words(request)}",
            href=href,
            at_ms=answer.answered_at,
            detail=answer.note,
        )
        for request, answer in answers[:_NAMES]
    ]
    if len(answers) > _NAMES:
        text = f"{count_text(len(answers) - _NAMES)} more of your requests were answered"
        lines.append(NeedLine(what="answered", look="info", icon="key", text=text, href=href))
    waiting = [each.request for each in requests if each.answer is None]
    if waiting:
        verb = "request waits" if len(waiting) == 1 else "requests wait"
        names = ", ".join(map(_preset_words, waiting[:_NAMES]))
        more = f" and {count_text(len(waiting) - _NAMES)} more" if len(waiting) > _NAMES else ""
        text = f"{count_text(len(waiting))} {verb} for an answer: {names}{more}"
        lines.append(NeedLine(what="yours", look="info", icon="key", text=text, href=href, at_ms=waiting[0].asked_at))
    return lines


def _preset_words(request: OpenRequest) -> str:
    return f"{request.preset} on {display.render(request.path)}"


async def _refusal_lines(page_request: PageRequest, metalake: str) -> list[NeedLine]:
    """Return a line about the refusals among the newest audit records of the last day that the caller may read."""
    since = page_request.now_ms - DAY_MS
    filters = AuditFilter(since=since)
    page = await _or_none(audit_read(page_request.ctx, metalake, filters=filters, limit=RECORDS_READ))
    refused = [] if page is None else [each for each in page.lines if each.outcome == "refused"]
    if not refused:
        return []
    users = Counter(each.user for each in refused)
    names = ", ".join(f"{user or 'no user'} {count}" for user, count in users.most_common(_NAMES))
    least = "at least " if page is not None and page.more else ""
    text = f"{least}{count_text(len(refused))} refusal{'' if len(refused) == 1 else 's'} in the last day: {names}"
    href = f"{page_request.base}/audit?{urlencode({'metalake': metalake, 'outcome': 'refused'})}"
    return [
        NeedLine(what="refused", look="info", icon="lock", text=text, href=href, at_ms=max(each.at for each in refused))
    ]


async def _node_lines(page_request: PageRequest) -> list[NeedLine]:
    """Return lines about silent nodes and failing background work, for those who may inspect the server."""
    if INSPECTION not in page_request.needs:
        return []
    state = await _or_none(server_state(page_request.ctx))
    if state is None:
        return []
    href = f"{page_request.base}/nodes"
    lines = [
        NeedLine(
            what="silent",
            look="warn",
            icon="alert",
            text=f"The node {each.node.name} sends no heartbeat",
            href=href,
            at_ms=each.node.seen_at,
        )
        for each in state.nodes
        if each.is_silent
    ]
    failing = [each.name for each in state.failures]
    failing += [each.name for line in state.nodes if not line.is_own for each in line.node.failing]
    if failing:
        names = ", ".join(dict.fromkeys(failing))
        lines.append(
            NeedLine(
                what="failing", look="bad", icon="alert", text=f"Background work of the nodes fails: {names}", href=href
            )
        )
    return lines


def run_bars(runs: Sequence[RunView], *, now_ms: int) -> tuple[tuple[DayBar, ...], str]:
    """Return the bars of the last fourteen days, in UTC and the oldest first, and the picture in words."""
    today = now_ms // DAY_MS
    started = [(DAYS - 1 - today + view.run.started_at // DAY_MS, view.state in _FAILED) for view in runs]
    counts, failed = (
        Counter(day for day, is_failed in started if 0 <= day < DAYS and (is_failed or not only))
        for only in (False, True)
    )
    if not counts:
        return (), ""
    most = max(counts.values())
    bars = tuple(_bar(day, counts[day], failed=failed[day], most=most) for day in range(DAYS))
    total, bad = counts.total(), failed.total()
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
