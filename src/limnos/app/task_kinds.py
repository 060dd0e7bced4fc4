# SPDX-License-Identifier: Apache-2.0
"""Task kinds: those of the kernel, and those that the manifests of rooms name.

The code that runs tasks names none of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, cast

from limnos.app.task_kind import NoPayload, TaskKind, TaskOutcome, periodic_runner, result_runner, typed_runner
from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import Manifest, load
from limnos.services.activity.audit_exports import EVERY_S as EXPORT_AUDIT_EVERY_S
from limnos.services.activity.audit_exports import (
    EXPORT_AUDIT,
    EXPORT_AUDIT_DAYS,
    AuditDays,
    AuditExport,
    days_run,
    export_run,
)
from limnos.services.iceberg.restricted_files import PRUNE_RESTRICTED, PRUNE_RESTRICTED_EVERY_S, restricted_prune
from limnos.services.request.task_context import TaskContext
from limnos.services.storage.fileset_purges import FILESET_PURGE, FilesetPurgePayload, fileset_purge_run
from limnos.services.storage.purges import PURGE, PurgePayload, purge_run
from limnos.services.upkeep.janitors import EVERY_S, JANITOR, JanitorPayload, janitor_run
from limnos.services.upkeep.released_locations import FREE_PLACES, FREE_PLACES_EVERY_S, ReleasedLocations, released_free
from limnos.store.activity.scan_plans import EXPIRED_AT_ONCE as PLANS_AT_ONCE
from limnos.store.activity.sqlpp_requests import EXPIRED_AT_ONCE
from limnos.store.idempotency import PRUNED_AT_ONCE
from limnos.store.objects.snapshot_pins import EXPIRED_AT_ONCE as PINS_AT_ONCE

PRUNE_OUTCOMES: Final = "prune-outcomes"
PRUNE_EVERY_S: Final = 600.0
PRUNE_RESULTS: Final = "prune-results"
PRUNE_RESULTS_EVERY_S: Final = 300.0


async def _clean(work: TaskContext, payload: JanitorPayload) -> tuple[JanitorPayload, str]:
    next_payload, names = await janitor_run(work, payload)
    return next_payload, f"removed {len(names)}"


async def _prune_outcomes(work: TaskContext, payload: NoPayload) -> TaskOutcome:
    del payload
    while await work.submit(lambda tx: tx.outcomes.prune()) == PRUNED_AT_ONCE:
        pass
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


KERNEL_KINDS: Final = (
    TaskKind(name=PURGE, runner=result_runner(PurgePayload, purge_run), tries=5),
    TaskKind(name=FILESET_PURGE, runner=result_runner(FilesetPurgePayload, fileset_purge_run), tries=5),
    TaskKind(name=PRUNE_OUTCOMES, runner=typed_runner(NoPayload, _prune_outcomes), tries=5, every_s=PRUNE_EVERY_S),
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
    TaskKind(name=EXPORT_AUDIT, runner=result_runner(AuditExport, export_run), tries=5),
    TaskKind(
        name=EXPORT_AUDIT_DAYS,
        runner=periodic_runner(AuditDays, days_run),
        tries=5,
        every_s=EXPORT_AUDIT_EVERY_S,
    ),
    TaskKind(
        name=FREE_PLACES,
        runner=periodic_runner(ReleasedLocations, released_free),
        tries=5,
        every_s=FREE_PLACES_EVERY_S,
    ),
    TaskKind(name=JANITOR, runner=periodic_runner(JanitorPayload, _clean), tries=5, every_s=EVERY_S),
)


def kinds_of(rooms: Iterable[Manifest]) -> Mapping[str, TaskKind]:
    """Return the kinds of tasks of the kernel and of rooms, by their names in the store."""
    added_kinds = (
        each for room in rooms for entry in room.tasks for each in cast("tuple[TaskKind, ...]", load(entry.kinds))
    )
    return MappingProxyType({kind.name: kind for kind in (*KERNEL_KINDS, *added_kinds)})


def names_of(rooms: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the names of the kinds of rooms, without importing them."""
    return tuple(name for room in rooms for entry in room.tasks for name in entry.names)


KINDS: Final = kinds_of(installed_rooms().manifests)
"""The kinds of the kernel and of all installed rooms, by their names in the store."""
