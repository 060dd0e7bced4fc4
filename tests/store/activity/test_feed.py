# SPDX-License-Identifier: Apache-2.0
"""Pages of the change feed: changes of several zones after a position, in whole revisions, with a fair share for each
zone.
"""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.store.activity.feed import NEWEST, OLDEST, FeedSlice, ZoneClock, clocks_read, feed_slice_read
from limnos.store.activity.upkeep import feed_prune
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace, add_table


def fill(lab: StoreLab, world: StoreWorld, *names: str) -> None:
    """Create namespaces in catalog `main`, each in its own revision."""
    for name in names:
        lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=world.main.id)


def read(lab: StoreLab, positions: dict[int, int], *, limit: int = 100) -> FeedSlice:
    """Read a page of the feed."""
    return lab.load(feed_slice_read(positions, limit=limit))


def revisions(part: FeedSlice, zone: int) -> list[int]:
    """Return the revisions of a zone in a page, one for each change."""
    return [entry.change.revision for entry in part.entries.get(zone, [])]


def test_changes_after_a_position_are_read_in_order(lab: StoreLab, world: StoreWorld) -> None:
    """Changes after a position are returned in order with their users, and the next position is after the last of
    them.
    """
    fill(lab, world, "a", "b", "c")

    part = read(lab, {world.main.id: 1})

    assert revisions(part, world.main.id) == [2, 3]
    assert part.reached == {world.main.id: 3}
    assert {(entry.actor, entry.request_id) for entry in part.entries[world.main.id]} == {("tester", "request-1")}
    assert part.behind == 0
    assert part.epoch == lab.epoch()


def test_feed_can_be_read_from_the_oldest_or_newest_change(lab: StoreLab, world: StoreWorld) -> None:
    """A reader without a position can start at the oldest stored change or after the newest one."""
    fill(lab, world, "a", "b")
    lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))
    fill(lab, world, "c")

    oldest = read(lab, {world.main.id: OLDEST})
    newest = read(lab, {world.main.id: NEWEST})

    assert (revisions(oldest, world.main.id), oldest.reached) == ([3], {world.main.id: 3})
    assert (newest.entries, newest.reached) == ({}, {world.main.id: 3})


def test_pruned_position_returns_no_changes_and_the_clock(lab: StoreLab, world: StoreWorld) -> None:
    """A position before the pruned revision, or after the newest revision, returns no changes and is not moved. The
    zone's clock, which tells the reader, is returned.
    """
    fill(lab, world, "a", "b")
    lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))
    fill(lab, world, "c")

    before, after = read(lab, {world.main.id: 1}), read(lab, {world.main.id: 9})

    assert (before.entries, before.reached, before.clocks) == ({}, {world.main.id: 1}, {world.main.id: ZoneClock(3, 2)})
    assert (after.entries, after.reached) == ({}, {world.main.id: 9})


def test_zone_with_many_changes_does_not_delay_others(lab: StoreLab, world: StoreWorld) -> None:
    """A zone with many changes does not delay the changes of another zone. The remaining changes are in the next
    page.
    """
    fill(lab, world, *"abcdef")
    lab.write(lambda tx: add_namespace(tx, world.side, "x"), zone=world.side.id)

    part = read(lab, {world.main.id: 0, world.side.id: 0}, limit=4)

    assert (revisions(part, world.main.id), revisions(part, world.side.id)) == ([1, 2], [1])
    assert part.behind == 4


def _many(world: StoreWorld, count: int, tx: Tx) -> None:
    namespace = add_namespace(tx, world.main, "many")
    for number in range(count):
        add_table(tx, namespace, f"t{number}")


def test_large_transaction_is_returned_in_one_page(lab: StoreLab, world: StoreWorld) -> None:
    """A transaction with more changes than a page has is returned as a whole, in a page of its own."""
    fill(lab, world, "a")
    lab.write(lambda tx: _many(world, 50, tx), zone=world.main.id)
    fill(lab, world, "b")
    page_revisions, position = [], 0
    for _ in range(3):
        part = read(lab, {world.main.id: position}, limit=2)
        position = part.reached[world.main.id]
        page_revisions.append(revisions(part, world.main.id))

    assert page_revisions == [[1], [2] * 51, [3]]


def test_change_of_a_dropped_object_has_its_parent_and_name(lab: StoreLab, world: StoreWorld) -> None:
    """A change of a dropped object has its parent and its name, and so have all of its ancestors."""
    outer = lab.write(lambda tx: add_namespace(tx, world.main, "outer"), zone=world.main.id)
    table = lab.write(lambda tx: add_table(tx, outer, "t"), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.drop(table), zone=world.main.id)

    node_positions = read(lab, {world.main.id: 2}).node_positions

    assert node_positions[table.id] == (world.main.id, outer.id, Kind.TABLE, "t", False)
    assert node_positions[outer.id] == (world.main.id, world.main.id, Kind.NAMESPACE, "outer", True)
    assert node_positions[world.main.id].parent_id == world.lake.id


def test_unknown_zones_have_no_clock(lab: StoreLab, world: StoreWorld) -> None:
    """A zone that does not exist is omitted."""
    _, clocks = lab.load(clocks_read([world.main.id, 2**53]))

    assert set(clocks) == {world.main.id}
    assert read(lab, {2**53: 0}).reached == {}
