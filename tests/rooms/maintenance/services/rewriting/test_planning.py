# SPDX-License-Identifier: Apache-2.0
"""Planning: which findings become operations, in whose name, in which order, and when they are retried."""

from __future__ import annotations

import pytest

from limnos.model.permits import upkeep_permit
from limnos.rooms.maintenance.formats.rewrites import OVERWRITES_PER_REWRITE, RECHECK_MS_MIN
from limnos.rooms.maintenance.services.policies import policies_load
from limnos.rooms.maintenance.services.rewriting import planning
from limnos.rooms.maintenance.services.rewriting.planning import PAUSE_MS, RewritePlanning
from limnos.rooms.maintenance.services.table_leases import YIELD_MS
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.rewrites import recent_use_read
from tests.http.driver import DriverNode, grant
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import (
    DAY_MS,
    FIRST_MS,
    HistoryTable,
    add_policy,
    assess,
    attach,
    explained,
    set_clock,
)
from tests.rooms.maintenance.services.rewriting.executor import (
    FakeExecutor,
    ask,
    commit_with,
    list_operations,
    replacement,
)

pytestmark = pytest.mark.slow

COMPACTION = "system_iceberg_compaction"
WHOLE = "system_iceberg_table_maintenance"
NOW_MS = FIRST_MS + 30 * DAY_MS


def plan(node: DriverNode) -> int:
    """Run a round of the planning task. Returns the number of planned operations."""
    services = node.built.services

    async def run() -> int:
        work = TaskContext(
            0,
            store=services.store,
            permit=upkeep_permit("limnos"),
            allowed=services.defaults.allowed,
            warehouse=services.defaults.warehouse,
            lease_ms=60_000,
            services=services,
        )
        round_ = RewritePlanning(work, services, policies=await services.gate.look_up(policies_load))
        for kind in planning.PLANNED_KINDS:
            await round_.plan(kind, after=0)
        return round_.planned

    return node.runner.run(run())


@pytest.fixture
def tables(node: DriverNode) -> dict[str, HistoryTable]:
    """A table of 12 and a table of 30 small files, both assessed."""
    history_tables = {"t": HistoryTable(node), "u": HistoryTable(node, "u")}
    history_tables["t"].append(12)
    history_tables["u"].append(30)
    set_clock(node, NOW_MS)
    assess(node)
    return history_tables


def test_findings_without_policy_or_setting_plan_nothing(node: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """Without a policy or setting, findings become no operations."""
    assert (plan(node), list_operations(node)) == (0, [])


def test_setting_plans_operations_in_the_owners_name(node: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """With the setting, each finding becomes an operation of the table's owner; the operation with the largest gain is
    leased first.
    """
    services = node.built.services
    services.defaults = services.defaults._replace(maintenance=services.defaults.maintenance._replace(rewrite=True))
    planned, again = plan(node), plan(node)

    assert (planned, again) == (2, 0)
    assert {(each["table"], each["state"], each["user"]) for each in list_operations(node)} == {
        ("a.t", "waiting", "admin"),
        ("a.u", "waiting", "admin"),
    }
    assert [each["path"][-1] for each in FakeExecutor(node).lease(1)] == ["u"]


@pytest.mark.parametrize("policy_type", [COMPACTION, WHOLE])
def test_catalog_policy_applies_to_tables_except_excluded_ones(
    node: DriverNode, tables: dict[str, HistoryTable], policy_type: str
) -> None:
    """A policy on the catalog applies to its tables. A policy on a table that disables all kinds excludes the table."""
    content: dict[str, object] = (
        {"rewriteOptions": {"max-file-group-input-files": "9"}} if policy_type == COMPACTION else {}
    )
    add_policy(node, "small", policy_type, content, on="main", kind="catalog")
    if policy_type == WHOLE:
        add_policy(node, "off", WHOLE, {"compact": False}, on="main.a.t", kind="table")
    planned = plan(node)

    assert planned == (2 if policy_type == COMPACTION else 1)
    assert {each["policy"] for each in list_operations(node)} == {"small"}
    leased = FakeExecutor(node).lease()
    if policy_type == COMPACTION:
        assert {each["options"]["max-file-group-input-files"] for each in leased} == {"9"}


@pytest.mark.parametrize("rights", ["select_table", "modify_table"])
def test_policy_rewrites_only_what_its_author_may_read_and_change(
    node: DriverNode, tables: dict[str, HistoryTable], rights: str
) -> None:
    """A rewrite reads rows and writes them: it fails if the policy's author may only read the table, or only change
    it, and the explanation says so.
    """
    grant(node, "steward", "create_policy", kind="METALAKE", on="lake")
    grant(node, "steward", f"use_catalog use_schema {rights}", kind="CATALOG", on="main")
    body = {"name": "small", "policyType": COMPACTION, "enabled": True, "content": {}}
    node.done("POST", "/api/metalakes/lake/policies", body, user="steward")
    attach(node, "small", on="main.a.t", kind="table")
    plan(node)

    (row,) = list_operations(node)
    assert (row["state"], "User 'steward' is not authorized" in row["result"]) == ("failed", True), row
    assert ["User 'steward' is not authorized" in each for each in explained(node)["blocked"]] == [True]


@pytest.mark.parametrize("policy_type", [COMPACTION, WHOLE])
def test_disabled_policy_keeps_the_setting_from_rewriting_a_table(
    node: DriverNode, tables: dict[str, HistoryTable], policy_type: str
) -> None:
    """With the setting, a table whose policy is disabled is left out, and the others are not."""
    services = node.built.services
    services.defaults = services.defaults._replace(maintenance=services.defaults.maintenance._replace(rewrite=True))
    add_policy(node, "off", policy_type, {}, on="main.a.t", kind="table")
    assert node.patch("/api/metalakes/lake/policies/off", {"enable": False}).status == 200

    assert plan(node) == 1
    assert [each["table"] for each in list_operations(node)] == ["a.u"]


def test_requests_have_the_target_size(node: DriverNode) -> None:
    """A requested operation uses the target size of the policy or, if the policy has none, that of the table."""
    HistoryTable(node).append(2)
    properties = {"action": "set-properties", "updates": {"write.target-file-size-bytes": "7000000"}}
    assert wire.commit(node, "a", "t", updates=[properties]).status == 200
    ask(node)
    (own,) = FakeExecutor(node).lease()
    FakeExecutor(node).report(own["operation"])
    add_policy(node, "big", WHOLE, {"targetFileSizeBytes": 9_000_000}, on="main", kind="catalog")
    ask(node)
    (of_policy,) = FakeExecutor(node).lease()

    assert [each["options"]["target-file-size-bytes"] for each in (own, of_policy)] == ["7000000", "9000000"]


def test_planned_rewrites_have_the_target_size(node: DriverNode) -> None:
    """Planned operations, also of delete files, use the target size of the policy or, if the policy has none, that of
    the table.
    """
    HistoryTable(node).append(12, **{"total-delete-files": "5"})
    HistoryTable(node, "u").append(12, **{"total-delete-files": "5"})
    properties = {"action": "set-properties", "updates": {"write.target-file-size-bytes": "7000000"}}
    for table in ("t", "u"):
        assert wire.commit(node, "a", table, updates=[properties]).status == 200
    set_clock(node, NOW_MS)
    assess(node)
    add_policy(node, "small", COMPACTION, {}, on="main.a.t", kind="table")
    add_policy(node, "big", WHOLE, {"targetFileSizeBytes": 9_000_000}, on="main.a.u", kind="table")
    plan(node)

    leased = []
    for _ in range(2):
        part = FakeExecutor(node).lease()
        leased += part
        for each in part:
            FakeExecutor(node).report(each["operation"])
    sizes = {(each["path"][-1], each["kind"]): each["options"]["target-file-size-bytes"] for each in leased}
    assert sizes == {
        ("t", "compact"): "7000000",
        ("t", "deletes"): "7000000",
        ("u", "compact"): "9000000",
        ("u", "deletes"): "9000000",
    }


def test_explanation_names_policy_options_that_iceberg_lacks(node: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """The explanation names options of a policy that Iceberg does not have, while the policy is enabled."""
    content: dict[str, object] = {"rewriteOptions": {"min-input-file": "9", "rewrite-all": "true"}}
    add_policy(node, "small", COMPACTION, content, on="main", kind="catalog")
    (blocked,) = explained(node)["blocked"]
    node.patch("/api/metalakes/lake/policies/small", {"enable": False})

    assert ("min-input-file" in blocked, "rewrite-all" in blocked) == (True, False)
    assert explained(node)["blocked"] == []


@pytest.mark.parametrize("kind", ["compact", "deletes"])
def test_request_with_a_policys_unknown_options_is_refused(
    node: DriverNode, tables: dict[str, HistoryTable], kind: str
) -> None:
    """A request that would use a policy's unknown options is refused, with a list of the valid options. Other requests
    are accepted.
    """
    add_policy(node, "small", COMPACTION, {"rewriteOptions": {"min-input-file": "9"}}, on="main", kind="catalog")
    refused = ask(node, operation=kind)

    assert refused.status == 400, refused.body
    assert all(each in refused.body for each in (b"min-input-file,", b"min-input-files", b"rewrite-all"))
    assert ask(node, operation="manifests").status == 200


def test_deletes_operation_without_delete_files_is_done_at_once(
    node: DriverNode, tables: dict[str, HistoryTable]
) -> None:
    """For a table without delete files, the operation `deletes` is done at once, without an executor."""
    tables["t"].append(1, **{"total-delete-files": "0"})
    ask(node, operation="deletes")
    (done,) = list_operations(node)
    leased = FakeExecutor(node).lease()
    tables["t"].append(1, **{"total-delete-files": "1"})
    ask(node, operation="deletes")

    assert (done["state"], done["result"]) == ("done", "nothing to rewrite: the table has no delete files")
    assert (leased, list_operations(node)[0]["state"]) == ([], "waiting")


def test_operation_is_done_if_a_writer_removed_the_delete_files(
    node: DriverNode, tables: dict[str, HistoryTable]
) -> None:
    """If a writer has removed the delete files since the request, the operation is done and no executor leases it."""
    tables["t"].append(1, **{"total-delete-files": "1"})
    ask(node, operation="deletes")
    tables["t"].append(1, **{"total-delete-files": "0"})
    leased = FakeExecutor(node).lease()

    assert (leased, list_operations(node)[0]["state"]) == ([], "done")


def test_each_failure_doubles_the_pause_of_the_table(node: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """After each failure the table pauses, each time for twice as long."""
    add_policy(node, "small", COMPACTION, {}, on="main.a.t", kind="table")
    clock = node.built.services.store.time
    for pause_ms in (PAUSE_MS, 2 * PAUSE_MS):
        assert plan(node) == 1
        (leased,) = FakeExecutor(node).lease()
        FakeExecutor(node).report(leased["operation"], "failed", "no memory")
        clock.at_ms += pause_ms - 1  # type: ignore[attr-defined]
        assert plan(node) == 0
        clock.at_ms += 1  # type: ignore[attr-defined]

    assert plan(node) == 1


def test_compacted_table_has_no_further_finding(node: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """After the rewrite the next assessment has no finding, and nothing is planned."""
    add_policy(node, "small", COMPACTION, {}, on="main.a.u", kind="table")
    assert plan(node) == 1
    (leased,) = FakeExecutor(node).lease()
    assert commit_with(node, leased["token"], "u", replacement(tables["u"])).status == 200
    FakeExecutor(node).report(leased["operation"])
    assess(node)
    node.built.services.store.time.at_ms += planning.INTERVAL_MS  # type: ignore[attr-defined]

    assert plan(node) == 0


def test_requested_operations_are_leased_before_planned_ones(node: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """Requested operations are leased before planned ones, and a repeated request returns the same operation."""
    add_policy(node, "small", COMPACTION, {}, on="main.a.u", kind="table")
    plan(node)
    first, second = ask(node), ask(node)

    assert first.json() == second.json()
    assert FakeExecutor(node).lease(1)[0]["operation"] == first.json()["operation"]
    assert ask(node, operation="vacuum").status == 400


def test_operation_that_a_user_requests_no_longer_belongs_to_the_policy(
    node: DriverNode, tables: dict[str, HistoryTable]
) -> None:
    """A planned operation that a user requests becomes the user's: it is leased though the policy ends, and it does not
    count for the policy.
    """
    add_policy(node, "small", COMPACTION, {}, on="main.a.u", kind="table")
    grant(node, "eve", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    plan(node)
    (before,) = list_operations(node)
    assert ask(node, "a.u", user="eve").status == 200
    assert node.patch("/api/metalakes/lake/policies/small", {"enable": False}).status == 200

    (leased,) = FakeExecutor(node).lease()
    (after,) = list_operations(node)
    services = node.built.services
    now_ms = services.store.time.now_ms()
    used = node.runner.run(services.gate.look_up(lambda: recent_use_read(now_ms)))

    assert (before["id"], before["policy"], before["user"]) == (leased["operation"], "small", "admin")
    assert (after["id"], after["policy"], after["user"]) == (leased["operation"], None, "eve")
    assert [(each.policy, each.operations) for each in used] == [(None, 1)]


def test_planned_operation_waits_for_a_pause_of_overwrites(node: DriverNode) -> None:
    """A planned operation waits until a recently overwritten table has had no overwrite for some time; a requested one
    does not wait.
    """
    HistoryTable(node).append(12, operation="overwrite")
    clock = set_clock(node, FIRST_MS + 1_000)
    assess(node)
    add_policy(node, "small", COMPACTION, {}, on="main.a.t", kind="table")
    plan(node)
    busy = FakeExecutor(node).lease()
    clock.at_ms += 3_600_000
    (quiet,) = FakeExecutor(node).lease()
    FakeExecutor(node).report(quiet["operation"])
    clock.at_ms = FIRST_MS + 1_000
    ask(node)

    assert (busy, len(FakeExecutor(node).lease())) == ([], 1)


def test_busy_table_is_leased_after_a_hundred_overwrites(node: DriverNode) -> None:
    """A table that is overwritten without a pause is leased after a hundred overwrites, not after ninety-nine."""
    table = HistoryTable(node)
    table.append(OVERWRITES_PER_REWRITE - 1, operation="overwrite")
    clock = set_clock(node, FIRST_MS + 1_000)
    assess(node)
    add_policy(node, "small", COMPACTION, {}, on="main.a.t", kind="table")
    plan(node)
    before = FakeExecutor(node).lease()
    table.append(1, operation="overwrite")
    clock.at_ms += RECHECK_MS_MIN
    (leased,) = FakeExecutor(node).lease()

    assert before == []
    assert leased["options"]["partial-progress.enabled"] == "true"


def test_requested_compaction_is_split_after_a_conflict(node: DriverNode) -> None:
    """A requested compaction of a busy table is one commit at first, and several after a conflict."""
    HistoryTable(node).append(12, operation="overwrite")
    clock = set_clock(node, FIRST_MS + 1_000)
    ask(node)
    executor = FakeExecutor(node)
    (first,) = executor.lease()
    executor.report(first["operation"], "yielded", "a writer came first")
    clock.at_ms += YIELD_MS
    (second,) = executor.lease()

    assert "partial-progress.enabled" not in first["options"]
    assert second["options"]["partial-progress.enabled"] == "true"
