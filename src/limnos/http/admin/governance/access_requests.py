# SPDX-License-Identifier: Apache-2.0
"""Requests for access: list those that the caller may answer, or its own; ask, grant, decline, withdraw.

Has no business rules. Every answer to a request for an object is the same for one that is hidden or missing.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal

import msgspec

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.model.presets import PresetName
from limnos.names.parts import check_levels
from limnos.services.identity.access_objects import AccessQuestion
from limnos.services.identity.presets.access_requests import (
    PAGE_MAX,
    OpenRequest,
    access_request_create,
    access_request_decline,
    access_request_grant,
    access_requests_list,
    parse_request_cursor,
    request_cursor_text,
)
from limnos.services.identity.presets.own_access_requests import (
    OwnRequest,
    access_request_withdraw,
    own_access_requests,
)
from limnos.services.lookup.securables import parse_kind
from limnos.services.request.context import Context

_PATH: Final = "/api/limnos/v1/metalakes/{m}/access/requests"


class AccessRequestBody(AdminRequestBody, frozen=True):
    """A request of the caller for a preset on the object of `kind` and `path`, which begins with the catalog, with a
    reason for those who answer.
    """

    kind: str
    path: tuple[str, ...]
    preset: PresetName = "reader"
    reason: str = ""


class AccessWithdrawalBody(AdminRequestBody, frozen=True):
    """The withdrawal of the caller's request for the object of `kind` and `path`, which begins with the catalog."""

    kind: str
    path: tuple[str, ...]


class AccessAnswerBody(AdminRequestBody, frozen=True, kw_only=True):
    """An answer to the request of `user` for `preset` on the object of `kind` and `path`. `note` is for the user; it is
    possible with `decline` only.
    """

    answer: Literal["grant", "decline"]
    user: str
    kind: str
    path: tuple[str, ...]
    preset: PresetName
    note: str = ""


async def list_requests(request: Request, ctx: Context) -> Response:
    """Return a page of the open requests that the caller may answer, the newest first; with `own` all of its own, open
    and answered.
    """
    (metalake,) = names_of(request)
    own_only = request.query("own") or "false"
    if own_only not in {"true", "false"}:
        raise BadRequest(f"own must be true or false, not '{own_only[:20]}'")
    if own_only == "true":
        return json_response({"requests": [_own_json(each) for each in await own_access_requests(ctx, metalake)]})
    text = request.query("limit") or str(PAGE_MAX)
    limit = number_of(text, PAGE_MAX)
    if not limit:
        raise BadRequest(f"limit must be a number from 1 to {PAGE_MAX}, not '{text[:20]}'")
    after = parse_request_cursor(request.query("after"))
    page = await access_requests_list(ctx, metalake, after=after, limit=limit)
    following = None if page.following is None else request_cursor_text(page.following)
    return json_response({"requests": [_as_json(each) for each in page.requests], "after": following})


def _as_json(request: OpenRequest) -> dict[str, object]:
    key = msgspec.json.encode((request.user, request.kind.word, request.path))
    return {
        "id": hashlib.sha256(key).hexdigest()[:16],
        "user": request.user,
        "preset": request.preset,
        "kind": request.kind.word,
        "path": request.path,
        "requested_at": instant(request.asked_at),
        "reason": request.reason,
        **({"refusal": request.refusal} if request.refusal else {}),
    }


def _own_json(own: OwnRequest) -> dict[str, object]:
    if own.answer is None:
        return {**_as_json(own.request), "state": "open"}
    return {
        **_as_json(own.request),
        "state": own.answer.answer,
        "answered_by": own.answer.answered_by,
        "answered_at": instant(own.answer.answered_at),
        "note": own.answer.note,
    }


async def ask(request: Request, ctx: Context) -> Response:
    """Ask for a preset on an object, which may be hidden or missing; it replaces an earlier request for the object."""
    (metalake,) = names_of(request)
    body = Request.decode(await request.body(), AccessRequestBody)
    question = _question(metalake, kind=body.kind, path=body.path)
    await access_request_create(ctx, question=question, preset=body.preset, reason=body.reason)
    return json_response({"requested": True})


async def withdraw(request: Request, ctx: Context) -> Response:
    """Withdraw the caller's open request for an object, which may be hidden or missing. Without one it is refused."""
    (metalake,) = names_of(request)
    body = Request.decode(await request.body(), AccessWithdrawalBody)
    question = _question(metalake, kind=body.kind, path=body.path)
    await access_request_withdraw(ctx, question=question)
    return json_response({"withdrawn": True})


async def answer(request: Request, ctx: Context) -> Response:
    """Grant the preset that a user asks for, or decline, and tell the user. Both end the request. Returns whether it
    existed; to grant one that does not exist is refused.
    """
    (metalake,) = names_of(request)
    body = Request.decode(await request.body(), AccessAnswerBody)
    question = _question(metalake, kind=body.kind, path=body.path)
    if body.answer == "decline":
        existed = await access_request_decline(ctx, question=question, user=body.user, note=body.note)
        return json_response({"existed": existed})
    if body.note:
        raise BadRequest("A note is possible with the answer decline only: leave it out of a grant")
    outcome = await access_request_grant(ctx, question=question, user=body.user, preset=body.preset)
    return json_response({"existed": True, "role": outcome.role})


def _question(metalake: str, *, kind: str, path: tuple[str, ...]) -> AccessQuestion:
    return AccessQuestion(metalake, parse_kind(kind), check_levels(path))


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_PATH,
        handler=list_requests,
        operation="list-access-requests",
        query=("own", "after", "limit"),
    ),
    Route(method="POST", path=_PATH, handler=ask, operation="request-access"),
    Route(method="POST", path=f"{_PATH}/withdraw", handler=withdraw, operation="withdraw-access-request"),
    Route(method="POST", path=f"{_PATH}/answer", handler=answer, operation="answer-access-request"),
)
