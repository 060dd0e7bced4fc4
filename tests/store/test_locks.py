# SPDX-License-Identifier: Apache-2.0
"""Locks of the PostgreSQL store: which mutations wait for each other, and which do not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from limnos.model.errors import BadRequest, StalePermit
from limnos.store.tx import Tx
from tests.backends import PostgresServer, StoreLab
from tests.store.objects.test_documents import document
from tests.store.test_clock import move_access, touch
from tests.store.world import StoreWorld, make_world

pytestmark = pytest.mark.integration
WAIT_S = 300.0


@pytest.fixture
def lab(postgres_server: PostgresServer) -> Iterator[StoreLab]:
    """A lab on PostgreSQL."""
    lab = StoreLab(postgres_server.fresh_database())
    yield lab
    lab.close()


@pytest.fixture
def world(lab: StoreLab) -> StoreWorld:
    """A metalake with two catalogs."""
    return make_world(lab)


class PausedMutation:
    """A mutation that pauses inside its transaction with its locks until a test continues it."""

    def __init__(self, then: Callable[[Tx], int] = touch) -> None:
        self.then = then
        self.entered = threading.Event()
        self.go = threading.Event()

    def __call__(self, tx: Tx) -> int:
        self.entered.set()
        assert self.go.wait(WAIT_S)
        return self.then(tx)


async def is_blocked(lab: StoreLab, work: asyncio.Task[object]) -> bool:
    """Return whether work waits for a lock, according to the database. Returns False when the work ends."""
    for _ in range(1000):
        if work.done():
            return False
        waiting = await asyncio.to_thread(
            lab.database.sql,
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
        )
        if waiting[0][0]:
            return True
        await asyncio.sleep(0.005)
    raise AssertionError("neither waiting nor done")


def meet(
    lab: StoreLab, first: tuple[int, ...], second: tuple[int, ...], *, then: Callable[[Tx], int] = touch
) -> tuple[bool, object]:
    """Keep mutations of the first zones open on one node, and submit one of the second zone on another node.

    Returns whether the second one waits, and its result.
    """
    paused = PausedMutation(then)
    one, other = lab.permit(*first), lab.permit(*second)
    store, neighbour = lab.store, lab.open()

    async def both() -> tuple[bool, object]:
        open_write = asyncio.create_task(store.submit(one, paused))
        assert await asyncio.to_thread(paused.entered.wait, WAIT_S)
        late = asyncio.create_task(neighbour.submit(other, touch))
        blocked = await is_blocked(lab, late)
        paused.go.set()
        await open_write
        return blocked, (await asyncio.gather(late, return_exceptions=True))[0]

    return lab.run(both())


def test_two_catalogs_do_not_wait_for_each_other(lab: StoreLab, world: StoreWorld) -> None:
    """Mutations of two catalogs of one metalake do not wait for each other."""
    blocked, revision = meet(lab, (0, world.lake.id, world.main.id), (0, world.lake.id, world.side.id))

    assert not blocked
    assert revision == 1


def test_second_mutation_of_a_catalog_waits_for_the_first(lab: StoreLab, world: StoreWorld) -> None:
    """A second mutation of a catalog waits for the first one's commit, and gets the next revision."""
    blocked, revision = meet(lab, (0, world.lake.id, world.main.id), (0, world.lake.id, world.main.id))

    assert blocked
    assert revision == 2


def test_grant_waits_for_an_open_mutation_of_a_catalog(lab: StoreLab, world: StoreWorld) -> None:
    """A grant waits for an open mutation of a catalog that was decided before it."""
    revision = lab.clock(world.lake.id)[0]

    blocked, grant_revision = meet(lab, (0, world.lake.id, world.main.id), (0, world.lake.id))

    assert blocked
    assert grant_revision == revision + 1


def test_catalog_mutation_is_stale_after_an_open_grant(lab: StoreLab, world: StoreWorld) -> None:
    """A mutation of a catalog waits for an open grant, and is stale if the grant moved the access revision."""
    blocked, error = meet(lab, (0, world.lake.id), (0, world.lake.id, world.main.id), then=move_access)

    assert blocked
    assert isinstance(error, StalePermit)


def test_catalog_mutation_waits_for_an_open_server_change(lab: StoreLab, world: StoreWorld) -> None:
    """A mutation of a catalog waits for an open change of the server's zone, such as a revoked token."""
    blocked, error = meet(lab, (0,), (0, world.lake.id, world.main.id), then=move_access)

    assert blocked
    assert isinstance(error, StalePermit)


def test_freshness_read_does_not_wait_for_an_open_mutation(lab: StoreLab, world: StoreWorld) -> None:
    """A gate read does not wait for an open mutation, and does not see its uncommitted changes."""
    paused = PausedMutation()
    permit = lab.permit(0, world.lake.id, world.main.id)

    async def both() -> object:
        open_write = asyncio.create_task(lab.store.submit(permit, paused))
        assert await asyncio.to_thread(paused.entered.wait, WAIT_S)
        moved = await asyncio.wait_for(lab.store.gate_async(lab.epoch(), ((world.main.id, 0),)), WAIT_S)
        paused.go.set()
        await open_write
        return moved.clocks

    assert lab.run(both()) == ()


def test_concurrent_table_at_one_location_is_a_bad_request(lab: StoreLab, world: StoreWorld) -> None:
    """A change that waits for another catalog's table at the same location is refused with BadRequest after that
    table's commit.
    """
    lab.write(lambda tx: tx.documents.create(document(7)), zone=world.main.id)
    lab.write(lambda tx: tx.documents.create(document(8)), zone=world.side.id)
    place = "file:/w/contested"

    def take(tx: Tx, node_id: int) -> bool:
        return tx.documents.swap(document(node_id, version=2, location=place), expected=1)

    class LockingMutation(PausedMutation):
        def __call__(self, tx: Tx) -> int:
            is_swapped = take(tx, 7)
            super().__call__(tx)
            return is_swapped

    taking = LockingMutation()
    one, other = lab.permit(world.main.id), lab.permit(world.side.id)

    async def both() -> tuple[bool, list[object]]:
        first = asyncio.create_task(lab.store.submit(one, taking))
        assert await asyncio.to_thread(taking.entered.wait, WAIT_S)
        second = asyncio.create_task(lab.store.submit(other, lambda tx: take(tx, 8)))
        blocked = await is_blocked(lab, second)
        taking.go.set()
        return blocked, await asyncio.gather(first, second, return_exceptions=True)

    blocked, outcomes = lab.run(both())

    assert blocked
    assert outcomes[0] is True
    assert isinstance(outcomes[1], BadRequest)
