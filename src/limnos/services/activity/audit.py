"""Who did what: the lines of the audit as the owner of a metalake, a service admin, or a user for himself may read them.

May import the rooms below. Knows no wire format. A reader sees every change that was committed before the question.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.errors import BadRequest, Unavailable
from limnos.services.identity.tokens import refuse_former
from limnos.services.request.scene import Scope
from limnos.store.audit import lines_read

if TYPE_CHECKING:
    from limnos.model.audit import Line
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.store.audit import Wanted

PAGE_MAX: Final = 1_000
BITES_MAX: Final = 500
"""So often a reader goes on making lines of changes: a hundred thousand of them."""


class Page(NamedTuple):
    """Lines, and whether there are more behind the last one."""

    lines: list[Line]
    more: bool


async def audit_read(ctx: Context, metalake: str | None, *, wanted: Wanted, limit: int) -> Page:
    """Return lines of a metalake, or of the whole server: all to its owner, or a service admin; to a user of the metalake their own.

    Raises Forbidden, NotFound, BadRequest, Unavailable.
    """
    if wanted.before is not None and wanted.after is not None:
        raise BadRequest("Go on before a line or after one, not both")
    if metalake is None:
        await refuse_former(ctx)
    seen = await _allowed(ctx, metalake, wanted=wanted)
    await caught_up(ctx)
    most = max(1, min(limit, PAGE_MAX))
    while True:
        found = await ctx.look_up(partial(lines_read, seen, limit=most + 1))
        if (now := await _allowed(ctx, metalake, wanted=wanted)) == seen:
            return Page(found[:most], len(found) > most)
        seen = now  # rights went while lines were made and read, which may take a while


async def _allowed(ctx: Context, metalake: str | None, *, wanted: Wanted) -> Wanted:
    """Narrow what is wanted to what the caller may see at this moment. Raises Forbidden, NotFound."""
    if metalake is None:
        await ctx.read(Scope(), _require_server)
        return wanted
    return await ctx.read(Scope(metalake), lambda scene: _seen(scene, wanted))


def _require_server(scene: Scene) -> None:
    scene.require(Action.AUDIT_READ_ALL, ())


def _seen(scene: Scene, wanted: Wanted) -> Wanted:
    """Narrow what is wanted to what the caller may see: whoever is no owner sees what they did, since they are who they are."""
    scene.require(Action.METALAKE_LOAD, scene.settled.outer)
    within = msgspec.structs.replace(wanted, metalake_id=scene.metalake.id)
    if scene.decide(Action.AUDIT_READ, scene.settled.outer).allowed:
        return within
    if scene.subject.user_id is None:
        scene.require(Action.AUDIT_READ, scene.settled.outer)
    return msgspec.structs.replace(within, user_id=scene.subject.user_id)


async def caught_up(ctx: Context) -> None:
    """Make lines of all changes that were committed before this call. Raises Unavailable where too many wait."""
    await ctx.services.audit.flush()
    for _ in range(BITES_MAX):
        if not await ctx.services.audit.collect():
            return
    raise Unavailable("Many changes wait to be told by the audit: try again in a minute")
