# SPDX-License-Identifier: Apache-2.0
"""Row retention by a policy: the rows that an executor must delete, in whose name, when, and the requests that are
refused.
"""

from __future__ import annotations

from typing import Any

import pytest

from limnos.rooms.maintenance.services.rewriting.planning import RETENTION_INTERVAL_MS
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg import wire
from tests.iceberg_manifests import data_file, entry, manifest_list
from tests.rooms.maintenance.services.histories import (
    DAY_MS,
    FIRST_MS,
    HistoryTable,
    MovedClock,
    add_policy,
    assess,
    explained,
    findings,
    set_clock,
)
from tests.rooms.maintenance.services.rewriting.executor import (
    FakeExecutor,
    ask,
    commit_with,
    list_operations,
    replacement,
)
from tests.rooms.maintenance.services.rewriting.test_planning import plan

TYPE = "limnos-row-retention"
NOW_MS = FIRST_MS + 30 * DAY_MS
TODAY, TEN_DAYS_AGO = "2023-12-14", "2023-12-04"
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "at", "type": "timestamptz", "required": False},
    ],
}
RIGHTS = "use_catalog use_schema select_table modify_table"


@pytest.fixture
def clock(lake: DriverNode) -> MovedClock:
    """Return the node's clock."""
    return set_clock(lake, NOW_MS)


@pytest.fixture
def table(lake: DriverNode, clock: MovedClock) -> HistoryTable:
    """A table of four files with a time column, and a policy of its catalog that keeps rows for ten days."""
    history_table = HistoryTable(lake, schema=SCHEMA)
    history_table.append(4)
    add_policy(lake, "ten", TYPE, {"column": "at", "olderThanDays": 10}, on="main", kind="catalog")
    assess(lake)
    return history_table


def deletion(table: HistoryTable, *, operation: str = "delete", added: int = 0) -> list[dict[str, Any]]:
    """Return the updates of a commit that drops the table's first file and adds a file with this number of records."""
    number = table.snapshots + 1
    new = (
        []
        if not added
        else [
            table.manifest(
                f"r{number}.avro", [entry(data_file(f"{table.location}/data/r.parquet", record_count=added))]
            )
        ]
    )
    place = table.write(f"delete-{number}.avro", manifest_list([*table.manifests[1:], *new]))
    snapshot = wire.snapshot(number, manifest_list=place, parent=table.snapshots)
    more = {"sequence-number": number, "summary": {"operation": operation}}
    snapshot["snapshot"] = {**snapshot["snapshot"], **more}  # type: ignore[dict-item]
    return [snapshot, wire.point(number)]


def test_row_deletion_is_leased_committed_and_pauses_for_a_day(
    lake: DriverNode, table: HistoryTable, clock: MovedClock
) -> None:
    """The lease has the column and the day, the commit names the operation, and then the table pauses for a day."""
    assert findings(lake)["a.t", "retention"]["reason"] == "rows whose at is older than 10 days are deleted once a day"
    assert plan(lake) == 1
    (leased,) = FakeExecutor(lake).lease()
    assert (leased["kind"], leased["options"]) == (
        "retention",
        {"column": "at", "column-type": "timestamptz", "before": TEN_DAYS_AGO},
    )
    answer = commit_with(lake, leased["token"], "t", deletion(table))
    assert answer.status == 200, answer.body
    FakeExecutor(lake).report(leased["operation"], text="deleted 10 rows")

    metadata: Any = wire.metadata_of(lake, "a", "t")
    summary = metadata["snapshots"][-1]["summary"]
    assert summary == {"operation": "delete", "limnos.operation": str(leased["operation"])}
    (done,) = list_operations(lake)
    assert (done["kind"], done["state"], done["policy"], done["user"]) == ("retention", "done", "ten", "admin")
    assert explained(lake)["policies"][0]["content"] == {"column": "at", "olderThanDays": 10}
    assess(lake)
    clock.at_ms += RETENTION_INTERVAL_MS - 1
    assert (plan(lake), retention_told(lake)) == (0, [False, False])
    clock.at_ms += 1
    assert (plan(lake), retention_told(lake)) == (1, [True, True])
    (failed,) = FakeExecutor(lake).lease()
    FakeExecutor(lake).report(failed["operation"], "failed", "no memory")
    assert retention_told(lake) == [True, True], "the rows are not deleted yet"


def retention_told(lake: DriverNode) -> list[bool]:
    """Return whether the table's old rows are due, by the findings of its catalog and by its explanation."""
    by_explanation = {each["kind"] for each in explained(lake)["findings"]}
    return [("a.t", "retention") in findings(lake), "retention" in by_explanation]


def test_row_deletion_token_may_commit_only_deletions(lake: DriverNode, table: HistoryTable) -> None:
    """With the token of a row deletion, commits that add rows, append or rewrite are refused. With the token of a
    compaction, a commit that deletes rows is refused.
    """
    assert plan(lake) == 1
    (leased,) = FakeExecutor(lake).lease()
    more = commit_with(lake, leased["token"], "t", deletion(table, operation="overwrite", added=11))
    append = commit_with(lake, leased["token"], "t", deletion(table, operation="append"))
    replace = commit_with(lake, leased["token"], "t", replacement(table))
    assert (more.status, b"1 records more" in more.body) == (400, True), more.body
    assert (append.status, replace.status) == (400, 400)
    fewer = commit_with(lake, leased["token"], "t", deletion(table, operation="overwrite", added=9))
    assert fewer.status == 200, fewer.body

    other = HistoryTable(lake, "u", schema=SCHEMA)
    other.append(4)
    assert ask(lake, "a.u").status == 200
    (compaction,) = FakeExecutor(lake).lease()
    answer = commit_with(lake, compaction["token"], "u", deletion(other))
    assert (answer.status, b"operation 'replace'" in answer.body) == (400, True), answer.body


def test_requested_row_deletion_uses_policy_and_user_privileges(lake: DriverNode, table: HistoryTable) -> None:
    """A user who may maintain the table may request a row deletion. It uses the policy's conditions and the user's
    privileges.
    """
    grant(lake, "writer", RIGHTS, kind="CATALOG", on="main")
    grant(lake, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    assert ask(lake, operation="retention", user="reader").status == 403
    assert ask(lake, operation="retention", user="writer").status == 200
    (leased,) = FakeExecutor(lake).lease()
    assert leased["options"]["before"] == TEN_DAYS_AGO
    assert list_operations(lake)[0]["user"] == "writer"

    HistoryTable(lake, "plain").append(1)
    without_column = ask(lake, "a.plain", "retention")
    assert (without_column.status, b"no column at" in without_column.body) == (400, True), without_column.body
    lake.patch(f"{API}/lake/policies/ten", {"enable": False})
    refused = ask(lake, operation="retention")
    assert (refused.status, b"No enabled policy of type limnos-row-retention" in refused.body) == (400, True)


def test_policy_column_without_times_has_no_finding(lake: DriverNode, table: HistoryTable) -> None:
    """The nearest policy decides. If its column has no times, there is no finding, and the explanation says why."""
    add_policy(lake, "by-id", TYPE, {"column": "id", "olderThanDays": 10}, on="main.a.t", kind="table")
    assess(lake)

    assert ("a.t", "retention") not in findings(lake)
    assert explained(lake)["blocked"] == [
        "no row is deleted: Column id has type long: rows are deleted by a column of type date, timestamp, timestamptz"
    ]
    assert plan(lake) == 0
    assert ask(lake, operation="retention").status == 400


def test_policy_at_the_lease_determines_the_rows_to_delete(lake: DriverNode, table: HistoryTable) -> None:
    """The rows to delete are determined at the lease by the policy at that time. Without a policy, the operation is
    refused.
    """
    assert plan(lake) == 1
    content = {"column": "at", "olderThanDays": 20}
    update = {"@type": "updateContent", "policyType": TYPE, "newContent": content}
    lake.done("PUT", f"{API}/lake/policies/ten", {"updates": [update]})
    (leased,) = FakeExecutor(lake).lease()
    assert leased["options"]["before"] == "2023-11-24"
    FakeExecutor(lake).report(leased["operation"], "failed", "no memory")
    set_clock(lake, NOW_MS + DAY_MS)
    assert plan(lake) == 1
    lake.patch(f"{API}/lake/policies/ten", {"enable": False})

    assert FakeExecutor(lake).lease() == []
    assert list_operations(lake)[0]["result"] == "The policy ten no longer requires this"


@pytest.mark.parametrize("change", ["disabled", "detached", "dropped", "longer", "other column"])
def test_commit_is_refused_if_policy_no_longer_deletes_all_rows(
    lake: DriverNode, table: HistoryTable, change: str
) -> None:
    """A commit may delete rows only if the policy at the time of the commit still requires to delete all of them."""
    assert plan(lake) == 1
    (leased,) = FakeExecutor(lake).lease()
    content = {"column": "id" if change == "other column" else "at", "olderThanDays": 20 if change == "longer" else 10}
    update = {"@type": "updateContent", "policyType": TYPE, "newContent": content}
    match change:
        case "disabled":
            lake.patch(f"{API}/lake/policies/ten", {"enable": False})
        case "detached":
            lake.done("POST", f"{API}/lake/objects/catalog/main/policies", {"policiesToRemove": ["ten"]})
        case "dropped":
            lake.done("DELETE", f"{API}/lake/policies/ten")
        case _:
            lake.done("PUT", f"{API}/lake/policies/ten", {"updates": [update]})

    answer = commit_with(lake, leased["token"], "t", deletion(table))
    assert (answer.status, b"no longer deletes the rows" in answer.body) == (403, True), answer.body
    assert len(table.ids()) == table.snapshots


def test_commit_is_accepted_if_the_policy_now_deletes_more_rows(
    lake: DriverNode, table: HistoryTable, clock: MovedClock
) -> None:
    """A commit may delete the rows of the lease also if, since then, a later day or a shorter retention includes more
    rows.
    """
    assert plan(lake) == 1
    (leased,) = FakeExecutor(lake).lease()
    update = {"@type": "updateContent", "policyType": TYPE, "newContent": {"column": "at", "olderThanDays": 5}}
    lake.done("PUT", f"{API}/lake/policies/ten", {"updates": [update]})
    clock.at_ms += 30_000

    answer = commit_with(lake, leased["token"], "t", deletion(table))
    assert answer.status == 200, answer.body


def test_setting_without_a_policy_deletes_no_rows(lake: DriverNode, table: HistoryTable) -> None:
    """The setting for tables without a policy never deletes rows."""
    lake.done("POST", f"{API}/lake/objects/catalog/main/policies", {"policiesToRemove": ["ten"]})
    services = lake.built.services
    services.defaults = services.defaults._replace(maintenance=services.defaults.maintenance._replace(rewrite=True))

    assert plan(lake) == 0


def test_quiet_hours_delay_policy_operations_but_not_requests(lake: DriverNode, table: HistoryTable) -> None:
    """The policy's quiet hours delay its operations, but not requests."""
    content = {"column": "at", "olderThanDays": 10, "quietHours": ["00:00-00:01 UTC"]}
    add_policy(lake, "night", TYPE, content, on="main.a.t", kind="table")
    assert plan(lake) == 1

    assert FakeExecutor(lake).lease() == []
    assert "waits for the quiet hours" in list_operations(lake)[0]["result"]
    assert ask(lake, operation="retention").status == 200
    assert len(FakeExecutor(lake).lease()) == 1


def test_policy_of_a_row_restricted_author_deletes_nothing(lake: DriverNode, table: HistoryTable) -> None:
    """The policy of a restricted author deletes nothing, because it could delete rows that the author cannot see."""
    grant(lake, "writer", RIGHTS, kind="CATALOG", on="main")
    lake.done("PUT", f"{API}/lake/owners/policy/ten", {"name": "writer", "type": "USER"})
    write_content(lake, "ten", 9, user="writer")
    restriction = {"filter": "id = 1"}
    restricted = lake.put(f"{OWN}/metalakes/lake/objects/table/main.a.t/restrictions/some", restriction)
    assert restricted.status == 200, restricted.body
    assert plan(lake) == 1

    assert FakeExecutor(lake).lease() == []
    (done,) = list_operations(lake)
    assert (done["state"], done["user"]) == ("failed", "writer")


@pytest.mark.parametrize("change", ["content", "enabled", "attached", "other policy", "dropped author", "attacher"])
def test_row_deletion_of_a_policy_that_others_changed_is_withdrawn(
    lake: DriverNode, table: HistoryTable, change: str
) -> None:
    """A planned deletion is not carried out for the policy's author if another user has since written the content,
    enabled or attached it, or attached another policy that decides, or if one of both users has lost the right.
    """
    share_policy(lake)
    assert plan(lake) == 1
    change_policy(lake, change)

    assert FakeExecutor(lake).lease() == []
    (ended,) = list_operations(lake)
    assert (ended["state"], ended["user"]) == ("cancelled" if change in WITHDRAWN else "failed", "author")


@pytest.mark.parametrize("change", ["content", "enabled", "attached", "other policy", "dropped author", "attacher"])
def test_commit_of_a_row_deletion_is_refused_if_others_changed_the_policy(
    lake: DriverNode, table: HistoryTable, change: str
) -> None:
    """The same changes between the lease and the commit refuse the commit."""
    share_policy(lake)
    assert plan(lake) == 1
    (leased,) = FakeExecutor(lake).lease()
    change_policy(lake, change)

    answer = commit_with(lake, leased["token"], "t", deletion(table))
    assert answer.status in {401, 403}, answer.body
    assert len(table.ids()) == table.snapshots


def test_requested_row_deletion_fails_if_the_policy_has_changed(lake: DriverNode, table: HistoryTable) -> None:
    """A requested deletion uses the policy's content at the request: it fails if anybody has changed it since."""
    assert ask(lake, operation="retention").status == 200
    write_content(lake, "ten", 9, user="admin")

    assert FakeExecutor(lake).lease() == []
    (ended,) = list_operations(lake)
    assert (ended["state"], "has changed since" in ended["result"]) == ("failed", True), ended


WITHDRAWN = ("content", "enabled", "attached", "other policy")
"""The changes that give the policy another author, or another user who attached it."""


def share_policy(lake: DriverNode) -> None:
    """Let `other` own the policy that `author` wrote, and `keeper` attach it; all three may maintain the table."""
    for user in ("author", "other", "keeper"):
        grant(lake, user, RIGHTS, kind="CATALOG", on="main")
    lake.done("PUT", f"{API}/lake/owners/policy/ten", {"name": "author", "type": "USER"})
    write_content(lake, "ten", 10, user="author")
    lake.done("PUT", f"{API}/lake/owners/policy/ten", {"name": "other", "type": "USER"})
    detach, attach = {"policiesToRemove": ["ten"]}, {"policiesToAdd": ["ten"]}
    address = f"{API}/lake/objects/table/main.a.t/policies"
    lake.done("POST", f"{API}/lake/objects/catalog/main/policies", detach)
    grant(lake, "keeper", "apply_policy create_policy", kind="METALAKE", on="lake")
    lake.done("POST", address, attach, user="keeper")


def change_policy(lake: DriverNode, change: str) -> None:
    """Change the policy in the name of another user than its author and the one who attached it."""
    address = f"{API}/lake/objects/table/main.a.t/policies"
    match change:
        case "content":
            write_content(lake, "ten", 9, user="other")
        case "enabled":
            for state in (False, True):
                assert lake.patch(f"{API}/lake/policies/ten", {"enable": state}, user="other").status == 200
        case "attached":
            lake.done("POST", address, {"policiesToRemove": ["ten"]}, user="other")
            lake.done("POST", address, {"policiesToAdd": ["ten"]}, user="other")
        case "other policy":
            grant(lake, "other", "create_policy", kind="METALAKE", on="lake")
            content = {"column": "at", "olderThanDays": 9}
            body = {"name": "a-first", "policyType": TYPE, "enabled": True, "content": content}
            lake.done("POST", f"{API}/lake/policies", body, user="other")
            lake.done("POST", address, {"policiesToAdd": ["a-first"]}, user="other")
        case "dropped author":
            lake.done("DELETE", f"{API}/lake/users/author")
        case _:
            lake.done("DELETE", f"{API}/lake/users/keeper")


def write_content(lake: DriverNode, name: str, days: int, *, user: str) -> None:
    """Write the content of a policy of row retention."""
    content = {"column": "at", "olderThanDays": days}
    update = {"@type": "updateContent", "policyType": TYPE, "newContent": content}
    lake.done("PUT", f"{API}/lake/policies/{name}", {"updates": [update]}, user=user)


@pytest.mark.parametrize(
    "content, text",
    [
        ({"column": "at"}, "olderThanDays"),
        ({"olderThanDays": 1}, "column"),
        ({"column": "", "olderThanDays": 1}, "column"),
        ({"column": "at", "olderThanDays": 0}, "from 1 to 36500"),
        ({"column": "at", "olderThanDays": 1.5}, "olderThanDays"),
        ({"column": "at", "olderThanDays": 40_000}, "from 1 to 36500"),
        ({"column": "at", "olderThanDays": 1, "x": 1}, "x"),
        ({"column": "at", "olderThanDays": 1, "quietHours": ["now"]}, "quietHours"),
    ],
)
def test_policy_without_column_or_whole_days_is_refused(
    node: DriverNode, content: dict[str, object], text: str
) -> None:
    """A policy must name a column and a whole number of days; other fields are refused."""
    answer = node.post(f"{API}/lake/policies", {"name": "p", "policyType": TYPE, "content": content})

    assert (answer.status, text in str(answer.body)) == (400, True), answer.body
