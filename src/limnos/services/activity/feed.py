# SPDX-License-Identifier: Apache-2.0
"""Change feed: the committed changes of a metalake, or of one of its catalogs, that are visible to the caller now.

Must not know any wire format. Revisions have no gaps, and are assigned under a lock that is held until the commit. So a
reader who has read a zone up to a revision has not missed an earlier change. A reader of a metalake reads the
metalake's zone and the zones of the catalogs that the reader may use. A change that was hidden when the reader's
position passed it is not delivered later (decision record 0031).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.model.errors import BadRequest, NotFound, PermissionDenied, PositionPruned, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.services.activity.feed_positions import FeedPosition, position_of, pruned_error
from limnos.services.lookup.change_publishing import (
    ChangesOutdated,
    PublishedChange,
    publish_changes,
    publish_dropped_catalog_changes,
)
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.feed import NEWEST, OLDEST, FeedSlice, feed_slice_read, zones_read
from limnos.view.cache_miss import require_fact
from limnos.view.keys import listing_key

LIMIT_MAX: Final = 1_000
WAIT_S_MAX: Final = 60.0
PARTS_MAX: Final = 20
"""The maximum number of parts of the feed without visible changes that one request reads."""
ATTEMPTS_MAX: Final = 20
NOW: Final = "now"
OLDEST_WORD: Final = "oldest"


class FeedPage(NamedTuple):
    """Changes in the order of each zone, and the position after them.

    `behind` is the count of further revisions in the zones that were read. `reached` maps each zone to the last
    revision that was read.
    """

    changes: list[PublishedChange]
    position: FeedPosition
    behind: int
    reached: dict[int, int]

    @property
    def more(self) -> bool:
        """Whether further revisions exist now, so that the next page can be read without waiting."""
        return self.behind > 0


class _FeedScope(NamedTuple):
    """The scope of a feed: the zone of the metalake or catalog, and the names of the catalogs that the caller may use,
    by zone.

    `hidden` contains the zones of the other catalogs.
    """

    zone: int
    catalogs: dict[int, str]
    hidden: frozenset[int]


async def changes_read(
    ctx: Context, scope: RequestScope, *, after: str | None, limit: int, wait_s: float = 0
) -> FeedPage:
    """Return the changes after a position that are visible to the caller.

    Args:
        ctx: The request.
        scope: The metalake, or one of its catalogs.
        after: A position as an opaque string, None or `oldest` for the oldest stored change, or `now` for an empty page
            at the newest position.
        limit: The approximate number of revisions to read.
        wait_s: The maximum time to wait for the first change, in seconds.

    Raises:
        BadRequest: The position is malformed, or from another feed.
        PositionPruned: Changes after the position have been pruned, or the store was restored from a backup.
        NotFound: The metalake or catalog is missing.
        NotInUse: The metalake or catalog is disabled.
        PermissionDenied: The caller may not read the feed.
        ServiceUnavailable: Concurrent changes of the objects made every attempt fail.
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


async def changes_latest(ctx: Context, scope: RequestScope, *, count: int) -> list[PublishedChange]:
    """Return at most `count` visible changes from the last `count` revisions of each zone, the newest first.

    Raises as `changes_read`, except BadRequest and PositionPruned.
    """
    newest = await page_read(ctx, scope, None, limit=1, start=NEWEST)
    zones = {zone: max(at - count, 0) for zone, at in newest.reached.items()}
    position: FeedPosition | None = msgspec.structs.replace(newest.position, zones=zones)
    limit = min(count * max(len(zones), 1), LIMIT_MAX)
    try:
        page = await page_read(ctx, scope, position, limit=limit)
    except PositionPruned:  # fewer changes are stored: begin at the oldest one
        page = await page_read(ctx, scope, None, limit=limit)
    return page.changes[: -count - 1 : -1]


async def page_read(
    ctx: Context, scope: RequestScope, position: FeedPosition | None, *, limit: int, start: int = OLDEST
) -> FeedPage:
    """Read one page of changes that are visible to the caller, without waiting.

    `start` is the revision to start from if `position` is None. Raises as `changes_read`.
    """
    for _ in range(ATTEMPTS_MAX):
        home = await ctx.read(scope, _feed_scope)
        positions = _positions(home, position, start)
        strange = positions.keys() - home.catalogs.keys() - {home.zone}
        if strange:
            own_zones = await _zones_within(ctx, strange, home=home.zone)
            positions = {zone: at for zone, at in positions.items() if zone not in strange or zone in own_zones}
        part = await ctx.look_up(partial(feed_slice_read, positions, limit=limit))
        _refuse_pruned(position, part)
        try:
            changes = [await _publish(ctx, scope, home, zone=zone, part=part) for zone in part.entries]
        except ChangesOutdated:
            continue
        return _page(home, position, part, _order_changes(changes))
    raise ServiceUnavailable("The changed objects were moved too often during the request: try again")


def _order_changes(changes: list[list[PublishedChange]]) -> list[PublishedChange]:
    """Merge the changes of several zones by time, and preserve the order within each zone."""
    results: list[tuple[int, PublishedChange]] = []
    for part in changes:
        latest = 0
        for each in part:
            latest = max(latest, each.at)
            results.append((latest, each))
    return [each for _, each in sorted(results, key=itemgetter(0))]


def _feed_scope(request_view: RequestView) -> _FeedScope:
    """Return the scope of a feed. Raises PermissionDenied, NotFound, NotInUse."""
    if request_view.scope.catalog is not None:
        request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)
        request_view.require_in_use()
        return _FeedScope(request_view.catalog.id, {request_view.catalog.id: request_view.catalog.name}, frozenset())
    request_view.require(Action.CATALOG_LIST, request_view.settled.outer)
    request_view.require_in_metalake_use()
    metalake_id = request_view.metalake.id
    fact = require_fact(request_view.view, listing_key(metalake_id, "catalog", Kind.CATALOG), zone=metalake_id)
    positions: Iterable[int] = range(len(fact.ids))
    if request_view.rules.access_enabled:
        visible_catalogs = list_filter(
            request_view.subject, Action.CATALOG_LIST, request_view.settled.outer, request_view.owner_of
        )
        positions = visible_catalogs.positions(fact.ids, fact.owners)
    catalogs = {fact.ids[at]: fact.names[at] for at in positions}
    return _FeedScope(metalake_id, catalogs, frozenset(fact.ids) - catalogs.keys())


def _positions(home: _FeedScope, position: FeedPosition | None, start: int) -> dict[int, int]:
    """Return the revision of each zone from which reading continues. A catalog that the position lacks starts at its
    oldest stored change.

    Zones that the caller may not read now are omitted. Raises BadRequest for a position of another feed.
    """
    if position is None:
        return dict.fromkeys((home.zone, *home.catalogs), start)
    if position.home != home.zone:
        raise BadRequest("This position belongs to the feed of another metalake or catalog: give one of this feed")
    requested = dict.fromkeys((home.zone, *home.catalogs), OLDEST)
    return requested | {zone: at for zone, at in position.zones.items() if zone not in home.hidden}


async def position_restrict(ctx: Context, position: FeedPosition) -> FeedPosition:
    """Remove the zones from a position that do not belong to its home, because a forged position may name any zone."""
    own_zones = await _zones_within(ctx, position.zones.keys(), home=position.home)
    return msgspec.structs.replace(
        position, zones={zone: at for zone, at in position.zones.items() if zone in own_zones}
    )


async def _zones_within(ctx: Context, zones: Collection[int], *, home: int) -> set[int]:
    """Return the zones among `zones` that belong to the metalake or catalog `home`: its own zone, and the zones of its
    present and former catalogs.
    """
    node_positions = await ctx.look_up(partial(zones_read, zones))
    return {
        zone
        for zone, node_position in node_positions.items()
        if zone == home or (node_position.kind is Kind.CATALOG and node_position.parent_id == home)
    }


def _refuse_pruned(position: FeedPosition | None, part: FeedSlice) -> None:
    """Raise PositionPruned if changes after the position have been pruned, or the store was restored from a backup."""
    if position is None:
        return
    if position.epoch != part.epoch:
        raise pruned_error("the store was restored from a backup")
    for zone, at in part.reached.items():
        clock = part.clocks[zone]
        if zone in position.zones and zone not in part.entries and not clock.pruned_to <= at <= clock.revision:
            raise pruned_error("the setting store.change_retention_s sets how long changes are kept")


async def _publish(
    ctx: Context, scope: RequestScope, home: _FeedScope, *, zone: int, part: FeedSlice
) -> list[PublishedChange]:
    """Return the changes of a zone that the caller may see.

    Raises ChangesOutdated if the metalake or catalog was renamed or dropped, or the caller may no longer use it. For
    the feed of one catalog, raises NotFound or PermissionDenied instead.
    """
    entries = part.entries[zone]

    def publish_own(request_view: RequestView) -> list[PublishedChange]:
        _require_same_metalake(request_view, home)
        return publish_changes(request_view, entries, part.node_positions)

    def publish_dropped(request_view: RequestView) -> list[PublishedChange]:
        _require_same_metalake(request_view, home)
        return publish_dropped_catalog_changes(request_view, entries, part.node_positions)

    if zone not in home.catalogs and zone == home.zone:
        return await ctx.read(scope, publish_own)
    if zone not in home.catalogs:
        node_position = part.node_positions.get(zone)
        if node_position is None or node_position.kind is not Kind.CATALOG or node_position.parent_id != home.zone:
            return []  # the server never issued such a position
        return await ctx.read(scope, publish_dropped)

    def read(request_view: RequestView) -> list[PublishedChange]:
        if request_view.catalog.id != zone:
            raise ChangesOutdated
        return publish_changes(request_view, entries, part.node_positions)

    try:
        return await ctx.read(RequestScope(scope.metalake, home.catalogs[zone]), read)
    except (NotFound, PermissionDenied):
        if scope.catalog is not None:
            raise
        raise ChangesOutdated from None  # it was dropped or renamed, or the caller may no longer use it


def _require_same_metalake(request_view: RequestView, home: _FeedScope) -> None:
    """Raise ChangesOutdated if another metalake now has the name of the feed's metalake."""
    if request_view.metalake.id != home.zone:
        raise ChangesOutdated


def _page(home: _FeedScope, position: FeedPosition | None, part: FeedSlice, changes: list[PublishedChange]) -> FeedPage:
    entries = {} if position is None else {zone: at for zone, at in position.zones.items() if zone not in part.reached}
    zones, behind = entries | part.reached, part.behind
    for each in changes:
        if each.kind is Kind.CATALOG and each.operation == "create" and each.zone == home.zone and each.id not in zones:
            zones[each.id] = 0  # created after the position: its changes are delivered even if it was dropped again
            behind += 1
    following = {home.zone, *home.catalogs, *home.hidden}
    for zone in part.reached.keys() - following:
        if part.clocks[zone].pruned_to == zones[zone]:
            del zones[zone]  # a dropped catalog whose changes are all read and pruned
    return FeedPage(changes, FeedPosition(part.epoch, home.zone, zones), behind, part.reached)
