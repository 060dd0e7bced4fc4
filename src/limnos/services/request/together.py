"""A read that needs several catalogs at once: one moment over all their zones, a scene for each.

May import the rooms below. A write never does this: it belongs to one zone (decision record on requests over several
catalogs). Rule 2 holds for each catalog by itself; beyond it, all zones stand at the revisions of one gate's snapshot.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from limnos.model.errors import Unavailable
from limnos.services.request.scene import Scene, Scope, zones_now
from limnos.view.cold import Cold, for_each

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.services.request.context import Context
    from limnos.store.interface import Known
    from limnos.view.gate import Gate, Zones
    from limnos.view.keys import Key
    from limnos.view.view import View

T = TypeVar("T")
READS_MAX = 100


async def read_together(ctx: Context, scopes: tuple[Scope, ...], reader: Callable[[tuple[Scene, ...]], T]) -> T:
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
            chains = tuple(zones_now(view, scope) for scope in scopes)
            moment = await gate.ask_together(chains, reason)
            if tuple(zones_now(view, scope) for scope in scopes) != chains or not _stands_at(view, moment, chains):
                reason = "unpaired"
                continue
            try:
                scenes = tuple(
                    for_each(
                        scopes,
                        lambda scope: Scene(services, scope, ctx.credential, ctx.request_id, active=ctx.active),
                    )
                )
                for scene in scenes:
                    scene.asker = ctx.asker
                if tuple(scene.settled.zones for scene in scenes) == chains:
                    return reader(scenes)
            except Cold as cold:
                await _fetch(gate, chains, wanted=cold.wanted)
                if cold.goes_on:
                    rounds -= 1
                    await asyncio.sleep(0)
            reason = "resolved"
    finally:  # what this request gathered was kept until now, over the budget or not
        view.release(lease)
    raise Unavailable("The answer changed faster than it could be read: try again")


async def _fetch(gate: Gate, chains: tuple[Zones, ...], *, wanted: dict[Key, int]) -> None:
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


def _stands_at(view: View, moment: Known, chains: tuple[Zones, ...]) -> bool:
    """Say whether the view still knows just that moment's revisions of all zones: another gate may have moved some."""
    revisions = dict(moment)
    zones = {zone for chain in chains for zone in chain}
    if any(view.zones[zone].revision != revisions.get(zone) for zone in zones):
        return False
    return all(view.is_paired(chain) for chain in chains)
