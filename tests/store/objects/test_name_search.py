# SPDX-License-Identifier: Apache-2.0
"""Search candidates, on both stores: names by range, ids, owners, and names that an older release stored without
folding.
"""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.store.objects.name_search import (
    LAST,
    NAME_PARTS,
    NameRange,
    candidates_read,
    names_fold,
    names_read,
    owned_ids_read,
)
from tests.backends import StoreLab
from tests.store.world import ASTRAL, StoreWorld, add_namespace

ALL = [int(kind) for kind in Kind]


def names(lab: StoreLab, low: str, high: str, *zones: int, limit: int = 100) -> list[str]:
    """Return the folded names of a range, in order."""
    name_range = NameRange(low, high, zones, ALL)
    return sorted(each.folded for each in lab.load(names_read(name_range, limit=limit)))


def test_folded_names_are_searched_by_range_and_zone(lab: StoreLab, world: StoreWorld) -> None:
    """Names are folded when they are written, moved and restored. Dropped objects and other zones are not found."""
    for name in ("Flights", "flights_2", f"flights{ASTRAL}", "Other", "Gone"):
        lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=world.main.id)
    lab.write(lambda tx: add_namespace(tx, world.side, "FLIGHTS"), zone=world.side.id)
    dropped_node = lab.write(lambda tx: tx.nodes.find(world.main.id, "namespace", "Gone"), zone=world.main.id)
    other = lab.write(lambda tx: tx.nodes.find(world.main.id, "namespace", "Other"), zone=world.main.id)
    assert dropped_node is not None
    assert other is not None
    lab.write(lambda tx: tx.nodes.drop(dropped_node, keep_ms=1000), zone=world.main.id)
    lab.write(
        lambda tx: tx.nodes.move(other, parent_id=world.main.id, name="Moved", moves_access=False), zone=world.main.id
    )

    assert names(lab, "flights", f"flights{LAST}", world.main.id) == ["flights", "flights_2", f"flights{ASTRAL}"]
    assert names(lab, "flights", "flights\x01", world.main.id, world.side.id) == ["flights", "flights"]
    assert names(lab, "", LAST, world.main.id, limit=2) != []
    assert (names(lab, "other", "other\x01", world.main.id), names(lab, "moved", "moved\x01", world.main.id)) == (
        [],
        ["moved"],
    )
    assert names(lab, "gone", "gone\x01", world.main.id) == []
    assert lab.load(candidates_read([dropped_node.id])) == []
    lab.write(
        lambda tx: tx.nodes.revive(
            dropped_node.id, kind=dropped_node.kind, space="namespace", parent_id=world.main.id, name="BACK"
        ),
        zone=world.main.id,
    )
    assert names(lab, "back", "back\x01", world.main.id) == ["back"]
    assert [each.id for each in lab.load(candidates_read([dropped_node.id, 1]))] == [dropped_node.id]


def test_parts_of_a_name_range_have_each_object_once(lab: StoreLab, world: StoreWorld) -> None:
    """The parts together have each object of the range once, in parts of about equal size."""
    for number in range(64):
        lab.write(lambda tx, name=f"part{number:02}": add_namespace(tx, world.main, name), zone=world.main.id)
    name_range = NameRange("part", f"part{LAST}", [world.main.id], ALL)
    parts = [[each.folded for each in lab.load(names_read(name_range, limit=100, part=at))] for at in range(NAME_PARTS)]

    assert sorted(name for part in parts for name in part) == [f"part{number:02}" for number in range(64)]
    assert all(8 <= len(part) <= 24 for part in parts)
    assert len(lab.load(names_read(name_range, limit=3, part=0))) == 3


def test_owned_objects_are_read_up_to_a_limit(lab: StoreLab, world: StoreWorld) -> None:
    """The ids of the objects that a principal owns are read up to a limit."""
    owned = [
        lab.write(lambda tx, name=name: add_namespace(tx, world.main, name, owner_id=7), zone=world.main.id).id
        for name in "abc"
    ]

    assert lab.load(owned_ids_read(7, limit=2)) == owned[:2]
    assert lab.load(owned_ids_read(8, limit=2)) == []


def test_names_of_an_older_release_are_folded_later(lab: StoreLab, world: StoreWorld) -> None:
    """A row of an older release without folded name is found only after the upkeep has filled the name."""
    node = lab.write(lambda tx: add_namespace(tx, world.main, "Old"), zone=world.main.id)
    lab.database.sql("UPDATE node SET folded = NULL WHERE id = ?", node.id)
    before = names(lab, "old", "old\x01", world.main.id)
    filled = lab.write(names_fold, zone=world.lake.id)

    assert (before, filled >= 1, names(lab, "old", "old\x01", world.main.id)) == ([], True, ["old"])
    assert lab.write(names_fold, zone=world.lake.id) == 0
