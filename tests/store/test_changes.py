# SPDX-License-Identifier: Apache-2.0
"""The change feed as the gate reads it: old and new names, ordinals, epochs and pruning."""

from __future__ import annotations

from limnos.model.entities import ChangeRow
from limnos.model.kinds import Kind
from limnos.store.activity.upkeep import feed_prune
from limnos.store.backends.migrate import renew_epoch
from limnos.store.changes import NO_CHANGES, UNKNOWN, changes_read
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.test_clock import move_access, touch
from tests.store.world import StoreWorld, add_namespace


def names(change: ChangeRow) -> tuple[object, ...]:
    """Return the names in a change."""
    return (change.operation, change.old_parent, change.old_name, change.new_parent, change.new_name)


def test_changes_name_old_and_new_parent_and_name(lab: StoreLab, world: StoreWorld) -> None:
    """The changes of create, rename, move and drop name the old and the new parent and name."""
    main = world.main.id
    a = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=main)
    b = lab.write(lambda tx: add_namespace(tx, world.main, "b"), zone=main)
    lab.write(lambda tx: tx.nodes.move(b, parent_id=main, name="c", moves_access=False), zone=main)
    current_node = lab.write(lambda tx: tx.nodes.by_id(b.id), zone=main)
    lab.write(lambda tx: tx.nodes.move(current_node, parent_id=a.id, name="d", moves_access=True), zone=main)
    current_node = lab.write(lambda tx: tx.nodes.by_id(b.id), zone=main)
    lab.write(lambda tx: tx.nodes.drop(current_node), zone=main)

    feed = lab.load(changes_read(main, 1))

    assert [names(change) for change in feed] == [
        ("create", None, None, main, "b"),
        ("move", main, "b", main, "c"),
        ("move", main, "c", a.id, "d"),
        ("drop", a.id, "d", None, None),
    ]
    assert {(change.node_id, change.kind, change.name_space) for change in feed} == {
        (b.id, Kind.NAMESPACE, "namespace")
    }
    assert [change.revision for change in feed] == [2, 3, 4, 5]


def test_changes_of_one_mutation_are_numbered(lab: StoreLab, world: StoreWorld) -> None:
    """Several changes of one mutation have its revision, are in order, and have the user and the time."""

    def several(tx: Tx) -> None:
        outer = add_namespace(tx, world.main, "a")
        add_namespace(tx, outer, "b")
        add_namespace(tx, outer, "c")

    lab.write(several, zone=world.main.id)

    feed = lab.load(changes_read(world.main.id, 0))
    assert [(change.revision, change.ordinal, change.new_name) for change in feed] == [
        (1, 0, "a"),
        (1, 1, "b"),
        (1, 2, "c"),
    ]
    rows = lab.database.sql("SELECT DISTINCT actor, request_id FROM change WHERE zone = ?", world.main.id)
    assert rows == [("tester", "request-1")]


def test_freshness_read_without_changes_is_empty(lab: StoreLab, world: StoreWorld) -> None:
    """A gate read that knows every revision returns nothing, whatever changed in other zones."""
    zones = (0, world.lake.id, world.main.id)
    known = [(zone, lab.clock(zone)[0]) for zone in zones]
    lab.write(touch, zone=world.side.id)

    assert lab.gate(known) is NO_CHANGES


def test_freshness_read_returns_changes_since_known_revisions(lab: StoreLab, world: StoreWorld) -> None:
    """For each zone that changed, a gate read returns its clock and all changes since the known revision; for other
    zones nothing.
    """
    zones = (0, world.lake.id, world.main.id, world.side.id)
    known = [(zone, lab.clock(zone)[0]) for zone in zones]
    lab.write(touch, zone=world.main.id)
    lab.write(move_access, zone=world.main.id)
    lab.write(touch, zone=world.side.id)

    moved = lab.gate(known)

    assert moved.epoch == lab.epoch()
    assert {(row.zone, row.revision, row.access_revision, row.pruned_to) for row in moved.clocks} == {
        (world.main.id, 2, 2, 0),
        (world.side.id, 1, 0, 0),
    }
    assert [(change.zone, change.revision) for change in moved.changes if change.zone == world.main.id] == [
        (world.main.id, 1),
        (world.main.id, 2),
    ]
    assert len(moved.changes) == 3


def test_freshness_read_of_a_new_zone_returns_only_the_clock(lab: StoreLab, world: StoreWorld) -> None:
    """For a zone that the caller has not read before, a gate read returns the clock without changes."""
    lab.write(touch, zone=world.main.id)

    moved = lab.gate([(world.main.id, UNKNOWN)])

    assert [(row.zone, row.revision) for row in moved.clocks] == [(world.main.id, 1)]
    assert moved.changes == ()


def test_freshness_read_omits_a_missing_zone(lab: StoreLab, world: StoreWorld) -> None:
    """A gate read omits a zone that does not exist."""
    assert lab.gate([(10**12, UNKNOWN)]) is NO_CHANGES


def test_freshness_read_of_another_epoch_returns_every_clock(lab: StoreLab, world: StoreWorld) -> None:
    """A gate read with another epoch returns the current epoch and every clock, also if all revisions are equal."""
    known = [(world.main.id, lab.clock(world.main.id)[0])]

    moved = lab.gate(known, epoch=lab.epoch() + 1)

    assert moved is not NO_CHANGES
    assert moved.epoch == lab.epoch()


def test_freshness_read_is_one_statement(lab: StoreLab, world: StoreWorld) -> None:
    """A gate read is one statement, however many zones and changes it covers."""
    lab.write(touch, zone=world.main.id)
    store = lab.store
    before = store.statements

    lab.gate([(0, 0), (world.lake.id, 0), (world.main.id, 0)])

    assert store.statements - before == 1


def test_pruning_records_the_pruned_revision(lab: StoreLab, world: StoreWorld) -> None:
    """Pruning records the pruned revision in the clock before it deletes old rows, and keeps young rows."""
    for _ in range(3):
        lab.write(touch, zone=world.main.id)
    lab.database.sql("UPDATE change SET at = at - 10000 WHERE zone = ? AND revision <= 2", world.main.id)

    pruned = lab.write(lambda tx: feed_prune(tx, keep_ms=5000))

    assert pruned == 2
    assert lab.database.sql("SELECT pruned_to, revision FROM clock WHERE zone = ?", world.main.id) == [(2, 3)]
    assert [change.revision for change in lab.load(changes_read(world.main.id, 0))] == [3]


def test_pruning_deletes_only_the_beginning_of_the_feed(lab: StoreLab, world: StoreWorld) -> None:
    """If a machine's clock was set back, pruning deletes only from the beginning of the feed, up to the first change
    that is kept, and never rows in its middle.
    """
    for _ in range(4):
        lab.write(touch, zone=world.main.id)
    lab.database.sql("UPDATE change SET at = at - 10000 WHERE zone = ? AND revision IN (1, 3)", world.main.id)

    lab.write(lambda tx: feed_prune(tx, keep_ms=5000))

    assert [change.revision for change in lab.load(changes_read(world.main.id, 0))] == [2, 3, 4]
    assert lab.database.sql("SELECT pruned_to FROM clock WHERE zone = ?", world.main.id) == [(1,)]


def test_second_pruning_retains_the_pruned_revision(lab: StoreLab, world: StoreWorld) -> None:
    """A second pruning that deletes nothing keeps the pruned revision of the first."""
    lab.write(touch, zone=world.main.id)
    lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))

    lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))

    assert lab.database.sql("SELECT pruned_to FROM clock WHERE zone = ?", world.main.id) == [(1,)]


def test_revisions_continue_after_pruning(lab: StoreLab, world: StoreWorld) -> None:
    """After pruning, revisions continue without a gap, and later writes keep the pruned revision."""
    lab.write(touch, zone=world.main.id)
    lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))

    assert lab.write(touch, zone=world.main.id) == 2
    assert lab.database.sql("SELECT pruned_to FROM clock WHERE zone = ?", world.main.id) == [(1,)]


def test_each_restore_starts_a_new_epoch(lab: StoreLab, world: StoreWorld) -> None:
    """Two restores of one backup have different epochs, so that a view of the first is not used for the second."""
    backup = lab.epoch()
    seen = {backup}
    for _ in range(5):
        renew_epoch(lab.database.address)
        seen.add(lab.epoch())
        lab.database.sql("UPDATE store SET epoch = ?", backup)  # restore of the same backup

    assert len(seen) == 6


def test_ids_after_a_restore_exceed_all_earlier_ids(lab: StoreLab, world: StoreWorld) -> None:
    """After a restore, new ids are above all ids assigned before, and below 2^53."""
    lost = [lab.write(lambda tx: tx.next_id()) for _ in range(3)]

    renew_epoch(lab.database.address)

    first = lab.write(lambda tx: tx.next_id())
    assert max(lost) < first < 2**53
    assert lab.write(lambda tx: tx.next_id()) == first + 1


def test_ids_are_not_repeated_if_the_clock_was_set_back(lab: StoreLab, world: StoreWorld) -> None:
    """If a machine's clock was set back, a restore there does not assign ids again that the backup had assigned."""
    far = 2**52
    lab.database.sql(
        "UPDATE store SET next_id = ?" if lab.database.kind == "sqlite" else "SELECT setval('limnos_id', ?, false)", far
    )
    renew_epoch(lab.database.address)

    assert lab.write(lambda tx: tx.next_id()) >= far
