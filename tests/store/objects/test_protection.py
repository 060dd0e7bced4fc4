# SPDX-License-Identifier: Apache-2.0
"""Deletion protection in the store, on both databases: the statement that drops checks the node and its ancestors."""

from __future__ import annotations

import pytest

from limnos.model.errors import ProtectedObject
from limnos.store.objects.protection import protection_read
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace


def test_protected_node_or_ancestor_prevents_a_drop(lab: StoreLab, world: StoreWorld) -> None:
    """A node is dropped unless it, or an ancestor with recursive protection, is protected. The error names the nearest
    one. A drop leaves no protection rows.
    """
    outer = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    inner = lab.write(lambda tx: add_namespace(tx, outer, "b"), zone=world.main.id)
    lab.write(lambda tx: tx.protection.set(outer, below=False), zone=world.main.id)
    alone = lab.load(protection_read(inner.id))
    lab.write(lambda tx: tx.protection.set(outer, below=True), zone=world.main.id)
    lab.write(lambda tx: tx.protection.set(outer, below=False), zone=world.main.id)
    with pytest.raises(
        ProtectedObject,
        match=r"Namespace b cannot be dropped, because namespace main\.a is protected, with all objects below it",
    ):
        lab.write(lambda tx: tx.nodes.drop(inner), zone=world.main.id)
    with pytest.raises(
        ProtectedObject, match=r"Catalog main cannot be dropped, because namespace main\.a is protected"
    ):
        lab.write(lambda tx: tx.nodes.drop(world.main), zone=world.lake.id)
    with pytest.raises(ProtectedObject):
        lab.write(lambda tx: tx.nodes.drop(world.lake), zone=0)
    protection = lab.load(protection_read(inner.id))
    cleared = [lab.write(lambda tx: tx.protection.clear(outer), zone=world.main.id) for _ in range(2)]
    lab.write(lambda tx: tx.nodes.drop(inner), zone=world.main.id)

    assert alone is None
    assert protection is not None
    assert (protection.node_id, protection.below) == (outer.id, True)
    assert cleared == [True, False]
