# SPDX-License-Identifier: Apache-2.0
"""Rows of the system table `changes`: the change feed, with the changes that the caller may see at the revision of the
snapshot.

Must not know wire formats. The rule of visibility is that of the feed (decision record 0031), by the facts of the
snapshot. Revisions have no gaps, so the revisions of all feeds, one feed after the other, are the keys of parts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from functools import partial
from json import dumps
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.formats.system_tables import OCCURRED_AT, Cells, RowRequest
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.entities import ChangeRow
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.exchange.services.part_reads import ROWS_AT_ONCE, IdRange
from limnos.rooms.exchange.services.table_access import SnapshotObject, TableAccess
from limnos.rooms.exchange.services.table_rows import PageRows
from limnos.services.lookup.change_publishing import ChangePublisher, PublishedChange, dropped_catalog_changes
from limnos.store.activity.feed import (
    NODE_POSITIONS,
    FeedEntry,
    NodePosition,
    change_page,
    entry_of,
    node_position_of,
)
from limnos.store.exchange import system_tables as statements
from limnos.store.sql import Value

REVISIONS_AT_ONCE: Final = 2_000
"""The maximum number of revisions whose changes one statement examines."""
_KINDS: Final = {kind.word: int(kind) for kind in Kind}


class _ZoneFeed(NamedTuple):
    """The changes of a zone: its revisions after `pruned_to`, up to `revision`, and the chain of its catalog or
    metalake; None for a dropped catalog.
    """

    zone: int
    pruned_to: int
    revision: int
    outer: SecurableChain | None


class _Span(NamedTuple):
    """Revisions of a feed: those after `since`, up to `until`."""

    feed: _ZoneFeed
    since: int
    until: int


class ChangeFeeds(NamedTuple):
    """The feeds that a caller may read, in the order of zones."""

    feeds: list[_ZoneFeed]

    def last_keys(self, parts: int) -> list[int]:
        """Return the last keys of ranges of revisions of equal lengths."""
        total = sum(each.revision - each.pruned_to for each in self.feeds)
        return sorted({max(total * number // parts - 1, 0) for number in range(1, parts + 1)})

    def spans(self, part: IdRange) -> Iterator[_Span]:
        """Yield the revisions of each feed that a range of keys has."""
        start = 0
        for feed in self.feeds:
            count = feed.revision - feed.pruned_to
            since, until = max(part.first - start, 0), min(part.last - start + 1, count)
            if since < until:
                yield _Span(feed, feed.pruned_to + since, feed.pruned_to + until)
            start += count


async def change_feeds(access: TableAccess) -> ChangeFeeds:
    """Read the feeds that the caller may read: those of the metalake, of the catalogs that the caller may use, and for
    callers who may alter the metalake those of dropped catalogs.
    """
    metalake = access.caller.metalake
    top = (ChainLink(metalake.id, Kind.METALAKE, metalake.name),)
    feeds: list[_ZoneFeed] = []
    for zone, revision, pruned_to, name, deleted, owner_id in await access.snapshot.rows(
        (statements.FEEDS, {"metalake": metalake.id})
    ):
        outer: SecurableChain | None = top if zone == metalake.id else (ChainLink(zone, Kind.CATALOG, name), *top)
        if deleted:
            outer, is_readable = None, access.may(Action.METALAKE_ALTER, SnapshotObject(top, access.caller.owner_id))
        elif zone == metalake.id:
            is_readable = True
        else:
            is_readable = access.may(Action.CATALOG_LOAD, SnapshotObject(outer or top, owner_id))
        if is_readable:
            feeds.append(_ZoneFeed(zone, pruned_to, revision, outer))
    return ChangeFeeds(feeds)


async def change_pages(access: TableAccess, request: RowRequest, *, part: IdRange) -> AsyncGenerator[PageRows, None]:
    """Yield the changes of a part that the caller may see."""
    filters = _filters_of(request)
    if filters is None:
        return
    for span in (await change_feeds(access)).spans(part):
        async for entries in _entries(access, request, span=span, filters=filters):
            positions = await _positions(access, entries, zone=span.feed.zone)
            owners = await access.learn_owners(positions.keys() | {each.change.node_id for each in entries})
            yield partial(_rows, entries, access=access, feed=span.feed, positions=positions, owners=owners)


async def _entries(
    access: TableAccess, request: RowRequest, *, span: _Span, filters: Mapping[str, Value]
) -> AsyncGenerator[list[FeedEntry], None]:
    """Yield the changes of a span that meet the conditions, page by page. A statement examines a bounded number of
    revisions.
    """
    zone = span.feed.zone
    if request.range_of("zone", first=zone, last=zone) != (zone, zone):
        return
    first, last = request.range_of("revision", first=span.since + 1, last=span.until)
    since, statement = first - 1, change_page(tuple(filters))
    while since < last:
        until, ordinal, is_full = min(since + REVISIONS_AT_ONCE, last), 2**31 - 1, True
        while is_full:
            key = {"zone": zone, "since": since, "ordinal": ordinal, "until": until, "limit": ROWS_AT_ONCE}
            rows = await access.snapshot.rows((statement, {**filters, **key}))
            is_full = len(rows) >= ROWS_AT_ONCE
            if rows:
                since, ordinal = rows[-1][1], rows[-1][2]
                yield [entry_of(row) for row in rows]
        since = until


def _filters_of(request: RowRequest) -> dict[str, Value] | None:
    """Return the conditions that the database evaluates; None if they exclude each other."""
    first, last = request.range_of(OCCURRED_AT, first=-1, last=2**62)
    if first > last:
        return None
    filters: dict[str, Value] = {}
    if first >= 0:
        filters["since_at"] = first
    if last < 2**62:
        filters["until_at"] = last
    for column in ("id", "kind", "actor", "operation"):
        values = request.equal_to(column)
        if values is None:
            continue
        value = next(iter(values), None)
        if column == "kind":
            value = _KINDS.get(str(value))
        if value is None or "\0" in str(value):
            return None
        filters[column] = value
    return filters


async def _positions(access: TableAccess, entries: Sequence[FeedEntry], *, zone: int) -> dict[int, NodePosition]:
    """Read the positions of the changed objects, of their parents and of all ancestors, dropped ones too."""
    changes = [each.change for each in entries]
    ids = {i for each in changes for i in (each.node_id, each.old_parent, each.new_parent) if i} | {zone}
    rows = await access.snapshot.rows((NODE_POSITIONS, {"nodes": dumps(sorted(ids))}))
    return {row[0]: node_position_of(row) for row in rows}


def _rows(
    entries: Sequence[FeedEntry],
    *,
    access: TableAccess,
    feed: _ZoneFeed,
    positions: Mapping[int, NodePosition],
    owners: Mapping[int, int],
) -> list[Cells]:
    if feed.outer is None:
        return [_cells(each) for each in dropped_catalog_changes(entries, positions)]
    publisher = _SnapshotPublisher(access, feed.outer, positions=positions, owners=owners)
    changes = [publisher.publish(each) for each in entries]
    return [_cells(each) for each in changes if each is not None]


class _SnapshotPublisher(ChangePublisher):
    """Selects the changes of a page by the facts of a snapshot."""

    def __init__(
        self,
        access: TableAccess,
        outer: SecurableChain,
        *,
        positions: Mapping[int, NodePosition],
        owners: Mapping[int, int],
    ) -> None:
        super().__init__(outer, positions)
        self._access, self._owners, self._zone = access, owners, outer[0].id

    def chain(self, node_id: int) -> SecurableChain | None:
        """Return the chain of a node, live or dropped; None if an ancestor is in another zone, or is gone."""
        if node_id in self.chains:
            return self.chains[node_id]
        position = self.node_positions.get(node_id)
        above = None if position is None or position.zone != self._zone else self.chain(position.parent_id)
        result: SecurableChain | None = None
        if position is not None and above is not None:
            result = (ChainLink(node_id, position.kind, position.name), *above)
        self.chains[node_id] = result
        return result

    def may_load(self, chain: SecurableChain) -> bool:
        """Decide for the caller. Objects with the same facts share one decision."""
        return self._access.may_load_at(chain, owner_id=self._owners.get(chain[0].id))

    def may_load_at(self, chain: SecurableChain) -> bool:
        """Decide for the caller on an object at an old or new path."""
        return self.may_load(chain)

    def pipeline_of(self, change: ChangeRow) -> tuple[ChainLink, ...]:
        """Return the link to a run's pipeline; empty if the pipeline was dropped."""
        position = self.node_positions.get(change.object_id)
        if position is None or not position.alive:
            return ()
        return (ChainLink(change.object_id, Kind.JOB_TEMPLATE, position.name),)


def _cells(change: PublishedChange) -> Cells:
    paths = [None if path is None else display.render(path) for path in (change.path, change.old, change.new)]
    return (
        change.id,
        change.kind.word,
        *paths,
        change.operation,
        change.actor,
        change.request_id,
        change.at,
        change.zone,
        change.revision,
        change.ordinal,
    )
