# SPDX-License-Identifier: Apache-2.0
"""Clocks of zones: dense revisions in commit order, access revisions that move only on request, and the locks that keep
permits valid.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from limnos.model.errors import AlreadyExists, StalePermit
from limnos.model.kinds import Kind
from limnos.store.changes import ChangeDraft, changes_read
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace


def touch(tx: Tx) -> int:
    """Record a change that alters nothing. Returns its revision."""
    tx.add_change(ChangeDraft(operation="alter", kind=Kind.NAMESPACE, node_id=1))
    return tx.revision


def move_access(tx: Tx) -> int:
    """Record a change that may alter a decision."""
    tx.add_change(ChangeDraft(operation="alter", kind=Kind.NAMESPACE, node_id=1, moves_access=True))
    return tx.revision


def test_revisions_are_dense(lab: StoreLab, world: StoreWorld) -> None:
    """Every mutation with a change takes the next revision of its zone, and of no other zone."""
    others = [lab.clock(zone) for zone in (0, world.lake.id, world.side.id)]
    first = lab.clock(world.main.id)[0]

    revisions = [lab.write(touch, zone=world.main.id) for _ in range(5)]

    assert revisions == [first + i for i in range(1, 6)]
    assert lab.clock(world.main.id)[0] == first + 5
    assert [lab.clock(zone) for zone in (0, world.lake.id, world.side.id)] == others


def test_access_revision_moves_only_with_access_changes(lab: StoreLab, world: StoreWorld) -> None:
    """The access revision does not move with changes that cannot alter a decision. A change that can sets it to its own
    revision.
    """
    quiet = lab.clock(world.main.id)[1]
    lab.write(touch, zone=world.main.id)
    assert lab.clock(world.main.id)[1] == quiet

    moved = lab.write(move_access, zone=world.main.id)
    lab.write(touch, zone=world.main.id)

    assert lab.clock(world.main.id) == (moved + 1, moved)


def test_leaf_creates_and_renames_do_not_move_access(lab: StoreLab, world: StoreWorld) -> None:
    """Creates, alters and renames of leaf objects do not move the access revision. Drops and explicit requests do."""
    node = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.write_record(node, node.record), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.add_commit_change(node), zone=world.main.id)
    quiet = lab.clock(world.main.id)[1]

    lab.write(lambda tx: tx.nodes.drop(node), zone=world.main.id)

    assert quiet == 0
    assert lab.clock(world.main.id) == (4, 4)


def test_mutation_without_change_takes_no_revision(lab: StoreLab, world: StoreWorld) -> None:
    """A mutation without changes does not move the clock."""
    before = lab.clock(world.main.id)

    lab.write(lambda tx: None, zone=world.main.id)

    assert lab.clock(world.main.id) == before


def test_failed_mutation_is_rolled_back_completely(lab: StoreLab, world: StoreWorld) -> None:
    """A mutation that raises after it wrote leaves no row, change, revision or task."""
    before = lab.clock(world.main.id)

    def fail(tx: Tx) -> None:
        add_namespace(tx, world.main, "a", owner_id=3)
        tx.tasks.create("purge", "{}")
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        lab.write(fail, zone=world.main.id)

    assert lab.clock(world.main.id) == before
    assert lab.database.sql("SELECT count(*) FROM node WHERE zone = ?", world.main.id) == [(0,)]
    assert [lab.database.sql(f"SELECT count(*) FROM {table}") for table in ("owner", "task")] == [[(0,)], [(0,)]]
    assert lab.load(changes_read(world.main.id, 0)) == []


def test_failed_mutation_does_not_affect_its_batch(lab: StoreLab, world: StoreWorld) -> None:
    """Of mutations in one batch, a failing one leaves nothing, and the others are applied completely."""

    def add(name: str, *, fails: bool) -> object:
        def mutation(tx: Tx) -> int:
            add_namespace(tx, world.main, name)
            if fails:
                raise ValueError(name)
            return tx.revision

        return lab.store.submit(lab.permit(world.main.id), mutation)

    async def together() -> list[object]:
        names = [("a", False), ("b", True), ("c", False), ("d", True), ("e", False)]
        return await asyncio.gather(*(add(name, fails=fails) for name, fails in names), return_exceptions=True)

    outcomes = lab.run(together())

    names = [row[0] for row in lab.database.sql("SELECT name FROM node WHERE zone = ? ORDER BY name", world.main.id)]
    assert [type(each) for each in outcomes] == [int, ValueError, int, ValueError, int]
    assert names == ["a", "c", "e"]
    assert sorted(each for each in outcomes if isinstance(each, int)) == [1, 2, 3]
    assert lab.clock(world.main.id)[0] == 3
    assert [change.revision for change in lab.load(changes_read(world.main.id, 0))] == [1, 2, 3]


def test_concurrent_writers_of_one_zone_share_no_revision(lab: StoreLab, world: StoreWorld) -> None:
    """Forty writers on two nodes get forty different revisions without a gap, and the feed has each once."""
    nodes = [lab.store, lab.open()]
    permit = lab.permit(world.main.id)

    async def race() -> list[int]:
        return await asyncio.gather(*(nodes[i % 2].submit(permit, touch) for i in range(40)))

    revisions = lab.run(race())

    assert sorted(revisions) == list(range(1, 41))
    assert [change.revision for change in lab.load(changes_read(world.main.id, 0))] == list(range(1, 41))


def test_concurrent_writers_of_many_zones_do_not_deadlock(lab: StoreLab, world: StoreWorld) -> None:
    """Concurrent writers of the server's, the metalake's and catalogs' zones neither deadlock nor lose a revision."""
    zones = (0, world.lake.id, world.main.id, world.side.id)
    chains = {0: (0,), world.lake.id: zones[:2], world.main.id: zones[:3], world.side.id: (*zones[:2], zones[3])}
    order = [zone for zone in zones for _ in range(10)]
    random.Random(1).shuffle(order)
    before = {zone: lab.clock(zone)[0] for zone in zones}

    async def race() -> None:
        permits = {zone: lab.permit(*chains[zone]) for zone in zones}
        await asyncio.gather(*(lab.store.submit(permits[zone], touch) for zone in order))

    lab.run(race())

    assert {zone: lab.clock(zone)[0] - before[zone] for zone in zones} == dict.fromkeys(zones, 10)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_permit_is_stale_when_access_moved_in_any_of_its_zones(lab: StoreLab, world: StoreWorld, place: int) -> None:
    """A permit is refused if the access revision has moved in the zone of the server, the metalake or the catalog since
    the decision.
    """
    chain = (0, world.lake.id, world.main.id)
    permit = lab.permit(*chain)
    lab.write(move_access, zone=chain[place])

    with pytest.raises(StalePermit):
        lab.run(lab.store.submit(permit, touch))

    assert lab.database.sql("SELECT count(*) FROM change WHERE zone = ? AND request_id = ?", chain[2], "x") == [(0,)]
    lab.run(lab.store.submit(lab.permit(*chain), touch))


def test_metalake_permit_is_stale_when_catalog_access_moved(lab: StoreLab, world: StoreWorld) -> None:
    """A mutation of the metalake's zone is refused if the access revision moved in the catalog that its decision
    used.
    """
    chain = (0, world.lake.id, world.main.id)
    permit = lab.permit(*chain, zone=world.lake.id)
    lab.write(move_access, zone=world.main.id)

    with pytest.raises(StalePermit):
        lab.run(lab.store.submit(permit, touch))


def test_quiet_changes_keep_permits_fresh(lab: StoreLab, world: StoreWorld) -> None:
    """Permits stay valid over any number of changes that do not move an access revision."""
    chain = (0, world.lake.id, world.main.id)
    permit = lab.permit(*chain)
    for zone in chain:
        lab.write(touch, zone=zone)

    assert lab.run(lab.store.submit(permit, touch)) == 2


def test_later_mutation_of_a_batch_is_refused_after_access_moved(lab: StoreLab, world: StoreWorld) -> None:
    """If the first of two mutations in one batch moves the access revision, the second one with the same permit is
    refused.
    """
    permit = lab.permit(0, world.lake.id, world.main.id)

    async def together() -> list[object]:
        return await asyncio.gather(
            lab.store.submit(permit, move_access), lab.store.submit(permit, touch), return_exceptions=True
        )

    outcomes = lab.run(together())

    assert sorted(type(each).__name__ for each in outcomes) in (["StalePermit", "int"], ["int", "int"])
    if StalePermit not in map(type, outcomes):  # PostgreSQL ran the other mutation first
        assert outcomes == [2, 1]


def test_no_mutation_commits_with_a_stale_permit_under_load(lab: StoreLab, world: StoreWorld) -> None:
    """Under load on two nodes, no mutation commits with a permit that was decided before access moved."""
    nodes = [lab.store, lab.open()]
    chain = (0, world.lake.id, world.main.id)
    old_permit = lab.permit(*chain)

    async def race() -> list[object]:
        writes = [nodes[i % 2].submit(old_permit, touch) for i in range(20)]
        moves = [nodes[1].submit(lab.permit(0, world.lake.id), move_access)]
        return await asyncio.gather(*writes[:10], *moves, *writes[10:], return_exceptions=True)

    outcomes = lab.run(race())

    committed_revisions = [each for each in outcomes if isinstance(each, int)]
    assert all(isinstance(each, int | StalePermit) for each in outcomes)
    moved_at = lab.database.sql("SELECT at FROM change WHERE zone = ? ORDER BY revision DESC LIMIT 1", world.lake.id)[
        0
    ][0]
    later = lab.database.sql("SELECT count(*) FROM change WHERE zone = ? AND at > ?", world.main.id, moved_at + 50)
    assert later == [(0,)]
    assert lab.clock(world.main.id)[0] == len(committed_revisions) - 1


def test_second_of_two_concurrent_creates_is_refused(lab: StoreLab, world: StoreWorld) -> None:
    """Of two concurrent creates of one name one succeeds and the other is refused, on the same or on different
    nodes.
    """
    nodes = [lab.store, lab.open()]
    permit = lab.permit(0, world.lake.id, world.main.id)

    async def race() -> list[object]:
        tries = [node.submit(permit, lambda tx: add_namespace(tx, world.main, "a")) for node in nodes]
        return await asyncio.gather(*tries, return_exceptions=True)

    outcomes = lab.run(race())

    assert sorted(isinstance(each, AlreadyExists) for each in outcomes) == [False, True]
    assert lab.database.sql("SELECT count(*) FROM node WHERE name = ? AND deleted = 0", "a") == [(1,)]
