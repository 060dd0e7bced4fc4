# SPDX-License-Identifier: Apache-2.0
"""Errors as pages: refusals with their reasons, missing objects, failures.

Must not know resources. A page reveals no more than the admin API's error body.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

import msgspec

from limnos.http.error_statuses import status_of
from limnos.http.refusals import hidden_metalake, unescape_percent, visible_decision_json
from limnos.http.response import Response
from limnos.model.decisions import Decision
from limnos.model.errors import LimnosError, NotFound, PermissionDenied, ServiceUnavailable
from limnos.model.presets import PresetName, helpful_preset
from limnos.rooms.console.http.addresses import KINDS
from limnos.rooms.console.http.frame import Frame, frame_of, plain_frame
from limnos.rooms.console.http.notices import PARAMETER
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.sheets import FormView

_TRASHED: Final = frozenset({*KINDS, "object"}) - {"catalog"}
"""The kinds of missing objects in a catalog: their error page links to the trash."""
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
_FORM_TITLE: Final = "This was not done"
_NOT_OF_FORMS: Final = frozenset({401, 403, 429})
"""Statuses below 500 whose own titles are also used for errors of forms."""


class DecisionFactorView(msgspec.Struct, frozen=True):
    """One reason of a decision: whether it is a missing right or a denial, its text, the object, and the role."""

    is_missing: bool
    words: str
    on: str
    role: str


class AccessAsk(msgspec.Struct, frozen=True):
    """Whom a refused caller can ask: the owner of the object, or of the nearest container or metalake that the caller
    may see.

    `on` names what they own; `link` is the URL of the page on which they grant the access, and `form` sends them a
    request.
    """

    owner: str
    on: str
    link: str
    form: FormView


class ErrorPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of an error page: the error, the reasons of a refusal, links, and the form that was sent."""

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
    advice: str
    """Who can grant the caller access; empty if this is unknown."""
    explain: str
    """The command that explains the refusal; empty if the refusal is not about an object with a path."""
    ask: AccessAsk | None
    trash: str
    """The URL of the trash, if the page is about an object that may have been dropped; else empty."""
    back: str
    """The URL of the page with the form that was sent; empty if it is unknown, or the error is not one of a form."""
    forms: tuple[FormView, ...]
    """The form with the values that were sent."""


async def error_page(
    page_request: PageRequest,
    failure: LimnosError,
    *,
    is_page: Callable[[str], bool],
    ask: Callable[[PageRequest, PresetName], Awaitable[AccessAsk | None]],
) -> Response:
    """Render the page for an error with its HTTP status. `is_page` returns whether a path, without a proxy's prefix,
    has a page; `ask` whom a caller can ask for a preset on the object of the page.
    """
    error = hidden_metalake(failure)
    status = status_of(error)
    is_form = page_request.route.has_form
    heading = _TITLES.get(status, "An unexpected error occurred" if status >= 500 else "The request was refused")
    if is_form and status < 500 and status not in _NOT_OF_FORMS:
        heading = _FORM_TITLE
    frame = plain_frame(page_request, heading)
    if page_request.user and status < 500:
        try:
            frame = await frame_of(page_request, heading)
        except LimnosError:
            frame = plain_frame(page_request, heading)
    decision = visible_decision_json(error)
    factors = factors_of(decision)
    preset = None if decision is None else _helpful_preset(decision)
    view = ErrorPage(
        frame=frame,
        status=status,
        heading=heading,
        message=unescape_percent(str(error)),
        request_id=page_request.request.id,
        is_refusal=status == 403,
        is_fault=status >= 500,
        user=page_request.user,
        action="" if decision is None else str(decision["action"]),
        factors=factors,
        advice=_advice(factors),
        explain=_explain_command(decision),
        ask=await ask(page_request, preset) if preset is not None and page_request.user else None,
        trash="" if is_form else _trash_address(page_request, error, frame=frame),
        back=form_url(page_request, is_page=is_page) if is_form else "",
        forms=_forms(page_request, status),
    )
    headers = ((b"retry-after", b"%d" % error.retry_after_s),) if isinstance(error, ServiceUnavailable) else ()
    return html_response(page_request.request, render("error.html", view), status=status, headers=headers)


_EVIDENT_KINDS = frozenset({"", "metalake", "catalog", "namespace", "server"})
"""Kinds of targets that the command finds by the path or the action, also for callers who do not see the object."""


def _explain_command(decision: dict[str, object] | None) -> str:
    target = None if decision is None else decision["target"]
    if not isinstance(target, dict) or decision is None:
        return ""
    words = ["limnos", "access", "explain", str(decision["action"]), str(target["name"])]
    kind = str(target.get("kind", ""))
    return shlex.join([*words, *(["--kind", kind] if kind not in _EVIDENT_KINDS else [])])


def _advice(factors: tuple[DecisionFactorView, ...]) -> str:
    """Return who can grant the access to an object that was refused; empty if the refusal is not about an object."""
    if not any(each.is_missing and each.on for each in factors):
        return ""
    return "Owners of the object, and of the catalog or metalake that contains it, can change this."


def _forms(page_request: PageRequest, status: int) -> tuple[FormView, ...]:
    """Return the form that was sent, if it can succeed with other values; else none."""
    retry = page_request.retry
    can_succeed = status < 500 and status not in _NOT_OF_FORMS
    return (retry,) if can_succeed and isinstance(retry, FormView) else ()


def form_url(page_request: PageRequest, *, is_page: Callable[[str], bool]) -> str:
    """Return the URL of the page with the form that was sent, without its notice; empty if it is unknown.

    The page is that of the Referer header if it is a page of the console at this origin, else that of the form's own
    path, if the path has a page.
    """
    referer = _own_referer(page_request)
    if referer is not None and is_page(referer.path.removeprefix(page_request.site.prefix)):
        query = urlencode([pair for pair in parse_qsl(referer.query) if pair[0] != PARAMETER])
        return f"{referer.path}?{query}" if query else referer.path
    page_path = page_request.own_path.partition("?")[0]
    has_page = page_request.request.method != "GET" and is_page(page_path.removeprefix(page_request.site.prefix))
    return page_path if has_page else ""


def _own_referer(page_request: PageRequest) -> SplitResult | None:
    """Return the parts of the Referer header if it is the URL of a path of the console at this origin."""
    site, headers = page_request.site, page_request.request.headers
    try:
        parts = urlsplit(headers.get(b"referer", b"").decode("latin-1"))
    except ValueError:
        return None
    is_own = (
        f"{parts.scheme}://{parts.netloc}" == site.own_origin(headers) and site.path_below(parts.path) == parts.path
    )
    return parts if is_own else None


def _trash_address(page_request: PageRequest, error: LimnosError, *, frame: Frame) -> str:
    """Return the URL of the trash page for every missing object, so that the page does not reveal which were
    dropped.
    """
    if not isinstance(error, NotFound) or error.kind not in _TRASHED or not frame.metalake:
        return ""
    return f"{page_request.base}/trash?{urlencode({'metalake': frame.metalake})}"


def is_only_restricted(error: PermissionDenied) -> bool:
    """Return whether read restrictions alone are the reason of a refusal."""
    factors = error.decision.factors if isinstance(error.decision, Decision) else ()
    return bool(factors) and all(each.kind == "restricted" for each in factors)


def _helpful_preset(decision: dict[str, object]) -> PresetName | None:
    """Return the smallest preset that users ask for and that gives all missing rights of a refusal.

    None if none gives them, such as ownership or rights on a whole metalake, and for read restrictions and denials,
    which no preset lifts.
    """
    clauses: dict[int, set[str]] = {}
    for each in msgspec.convert(decision["factors"], list[_FactorFields]):
        if each.kind in ("restricted", "deny"):
            return None
        if each.kind == "missing" and each.object is not None and each.object.kind not in ("server", "metalake"):
            clauses.setdefault(each.clause, set()).add(each.privilege or "")
        elif each.kind == "missing":
            clauses.setdefault(each.clause, set())
    return helpful_preset(list(clauses.values()))


def factors_of(decision: dict[str, object] | None) -> tuple[DecisionFactorView, ...]:
    """Return the reasons of a decision for display. Alternative missing rights, one of which is sufficient, share one
    entry.
    """
    if decision is None:
        return ()
    factors = msgspec.convert(decision["factors"], list[_FactorFields])
    clauses: dict[object, list[_FactorFields]] = {}
    for number, each in enumerate(factors):
        key = ("clause", each.clause) if each.kind == "missing" else ("own", number)
        clauses.setdefault(key, []).append(each)
    is_allowed = bool(decision["allowed"])
    return tuple(_factor_view(alternatives, is_allowed=is_allowed) for alternatives in clauses.values())


def _factor_view(alternatives: list[_FactorFields], *, is_allowed: bool) -> DecisionFactorView:
    first = alternatives[0]
    rights = " or ".join(
        dict.fromkeys(_RIGHTS.get(each.privilege or "", each.privilege or "a right") for each in alternatives)
    )
    on = "" if first.object is None or first.object.kind == "server" else f"{first.object.kind} {first.object.name}"
    words = _WORDS.get(first.kind, first.kind).format(rights)
    if first.kind == "member":
        words, on = f"is {'' if is_allowed else 'not '}a user of the {on or 'metalake'}", ""
    return DecisionFactorView(
        first.kind in {"missing", "deny"} or (first.kind == "member" and not is_allowed), words, on, first.role or ""
    )


_RIGHTS: Final = {"OWNER": "ownership", "SERVICE_ADMIN": "the rights of a service admin"}
_WORDS: Final = {
    "missing": "lacks {}",
    "deny": "denied: {}",
    "allow": "has {}",
    "owner": "owns the object",
    "service-admin": "is a service admin",
    "restricted": "is subject to a read restriction",
    "lent": "has {} through a view",
    "self": "is the user",
    "access-off": "access control is off",
}


class _FactorObject(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _FactorFields(msgspec.Struct, kw_only=True):
    kind: str
    privilege: str | None = None
    object: _FactorObject | None = None
    role: str | None = None
    clause: int = 0
