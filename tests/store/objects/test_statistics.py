# SPDX-License-Identifier: Apache-2.0
"""Statistics in the store: overwritten, read by range in the order of names, deleted, and swept after a drop."""

from __future__ import annotations

from limnos.model.statistics import PartitionRange
from limnos.store.activity.upkeep import orphans_sweep
from limnos.store.objects.statistics import partition_statistics_read, statistics_read
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace

PARTITIONS = ("B", "a", "b", "ä")
"""Names in the order of their code points."""


def test_statistics_are_replaced_and_deleted_by_range(lab: StoreLab, world: StoreWorld) -> None:
    """A written value replaces the earlier one and has its writer. Ranges are in the order of code points on every
    database.
    """
    space = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    values = [("", "custom-n", "1"), *((name, "custom-n", "2") for name in reversed(PARTITIONS))]
    lab.write(lambda tx: tx.statistics.put(space.id, values), zone=world.main.id)
    lab.write(lambda tx: tx.statistics.put(space.id, [("", "custom-n", "3")]), zone=world.main.id)
    own = lab.load(statistics_read(space.id))
    ranges = [
        PartitionRange("B", None),
        PartitionRange(None, "b"),
        PartitionRange("B", "b", above_too=False, below_too=True),
        PartitionRange("x", "y"),
    ]
    partitions = [
        [each.partition for each in lab.load(partition_statistics_read(space.id, it, limit=9))] for it in ranges
    ]
    first = lab.load(partition_statistics_read(space.id, PartitionRange("B", None), limit=1))
    deleted_keys = [("a", "custom-n"), ("a", "custom-gone")]
    deleted = [lab.write(lambda tx: tx.statistics.delete(space.id, deleted_keys), zone=world.main.id) for _ in range(2)]

    assert [(each.name, each.value) for each in own] == [("custom-n", "3")]
    assert own[0].modified_by == own[0].created_by
    assert partitions == [list(PARTITIONS), ["B", "a"], ["a", "b"], []]
    assert [each.partition for each in first] == ["B"]
    assert deleted == [1, 0]


def test_sweep_deletes_statistics_of_purged_objects(lab: StoreLab, world: StoreWorld) -> None:
    """The sweep deletes statistics of objects that are gone for good, and keeps the others."""
    spaces = [lab.write(lambda tx, n=name: add_namespace(tx, world.main, n), zone=world.main.id) for name in "ab"]
    for space in spaces:
        lab.write(lambda tx, on=space.id: tx.statistics.put(on, [("", "custom-n", "1")]), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.drop(spaces[0]), zone=world.main.id)

    assert lab.write(orphans_sweep, zone=world.lake.id) == 1
    assert [len(lab.load(statistics_read(space.id))) for space in spaces] == [0, 1]


def test_column_statistics_are_separate_and_swept_with_the_table(lab: StoreLab, world: StoreWorld) -> None:
    """Statistics of a column are separate from those of the table and of other columns. The sweep deletes them with the
    table.
    """
    space = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    for field, value in ((0, "0"), (1, "1"), (2, "2"), (1, "3")):
        put = [("", "custom-n", value)]
        lab.write(lambda tx, p=put, f=field: tx.statistics.put(space.id, p, field_id=f), zone=world.main.id)
    read = [[each.value for each in lab.load(statistics_read(space.id, field_id=field))] for field in (0, 1, 2, 3)]
    deleted_keys = [("", "custom-n"), ("", "custom-gone")]
    deleted = [
        lab.write(lambda tx: tx.statistics.delete(space.id, deleted_keys, field_id=1), zone=world.main.id) for _ in "ab"
    ]
    lab.write(lambda tx: tx.nodes.drop(space), zone=world.main.id)

    assert (read, deleted) == ([["0"], ["3"], ["2"], []], [1, 0])
    assert lab.write(orphans_sweep, zone=world.lake.id) == 2
