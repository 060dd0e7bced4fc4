"""The change feed: what was committed in a metalake, or in one catalog of it, as far as the caller may see it now.

May import the rooms below. Knows no wire format. Revisions are dense and given under the lock that is held to the commit,
so whoever reads a zone up to a revision has missed nothing before it: nothing else is needed for a feed without gaps.
Whoever follows a metalake reads its own zone and those of the catalogs that they may use. What was passed over because it
could not be seen is not told later (decision record on the change feed).
"""

from __future__ import annotations

import asyncio
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.model.errors import BadRequest, NotFound, PermissionDenied, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.services.lookup.change_publishing import (
    ChangesOutdated,
    PublishedChange,
    publish_changes,
    publish_dropped_catalog_changes,
)
from limnos.services.request.feed_positions import FeedPosition, position_of, pruned_error
from limnos.services.request.request_view import RequestScope
from limnos.store.feed import NEWEST, OLDEST, feed_slice_read, zones_read
from limnos.view.cache_miss import require_fact
from limnos.view.keys import listing_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView
    from limnos.store.feed import FeedSlice

LIMIT_MAX: Final = 1_000
WAIT_S_MAX: Final = 60.0
PARTS_MAX: Final = 20
"""Parts that one request reads in which there is nothing for the caller."""
ATTEMPTS_MAX: Final = 20
NOW: Final = "now"
OLDEST_WORD: Final = "oldest"


class FeedPage(NamedTuple):
    """Changes in the order of each zone, and the position after them.

    `behind` is how many revisions come after it in the zones that were read, `reached` how far each of those was.
    """

    changes: list[PublishedChange]
    position: FeedPosition
    behind: int
    reached: dict[int, int]

    @property
    def more(self) -> bool:
        """Say whether there is something to read on at once."""
        return self.behind > 0


class _FeedScope(NamedTuple):
    """Whose feed it is: the zone of the metalake or catalog, and the catalogs in it that the caller may use, by zone.

    `hidden` are the others that are there.
    """

    zone: int
    catalogs: dict[int, str]
    hidden: frozenset[int]


async def changes_read(
    ctx: Context, scope: RequestScope, *, after: str | None, limit: int, wait_s: float = 0
) -> FeedPage:
    """Return the next changes after a position (None, `oldest`: the oldest kept; `now`: none yet), about `limit` revisions.

    Waits up to `wait_s` for the first one. Raises BadRequest, PositionPruned, NotFound, PermissionDenied.
    """
    limit, wait_s = min(max(limit, 1), LIMIT_MAX), min(wait_s, WAIT_S_MAX)
    loop = asyncio.get_running_loop()
    until, position = loop.time() + wait_s, None if after in (None, NOW, OLDEST_WORD) else position_of(after or "")
    start, parts = NEWEST if after == NOW else OLDEST, 0
    while True:
        page = await page_read(ctx, scope, position, limit=limit, start=start)
        position, parts = page.position, parts + 1
        left = until - loop.time()
        if page.changes or after == NOW or (page.more and parts >= PARTS_MAX) or (not page.more and left <= 0):
            return page
        if not page.more:
            parts = 0
            await ctx.services.watch.wait(page.reached, left)
            if ctx.services.watch.closed:
                until = 0


async def page_read(
    ctx: Context, scope: RequestScope, position: FeedPosition | None, *, limit: int, start: int = OLDEST
) -> FeedPage:
    """Read one part and tell what of it the caller may see; nobody waits here. `start` is where who has no position begins."""
    for _ in range(ATTEMPTS_MAX):
        home = await ctx.read(scope, _feed_scope)
        wanted = _positions(home, position, start)
        strange = wanted.keys() - home.catalogs.keys() - {home.zone}
        if strange:
            own = await _own_of(ctx, strange, home=home.zone)
            wanted = {zone: at for zone, at in wanted.items() if zone not in strange or zone in own}
        part = await ctx.look_up(partial(feed_slice_read, wanted, limit=limit))
        _refuse_lost(position, part)
        try:
            told = [await _publish(ctx, scope, home, zone=zone, part=part) for zone in part.entries]
        except ChangesOutdated:
            continue
        return _page(home, position, part, _in_order(told))
    raise ServiceUnavailable("What changed was moved about faster than it could be told: try again")


def _in_order(told: list[list[PublishedChange]]) -> list[PublishedChange]:
    """Put the changes of several zones into one list by their times; each zone's own order stays, whatever its times say."""
    found: list[tuple[int, PublishedChange]] = []
    for part in told:
        latest = 0
        for each in part:
            latest = max(latest, each.at)
            found.append((latest, each))
    return [each for _, each in sorted(found, key=itemgetter(0))]


def _feed_scope(request_view: RequestView) -> _FeedScope:
    """Find whose feed it is, and refuse whoever may not follow it."""
    if request_view.scope.catalog is not None:
        request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)
        request_view.require_in_use()
        return _FeedScope(request_view.catalog.id, {request_view.catalog.id: request_view.catalog.name}, frozenset())
    request_view.require(Action.CATALOG_LIST, request_view.settled.outer)
    request_view.require_in_metalake_use()
    metalake_id = request_view.metalake.id
    found = require_fact(request_view.view, listing_key(metalake_id, "catalog", Kind.CATALOG), zone=metalake_id)
    shown: Iterable[int] = range(len(found.ids))
    if request_view.rules.access_enabled:
        seen = list_filter(request_view.subject, Action.CATALOG_LIST, request_view.settled.outer, request_view.owner_of)
        shown = seen.positions(found.ids, found.owners)
    catalogs = {found.ids[at]: found.names[at] for at in shown}
    return _FeedScope(metalake_id, catalogs, frozenset(found.ids) - catalogs.keys())


def _positions(home: _FeedScope, position: FeedPosition | None, start: int) -> dict[int, int]:
    """Return where reading goes on in each zone: a catalog that is new to the caller from what is kept of it.

    Zones that the caller may not read now are left where they are.
    """
    if position is None:
        return dict.fromkeys((home.zone, *home.catalogs), start)
    if position.home != home.zone:
        raise BadRequest("This position is one in the changes of another metalake or catalog: give one of this feed")
    wanted = dict.fromkeys((home.zone, *home.catalogs), OLDEST)
    return wanted | {zone: at for zone, at in position.zones.items() if zone not in home.hidden}


async def position_restrict(ctx: Context, position: FeedPosition) -> FeedPosition:
    """Return a position without what is no zone of its home: one that somebody made up may name any."""
    own = await _own_of(ctx, position.zones.keys(), home=position.home)
    return msgspec.structs.replace(position, zones={zone: at for zone, at in position.zones.items() if zone in own})


async def _own_of(ctx: Context, zones: Collection[int], *, home: int) -> set[int]:
    """Return which zones are a home itself, or are or were its catalogs; nobody was given a position in others."""
    node_positions = await ctx.look_up(partial(zones_read, zones))
    return {
        zone
        for zone, node_position in node_positions.items()
        if zone == home or (node_position.kind is Kind.CATALOG and node_position.parent_id == home)
    }


def _refuse_lost(position: FeedPosition | None, part: FeedSlice) -> None:
    """Refuse to go on where changes are missing. Raises PositionPruned."""
    if position is None:
        return
    if position.epoch != part.epoch:
        raise pruned_error("the store was restored from a backup")
    for zone, at in part.reached.items():
        clock = part.clocks[zone]
        if zone in position.zones and zone not in part.entries and not clock.pruned_to <= at <= clock.revision:
            raise pruned_error("the setting store.change_retention_s says how long changes are kept")


async def _publish(
    ctx: Context, scope: RequestScope, home: _FeedScope, *, zone: int, part: FeedSlice
) -> list[PublishedChange]:
    """Tell what the caller may see of a zone's changes. Raises Outrun where the zone's catalog is another one now."""
    entries = part.entries[zone]
    if zone not in home.catalogs and zone == home.zone:
        return await ctx.read(scope, lambda request_view: publish_changes(request_view, entries, part.node_positions))
    if zone not in home.catalogs:
        node_position = part.node_positions.get(zone)
        if node_position is None or node_position.kind is not Kind.CATALOG or node_position.parent_id != home.zone:
            return []  # nobody was given such a position
        return await ctx.read(
            scope, lambda request_view: publish_dropped_catalog_changes(request_view, entries, part.node_positions)
        )

    def read(request_view: RequestView) -> list[PublishedChange]:
        if request_view.catalog.id != zone:
            raise ChangesOutdated
        return publish_changes(request_view, entries, part.node_positions)

    try:
        return await ctx.read(RequestScope(scope.metalake, home.catalogs[zone]), read)
    except (NotFound, PermissionDenied):
        if scope.catalog is not None:
            raise
        raise ChangesOutdated from None  # it was dropped or renamed, or the caller may not use it any longer


def _page(home: _FeedScope, position: FeedPosition | None, part: FeedSlice, told: list[PublishedChange]) -> FeedPage:
    kept = {} if position is None else {zone: at for zone, at in position.zones.items() if zone not in part.reached}
    zones, behind = kept | part.reached, part.behind
    for each in told:
        if each.kind is Kind.CATALOG and each.operation == "create" and each.zone == home.zone and each.id not in zones:
            zones[each.id] = 0  # made since, and perhaps gone already: what it held is told, too
            behind += 1
    following = {home.zone, *home.catalogs, *home.hidden}
    for zone in part.reached.keys() - following:
        if part.clocks[zone].pruned_to == zones[zone]:
            del zones[zone]  # a catalog that is gone, and told to the end, and nothing of it is kept
    return FeedPage(told, FeedPosition(part.epoch, home.zone, zones), behind, part.reached)
