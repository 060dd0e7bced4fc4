"""Operations on Lance tables: what each kind does to a table's files, in the name of its user.

May import the rooms below. Must not know any wire format. The server carries them out itself. An operation decides on
the table's state at that moment, so a version that has a tag by then is not removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from limnos.formats.maintenance.assessment import COMPACT, EXPIRE
from limnos.formats.maintenance.lance_tables import INDEXES, CleanUpPlan, LanceTableState, plan_clean_up
from limnos.model.entities import Node
from limnos.model.errors import CommitConflict, LimnosError, ServiceUnavailable, StorageFailed, UnsupportedOperation
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.services.lance.maintenance import (
    indexes_refresh,
    maintained_lance_table,
    table_compact,
    table_state,
    versions_clean_up,
)
from limnos.services.maintenance.acting import ActingRequest, acting_as
from limnos.services.maintenance.assessing import AssessmentRound
from limnos.services.maintenance.guards import pinned_snapshots
from limnos.services.maintenance.lance.assessing import LanceAssessment
from limnos.services.maintenance.operations import OPERATIONS, OperationPayload, operation_request, table_lease
from limnos.services.maintenance.policies import EffectivePolicy, assessment_rules, policies_load
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.table_formats import LANCE
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import operation_read
from limnos.store.objects.protection import protection_read
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.maintenance")
MAINTAIN_LANCE_TABLE: Final = "maintain-lance-table"
"""The kind of the task that carries out a request."""
LANCE_KINDS: Final = (INDEXES, COMPACT, EXPIRE)
"""The kinds of operations, in the order in which they are best carried out on one table."""
GC_ENABLED: Final = "gc.enabled"
_LEASE_MS: Final = 3_600_000


async def lance_request(ctx: Context, scope: RequestScope, *, path: Levels, kind: str) -> int:
    """Request an operation on a Lance table. Returns its id; that of the open operation if there is one.

    Raises NotFound, PermissionDenied, UnsupportedOperation.
    """
    refusal = None
    if kind not in LANCE_KINDS:
        others = ", ".join(LANCE_KINDS)
        refusal = f"Lance tables have no operation {kind}: use one of {others}. Files that no version names are deleted by the setting lance.debris_age_s"
    return await operation_request(
        ctx, scope, path=path, kind=kind, task=MAINTAIN_LANCE_TABLE, refusal=refusal, table_format=LANCE
    )


async def lance_operation_run(work: TaskContext, payload: OperationPayload) -> None:
    """Carry out an operation and end its row. Raises ServiceUnavailable, StorageFailed, after which it is tried again.

    A permanent error ends the operation as failed.
    """
    services = work.services
    if services is None:
        raise ServiceUnavailable("This node runs no services: another node runs the task")
    row = await services.gate.look_up(lambda: operation_read(payload.operation))
    if row is None or row.ended_at is not None:
        return
    if not await work.submit(lambda tx: table_lease(tx, payload, lease_ms=_LEASE_MS)):
        raise ServiceUnavailable("Another operation changes this table's files: this one follows it")
    state = "done"
    try:
        text = await work.await_with_lease(_carry_out(work, services, kind=row.kind, payload=payload))
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
        work, services, user=payload.user, table_id=payload.table_id, name=f"maintenance-{payload.operation}",
        trust=payload.trust, root_id=payload.root_id,
    ) as request:  # fmt: skip
        if request is None:
            return "the table was dropped"
        try:
            return await _result_of(request, kind=kind, table_id=payload.table_id)
        except CommitConflict as error:
            raise ServiceUnavailable(f"Another commit came first, and nothing was changed: {error.message}") from error


async def _result_of(request: ActingRequest, *, kind: str, table_id: int) -> str:
    """Change a table's files. Returns the result for people."""
    ctx, scope, levels = request
    if kind == COMPACT:
        compaction = await table_compact(ctx, scope, levels=levels)
        return f"{compaction.before} fragments became {compaction.after}"
    if kind == INDEXES:
        refresh = await indexes_refresh(ctx, scope, levels=levels)
        return f"{refresh.before - refresh.after} rows were added to indexes; {refresh.after} are missing"
    if kind != EXPIRE:
        raise UnsupportedOperation(f"Lance tables have no operation {kind}")
    node = await ctx.read(scope, lambda request_view: maintained_lance_table(request_view, levels).entity)
    blocked = await removal_refusal(ctx, node)
    if blocked is not None:
        return f"nothing is removed: {blocked}"
    chain = await AssessmentRound(ctx.services, tables_max=0).chain_of(table_id)
    policies = (await ctx.look_up(policies_load)).effective(chain)
    state = await table_state(ctx, scope, levels=levels)
    plan = await clean_up_plan(ctx, state, node_id=table_id, policies=policies)
    if not plan.removed:
        return f"removed no versions; {len(state.versions)} stay"
    done = await versions_clean_up(ctx, scope, levels=levels, versions=plan.removed)
    return f"removed {len(done.removed)} versions and {done.removed_bytes} bytes; {done.after} versions stay"


async def clean_up_plan(
    ctx: Context, state: LanceTableState, *, node_id: int, policies: Mapping[str, EffectivePolicy]
) -> CleanUpPlan:
    """Decide which versions of a table may be removed, with its policies and the pins of runs and scans."""
    now_ms = ctx.services.store.time.now_ms()
    pinned = await pinned_snapshots(ctx.services, node_id, now_ms=now_ms)
    return plan_clean_up(state, assessment_rules(policies), pinned=pinned, now_ms=now_ms)


async def removal_refusal(ctx: Context, node: Node) -> str | None:
    """Return why no version of a table is removed; None if versions may be."""
    if await ctx.look_up(lambda: protection_read(node.id)):
        return "the table is protected"
    properties = node.record.properties if isinstance(node.record, TableRecord) else {}
    if properties.get(GC_ENABLED, "").lower() == "false":
        return "gc.enabled is false"
    return None
