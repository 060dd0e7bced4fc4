"""Which kinds of tasks there are: what each is told, who does it, how often it is tried, how long a worker may be silent.

May import the rooms below. The one place to declare a kind; whoever runs tasks knows none by name. A task is done beside
requests, on some node, at least once: a runner must bear to be ended anywhere and begun again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from limnos.model.errors import StorageFailed, Unavailable
from limnos.services.activity.audit_exports import (
    EVERY_S as EXPORT_AUDIT_EVERY_S,
)
from limnos.services.activity.audit_exports import (
    EXPORT_AUDIT,
    EXPORT_AUDIT_DAYS,
    AuditDays,
    AuditExport,
    days_run,
    export_run,
)
from limnos.services.catalog.fileset_purges import FILESET_PURGE, FilesetPurgePayload, fileset_purge_run
from limnos.services.exchange.importing import PRUNE_IMPORT, PruneImport, import_prune, imports_prune
from limnos.services.iceberg.restricted_files import PRUNE_RESTRICTED, PRUNE_RESTRICTED_EVERY_S, restricted_prune
from limnos.services.lance.purges import LancePurgePayload, lance_purge_run
from limnos.services.lance.tables import LANCE_PURGE
from limnos.services.sqlpp.compacting import LEASE_MS as COMPACT_LEASE_MS
from limnos.services.sqlpp.compacting import compact_run
from limnos.services.sqlpp.compaction import COMPACT, TEND, CompactPayload
from limnos.services.sqlpp.results import EXPIRED_AT_ONCE
from limnos.services.storage.purges import PURGE, PurgePayload, purge_run
from limnos.services.upkeep.janitors import EVERY_S, JANITOR, JanitorPayload, janitor_run
from limnos.services.upkeep.released_places import FREE_PLACES, FREE_PLACES_EVERY_S, ReleasedPlaces, released_free
from limnos.store.idempotency import PRUNED_AT_ONCE
from limnos.store.pipelines import declarations_prune
from limnos.store.scan_plans import EXPIRED_AT_ONCE as PLANS_AT_ONCE
from limnos.store.snapshot_pins import EXPIRED_AT_ONCE as PINS_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.services.storage.work import Work

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
"""Runs that one transaction deletes, with their steps and findings."""
TRIES_PASSING: Final = 100
"""How often a task is tried whose storage or database does not answer: with growing pauses, for about four days."""


class Outcome(NamedTuple):
    """What a task came to: what is worth keeping of it, and, for one that is done again and again, what it is told next."""

    result: str | None = None
    payload: str | None = None


Runner = Callable[["Work", str], Awaitable[Outcome]]


class TaskKind(NamedTuple):
    """One kind of task. `every_s` is set for what is done again and again, once for the whole store, told `first` at first.

    What `takes_long` is done beside the others, one at a time on a node.
    """

    name: str
    runner: Runner
    tries: int
    lease_ms: int = 300_000
    every_s: float | None = None
    first: str = "{}"
    takes_long: bool = False

    def is_lost(self, error: Exception, attempts: int) -> bool:
        """Say whether a task that has failed so often is given up."""
        passes = isinstance(error, (Unavailable, StorageFailed, InterruptedError))
        return self.every_s is None and attempts >= (TRIES_PASSING if passes else self.tries)


def told(payload: type[P], run: Callable[[Work, P], Awaitable[Outcome]]) -> Runner:
    """Make a runner of a function that takes the payload's own type."""

    def runner(work: Work, text: str) -> Awaitable[Outcome]:
        return run(work, msgspec.json.decode(text, type=payload))

    return runner


async def _purge(work: Work, payload: PurgePayload) -> Outcome:
    return Outcome(await purge_run(work, payload))


async def _purge_lance(work: Work, payload: LancePurgePayload) -> Outcome:
    return Outcome(await lance_purge_run(work, payload))


async def _clean(work: Work, payload: JanitorPayload) -> Outcome:
    told_next, gone = await janitor_run(work, payload)
    return Outcome(f"took away {len(gone)}", msgspec.json.encode(told_next).decode())


async def _free_places(work: Work, payload: ReleasedPlaces) -> Outcome:
    told_next, result = await released_free(work, payload)
    return Outcome(result, msgspec.json.encode(told_next).decode())


async def _export_audit(work: Work, payload: AuditExport) -> Outcome:
    return Outcome(await export_run(work, payload))


async def _export_audit_days(work: Work, payload: AuditDays) -> Outcome:
    told_next, result = await days_run(work, payload)
    return Outcome(result, msgspec.json.encode(told_next).decode())


async def _purge_fileset(work: Work, payload: FilesetPurgePayload) -> Outcome:
    return Outcome(await fileset_purge_run(work, payload))


async def _compact(work: Work, payload: CompactPayload) -> Outcome:
    return Outcome(await compact_run(work, payload))


class NoPayload(msgspec.Struct):
    """A task that is told nothing."""


async def _prune_outcomes(work: Work, payload: NoPayload) -> Outcome:
    del payload
    while await work.submit(lambda tx: tx.outcomes.prune()) == PRUNED_AT_ONCE:
        pass
    return Outcome()


async def _prune_runs(work: Work, payload: NoPayload) -> Outcome:
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
    return Outcome()


async def _prune_results(work: Work, payload: NoPayload) -> Outcome:
    del payload
    while await work.submit(lambda tx: tx.requests.expire(EXPIRED_AT_ONCE)) == EXPIRED_AT_ONCE:
        pass
    while await work.submit(lambda tx: tx.scan_plans.expire()) == PLANS_AT_ONCE:
        pass
    while await work.submit(lambda tx: tx.snapshot_pins.expire()) == PINS_AT_ONCE:
        pass
    return Outcome()


async def _prune_restricted(work: Work, payload: NoPayload) -> Outcome:
    del payload
    return Outcome(f"took away {await restricted_prune(work, now_ms=time.time_ns() // 1_000_000)}")


async def _prune_import(work: Work, payload: PruneImport) -> Outcome:
    await import_prune(work, payload)
    return Outcome()


async def _prune_imports(work: Work, payload: NoPayload) -> Outcome:
    del payload
    await imports_prune(work)
    return Outcome()


KINDS: Final[Mapping[str, TaskKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            TaskKind(PURGE, told(PurgePayload, _purge), tries=5),
            TaskKind(LANCE_PURGE, told(LancePurgePayload, _purge_lance), tries=5),
            TaskKind(FILESET_PURGE, told(FilesetPurgePayload, _purge_fileset), tries=5),
            TaskKind(COMPACT, told(CompactPayload, _compact), tries=5, lease_ms=COMPACT_LEASE_MS, takes_long=True),
            TaskKind(TEND, told(CompactPayload, _compact), tries=5, lease_ms=COMPACT_LEASE_MS, takes_long=True),
            TaskKind(PRUNE_OUTCOMES, told(NoPayload, _prune_outcomes), tries=5, every_s=PRUNE_EVERY_S),
            TaskKind(PRUNE_RUNS, told(NoPayload, _prune_runs), tries=5, every_s=PRUNE_RUNS_EVERY_S),
            TaskKind(PRUNE_RESULTS, told(NoPayload, _prune_results), tries=5, every_s=PRUNE_RESULTS_EVERY_S),
            TaskKind(PRUNE_RESTRICTED, told(NoPayload, _prune_restricted), tries=5, every_s=PRUNE_RESTRICTED_EVERY_S),
            TaskKind(PRUNE_IMPORT, told(PruneImport, _prune_import), tries=5),
            TaskKind(PRUNE_IMPORTS, told(NoPayload, _prune_imports), tries=5, every_s=PRUNE_IMPORTS_EVERY_S),
            TaskKind(EXPORT_AUDIT, told(AuditExport, _export_audit), tries=5),
            TaskKind(EXPORT_AUDIT_DAYS, told(AuditDays, _export_audit_days), tries=5, every_s=EXPORT_AUDIT_EVERY_S),
            TaskKind(FREE_PLACES, told(ReleasedPlaces, _free_places), tries=5, every_s=FREE_PLACES_EVERY_S),
            TaskKind(JANITOR, told(JanitorPayload, _clean), tries=5, every_s=EVERY_S),
        )
    }
)
"""Every kind, by its name in the store."""
LONG: Final = tuple(kind.name for kind in KINDS.values() if kind.takes_long)
"""The kinds that are done beside the others."""
