# SPDX-License-Identifier: Apache-2.0
"""Refusals by PostgreSQL, each reported with its cause: other sessions' locks, a standby, mutations that never
began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.store.backends import write_connections
from limnos.store.backends.postgres import PostgresStore
from limnos.store.changes import UNKNOWN
from limnos.store.objects.node_reads import node_read
from tests.backends import PostgresServer, StoreLab
from tests.store.test_clock import touch

pytestmark = pytest.mark.integration


@pytest.fixture
def lab(postgres_server: PostgresServer) -> Iterator[StoreLab]:
    """A lab on PostgreSQL."""
    lab = StoreLab(postgres_server.fresh_database())
    yield lab
    lab.close()


def test_timeout_error_names_the_lock_of_another_session(lab: StoreLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a row lock of another session causes a timeout, the error says so, and not that the database does not
    respond.
    """
    monkeypatch.setattr(
        write_connections, "_SET", write_connections._SET.replace(f"'{write_connections.LOCK_S}s'", "'100ms'")
    )

    with psycopg.connect(lab.database.address) as other:
        other.execute("SELECT 1 FROM clock FOR UPDATE")
        with pytest.raises(ServiceUnavailable, match="Another session of the database holds a lock"):
            lab.write(touch)
    assert not lab.store.last_write_failed  # other rows can be written

    assert lab.write(touch) == 1


def test_long_wait_for_a_lock_is_not_aborted(lab: StoreLab) -> None:
    """A write that waits for a lock longer than the limit of dead-peer detection is not aborted, because the database
    is at work on it.
    """
    store = PostgresStore(lab.database.address, silence_s=0.1)
    permit = lab.permit(0)

    async def meet() -> object:
        with psycopg.connect(lab.database.address) as other:
            other.execute("SELECT 1 FROM clock FOR UPDATE")
            waiting = asyncio.create_task(store.submit(permit, touch))
            await asyncio.sleep(1)
            assert not waiting.done()
            other.rollback()
            done = await waiting
        await store.close()
        return done

    assert lab.run(meet()) == 1


def test_read_only_database_is_unavailable(lab: StoreLab) -> None:
    """A read-only database, such as a demoted primary, refuses writes for certain. When it is writable again, writes
    succeed.
    """
    lab.write(touch)
    name = lab.database.sql("SELECT current_database()")[0][0]
    lab.database.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    lab.database.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <>"
        " pg_backend_pid()"
    )

    with pytest.raises(ServiceUnavailable, match="read-only"):
        lab.write(touch)
    assert lab.store.last_write_failed

    with psycopg.connect(lab.database.address, autocommit=True) as other:
        other.execute("SET default_transaction_read_only = off")
        other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
    assert lab.write(touch) == 2
    assert not lab.store.last_write_failed


def test_mutation_that_waits_has_not_begun(lab: StoreLab) -> None:
    """While a write waits for its locks, its mutation has not begun, and a cancellation certainly changes nothing."""
    permit, starts = lab.permit(0), []

    async def give_up() -> None:
        with psycopg.connect(lab.database.address) as other:
            other.execute("SELECT 1 FROM clock FOR UPDATE")
            waiting = asyncio.create_task(lab.store.submit(permit, touch, on_begin=lambda: starts.append(1)))
            await asyncio.sleep(0.3)
            waiting.cancel()
            await asyncio.wait({waiting})
            assert starts == []
            other.rollback()
        await lab.store.submit(permit, touch)

    lab.run(give_up())

    assert lab.clock(0)[0] == 1


def test_reads_are_retried_after_their_connections_were_terminated(lab: StoreLab) -> None:
    """A gate read and a load whose connections are terminated at the moment of use are sent again and answered."""
    store = lab.store
    assert isinstance(store, PostgresStore)
    lab.gate([(0, UNKNOWN)])
    lab.load(node_read(1))

    async def ask() -> object:
        for reader in (store._readers._gate, *store._readers._idle):
            assert reader is not None
            assert reader.monitor.backend is not None
            pid = reader.monitor.backend[0]
            lab.database.sql("SELECT pg_terminate_backend(?)", pid)  # the loop does not turn: nobody has noticed
        moved = await store.gate_async(lab.epoch(), ((0, UNKNOWN),))
        return moved.clocks[0].revision, (await store.load_async(lab.epoch(), ((0, -1),), lambda: node_read(1)))[1]

    assert lab.run(ask()) == (0, None)
