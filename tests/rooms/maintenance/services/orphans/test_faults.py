# SPDX-License-Identifier: Apache-2.0
"""Faults between mark and deletion of orphan files: each is reported, and no live file is deleted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from limnos.files.local import LocalFiles
from limnos.model.errors import StorageFailed
from limnos.rooms.maintenance.services.orphans import removal, search
from limnos.rooms.maintenance.services.orphans.removal import OrphanRemoval, RemovalAccount
from limnos.rooms.maintenance.services.orphans.rounds import OrphanRound
from limnos.services.iceberg import commits
from limnos.services.iceberg.orphan_fence import ORPHAN_FENCE, FencedTables, seconds_since_boot
from tests.backends import PostgresServer
from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.test_plans import steer
from tests.http.iceberg.wire import make_space, node_over
from tests.rooms.maintenance.services.histories import DAY_MS, MAINTENANCE, HistoryTable
from tests.rooms.maintenance.services.live_files import files_of_table, lost_files
from tests.rooms.maintenance.services.orphans.histories import (
    POLICY,
    checked,
    clock_of,
    no_wait,
    run_days,
    run_round,
    turn_on,
    write_orphan,
)
from tests.rooms.maintenance.services.orphans.test_rounds import commit_file, committing
from tests.store.test_locks import WAIT_S

Act = Callable[[], Awaitable[Any]]
TRASH = "/api/limnos/v1/metalakes/lake/catalogs/main/trash"


@pytest.fixture
def table(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> HistoryTable:
    """A table with three snapshots, on a node that removes orphan files of all tables."""
    no_wait(monkeypatch)
    history_table = HistoryTable(lake)
    history_table.append(3)
    turn_on(lake)
    return history_table


def last(node: DriverNode) -> dict[str, Any]:
    """Return the newest operation of the table."""
    rows: list[dict[str, Any]] = node.get(f"{MAINTENANCE}/operations").json()["operations"]
    return rows[0]


def lost(node: DriverNode, name: str = "t") -> list[str]:
    """Return the table's needed files that are missing."""
    return lost_files(files_of_table(str(node.get(wire.table_path("a", name))["metadata-location"])))


def removed_beside(node: DriverNode, act: Act) -> int:
    """Run a round, with a callback between mark and deletion. Returns the number of deleted files."""
    real = removal.orphans_search

    async def searched(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        await act()
        return await real(*args, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removal, "orphans_search", searched)
        return run_round(node).files


def test_files_of_table_dropped_after_the_mark_are_not_deleted(table: HistoryTable) -> None:
    """No file of a table that is dropped after the mark is deleted, and the operation reports that. After the table is
    restored, its orphan file is deleted later.
    """
    node, clock = table.node, clock_of(table.node)
    path = write_orphan(table)
    assert run_days(node, clock, 3) == 0
    assert removed_beside(node, lambda: node.answer("DELETE", wire.table_path("a", "t"))) == 0
    assert path.exists()
    (row,) = node.get(TRASH).json()["trash"]
    assert node.post(f"{TRASH}/{row['id']}/undrop", {}).status == 200
    assert (last(node)["state"], last(node)["result"]) == ("failed", "the table was dropped")
    assert lost(node) == []
    clock.at_ms += DAY_MS
    assert run_days(node, clock, 6) == 1
    assert (path.exists(), lost(node)) == (False, [])


def test_rename_after_the_mark_deletes_only_the_orphan_file(table: HistoryTable) -> None:
    """If a table is renamed after the mark, only its orphan file is deleted."""
    node, clock = table.node, clock_of(table.node)
    path = write_orphan(table)
    assert run_days(node, clock, 3) == 0
    names = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "new"}}
    assert removed_beside(node, lambda: node.answer("POST", f"{wire.ROOT}/tables/rename", names)) == 1
    assert (path.exists(), lost(node, "new")) == (False, [])


def test_files_of_table_protected_after_the_mark_are_not_deleted(table: HistoryTable) -> None:
    """No file of a table that is protected after the mark is deleted."""
    node, clock = table.node, clock_of(table.node)
    path = write_orphan(table)
    assert run_days(node, clock, 3) == 0
    target = "/api/limnos/v1/metalakes/lake/objects/table/main.a.t/protection"
    assert removed_beside(node, lambda: node.answer("PUT", target, {})) == 0
    assert (last(node)["state"], last(node)["result"]) == ("failed", "the table is protected")
    assert path.exists()


@pytest.mark.parametrize("part", ["author", "attacher"])
def test_policy_deletes_nothing_after_its_author_lost_the_privilege(table: HistoryTable, part: str) -> None:
    """If the author of the policy's content, or the user who attached it, loses the privilege, nothing is marked or
    deleted until it is granted again. The policy's owner does not matter.
    """
    node, clock = table.node, clock_of(table.node)
    turn_on(node, "policies")
    privileges = "use_catalog use_schema select_table modify_table"
    role = grant(node, "maker", privileges, kind="CATALOG", on="main")
    grant(node, "maker", "create_policy apply_policy", kind="METALAKE", on="lake")
    body = {"name": "clean", "policyType": POLICY, "enabled": True, "content": {"olderThanDays": 3}}
    node.done("POST", f"{API}/lake/policies", body, user="maker" if part == "author" else "admin")
    node.done("PUT", f"{API}/lake/owners/CATALOG/main", {"name": "maker", "type": "USER"})
    attach = {"policiesToAdd": ["clean"]}
    attacher = "maker" if part == "attacher" else "admin"
    node.done("POST", f"{API}/lake/objects/catalog/main/policies", attach, user=attacher)
    for target in ("CATALOG/main", "POLICY/clean"):
        node.done("PUT", f"{API}/lake/owners/{target}", {"name": "admin", "type": "USER"})
    path = write_orphan(table)
    assert run_days(node, clock, 3) == 0
    node.done("PUT", f"{API}/lake/permissions/users/maker/revoke", {"roleNames": [role]})
    assert run_days(node, clock, 2) == 0
    assert path.exists()
    assert "maker" in str(checked(node)["blocked"])
    node.done("PUT", f"{API}/lake/permissions/users/maker/grant", {"roleNames": [role]})
    assert run_days(node, clock, 4) == 1
    assert (path.exists(), lost(node)) == (False, [])


def test_storage_failure_prevents_marks_and_keeps_existing_ones(
    table: HistoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the storage cannot list, no file is marked. While it cannot delete, the marks stay."""
    node, clock = table.node, clock_of(table.node)
    paths = [write_orphan(table), write_orphan(table, "data/second.parquet")]
    assert run_days(node, clock, 3) == 0

    def away(*args: object, **named: object) -> Any:  # noqa: ANN401 - it never returns
        del args, named
        raise StorageFailed("The storage is away")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "delete", away)
        assert run_round(node).files == 0
    assert (last(node)["state"], all(each.exists() for each in paths)) == ("failed", True)
    clock.at_ms += DAY_MS
    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "entries", away)
        assert run_round(node).files == 0
    assert "away" in str(checked(node)["blocked"])
    clock.at_ms += DAY_MS
    assert run_days(node, clock, 2) == 2
    assert lost(node) == []


WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
"""Counts the transactions that wait for a lock."""


@pytest.mark.integration
def test_commit_in_progress_keeps_its_file(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second search begins when the commits have ended that were in progress. So a marked file is not deleted if
    such a commit adds it, whose node read the list of marks before, also if its metadata file is not noticed. On
    PostgreSQL, where transactions run at the same time.
    """
    no_wait(monkeypatch)
    entered, go, searched = threading.Event(), threading.Event(), asyncio.Event()
    find, require = removal.orphans_search, commits.fence_require

    def pause(until: float | None) -> None:
        entered.set()
        assert go.wait(WAIT_S)
        require(until)

    async def searching(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        result = await find(*args, **named)
        searched.set()
        return result

    async def remove_beside_a_commit(round_: OrphanRound) -> dict[int, object]:
        (marked,) = round_.marked
        services = round_.services
        ORPHAN_FENCE.of(services).fenced = FencedTables(frozenset(), seconds_since_boot())
        commit = asyncio.create_task(table.node.answer("POST", *request))
        assert await asyncio.to_thread(entered.wait, WAIT_S)
        account = RemovalAccount("admin", "r", marked.catalog_id, None)
        removing = asyncio.create_task(
            OrphanRemoval(round_.work, services, node_id=marked.node_id, account=account).run()
        )
        async with asyncio.timeout(WAIT_S):
            while not searched.is_set() and database.sql(WAITING) == [(0,)]:  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0.01)
        go.set()
        assert (await commit).status == 200
        assert (await removing).files == 0
        return {}

    database = postgres_server.fresh_database()
    with node_over(tmp_path, database=database.address) as node:
        make_space(node, "a")
        table = HistoryTable(node)
        table.append(3)
        turn_on(node)
        clock, path = clock_of(node), write_orphan(table, "data/late.parquet")
        request = committing(table, "data/late.parquet", size=6)
        assert run_days(node, clock, 3) == 0
        monkeypatch.setattr(commits, "fence_require", pause)
        monkeypatch.setattr(removal, "orphans_search", searching)
        monkeypatch.setattr(search, "newer_metadata_files", lambda *_: [])
        monkeypatch.setattr(OrphanRound, "remove", remove_beside_a_commit)
        run_round(node)

        assert searched.is_set()
        assert path.exists()
        assert lost(node) == []


def test_planned_scan_of_a_removed_snapshot_blocks_the_deletion(table: HistoryTable) -> None:
    """While a planned scan reads a snapshot that the table no longer has, no file is deleted."""
    node, clock = table.node, clock_of(table.node)
    path = write_orphan(table)
    assert run_days(node, clock, 3) == 0
    assert table.plan(snapshot_id=100).status == 200
    steer(node, keep_pinned=False)
    removal_update = {"action": "remove-snapshots", "snapshot-ids": [100]}
    assert wire.commit(node, "a", "t", updates=[removal_update]).status == 200
    assert run_round(node).files == 0
    assert last(node)["result"] == "a planned scan reads a snapshot that the table no longer has"
    assert path.exists()
    clock.at_ms += max(DAY_MS, node.built.services.defaults.scan_keep_ms + 1)
    assert run_round(node).files == 1


def test_file_of_another_tables_manifest_is_not_deleted(table: HistoryTable) -> None:
    """A file below the table's location that another table names is not deleted, at the first and at later checks."""
    node, clock = table.node, clock_of(table.node)
    path, other = write_orphan(table, "data/shared.parquet"), HistoryTable(node, "u")
    other.append(1)
    assert commit_file(other, f"{table.location}/data/shared.parquet", size=6).status == 200
    assert run_days(node, clock, 8) == 0
    assert path.exists()
    results = {each["result"] for each in node.get(f"{MAINTENANCE}/operations").json()["operations"]}
    assert "another table refers to files below its location" in results
