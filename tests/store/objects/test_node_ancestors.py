# SPDX-License-Identifier: Apache-2.0
"""Nodes of many catalogs are read with their ancestors in one statement, on both stores."""

from __future__ import annotations

import pytest

from limnos.model.entities import Node
from limnos.store.objects import owners
from limnos.store.objects.node_ancestors import containers_read, nodes_read
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace


@pytest.fixture
def nested(lab: StoreLab, world: StoreWorld) -> dict[str, Node]:
    """Namespaces `a` and `a.b` of one catalog, `c` of another."""
    zone = world.main.id
    a = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=zone)
    b = lab.write(lambda tx: add_namespace(tx, a, "b"), zone=zone)
    c = lab.write(lambda tx: add_namespace(tx, world.side, "c"), zone=world.side.id)
    return {"a": a, "b": b, "c": c}


def test_nodes_come_with_their_ancestors_below_the_catalog(lab: StoreLab, nested: dict[str, Node]) -> None:
    """Nodes of two catalogs come with the namespaces above them and with dropped ones, in one statement."""
    lab.write(lambda tx: tx.nodes.drop(nested["c"]), zone=nested["c"].zone)
    before = lab.store.statements

    rows = lab.load(nodes_read([nested["b"].id, nested["c"].id, 10**9]))

    assert lab.store.statements - before == 2  # one is the freshness check
    live = {row.node.name: row.is_live for row in rows}
    assert live == {"a": True, "b": True, "c": False}


def test_containers_are_catalogs_owned_nodes_and_ancestors(
    lab: StoreLab, world: StoreWorld, nested: dict[str, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogs of a metalake come with their clocks, and with a chosen node, owned nodes and their ancestors; the
    result says what exceeds the limit.
    """
    b, c = nested["b"], nested["c"]
    lab.write(lambda tx: tx.owners.insert(b.id, 77), zone=b.zone)
    before = lab.store.statements

    read = lab.load(containers_read(world.main.parent_id, [77, 78], node_ids=[c.id]))

    assert lab.store.statements - before == 2  # one is the freshness check
    assert {row.node.id for row in read.rows} >= {world.main.id, world.side.id, nested["a"].id, b.id, c.id}
    assert {clock.zone for clock in read.clocks} >= {world.main.id, world.side.id}
    assert [row.owner_id for row in read.rows if row.node.id == b.id] == [77]
    assert (read.has_all_catalogs, read.has_all_owned) == (True, True)

    monkeypatch.setattr(owners, "OWNED_MAX", 1)
    read = lab.load(containers_read(world.main.parent_id, [77, 78], node_ids=[c.id]))
    assert (read.has_all_catalogs, read.has_all_owned) == (False, False)
