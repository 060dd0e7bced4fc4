# SPDX-License-Identifier: Apache-2.0
"""Operations on Lance tables: requests for them, and the task that executes an operation on behalf of its user.

Must not know any wire format. The server's own worker processes execute them.
"""

from __future__ import annotations

from typing import Final

from limnos.model.errors import CommitConflict, LimnosError, ServiceUnavailable, StorageFailed
from limnos.names.path import Levels
from limnos.rooms.maintenance.formats.assessment import COMPACT, EXPIRE
from limnos.rooms.maintenance.formats.lance_tables import INDEXES
from limnos.rooms.maintenance.services.acting import acting_as
from limnos.rooms.maintenance.services.lance.assessing import LanceAssessment
from limnos.rooms.maintenance.services.lance.tables import change_table
from limnos.rooms.maintenance.services.operations import OperationPayload, operation_request
from limnos.rooms.maintenance.services.table_leases import OPERATIONS, await_with_table, lease_for_task
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.table_formats import LANCE
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import operation_read
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.maintenance")
MAINTAIN_LANCE_TABLE: Final = "maintain-lance-table"
"""The kind of the task that executes a requested operation."""
LANCE_KINDS: Final = (INDEXES, COMPACT, EXPIRE)
"""The kinds of operations, in the order in which they are executed on one table."""


async def lance_request(ctx: Context, scope: RequestScope, *, path: Levels, kind: str) -> int:
    """Request an operation on a Lance table. Returns its id; that of the open operation if there is one.

    Raises as `operation_request`; UnsupportedOperation also for an operation that Lance tables do not have.
    """
    refusal = None
    if kind not in LANCE_KINDS:
        others = ", ".join(LANCE_KINDS)
        refusal = (
            f"Lance tables have no operation {kind}: use one of {others}. Orphan files are deleted at the age that the"
            " setting lance.debris_age_s states"
        )
    return await operation_request(
        ctx, scope, path=path, kind=kind, task=MAINTAIN_LANCE_TABLE, refusal=refusal, table_format=LANCE
    )


async def lance_operation_run(work: TaskContext, payload: OperationPayload) -> None:
    """Execute an operation and end its row. Raises ServiceUnavailable, StorageFailed, after which the task is retried.

    A permanent error ends the operation as failed.
    """
    services = work.services
    if services is None:
        raise ServiceUnavailable("This node runs no services: another node runs the task")
    row = await services.gate.look_up(lambda: operation_read(payload.operation))
    if row is None or row.ended_at is not None:
        return
    if not await lease_for_task(work, operation=payload.operation, table_id=payload.table_id):
        raise ServiceUnavailable("Another operation changes this table's files: this one follows it")
    state = "done"
    try:
        carrying_out = _carry_out(work, services, kind=row.kind, payload=payload)
        text = await await_with_table(work, carrying_out, operation=payload.operation)
    except (ServiceUnavailable, StorageFailed):
        raise
    except LimnosError as error:
        log.warning("a Lance table was not maintained", table=payload.table_id, kind=row.kind, error=error.message)
        state, text = "failed", error.message
    finally:
        await work.submit(lambda tx: tx.rewrites.end(payload.operation))
    OPERATIONS[row.kind, state] += 1
    await work.submit(lambda tx: tx.maintenance.end(payload.operation, state=state, result=text[:2000]))
    await work.await_with_lease(LanceAssessment(services).assess_now(payload.table_id))


async def _carry_out(work: TaskContext, services: NodeServices, *, kind: str, payload: OperationPayload) -> str:
    async with acting_as(
        work,
        services,
        user=payload.user,
        table_id=payload.table_id,
        name=f"maintenance-{payload.operation}",
        trust=payload.trust,
        root_id=payload.root_id,
        second_user_id=payload.second_user_id,
    ) as request:
        if request is None:
            return "the table was dropped"
        try:
            return await change_table(request, kind=kind, table_id=payload.table_id, planned=payload.policy)
        except CommitConflict as error:
            raise ServiceUnavailable(f"Another commit came first, and nothing was changed: {error.message}") from error
