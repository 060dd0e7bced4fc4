# SPDX-License-Identifier: Apache-2.0
"""Background tasks of the room `maintenance`."""

from __future__ import annotations

from typing import Final

from limnos.app.task_kind import TaskKind, periodic_runner, result_runner
from limnos.rooms.maintenance.services.assessing import ASSESS_EVERY_S, ASSESS_TABLES, AssessmentPosition, assess_run
from limnos.rooms.maintenance.services.lance.assessing import LancePosition
from limnos.rooms.maintenance.services.lance.operations import MAINTAIN_LANCE_TABLE, lance_operation_run
from limnos.rooms.maintenance.services.lance.task import MAINTAIN_LANCE_EVERY_S, MAINTAIN_LANCE_TABLES, lance_run
from limnos.rooms.maintenance.services.operations import EXPIRE_SNAPSHOTS, OperationPayload, operation_run
from limnos.rooms.maintenance.services.orphans import task
from limnos.rooms.maintenance.services.task import LEASE_MS as MAINTAIN_LEASE_MS
from limnos.rooms.maintenance.services.task import MAINTAIN_EVERY_S, MAINTAIN_TABLES, MaintenancePosition, maintain_run

KINDS: Final = (
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
)
