"""The locks of PostgreSQL, seen from outside: who waits for whom, and who does not."""

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
    """A lab on PostgreSQL alone."""
    lab = StoreLab(postgres_server.fresh_database())
    yield lab
    lab.close()


@pytest.fixture
def world(lab: StoreLab) -> StoreWorld:
    """A metalake with two catalogs."""
    return make_world(lab)


class Paused:
    """A mutation that stands still inside its transaction, its locks held, until it is let go."""

    def __init__(self, then: Callable[[Tx], int] = touch) -> None:
        self.then = then
        self.entered = threading.Event()
        self.go = threading.Event()

    def __call__(self, tx: Tx) -> int:
        self.entered.set()
        assert self.go.wait(WAIT_S)
        return self.then(tx)


async def is_blocked(lab: StoreLab, work: asyncio.Task[object]) -> bool:
    """Say whether the work waits for a lock: the database knows, or the work ends."""
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
    """Hold a node's mutation of the first zones open and submit one of the second to another node: does it wait?

    Returns that, and what the second was told.
    """
    paused = Paused(then)
    one, other = lab.permit(*first), lab.permit(*second)
    store, neighbour = lab.store, lab.open()

    async def both() -> tuple[bool, object]:
        held = asyncio.create_task(store.submit(one, paused))
        assert await asyncio.to_thread(paused.entered.wait, WAIT_S)
        late = asyncio.create_task(neighbour.submit(other, touch))
        blocked = await is_blocked(lab, late)
        paused.go.set()
        await held
        return blocked, (await asyncio.gather(late, return_exceptions=True))[0]

    return lab.run(both())


def test_two_catalogs_do_not_wait_for_each_other(lab: StoreLab, world: StoreWorld) -> None:
    """Writers of two catalogs of one metalake run at once."""
    blocked, told = meet(lab, (0, world.lake.id, world.main.id), (0, world.lake.id, world.side.id))

    assert not blocked
    assert told == 1


def test_one_catalog_is_written_by_one(lab: StoreLab, world: StoreWorld) -> None:
    """A second writer of a catalog waits for the first one's commit, and gets the next revision."""
    blocked, told = meet(lab, (0, world.lake.id, world.main.id), (0, world.lake.id, world.main.id))

    assert blocked
    assert told == 2


def test_metalake_waits_for_its_catalogs(lab: StoreLab, world: StoreWorld) -> None:
    """A grant waits for a write of a catalog that was decided before it."""
    revision = lab.clock(world.lake.id)[0]

    blocked, told = meet(lab, (0, world.lake.id, world.main.id), (0, world.lake.id))

    assert blocked
    assert told == revision + 1


def test_catalog_waits_for_its_metalake_and_is_refused(lab: StoreLab, world: StoreWorld) -> None:
    """A write of a catalog waits for a grant under way, and is stale when that moved access."""
    blocked, told = meet(lab, (0, world.lake.id), (0, world.lake.id, world.main.id), then=move_access)

    assert blocked
    assert isinstance(told, StalePermit)


def test_server_holds_up_everyone(lab: StoreLab, world: StoreWorld) -> None:
    """A write of a catalog waits for a change of the server's own zone, such as a revoked token."""
    blocked, told = meet(lab, (0,), (0, world.lake.id, world.main.id), then=move_access)

    assert blocked
    assert isinstance(told, StalePermit)


def test_reads_wait_for_nobody(lab: StoreLab, world: StoreWorld) -> None:
    """A gate read passes a writer that holds its locks, and does not see what is not committed."""
    paused = Paused()
    permit = lab.permit(0, world.lake.id, world.main.id)

    async def both() -> object:
        held = asyncio.create_task(lab.store.submit(permit, paused))
        assert await asyncio.to_thread(paused.entered.wait, WAIT_S)
        moved = await asyncio.wait_for(lab.store.gate_async(lab.epoch(), ((world.main.id, 0),)), WAIT_S)
        paused.go.set()
        await held
        return moved.clocks

    assert lab.run(both()) == ()


def test_rival_for_a_location_is_told_in_clear_words(lab: StoreLab, world: StoreWorld) -> None:
    """Who waits for another catalog's table to take a location, and finds it taken, is refused as if it had come
    later.
    """
    lab.write(lambda tx: tx.documents.create(document(7)), zone=world.main.id)
    lab.write(lambda tx: tx.documents.create(document(8)), zone=world.side.id)
    place = "file:/w/contested"

    def take(tx: Tx, node_id: int) -> bool:
        return tx.documents.swap(document(node_id, version=2, location=place), expected=1)

    class Taking(Paused):
        def __call__(self, tx: Tx) -> int:
            taken = take(tx, 7)
            super().__call__(tx)
            return taken

    taking = Taking()
    one, other = lab.permit(world.main.id), lab.permit(world.side.id)

    async def both() -> tuple[bool, list[object]]:
        first = asyncio.create_task(lab.store.submit(one, taking))
        assert await asyncio.to_thread(taking.entered.wait, WAIT_S)
        second = asyncio.create_task(lab.store.submit(other, lambda tx: take(tx, 8)))
        blocked = await is_blocked(lab, second)
        taking.go.set()
        return blocked, await asyncio.gather(first, second, return_exceptions=True)

    blocked, told = lab.run(both())

    assert blocked
    assert told[0] is True
    assert isinstance(told[1], BadRequest)
