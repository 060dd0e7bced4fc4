# SPDX-License-Identifier: Apache-2.0
"""Leases of operations: who may lease, the rights of an operation's token, and operations of an executor that
crashed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from limnos.access.authentication import hash_secret, new_secret, token_text
from limnos.access.confinement import LEASES_ALONE
from limnos.formats.iceberg import update_properties
from limnos.http.admin.protocol import AdminProtocol
from limnos.model.entities import Token
from limnos.model.permits import upkeep_permit
from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.rooms.maintenance.services.rewriting.leases import LEASE_MS, RUN_PAUSE_MS, TOKEN_GRACE_MS
from limnos.rooms.maintenance.services.table_leases import LOSSES_MAX, YIELD_MS
from limnos.services.iceberg.rewrite_commits import OPERATION_COMMITS, REWRITES, NoOperationCommits
from limnos.store.activity.maintenance import operation_read
from limnos.store.activity.rewrites import recent_use_read
from limnos.store.sql import Sql
from limnos.store.tx import Tx
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.test_coverage import OPERATIONS
from tests.iceberg_manifests import data_file, entry
from tests.rooms.maintenance.services.histories import (
    DAY_MS,
    FIRST_MS,
    HistoryTable,
    MovedClock,
    end_secret,
    robot_token,
    set_clock,
)
from tests.rooms.maintenance.services.rewriting.executor import (
    LEASES,
    FakeExecutor,
    ask,
    commit_with,
    list_operations,
    replacement,
    with_token,
)
from tests.rooms.maintenance.services.rewriting.executor import (
    OPERATIONS as OPERATIONS_ROUTE,
)
from tests.rooms.pipelines.http.test_runs import finish, started

pytestmark = pytest.mark.slow

NOW_MS = FIRST_MS + 30 * DAY_MS
OPERATIONS_OF_MAIN = f"{OWN}/metalakes/lake/catalogs/main/maintenance/operations"


@pytest.fixture
def table(lake: DriverNode) -> HistoryTable:
    """A table of twelve small files with a requested compaction."""
    history_table = HistoryTable(lake)
    history_table.append(12)
    set_clock(lake, NOW_MS)
    assert ask(lake).status == 200
    return history_table


def clock_of(node: DriverNode) -> MovedClock:
    """Return the clock that the fixture has set."""
    clock = node.built.services.store.time
    assert isinstance(clock, MovedClock)
    return clock


def test_compaction_is_leased_committed_and_reported(lake: DriverNode, table: HistoryTable) -> None:
    """An executor leases a compaction, commits with its token and reports its end. The summary of the new snapshot
    names the operation.
    """
    executor = FakeExecutor(lake)
    (leased,) = executor.lease()
    answer = commit_with(lake, leased["token"], "t", replacement(table))
    report = executor.report(leased["operation"], text="12 files became 1")

    assert (leased["kind"], leased["catalog"], leased["path"]) == ("compact", "main", ["a", "t"])
    assert (answer.status, report.status) == (200, 200), answer.body
    metadata: Any = wire.metadata_of(lake, "a", "t")
    summary = metadata["snapshots"][-1]["summary"]
    assert (summary["operation"], summary["limnos.operation"]) == ("replace", str(leased["operation"]))
    (operation,) = list_operations(lake)
    assert (operation["state"], operation["result"]) == ("done", "12 files became 1")
    assert executor.lease() == []


def test_commit_is_refused_on_a_node_without_maintenance(lake: DriverNode, table: HistoryTable) -> None:
    """A node without the room refuses the commit of a leased operation with the reason, and the table is unchanged."""
    (leased,) = FakeExecutor(lake).lease()
    before: Any = wire.metadata_of(lake, "a", "t")
    OPERATION_COMMITS.put(lake.built.services, NoOperationCommits())
    answer = commit_with(lake, leased["token"], "t", replacement(table))

    assert answer.status == 403
    assert "does not serve maintenance of tables" in answer.json()["error"]["message"]
    assert wire.metadata_of(lake, "a", "t") == before


def test_rewrite_carries_newest_checkpoints_to_the_new_snapshot(lake: DriverNode) -> None:
    """The summary of the rewrite has the newest value of each checkpoint, whatever the client sent."""
    table = HistoryTable(lake)
    table.append(1, **{"limnos.inputs": "old", "flink.max-committed-checkpoint-id": "7", "limnos.run": "r"})
    table.append(1, **{"limnos.inputs": "new"})
    table.append(3)
    set_clock(lake, NOW_MS)
    ask(lake)
    (leased,) = FakeExecutor(lake).lease()
    answer = commit_with(lake, leased["token"], "t", replacement(table, summary={"limnos.inputs": "forged"}))

    assert answer.status == 200, answer.body
    metadata: Any = wire.metadata_of(lake, "a", "t")
    assert metadata["snapshots"][-1]["summary"] == {
        "operation": "replace",
        "limnos.inputs": "new",
        "flink.max-committed-checkpoint-id": "7",
        "limnos.operation": str(leased["operation"]),
    }


def test_operations_on_one_table_are_leased_one_after_another(lake: DriverNode, table: HistoryTable) -> None:
    """Two operations on one table are leased one after the other, even to different executors."""
    assert ask(lake, operation="manifests").status == 200
    first = FakeExecutor(lake).lease()
    second = FakeExecutor(lake, "two").lease()
    FakeExecutor(lake).report(first[0]["operation"])
    third = FakeExecutor(lake, "two").lease()

    assert ([each["kind"] for each in first], second) == (["compact"], [])
    assert [each["kind"] for each in third] == ["manifests"]
    assert table.snapshots == 12


def test_expired_lease_can_be_taken_by_another_executor(lake: DriverNode, table: HistoryTable) -> None:
    """After a lease expires, the token of the first executor is invalid, and another executor can lease the
    operation.
    """
    clock = clock_of(lake)
    (lost,) = FakeExecutor(lake).lease()
    clock.at_ms += LEASE_MS - 1
    assert FakeExecutor(lake, "two").lease() == []
    clock.at_ms += 1
    late = commit_with(lake, lost["token"], "t", replacement(table))
    (again,) = FakeExecutor(lake, "two").lease()

    assert (late.status, b"lease" in late.body) == (403, True), late.body
    assert again["operation"] == lost["operation"]
    assert FakeExecutor(lake).renew(lost["operation"]) == [lost["operation"]]
    assert FakeExecutor(lake).report(lost["operation"]).json() == {"accepted": False}
    assert commit_with(lake, lost["token"], "t", replacement(table)).status == 401
    assert commit_with(lake, again["token"], "t", replacement(table)).status == 200


def test_renewal_extends_the_lease(lake: DriverNode, table: HistoryTable) -> None:
    """A renewal before the expiry extends the lease."""
    clock, executor = clock_of(lake), FakeExecutor(lake)
    (leased,) = executor.lease()
    for _ in range(3):
        clock.at_ms += LEASE_MS - 1
        assert executor.renew(leased["operation"]) == []

    assert commit_with(lake, leased["token"], "t", replacement(table)).status == 200


def test_expired_lease_that_committed_counts_as_done(lake: DriverNode, table: HistoryTable) -> None:
    """An operation whose executor committed and crashed before its report is done."""
    (leased,) = FakeExecutor(lake).lease()
    assert commit_with(lake, leased["token"], "t", replacement(table)).status == 200
    clock_of(lake).at_ms += LEASE_MS
    assert FakeExecutor(lake, "two").lease() == []

    (operation,) = list_operations(lake)
    assert operation["state"] == "done"


def test_operation_yielded_too_often_fails(lake: DriverNode, table: HistoryTable) -> None:
    """An executor can return an operation as `yielded` a limited number of times, each after a longer pause. Then the
    operation fails with the last reason.
    """
    clock, executor = clock_of(lake), FakeExecutor(lake)
    for number in range(LOSSES_MAX):
        (leased,) = executor.lease()
        assert executor.report(leased["operation"], "yielded", "a writer came first").status == 200
        clock.at_ms += (YIELD_MS << number) - 1
        assert executor.lease() == []
        assert "a writer came first" in list_operations(lake)[0]["result"], "the status has the reason"
        clock.at_ms += 1

    assert executor.lease() == []
    (operation,) = list_operations(lake)
    assert (operation["state"], "a writer came first" in operation["result"]) == ("failed", True)
    assert table.snapshots == 12


def test_only_metalake_owner_and_service_admins_may_lease(lake: DriverNode, table: HistoryTable) -> None:
    """Only the metalake's owner and service admins may lease operations, whatever other privileges a user has."""
    grant(lake, "writer", "use_catalog use_schema select_table modify_table create_table", kind="METALAKE", on="lake")
    body = {"holder": "x", "limit": 1}

    assert lake.post(LEASES, body, user="writer").status == 403
    assert lake.put(LEASES, {"holder": "x", "operations": []}, user="writer").status == 403
    report = f"{OWN}/metalakes/lake/maintenance/operations/1/report"
    assert lake.post(report, {"holder": "x", "outcome": "done"}, user="writer").status == 403
    assert lake.post(report.replace("/1/", "/x/"), {"holder": "x"}, user="writer").status == 403
    assert lake.post(LEASES, body, user="admin").status == 200
    assert table.snapshots == 12


def test_operation_token_can_load_only_its_own_table(lake: DriverNode, table: HistoryTable) -> None:
    """The operation's token can load its own table. It cannot load another table, list, drop or rename tables, or
    create tokens.
    """
    HistoryTable(lake, "other").append(1)
    (leased,) = FakeExecutor(lake).lease()

    def status(method: str, target: str, body: object = None) -> int:
        return with_token(lake, leased["token"], method, target, body).status

    own, other = wire.table_path("a", "t"), wire.table_path("a", "other")
    rename = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "new"}}
    change = {"table-changes": [{"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": []}]}
    assert status("GET", own) == 200
    assert status("GET", f"{wire.ROOT.rpartition('/')[0]}/config?warehouse=lake/main") in (200, 404)
    assert {
        status("GET", other),
        status("DELETE", own),
        status("GET", wire.space_path("a") + "/tables"),
        status("POST", f"{wire.ROOT}/tables/rename", rename),
        status("POST", f"{wire.ROOT}/transactions/commit", change),
        status("POST", f"{OWN}/tokens", {"name": "mine"}),
        status("GET", f"{OWN}/tokens"),
        status("POST", LEASES, {"holder": "x"}),
        status("GET", "/api/metalakes/lake/catalogs"),
        status("POST", f"{OWN}/metalakes/lake/catalogs/main/maintenance/operations", {"table": "a.t"}),
    } == {403}
    assert commit_with(lake, leased["token"], "other", [wire.set_properties(x="1")]).status == 403


@pytest.mark.parametrize("left, missing", [("", "needs"), ("select_table", "modify"), ("modify_table", "select")])
def test_lost_privilege_of_the_requester_fails_the_lease(lake: DriverNode, left: str, missing: str) -> None:
    """If the user who requested an operation can no longer read or modify the table, the lease request fails the
    operation, and the result names the missing privilege.
    """
    HistoryTable(lake).append(12)
    set_clock(lake, NOW_MS)
    grant(lake, "writer", "use_catalog use_schema", kind="CATALOG", on="main")
    role = grant(lake, "writer", "select_table modify_table", kind="TABLE", on="main.a.t")
    assert ask(lake, user="writer").status == 200
    assert lake.delete(f"/api/metalakes/lake/roles/{role}").status == 200
    if left:
        grant(lake, "writer", left, kind="TABLE", on="main.a.t")

    assert FakeExecutor(lake).lease() == []
    (operation,) = list_operations(lake)
    assert (operation["state"], missing in operation["result"].lower()) == ("failed", True), operation


def test_commit_after_loss_of_the_modify_privilege_is_refused(lake: DriverNode) -> None:
    """If the user has only kept the right to read the table since the lease, commits with the operation's token are
    refused.
    """
    table = HistoryTable(lake)
    table.append(12)
    set_clock(lake, NOW_MS)
    grant(lake, "writer", "use_catalog use_schema", kind="CATALOG", on="main")
    role = grant(lake, "writer", "select_table modify_table", kind="TABLE", on="main.a.t")
    assert ask(lake, user="writer").status == 200
    (leased,) = FakeExecutor(lake).lease()
    lake.done("DELETE", f"/api/metalakes/lake/roles/{role}")
    grant(lake, "writer", "select_table", kind="TABLE", on="main.a.t")

    assert commit_with(lake, leased["token"], "t", replacement(table)).status == 403
    assert len(table.ids()) == 12


@pytest.mark.parametrize("is_after", [False, True])
def test_executor_gets_no_document_with_foreign_files(table: HistoryTable, *, is_after: bool) -> None:
    """An executor gets the document of a table only while its files lie below the table's locations, also if another
    commit names a foreign file after the lease. The error names no file; other users load the document.
    """
    node = table.node
    (leased,) = FakeExecutor(node).lease()
    path = wire.table_path("a", "t")
    before = with_token(node, leased["token"], "GET", path)
    if is_after:
        table.commit([table.manifest("bad.avro", [entry(data_file("file:///etc/passwd"))])])
    answer = with_token(node, leased["token"], "GET", path)
    known = node.ask(
        "GET", path, None, user=None, authorization=f"Bearer {leased['token']}", if_none_match=before.headers["etag"]
    )

    assert before.status == 200
    assert answer.status == (400 if is_after else 200), answer.body
    assert known.status == (400 if is_after else 304)
    assert b"passwd" not in answer.body
    assert node.get(path).status == 200


@pytest.mark.parametrize("is_replaced", [False, True])
def test_operation_that_read_replaced_files_does_not_commit(table: HistoryTable, *, is_replaced: bool) -> None:
    """If a manifest of the table is replaced after an executor has loaded the table, the operation's commit is refused,
    also if the file has the same content again.
    """
    node = table.node
    (leased,) = FakeExecutor(node).lease()
    loaded = with_token(node, leased["token"], "GET", wire.table_path("a", "t")).json()["metadata"]
    current = next(each for each in loaded["snapshots"] if each["snapshot-id"] == loaded["current-snapshot-id"])
    at = wire.local(current["manifest-list"])
    content = at.read_bytes()
    if is_replaced:
        at.write_bytes(b"other bytes")
        at.write_bytes(content)

    answer = commit_with(node, leased["token"], "t", replacement(table))

    assert (answer.status, b"replaced while" in answer.body) == ((400, True) if is_replaced else (200, False)), (
        answer.body
    )


def test_executor_gets_no_document_with_a_class_property(table: HistoryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor does not get the document of a table with a property that names a class, as earlier releases stored
    it after the lease.
    """
    node = table.node
    (leased,) = FakeExecutor(node).lease()
    monkeypatch.setattr(update_properties, "refuse_class_properties", lambda _: None)
    update = {"action": "set-properties", "updates": {"write.location-provider.impl": "java.util.Timer"}}
    assert wire.commit(node, "a", "t", updates=[update]).status == 200

    answer = with_token(node, leased["token"], "GET", wire.table_path("a", "t"))

    assert answer.status == 400
    assert "write.location-provider.impl" in answer.body.decode()


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"records": 130}, "10 records more"),
        ({"records": 110}, "10 records fewer"),
        ({"paths": ["file:///somewhere/else.parquet"]}, "outside"),
        ({"summary": {"operation": "append"}}, "of operation 'replace'"),
        ({"keep": 12, "records": 10}, "10 records more"),
    ],
)
def test_commit_that_is_no_valid_rewrite_is_refused(node: DriverNode, changes: dict[str, Any], reason: str) -> None:
    """A commit that is not a valid rewrite is refused with the reason, and the table is unchanged."""
    table = HistoryTable(node)
    table.append(12)
    set_clock(node, NOW_MS)
    ask(node)
    (leased,) = FakeExecutor(node).lease()
    answer = commit_with(node, leased["token"], "t", replacement(table, **changes))

    assert (answer.status, reason in answer.body.decode()) == (400, True), answer.body
    assert len(table.ids()) == 12


def test_rewrite_writes_to_the_data_path_of_the_table(node: DriverNode) -> None:
    """A rewrite may add files below the table's `write.data.path`, and below no directory beside it."""
    table = HistoryTable(node)
    table.append(12)
    metadata: Any = wire.metadata_of(node, "a", "t")
    data_path = f"{metadata['location'].rpartition('/')[0]}/data-of-t"
    properties = {"action": "set-properties", "updates": {"write.data.path": data_path}}
    assert wire.commit(node, "a", "t", updates=[properties]).status == 200
    set_clock(node, NOW_MS)
    ask(node)
    (leased,) = FakeExecutor(node).lease()
    beside = commit_with(node, leased["token"], "t", replacement(table, paths=[f"{data_path}2/x.parquet"]))
    below = commit_with(node, leased["token"], "t", replacement(table, paths=[f"{data_path}/x.parquet"]))

    assert (beside.status, "outside" in beside.body.decode()) == (400, True), beside.body
    assert below.status == 200, below.body


@pytest.mark.parametrize(
    "changes, reason",
    [({"schema-id": 7}, "another schema"), ({"parent-snapshot-id": 300}, "does not follow the head")],
)
def test_rewrite_of_a_former_head_or_schema_is_a_conflict(
    node: DriverNode, changes: dict[str, Any], reason: str
) -> None:
    """A rewrite of a former head or schema is a conflict, after which Iceberg's client retries."""
    table = HistoryTable(node)
    table.append(12)
    set_clock(node, NOW_MS)
    ask(node)
    (leased,) = FakeExecutor(node).lease()
    refused = REWRITES["refused",]
    answer = commit_with(node, leased["token"], "t", replacement(table, snapshot=changes))

    assert (answer.status, answer.json()["error"]["type"]) == (409, "CommitFailedException")
    assert (reason in answer.body.decode(), REWRITES["refused",]) == (True, refused)
    assert len(table.ids()) == 12


def test_rewrite_that_ignores_a_concurrent_append_is_a_conflict(node: DriverNode) -> None:
    """A rewrite that does not follow a concurrent append is a conflict. A rewrite that follows the append's snapshot
    commits.
    """
    table = HistoryTable(node)
    table.append(12)
    set_clock(node, NOW_MS)
    ask(node)
    (leased,) = FakeExecutor(node).lease()
    overtaken = replacement(table)
    table.append(1)

    assert commit_with(node, leased["token"], "t", overtaken).status == 409
    assert commit_with(node, leased["token"], "t", replacement(table)).status == 200


@pytest.mark.parametrize(
    "update",
    [
        wire.set_properties(owner="me"),
        {"action": "remove-snapshots", "snapshot-ids": [100]},
        {"action": "set-location", "location": "file:///elsewhere"},
        wire.point(3, ref="keep", kind="tag"),
        wire.point(3),
        {**wire.point(6), "max-snapshot-age-ms": 1},
        {**wire.point(6), "min-snapshots-to-keep": 1},
        {**wire.point(6), "max-ref-age-ms": 1},
        {"action": "set-statistics", "snapshot-id": 100, "statistics": {"statistics-path": wire.MISSING_LIST}},
    ],
)
def test_operation_token_commits_only_updates_of_a_rewrite(node: DriverNode, update: dict[str, Any]) -> None:
    """With an operation's token, a commit may contain only the updates of a rewrite of `main`."""
    table = HistoryTable(node)
    table.append(5)
    set_clock(node, NOW_MS)
    ask(node)
    (leased,) = FakeExecutor(node).lease()
    (update,) = wire.placed(node, "a", "t", updates=[update])

    assert commit_with(node, leased["token"], "t", [update]).status == 400
    assert commit_with(node, leased["token"], "t", [*replacement(table), update]).status == 400
    assert table.ids() == [1, 2, 3, 4, 5]


def test_server_executors_token_can_only_lease_operations(node: DriverNode) -> None:
    """The token of the server's own executor can lease operations, and has no other right of its administrator."""
    HistoryTable(node).append(5)
    set_clock(node, NOW_MS)
    ask(node)
    secret = new_secret()

    def make(tx: Tx) -> Token:
        return tx.tokens.create(
            user="admin",
            name="executor",
            secret_hash=hash_secret(secret),
            expires_at=tx.now_ms + 60_000,
            trust=TokenTrust.PROVEN,
            purpose=TokenPurpose.OPERATION,
            table_id=LEASES_ALONE,
        )

    token_record = node.runner.run(node.built.services.store.submit(upkeep_permit("limnos"), make))
    token = token_text(token_record.id, secret)
    leased = with_token(node, token, "POST", LEASES, {"holder": "x", "limit": 1})

    assert (leased.status, len(leased.json()["operations"])) == (200, 1)
    assert {
        with_token(node, token, method, target, body).status
        for method, target, body in (
            ("GET", wire.table_path("a", "t"), None),
            ("DELETE", wire.table_path("a", "t"), None),
            ("GET", "/api/metalakes/lake/catalogs", None),
            ("POST", f"{OWN}/tokens", {"name": "mine"}),
            ("POST", "/api/metalakes/lake/users", {"name": "eve"}),
            ("GET", f"{OWN}/tokens", None),
        )
    } == {403}


PUBLIC = AdminProtocol().anonymous
"""Operations that need no token."""
EMPTY = {
    "list-catalog-changes": "changes",
    "list-maintenance-findings": "findings",
    "list-maintenance-operations": "operations",
    "list-trash": "trash",
}
"""Operations that omit what their caller may not see, each with the name of the list in its answer."""
OWN_READS = {"load-table", "load-credentials", "list-reports", "list-statistics", "preview-table"}
"""Operations by which the token can read its own table."""


def get_targets(table: str) -> Iterator[tuple[str, str]]:
    """Return operation and path of each GET route of all protocols, with the name of a table."""
    names = {"table": table, "t": table, "fullName": f"main.a.{table}", "type": "TABLE", "table_id": f"main$a${table}"}
    for each in OPERATIONS:
        if each.method == "GET":
            filled = re.sub(r"\{(\w+)\}", lambda placeholder: names.get(placeholder[1], placeholder[0]), each.path)
            yield each.name, each._replace(path=filled).target


def test_operation_token_reads_only_own_table_and_public_routes(node: DriverNode) -> None:
    """Of all GET routes, an operation's token can use those of its own table and the public ones. No answer contains
    another table's name.
    """
    HistoryTable(node).append(5)
    other = HistoryTable(node, "unseen")
    other.append(1)
    set_clock(node, NOW_MS)
    ask(node)
    (leased,) = FakeExecutor(node).lease()
    opened: dict[str, set[str]] = {"t": set(), "unseen": set()}
    for table, operations in opened.items():
        for operation, target in get_targets(table):
            for address in (target, f"{target}{'&' if '?' in target else '?'}table=a.{table}"):
                answer = with_token(node, leased["token"], "GET", address)
                text = answer.body.decode(errors="replace")
                assert other.location not in text, address
                assert "unseen" in address or "unseen" not in text, address
                is_damaged = operation == "preview-table" and answer.status == 405  # the table has no real data files
                if (is_damaged or answer.status not in range(400, 500)) and operation not in PUBLIC:
                    operations.add(operation)
                if operation in EMPTY and answer.status == 200:
                    assert answer.json()[EMPTY[operation]] == [], address

    shared = {*EMPTY, "load-catalog", "load-config"}
    assert (opened["t"] - shared, opened["unseen"]) == (OWN_READS, shared)


def test_other_metalakes_owner_cannot_renew_or_end_a_lease(lake: DriverNode, table: HistoryTable) -> None:
    """The owner of another metalake can neither renew a lease nor end its operation, even under the executor's name."""
    (leased,) = FakeExecutor(lake).lease()
    assert lake.post(API, {"name": "other"}, user="admin").status == 200
    other = f"{OWN}/metalakes/other/maintenance"
    operation = leased["operation"]
    lost = lake.put(f"{other}/leases", {"holder": "one", "operations": [operation]}).json()["lost"]
    body = {"holder": "one", "outcome": "failed", "text": "of another"}
    report = lake.post(f"{other}/operations/{operation}/report", body)

    assert (lost, report.json()) == ([operation], {"accepted": False})
    assert [each["state"] for each in list_operations(lake)] == ["running"]
    assert commit_with(lake, leased["token"], "t", replacement(table)).status == 200


def test_executor_with_servers_holder_name_cannot_end_an_expiry(lake: DriverNode, table: HistoryTable) -> None:
    """An executor that uses the server's holder name cannot end a running expiry."""
    assert ask(lake, operation="expire").status == 200
    (expiry,) = [each["id"] for each in list_operations(lake) if each["kind"] == "expire"]
    services = lake.built.services
    row = lake.runner.run(services.gate.look_up(lambda: operation_read(expiry)))
    assert row is not None

    def take(tx: Tx) -> bool:
        return tx.rewrites.take(expiry, node_id=row.node_id, token_id=0, holder="server", lease_ms=LEASE_MS)

    assert lake.runner.run(services.store.submit(upkeep_permit("limnos"), take))
    server = FakeExecutor(lake, "server")

    assert server.renew(expiry) == [expiry]
    assert server.report(expiry, "failed").json() == {"accepted": False}
    assert FakeExecutor(lake).lease() == []


@pytest.mark.parametrize("operation", [1 << 62, 1 << 63, 1 << 200])
def test_invalid_operation_numbers_cause_no_server_error(lake: DriverNode, operation: int) -> None:
    """Invalid operation numbers are reported as lost or are refused, without a server error."""
    answer = lake.put(LEASES, {"holder": "one", "operations": [operation]})
    report = lake.post(
        f"{OWN}/metalakes/lake/maintenance/operations/{operation}/report", {"holder": "one", "outcome": "done"}
    )

    assert answer.status in (200, 400), answer.body
    assert report.status in (200, 400, 404), report.body


def test_texts_with_nul_cause_no_server_error(lake: DriverNode, table: HistoryTable) -> None:
    """A holder name or a report with NUL causes no server error, on every store."""
    assert table.snapshots == 12
    renewal = lake.put(LEASES, {"holder": "o\0", "operations": [1]})
    (leased,) = FakeExecutor(lake, "two").lease()
    report = FakeExecutor(lake, "two").report(leased["operation"], "failed", "a\0b")

    assert renewal.status in (200, 400), renewal.body
    assert report.status == 200, report.body


@pytest.mark.parametrize("is_expired", [False, True])
def test_revoked_or_expired_account_secret_prevents_the_lease(lake: DriverNode, is_expired: bool) -> None:
    """An operation that a service account requested gets no lease and no token after the account's secret was revoked
    or has expired.
    """
    HistoryTable(lake).append(12)
    clock = set_clock(lake, NOW_MS)
    token, secret_id = robot_token(lake, **({"expires_in_s": 3600} if is_expired else {}))
    body = {"table": "a.t", "operation": "compact"}
    response = with_token(lake, token, "POST", OPERATIONS_OF_MAIN, body)
    assert response.status == 200, response.body
    if is_expired:
        clock.at_ms += 3 * DAY_MS
        robot_token(lake)  # deletes rows of tokens that expired long ago
    else:
        end_secret(lake, secret_id)

    assert FakeExecutor(lake).lease() == []
    (operation,) = list_operations(lake)
    assert (operation["state"], operation["user"]) == ("failed", "robot")
    assert "secret with which robot requested this has ended" in operation["result"]


def test_secret_revoked_during_the_lease_refuses_the_commit(lake: DriverNode) -> None:
    """If the service account's secret is revoked during the lease, the operation's commit is refused. Other secrets
    have no effect.
    """
    table = HistoryTable(lake)
    table.append(12)
    set_clock(lake, NOW_MS)
    token, secret_id = robot_token(lake)
    robot_token(lake)
    assert with_token(lake, token, "POST", OPERATIONS_OF_MAIN, {"table": "a.t", "operation": "compact"}).status == 200
    (leased,) = FakeExecutor(lake).lease()
    end_secret(lake, secret_id)

    assert commit_with(lake, leased["token"], "t", replacement(table)).status == 401


# -- ends of operations' tokens -----------------------------------------------------------------------------------


def loads(node: DriverNode, token: str) -> int:
    """Return the status of a load of the table with an operation's token."""
    return with_token(node, token, "GET", wire.table_path("a", "t")).status


def live_tokens(node: DriverNode) -> list[str]:
    """Return the names of the operations' tokens that are neither revoked nor expired."""
    statement = Sql("SELECT name FROM token WHERE purpose = 'operation' AND revoked = :no AND expires_at > :now")
    permit = upkeep_permit("test")
    store = node.built.services.store
    rows = node.runner.run(store.submit(permit, lambda tx: tx.rows(statement, {"no": False, "now": tx.now_ms})))
    return [str(name) for (name,) in rows]


def test_rewrite_of_several_hours_commits_under_renewed_leases(lake: DriverNode, table: HistoryTable) -> None:
    """The token of an operation lives as long as its lease is renewed: an operation that works for three hours loads
    and commits at the end.
    """
    clock, executor = clock_of(lake), FakeExecutor(lake)
    (leased,) = executor.lease()
    for _ in range(3 * 90):
        clock.at_ms += 40_000
        assert executor.renew(leased["operation"]) == []

    assert loads(lake, leased["token"]) == 200
    assert commit_with(lake, leased["token"], "t", replacement(table)).status == 200


def test_token_ends_soon_after_a_lease_that_is_not_renewed(lake: DriverNode, table: HistoryTable) -> None:
    """Without a renewal the token ends with its lease: for a few seconds the refusal of a late commit has that reason,
    then the token is refused, though no other request has ended the lease. A late renewal does not bring either back.
    """
    clock, executor = clock_of(lake), FakeExecutor(lake)
    (leased,) = executor.lease()
    clock.at_ms += LEASE_MS
    late = commit_with(lake, leased["token"], "t", replacement(table))

    assert (late.status, b"lease" in late.body) == (403, True), late.body
    assert executor.renew(leased["operation"]) == [leased["operation"]]
    clock.at_ms += TOKEN_GRACE_MS
    assert loads(lake, leased["token"]) == 401
    assert live_tokens(lake) == []


@pytest.mark.parametrize("outcome", ["done", "failed", "yielded"])
def test_token_ends_when_its_operation_is_reported(lake: DriverNode, table: HistoryTable, outcome: str) -> None:
    """The token of an operation is refused from its report on, whatever the outcome."""
    executor = FakeExecutor(lake)
    (leased,) = executor.lease()
    assert loads(lake, leased["token"]) == 200

    assert executor.report(leased["operation"], outcome).json() == {"accepted": True}

    assert loads(lake, leased["token"]) == 401
    assert (live_tokens(lake), table.snapshots) == ([], 12)


def operations_in_budgets(node: DriverNode) -> int:
    """Return the number of operations that count towards the budgets of a day."""
    services = node.built.services
    now_ms = services.store.time.now_ms()
    used = node.runner.run(services.gate.look_up(lambda: recent_use_read(now_ms)))
    return sum(each.operations for each in used)


def test_requested_operation_waits_for_a_pipeline_run_without_a_token(lake: DriverNode, table: HistoryTable) -> None:
    """An operation that a user requested is not leased while a pipeline run uses the table, and the token that was made
    for its lease ends with the postponement. It counts towards no budget until it is leased after the run.
    """
    run = started(lake, options={"pins": [{"table": ["main", "a", "t"], "snapshot": 1200, "fingerprint": None}]})

    assert FakeExecutor(lake).lease() == []
    (waiting,) = list_operations(lake)
    assert (waiting["state"], "pipeline run" in waiting["result"]) == ("waiting", True)
    assert live_tokens(lake) == []
    assert operations_in_budgets(lake) == 0
    finish(lake, run, "succeeded")
    clock_of(lake).at_ms += RUN_PAUSE_MS
    assert [each["kind"] for each in FakeExecutor(lake).lease()] == ["compact"]
    assert operations_in_budgets(lake) == 1
    assert table.snapshots == 12


def test_cancellation_ends_only_the_token_of_its_operation(lake: DriverNode, table: HistoryTable) -> None:
    """Cancelling an operation that waits for a table leaves the token of the one that runs on it, and cancelling that
    one ends it.
    """
    waiting = ask(lake, operation="manifests").json()["operation"]
    (running,) = FakeExecutor(lake).lease()

    assert lake.post(f"{OPERATIONS_ROUTE}/{waiting}/cancel").status == 200
    assert loads(lake, running["token"]) == 200
    assert lake.post(f"{OPERATIONS_ROUTE}/{running['operation']}/cancel").status == 200

    assert loads(lake, running["token"]) == 401
    assert table.snapshots == 12


def test_revoked_api_token_ends_what_was_requested_with_it(lake: DriverNode) -> None:
    """The token of an operation ends with the API token with which a user requested it, and an operation that waits
    gets none afterwards.
    """
    table = HistoryTable(lake)
    table.append(12)
    set_clock(lake, NOW_MS)
    grant(lake, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    own = lake.done("POST", f"{OWN}/tokens", {"user": "writer"})
    for kind in ("compact", "manifests"):
        body = {"table": "a.t", "operation": kind}
        assert with_token(lake, str(own["token"]), "POST", OPERATIONS_OF_MAIN, body).status == 200
    (leased,) = FakeExecutor(lake).lease()

    lake.done("DELETE", f"{OWN}/tokens/{own['id']}")

    assert commit_with(lake, leased["token"], "t", replacement(table)).status == 401
    FakeExecutor(lake).report(leased["operation"])
    assert FakeExecutor(lake).lease() == []
    assert "API token with which writer requested this has ended" in list_operations(lake)[0]["result"]


def test_commit_under_an_expired_lease_is_not_recorded(lake: DriverNode, table: HistoryTable) -> None:
    """The transaction of a commit refuses a lease that has expired since the decision, and a renewal of one that has
    expired fails.
    """
    clock, store, permit = clock_of(lake), lake.built.services.store, upkeep_permit("test")
    (leased,) = FakeExecutor(lake).lease()
    rows = lake.runner.run(
        store.submit(permit, lambda tx: tx.rows(Sql("SELECT node_id, token_id FROM maintenance_lease"), {}))
    )
    ((node_id, token_id),) = rows

    def record() -> bool:
        return lake.runner.run(store.submit(permit, lambda tx: tx.rewrites.record_commit(token_id, node_id=node_id)))

    assert record() is True
    clock.at_ms += LEASE_MS
    assert record() is False
    assert FakeExecutor(lake).renew(leased["operation"]) == [leased["operation"]]
    assert table.snapshots == 12
