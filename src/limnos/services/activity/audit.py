"""Who did what: the lines of the audit as the owner of a metalake, a service admin, or a user for himself may read them.

May import the rooms below. Knows no wire format. A reader sees every change that was committed before the question.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.errors import BadRequest, ServiceUnavailable
from limnos.services.identity.tokens import refuse_former
from limnos.services.request.request_view import RequestScope
from limnos.store.audit import lines_read

if TYPE_CHECKING:
    from limnos.model.audit import AuditRecord
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView
    from limnos.store.audit import AuditFilter

PAGE_MAX: Final = 1_000
BITES_MAX: Final = 500
"""So often a reader goes on making lines of changes: a hundred thousand of them."""


class AuditLinesPage(NamedTuple):
    """Lines, and whether there are more behind the last one."""

    lines: list[AuditRecord]
    more: bool


async def audit_read(ctx: Context, metalake: str | None, *, wanted: AuditFilter, limit: int) -> AuditLinesPage:
    """Return lines of a metalake, or of the whole server: all to its owner, or a service admin; to a user of the metalake their own.

    Raises PermissionDenied, NotFound, BadRequest, ServiceUnavailable.
    """
    if wanted.before is not None and wanted.after is not None:
        raise BadRequest("Go on before a line or after one, not both")
    if metalake is None:
        await refuse_former(ctx)
    seen = await _narrow_to_allowed(ctx, metalake, wanted=wanted)
    await audit_catch_up(ctx)
    most = max(1, min(limit, PAGE_MAX))
    while True:
        found = await ctx.look_up(partial(lines_read, seen, limit=most + 1))
        if (now := await _narrow_to_allowed(ctx, metalake, wanted=wanted)) == seen:
            return AuditLinesPage(found[:most], len(found) > most)
        seen = now  # rights went while lines were made and read, which may take a while


async def _narrow_to_allowed(ctx: Context, metalake: str | None, *, wanted: AuditFilter) -> AuditFilter:
    """Narrow what is wanted to what the caller may see at this moment. Raises PermissionDenied, NotFound."""
    if metalake is None:
        await ctx.read(RequestScope(), _require_server)
        return wanted
    return await ctx.read(RequestScope(metalake), lambda request_view: _narrow_to_caller(request_view, wanted))


def _require_server(request_view: RequestView) -> None:
    request_view.require(Action.AUDIT_READ_ALL, ())


def _narrow_to_caller(request_view: RequestView, wanted: AuditFilter) -> AuditFilter:
    """Narrow what is wanted to what the caller may see: whoever is no owner sees what they did, since they are who they are."""
    request_view.require(Action.METALAKE_LOAD, request_view.settled.outer)
    within = msgspec.structs.replace(wanted, metalake_id=request_view.metalake.id)
    if request_view.decide(Action.AUDIT_READ, request_view.settled.outer).allowed:
        return within
    if request_view.subject.user_id is None:
        request_view.require(Action.AUDIT_READ, request_view.settled.outer)
    return msgspec.structs.replace(within, user_id=request_view.subject.user_id)


async def audit_catch_up(ctx: Context) -> None:
    """Make lines of all changes that were committed before this call. Raises ServiceUnavailable where too many wait."""
    await ctx.services.audit.flush()
    for _ in range(BITES_MAX):
        if not await ctx.services.audit.collect():
            return
    raise ServiceUnavailable("Many changes wait to be told by the audit: try again in a minute")
