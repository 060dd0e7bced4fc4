# SPDX-License-Identifier: Apache-2.0
"""What needs the user, for the first page: what rooms say (runs, schedules, tables to maintain), requests for access
and answers to the user's own, refusals of the day, nodes.

Each source is bounded, and one that the caller may not read, or that fails, is left out: the page never depends on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, Protocol, TypeVar, cast
from urllib.parse import urlencode

import msgspec

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import load
from limnos.model.entities import Node
from limnos.model.errors import LimnosError
from limnos.names import display
from limnos.rooms.console.http.navigation.console_pages import INSPECTION
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import count_text
from limnos.rooms.console.http.tabs import ChipLook
from limnos.services.activity.audit import audit_read
from limnos.services.identity.presets.access_requests import OpenRequest, access_requests_list
from limnos.services.identity.presets.own_access_requests import own_access_requests
from limnos.services.upkeep.nodes import server_state
from limnos.store.activity.audit import AuditFilter

DAY_MS: Final = 86_400_000
RECORDS_READ: Final = 1_000
"""The number of the newest audit records of the last day in which refusals are counted."""
CATALOGS_READ: Final = 5
ANSWERS_MS: Final = 7 * DAY_MS
"""How long an answer to a request of the user is on the first page."""
_NAMES: Final = 3
Part = TypeVar("Part")


class NeedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line about something to look at. `look` and `icon` are those of a chip with the text `what`."""

    what: str
    look: ChipLook
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
    """What needs the user, on the whole page or by one room.

    `bars` are a picture of the days, and `picture` says it in words; both are empty without a picture. `runs` are the
    names of the pipelines of runs, by the id of the run.
    """

    lines: tuple[NeedLine, ...] = ()
    bars: tuple[DayBar, ...] = ()
    picture: str = ""
    runs: Mapping[str, str] = MappingProxyType({})


class RoomNeeds(Protocol):
    """Reads what needs the user by a room."""

    def __call__(self, page_request: PageRequest, metalake: str, *, catalogs: Sequence[Node]) -> Awaitable[HomeNeeds]:
        """Return the lines for the user about some catalogs of a metalake."""


async def home_needs(page_request: PageRequest, metalake: str, *, catalogs: Sequence[Node]) -> HomeNeeds:
    """Return the lines for the user about a metalake; `catalogs` are those that the user may use."""
    rooms = await _room_needs(page_request, metalake, catalogs=catalogs)
    lines = [
        *(line for each in rooms for line in each.lines),
        *await _request_lines(page_request, metalake),
        *await _own_request_lines(page_request, metalake),
        *await _refusal_lines(page_request, metalake),
        *await _node_lines(page_request),
    ]
    drawn = next((each for each in rooms if each.bars), HomeNeeds())
    runs = {run: pipeline for each in rooms for run, pipeline in each.runs.items()}
    return HomeNeeds(tuple(lines), drawn.bars, drawn.picture, runs)


async def _none_on_refusal(reading: Awaitable[Part]) -> Part | None:
    """Await a source. Returns None if the caller may not read it, or it fails."""
    with suppress(LimnosError):
        return await reading
    return None


async def _room_needs(page_request: PageRequest, metalake: str, *, catalogs: Sequence[Node]) -> list[HomeNeeds]:
    """Return the lines of rooms about the first catalogs."""
    entries = sorted(
        (entry.place, entry.needs)
        for room in installed_rooms().manifests
        if room.name not in page_request.site.rooms_off
        for entry in room.home
    )
    readings = (cast("RoomNeeds", load(needs)) for _, needs in entries)
    parts = [
        await _none_on_refusal(read(page_request, metalake, catalogs=catalogs[:CATALOGS_READ])) for read in readings
    ]
    return [part for part in parts if part is not None]


async def _request_lines(page_request: PageRequest, metalake: str) -> list[NeedLine]:
    """Return a line about the requests for access that the caller may answer."""
    page = await _none_on_refusal(access_requests_list(page_request.ctx, metalake))
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
    requests = await _none_on_refusal(own_access_requests(page_request.ctx, metalake)) or ()
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
    page = await _none_on_refusal(audit_read(page_request.ctx, metalake, filters=filters, limit=RECORDS_READ))
    refused_lines = [] if page is None else [each for each in page.lines if each.outcome == "refused"]
    if not refused_lines:
        return []
    users = Counter(each.user for each in refused_lines)
    names = ", ".join(f"{user or 'no user'} {count}" for user, count in users.most_common(_NAMES))
    least = "at least " if page is not None and page.more else ""
    count = len(refused_lines)
    text = f"{least}{count_text(count)} refusal{'' if count == 1 else 's'} in the last day: {names}"
    href = f"{page_request.base}/audit?{urlencode({'metalake': metalake, 'outcome': 'refused'})}"
    return [
        NeedLine(
            what="refused", look="info", icon="lock", text=text, href=href, at_ms=max(each.at for each in refused_lines)
        )
    ]


async def _node_lines(page_request: PageRequest) -> list[NeedLine]:
    """Return lines about silent nodes and failing background work, for those who may inspect the server."""
    if INSPECTION not in page_request.needs:
        return []
    state = await _none_on_refusal(server_state(page_request.ctx))
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
