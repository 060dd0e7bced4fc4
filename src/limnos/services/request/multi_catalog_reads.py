"""A read that needs several catalogs at once: one moment over all their zones, a scene for each.

May import the rooms below. A write never does this: it belongs to one zone (decision record on requests over several
catalogs). Rule 2 holds for each catalog by itself; beyond it, all zones stand at the revisions of one gate's snapshot.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.request_view import RequestScope, RequestView, scope_zones
from limnos.view.cache_miss import CacheMiss, for_each

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.services.request.context import Context
    from limnos.store.interface import KnownRevisions
    from limnos.view.freshness_gate import FreshnessGate, Zones
    from limnos.view.keys import Key
    from limnos.view.view import StoreView

T = TypeVar("T")
READS_MAX = 100


async def read_many_scopes(
    ctx: Context, scopes: tuple[RequestScope, ...], reader: Callable[[tuple[RequestView, ...]], T]
) -> T:
    """Run a reader on one scene for each scope, all true at the same moment after this call.

    The reader may raise Cold like any other. Raises what making a scene raises (NotFound, Forbidden), and Unavailable.
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
            moment = await gate.ask_together(chains, reason)
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
                    request_view.asker = ctx.asker
                if tuple(request_view.settled.zones for request_view in request_views) == chains:
                    return reader(request_views)
            except CacheMiss as cold:
                await _fetch_facts(gate, chains, wanted=cold.wanted)
                if cold.goes_on:
                    rounds -= 1
                    await asyncio.sleep(0)
            reason = "resolved"
    finally:  # what this request gathered was kept until now, over the budget or not
        view.release(lease)
    raise ServiceUnavailable("The answer changed faster than it could be read: try again")


async def _fetch_facts(gate: FreshnessGate, chains: tuple[Zones, ...], *, wanted: dict[Key, int]) -> None:
    """Load facts, each once: what lies in a zone of several chains comes with the first of them. Others have their turn in between."""
    left = dict(wanted)
    for zones in dict.fromkeys(chains):
        part = {key: zone for key, zone in left.items() if zone in zones}
        if part:
            if len(left) < len(wanted):
                await asyncio.sleep(0)
            await gate.fetch(zones, part)
            for key in part:
                del left[key]


def _stands_at(view: StoreView, moment: KnownRevisions, chains: tuple[Zones, ...]) -> bool:
    """Say whether the view still knows just that moment's revisions of all zones: another gate may have moved some."""
    revisions = dict(moment)
    zones = {zone for chain in chains for zone in chain}
    if any(view.zones[zone].revision != revisions.get(zone) for zone in zones):
        return False
    return all(view.is_paired(chain) for chain in chains)
