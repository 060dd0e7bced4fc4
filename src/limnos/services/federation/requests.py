"""Requests to another Iceberg catalog that one of ours shows: decided here by the tree's rights, then passed on, then noted where something hangs on it.

May import the rooms below, and `sources` for requests and their answers. Knows no body: whoever calls has built the request from what is decided on
here. As everywhere with sources, access is the tree's alone, and what is there is the source's alone (decision record 0083).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.access.actions import Action
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.services.federation.moves import following, shadow_followed
from limnos.services.federation.objects import Seen, above_of, dropping, leaves_seen, refuse_protected, shadow_dropped
from limnos.services.federation.schemas import schemas_seen
from limnos.services.federation.shadows import making, require_there, seek, shadow_made, stand_in
from limnos.services.federation.sources import ask, origin_of
from limnos.sources.connectors.capabilities import Names, with_rest
from limnos.sources.connectors.registry import NEVER, TO_READERS, VENDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.decisions import Chain
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.federation.shadows import ShadowCreate, Sought
    from limnos.services.federation.sources import Origin
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene, Scope
    from limnos.sources.connectors.capabilities import Call, Reply


class Thing(NamedTuple):
    """An object of a source, what is to be done to it, and what lets somebody know that it is missing."""

    kind: Kind
    path: Levels
    action: Action
    probe: Action | None = None


class Lent(NamedTuple):
    """What a caller may have of a table beside its metadata."""

    origin: Origin
    vends: bool
    """Credentials, if the source gives some out."""


class Change(NamedTuple):
    """A commit to one table among several; one that `makes` it."""

    path: Levels
    makes: bool


async def endpoints(ctx: Context, scope: Scope) -> frozenset[str]:
    """Return what the source serves, to who may use the catalog."""

    def decide(scene: Scene) -> Origin:
        scene.require_in_use()
        scene.require(Action.CATALOG_LOAD, scene.settled.outer)
        return origin_of(scene)

    origin = await ctx.read(scope, decide)
    return await ask(ctx, origin, of=with_rest, question=lambda found: found.endpoints())


async def _ask(ctx: Context, origin: Origin, *, call: Call) -> Reply:
    return await ask(ctx, origin, of=with_rest, question=lambda found: found.exchange(call), changes=call.changes)


async def listed(ctx: Context, scope: Scope, *, kind: Kind, call: Call) -> Names:
    """Return the names of a list that the caller sees: a page as the source cuts it, or all."""

    def decide(scene: Scene) -> Seen:
        if kind is Kind.NAMESPACE:
            return schemas_seen(scene, call.namespace)
        return leaves_seen(scene, call.namespace, kind=kind, action=Action(f"{kind.word}_list"))

    seen = await ctx.read(scope, decide)
    found = await ask(ctx, seen.origin, of=with_rest, question=lambda source: source.names(call))
    return Names(seen.of(found.names), found.token)


async def passed(ctx: Context, scope: Scope, *, thing: Thing, call: Call) -> Reply:
    """Pass on a request about something that is there. Raises Forbidden, and what the source says."""
    sought = await ctx.read(scope, lambda scene: _seek(scene, thing))
    await require_there(ctx, sought)
    return await _ask(ctx, sought.origin, call=call)


def _seek(scene: Scene, thing: Thing) -> Sought:
    return seek(scene, thing.kind, path=thing.path, action=thing.action, probe=thing.probe)


async def loaded(ctx: Context, scope: Scope, *, thing: Thing, call: Call, vending: Call | None) -> tuple[Reply, Lent]:
    """Pass on a request for a table; `vending` is the same with credentials, for who wants them and may have them."""

    def decide(scene: Scene) -> tuple[Sought, Lent]:
        sought = _seek(scene, thing)
        return sought, _lent(scene, sought.origin, chain=stand_in(scene, Kind.TABLE, path=thing.path)[1])

    sought, lent = await ctx.read(scope, decide)
    await require_there(ctx, sought)
    if vending is None or not lent.vends:
        return await _ask(ctx, sought.origin, call=call), lent._replace(vends=False)
    return await _ask(ctx, sought.origin, call=vending), lent


def _lent(scene: Scene, origin: Origin, *, chain: Chain) -> Lent:
    """Say whether the caller gets credentials: they can do what the source lets this server do."""
    rule = origin.properties.get(VENDED, NEVER)
    if rule == NEVER:
        return Lent(origin, vends=False)
    action = Action.TABLE_READ if rule == TO_READERS else Action.TABLE_COMMIT
    return Lent(origin, scene.decide(action, chain).allowed)


async def made(
    ctx: Context, scope: Scope, *, thing: Thing, call: Call, vending: Call | None = None, stages: bool = False,
    overwrites: bool = False,
) -> tuple[Reply, Lent]:  # fmt: skip
    """Pass on a request that makes something, whose maker then owns it. What is only staged is nobody's; what is overwritten keeps its owner.

    `thing.action` is done to what it lies in.
    """

    def decide(scene: Scene) -> tuple[Lent, bool, Permit[ShadowCreate]]:
        scene.require_in_use()
        permit = _making(scene, thing.kind, path=thing.path, action=thing.action)
        node, chain = stand_in(scene, thing.kind, path=thing.path)
        if overwrites:
            scene.require(Action.TABLE_DROP, chain)
        origin = origin_of(scene)
        return (
            Lent(origin, origin.properties.get(VENDED, NEVER) != NEVER),
            node is not None,
            permit,
        )  # its maker will own it

    lent, has_shadow, permit = await ctx.read(scope, decide)
    if vending is None or not lent.vends:
        lent = lent._replace(vends=False)
    reply = await _ask(ctx, lent.origin, call=vending if vending is not None and lent.vends else call)
    if not stages and not (overwrites and has_shadow):
        await shadow_made(ctx, permit)
    return reply, lent


async def dropped(ctx: Context, scope: Scope, *, thing: Thing, call: Call) -> Reply:
    """Pass on a request that takes something away, and drop what stood for it. Raises Protected, Forbidden."""
    sought, permit = await ctx.read(scope, lambda scene: dropping(scene, _seek(scene, thing)))
    await require_there(ctx, sought)
    await refuse_protected(ctx, sought)
    reply = await _ask(ctx, sought.origin, call=call)
    await shadow_dropped(ctx, permit)
    return reply


async def moved(ctx: Context, scope: Scope, *, kind: Kind, target: Levels, call: Call) -> None:
    """Pass on another name or namespace of a table or view; what stands for it follows."""
    sought, permit = await ctx.read(scope, lambda scene: following(scene, kind, source=call.path, target=target))
    await _ask(ctx, sought.origin, call=call)
    await shadow_followed(ctx, permit)


async def committed(ctx: Context, scope: Scope, *, changes: Sequence[Change], call: Call) -> Reply:
    """Pass on commits to one or several tables, all decided at one moment; who makes a table owns it."""

    def decide(scene: Scene) -> tuple[Origin, list[Permit[ShadowCreate]]]:
        scene.require_in_use()
        for change in changes:
            _require_commit(scene, change)
        news = [each.path for each in changes if each.makes]
        permits = [_making(scene, Kind.TABLE, path=path, action=Action.TABLE_CREATE) for path in news]
        return origin_of(scene), permits

    origin, permits = await ctx.read(scope, decide)
    reply = await _ask(ctx, origin, call=call)
    for permit in permits:
        await shadow_made(ctx, permit)
    return reply


def _making(scene: Scene, kind: Kind, *, path: Levels, action: Action) -> Permit[ShadowCreate]:
    return making(scene, kind, path=path, decision=scene.require(action, above_of(scene, path)))


def _require_commit(scene: Scene, change: Change) -> None:
    if len(change.path) < 2:
        raise BadRequest("A table lies in a namespace: name at least two levels")
    if change.makes:
        scene.require(Action.TABLE_CREATE, above_of(scene, change.path))
    else:
        seek(scene, Kind.TABLE, path=change.path, action=Action.TABLE_COMMIT)
