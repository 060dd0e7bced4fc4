# SPDX-License-Identifier: Apache-2.0
"""Audit: reads audit records. A metalake's owner and a service admin read all of them, other users their own.

Must not know any wire format. A reader sees every change that was committed before the request.
"""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from functools import partial
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.audit import CHANGES, REMOVE_METADATA_FILE, AuditRecord
from limnos.model.errors import BadRequest
from limnos.model.privileges import escape_percent
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import refuse_former
from limnos.services.request.node_services import ROUTE_OPERATIONS
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.audit import (
    FAMILIES,
    NEWEST,
    AuditFilter,
    AuditMoment,
    latest_part_read,
    lines_part_read,
)

PAGE_MAX: Final = 1_000
_SYNONYMS: Final = {
    "delete": "drop",
    "remove": "drop",
    "restore": "undrop",
    "undelete": "undrop",
    "rename": "move",
    "mask": "restriction",
    "filter": "restriction",
    "tag": "attachment",
    "policy": "attachment",
    "group": "membership",
    "member": "membership",
    "role": "grant",
    "update": "alter",
    "set": "alter",
    "modify": "change",
    "changes": "change",
    "ddl": "change",
    "select": "read",
    "delete-token": "revoke-token",
    "delete-secret": "end-secret",
    "revoke-secret": "end-secret",
    "secret": "token",
    "password": "token",
    "session": "token",
    "credential": "token",
    "signin": "login",
    "sign-in": "login",
    "logon": "login",
    "write": "commit",
}
"""Others' words for actions."""
_WORD_MAX: Final = 100


class AuditLinesPage(NamedTuple):
    """A page of audit records, whether more follow, and whether records of other users are left out."""

    lines: list[AuditRecord]
    more: bool
    is_own: bool = False


async def audit_read(ctx: Context, metalake: str | None, *, filters: AuditFilter, limit: int) -> AuditLinesPage:
    """Return audit records of a metalake, or of the whole server if `metalake` is None. Converts pending changes first.

    The owner of the metalake, or a service admin, sees all records; another user of the metalake sees their own. Raises
    PermissionDenied, NotFound, BadRequest for a filter with both `before` and `after`, AuthenticationFailed for a token
    of an earlier user of the name, and ServiceUnavailable if too many changes are not converted to records yet. Without
    any record, an action that no part of this server has is a BadRequest, too.
    """
    if filters.before is not None and filters.after is not None:
        raise BadRequest("Give either before or after, not both")
    if metalake is None:
        await refuse_former(ctx)
    visible_filters = await _narrow_to_allowed(ctx, metalake, filters=filters)
    await ctx.services.audit.catch_up()
    most = max(1, min(limit, PAGE_MAX))
    while True:
        records = await _records(ctx, visible_filters, limit=most + 1)
        if (now := await _narrow_to_allowed(ctx, metalake, filters=filters)) == visible_filters:
            is_whole = filters.before is None and not filters.after
            if not records and is_whole and filters.action is not None:
                _require_word(ctx, filters.action)
            return AuditLinesPage(records[:most], len(records) > most, visible_filters.user_id is not None)
        # the caller's rights changed while the records were read: read again under the new rights
        visible_filters = now


def _require_word(ctx: Context, word: str) -> None:
    """Raise BadRequest for a word that names no family, change, action or operation of a protocol.

    It is asked without records only: those of a former release, or of a room that is off, have words of their own.
    """
    operations = ROUTE_OPERATIONS.of(ctx.services)
    words = list(dict.fromkeys((*FAMILIES, *CHANGES, *Action, REMOVE_METADATA_FILE, *sorted(operations))))
    if word in words:
        return
    lowered = word.lower()
    close = get_close_matches(lowered, words, n=1, cutoff=0.6) if len(word) < _WORD_MAX else []
    similar_word = lowered if lowered in words else _SYNONYMS.get(lowered, next(iter(close), ""))
    proposal = f": did you mean {similar_word}?" if similar_word else "."
    raise BadRequest(
        f"There is no action '{escape_percent(word[:_WORD_MAX])}'{proposal} Families of actions are"
        f" {', '.join(FAMILIES)}; changes are {', '.join(CHANGES)}; 'limnos access explain --actions'"
        " lists the actions, and operations of protocols, such as load-table, count too"
    )


async def audit_latest(
    ctx: Context, metalake: str, *, filters: AuditFilter, before: AuditMoment, limit: int
) -> AuditLinesPage:
    """Return audit records of a metalake in the order of their times, the latest first. Raises as `audit_read`.

    The ids of records are not in the order of times: a refusal is written at once, and a change within half a minute.
    """
    visible_filters = await _narrow_to_allowed(ctx, metalake, filters=filters)
    await ctx.services.audit.catch_up()
    most = max(1, min(limit, PAGE_MAX))
    while True:
        records: list[AuditRecord] = []
        moment: AuditMoment | None = before
        while moment is not None:
            part = await ctx.look_up(partial(latest_part_read, visible_filters, moment, limit=most + 1 - len(records)))
            records += part.records
            moment = part.following
            await asyncio.sleep(0)
        if (now := await _narrow_to_allowed(ctx, metalake, filters=filters)) == visible_filters:
            if not records and before == NEWEST and filters.action is not None:
                _require_word(ctx, filters.action)
            return AuditLinesPage(records[:most], len(records) > most)
        # the caller's rights changed while the records were read: read again under the new rights
        visible_filters = now


async def _records(ctx: Context, filters: AuditFilter, *, limit: int) -> list[AuditRecord]:
    """Read up to `limit` records. Other requests run between parts of a long read."""
    records: list[AuditRecord] = []
    while True:
        part = await ctx.look_up(partial(lines_part_read, filters, limit=limit - len(records)))
        records += part.records
        if part.following is None:
            return records
        name = "before" if filters.after is None else "after"
        filters = msgspec.structs.replace(filters, **{name: part.following})
        await asyncio.sleep(0)


async def _narrow_to_allowed(ctx: Context, metalake: str | None, *, filters: AuditFilter) -> AuditFilter:
    """Restrict the filter to the records that the caller may see now. Raises PermissionDenied, NotFound, and
    AuthenticationFailed for a token of an earlier user of the name.
    """
    if metalake is None:
        await ctx.read(RequestScope(), _require_server)
        return filters
    return await ctx.read(RequestScope(metalake), lambda request_view: _narrow_to_caller(request_view, filters))


def _require_server(request_view: RequestView) -> None:
    request_view.require(Action.AUDIT_READ_ALL, ())


def _narrow_to_caller(request_view: RequestView, audit_filter: AuditFilter) -> AuditFilter:
    """Restrict the filter to the caller's own records, unless the caller owns the metalake.

    Records of an earlier user of the same name are excluded.
    """
    request_view.require(Action.METALAKE_LOAD, request_view.settled.outer)
    within = msgspec.structs.replace(audit_filter, metalake_id=request_view.metalake.id)
    if request_view.decide(Action.AUDIT_READ, request_view.settled.outer).allowed:
        return within
    if request_view.subject.user_id is None:
        request_view.require(Action.AUDIT_READ, request_view.settled.outer)
    return msgspec.structs.replace(within, user_id=request_view.subject.user_id)
