# SPDX-License-Identifier: Apache-2.0
"""The caller's own requests for access: those that are open, the answers to others, and withdrawal.

Must not know any wire format. Decision record 0301.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.access.actions import Action
from limnos.model.entities import Principal
from limnos.model.errors import NotFound
from limnos.model.permits import Permit
from limnos.services.identity.access_objects import AccessQuestion, scope_of_question
from limnos.services.identity.presets.access_requests import (
    NOT_OPEN,
    OpenRequest,
    open_request,
    own_request_decide,
    require_object,
    user_of,
    words_of,
)
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.access_answers import AccessAnswerRow, Answer, access_answers_read
from limnos.store.identity.access_requests import AccessRequestKey, AccessRequestRow, own_access_requests_read
from limnos.store.sql import Load
from limnos.store.tx import Tx


class RequestAnswer(NamedTuple):
    """An answer to a request: who gave it, when in milliseconds since 1970, and a note, which may be empty."""

    answer: Answer
    answered_by: str
    answered_at: int
    note: str


class OwnRequest(NamedTuple):
    """A request of the caller, and the answer to it; None while it is open."""

    request: OpenRequest
    answer: RequestAnswer | None


class RequestWithdraw(NamedTuple):
    """The command to withdraw a request; `text` says it in words."""

    key: AccessRequestKey
    text: str


async def own_access_requests(ctx: Context, metalake: str) -> tuple[OwnRequest, ...]:
    """Return the caller's own requests in a metalake: the open ones, then the answered ones, each the newest first.

    Raises NotFound, and PermissionDenied for a caller who is not a user of the metalake.
    """

    def decide(request_view: RequestView) -> tuple[int, Principal]:
        request_view.require(Action.METALAKE_LOAD, request_view.settled.outer[-1:])
        return request_view.metalake.id, user_of(request_view, request_view.user)

    async def read(caller: tuple[int, Principal]) -> tuple[list[AccessRequestRow], list[AccessAnswerRow]]:
        metalake_id, user = caller
        now_ms = ctx.services.store.time.now_ms()
        return await ctx.look_up(lambda: _own_rows(metalake_id, user.id, now_ms=now_ms))

    (_, user), (rows, answers) = await ctx.read_confirmed(RequestScope(metalake), decide, work=read)
    return (
        *(OwnRequest(open_request(row, user.name), None) for row in rows),
        *(
            OwnRequest(
                open_request(row.request, user.name),
                RequestAnswer(row.answer, row.answered_by, row.answered_at, row.note),
            )
            for row in answers
        ),
    )


def _own_rows(
    metalake_id: int, user_id: int, *, now_ms: int
) -> Load[tuple[list[AccessRequestRow], list[AccessAnswerRow]]]:
    rows = yield from own_access_requests_read(metalake_id, user_id, now_ms=now_ms)
    return rows, (yield from access_answers_read(metalake_id, user_id, now_ms=now_ms))


async def access_request_withdraw(ctx: Context, *, question: AccessQuestion) -> None:
    """End the caller's own open request for an object, without an answer.

    Raises PermissionDenied for a caller who is not a user of the metalake, NotFound for a missing metalake and if the
    caller has no open request for the object, NotInUse, InvalidName.
    """
    kind = require_object(question)

    def decide(request_view: RequestView) -> Permit[RequestWithdraw]:
        decision, key = own_request_decide(request_view, question=question, kind=kind)
        text = f"withdrew the request for {words_of(kind, question.path)}"
        return request_view.permit(RequestWithdraw(key, text), decision, zone=request_view.metalake.id)

    scope = await scope_of_question(ctx, question)
    await ctx.write(scope, decide, request_withdraw)


def request_withdraw(tx: Tx, permit: Permit[RequestWithdraw]) -> None:
    """Delete the request. Raises NotFound if it is not open."""
    command = permit.command
    if tx.access_requests.find(command.key) is None:
        raise NotFound(NOT_OPEN, kind="request")
    tx.access_requests.drop(command.key)
    tx.note_detail = command.text
