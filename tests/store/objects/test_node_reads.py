# SPDX-License-Identifier: Apache-2.0
"""Several children of a parent are read by their names, on both stores."""

from __future__ import annotations

from limnos.store.objects.node_reads import named_children_read
from tests.backends import StoreLab
from tests.store.world import ASTRAL, StoreWorld, add_namespace


def test_live_children_with_the_names_are_read(lab: StoreLab, world: StoreWorld) -> None:
    """Only live children of the parent with exactly these names are read."""
    zone = world.main.id
    nodes = {
        name: lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=zone)
        for name in ("a", "b", 'q"', ASTRAL, "dropped")
    }
    lab.write(lambda tx: add_namespace(tx, world.side, "far"), zone=world.side.id)
    lab.write(lambda tx: tx.nodes.drop(nodes["dropped"]), zone=zone)

    children = lab.load(named_children_read(zone, "namespace", names=["a", 'q"', ASTRAL, "dropped", "far", "A"]))

    assert sorted(children, key=lambda node: node.id) == [nodes["a"], nodes['q"'], nodes[ASTRAL]]
