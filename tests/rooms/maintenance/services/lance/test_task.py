# SPDX-License-Identifier: Apache-2.0
"""Maintenance of Lance tables: findings, operations by policies and on request, and versions that are never removed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from limnos.app.task_kinds import KINDS
from limnos.model.errors import StorageFailed
from limnos.rooms.maintenance.services.lance import assessing
from limnos.rooms.maintenance.services.lance.assessing import LanceAssessment, LancePosition
from limnos.rooms.maintenance.services.lance.operations import MAINTAIN_LANCE_TABLE
from limnos.rooms.maintenance.services.lance.task import LanceRound, lance_run
from limnos.rooms.maintenance.services.rewriting.planning import plan_run
from limnos.services.request.table_formats import LANCE
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import tables_page
from limnos.store.tx import Tx
from tests.arrow_rows import arrow
from tests.backends import Database
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import node_over
from tests.rooms.lance.http.wire import declare, make_space, table
from tests.rooms.maintenance.services.histories import DAY_MS, add_policy, assess, set_clock
from tests.rooms.maintenance.services.rewriting.executor import OPERATIONS
from tests.rooms.pipelines.http.test_runs import finish, started

pytestmark = pytest.mark.slow

MAINTENANCE = f"{OWN}/metalakes/lake/catalogs/lance/maintenance"
TABLE_MAINTENANCE, EXPIRATION = "system_iceberg_table_maintenance", "system_iceberg_snapshot_expiration"
PROTECTION = f"{OWN}/metalakes/lake/objects/table/lance.s.t/protection"
ROWS = 40


@pytest.fixture
def lake(database: Database, tmp_path: Path) -> Iterator[DriverNode]:
    """A node on either database, with a namespace `s` of Lance tables."""
    url = None if database.kind == "sqlite" else database.address
    with node_over(tmp_path, database=url) as running:
        make_space(running, "lance", "s")
        yield running


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node on SQLite with a namespace `s` of Lance tables."""
    with node_over(tmp_path) as running:
        make_space(running, "lance", "s")
        yield running


def rows(number: int, count: int = ROWS) -> pa.Table:
    """Return rows with vectors; the rows depend on the number."""
    vectors = np.random.default_rng(number).random((count, 8), dtype=np.float32)
    ids = pa.array(range(number * count, (number + 1) * count), pa.int64())
    return pa.table({"id": ids, "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)})


def fill(node: DriverNode, *path: str, commits: int = 12, managed: bool = False, first: int = ROWS) -> str:
    """Create a table with this number of commits, and an index that covers the first commit's rows. Returns its
    location.
    """
    at = table("lance", *path)
    properties = {"managed_versioning": "true"} if managed else {}
    declared = declare(node, "lance", *path, properties=properties)
    node.done("POST", f"{at}/insert", arrow(rows(0, first)))
    node.done("POST", f"{at}/create_scalar_index", {"column": "id", "index_type": "BTREE", "name": "by_id"})
    for number in range(1, commits):
        node.done("POST", f"{at}/insert", arrow(rows(number)))
    return str(declared["location"])


def task_context(node: DriverNode) -> TaskContext:
    """The context of a task on a node."""
    services = node.built.services
    return TaskContext(
        0,
        store=services.store,
        permit=node.built.upkeep._permit,
        allowed=services.defaults.allowed,
        warehouse=services.defaults.warehouse,
        lease_ms=60_000,
        services=services,
    )


def run_round(node: DriverNode, at: LancePosition | None = None) -> LancePosition:
    """Run a round of the task, which assesses tables and executes the operations that policies require."""
    return node.runner.run(lance_run(task_context(node), at or LancePosition()))[0]


def run_request(node: DriverNode, name: str, kind: str, **who: str) -> dict[str, Any]:
    """Request an operation, execute it, and return its row."""
    response = node.ask("POST", f"{MAINTENANCE}/operations", {"table": name, "operation": kind}, **who)  # type: ignore[arg-type]
    assert response.status == 200, response.body
    payloads = node.runner.run(
        node.built.services.store.submit(node.built.upkeep._permit, lambda tx: tx.tasks.payloads(MAINTAIN_LANCE_TABLE))
    )
    node.runner.run(KINDS[MAINTAIN_LANCE_TABLE].runner(task_context(node), payloads[-1]))
    return next(each for each in operations(node) if each["id"] == response.json()["operation"])


def operations(node: DriverNode) -> list[dict[str, Any]]:
    """Return the operations of the catalog, newest first."""
    listed: list[dict[str, Any]] = node.done("GET", f"{MAINTENANCE}/operations")["operations"]
    return listed


def findings(node: DriverNode) -> dict[str, str]:
    """Return the kinds and reasons of the findings for a table."""
    return {each["kind"]: each["reason"] for each in node.done("GET", f"{MAINTENANCE}/findings")["findings"]}


def explained(node: DriverNode, name: str = "s.t") -> dict[str, Any]:
    """Return the explanation of the maintenance of a table."""
    return node.done("GET", f"{MAINTENANCE}/table?table={name}")


def versions(location: str) -> list[int]:
    """Return the versions whose manifests exist."""
    return [each["version"] for each in lance.dataset(location.removeprefix("file://")).versions()]


@pytest.mark.parametrize("managed", [False, True])
def test_policy_repairs_each_finding_once(lake: DriverNode, managed: bool) -> None:
    """A table with small fragments, a stale index and old versions has a finding for each. A policy repairs each
    once.
    """
    location = fill(lake, "s", "t", managed=managed)
    lake.done("POST", f"{table('lance', 's', 't')}/tags/create", {"tag": "keep", "version": 4})
    at = run_round(lake)
    assert set(findings(lake)) == {"compact", "indexes"}
    assert operations(lake) == []

    add_policy(lake, "tend", TABLE_MAINTENANCE, {}, on="lance", kind="catalog")
    add_policy(lake, "forget", EXPIRATION, {"olderThanDays": 2, "retainLast": 1}, on="lance", kind="catalog")
    set_clock(lake, time.time_ns() // 1_000_000 + 20 * DAY_MS)
    run_round(lake, at)
    run_round(lake)

    done = {each["kind"]: (each["state"], each["policy"], each["result"]) for each in operations(lake)}
    assert done["indexes"][:2] == ("done", "tend")
    assert done["compact"][:2] == ("done", "tend")
    assert done["expire"][:2] == ("done", "forget")
    assert done["expire"][2].startswith("removed ")
    assert len(operations(lake)) == 3
    assert findings(lake) == {}
    explanation = explained(lake)
    assert (explanation["data_files"], explanation["removable"]) == (1, 0)
    assert versions(location) == [4, max(versions(location))]
    listed = lake.done("POST", f"{table('lance', 's', 't')}/version/list", {})["versions"]
    assert [each["version"] for each in listed] == versions(location)
    assert lake.ask("POST", f"{table('lance', 's', 't')}/count_rows", {}).json() == 12 * ROWS
    old = lake.ask("POST", f"{table('lance', 's', 't')}/count_rows", {"version": 4})
    assert old.json() == 3 * ROWS, old.body


def test_lance_findings_create_no_spark_or_iceberg_operations(node: DriverNode) -> None:
    """Findings for Lance tables create neither operations for Spark executors nor expiries of Iceberg tables."""
    fill(node, "s", "t")
    add_policy(node, "tend", TABLE_MAINTENANCE, {}, on="lance", kind="catalog")
    node.runner.run(LanceAssessment(node.built.services).run(LancePosition()))
    assert "compact" in findings(node)

    assess(node)
    assert node.runner.run(plan_run(task_context(node), node.built.services, after={}))[1] == 0
    assert "compact" in findings(node)


def test_requested_operation_runs_in_the_name_of_its_requester(node: DriverNode) -> None:
    """A requested operation runs in the name of its requester. A table directly in its catalog is found with and
    without the namespace `default`.
    """
    fill(node, "s", "t")
    fill(node, "root")
    grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="lance")

    done = run_request(node, "s.t", "compact", user="writer")
    assert (done["state"], done["user"], done["result"]) == ("done", "writer", "12 fragments became 2")
    done = run_request(node, "s.t", "indexes")
    assert (done["state"], done["result"]) == ("done", f"{11 * ROWS} rows were added to indexes; 0 are missing")
    done = run_request(node, "default.root", "compact")
    assert (done["table"], done["state"]) == ("root", "done")
    assert explained(node, "root")["data_files"] == explained(node, "default.root")["data_files"] == 2


def test_lance_operation_cannot_be_cancelled(node: DriverNode) -> None:
    """Operations on Lance tables cannot be cancelled, because the server itself executes them; the message says so."""
    fill(node, "s", "t", commits=3)
    body = {"table": "s.t", "operation": "compact"}
    operation = node.done("POST", f"{MAINTENANCE}/operations", body)["operation"]
    answer = node.post(f"{OPERATIONS}/{operation}/cancel")

    assert (answer.status, "cannot be cancelled" in answer.body.decode()) == (405, True), answer.body


def test_operations_of_the_other_format_are_refused(node: DriverNode) -> None:
    """Operations that only Iceberg supports are refused on Lance tables and the reverse. Requests by readers are
    refused, too.
    """
    fill(node, "s", "t", commits=1)
    make_iceberg = f"{OWN}/metalakes/lake/catalogs/main/maintenance/operations"
    grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="lance")
    at = f"{MAINTENANCE}/operations"

    answer = node.post(at, {"table": "s.t", "operation": "manifests"})
    assert (answer.status, "indexes, compact, expire" in str(answer.body)) == (405, True), answer.body
    answer = node.post(at, {"table": "s.t", "operation": "orphans"})
    assert (answer.status, "lance.debris_age_s" in str(answer.body)) == (405, True)
    answer = node.post(make_iceberg, {"table": "a.t", "operation": "indexes"})
    assert (answer.status, "Only Lance tables" in str(answer.body)) == (400, True)
    for user, expected in (("reader", 403), ("nobody", 403)):
        assert node.ask("POST", at, {"table": "s.t", "operation": "compact"}, user=user).status == expected
        assert node.get(f"{MAINTENANCE}/table?table=s.t", user=user).status == expected
    assert node.get(f"{MAINTENANCE}/table?table=s.gone").status == 404
    assert node.get(f"{MAINTENANCE}/table").status == 400


def test_operation_fails_if_its_user_lost_the_privilege(node: DriverNode) -> None:
    """An operation whose user has lost the privilege to modify the table fails and removes no version."""
    location = fill(node, "s", "t")
    role = grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="lance")
    response = node.ask("POST", f"{MAINTENANCE}/operations", {"table": "s.t", "operation": "compact"}, user="writer")
    before = versions(location)
    node.done("PUT", "/api/metalakes/lake/permissions/users/writer/revoke", {"roleNames": [role]})

    payloads = node.runner.run(
        node.built.services.store.submit(node.built.upkeep._permit, lambda tx: tx.tasks.payloads(MAINTAIN_LANCE_TABLE))
    )
    node.runner.run(KINDS[MAINTAIN_LANCE_TABLE].runner(task_context(node), payloads[-1]))

    (done,) = [each for each in operations(node) if each["id"] == response.json()["operation"]]
    assert done["state"] == "failed"
    assert versions(location) == before


def test_protected_recent_and_tagged_versions_are_not_removed(node: DriverNode) -> None:
    """Versions of protected tables, versions that a recent reader may use, and versions with tags or branches are not
    removed.
    """
    at = table("lance", "s", "t")
    location = fill(node, "s", "t")
    node.done("POST", f"{at}/tags/create", {"tag": "keep", "version": 3})
    node.done("POST", f"{at}/branches/create", {"name": "dev", "from_version": 5})
    every = versions(location)
    add_policy(node, "forget", EXPIRATION, {"olderThanDays": 0, "minSnapshotCount": 0}, on="lance", kind="catalog")

    assert run_request(node, "s.t", "expire")["result"] == f"removed no versions; {len(every)} stay"
    set_clock(node, time.time_ns() // 1_000_000 + 2 * DAY_MS)
    node.done("PUT", PROTECTION, {})
    assert run_request(node, "s.t", "expire")["result"] == "nothing is removed: the table is protected"
    assert explained(node)["blocked"] == ["the table is protected: no version is removed"]
    node.done("DELETE", PROTECTION)
    retention_reasons = {
        each["snapshot_id"]: each["kept_because"] for each in explained(node)["history"] if each["kept_because"]
    }
    assert set(retention_reasons) == {3, 5, every[-1]}

    done = run_request(node, "s.t", "expire")

    assert done["result"].startswith(f"removed {len(every) - 3} versions")
    assert versions(location) == [3, 5, every[-1]]
    dataset = lance.dataset(location.removeprefix("file://"))
    assert dataset.checkout_version("keep").to_table().num_rows == 2 * ROWS
    assert dataset.checkout_version(("dev", None)).to_table().num_rows == 4 * ROWS


def test_row_retention_policy_deletes_no_lance_rows(node: DriverNode) -> None:
    """A policy of row retention deletes no rows of Lance tables. The explanation says so while the policy is
    enabled.
    """
    fill(node, "s", "t", commits=2)
    content = {"column": "id", "olderThanDays": 1}
    add_policy(node, "rows", "limnos-row-retention", content, on="lance", kind="catalog")
    run_round(node)
    assert "no row is deleted" in explained(node)["blocked"][0]
    assert operations(node) == []
    node.patch(f"{API}/lake/policies/rows", {"enable": False})
    assert explained(node)["blocked"] == []


def test_nearest_policy_decides_which_operations_run(node: DriverNode) -> None:
    """The nearest policy decides which operations run: the table's policy overrides the catalog's. After an operation
    the table pauses.
    """
    fill(node, "s", "t")
    add_policy(node, "tend", TABLE_MAINTENANCE, {"compact": False}, on="lance", kind="catalog")
    at = run_round(node)
    assert {each["kind"] for each in operations(node)} == {"indexes"}

    add_policy(node, "near", TABLE_MAINTENANCE, {"indexes": False}, on="lance.s.t", kind="table")
    run_round(node, at)
    assert [each["kind"] for each in operations(node)] == ["compact", "indexes"]
    for number in range(6):
        node.done("POST", f"{table('lance', 's', 't')}/insert", arrow(rows(50 + number)))
    run_round(node)
    assert [each["kind"] for each in operations(node)] == ["compact", "indexes"]


def test_vector_index_is_extended_and_later_retrained(node: DriverNode) -> None:
    """An index that was trained on a fraction of the rows is first extended, and retrained once the table has grown."""
    location = fill(node, "s", "t", commits=1, first=400)
    path = location.removeprefix("file://")
    lance.dataset(path).create_index("vector", "IVF_FLAT", num_partitions=4, name="near")
    at = f"{table('lance', 's', 't')}/insert"
    node.done("POST", at, arrow(rows(1, 300)))
    run_round(node)
    assert "index near misses 300 of 700 rows" in findings(node)["indexes"]
    done = run_request(node, "s.t", "indexes")
    assert done["result"] == "600 rows were added to indexes; 0 are missing", "of two indexes"

    node.done("POST", at, arrow(rows(2, 100)))
    node.done("POST", at, arrow(rows(3, 700)))
    run_round(node)
    assert "it is trained again" in findings(node)["indexes"], findings(node)
    done = run_request(node, "s.t", "indexes")
    assert done["result"].endswith("0 are missing; trained again: near"), done["result"]
    run_round(node)
    assert "indexes" not in findings(node)
    (index,) = [each for each in lance.dataset(path).describe_indices() if each.name == "near"]
    assert (index.num_rows_indexed, len(list(index.segments))) == (1_500, 1)


def test_version_pinned_by_a_run_is_not_removed(node: DriverNode) -> None:
    """A version that a running pipeline has pinned is not removed before the run ends. The explanation has the
    reason.
    """
    location = fill(node, "s", "t")
    add_policy(node, "forget", EXPIRATION, {"olderThanDays": 0, "minSnapshotCount": 0}, on="lance", kind="catalog")
    set_clock(node, time.time_ns() // 1_000_000 + 2 * DAY_MS)
    pins = [{"table": ["lance", "s", "t"], "snapshot": 4, "fingerprint": None}]
    run = started(node, options={"pins": pins})
    retention_reasons = {each["snapshot_id"]: each["kept_because"] for each in explained(node)["history"]}
    assert retention_reasons[4] is not None, retention_reasons
    assert "run" in retention_reasons[4]
    newest = max(versions(location))
    assert run_request(node, "s.t", "expire")["state"] == "done"
    assert versions(location) == [4, newest]

    assert finish(node, run, "failed").status == 200
    assert run_request(node, "s.t", "expire")["state"] == "done"
    assert versions(location) == [newest]


def test_changed_policy_is_applied_in_the_next_round(node: DriverNode) -> None:
    """A new, changed, disabled or detached policy changes the findings in the next round, without a change of the
    table. Rounds without a change of policies assess no table.
    """
    fill(node, "s", "t", commits=4)
    position = LancePosition()

    def assessed() -> tuple[int, bool]:
        nonlocal position
        assessment = LanceAssessment(node.built.services)
        position = node.runner.run(assessment.run(position))
        while position.after is not None:
            position = node.runner.run(assessment.run(position))
        return assessment.tables, "expire" in findings(node)

    set_clock(node, time.time_ns() // 1_000_000 + 3 * DAY_MS)
    seen = [assessed(), assessed()]
    content = {"olderThanDays": 2, "retainLast": 1, "minSnapshotCount": 1}
    add_policy(node, "forget", EXPIRATION, content, on="lance", kind="catalog")
    seen += [assessed(), assessed()]
    update = {"@type": "updateContent", "policyType": EXPIRATION, "newContent": {"olderThanDays": 30}}
    node.done("PUT", f"{API}/lake/policies/forget", {"updates": [update]})
    seen += [assessed(), assessed()]
    update["newContent"] = content
    node.done("PUT", f"{API}/lake/policies/forget", {"updates": [update]})
    seen.append(assessed())
    node.done("PATCH", f"{API}/lake/policies/forget", {"enable": False})
    seen.append(assessed())

    assert seen == [(1, False), (0, False), (1, True), (0, True), (1, False), (0, False), (1, True), (1, False)]


def test_disabled_policy_runs_no_operation(node: DriverNode) -> None:
    """While its policies are disabled, a table keeps its findings and loses no version."""
    location = fill(node, "s", "t")
    for name, policy_type, content in (
        ("tend", TABLE_MAINTENANCE, {}),
        ("forget", EXPIRATION, {"olderThanDays": 0, "retainLast": 1, "minSnapshotCount": 1}),
    ):
        add_policy(node, name, policy_type, content, on="lance", kind="catalog")
    set_clock(node, time.time_ns() // 1_000_000 + 20 * DAY_MS)
    node.runner.run(LanceAssessment(node.built.services).run(LancePosition()))
    known, before = findings(node), versions(location)
    for name in ("tend", "forget"):
        node.done("PATCH", f"{API}/lake/policies/{name}", {"enable": False})

    node.runner.run(LanceRound(task_context(node), node.built.services).run())

    assert set(known) == {"compact", "indexes", "expire"}
    assert (operations(node), versions(location)) == ([], before)


def test_table_under_another_operation_waits_for_the_next_round(node: DriverNode) -> None:
    """A round begins no operation on a table that another operation leases, and does not count it as failed."""
    fill(node, "s", "t")
    at = run_round(node)
    add_policy(node, "tend", TABLE_MAINTENANCE, {}, on="lance", kind="catalog")
    services, permit = node.built.services, node.built.upkeep._permit
    (head,) = node.runner.run(services.gate.look_up(lambda: tables_page(0, limit=9, table_format=LANCE)))

    def take(tx: Tx) -> bool:
        return tx.rewrites.take(9_999, node_id=head.node_id, token_id=0, holder="server", lease_ms=60_000)

    assert node.runner.run(services.store.submit(permit, take))
    round_ = LanceRound(task_context(node), services)
    node.runner.run(round_.run())
    assert (round_.done, round_.failed, operations(node)) == (0, 0, [])

    set_clock(node, time.time_ns() // 1_000_000 + DAY_MS)
    run_round(node, at)
    assert {each["state"] for each in operations(node)} == {"done"}


def test_findings_stay_while_the_storage_fails(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings of a table stay while its files cannot be read."""
    fill(node, "s", "t")
    run_round(node)
    known = findings(node)

    async def fail(*_: object) -> None:
        raise StorageFailed("refused")

    monkeypatch.setattr(assessing, "stored_state", fail)
    run_round(node)

    assert set(known) == {"compact", "indexes"}
    assert findings(node) == known
