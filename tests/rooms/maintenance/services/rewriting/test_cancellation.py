# SPDX-License-Identifier: Apache-2.0
"""Cancellation of an operation by its number: required privileges, and its effect on the operation."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import HistoryTable
from tests.rooms.maintenance.services.rewriting.executor import OPERATIONS, FakeExecutor, ask, list_operations


@pytest.fixture
def operation(node: DriverNode) -> int:
    """A waiting operation of a kind that is no Gravitino job, and users with different privileges."""
    HistoryTable(node).append(3, **{"total-delete-files": "2"})
    grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    node.done("POST", f"{API}/lake/users", {"name": "stranger"})
    return int(ask(node, operation="deletes").json()["operation"])


def cancel(node: DriverNode, operation: object, *, user: str = "admin") -> DriverAnswer:
    """Cancel an operation."""
    return node.post(f"{OPERATIONS}/{operation}/cancel", user=user)


def test_waiting_operation_of_another_user_can_be_cancelled(node: DriverNode, operation: int) -> None:
    """A user who may modify the table can cancel another user's waiting operation. The result names the canceling
    user.
    """
    answer = cancel(node, operation, user="writer")

    assert (answer.status, answer.json()) == (200, {"operation": operation, "state": "cancelled"})
    assert (list_operations(node)[0]["state"], list_operations(node)[0]["result"]) == (
        "cancelled",
        "cancelled by writer",
    )
    assert FakeExecutor(node).lease() == []


def test_executor_learns_of_cancellation_when_renewing_its_lease(node: DriverNode, operation: int) -> None:
    """The executor of a cancelled operation is notified when it renews its lease."""
    executor = FakeExecutor(node)
    executor.lease()
    cancel(node, operation)

    assert executor.renew(operation) == [operation]


def test_cancelling_an_ended_operation_returns_its_state(node: DriverNode, operation: int) -> None:
    """Cancelling an operation that has ended returns the state in which it ended."""
    executor = FakeExecutor(node)
    executor.lease()
    executor.report(operation)

    assert cancel(node, operation).json() == {"operation": operation, "state": "done"}


@pytest.mark.parametrize("user", ["reader", "stranger"])
def test_user_without_modify_privilege_gets_403(node: DriverNode, operation: int, user: str) -> None:
    """Users who may not modify the table get 403, with the same message as for an operation that does not exist."""
    refused, missing, no_number = (cancel(node, each, user=user) for each in (operation, 999, "x"))

    assert (refused.status, missing.status, no_number.status) == (403, 403, 403)
    assert refused.json()["error"]["message"].replace(str(operation), "999") == missing.json()["error"]["message"]
    assert list_operations(node)[0]["state"] == "waiting"


def test_unknown_or_foreign_operation_is_404(node: DriverNode, operation: int) -> None:
    """For the metalake's owner, an unknown operation, one of another metalake, and one of a dropped table are 404."""
    node.done("POST", API, {"name": "pond"})
    elsewhere = node.post(OPERATIONS.replace("/lake/", "/pond/") + f"/{operation}/cancel")
    assert node.delete(wire.table_path("a", "t")).status == 204

    assert [cancel(node, each).status for each in (999, "x", operation)] == [404, 404, 404]
    assert elsewhere.status == 404


def test_expiry_of_the_server_cannot_be_cancelled(node: DriverNode, operation: int) -> None:
    """An expiry cannot be cancelled, because the server itself executes it."""
    expiry = ask(node, operation="expire").json()["operation"]
    answer = cancel(node, expiry)

    assert (answer.status // 100, "cannot be cancelled" in answer.body.decode()) == (4, True), answer.body
