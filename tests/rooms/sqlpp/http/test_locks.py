# SPDX-License-Identifier: Apache-2.0
"""DROP at the same time as writing statements: it waits for them. A DROP without the right does not wait."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest
from limnos.names.dataverse import DataverseName
from limnos.rooms.sqlpp.services.locks.statement_locks import LOCKS, HeldLocks
from tests.http.driver import DriverAnswer, DriverNode, grant
from tests.rooms.sqlpp.http.wire import refusal, rows

SEED = (
    "create dataverse sales.east; create type sales.east.orderType as { oid: bigint };"
    " create dataset sales.east.orders(sales.east.orderType) primary key oid;"
)
DROPS = ["drop dataset sales.east.orders;", "drop dataverse sales.east;"]
EAST = DataverseName.create(("sales", "east"))
LONG_S = 60.0


@pytest.fixture
def writing(node: DriverNode) -> HeldLocks:
    """Hold the locks of a statement that writes the dataset."""
    rows(node, SEED)
    (catalog_id,) = query(node, "SELECT id FROM node WHERE name = 'main' AND deleted = 0")
    lock_requests = [
        LockRequest(LockKey(catalog_id, LockKind.DATAVERSE, EAST), LockMode.READ),
        LockRequest(LockKey(catalog_id, LockKind.DATASET, EAST, "orders"), LockMode.EXCLUSIVE_MODIFY),
    ]
    return node.runner.run(LOCKS.of(node.built.services).acquire(lock_requests, LONG_S))


def query(node: DriverNode, statement: str) -> list[int]:
    """Return the first column of rows, read directly from the store."""
    with closing(sqlite3.connect(node.data / "limnos.db")) as file:
        return [row[0] for row in file.execute(statement)]


@pytest.mark.parametrize("drop", DROPS)
def test_drop_waits_for_writing_statement(node: DriverNode, writing: HeldLocks, drop: str) -> None:
    """DROP waits while a statement writes the dataset, and continues at the end of the statement."""

    async def story() -> DriverAnswer:
        dropping = asyncio.create_task(
            node._ask("POST", "/query/service", {"statement": drop}, "admin", {"content_type": "application/json"})
        )
        async with asyncio.timeout(LONG_S):
            while not query(node, "SELECT token FROM sqlpp_lock WHERE mode = 0"):  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0.01)
        assert not dropping.done()
        await writing.release()
        return await asyncio.wait_for(dropping, LONG_S)

    answer = node.runner.run(story())

    assert answer.json()["status"] == "success", answer.body
    assert query(node, "SELECT count(*) FROM sqlpp_lock") == [0]


def test_drop_of_a_dataset_waits_for_the_drop_of_its_dataverse(node: DriverNode) -> None:
    """DROP DATASET waits while another statement has the dataverse for itself, also if nobody uses the dataset."""
    rows(node, SEED)
    (catalog_id,) = query(node, "SELECT id FROM node WHERE name = 'main' AND deleted = 0")
    whole = [LockRequest(LockKey(catalog_id, LockKind.DATAVERSE, EAST), LockMode.WRITE)]

    async def story() -> tuple[bool, DriverAnswer]:
        dropping_dataverse = await LOCKS.of(node.built.services).acquire(whole, LONG_S)
        dropping = asyncio.create_task(
            node.answer("POST", "/query/service", {"statement": DROPS[0]}, content_type="application/json")
        )
        async with asyncio.timeout(LONG_S):
            while not dropping.done() and not query(node, "SELECT token FROM sqlpp_lock WHERE mode = 0"):  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0.01)
        has_waited = not dropping.done()
        await dropping_dataverse.release()
        return has_waited, await asyncio.wait_for(dropping, LONG_S)

    has_waited, answer = node.runner.run(story())

    assert has_waited
    assert answer.json()["status"] == "success", answer.body
    assert query(node, "SELECT count(*) FROM sqlpp_lock") == [0]


@pytest.mark.parametrize("drop", DROPS)
def test_unauthorized_drop_is_refused_without_waiting(node: DriverNode, writing: HeldLocks, drop: str) -> None:
    """A user without the right to drop, or a drop of a missing object, is refused without waiting."""
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")

    assert refusal(node, drop, user="ana")[0] == 403
    assert refusal(node, "drop dataset sales.east.nope;")[0] == 400
    assert query(node, "SELECT DISTINCT token FROM sqlpp_lock") == [writing.token]
    assert rows(node, "drop dataset sales.east.nope if exists;") == []


def test_drop_past_its_deadline_has_no_effect(node: DriverNode, writing: HeldLocks) -> None:
    """A DROP that does not get its lock before its deadline has no effect, and gives up its place in the queue."""
    _, message = refusal(node, DROPS[0], timeout="100ms")

    async def is_alone() -> None:
        async with asyncio.timeout(2):
            while query(node, "SELECT DISTINCT token FROM sqlpp_lock") != [writing.token]:  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0.01)  # an ended waiter may not have deleted its row yet

    assert "took longer" in message or "was not granted" in message
    node.runner.run(is_alone())
    assert len(rows(node, "select value d from Metadata.`Dataset` d where d.DatasetName = 'orders';")) == 1
