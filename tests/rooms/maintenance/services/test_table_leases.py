# SPDX-License-Identifier: Apache-2.0
"""Leases of tables: an expired lease does not block other operations, and the server renews its own lease while it
works.
"""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.rooms.maintenance.services.rewriting.leases import LEASE_MS
from limnos.rooms.maintenance.services.table_leases import await_with_table, table_lease
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import tables_page
from limnos.store.activity.rewrites import LeaseRow, lease_of_table, metalake_due
from tests.http.driver import DriverNode
from tests.rooms.maintenance.services.histories import (
    DAY_MS,
    FIRST_MS,
    HistoryTable,
    MovedClock,
    add_policy,
    assess,
    set_clock,
)
from tests.rooms.maintenance.services.rewriting.executor import (
    FakeExecutor,
    ask,
    commit_with,
    list_operations,
    replacement,
)
from tests.rooms.maintenance.services.test_operations import EXPIRATION, maintain

NOW_MS = FIRST_MS + 30 * DAY_MS
LOOKS_MAX = 10_000


@pytest.fixture
def table(lake: DriverNode) -> HistoryTable:
    """A table with twelve old snapshots and small files that has been assessed."""
    history_table = HistoryTable(lake)
    history_table.append(12)
    set_clock(lake, NOW_MS)
    assess(lake)
    return history_table


def clock_of(node: DriverNode) -> MovedClock:
    """Return the clock that the fixture has set."""
    clock = node.built.services.store.time
    assert isinstance(clock, MovedClock)
    return clock


def test_expiry_runs_after_a_dead_executors_lease_expired(lake: DriverNode, table: HistoryTable) -> None:
    """After an executor's lease has expired, an expiry runs although no executor asks for leases. The executor's
    operation waits again, and its token is invalid.
    """
    add_policy(lake, "p", EXPIRATION, {"retainLast": 3, "minSnapshotCount": 2}, on="main.a.t", kind="table")
    assess(lake)
    rewrite = ask(lake).json()["operation"]
    (lost,) = FakeExecutor(lake).lease()
    at = maintain(lake)
    assert [each["kind"] for each in list_operations(lake)] == ["compact"], "the lease has not expired"
    clock_of(lake).at_ms += LEASE_MS
    maintain(lake, at)

    states = {each["kind"]: (each["state"], each["result"]) for each in list_operations(lake)}
    assert (states["expire"][0], states["compact"]) == ("done", ("waiting", "its executor stopped responding"))
    assert len(table.ids()) == 3
    assert commit_with(lake, lost["token"], "t", replacement(table)).status == 401
    assert [each["operation"] for each in FakeExecutor(lake, "two").lease()] == [rewrite]
    assert list_operations(lake)[-1]["result"] is None, "the result of the lost executor does not show for the new one"


def test_expired_executor_lease_wakes_the_servers_executor(lake: DriverNode, table: HistoryTable) -> None:
    """When an executor's lease expires, the server's own executor has work at once, before any task ends the lease."""
    assert ask(lake).status == 200
    assert len(FakeExecutor(lake).lease()) == 1
    look_up, clock = lake.built.services.gate.look_up, clock_of(lake)
    due = []
    for passed_ms in (LEASE_MS - 1, 1):
        clock.at_ms += passed_ms
        due.append(lake.runner.run(look_up(lambda: metalake_due(clock.at_ms))))

    assert due == [None, "lake"]


def work_of(node: DriverNode, *, lease_ms: int) -> TaskContext:
    """Return a leased task."""
    services = node.built.services
    return TaskContext(
        0,
        store=services.store,
        permit=node.built.upkeep._permit,
        allowed=services.defaults.allowed,
        warehouse=services.defaults.warehouse,
        lease_ms=lease_ms,
        services=services,
    )


async def until_lease(node: DriverNode, node_id: int, *, ends_at: int) -> LeaseRow:
    """Wait until a table's lease ends at a time."""
    for _ in range(LOOKS_MAX):
        lease = await node.built.services.gate.look_up(lambda: lease_of_table(node_id))
        if lease is not None and lease.expires_at == ends_at:
            return lease
        await asyncio.sleep(0.001)
    raise AssertionError("the lease was not renewed")


def test_work_of_the_server_renews_its_lease(lake: DriverNode, table: HistoryTable) -> None:
    """While its work takes longer than the table's lease, the server renews the lease."""
    clock, work = clock_of(lake), work_of(lake, lease_ms=30)
    (head,) = lake.runner.run(lake.built.services.gate.look_up(lambda: tables_page(0, limit=10)))
    ident = {"table_id": head.node_id, "lease_ms": work.lease_ms}

    async def long_work() -> str:
        for _ in range(3):
            clock.at_ms += 1_000
            await until_lease(lake, head.node_id, ends_at=clock.at_ms + work.lease_ms)
        return "done"

    async def run() -> str:
        assert await work.submit(lambda tx: table_lease(tx, 7, **ident))
        return await await_with_table(work, long_work(), operation=7)

    assert lake.runner.run(run()) == "done"


def test_server_work_stops_when_its_lease_was_taken(lake: DriverNode, table: HistoryTable) -> None:
    """If the server is suspended for longer than its lease and another operation has begun meanwhile, the server's work
    stops.
    """
    clock, work = clock_of(lake), work_of(lake, lease_ms=30)
    (head,) = lake.runner.run(lake.built.services.gate.look_up(lambda: tables_page(0, limit=10)))
    ident = {"table_id": head.node_id, "lease_ms": work.lease_ms}

    async def run() -> None:
        assert await work.submit(lambda tx: table_lease(tx, 7, **ident))
        assert not await work.submit(lambda tx: table_lease(tx, 8, **ident))
        clock.at_ms += work.lease_ms
        assert await work.submit(lambda tx: table_lease(tx, 8, **ident))
        await await_with_table(work, asyncio.Event().wait(), operation=7)

    with pytest.raises(ServiceUnavailable, match="another operation began"):
        lake.runner.run(run())
    lease = lake.runner.run(lake.built.services.gate.look_up(lambda: lease_of_table(head.node_id)))
    assert lease is not None
    assert lease.operation_id == 8
