# SPDX-License-Identifier: Apache-2.0
"""Former objects in the store, on both databases: what is kept for successors, for how long, and under which lock."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import msgspec
import pytest

from limnos.model.entities import Grant, Node
from limnos.model.errors import MetalakeLockRequired
from limnos.model.kinds import Kind
from limnos.store.activity.upkeep import orphans_sweep
from limnos.store.changes import changes_read
from limnos.store.objects.successors import FORMER_OBJECT_MS
from limnos.store.sql import Sql
from limnos.store.tx import Mutation, Tx
from tests.backends import StoreLab
from tests.store.world import CATALOG, StoreWorld, add_namespace

PRUNE = Sql("UPDATE clock SET pruned_to = revision")
EXPIRE = Sql("UPDATE former_object SET expires_at = expires_at - :ms")
T = TypeVar("T")


def write(lab: StoreLab, world: StoreWorld, mutation: Mutation[T], *, locks: bool = False) -> T:
    """Submit a mutation of the catalog; with `locks` it has the metalake's lock."""
    permit = lab.permit(0, world.lake.id, world.main.id)
    return lab.run(lab.store.submit(msgspec.structs.replace(permit, writes_metalake=locks), mutation))


@pytest.fixture
def dropped(lab: StoreLab, world: StoreWorld) -> Node:
    """A namespace with a grant that was dropped for good, in a catalog with successors."""
    zone, record = world.lake.id, replace(CATALOG, properties={"successors": "same-owner"})
    lab.write(lambda tx: tx.nodes.write_record(world.main, record), zone=zone)
    node = write(lab, world, lambda tx: add_namespace(tx, world.main, "a"))

    def grant(tx: Tx) -> None:
        role = tx.roles.create(world.lake.id, "reader", properties={}, owner_id=None)
        tx.roles.allow(role, [Grant(node.id, Kind.NAMESPACE, 1, allowed=True)])

    lab.write(grant, zone=zone)
    write(lab, world, lambda tx: tx.nodes.drop(node))
    return node


def grants(lab: StoreLab, node: Node) -> int:
    """Return the number of grants on a node."""
    count: int = lab.database.sql("SELECT count(*) FROM access_grant WHERE object_id = ?", node.id)[0][0]
    return count


def test_successor_needs_the_lock_of_its_metalake(lab: StoreLab, world: StoreWorld, dropped: Node) -> None:
    """Without the lock nothing is written. With it the grant is a change of the metalake, which moves its revision."""
    before = lab.clock(world.lake.id)
    with pytest.raises(MetalakeLockRequired):
        write(lab, world, lambda tx: add_namespace(tx, world.main, "a"))
    node = write(lab, world, lambda tx: add_namespace(tx, world.main, "a"), locks=True)
    after = lab.clock(world.lake.id)
    (change,) = lab.load(changes_read(world.lake.id, before[0]))

    assert [grants(lab, each) for each in (dropped, node)] == [1, 1]
    assert after == (before[0] + 1, before[0] + 1)
    assert (change.operation, change.kind, change.new_parent) == ("alter", Kind.ROLE, node.id)


def test_sweep_keeps_grants_for_a_successor(lab: StoreLab, world: StoreWorld, dropped: Node) -> None:
    """The sweep of orphan rows keeps grants of a former object while its path remembers it."""
    lab.write(lambda tx: tx.count(PRUNE, {}))
    lab.write(orphans_sweep)
    count = grants(lab, dropped)
    lab.write(lambda tx: tx.count(EXPIRE, {"ms": FORMER_OBJECT_MS + 1}))
    lab.write(orphans_sweep)

    assert [count, grants(lab, dropped)] == [1, 0]


def test_expired_object_has_no_successor(lab: StoreLab, world: StoreWorld, dropped: Node) -> None:
    """After the time for which a path remembers its object, a new one takes over nothing."""
    lab.write(lambda tx: tx.count(EXPIRE, {"ms": FORMER_OBJECT_MS + 1}))
    node = write(lab, world, lambda tx: add_namespace(tx, world.main, "a"))

    assert grants(lab, node) == 0
