# SPDX-License-Identifier: Apache-2.0
"""Operations: requested by a user or a policy, executed by a task in that user's name, and listed in the status."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from limnos.model.errors import StorageFailed
from limnos.rooms.maintenance.services import operations
from limnos.rooms.maintenance.services.operations import EXPIRE_SNAPSHOTS
from limnos.rooms.maintenance.services.task import MAINTAIN_TABLES, MaintenancePosition
from limnos.store.activity.maintenance import tables_page
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import (
    DAY_MS,
    FIRST_MS,
    MAINTENANCE,
    HistoryTable,
    MovedClock,
    add_policy,
    assess,
    end_secret,
    robot_token,
    set_clock,
)

pytestmark = pytest.mark.slow

EXPIRATION = "system_iceberg_snapshot_expiration"
NOW_MS = FIRST_MS + 30 * DAY_MS


@pytest.fixture
def table(lake: DriverNode) -> HistoryTable:
    """A table with twelve old snapshots that has been assessed."""
    history_table = HistoryTable(lake)
    history_table.append(12)
    set_clock(lake, NOW_MS)
    assess(lake)
    return history_table


def ask(node: DriverNode, table: str = "a.t", *, user: str = "admin") -> DriverAnswer:
    """Request an expiry."""
    return node.post(f"{MAINTENANCE}/operations", {"table": table}, user=user)


def list_operations(node: DriverNode) -> list[dict[str, Any]]:
    """Return the operations, newest first."""
    return node.get(f"{MAINTENANCE}/operations").json()["operations"]  # type: ignore[no-any-return]


def work(node: DriverNode) -> None:
    """Run the due tasks, at least one."""
    upkeep, count = node.built.upkeep, 0
    while node.runner.run(upkeep.run_one()) or node.runner.run(upkeep.run_one(among_long=True)):
        count += 1
    assert count


def maintain(node: DriverNode, at: MaintenancePosition | None = None) -> MaintenancePosition:
    """Run a round of the recurring task. Returns the next position."""
    store, permit = node.built.services.store, node.built.upkeep._permit
    text = msgspec.json.encode(at or MaintenancePosition()).decode()

    def put(tx) -> None:  # noqa: ANN001
        for task_id, _, _ in tx.tasks.of_kind(MAINTAIN_TABLES):
            tx.tasks.delete_finished(task_id)
        tx.tasks.create(MAINTAIN_TABLES, text)

    node.runner.run(store.submit(permit, put))
    work(node)
    rows = node.runner.run(store.submit(permit, lambda tx: tx.tasks.of_kind(MAINTAIN_TABLES)))
    return msgspec.json.decode(rows[0][1], type=MaintenancePosition)


def tokens(node: DriverNode) -> list[Any]:
    """Return the server's tokens that are not revoked."""
    token_rows = node.get("/api/limnos/v1/tokens").json()["tokens"]
    return [each for each in token_rows if each["name"].startswith("maintenance") and not each.get("revoked")]


def test_request_is_executed_once_in_the_callers_name(table: HistoryTable) -> None:
    """A request is executed once, in the caller's name; the row has the result, and the token is revoked."""
    node = table.node
    operation = ask(node)["operation"]
    assert ask(node)["operation"] == operation
    (row,) = list_operations(node)
    assert (row["id"], row["state"], row["kind"], row["user"]) == (operation, "waiting", "expire", "admin")
    work(node)
    (row,) = list_operations(node)
    assert (row["state"], row["result"]) == ("done", "removed 11 snapshots; 1 stay")
    assert table.ids() == [12]
    assert tokens(node) == []


def test_readers_may_not_request_an_operation(table: HistoryTable) -> None:
    """Readers may not request an operation. A missing table is 404, an unknown operation 400."""
    node = table.node
    grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    assert ask(node, user="reader").status == 403
    assert ask(node, "a.gone").status == 404
    assert ask(node, "a").status == 400
    assert node.post(f"{MAINTENANCE}/operations", {"table": "a.t", "operation": "drop"}).status == 400
    assert list_operations(node) == []


def test_operations_are_hidden_from_readers(table: HistoryTable) -> None:
    """Findings and operations of a table are listed only to users who may maintain it."""
    node = table.node
    grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    assert ask(node).status == 200

    lists = {
        (user, name): len(node.get(f"{MAINTENANCE}/{name}", user=user).json()[name])
        for user in ("admin", "reader")
        for name in ("findings", "operations")
    }

    assert lists["admin", "findings"] > 0
    assert lists["admin", "operations"] == 1
    assert lists["reader", "findings"] == lists["reader", "operations"] == 0


def test_privilege_lost_before_execution_fails_the_operation(table: HistoryTable) -> None:
    """If the user loses the privilege before the task runs, nothing is changed, and the row of the operation has the
    reason.
    """
    node = table.node
    role = grant(node, "writer", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    assert ask(node, user="writer").status == 200
    node.done("DELETE", f"{API}/lake/roles/{role}")
    work(node)
    (row,) = list_operations(node)
    assert row["state"] == "failed"
    assert "writer" in row["result"]
    assert len(table.ids()) == 12


def test_operation_skips_dropped_table_and_follows_renamed_one(table: HistoryTable) -> None:
    """An operation does not touch a dropped table, and finds a renamed table by its id."""
    node = table.node
    assert ask(node).status == 200
    names = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "u"}}
    assert node.post(f"{wire.ROOT}/tables/rename", names).status == 204
    work(node)
    assert list_operations(node)[0]["state"] == "done"
    assert [each["table"] for each in list_operations(node)] == ["a.u"]
    assert ask(node, "a.u").status == 200
    assert node.delete(wire.table_path("a", "u")).status == 204
    work(node)
    assert list_operations(node) == []


def test_task_waits_while_the_storage_is_unreachable(table: HistoryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the storage is unreachable, the task waits and runs when the storage is reachable."""
    node, real, left = table.node, operations.table_expire, [1]

    async def away(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        if left[0]:
            left[0] -= 1
            raise StorageFailed("away")
        return await real(*args, **named)

    monkeypatch.setattr(operations, "table_expire", away)
    assert ask(node).status == 200
    work(node)
    assert list_operations(node)[0]["state"] == "waiting"
    clock(node).at_ms += 60_000
    work(node)
    assert list_operations(node)[0]["state"] == "done"
    assert table.ids() == [12]


def clock(node: DriverNode) -> MovedClock:
    """Return the fixed clock."""
    store_clock = node.built.services.store.time
    assert isinstance(store_clock, MovedClock)
    return store_clock


def test_policy_operation_runs_daily_in_its_authors_name(table: HistoryTable) -> None:
    """A policy's operation runs in its author's name, once a day, on the tables below the policy's object."""
    node = table.node
    other = HistoryTable(node, "other")
    other.append(12)
    add_policy(node, "p", EXPIRATION, {"retainLast": 3, "minSnapshotCount": 2}, on="main.a.t", kind="table")
    assess(node)
    at = maintain(node)
    assert (table.ids(), len(other.ids())) == ([10, 11, 12], 12)
    (row,) = list_operations(node)
    assert (row["state"], row["user"], row["policy"]) == ("done", "admin", "p")
    table.append(5)
    assess(node)
    at = maintain(node, at)
    assert len(list_operations(node)) == 1
    clock(node).at_ms += 10 * DAY_MS
    assess(node)
    maintain(node, at)
    assert len(list_operations(node)) == 2
    assert tokens(node) == []


def test_policy_name_is_visible_only_with_a_privilege_on_it(table: HistoryTable) -> None:
    """Users who may maintain the table see the operation. They see the policy's name only with a privilege on the
    policy.
    """
    node = table.node
    add_policy(node, "p", EXPIRATION, {"retainLast": 3}, on="main.a.t", kind="table")
    maintain(node)
    grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")

    def policies(user: str) -> list[str | None]:
        answer = node.get(f"{MAINTENANCE}/operations", user=user)
        return [row.get("policy") for row in answer.json()["operations"]]

    assert (policies("admin"), policies("writer")) == (["p"], [None])
    grant(node, "writer", "apply_policy", kind="POLICY", on="p")
    assert policies("writer") == ["p"]


def test_no_table_is_expired_without_policy_or_setting(table: HistoryTable) -> None:
    """By default no table is expired. With the setting, tables are expired in their owners' names."""
    node = table.node
    at = maintain(node)
    assert len(table.ids()) == 12
    services = node.built.services
    services.defaults = services.defaults._replace(maintenance=services.defaults.maintenance._replace(expire=True))
    maintain(node, at)
    assert table.ids() == [12]
    assert list_operations(node)[0]["policy"] is None


def test_nearest_disabled_policy_excludes_a_table(table: HistoryTable) -> None:
    """The nearest policy overrides the setting and other policies."""
    node = table.node
    services = node.built.services
    services.defaults = services.defaults._replace(maintenance=services.defaults.maintenance._replace(expire=True))
    add_policy(node, "wide", EXPIRATION, {}, on="main", kind="catalog")
    add_policy(node, "near", EXPIRATION, {}, on="main.a.t", kind="table")
    assert node.patch("/api/metalakes/lake/policies/near", {"enable": False}).status == 200
    maintain(node)
    assert (len(table.ids()), list_operations(node)) == (12, [])


def test_operation_of_a_crashed_node_is_marked_as_lost(table: HistoryTable) -> None:
    """The operation of a crashed node is marked as lost in the next round, and the round continues."""
    node = table.node
    store, permit = node.built.services.store, node.built.upkeep._permit
    assert ask(node).status == 200
    lease = store.submit(permit, lambda tx: tx.tasks.lease(lease_ms=60_000))
    assert node.runner.run(lease).kind == EXPIRE_SNAPSHOTS
    clock(node).at_ms += 61_000
    work(node)
    assert list_operations(node)[0]["state"] == "done"
    tidy = store.submit(
        permit,
        lambda tx: (
            tx.maintenance.begin(catalog_id=1, node_id=1, kind="expire", user="x", policy=None),
            tx.maintenance.tidy(lost_ms=-1, keep_ms=DAY_MS),
            tx.rows(operations_state(), {}),
        )[2],
    )
    assert ("lost",) in [tuple(row) for row in node.runner.run(tidy)]


def test_valid_lease_of_a_crashed_node_delays_the_next_operation(table: HistoryTable) -> None:
    """While an operation's lease is valid, no round begins an operation on the table; afterwards a round does."""
    node = table.node
    add_policy(node, "p", EXPIRATION, {"retainLast": 3, "minSnapshotCount": 2}, on="main.a.t", kind="table")
    assess(node)
    store, permit = node.built.services.store, node.built.upkeep._permit
    (head,) = node.runner.run(node.built.services.gate.look_up(lambda: tables_page(0, limit=10)))
    lease = {"node_id": head.node_id, "token_id": 0, "holder": "server", "lease_ms": 60_000}
    assert node.runner.run(store.submit(permit, lambda tx: tx.rewrites.take(999, **lease)))
    at = maintain(node)
    assert list_operations(node) == []
    clock(node).at_ms += 60_000
    maintain(node, at)
    assert ([each["state"] for each in list_operations(node)], table.ids()) == (["done"], [10, 11, 12])


def operations_state() -> Any:  # noqa: ANN401 - a statement
    """Return the states of all operations."""
    from limnos.store.sql import Sql

    return Sql("SELECT state FROM maintenance_operation")


@pytest.mark.parametrize("is_expired", [False, True])
def test_operation_requested_with_an_ended_secret_is_refused(
    lake: DriverNode, table: HistoryTable, is_expired: bool
) -> None:
    """The server does not execute an operation of a service account whose secret was revoked, or has expired, after the
    request.
    """
    token, secret_id = robot_token(lake, **({"expires_in_s": 3600} if is_expired else {}))
    response = lake.ask(
        "POST", f"{MAINTENANCE}/operations", {"table": "a.t"}, user=None, authorization=f"Bearer {token}"
    )
    assert response.status == 200, response.body
    if is_expired:
        clock = lake.built.services.store.time
        assert isinstance(clock, MovedClock)
        clock.at_ms += 3_600_000
    else:
        end_secret(lake, secret_id)
    before = table.ids()
    work(lake)

    (done,) = list_operations(lake)
    assert (done["state"], done["user"]) == ("failed", "robot")
    assert "secret with which robot requested this has ended" in done["result"]
    assert table.ids() == before
