# SPDX-License-Identifier: Apache-2.0
"""The queue of plans whose files executors write: when a plan is queued, and when the server writes after all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from limnos.rooms.maintenance.services.rewriting import leases
from limnos.rooms.maintenance.services.spans.queue import GIVEN_UP, PAUSE_MS
from limnos.services.iceberg.spans import executors
from tests.http.driver import API
from tests.http.iceberg.test_plans import steer
from tests.http.iceberg.test_restricted_plans import ROWS, RestrictedTable
from tests.http.iceberg.test_restricted_sharing import files_of, local_hashes, written
from tests.http.iceberg.test_restrictions import restrict
from tests.rooms.maintenance.services.histories import set_clock
from tests.rooms.maintenance.services.rewriting.executor import OPERATIONS, list_operations
from tests.rooms.maintenance.services.spans.fake_executor import SpanExecutor, plan_beside

pytestmark = pytest.mark.slow

VISIBLE = [{**row, "card": f"xxxxx{str(row['card'])[-4:]}"} for row in ROWS if row["City"] == "Rome"]


def state_of(table: RestrictedTable) -> list[tuple[str, str]]:
    """Return kind and state of the operations that the status lists."""
    return [(each["kind"], each["state"]) for each in list_operations(table.node)]


def test_executor_writes_files_of_a_plan(table: RestrictedTable) -> None:
    """An executor writes the files of a plan, in a directory of its operation. The reader sees the visible rows, and
    the server writes nothing.
    """
    answer, reports = plan_beside(table, SpanExecutor.execute)

    assert table.rows(answer) == VISIBLE * 4
    assert [each.status for each in reports] == [200] * 4
    assert written(table) == 0
    (operation,) = list_operations(table.node)
    assert (operation["kind"], operation["state"], operation["user"]) == ("restricted-files", "done", "admin")
    assert {each.rpartition("/")[0].rpartition("/")[2] for each in files_of(answer)} == {f"x{operation['id']}"}
    assert files_of(table.seen()) == files_of(answer)


@pytest.mark.parametrize("has_asked", [False, True])
def test_server_writes_without_an_active_executor(
    table: RestrictedTable, monkeypatch: pytest.MonkeyPatch, has_asked: bool
) -> None:
    """Without an executor that asked within the last minute, the server writes, and no operation is queued."""
    if has_asked:
        table.node.runner.run(SpanExecutor(table.node).lease())
        monkeypatch.setattr(leases, "ACTIVE_S", 0.0)

    assert table.rows(table.seen()) == VISIBLE * 4
    assert (written(table), state_of(table)) == (4, [])


def test_server_writes_for_a_table_without_an_owner_to_act_for(table: RestrictedTable) -> None:
    """The server writes the files of a table that is owned by a group: an executor would act for no user."""
    table.node.done("POST", f"{API}/lake/groups", {"name": "team"})
    table.node.done("PUT", f"{API}/lake/owners/TABLE/main.a.t", {"name": "team", "type": "GROUP"})
    table.node.runner.run(SpanExecutor(table.node).lease())

    assert table.rows(table.seen()) == VISIBLE * 4
    assert (written(table), state_of(table)) == (4, [])


@pytest.mark.parametrize("spans_min", [0, 4])
def test_small_plan_is_not_queued(table: RestrictedTable, spans_min: int) -> None:
    """The server writes a plan whose missing spans do not exceed the setting, and all plans if the setting is 0."""
    steer(table.node, restricted_executor_spans=spans_min)
    table.node.runner.run(SpanExecutor(table.node).lease())

    assert table.rows(table.seen()) == VISIBLE * 4
    assert (written(table), state_of(table)) == (4, [])


def test_plan_with_own_salt_is_not_queued(table: RestrictedTable) -> None:
    """The server writes the files of a plan with a salt of its own: no executor gets the salt."""
    local_hashes(table)
    table.node.runner.run(SpanExecutor(table.node).lease())

    assert len(table.rows(table.seen())) == 40
    assert (written(table), state_of(table)) == (4, [])


def test_server_writes_if_no_executor_leases_in_time(table: RestrictedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """If executors ask but lease nothing in time, the operation is cancelled and the server writes."""
    monkeypatch.setattr(executors, "QUEUE_S", 0.1)

    async def rest(executor: SpanExecutor) -> None:
        del executor

    answer, _ = plan_beside(table, rest)

    assert table.rows(answer) == VISIBLE * 4
    assert written(table) == 4
    (operation,) = list_operations(table.node)
    assert (operation["state"], operation["result"]) == ("cancelled", GIVEN_UP)


def test_server_writes_the_rest_of_a_lost_executor(table: RestrictedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an executor is killed after a span and no other asks, the server writes the other spans, once each. The token
    of the operation is revoked.
    """
    monkeypatch.setattr(leases, "LEASE_MS", 300)

    async def die(executor: SpanExecutor) -> dict[str, Any]:
        operation = await executor.await_operation()
        (report,) = await executor.write(operation, await executor.spans(operation, limit=1))
        assert report.status == 200, report.body
        monkeypatch.setattr(leases, "ACTIVE_S", 0.0)
        return operation

    answer, operation = plan_beside(table, die)
    late = table.node.runner.run(SpanExecutor(table.node).request(operation, "spans", {}))

    assert table.rows(answer) == VISIBLE * 4
    assert written(table) == 3
    assert state_of(table) == [("restricted-files", "cancelled")]
    assert late.status == 401


def test_other_executor_continues_after_a_lost_one(table: RestrictedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an executor is killed, another one leases the operation and writes the remaining spans only."""
    monkeypatch.setattr(leases, "LEASE_MS", 300)

    async def die_and_replace(executor: SpanExecutor) -> int:
        operation = await executor.await_operation()
        await executor.write(operation, await executor.spans(operation, limit=1))
        monkeypatch.setattr(leases, "LEASE_MS", 60_000)
        other = SpanExecutor(table.node, "two")
        again = await other.await_operation()
        assert again["operation"] == operation["operation"]
        reports = await other.write(again, await other.spans(again))
        await other.end(again)
        return len(reports)

    answer, count = plan_beside(table, die_and_replace)

    assert table.rows(answer) == VISIBLE * 4
    assert (count, written(table), state_of(table)) == (3, 0, [("restricted-files", "done")])


def test_plans_for_one_directory_share_an_operation(table: RestrictedTable) -> None:
    """Two plans that wait for the same files queue one operation."""

    async def plan_again(executor: SpanExecutor) -> set[str]:
        operation = await executor.await_operation()
        second = executor.node.answer("POST", f"{table.path}/plan", {}, user="bob")
        waiting = asyncio.create_task(second)
        await asyncio.sleep(0.1)
        await executor.write(operation, await executor.spans(operation))
        await executor.end(operation)
        return files_of(await waiting)

    answer, others = plan_beside(table, plan_again)

    assert files_of(answer) == others
    assert (written(table), state_of(table)) == (0, [("restricted-files", "done")])


def test_repeated_request_joins_the_operation(table: RestrictedTable) -> None:
    """A request that is repeated while executors write waits for them, although fewer spans are missing than the
    setting says. A plan of another scan does not wait.
    """

    async def repeat(executor: SpanExecutor) -> tuple[set[str], set[str]]:
        operation = await executor.await_operation()
        await executor.write(operation, await executor.spans(operation, limit=3))
        again = asyncio.create_task(executor.node.answer("POST", f"{table.path}/plan", {}, user="bob"))
        await asyncio.sleep(0.1)
        assert written(table) == 0
        other_body = {"snapshot-id": 100}
        other = await executor.node.answer("POST", f"{table.path}/plan", other_body, user="bob")
        count = written(table)
        await executor.write(operation, await executor.spans(operation))
        await executor.end(operation)
        assert count == 1
        return files_of(await again), files_of(other)

    answer, (again, other) = plan_beside(table, repeat)

    assert files_of(answer) == again == other


def test_cancelled_operation_leaves_spans_to_the_server(table: RestrictedTable) -> None:
    """The table's owner cancels the operation: its token ends, and the server writes what is missing."""

    async def cancel(executor: SpanExecutor) -> int:
        operation = await executor.await_operation()
        await executor.write(operation, await executor.spans(operation, limit=1))
        target = f"{OPERATIONS}/{operation['operation']}/cancel"
        answer = await executor.node.answer("POST", target)
        assert (answer.status, answer.json()["state"]) == (200, "cancelled")
        return (await executor.request(operation, "spans", {})).status

    answer, status = plan_beside(table, cancel)

    assert table.rows(answer) == VISIBLE * 4
    assert (status, written(table), state_of(table)) == (401, 3, [("restricted-files", "cancelled")])


def test_server_writes_for_a_while_after_a_failure(table: RestrictedTable) -> None:
    """After a failed operation the server writes the next plans of the table. Ten minutes later executors do."""

    async def fail(executor: SpanExecutor) -> None:
        await executor.end(await executor.await_operation(), "failed")

    plan_beside(table, fail)
    assert restrict(table.node, filter="City = 'Oslo'").status == 200
    assert len(table.rows(table.seen())) == 20
    assert (written(table), len(state_of(table))) == (8, 1)

    set_clock(table.node, table.node.built.services.store.time.now_ms() + PAUSE_MS + 1)
    assert restrict(table.node, filter="City = 'Bonn' or City = 'Oslo'").status == 200
    answer, _ = plan_beside(table, SpanExecutor.execute)
    assert len(table.rows(answer)) == 20
    assert (written(table), len(state_of(table))) == (8, 2)


def test_failed_operation_leaves_spans_to_the_server(table: RestrictedTable) -> None:
    """If an executor reports a failure, the server writes what is missing."""

    async def fail(executor: SpanExecutor) -> None:
        operation = await executor.await_operation()
        await executor.write(operation, await executor.spans(operation, limit=3))
        await executor.end(operation, "failed")

    answer, _ = plan_beside(table, fail)

    assert table.rows(answer) == VISIBLE * 4
    assert (written(table), state_of(table)) == (1, [("restricted-files", "failed")])
