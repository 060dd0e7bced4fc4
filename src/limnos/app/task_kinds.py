# SPDX-License-Identifier: Apache-2.0
"""Task kinds: for each kind of task its payload, its function, its maximum number of attempts, and its lease.

Kinds are declared only here; the code that runs tasks names none of them. A task runs at least once, on any node,
concurrently with requests. Its function must tolerate being killed at any point and run again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

import msgspec

from limnos.model.errors import ServiceUnavailable, StorageFailed
from limnos.services.activity.audit_exports import EVERY_S as EXPORT_AUDIT_EVERY_S
from limnos.services.activity.audit_exports import (
    EXPORT_AUDIT,
    EXPORT_AUDIT_DAYS,
    AuditDays,
    AuditExport,
    days_run,
    export_run,
)
from limnos.services.exchange.metalake_import import PRUNE_IMPORT, PruneImport, import_prune, imports_prune
from limnos.services.iceberg.restricted_files import PRUNE_RESTRICTED, PRUNE_RESTRICTED_EVERY_S, restricted_prune
from limnos.services.lance.purges import LANCE_PURGE, LancePurgePayload, lance_purge_run
from limnos.services.maintenance.assessing import ASSESS_EVERY_S, ASSESS_TABLES, AssessmentPosition, assess_run
from limnos.services.maintenance.lance.assessing import LancePosition
from limnos.services.maintenance.lance.operations import MAINTAIN_LANCE_TABLE, lance_operation_run
from limnos.services.maintenance.lance.task import MAINTAIN_LANCE_EVERY_S, MAINTAIN_LANCE_TABLES, lance_run
from limnos.services.maintenance.operations import EXPIRE_SNAPSHOTS, OperationPayload, operation_run
from limnos.services.maintenance.orphans import task
from limnos.services.maintenance.task import LEASE_MS as MAINTAIN_LEASE_MS
from limnos.services.maintenance.task import MAINTAIN_EVERY_S, MAINTAIN_TABLES, MaintenancePosition, maintain_run
from limnos.services.request.task_context import TaskContext
from limnos.services.sqlpp.definitions.dataset_tables import (
    DROP_UNFINISHED,
    UnfinishedDataset,
    unfinished_drop_run,
)
from limnos.services.sqlpp.execution.compaction_requests import CLEAN_UP, COMPACT, CompactPayload
from limnos.services.sqlpp.execution.compaction_task import LEASE_MS as COMPACT_LEASE_MS
from limnos.services.sqlpp.execution.compaction_task import compact_run
from limnos.services.sqlpp.requests.results import EXPIRED_AT_ONCE
from limnos.services.storage.fileset_purges import FILESET_PURGE, FilesetPurgePayload, fileset_purge_run
from limnos.services.storage.purges import PURGE, PurgePayload, purge_run
from limnos.services.upkeep.janitors import EVERY_S, JANITOR, JanitorPayload, janitor_run
from limnos.services.upkeep.released_locations import FREE_PLACES, FREE_PLACES_EVERY_S, ReleasedLocations, released_free
from limnos.store.activity.pipelines import declarations_prune
from limnos.store.activity.scan_plans import EXPIRED_AT_ONCE as PLANS_AT_ONCE
from limnos.store.idempotency import PRUNED_AT_ONCE
from limnos.store.objects.snapshot_pins import EXPIRED_AT_ONCE as PINS_AT_ONCE

P = TypeVar("P")
PRUNE_OUTCOMES: Final = "prune-outcomes"
PRUNE_EVERY_S: Final = 600.0
PRUNE_RUNS: Final = "prune-runs"
PRUNE_RUNS_EVERY_S: Final = 3600.0
PRUNE_IMPORTS: Final = "prune-imports"
PRUNE_IMPORTS_EVERY_S: Final = 3600.0
PRUNE_RESULTS: Final = "prune-results"
PRUNE_RESULTS_EVERY_S: Final = 300.0
RUNS_AT_ONCE: Final = 100
"""The number of runs that one transaction deletes, with their steps and findings."""
TRIES_PASSING: Final = 100
"""The number of attempts while storage or database do not answer: with exponential backoff, for about four days."""


class TaskOutcome(NamedTuple):
    """The outcome of a successful task: a result to store, and the next payload of a periodic task."""

    result: str | None = None
    payload: str | None = None


TaskFunction = Callable[["TaskContext", str], Awaitable[TaskOutcome]]


class TaskKind(NamedTuple):
    """A kind of background task, with its function and its schedule.

    A periodic task has `every_s`, runs once for the whole store, and begins with the payload `first`. A task that
    `takes_long` runs in a separate loop, one at a time on a node.
    """

    name: str
    runner: TaskFunction
    tries: int
    lease_ms: int = 300_000
    every_s: float | None = None
    first: str = "{}"
    takes_long: bool = False

    def is_lost(self, error: Exception, attempts: int) -> bool:
        """Return whether a task has failed permanently, after `attempts` attempts of which the last raised `error`."""
        passes = isinstance(error, (ServiceUnavailable, StorageFailed, InterruptedError))
        return self.every_s is None and attempts >= (TRIES_PASSING if passes else self.tries)


def typed_runner(payload: type[P], run: Callable[[TaskContext, P], Awaitable[TaskOutcome]]) -> TaskFunction:
    """Return a task function that decodes the payload and passes it to `run`."""

    def runner(work: TaskContext, text: str) -> Awaitable[TaskOutcome]:
        return run(work, msgspec.json.decode(text, type=payload))

    return runner


def result_runner(payload: type[P], run: Callable[[TaskContext, P], Awaitable[str | None]]) -> TaskFunction:
    """Return a task function that stores the return value of `run` as the task's result."""

    async def runner(work: TaskContext, payload: P) -> TaskOutcome:
        return TaskOutcome(await run(work, payload))

    return typed_runner(payload, runner)


def periodic_runner(payload: type[P], run: Callable[[TaskContext, P], Awaitable[tuple[P, str | None]]]) -> TaskFunction:
    """Return a task function that stores the next payload and the result that `run` returns."""

    async def runner(work: TaskContext, payload: P) -> TaskOutcome:
        next_payload, result = await run(work, payload)
        return TaskOutcome(result, msgspec.json.encode(next_payload).decode())

    return typed_runner(payload, runner)


async def _clean(work: TaskContext, payload: JanitorPayload) -> tuple[JanitorPayload, str]:
    next_payload, names = await janitor_run(work, payload)
    return next_payload, f"removed {len(names)}"


class NoPayload(msgspec.Struct):
    """The payload of tasks without parameters."""


async def _prune_outcomes(work: TaskContext, payload: NoPayload) -> TaskOutcome:
    del payload
    while await work.submit(lambda tx: tx.outcomes.prune()) == PRUNED_AT_ONCE:
        pass
    return TaskOutcome()


async def _prune_runs(work: TaskContext, payload: NoPayload) -> TaskOutcome:
    del payload
    if work.keep_runs_ms:
        while (
            await work.submit(lambda tx: tx.runs.prune(keep_ms=work.keep_runs_ms, limit=RUNS_AT_ONCE)) == RUNS_AT_ONCE
        ):
            pass
        while (
            await work.submit(lambda tx: tx.template_jobs.prune(keep_ms=work.keep_runs_ms, limit=RUNS_AT_ONCE))
            == RUNS_AT_ONCE
        ):
            pass
        await work.submit(declarations_prune)
    return TaskOutcome()


async def _prune_results(work: TaskContext, payload: NoPayload) -> TaskOutcome:
    del payload
    while await work.submit(lambda tx: tx.requests.expire(EXPIRED_AT_ONCE)) == EXPIRED_AT_ONCE:
        pass
    while await work.submit(lambda tx: tx.scan_plans.expire()) == PLANS_AT_ONCE:
        pass
    while await work.submit(lambda tx: tx.snapshot_pins.expire()) == PINS_AT_ONCE:
        pass
    return TaskOutcome()


async def _prune_restricted(work: TaskContext, payload: NoPayload) -> TaskOutcome:
    del payload
    return TaskOutcome(f"removed {await restricted_prune(work, now_ms=time.time_ns() // 1_000_000)}")


async def _prune_imports(work: TaskContext, payload: NoPayload) -> TaskOutcome:
    del payload
    await imports_prune(work)
    return TaskOutcome()


KINDS: Final[Mapping[str, TaskKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            TaskKind(name=PURGE, runner=result_runner(PurgePayload, purge_run), tries=5),
            TaskKind(name=LANCE_PURGE, runner=result_runner(LancePurgePayload, lance_purge_run), tries=5),
            TaskKind(name=FILESET_PURGE, runner=result_runner(FilesetPurgePayload, fileset_purge_run), tries=5),
            TaskKind(
                name=COMPACT,
                runner=result_runner(CompactPayload, compact_run),
                tries=5,
                lease_ms=COMPACT_LEASE_MS,
                takes_long=True,
            ),
            TaskKind(
                name=CLEAN_UP,
                runner=result_runner(CompactPayload, compact_run),
                tries=5,
                lease_ms=COMPACT_LEASE_MS,
                takes_long=True,
            ),
            TaskKind(name=DROP_UNFINISHED, runner=result_runner(UnfinishedDataset, unfinished_drop_run), tries=5),
            TaskKind(
                name=PRUNE_OUTCOMES, runner=typed_runner(NoPayload, _prune_outcomes), tries=5, every_s=PRUNE_EVERY_S
            ),
            TaskKind(name=PRUNE_RUNS, runner=typed_runner(NoPayload, _prune_runs), tries=5, every_s=PRUNE_RUNS_EVERY_S),
            TaskKind(
                name=PRUNE_RESULTS,
                runner=typed_runner(NoPayload, _prune_results),
                tries=5,
                every_s=PRUNE_RESULTS_EVERY_S,
            ),
            TaskKind(
                name=PRUNE_RESTRICTED,
                runner=typed_runner(NoPayload, _prune_restricted),
                tries=5,
                every_s=PRUNE_RESTRICTED_EVERY_S,
            ),
            TaskKind(name=PRUNE_IMPORT, runner=result_runner(PruneImport, import_prune), tries=5),
            TaskKind(
                name=PRUNE_IMPORTS,
                runner=typed_runner(NoPayload, _prune_imports),
                tries=5,
                every_s=PRUNE_IMPORTS_EVERY_S,
            ),
            TaskKind(name=EXPORT_AUDIT, runner=result_runner(AuditExport, export_run), tries=5),
            TaskKind(
                name=EXPORT_AUDIT_DAYS,
                runner=periodic_runner(AuditDays, days_run),
                tries=5,
                every_s=EXPORT_AUDIT_EVERY_S,
            ),
            TaskKind(
                name=ASSESS_TABLES,
                runner=periodic_runner(AssessmentPosition, assess_run),
                tries=5,
                every_s=ASSESS_EVERY_S,
            ),
            TaskKind(
                name=EXPIRE_SNAPSHOTS,
                runner=result_runner(OperationPayload, operation_run),
                tries=5,
                lease_ms=MAINTAIN_LEASE_MS,
            ),
            TaskKind(
                name=MAINTAIN_TABLES,
                runner=periodic_runner(MaintenancePosition, maintain_run),
                tries=5,
                lease_ms=MAINTAIN_LEASE_MS,
                every_s=MAINTAIN_EVERY_S,
                takes_long=True,
            ),
            TaskKind(
                name=MAINTAIN_LANCE_TABLE,
                runner=result_runner(OperationPayload, lance_operation_run),
                tries=5,
                lease_ms=MAINTAIN_LEASE_MS,
                takes_long=True,
            ),
            TaskKind(
                name=MAINTAIN_LANCE_TABLES,
                runner=periodic_runner(LancePosition, lance_run),
                tries=5,
                lease_ms=MAINTAIN_LEASE_MS,
                every_s=MAINTAIN_LANCE_EVERY_S,
                takes_long=True,
            ),
            TaskKind(
                name=task.CHECK_ORPHANS,
                runner=result_runner(OperationPayload, task.orphans_run),
                tries=5,
                takes_long=True,
            ),
            TaskKind(
                name=task.REMOVE_ORPHANS,
                runner=periodic_runner(task.OrphanPosition, task.remove_run),
                tries=5,
                every_s=task.REMOVE_ORPHANS_EVERY_S,
                takes_long=True,
            ),
            TaskKind(
                name=FREE_PLACES,
                runner=periodic_runner(ReleasedLocations, released_free),
                tries=5,
                every_s=FREE_PLACES_EVERY_S,
            ),
            TaskKind(name=JANITOR, runner=periodic_runner(JanitorPayload, _clean), tries=5, every_s=EVERY_S),
        )
    }
)
"""Every kind of task, by its name in the store."""
LONG: Final = tuple(kind.name for kind in KINDS.values() if kind.takes_long)
"""The kinds of tasks that run in the separate loop for long tasks."""
