# SPDX-License-Identifier: Apache-2.0
"""The audit page: actions with their users and access decisions, with filters. An object's activity is the same page,
filtered.

Users who may not read all records see those of their own actions.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.http.times import moment_of
from limnos.model.audit import OUTCOMES, AuditRecord
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.rooms.console.http.frame import Frame, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.services.activity.audit import audit_latest
from limnos.store.activity.audit import NEWEST, AuditFilter, AuditMoment

LINES: Final = 100
_KINDS: Final = frozenset(kind.word.rpartition("_")[2] for kind in Kind)
"""The last words of the names of kinds."""
_FIELDS: Final = ("user", "path", "action", "outcome", "request", "since", "until")


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """An audit record, formatted for the page. Each `…_href` is the URL of the records with that value."""

    at_ms: int
    user: str
    user_href: str
    words: str
    kind: str
    words_href: str
    detail: str
    """Details that have no column, such as the privileges of a grant."""
    outcome: str
    look: str
    path: str
    path_href: str
    request: str
    request_href: str
    client: str


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the audit page. `following` is the URL of the page with older records; empty at the end. `fault` is
    what is wrong with the filter; empty for a valid one.
    """

    frame: Frame
    filters: dict[str, str]
    outcomes: tuple[str, ...]
    lines: tuple[AuditLine, ...]
    following: str
    fault: str = ""


async def audit_page(page_request: PageRequest) -> Response:
    """Show the audit records of a metalake that the caller may read, the newest first.

    A wrong filter stays in its form, with what is wrong.
    """
    frame = await frame_of(page_request, "Audit", section="audit")
    filters = {name: (page_request.request.query(name) or "").strip() for name in _FIELDS}
    try:
        audit_filter, before = _filter_of(filters), _moment_of(page_request)
        page = await audit_latest(page_request.ctx, frame.metalake, filters=audit_filter, before=before, limit=LINES)
    except BadRequest as error:
        wrong = AuditPage(
            frame=frame, filters=filters, outcomes=tuple(OUTCOMES), lines=(), following="", fault=error.message
        )
        return html_response(page_request.request, render("audit.html", wrong), status=400)
    records = page.lines
    lines = tuple(_line(page_request, frame.metalake, record=each) for each in records)
    following = ""
    if page.more:
        last = f"{records[-1].at}-{records[-1].id}"
        following = _address(page_request, frame.metalake, filters=filters | {"before": last})
    return html_response(
        page_request.request,
        render(
            "audit.html",
            AuditPage(frame=frame, filters=filters, outcomes=tuple(OUTCOMES), lines=lines, following=following),
        ),
    )


def _moment_of(page_request: PageRequest) -> AuditMoment:
    """Return the position before which the page's records are. Raises BadRequest for an address that is no page."""
    text = page_request.request.query("before") or ""
    if not text:
        return NEWEST
    numbers = text.split("-")
    if len(numbers) != 2 or not all(each.isascii() and each.isdigit() and len(each) <= 18 for each in numbers):
        raise BadRequest("This is not a page of the audit: start at the newest record")
    return AuditMoment(*map(int, numbers))


def _filter_of(filters: dict[str, str]) -> AuditFilter:
    if filters["outcome"] and filters["outcome"] not in OUTCOMES:
        raise BadRequest(f"Outcomes are {', '.join(OUTCOMES)}")
    return AuditFilter(
        user=filters["user"] or None,
        path=filters["path"] or None,
        action=_action_of(filters["action"]) or None,
        outcome=filters["outcome"] or None,
        request_id=filters["request"] or None,
        since=_moment(filters["since"]),
        until=_moment(filters["until"]),
    )


def _action_of(text: str) -> str:
    """Convert an action's label on the page, such as `drop table`, to its name in audit records (`drop`)."""
    words = text.lower().split()
    if len(words) > 1 and words[-1] in _KINDS:
        words.pop()
    return "_".join(words)


def _moment(text: str) -> int | None:
    if not text:
        return None
    moment = moment_of(text)
    if moment is None:
        raise BadRequest("Write a time as 2026-11-21 or 2026-11-21T18:00")
    return moment


def _address(page_request: PageRequest, metalake: str, *, filters: dict[str, str]) -> str:
    parameters = {"metalake": metalake} | {name: value for name, value in filters.items() if value}
    return f"{page_request.base}/audit?{urlencode(parameters)}"


def _line(page_request: PageRequest, metalake: str, *, record: AuditRecord) -> AuditLine:
    words = record.change or record.action or record.operation
    look = {"refused": "bad", "failed": "warn"}.get(record.outcome, "ok")
    return AuditLine(
        at_ms=record.at,
        user=record.user,
        user_href=_address(page_request, metalake, filters={"user": record.user}),
        words=words.replace("_", " "),
        kind="" if words.startswith(f"{record.kind}_") else record.kind.replace("_", " "),
        words_href=_address(page_request, metalake, filters={"action": words}),
        detail=record.detail,
        outcome=record.outcome,
        look=look,
        path=record.path,
        path_href=_address(page_request, metalake, filters={"path": record.path}),
        request=record.request_id,
        request_href=_address(page_request, metalake, filters={"request": record.request_id}),
        client=record.client,
    )


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/audit",
        handler=audit_page,
        operation="audit-page",
        query=("metalake", "user", "path", "action", "outcome", "request", "since", "until", "before"),
    ),
)
