# SPDX-License-Identifier: Apache-2.0
"""Requests for access: a user asks for a preset on an object, and who may grant it there grants or declines it.

Must not know any wire format. A request reveals nothing: it is the same for an object that exists, that is hidden or
missing, and its audit record is about the nearest container that the caller may load. Only an open request is the
user's consent to a grant; an answered one is not. Decision records 0282, 0300, 0301.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.subjects import principal_of
from limnos.model.decisions import Decision, SecurableChain
from limnos.model.entities import Principal
from limnos.model.errors import BadRequest, LimnosError, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.presets import PresetName, parse_preset
from limnos.names import display
from limnos.names.path import check_part
from limnos.services.identity.access_consequences import full_name_of, privilege_request_at
from limnos.services.identity.access_objects import AccessQuestion, meant_kind, scope_of_question, target_of
from limnos.services.identity.grants import PrivilegeRequest, grants_write
from limnos.services.identity.presets.access_presets import (
    PresetChange,
    PresetOutcome,
    PresetRequest,
    preset_apply,
    preset_decide,
    preset_scope,
)
from limnos.services.identity.presets.request_texts import check_text
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.access_requests import (
    FIRST,
    PATH_BYTES_MAX,
    AccessRequestKey,
    AccessRequestRow,
    RequestCursor,
    access_requests_read,
    own_access_requests_read,
)
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact
from limnos.view.keys import principal_id_key

OPEN_MAX: Final = 20
"""The maximum number of open requests of one user in a metalake."""
READ_MAX: Final = 500
"""The number of requests of a metalake among which one page looks for those that the caller may answer."""
PAGE_MAX: Final = 100
"""The maximum number of requests of a page."""
DECIDED_AT_ONCE: Final = 10
"""The number of requests that are decided before others run: each takes some 0.2 ms."""
NOT_OPEN: Final = "There is no such request any more: it was answered, withdrawn or changed, or is too old"
"""The message for a request that is not open."""


class OpenRequest(NamedTuple):
    """A request that the caller may answer: user, preset, the object's kind and path, which begins with the catalog's
    name, its time in milliseconds since 1970, and the user's reason, which may be empty. `refusal` is why the caller
    cannot grant it; empty if they can.
    """

    user: str
    preset: PresetName
    kind: Kind
    path: tuple[str, ...]
    asked_at: int
    reason: str
    refusal: str


class RequestsPage(NamedTuple):
    """A page of requests, and the position of the following page; None on the last one."""

    requests: tuple[OpenRequest, ...]
    following: RequestCursor | None


class RequestCreate(NamedTuple):
    """The command to write a request; `text` says it in words."""

    key: AccessRequestKey
    preset: PresetName
    reason: str
    text: str


class RequestGrant(NamedTuple):
    """The command to grant a request and to end it; `text` says it in words."""

    key: AccessRequestKey
    preset: PresetName
    change: PresetChange
    text: str


class RequestDecline(NamedTuple):
    """The command to decline a request with a note, and to end it; `text` says it in words."""

    key: AccessRequestKey
    note: str
    text: str


def request_cursor_text(cursor: RequestCursor) -> str:
    """Return the page token of a position."""
    return f"{cursor.asked_at}.{cursor.same_ms}"


def parse_request_cursor(text: str | None) -> RequestCursor:
    """Parse a page token; an absent or empty one is the first page. Raises BadRequest for another text."""
    if not text:
        return FIRST
    time, _, count = text.partition(".")
    numbers = [int(part) for part in (time, count) if part.isascii() and part.isdigit() and len(part) < 16]
    if len(numbers) != 2 or numbers[1] > READ_MAX * OPEN_MAX:
        raise BadRequest(f"after must be the page token 'after' of the previous page, not '{text[:40]}'")
    return RequestCursor(*numbers)


async def access_request_create(
    ctx: Context, *, question: AccessQuestion, preset: PresetName, reason: str = ""
) -> None:
    """Ask for a preset on an object, which may be hidden or missing; a second request replaces the first and its
    answer.

    Raises PermissionDenied for a caller who is not a user of the metalake, NotFound for a missing metalake, NotInUse,
    InvalidName, and BadRequest for a refused reason, for a path of more than `PATH_BYTES_MAX` bytes, or if the caller
    has `OPEN_MAX` open requests.
    """
    kind = require_object(question)
    reason = check_text(reason, what="reason")

    def decide(request_view: RequestView) -> Permit[RequestCreate]:
        decision, key = own_request_decide(request_view, question=question, kind=kind)
        if key.is_too_long:
            raise BadRequest(
                f"The path has more than {PATH_BYTES_MAX} bytes: ask for access to what contains the object"
            )
        text = f"asks for {preset} on {words_of(kind, question.path)}"
        return request_view.permit(RequestCreate(key, preset, reason, text), decision, zone=request_view.metalake.id)

    scope = await scope_of_question(ctx, question)
    await ctx.write(scope, decide, request_insert)


def own_request_decide(
    request_view: RequestView, *, question: AccessQuestion, kind: Kind
) -> tuple[Decision, AccessRequestKey]:
    """Return the decision that the caller may ask for access to an object, and the key of the request for it.

    The decision is about the nearest container that the caller may load. Raises PermissionDenied, NotFound, NotInUse.
    """
    decision = request_view.require(Action.ACCESS_REQUEST, _nearest_visible(request_view, question))
    request_view.require_in_metalake_use()
    user = user_of(request_view, request_view.user)
    return decision, AccessRequestKey(request_view.metalake.id, user.id, kind, question.path)


def require_object(question: AccessQuestion) -> Kind:
    """Return the kind of an object for which access can be asked. Raises BadRequest, InvalidName."""
    if question.kind is None or not question.path or question.kind not in Action.ACCESS_REQUEST.kinds:
        raise BadRequest("Access is asked for on a catalog or on an object in it")
    for part in question.path:
        check_part(part)
    return question.kind


def words_of(kind: Kind, path: tuple[str, ...]) -> str:
    """Return kind and path of an object in words."""
    return f"{kind.word.replace('_', ' ')} {display.render(path)}"


def _nearest_visible(request_view: RequestView, question: AccessQuestion) -> SecurableChain:
    """Return the object of a question with its ancestors, or its nearest container that the caller may load."""
    while question.path:
        chain = target_of(request_view, question).chain
        if chain[0].id > 0 and request_view.decide(Action.METADATA_LOAD, chain).allowed:
            return chain
        path = question.path[:-1]
        question = AccessQuestion(question.metalake, Kind.NAMESPACE if len(path) > 1 else Kind.CATALOG, path)
    return request_view.settled.outer[-1:]


def user_of(request_view: RequestView, name: str) -> Principal:
    """Return a user of the metalake. Raises NotFound."""
    user = principal_of(request_view.view, request_view.metalake.id, Kind.USER, name)
    if user is None:
        raise request_view.missing(Kind.USER, (name,))
    return user


def request_insert(tx: Tx, permit: Permit[RequestCreate]) -> None:
    """Write the request. Raises BadRequest if the user has `OPEN_MAX` open ones."""
    command = permit.command
    is_known = tx.access_requests.drop(command.key)
    count = tx.access_requests.count(command.key.metalake_id, command.key.user_id)
    if not is_known and count >= OPEN_MAX:
        raise BadRequest(
            f"You have {OPEN_MAX} open requests for access: wait for an answer to one of them, or withdraw one"
        )
    tx.access_requests.put(command.key, preset=command.preset, reason=command.reason)
    tx.access_answers.drop(command.key)
    tx.note_detail = command.text


async def access_requests_list(
    ctx: Context, metalake: str, *, after: RequestCursor = FIRST, limit: int = PAGE_MAX
) -> RequestsPage:
    """Return a page of the open requests of a metalake that the caller may answer, the newest first.

    These are the ones for objects on which the caller may grant privileges; of a missing object its nearest container
    counts. A page looks at `READ_MAX` requests, so it may be short, or empty, and still have a following one. Raises
    NotFound, and PermissionDenied for a caller who is not a user of the metalake.
    """

    def decide(request_view: RequestView) -> int:
        request_view.require(Action.METALAKE_LOAD, request_view.settled.outer[-1:])
        return request_view.metalake.id

    async def read(metalake_id: int) -> list[AccessRequestRow]:
        now_ms = ctx.services.store.time.now_ms()
        return await ctx.look_up(lambda: access_requests_read(metalake_id, now_ms=now_ms, limit=READ_MAX, after=after))

    _, rows = await ctx.read_confirmed(RequestScope(metalake), decide, work=read)
    results: list[OpenRequest] = []
    cursor = after
    for start in range(0, len(rows), DECIDED_AT_ONCE):
        part = rows[start : start + DECIDED_AT_ONCE]
        answerable = await _answerable_among(ctx, metalake, rows=part)
        for number, row in enumerate(part, start + 1):
            count = cursor.same_ms + 1 if cursor.asked_at == row.asked_at else 1
            cursor = RequestCursor(row.asked_at, count)
            if (request := answerable.get(row.key)) is not None:
                results.append(request)
            if len(results) == limit and number < len(rows):
                return RequestsPage(tuple(results), cursor)
        await asyncio.sleep(0)  # others run between two parts
    return RequestsPage(tuple(results), cursor if len(rows) == READ_MAX else None)


async def _answerable_among(
    ctx: Context, metalake: str, *, rows: Sequence[AccessRequestRow]
) -> dict[AccessRequestKey, OpenRequest]:
    """Return the requests that the caller may answer."""
    answerable: dict[AccessRequestKey, OpenRequest] = {}
    for catalog in dict.fromkeys(row.key.path[0] for row in rows):
        catalog_rows = [row for row in rows if row.key.path[0] == catalog]
        scope = await scope_of_question(ctx, AccessQuestion(metalake, Kind.CATALOG, (catalog,)))
        answerable |= await ctx.read(scope, partial(_answerable, metalake=metalake, rows=catalog_rows))
    return answerable


def open_request(row: AccessRequestRow, user: str) -> OpenRequest:
    """Return a row as a request of the user of this name."""
    return OpenRequest(
        user=user,
        preset=parse_preset(row.preset),
        kind=row.key.kind,
        path=row.key.path,
        asked_at=row.asked_at,
        reason=row.reason,
        refusal="",
    )


def _answerable(
    request_view: RequestView, *, metalake: str, rows: list[AccessRequestRow]
) -> dict[AccessRequestKey, OpenRequest]:
    """Return the requests of one catalog that the caller may answer, without those of dropped users."""
    results = {}
    for row in rows:
        chain = target_of(request_view, AccessQuestion(metalake, row.key.kind, row.key.path)).chain
        if not request_view.decide(Action.PRIVILEGE_GRANT, chain).allowed:
            continue
        user: Principal | None = require_fact(
            request_view.view, principal_id_key(row.key.user_id), zone=request_view.metalake.id
        )
        if user is not None:
            request = open_request(row, user.name)
            results[row.key] = request._replace(refusal=_refusal_of(request_view, request, metalake=metalake))
    return results


def _refusal_of(request_view: RequestView, request: OpenRequest, *, metalake: str) -> str:
    """Return why the caller cannot grant a request; empty if they can."""
    try:
        kind = meant_kind(request_view, request.kind, path=request.path)
        full_name = full_name_of(request_view, kind=kind, path=request.path)
        preset_decide(
            request_view,
            _preset_request(
                metalake,
                PrivilegeRequest(kind, full_name, ()),
                user=request.user,
                preset=request.preset,
            ),
        )
    except PermissionDenied as error:
        factors = error.decision.factors if isinstance(error.decision, Decision) else ()
        missing = [
            f"{each.privilege} on {each.object_kind} {each.object_name}" for each in factors if each.kind == "missing"
        ]
        needed_privileges = " or ".join(dict.fromkeys(missing))
        return f"You may not grant this: it needs {needed_privileges}" if needed_privileges else str(error)
    except LimnosError as error:
        return str(error)
    return ""


def _preset_request(
    metalake: str, privilege_request: PrivilegeRequest, *, user: str, preset: PresetName
) -> PresetRequest:
    return PresetRequest(
        metalake=metalake,
        preset=preset,
        privilege_request=privilege_request,
        holder_kind=Kind.USER,
        holder=user,
        grants_them=True,
        is_answer=True,
    )


async def answer_of(ctx: Context, *, question: AccessQuestion, user: str, preset: PresetName) -> PresetRequest | None:
    """Return the grant that answers a user's open request for a preset on an object, for its preview; None if the
    caller has no such request to answer. Raises PermissionDenied, NotFound for a missing metalake, and InvalidName.
    """

    def decide(request_view: RequestView) -> tuple[int, int, Kind] | None:
        chain = target_of(request_view, question).chain
        principal = principal_of(request_view.view, request_view.metalake.id, Kind.USER, user)
        if principal is None or not request_view.decide(Action.PRIVILEGE_GRANT, chain).allowed:
            return None
        return (
            request_view.metalake.id,
            principal.id,
            meant_kind(request_view, question.kind or Kind.TABLE, path=question.path),
        )

    async def read(known: tuple[int, int, Kind] | None) -> list[AccessRequestRow]:
        if known is None:
            return []
        now_ms = ctx.services.store.time.now_ms()
        return await ctx.look_up(lambda: own_access_requests_read(*known[:2], now_ms=now_ms))

    known, rows = await ctx.read_confirmed(await scope_of_question(ctx, question), decide, work=read)
    if known is None or not any(
        (row.key.kind, row.key.path, row.preset) == (question.kind, question.path, preset) for row in rows
    ):
        return None
    privilege_request = await privilege_request_at(ctx, question._replace(kind=known[2]), privileges=())
    return _preset_request(question.metalake, privilege_request, user=user, preset=preset)


async def access_request_grant(
    ctx: Context, *, question: AccessQuestion, user: str, preset: PresetName
) -> PresetOutcome:
    """Grant the preset that a user asked for, to the user's own role, and end the request, in one transaction.

    The request is the user's consent: a caller who may grant on the object need not be able to assign or create roles.

    Raises:
        PermissionDenied: The caller may not grant on the object, or on a container of which the user has no use; or
            the user's own role exists, the user does not have it, and the caller may not assign roles.
        NotFound: The object, the user, or an open request of the user for this preset is missing.
        InUse: Others have the user's own role, too.
        IllegalPrivilege: The role denies one of the privileges on the same object.
    """
    kind = require_object(question)
    request = await answer_of(ctx, question=question, user=user, preset=preset)
    if request is None:
        scope = await scope_of_question(ctx, question)
        await ctx.read(scope, lambda view: view.require(Action.PRIVILEGE_GRANT, target_of(view, question).chain))
        raise NotFound(NOT_OPEN, kind="request")

    def decide(request_view: RequestView) -> Permit[RequestGrant]:
        change, decisions = preset_decide(request_view, request)
        key = AccessRequestKey(request_view.metalake.id, user_of(request_view, user).id, kind, question.path)
        text = f"granted the request of user {user} for {words_of(request.privilege_request.kind, question.path)}"
        command = RequestGrant(key, preset, change, text)
        return request_view.permit(command, *decisions, zone=request_view.metalake.id)

    return await grants_write(ctx, preset_scope(request), decide=decide, mutation=request_apply)


def request_apply(tx: Tx, permit: Permit[RequestGrant]) -> PresetOutcome:
    """Write the grants and end the request. Raises NotFound if it is not open or asks for another preset."""
    command = permit.command
    request = tx.access_requests.find(command.key)
    if request is None or request.preset != command.preset:
        raise NotFound(NOT_OPEN, kind="request")
    outcome = preset_apply(tx, command.change)
    tx.access_requests.drop(command.key)
    tx.access_answers.put(request, answer="granted")
    tx.note_detail = command.text
    return outcome


async def access_request_decline(ctx: Context, *, question: AccessQuestion, user: str, note: str = "") -> bool:
    """End a user's open request for an object without a grant, with a note to the user. Returns whether it existed.

    Raises PermissionDenied for a caller who may not grant on the object, NotFound for a missing user, NotInUse, and
    BadRequest for a refused note.
    """
    kind = require_object(question)
    note = check_text(note, what="note")

    def decide(request_view: RequestView) -> Permit[RequestDecline]:
        decision = request_view.require(Action.PRIVILEGE_GRANT, target_of(request_view, question).chain)
        request_view.require_in_metalake_use()
        principal = user_of(request_view, user)
        key = AccessRequestKey(request_view.metalake.id, principal.id, kind, question.path)
        text = f"declined the request of user {user} for {words_of(kind, question.path)}"
        return request_view.permit(RequestDecline(key, note, text), decision, zone=request_view.metalake.id)

    scope = await scope_of_question(ctx, question)
    return await ctx.write(scope, decide, request_decline)


def request_decline(tx: Tx, permit: Permit[RequestDecline]) -> bool:
    """End the request, and write the answer. Returns whether the request was open."""
    command = permit.command
    request = tx.access_requests.find(command.key)
    tx.note_detail = command.text if request is not None else f"{command.text}, which was not open"
    if request is None:
        return False
    tx.access_requests.drop(command.key)
    tx.access_answers.put(request, answer="declined", note=command.note)
    return True
