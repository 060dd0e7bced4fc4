# SPDX-License-Identifier: Apache-2.0
"""Multi-catalog reads: one request view for each of several catalogs, all of one snapshot; and reads over all
metalakes.

Writes do not use it: each belongs to one zone (decision record on requests over several catalogs). Rule 2 holds for
each catalog. In addition, all zones are at the revisions that one read of the freshness gate returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar, cast

from limnos.model.entities import Node
from limnos.model.errors import NotFound, ServiceUnavailable
from limnos.model.kinds import ROOT_ID, Kind
from limnos.services.request.context import Context, read_and_confirm
from limnos.services.request.request_scope import RequestScope, scope_zones
from limnos.services.request.request_view import RequestView
from limnos.store.interface import KnownRevisions
from limnos.view.cache_miss import CacheMiss, for_each, require_fact, require_facts
from limnos.view.fact_reads import OVER_ZONES
from limnos.view.freshness_gate import FreshnessGate, Zones
from limnos.view.keys import Key, listing_key, node_key
from limnos.view.view import StoreView

T = TypeVar("T")
READS_MAX = 100


async def read_many_scopes(
    ctx: Context, scopes: tuple[RequestScope, ...], reader: Callable[[tuple[RequestView, ...]], T]
) -> T:
    """Run a reader on one request view for each scope, all of the same snapshot, which is not older than this call.

    The reader may raise CacheMiss; it then runs again. Raises NotFound for a missing metalake or catalog,
    PermissionDenied for a disabled user, and ServiceUnavailable if the facts change faster than they can be read.
    """
    if not scopes:
        return reader(())
    services, reason = ctx.services, "arrival"
    gate, view = services.gate, services.view
    rounds, lease = 0, view.lease()
    try:
        while rounds < READS_MAX:
            rounds += 1
            chains = tuple(scope_zones(view, scope) for scope in scopes)
            moment = await gate.refresh_together(chains, reason)
            if tuple(scope_zones(view, scope) for scope in scopes) != chains or not _stands_at(view, moment, chains):
                reason = "unpaired"
                continue
            try:
                request_views = tuple(
                    for_each(
                        scopes,
                        lambda scope: RequestView(services, scope, ctx.credential, ctx.request_id, active=ctx.active),
                    )
                )
                for request_view in request_views:
                    request_view.audited_request = ctx.audited_request
                if tuple(request_view.settled.zones for request_view in request_views) == chains:
                    return reader(request_views)
            except CacheMiss as cold:
                await _fetch_facts(gate, chains, requested=cold.missing_keys)
                if cold.goes_on:
                    rounds -= 1
                    await asyncio.sleep(0)
            reason = "resolved"
    finally:  # the lease kept this request's facts in memory, even beyond the budget
        view.release(lease)
    raise ServiceUnavailable("The data changed too often during the request: try again")


async def _fetch_facts(gate: FreshnessGate, chains: tuple[Zones, ...], *, requested: dict[Key, int]) -> None:
    """Load each missing fact once, with the first of `chains` that contains its zone.

    Facts of which one statement reads those of many zones are loaded together. Other requests run between loads.
    """
    together = {key: zone for key, zone in requested.items() if key[0] in OVER_ZONES}
    if together:
        await gate.fetch_together(chains, together)
    left = {key: zone for key, zone in requested.items() if key not in together}
    for zones in dict.fromkeys(chains):
        part = {key: zone for key, zone in left.items() if zone in zones}
        if part:
            if len(left) < len(requested):
                await asyncio.sleep(0)
            await gate.fetch(zones, part)
            for key in part:
                del left[key]


def _stands_at(view: StoreView, moment: KnownRevisions, chains: tuple[Zones, ...]) -> bool:
    """Return whether the view still has the revisions of `moment`.

    The freshness gate of another request may have advanced some zones.
    """
    revisions = dict(moment)
    zones = {zone for chain in chains for zone in chain}
    if any(view.zones[zone].revision != revisions.get(zone) for zone in zones):
        return False
    return all(view.is_paired(chain) for chain in chains)


def metalakes_list(request_view: RequestView) -> list[Node]:
    """Return all metalakes, by name. `metalakes_visible` filters them by the caller's membership."""
    names = require_fact(request_view.view, listing_key(ROOT_ID, "metalake", Kind.METALAKE), zone=ROOT_ID)
    return cast(
        "list[Node]", require_facts(request_view.view, [node_key(node_id) for node_id in names.ids], zone=ROOT_ID)
    )


async def read_of_server(
    ctx: Context, *, require: Callable[[RequestView], object], work: Callable[[], Awaitable[T]]
) -> T:
    """Read uncached data of the whole server, for a caller whose token and right are checked before and after.

    `require` raises the refusal. An error of `work` is raised only if the caller still has the right.
    """

    async def decide() -> None:
        await refuse_former(ctx)
        await ctx.read(RequestScope(), require)

    await decide()
    _, result = await read_and_confirm(None, decide, work=lambda _: work(), identity=lambda _: None)
    return result


async def refuse_former(ctx: Context) -> None:
    """Refuse a token that is invalid in some metalake, because its user was removed there and the name was given to a
    new user.

    Tokens belong to the server's scope, which contains no users of metalakes, so each metalake is checked. The removed
    user must not see, create or revoke tokens of the new user. Raises AuthenticationFailed for such a token.
    """
    if ctx.credential.user is not None:
        return
    for node in await ctx.read(RequestScope(), metalakes_list):
        with suppress(NotFound):  # dropped concurrently
            await ctx.read(RequestScope(node.name), lambda _: None, refuse_disabled=False)
