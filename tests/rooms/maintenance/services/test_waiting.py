# SPDX-License-Identifier: Apache-2.0
"""The status has the reason why an operation waits: another operation of the table, or no executor."""

from __future__ import annotations

import pytest

from limnos.rooms.maintenance.services.rewriting import leases
from tests.http.driver import DriverNode
from tests.rooms.maintenance.services.histories import FIRST_MS, MAINTENANCE, HistoryTable, explained, set_clock
from tests.rooms.maintenance.services.rewriting.executor import FakeExecutor, ask, list_operations


def test_status_names_what_an_operation_waits_for(node: DriverNode) -> None:
    """Without a stored reason, the status and the explanation name what an operation waits for."""
    HistoryTable(node).append(3)
    HistoryTable(node, "u").append(3)
    set_clock(node, FIRST_MS + 60_000)
    ask(node)
    (leased,) = FakeExecutor(node).lease()
    for table, kind in (("a.t", "manifests"), ("a.u", "compact"), ("a.t", "expire")):
        ask(node, table, kind)
    reasons = {(each["table"], each["kind"]): each["result"] for each in list_operations(node)}
    busy = f"waits for operation {leased['operation']} on this table"

    assert reasons == {
        ("a.t", "compact"): None,
        ("a.t", "manifests"): busy,
        ("a.t", "expire"): busy,
        ("a.u", "compact"): "waits for an executor",
    }
    assert [each["result"] for each in explained(node, "a.u")["operations"]] == ["waits for an executor"]


def test_status_reports_whether_an_executor_requested_work(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status says whether an executor has asked for operations within the last minute, and the format of the
    tables.
    """
    seconds = [100.0]
    monkeypatch.setattr(leases, "monotonic", lambda: seconds[0])
    states = [node.get(f"{MAINTENANCE}/operations").json()]
    FakeExecutor(node).lease()
    states.append(node.get(f"{MAINTENANCE}/operations").json())
    seconds[0] += 59.9
    FakeExecutor(node).renew()
    seconds[0] += 0.1
    states.append(node.get(f"{MAINTENANCE}/operations").json())
    seconds[0] += 60.0
    states.append(node.get(f"{MAINTENANCE}/operations").json())

    assert [each["executor_active"] for each in states] == [False, True, True, False]
    assert states[0]["table_format"] == "iceberg"
