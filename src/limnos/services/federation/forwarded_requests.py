# SPDX-License-Identifier: Apache-2.0
"""Forwarded requests: decides on a request to another Iceberg catalog, forwards it, then updates placeholder nodes.

Must not know request bodies: the caller builds the request after the decision. This server decides on access; only the
source determines which objects exist (decision record 0083).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from limnos.access.actions import Action, kind_action
from limnos.model.decisions import SecurableChain
from limnos.model.errors import BadRequest, LimnosError
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.names.path import Levels
from limnos.services.federation.moves import decide_placeholder_move, placeholder_follow
from limnos.services.federation.placeholder_nodes import (
    PlaceholderCreate,
    SourceLookup,
    check_existence_probe,
    find_source_object,
    placeholder_find,
    placeholder_permit,
    placeholder_submit,
)
from limnos.services.federation.schemas import schemas_visible
from limnos.services.federation.source_objects import (
    VisibleSourceNames,
    namespace_objects_visible,
    parent_chain,
    placeholder_drop,
    placeholder_drop_permit,
    read_in_source,
    refuse_probe,
    refuse_protected,
)
from limnos.services.federation.sources import CatalogSource, ask_confirmed, ask_source, catalog_source_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.connectors.capabilities import RestCall, RestReply, SourceNames, with_rest
from limnos.sources.connectors.rest_terms import NEVER, TO_READERS, VENDED


class SourceObjectRequest(NamedTuple):
    """A request for an object of a source: its kind and path, and the action on it.

    A caller with the right for `probe` may learn that the object is missing.
    """

    kind: Kind
    path: Levels
    action: Action
    probe: Action | None = None


class VendingDecision(NamedTuple):
    """The decision on vending: the source of a table, and whether the caller receives its credentials."""

    origin: CatalogSource
    vends: bool
    """Whether the caller gets credentials, if the source vends any."""


class SourceTableCommit(NamedTuple):
    """One table's part of a commit to several tables. With `makes` the commit creates the table."""

    path: Levels
    makes: bool


async def endpoints_of_source(ctx: Context, scope: RequestScope) -> frozenset[str]:
    """Return the endpoints that the source supports, to a caller who may use the catalog.

    Raises NotInUse, PermissionDenied, and the source's errors.
    """

    def decide(request_view: RequestView) -> CatalogSource:
        request_view.require_in_use()
        request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)
        return catalog_source_of(request_view)

    return await ask_confirmed(ctx, scope, decide=decide, of=with_rest, question=lambda catalog: catalog.endpoints())


async def _exchange(ctx: Context, origin: CatalogSource, *, call: RestCall) -> RestReply:
    return await ask_source(
        ctx, origin, of=with_rest, question=lambda catalog: catalog.exchange(call), changes=call.changes
    )


async def forward_list(ctx: Context, scope: RequestScope, *, kind: Kind, call: RestCall) -> SourceNames:
    """Return the names of a list that are visible to the caller: one page of the source if `call` has a page token,
    else all. Raises NotInUse, PermissionDenied, and the source's errors.
    """

    def decide(request_view: RequestView) -> VisibleSourceNames:
        if kind is Kind.NAMESPACE:
            return schemas_visible(request_view, call.namespace)
        return namespace_objects_visible(request_view, call.namespace, kind=kind, action=kind_action(kind, "list"))

    async def work(seen: VisibleSourceNames) -> SourceNames:
        result = await ask_source(ctx, seen.origin, of=with_rest, question=lambda source: source.names(call))
        return SourceNames(seen.of(result.names), result.token)

    visible_names, result = await ctx.read_confirmed(
        scope, decide, work=work, identity=lambda each: each.origin.identity
    )
    return SourceNames(visible_names.of(result.names), result.token)


async def forward_request(
    ctx: Context, scope: RequestScope, *, thing: SourceObjectRequest, call: RestCall
) -> RestReply:
    """Forward a request on an existing object. Raises NotInUse, PermissionDenied, NotFound, and the source's errors."""
    source_lookup = await ctx.read(scope, lambda request_view: _find_source_object(request_view, thing))
    if not call.changes:
        result: tuple[SourceLookup, RestReply] = await read_in_source(
            ctx, source_lookup, of=with_rest, question=lambda catalog: catalog.exchange(call)
        )
        return result[1]
    await refuse_probe(ctx, source_lookup)
    return await _exchange(ctx, source_lookup.origin, call=call)


def _find_source_object(request_view: RequestView, thing: SourceObjectRequest) -> SourceLookup:
    return find_source_object(request_view, thing.kind, path=thing.path, action=thing.action, probe=thing.probe)


async def forward_load(
    ctx: Context, scope: RequestScope, *, thing: SourceObjectRequest, call: RestCall, vending: RestCall | None
) -> tuple[RestReply, VendingDecision]:
    """Forward a request to load a table. The decision is repeated after the source's response, which is discarded if
    the caller has lost a right meanwhile: credentials issued after a revoke would be valid for later data.

    `vending` is the same request with credentials; it is sent if the caller may receive credentials.

    Returns the source's response, and the decision on credentials. Raises as `forward_request`.
    """

    def decide(request_view: RequestView) -> tuple[SourceLookup, VendingDecision]:
        source_lookup = _find_source_object(request_view, thing)
        return source_lookup, _decide_vending(
            request_view, source_lookup.origin, chain=placeholder_find(request_view, Kind.TABLE, path=thing.path)[1]
        )

    async def work(decided: tuple[SourceLookup, VendingDecision]) -> RestReply:
        await check_existence_probe(ctx, decided[0])
        source_call = vending if vending is not None and decided[1].vends else call
        return await _exchange(ctx, decided[0].origin, call=source_call)

    (_, vending_decision), reply = await ctx.read_confirmed(
        scope, decide, work=work, identity=lambda decided: (decided[0].identity, decided[1].vends)
    )
    return reply, vending_decision._replace(vends=vending is not None and vending_decision.vends)


def _decide_vending(request_view: RequestView, origin: CatalogSource, *, chain: SecurableChain) -> VendingDecision:
    """Decide whether the caller gets credentials that the source vends. They allow all that the source allows this
    server.
    """
    rule = origin.properties.get(VENDED, NEVER)
    if rule == NEVER:
        return VendingDecision(origin, vends=False)
    actions = (Action.TABLE_READ,) if rule == TO_READERS else (Action.TABLE_READ, Action.TABLE_COMMIT)
    return VendingDecision(origin, all(request_view.decide(action, chain).allowed for action in actions))


async def forward_create(
    ctx: Context,
    scope: RequestScope,
    *,
    thing: SourceObjectRequest,
    call: RestCall,
    vending: RestCall | None = None,
    stages: bool = False,
    overwrites: bool = False,
) -> tuple[RestReply, VendingDecision]:
    """Forward a request that creates an object, which the caller then owns.

    Args:
        ctx: The request.
        scope: The catalog.
        thing: The object. Access is decided for its `action` on the parent.
        call: The request to the source.
        vending: The same request with credentials, which is sent if the catalog passes credentials on.
        stages: Whether the object is only staged, and so gets no owner.
        overwrites: Whether an existing object is replaced; it keeps its owner.

    Returns:
        The source's response, and the decision on credentials.

    Raises:
        PermissionDenied: The caller may not create the object, or not replace it.
        NotInUse: The catalog or metalake is disabled. Also raises the source's errors.
    """

    def decide(request_view: RequestView) -> tuple[VendingDecision, bool, Permit[PlaceholderCreate]]:
        request_view.require_in_use()
        permit = _create_permit(request_view, thing.kind, path=thing.path, action=thing.action)
        node, chain = placeholder_find(request_view, thing.kind, path=thing.path)
        if overwrites:
            request_view.require(Action.TABLE_DROP, chain)
        origin = catalog_source_of(request_view)
        return (
            VendingDecision(origin, origin.properties.get(VENDED, NEVER) != NEVER),
            node is not None,
            permit,
        )  # the caller will own it

    vending_decision, has_placeholder, permit = await ctx.read(scope, decide)
    if vending is None or not vending_decision.vends:
        vending_decision = vending_decision._replace(vends=False)
    reply = await _exchange(
        ctx, vending_decision.origin, call=vending if vending is not None and vending_decision.vends else call
    )
    if not stages and not (overwrites and has_placeholder):
        await placeholder_submit(ctx, permit)
    if vending_decision.vends:  # credentials issued after a revoke would be valid for later data
        with suppress(LimnosError):
            current, _, _ = await ctx.read(scope, decide)
            if current.origin.identity == vending_decision.origin.identity:
                return reply, vending_decision
        vending_decision = vending_decision._replace(vends=False)
    return reply, vending_decision


async def forward_drop(ctx: Context, scope: RequestScope, *, thing: SourceObjectRequest, call: RestCall) -> RestReply:
    """Forward a request that drops an object, and drop its placeholder node.

    Raises ProtectedObject, NotInUse, PermissionDenied, NotFound, and the source's errors.
    """
    source_lookup, permit = await ctx.read(
        scope, lambda request_view: placeholder_drop_permit(request_view, _find_source_object(request_view, thing))
    )
    await refuse_probe(ctx, source_lookup)
    await refuse_protected(ctx, source_lookup)
    reply = await _exchange(ctx, source_lookup.origin, call=call)
    await placeholder_drop(ctx, permit)
    return reply


async def forward_rename(ctx: Context, scope: RequestScope, *, kind: Kind, target: Levels, call: RestCall) -> None:
    """Forward a rename or move of a table or view, and move its placeholder node.

    Raises as `decide_move`, and the source's errors.
    """
    source_lookup, permit = await ctx.read(
        scope, lambda request_view: decide_placeholder_move(request_view, kind, source=call.path, target=target)
    )
    await _exchange(ctx, source_lookup.origin, call=call)
    await placeholder_follow(ctx, permit)


async def forward_commit(
    ctx: Context, scope: RequestScope, *, changes: Sequence[SourceTableCommit], call: RestCall
) -> RestReply:
    """Forward commits to one or several tables, all decided on one request view; the caller owns tables that they
    create. Raises BadRequest for a path without a namespace, NotInUse, PermissionDenied, and the source's errors.
    """

    def decide(request_view: RequestView) -> tuple[CatalogSource, list[Permit[PlaceholderCreate]]]:
        request_view.require_in_use()
        for change in changes:
            _require_commit(request_view, change)
        news = [each.path for each in changes if each.makes]
        permits = [_create_permit(request_view, Kind.TABLE, path=path, action=Action.TABLE_CREATE) for path in news]
        return catalog_source_of(request_view), permits

    origin, permits = await ctx.read(scope, decide)
    reply = await _exchange(ctx, origin, call=call)
    for permit in permits:
        await placeholder_submit(ctx, permit)
    return reply


def _create_permit(request_view: RequestView, kind: Kind, *, path: Levels, action: Action) -> Permit[PlaceholderCreate]:
    return placeholder_permit(
        request_view, kind, path=path, decision=request_view.require(action, parent_chain(request_view, path))
    )


def _require_commit(request_view: RequestView, change: SourceTableCommit) -> None:
    if len(change.path) < 2:
        raise BadRequest("A table must be in a namespace: give at least two levels")
    if change.makes:
        request_view.require(Action.TABLE_CREATE, parent_chain(request_view, change.path))
    else:
        find_source_object(request_view, Kind.TABLE, path=change.path, action=Action.TABLE_COMMIT)
