# SPDX-License-Identifier: Apache-2.0
"""Owned objects on both stores: pages of several principals over several zones."""

from __future__ import annotations

import pytest

from limnos.model.entities import OwnedRange
from limnos.store.objects import owners
from limnos.store.objects.owners import owned_read, owner_read, owners_read
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace


def test_owned_objects_of_principals_are_read_for_all_zones(
    lab: StoreLab, world: StoreWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One read has the ranges of all principals in all zones. A page that ends within the objects of a principal says
    so, and lacks the principals after it.
    """
    main, side = world.main.id, world.side.id
    first = lab.write(lambda tx: add_namespace(tx, world.main, "a", owner_id=7), zone=main)
    inner = lab.write(lambda tx: add_namespace(tx, first, "b", owner_id=8), zone=main)
    far = lab.write(lambda tx: add_namespace(tx, world.side, "c", owner_id=8), zone=side)
    dropped_node = lab.write(lambda tx: add_namespace(tx, world.side, "d", owner_id=9), zone=side)
    lab.write(lambda tx: tx.nodes.drop(dropped_node, keep_ms=1000), zone=side)

    def read(*principal_ids: int, after: int = 0) -> dict[tuple[int, int], tuple[set[int], int | None]]:
        ranges = lab.load(owned_read(principal_ids, zones=(main, side), after=after))
        assert all(isinstance(each, OwnedRange) and not each.parents for each in ranges.values())
        return {key: (set(each.namespaces), each.last) for key, each in ranges.items()}

    assert read(7, 8, 9) == {
        (main, 7): ({first.id}, None),
        (side, 7): (set(), None),
        (main, 8): ({inner.id}, None),
        (side, 8): ({far.id}, None),
        (main, 9): (set(), None),
        (side, 9): (set(), None),
    }
    monkeypatch.setattr(owners, "OWNED_MAX", 2)
    assert read(7, 8, 9) == {
        (main, 7): ({first.id}, None),
        (side, 7): (set(), None),
        (main, 8): ({inner.id}, inner.id),
        (side, 8): (set(), inner.id),
    }
    assert read(8, after=inner.id) == {(main, 8): (set(), None), (side, 8): ({far.id}, None)}


def test_owners_of_several_objects_are_read_together(lab: StoreLab, world: StoreWorld) -> None:
    """One read has the owners of several objects, as separate reads have them."""
    first = lab.write(lambda tx: add_namespace(tx, world.main, "a", owner_id=7), zone=world.main.id)
    ids = [first.id, world.main.id, 10**12]

    owners_by_id = lab.load(owners_read(ids))

    assert owners_by_id == {object_id: lab.load(owner_read(object_id)) for object_id in ids}
    assert owners_by_id[first.id] == 7
