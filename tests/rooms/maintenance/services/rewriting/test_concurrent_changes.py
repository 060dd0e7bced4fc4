# SPDX-License-Identifier: Apache-2.0
"""Changes between the lease of a rewrite and its commit: renames, drops, and requests to other nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.rooms.maintenance.services.rewriting.leases import LEASE_MS
from tests.backends import Database
from tests.http.driver import OWN, DriverNode
from tests.http.iceberg import wire
from tests.http.iceberg.wire import make_space, node_over
from tests.rooms.maintenance.services.histories import DAY_MS, FIRST_MS, HistoryTable, set_clock
from tests.rooms.maintenance.services.rewriting.executor import (
    FakeExecutor,
    ask,
    commit_with,
    list_operations,
    replacement,
)

NOW_MS = FIRST_MS + 30 * DAY_MS
TRASH = f"{OWN}/metalakes/lake/catalogs/main/trash"


@pytest.fixture
def table(lake: DriverNode) -> HistoryTable:
    """A table of twelve small files with a requested compaction."""
    history_table = HistoryTable(lake)
    history_table.append(12)
    set_clock(lake, NOW_MS)
    assert ask(lake).status == 200
    return history_table


def snapshots(node: DriverNode, name: str) -> int:
    """Return the number of snapshots of a table."""
    return len(node.get(wire.table_path("a", name))["metadata"].get("snapshots", []))


def rename(node: DriverNode, old: str, new: str) -> None:
    """Rename a table of namespace `a`."""
    body = {"source": {"namespace": ["a"], "name": old}, "destination": {"namespace": ["a"], "name": new}}
    answer = node.post(f"{wire.ROOT}/tables/rename", body)
    assert answer.status == 204, answer.body


def test_commit_to_the_old_name_after_a_rename_is_refused(lake: DriverNode, table: HistoryTable) -> None:
    """After a rename of the table, a commit to the old name is refused, also if a new table has that name. The next
    executor commits under the new name.
    """
    (leased,) = FakeExecutor(lake).lease()
    updates = replacement(table)
    rename(lake, "t", "moved")
    late = commit_with(lake, leased["token"], "t", updates)
    other = HistoryTable(lake)
    other.append(1)
    other_response = commit_with(lake, leased["token"], "t", replacement(other))
    FakeExecutor(lake).report(leased["operation"], "yielded", "the table is not there")
    lake.built.services.store.time.at_ms += LEASE_MS * 10
    (again,) = FakeExecutor(lake, "two").lease()

    assert (late.status, other_response.status) == (403, 403), (late.body, other_response.body)
    assert (snapshots(lake, "moved"), snapshots(lake, "t")) == (12, 1)
    assert (again["operation"], again["path"]) == (leased["operation"], ["a", "moved"])
    assert commit_with(lake, again["token"], "moved", updates).status == 200


def test_table_dropped_after_the_lease_gets_no_commit(lake: DriverNode, table: HistoryTable) -> None:
    """Nothing is committed while the table is in the trash, nor to a new table of the same name. After the table is
    restored, the rewrite succeeds.
    """
    (leased,) = FakeExecutor(lake).lease()
    updates = replacement(table)
    assert lake.delete(wire.table_path("a", "t")).status == 204
    late = commit_with(lake, leased["token"], "t", updates)
    lake.built.services.store.time.at_ms += LEASE_MS
    assert FakeExecutor(lake, "two").lease() == []
    other = HistoryTable(lake)
    other.append(1)
    other_response = commit_with(lake, leased["token"], "t", replacement(other))
    rename(lake, "t", "other")
    (dropped,) = lake.get(TRASH).json()["trash"]
    lake.done("POST", f"{TRASH}/{dropped['id']}/undrop", {})
    (again,) = FakeExecutor(lake, "two").lease()

    assert late.status in (403, 404), late.body
    assert other_response.status in (401, 403), other_response.body
    assert (snapshots(lake, "t"), snapshots(lake, "other")) == (12, 1)
    assert again["operation"] == leased["operation"]
    assert commit_with(lake, again["token"], "t", updates).status == 200


@pytest.fixture
def nodes(database: Database, tmp_path: Path) -> Iterator[tuple[DriverNode, DriverNode]]:
    """Two nodes on one store, with a namespace `a`."""
    url = None if database.kind == "sqlite" else database.address
    with node_over(tmp_path, database=url) as one, node_over(tmp_path, database=url) as two:
        make_space(one, "a")
        yield one, two


def test_lease_of_one_node_is_valid_and_ends_on_both(nodes: tuple[DriverNode, DriverNode]) -> None:
    """A lease of one node is valid on the other and ends on both: only one executor holds it, and after its end its
    token is refused on both.
    """
    one, two = nodes
    table = HistoryTable(one)
    table.append(12)
    clock = set_clock(one, NOW_MS)
    two.built.services.store.time = clock
    assert ask(two).status == 200
    (leased,) = FakeExecutor(one).lease()
    assert FakeExecutor(two, "two").lease() == []
    clock.at_ms += LEASE_MS - 1
    assert FakeExecutor(two).renew(leased["operation"]) == []
    clock.at_ms += LEASE_MS
    updates = replacement(table)
    assert commit_with(one, leased["token"], "t", updates).status == 403, "the lease has ended"
    (again,) = FakeExecutor(two, "two").lease()
    late = [commit_with(node, leased["token"], "t", updates).status for node in (one, two)]
    done = commit_with(one, again["token"], "t", updates)
    twice = commit_with(two, again["token"], "t", updates)
    report = FakeExecutor(one, "two").report(again["operation"])

    assert (again["operation"], late, done.status) == (leased["operation"], [401, 401], 200)
    assert twice.status in (400, 409), "the replaced files are deleted"
    assert report.json() == {"accepted": True}
    assert [[each["state"] for each in list_operations(node)] for node in nodes] == [["done"], ["done"]]
    assert [snapshots(node, "t") for node in nodes] == [13, 13]
