# SPDX-License-Identifier: Apache-2.0
"""Locks first: a decision under the store's locks sees all earlier commits, and access cannot move before its
commit.
"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

import psycopg
import pytest

from limnos.model.errors import PermissionDenied, StalePermit
from limnos.model.permits import Permit
from limnos.store.backends.postgres_session import LOCK_CLASS
from tests.backends import StoreLab
from tests.store.test_clock import move_access, touch
from tests.store.world import StoreWorld

if TYPE_CHECKING:
    from limnos.store.backends.mutation_queue import Decided


def can_access_move(lab: StoreLab, zone: int) -> bool:
    """Return whether another process could move the access revision of a zone now, without waiting."""
    if lab.database.kind == "sqlite":
        rival = sqlite3.connect(lab.database.address, timeout=0, isolation_level=None)
        try:
            rival.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        finally:
            rival.close()
        return True
    with psycopg.connect(lab.database.address) as other:
        row = other.execute("SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))", (LOCK_CLASS, str(zone))).fetchone()
        return row is not None and bool(row[0])


def write_under_locks(lab: StoreLab, stale: Permit[object], fresh: Permit[object], seen: list[bool]) -> object:
    """Write under locks, and check the metalake's lock at the moment of the decision."""

    async def again() -> Decided[int]:
        seen.append(can_access_move(lab, stale.stamps[1][0]))
        return fresh, touch

    return lab.run(lab.store.submit_held(stale, again))


def test_access_cannot_move_while_a_writer_decides_under_locks(lab: StoreLab, world: StoreWorld) -> None:
    """While a writer of a catalog decides under locks, the metalake's access revision cannot move; afterwards it
    can.
    """
    permit, seen = lab.permit(0, world.lake.id, world.main.id), list[bool]()

    assert write_under_locks(lab, permit, permit, seen) == 1
    assert seen == [False]
    assert can_access_move(lab, world.lake.id)


def test_grants_wait_for_a_grant_decided_under_locks(lab: StoreLab, world: StoreWorld) -> None:
    """While a grant in a catalog is decided under locks, other grants wait."""
    permit, seen = lab.permit(0, world.lake.id, world.main.id, zone=world.lake.id), list[bool]()

    write_under_locks(lab, permit, permit, seen)

    assert seen == [False]


def test_permit_decided_under_locks_is_checked(lab: StoreLab, world: StoreWorld) -> None:
    """A stale permit from before the locks has no effect. The permit that is decided under the locks is checked as
    usual.
    """
    zones = (0, world.lake.id, world.main.id)
    stale = lab.permit(*zones)
    lab.write(move_access, zones=(0, world.lake.id))

    with pytest.raises(StalePermit):
        write_under_locks(lab, stale, stale, [])
    assert write_under_locks(lab, stale, lab.permit(*zones), []) == 1


def test_refusal_under_locks_releases_the_locks(lab: StoreLab, world: StoreWorld) -> None:
    """If the decision under locks is a refusal, the caller gets the reason, nothing is written, and the locks are
    released.
    """
    permit = lab.permit(0, world.lake.id, world.main.id)

    async def again() -> Decided[int]:
        raise PermissionDenied("not any more")

    with pytest.raises(PermissionDenied, match="not any more"):
        lab.run(lab.store.submit_held(permit, again))
    assert lab.clock(world.main.id)[0] == 0
    assert can_access_move(lab, world.lake.id)


def test_cancelled_request_writes_and_blocks_nothing(lab: StoreLab, world: StoreWorld) -> None:
    """A request that is cancelled during the decision writes nothing and blocks no other request."""
    permit = lab.permit(0, world.lake.id, world.main.id)

    async def story() -> None:
        deciding = asyncio.Event()
        going = asyncio.Event()

        async def again() -> Decided[int]:
            deciding.set()
            await going.wait()
            return permit, touch

        late = asyncio.create_task(lab.store.submit_held(permit, again))
        await deciding.wait()
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        going.set()
        assert await lab.store.submit(permit, touch) == 1

    lab.run(asyncio.wait_for(story(), 300))


def test_concurrent_writers_with_and_without_locks_succeed(lab: StoreLab, world: StoreWorld) -> None:
    """Many concurrent writers of both kinds succeed; each that decides under locks has its own transaction."""
    zones = (0, world.lake.id, world.main.id)
    permit = lab.permit(*zones)

    async def again() -> Decided[int]:
        return permit, touch

    async def crowd() -> list[int]:
        work = [
            lab.store.submit_held(permit, again) if n % 3 == 0 else lab.store.submit(permit, touch) for n in range(12)
        ]
        return await asyncio.gather(*work)

    assert sorted(lab.run(crowd())) == list(range(1, 13))
