# SPDX-License-Identifier: Apache-2.0
"""No mutation bypasses the audit: mutations of callers use the context, which audits them; those of the server are
listed here.
"""

from __future__ import annotations

import ast

import pytest

from tests.house.one_pass import Look
from tests.house.tidy import SourceFile

SUBMITS = frozenset({"submit", "submit_held"})
OWN = {
    "app/bootstrap.py": "the first settings of a new store",
    "app/deliveries.py": "leases and positions of webhooks",
    "rooms/jobs/app/executor.py": "leases of jobs, and how they ended: whoever asked for one is told by its start",
    "app/node_beats.py": "signs of life of the node",
    "rooms/jobs/app/scheduled_pipelines.py": "tokens of jobs of schedules, whose start is told",
    "rooms/pipelines/services/schedule_starts.py": "starts and pauses of schedules: a change row tells each",
    "rooms/search/app/search_indexing.py": "the lease of the index of words",
    "app/server.py": "a task's state, for the log",
    "app/server_checks.py": "reads for a check, which changes nothing",
    "app/upkeep.py": "tasks, and what is deleted because it is old",
    "services/identity/users.py": "the end of a disabled user's sessions, which follows from the change that is told",
    "services/request/audit_lines.py": "the lines themselves",
    "services/request/context.py": "where the mutations of callers are told",
    "rooms/lance/services/table_creation.py": "marks of what a kill may leave, before the change that is told and after it",
    "services/storage/location_reconciliation.py": (
        "the register of places at a start and in rounds: rows that follow from what is stored"
    ),
    "services/request/idempotency_replay.py": "what a request with a key was answered",
    "services/iceberg/reports.py": "reports of clients, which change nothing",
    "rooms/maintenance/services/assessing.py": "what tables need, and what incremental readers have read: no object changes",
    "rooms/maintenance/services/lance/assessing.py": "what Lance tables need: no object changes",
    "rooms/maintenance/app/maintenance_process.py": "the token of the server's own executor, which leases operations alone",
    "rooms/maintenance/services/rewriting/pauses.py": "when waiting operations are due, and why: no object changes",
    "rooms/maintenance/services/rewriting/leases.py": (
        "leases of executors, and tokens for them: each commit under one is told"
    ),
    "rooms/maintenance/services/spans/queue.py": "operations that write files for restricted readers: no object changes",
    "rooms/maintenance/services/metadata_files.py": (
        "old metadata files that are deleted, with notes for the audit of its own"
    ),
    "rooms/search/services/indexing.py": "words of objects for searches: rows that follow from what is stored",
    "rooms/pipelines/services/runners.py": "that a run's process lives, and what its steps are at: its start and its end are told",
    "services/iceberg/restricted_reads.py": "files rewritten for restricted readers, which change nothing",
    "services/iceberg/snapshot_pins.py": "snapshots that plans need, which change nothing",
    "services/iceberg/scan_plans.py": "plans of scans under way, which change nothing",
    "rooms/sqlpp/services/definitions/dataset_tables.py": (
        "the drop of a dataset that a killed server left unfinished: a change row tells it"
    ),
    "rooms/sqlpp/services/execution/compaction_requests.py": "tasks that look after datasets",
    "rooms/sqlpp/services/locks/statement_locks.py": "locks of statements",
    "rooms/sqlpp/services/requests/running_requests.py": "requests under way, and results to be fetched",
    "rooms/sqlpp/services/requests/results.py": "as those",
    "services/request/task_context.py": "what tasks do",
}
"""Modules that submit mutations with the server's own permit, or bypass the context, with the kind of mutations."""


def goes_past(module: SourceFile) -> bool:
    """Return whether a module creates the server's own permit, or submits mutations to a store itself."""
    for node in module.nodes(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "upkeep_permit":
            return True
        of = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr in SUBMITS else None
        if (isinstance(of, ast.Attribute) and of.attr.endswith("store")) or (
            isinstance(of, ast.Name) and of.id == "store"
        ):
            return True
    return False


PAST = Look(goes_past, *(f"src/limnos/{room}" for room in ("access", "app", "http", "rooms", "services", "view")))


def test_modules_bypassing_audit_are_listed() -> None:
    """The modules that submit mutations to a store themselves are exactly those on the list."""
    assert sorted(path.removeprefix("src/limnos/") for path, past in PAST.results.items() if past) == sorted(OWN)


@pytest.mark.parametrize(
    "text",
    [
        "await ctx.services.store.submit(permit, run)",
        "await self._store.submit_held(permit, again)",
        "store.submit(permit, run)",
        "ctx.submit(upkeep_permit('x'), run)",
    ],
)
def test_module_submitting_mutations_is_detected(text: str) -> None:
    """A module that submits mutations is found for every way to reach a store."""
    assert goes_past(SourceFile("src/limnos/app/a.py", f"async def f():\n    {text}\n"))
