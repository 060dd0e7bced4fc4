"""Parts of the change feed: several zones after a position, whole revisions, a fair share for each."""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.store.activity.feed import NEWEST, OLDEST, FeedSlice, ZoneClock, clocks_read, feed_slice_read
from limnos.store.activity.upkeep import feed_prune
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace, add_table


def fill(lab: StoreLab, world: StoreWorld, *names: str) -> None:
    """Make namespaces in `main`, a revision each."""
    for name in names:
        lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=world.main.id)


def read(lab: StoreLab, positions: dict[int, int], *, limit: int = 100) -> FeedSlice:
    """Read a part."""
    return lab.load(feed_slice_read(positions, limit=limit))


def revisions(part: FeedSlice, zone: int) -> list[int]:
    """The revisions of a zone in a part, one for each change."""
    return [entry.change.revision for entry in part.entries.get(zone, [])]


def test_a_zone_is_read_on_from_a_position(lab: StoreLab, world: StoreWorld) -> None:
    """What comes after the position comes in order, with who did it, and the next position is after it."""
    fill(lab, world, "a", "b", "c")

    part = read(lab, {world.main.id: 1})

    assert revisions(part, world.main.id) == [2, 3]
    assert part.reached == {world.main.id: 3}
    assert {(entry.actor, entry.request_id) for entry in part.entries[world.main.id]} == {("tester", "request-1")}
    assert part.behind == 0
    assert part.epoch == lab.epoch()


def test_the_oldest_and_the_newest(lab: StoreLab, world: StoreWorld) -> None:
    """Somebody without a position begins at what is kept, or after what there is."""
    fill(lab, world, "a", "b")
    lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))
    fill(lab, world, "c")

    oldest = read(lab, {world.main.id: OLDEST})
    newest = read(lab, {world.main.id: NEWEST})

    assert (revisions(oldest, world.main.id), oldest.reached) == ([3], {world.main.id: 3})
    assert (newest.entries, newest.reached) == ({}, {world.main.id: 3})


def test_what_was_pruned_gives_nothing(lab: StoreLab, world: StoreWorld) -> None:
    """A position before what is kept, or after what was committed, is left where it is, beside the clock that
    tells it.
    """
    fill(lab, world, "a", "b")
    lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))
    fill(lab, world, "c")

    before, after = read(lab, {world.main.id: 1}), read(lab, {world.main.id: 9})

    assert (before.entries, before.reached, before.clocks) == ({}, {world.main.id: 1}, {world.main.id: ZoneClock(3, 2)})
    assert (after.entries, after.reached) == ({}, {world.main.id: 9})


def test_zones_share(lab: StoreLab, world: StoreWorld) -> None:
    """A busy zone does not keep a quiet one waiting, and what is left over comes with the next part."""
    fill(lab, world, *"abcdef")
    lab.write(lambda tx: add_namespace(tx, world.side, "x"), zone=world.side.id)

    part = read(lab, {world.main.id: 0, world.side.id: 0}, limit=4)

    assert (revisions(part, world.main.id), revisions(part, world.side.id)) == ([1, 2], [1])
    assert part.behind == 4


def _many(world: StoreWorld, count: int, tx: Tx) -> None:
    namespace = add_namespace(tx, world.main, "many")
    for number in range(count):
        add_table(tx, namespace, f"t{number}")


def test_a_revision_is_never_cut(lab: StoreLab, world: StoreWorld) -> None:
    """A transaction with more changes than a part takes comes whole, and alone."""
    fill(lab, world, "a")
    lab.write(lambda tx: _many(world, 50, tx), zone=world.main.id)
    fill(lab, world, "b")
    found, position = [], 0
    for _ in range(3):
        part = read(lab, {world.main.id: position}, limit=2)
        position = part.reached[world.main.id]
        found.append(revisions(part, world.main.id))

    assert found == [[1], [2] * 51, [3]]


def test_it_is_told_where_things_lie_or_lay(lab: StoreLab, world: StoreWorld) -> None:
    """What was dropped is told with its parent and its name, and so is all that lies above."""
    outer = lab.write(lambda tx: add_namespace(tx, world.main, "outer"), zone=world.main.id)
    table = lab.write(lambda tx: add_table(tx, outer, "t"), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.drop(table), zone=world.main.id)

    node_positions = read(lab, {world.main.id: 2}).node_positions

    assert node_positions[table.id] == (world.main.id, outer.id, Kind.TABLE, "t", False)
    assert node_positions[outer.id] == (world.main.id, world.main.id, Kind.NAMESPACE, "outer", True)
    assert node_positions[world.main.id].parent_id == world.lake.id


def test_unknown_zones_have_no_clock(lab: StoreLab, world: StoreWorld) -> None:
    """A zone that never was is left out."""
    _, clocks = lab.load(clocks_read([world.main.id, 2**53]))

    assert set(clocks) == {world.main.id}
    assert read(lab, {2**53: 0}).reached == {}
