# SPDX-License-Identifier: Apache-2.0
"""Costs of table maintenance on a node in this process: concurrent commits, a check for orphan files, growth.

May import the tests' nodes and tables. CPU time of this process; nothing is sent over a network.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.figures import Figure
from limnos.model.permits import upkeep_permit
from limnos.rooms.maintenance.services.task import MaintenancePosition, MaintenanceRound
from limnos.services.request.offloaded_work import InlineOffloader
from limnos.services.request.task_context import TaskContext
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import DAY_MS, HistoryTable, add_policy, assess, set_clock
from tests.rooms.maintenance.services.orphans.histories import run_round, turn_on, write_orphan

if TYPE_CHECKING:
    from tests.http.driver import DriverNode

COMMITS_PER_TURN: Final = 40
TURNS: Final = 11
_START_MS: Final = 4_000_000_000_000
"""A time after that of all written files."""
_POLICIES: Final = {
    "system_iceberg_table_maintenance": {},
    "system_iceberg_compaction": {},
    "system_iceberg_snapshot_expiration": {"olderThanDays": 1, "retainLast": 1, "minSnapshotCount": 0},
    "system_iceberg_orphan_file_removal": {},
}


def measure_commits(folder: Path) -> list[Figure]:
    """Measure commits of a table without maintenance, and with all policies and settings."""
    with wire.node_over(folder) as node:
        wire.make_space(node, "a")
        HistoryTable(node).append(3)
        add_policies(node)
        names = "system_iceberg_compaction", "system_iceberg_orphan_file_removal"
        _settings(node, is_on=False)
        _commit_many(node)
        ratios, used = [], {}
        for _ in range(TURNS):
            for is_on in (False, True):
                _settings(node, is_on=is_on)
                _switch(node, *names, is_on=is_on)
                wire.commit(node, "a", "t", updates=[wire.set_properties(turn=str(is_on))])
                began = time.process_time()
                _commit_many(node)
                used[is_on] = time.process_time() - began
            ratios.append(used[True] / used[False])
        counts = []
        for is_on in (False, True):
            _settings(node, is_on=is_on)
            _switch(node, *names, is_on=is_on)
            wire.commit(node, "a", "t", updates=[wire.set_properties(turn=str(is_on))])
            counts.append(_statements(node))
    return [
        Figure("commit of a table, maintenance on against off", statistics.median(ratios), "times", 1.02),
        Figure("  SQL statements of a commit, more than without", counts[1] - counts[0], "", 0),
    ]


def add_policies(node: DriverNode) -> None:
    """Attach a policy of each type to the catalog."""
    for policy_type, content in _POLICIES.items():
        add_policy(node, policy_type, policy_type, dict(content), on="main", kind="catalog")


def _settings(node: DriverNode, *, is_on: bool) -> None:
    services = node.built.services
    maintenance = services.defaults.maintenance._replace(
        assess=is_on, expire=is_on, rewrite=is_on, orphans="all" if is_on else "off"
    )
    services.defaults = services.defaults._replace(maintenance=maintenance)


def _switch(node: DriverNode, *policies: str, is_on: bool) -> None:
    for name in policies:
        assert node.patch(f"/api/metalakes/lake/policies/{name}", {"enable": is_on}).status == 200


def _commit_many(node: DriverNode) -> None:
    for number in range(COMMITS_PER_TURN):
        assert wire.commit(node, "a", "t", updates=[wire.set_properties(number=str(number))]).status == 200


def _statements(node: DriverNode) -> int:
    """Return the minimum number of SQL statements of a commit, because concurrent tasks send some, too."""
    store, sent = node.built.services.store, list[str]()
    connections = [getattr(store, name) for name in ("_reader", "_writer") if hasattr(store, name)]
    for each in connections:
        each.set_trace_callback(sent.append)
    counts = []
    for number in range(5):
        sent.clear()
        assert wire.commit(node, "a", "t", updates=[wire.set_properties(number=str(number))]).status == 200
        counts.append(len(sent))
    for each in connections:
        each.set_trace_callback(None)
    return min(counts)


def measure_orphans(folder: Path) -> list[Figure]:
    """Measure a check of tables with five snapshots and an orphan each: some 20 files."""
    tables = 10
    with wire.node_over(folder) as node:
        wire.make_space(node, "a")
        node.built.services.offloader = InlineOffloader()
        for number in range(tables):
            table = HistoryTable(node, f"t{number}")
            table.append(5)
            write_orphan(table)
        clock = set_clock(node, _START_MS)
        turn_on(node)
        run_round(node)
        clock.at_ms += DAY_MS
        began = time.process_time()
        checked = run_round(node).checked
        used = time.process_time() - began
        assert checked == tables
    return [Figure("check of a table of 20 files for orphans", used * 1000 / tables, "ms", 5)]


def measure_growth(folder: Path, *, commits: int) -> list[Figure]:
    """Measure a table after many commits, 100 a day, with a policy that expires snapshots and a retention of a day."""
    with wire.node_over(folder) as node:
        wire.make_space(node, "a")
        table = HistoryTable(node)
        clock = set_clock(node, 1_760_000_000_000)
        services = node.built.services
        maintenance = services.defaults.maintenance._replace(metadata_keep_ms=DAY_MS)
        services.defaults = services.defaults._replace(maintenance=maintenance)
        content = dict(_POLICIES["system_iceberg_snapshot_expiration"])
        add_policy(node, "keep", "system_iceberg_snapshot_expiration", content, on="main", kind="catalog")
        at = MaintenancePosition(epoch=1, since_ms=0)
        for number in range(commits):
            _append(table, at_ms=clock.at_ms)
            clock.at_ms += DAY_MS // 100
            if number % 100 == 99:
                assess(node)
                _maintain(node, at)
        _maintain(node, at)
        location = str(node.get(wire.table_path("a", "t"))["metadata-location"])
        size = wire.local(location).stat().st_size
        files = len(list(wire.local(location).parent.glob("*.metadata.json")))
    return [
        Figure(f"metadata document after {commits} commits, with a policy", size / 1024, "KiB", 64),
        Figure(f"metadata files after {commits} commits", files, "files", 120),
    ]


def _append(table: HistoryTable, *, at_ms: int) -> None:
    """Commit a snapshot, as writers of a table with a thousand files do; only its summary is read here."""
    number = table.snapshots + 1
    update = wire.snapshot(number, manifest_list=f"{table.location}/metadata/none.avro", parent=table.snapshots or None)
    totals = {"total-data-files": "4", "total-files-size": "1000000000", "total-delete-files": "0"}
    summary = {"operation": "append", "added-data-files": "1", **totals}
    update["snapshot"] = {**update["snapshot"], "timestamp-ms": at_ms, "sequence-number": number, "summary": summary}  # type: ignore[dict-item]
    answer = wire.commit(table.node, "a", table.name, updates=[update, wire.point(number)])
    assert answer.status == 200, answer.body
    table.snapshots = number


def task_context(node: DriverNode) -> TaskContext:
    """Return the context of a round of a task on a node."""
    services = node.built.services
    return TaskContext(
        0,
        store=services.store,
        permit=upkeep_permit("bench"),
        allowed=services.defaults.allowed,
        warehouse=services.defaults.warehouse,
        lease_ms=60_000,
        services=services,
    )


def _maintain(node: DriverNode, at: MaintenancePosition) -> None:
    """Expire snapshots, and delete old metadata files, whose age is the machine's time in their names."""
    work, services = task_context(node), node.built.services
    round_ = MaintenanceRound(work, services, now_ms=services.store.time.now_ms())
    node.runner.run(round_.expire(0))
    later = MaintenanceRound(work, services, now_ms=_START_MS)
    node.runner.run(later.delete_metadata_files(at))
