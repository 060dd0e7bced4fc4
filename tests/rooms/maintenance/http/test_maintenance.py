# SPDX-License-Identifier: Apache-2.0
"""Maintenance over the admin API: visible findings and operations, response shapes, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.model.quiet_hours import parse_quiet_hours
from limnos.rooms.maintenance.services import reports
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import make_space, node_over
from tests.rooms.lance.http import wire as lance
from tests.rooms.maintenance.services.histories import (
    DAY_MS,
    FIRST_MS,
    MAINTENANCE,
    HistoryTable,
    add_policy,
    assess,
    explained,
    findings,
    set_clock,
)
from tests.rooms.maintenance.services.rewriting.executor import FakeExecutor, ask

pytestmark = pytest.mark.slow

EXPIRATION = "system_iceberg_snapshot_expiration"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[DriverNode]:
    """A node with the assessed tables `a.t` and `a.u`. Over SQLite only: the routes do not depend on the database."""
    with node_over(tmp_path) as node:
        make_space(node, "a")
        HistoryTable(node).append(12)
        HistoryTable(node, "u").append(12)
        set_clock(node, FIRST_MS + 30 * DAY_MS)
        assess(node)
        yield node


def test_findings_are_visible_to_users_who_may_modify(lake: DriverNode) -> None:
    """Findings of a table are visible to users who may modify it, not to readers."""
    grant(lake, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(lake, "writer", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(lake, "writer", "modify_table", kind="TABLE", on="main.a.u")

    assert {table for table, _ in findings(lake)} == {"a.t", "a.u"}
    assert findings(lake, user="reader") == {}
    assert {table for table, _ in findings(lake, user="writer")} == {"a.u"}
    assert lake.get(f"{MAINTENANCE}/table?table=a.t", user="reader").status == 403
    assert lake.get(f"{MAINTENANCE}/table?table=a.t", user="writer").status == 403
    assert explained(lake, "a.u", user="writer")["snapshots"] == 12


def test_pages_contain_each_finding_exactly_once(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of findings contain each finding exactly once, and a page ends only between tables."""
    monkeypatch.setattr(reports, "ROWS_MAX", 3)
    first = lake.get(f"{MAINTENANCE}/findings").json()
    second = lake.get(f"{MAINTENANCE}/findings?after={first['after']}").json()

    findings = [[(each["table"], each["kind"]) for each in page["findings"]] for page in (first, second)]
    assert findings == [[("a.t", "compact"), ("a.t", "expire")], [("a.u", "compact"), ("a.u", "expire")]]
    assert second["after"] is None


def test_explanation_has_figures_reasons_policies_and_blockers(lake: DriverNode) -> None:
    """An explanation has figures, the reason for each snapshot, policies that apply and that do not, and blockers."""
    add_policy(lake, "b", EXPIRATION, {"retainLast": 3}, on="main", kind="catalog")
    add_policy(lake, "a", EXPIRATION, {"retainLast": 2}, on="main", kind="catalog")
    explanation = explained(lake)

    assert (explanation["snapshots"], explanation["removable"], explanation["writer"], explanation["data_files"]) == (
        12,
        10,
        "appends",
        12,
    )
    assert [each["kept_because"] for each in explanation["history"]][:3] == [
        "is the head of branch main",
        "is one of the newest 2 of branch main",
        None,
    ]
    (policy,) = explanation["policies"]
    assert (policy["name"], policy["on"], policy["not_applied"]) == ("a", "main", ["b"])
    assert {each["kind"] for each in explanation["findings"]} == {"expire", "compact"}
    assert explanation["blocked"] == []


def test_lance_table_is_explained_to_users_who_may_maintain_it(lake: DriverNode) -> None:
    """The state of a Lance table is read for users who may modify it; a reader is refused."""
    lance.make_space(lake, "lance", "s")
    lance.fill(lake, "lance", "s", "t")
    role = grant(lake, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="lance")
    explain = f"{OWN}/metalakes/lake/catalogs/lance/maintenance/table?table=s.t"
    refused = lake.get(explain, user="reader")
    rule = {"privileges": [{"name": "modify_table", "condition": "allow"}]}
    lake.done("PUT", f"{API}/lake/permissions/roles/{role}/CATALOG/lance/grant", rule)

    assert refused.status == 403
    assert lake.get(explain, user="reader").status == 200


def test_disabled_policy_overrides_an_inherited_one(lake: DriverNode) -> None:
    """A disabled policy on the table overrides a policy above it: the operation is off, and the thresholds of both are
    unused.
    """
    add_policy(lake, "far", EXPIRATION, {"retainLast": 3}, on="main", kind="catalog")
    add_policy(lake, "near", EXPIRATION, {"retainLast": 5}, on="main.a.t", kind="table")
    assert lake.patch("/api/metalakes/lake/policies/near", {"enable": False}).status == 200
    explanation = explained(lake)
    assert [(each["name"], each["enabled"], each["on"]) for each in explanation["policies"]] == [
        ("near", False, "main.a.t")
    ]
    assert explanation["removable"] == 11


def test_explanation_reports_a_blocked_table(lake: DriverNode) -> None:
    """The explanation of a table with `gc.enabled=false` names that as the reason why nothing can be removed."""
    properties = {"action": "set-properties", "updates": {"gc.enabled": "false"}}
    body = {"requirements": [], "updates": [properties]}
    assert lake.post("/iceberg/v1/lake.main/namespaces/a/tables/t", body).status == 200
    explanation = explained(lake)
    assert (explanation["removable"], explanation["blocked"]) == (0, ["gc.enabled is false"])


def test_status_lists_no_operations_before_the_first(lake: DriverNode) -> None:
    """The status says that the server assesses tables, and lists no operations before the first one."""
    status = lake.get(f"{MAINTENANCE}/operations").json()
    assert (status["assess"], status["operations"]) == (True, [])


def test_status_reports_waiting_and_leased_operations(lake: DriverNode) -> None:
    """The status has the settings of rewrites, the number of operations that wait for an executor, and the time at
    which each operation was leased.
    """
    defaults = lake.built.services.defaults
    settings = defaults.maintenance._replace(quiet_hours=(parse_quiet_hours("22:00-06:00"),), bytes_per_day=7)
    lake.built.services.defaults = defaults._replace(maintenance=settings)
    for table, operation in (("a.t", "compact"), ("a.u", "compact"), ("a.u", "expire")):
        assert ask(lake, table, operation).status == 200
    before = lake.get(f"{MAINTENANCE}/operations").json()
    FakeExecutor(lake).lease()
    after = lake.get(f"{MAINTENANCE}/operations").json()

    assert (before["executor"], before["bytes_per_day"], len(before["quiet_hours"])) == ("off", 7, 1)
    assert (before["waiting_for_executor"], after["waiting_for_executor"]) == (2, 0)
    assert {each["leased_at"] for each in before["operations"]} == {None}
    assert [(each["kind"], each["leased_at"] is None) for each in after["operations"]] == [
        ("expire", True),
        ("compact", False),
        ("compact", False),
    ]


@pytest.mark.parametrize(
    "target", ["findings?after=x", "operations?before=x", "table", "table?table=t", "findings?after=-1"]
)
def test_invalid_numbers_and_paths_are_400(lake: DriverNode, target: str) -> None:
    """Invalid numbers and table paths are refused with 400, but only for users who may use the catalog."""
    assert lake.get(f"{MAINTENANCE}/{target}").status == 400
    lake.post("/api/metalakes/lake/users", {"name": "nobody"})
    assert lake.get(f"{MAINTENANCE}/{target}", user="nobody").status == 403
