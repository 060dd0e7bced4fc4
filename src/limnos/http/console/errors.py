"""Errors as pages: refusals with their reasons, missing objects, failures.

May import `model`, `names`, the shared modules of `limnos.http` and of this package. Must not know resources. A page
reveals no more than the admin API's error body.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import msgspec

from limnos.http.console.addresses import KINDS
from limnos.http.console.answers import html_response
from limnos.http.console.frame import Frame, frame_of, plain_frame
from limnos.http.console.look import render
from limnos.http.console.page_requests import PageRequest
from limnos.http.error_statuses import status_of
from limnos.http.refusals import hidden_metalake, unescape_percent, visible_decision_json
from limnos.http.response import Response
from limnos.model.errors import LimnosError, NotFound, ServiceUnavailable
from limnos.names.errors import InvalidName

_TRASHED: Final = frozenset({*KINDS, "object"}) - {"catalog"}
"""What a missing object in a catalog is called: the page of each names the trash."""
_TITLES: Final = {
    400: "This request is not valid",
    401: "Sign in",
    403: "You may not do this",
    404: "There is no such page or object",
    405: "This operation is not supported",
    409: "This conflicts with the present state",
    429: "Too many attempts",
    503: "Not available at the moment",
}


class DecisionFactorView(msgspec.Struct, frozen=True):
    """One reason of a decision: whether it supports the access, the privilege or role, and the object."""

    is_missing: bool
    words: str
    on: str
    role: str


class ErrorPage(msgspec.Struct, frozen=True):
    """The data of an error page: status, message, and the id of the request."""

    frame: Frame
    status: int
    heading: str
    message: str
    request_id: str
    is_refusal: bool
    is_fault: bool
    user: str
    action: str
    factors: tuple[DecisionFactorView, ...]
    trash: str
    """The URL of the trash, if the page is about an object that may have been dropped; else empty."""


async def error_page(page_request: PageRequest, failure: LimnosError | InvalidName) -> Response:
    """Render the page for an error with its HTTP status."""
    error = hidden_metalake(failure)
    status = status_of(error)
    heading = _TITLES.get(status, "An unexpected error occurred" if status >= 500 else "The request was refused")
    frame = plain_frame(page_request, heading)
    if page_request.user and status < 500:
        try:
            frame = await frame_of(page_request, heading)
        except LimnosError:
            frame = plain_frame(page_request, heading)
    decision = visible_decision_json(error)
    view = ErrorPage(
        frame, status, heading, unescape_percent(str(error)), page_request.request.id, status == 403, status >= 500,
        page_request.user, "" if decision is None else str(decision["action"]), factors_of(decision),
        _trash_address(page_request, error, frame=frame),
    )  # fmt: skip
    headers = ((b"retry-after", b"%d" % error.retry_after_s),) if isinstance(error, ServiceUnavailable) else ()
    return html_response(page_request.request, render("error.html", view), status=status, headers=headers)


def _trash_address(page_request: PageRequest, error: LimnosError | InvalidName, *, frame: Frame) -> str:
    """Return the URL of the trash page for every missing object, so that the page does not reveal which were
    dropped.
    """
    if not isinstance(error, NotFound) or error.kind not in _TRASHED or not frame.metalake:
        return ""
    return f"{page_request.base}/trash?{urlencode({'metalake': frame.metalake})}"


def factors_of(decision: dict[str, object] | None) -> tuple[DecisionFactorView, ...]:
    """Return the reasons of a decision as text. Alternative missing rights, one of which is sufficient, share one
    entry.
    """
    if decision is None:
        return ()
    factors = msgspec.convert(decision["factors"], list[_FactorFields])
    clauses: dict[object, list[_FactorFields]] = {}
    for number, each in enumerate(factors):
        key = ("clause", each.clause) if each.kind == "missing" else ("own", number)
        clauses.setdefault(key, []).append(each)
    return tuple(_factor_view(alternatives) for alternatives in clauses.values())


def _factor_view(alternatives: list[_FactorFields]) -> DecisionFactorView:
    first = alternatives[0]
    rights = " or ".join(
        dict.fromkeys(_RIGHTS.get(each.privilege or "", each.privilege or "a right") for each in alternatives)
    )
    on = "" if first.object is None else f"{first.object.kind} {first.object.name}"
    words = _WORDS.get(first.kind, first.kind).format(rights)
    return DecisionFactorView(first.kind in {"missing", "deny"}, words, on, first.role or "")


_RIGHTS: Final = {"OWNER": "ownership"}
_WORDS: Final = {
    "missing": "lacks {}",
    "deny": "denied: {}",
    "allow": "has {}",
    "owner": "owns the object",
    "service-admin": "is a service admin",
    "member": "is no user of the metalake",
    "restricted": "is subject to a read restriction",
    "lent": "has {} through a view",
    "self": "is the user",
    "access-off": "access control is off",
}


class _FactorObject(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _FactorFields(msgspec.Struct):
    kind: str
    privilege: str | None = None
    object: _FactorObject | None = None
    role: str | None = None
    clause: int = 0
