# SPDX-License-Identifier: Apache-2.0
"""Held snapshots when the store fails, when a reader leaves or is slow, and when one user reads much."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import pytest

from limnos.model.errors import RevisionEnded, ServiceUnavailable
from limnos.rooms.exchange.services import held_snapshots
from limnos.rooms.exchange.services.held_snapshots import HELD_MAX, OF_USER_IN_USE_MAX, HeldSnapshot, HeldSnapshots
from limnos.store.backends.postgres import PostgresStore
from limnos.store.sql import Sql
from tests.backends import PostgresServer, StoreLab
from tests.faults.proxy import Proxy
from tests.full_disks import Disk
from tests.store.test_clock import touch

pytestmark = pytest.mark.slow

CLOCKS: Final = (Sql("SELECT zone FROM clock"), {})
SLOW: Final = (
    Sql(
        "WITH RECURSIVE one (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM one WHERE n < 300000) SELECT count(*) FROM one"
    ),
    {},
)
"""A query that takes some tenths of a second on both stores."""
METALAKE: Final = 0
"""A zone that has a clock."""


@contextmanager
def failing_store(lab: StoreLab) -> Iterator[None]:
    """Let the queries of a held snapshot fail: by input/output errors on SQLite, by an ended session on PostgreSQL."""
    if lab.database.kind == "postgres":
        lab.database.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state = 'idle in transaction'"
        )
        yield
        return
    lab.database.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    disk = Disk(lambda access: errno.EIO if access == "read" else 0)
    try:
        yield
    finally:
        disk.give_back()
    assert disk.refused, "the disk never failed"


async def ended_slices() -> None:
    """Let the tasks that end transactions run."""
    for _ in range(50):
        await asyncio.sleep(0.01)


def test_failed_query_closes_its_snapshot(lab: StoreLab) -> None:
    """A failed query is unavailable, and its snapshot is closed: the next read of the same revision gets a new one."""
    snapshots = HeldSnapshots(lab.store)

    async def story() -> tuple[str, str]:
        async with snapshots.at(METALAKE, user="ann", revision=None) as snapshot:
            revision = snapshot.revision
            with failing_store(lab), pytest.raises(ServiceUnavailable):
                await snapshot.rows((Sql("SELECT * FROM node, principal, document"), {}))
            with pytest.raises(RevisionEnded):
                await snapshot.rows(CLOCKS)
        async with snapshots.at(METALAKE, user="ann", revision=revision) as again:
            assert await again.rows(CLOCKS)
            assert again is not snapshot
            return revision, again.revision

    revision, again = lab.run(story())
    lab.run(snapshots.close())

    assert revision == again
    assert snapshots.count == 0


def test_reader_that_leaves_does_not_end_the_transaction_of_others(lab: StoreLab) -> None:
    """A request is cancelled in the middle of a query. The other request goes on in the same transaction."""
    snapshots = HeldSnapshots(lab.store)

    async def story() -> list[tuple[object, ...]]:
        async with snapshots.at(METALAKE, user="ann", revision=None) as snapshot:
            leaving = asyncio.create_task(snapshot.rows(SLOW))
            await asyncio.sleep(0.05)
            leaving.cancel()
            await asyncio.wait({leaving})
            assert leaving.cancelled()
            return await snapshot.rows(CLOCKS)

    assert lab.run(story())
    lab.run(snapshots.close())


def test_old_snapshot_is_closed_though_a_slow_client_still_reads(
    lab: StoreLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot that reached its age is closed by the timer, although its request has not ended; it gets no row."""
    monkeypatch.setattr(held_snapshots, "LOOK_EVERY_S", 0.05)
    snapshots = HeldSnapshots(lab.store)

    async def story() -> int:
        async with snapshots.at(METALAKE, user="ann", revision=None) as snapshot:
            assert await snapshot.rows(CLOCKS)
            monkeypatch.setattr(held_snapshots, "AGE_MAX_S", 0.0)
            await ended_slices()
            with pytest.raises(RevisionEnded):
                await snapshot.rows(CLOCKS)
            return snapshots.count

    assert lab.run(story()) == 0
    assert open_transactions(lab) == 0
    lab.run(snapshots.close())


def open_transactions(lab: StoreLab) -> int:
    """Count the idle transactions on PostgreSQL; on SQLite return 1 if a reader keeps the log from being reset."""
    if lab.database.kind == "postgres":
        return int(
            lab.database.sql(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND state = 'idle in transaction'"
            )[0][0]
        )
    lab.write(touch)
    return int(lab.database.sql("PRAGMA wal_checkpoint(TRUNCATE)")[0][0])


def test_unused_snapshot_is_closed_when_its_reader_does_not_return(
    lab: StoreLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that asks for no further part keeps no transaction: the timer ends it."""
    snapshots = HeldSnapshots(lab.store)

    async def story() -> None:
        async with snapshots.at(METALAKE, user="ann", revision=None) as snapshot:
            assert await snapshot.rows(CLOCKS)

    monkeypatch.setattr(held_snapshots, "LOOK_EVERY_S", 0.05)
    lab.run(story())
    before = open_transactions(lab)
    monkeypatch.setattr(held_snapshots, "UNUSED_S", 0.0)
    lab.run(ended_slices())

    assert (before, open_transactions(lab), snapshots.count) == (1, 0, 0)


def test_snapshots_of_one_user_are_limited(lab: StoreLab) -> None:
    """A user who reads many revisions at once is refused before no snapshot is left for others."""
    snapshots = HeldSnapshots(lab.store)

    async def begin(stack: AsyncExitStack, user: str) -> HeldSnapshot:
        await lab.store.submit(lab.permit(0), touch)
        return await stack.enter_async_context(snapshots.at(METALAKE, user=user, revision=None))

    async def story() -> None:
        async with AsyncExitStack() as stack:
            for _ in range(OF_USER_IN_USE_MAX):
                await begin(stack, "ann")
            with pytest.raises(ServiceUnavailable, match="You are reading"):
                await begin(stack, "ann")
            for _ in range(HELD_MAX - OF_USER_IN_USE_MAX):
                await begin(stack, "bob")
            with pytest.raises(ServiceUnavailable, match="on this node"):
                await begin(stack, "eve")

    lab.run(story())
    lab.run(snapshots.close())


def test_remembered_callers_are_bounded(lab: StoreLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers, who may send ever other active roles, do not fill the memory of a snapshot."""
    monkeypatch.setattr(held_snapshots, "READERS_MAX", 3)
    snapshots = HeldSnapshots(lab.store)

    async def story() -> dict[object, object]:
        async with snapshots.at(METALAKE, user="ann", revision=None) as snapshot:
            for number in range(5):
                snapshot.remember(("ann", number), number)
            return snapshot.readers

    assert list(lab.run(story())) == [("ann", 0), ("ann", 1), ("ann", 2)]
    assert held_snapshots.HELD[()] == 1
    lab.run(snapshots.close())
    assert held_snapshots.HELD[()] == 0


@pytest.mark.integration
def test_silent_database_ends_the_read_and_the_close(postgres_server: PostgresServer) -> None:
    """A database that falls silent in the middle of a read is unavailable within four seconds, and does not hold up the
    end of the node.
    """
    lab = StoreLab(postgres_server.fresh_database())
    with Proxy(lab.database.address) as proxy:
        store = PostgresStore(proxy.url)
        snapshots = HeldSnapshots(store)

        async def read() -> None:
            async with snapshots.at(METALAKE, user="ann", revision=None) as snapshot:
                proxy.silence(new=True)
                with pytest.raises(ServiceUnavailable, match="does not answer"):
                    async with asyncio.timeout(4):
                        await snapshot.rows(CLOCKS)

        async def end() -> None:
            async with snapshots.at(METALAKE, user="ann", revision=None):
                proxy.silence(new=True)
            async with asyncio.timeout(4):
                await snapshots.close()

        lab.run(read())
        proxy.hear()
        lab.run(end())
        lab.run(store.close())
    lab.close()


@pytest.mark.integration
def test_database_that_ends_idle_transactions_is_unavailable(postgres_server: PostgresServer) -> None:
    """If the database itself ends transactions that are idle, the next query of a held snapshot is unavailable, and the
    next read of the revision gets a new transaction.
    """
    lab = StoreLab(postgres_server.fresh_database())
    name = lab.database.sql("SELECT current_database()")[0][0]
    lab.database.sql(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '200ms'")
    snapshots = HeldSnapshots(lab.store)

    async def story() -> bool:
        async with snapshots.at(METALAKE, user="ann", revision=None) as snapshot:
            await asyncio.sleep(0.6)
            with pytest.raises(ServiceUnavailable):
                await snapshot.rows(CLOCKS)
            async with snapshots.at(METALAKE, user="ann", revision=snapshot.revision) as again:
                return bool(await again.rows(CLOCKS))

    try:
        assert lab.run(story())
    finally:
        lab.database.sql(f"ALTER DATABASE {name} RESET idle_in_transaction_session_timeout")
    lab.run(snapshots.close())
    lab.close()
