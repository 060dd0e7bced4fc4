# SPDX-License-Identifier: Apache-2.0
"""Maintenance of the files of Lance tables: reads the state of a table, and executes operations on its files.

Must not know the schedule of operations. An operation decides on the table's state at that moment, so a version that
has a tag by then is not removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from limnos.formats.gravitino.policies import SNAPSHOT_EXPIRATION
from limnos.formats.lance_table_state import LanceTableState
from limnos.model.entities import Node
from limnos.model.errors import NotFound, UnsupportedOperation
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.rooms.maintenance.formats.assessment import COMPACT, EXPIRE
from limnos.rooms.maintenance.formats.lance_tables import INDEXES, CleanUpPlan, plan_clean_up
from limnos.rooms.maintenance.services.acting import ActingRequest
from limnos.rooms.maintenance.services.assessing import AssessmentRound
from limnos.rooms.maintenance.services.guards import pinned_snapshots
from limnos.rooms.maintenance.services.policies import (
    EffectivePolicy,
    PolicyTerms,
    assessment_rules,
    policies_load,
    require_terms,
)
from limnos.rooms.maintenance.services.table_storage import table_place
from limnos.services.lance.maintained_tables import LANCE_MAINTENANCE, MaintainedLanceTable, maintained_lance_table
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.store.objects.documents import document_read
from limnos.store.objects.node_reads import node_read
from limnos.store.objects.protection import protection_read

GC_ENABLED: Final = "gc.enabled"


async def current_state(ctx: Context, scope: RequestScope, *, levels: Levels) -> LanceTableState:
    """Read the state of a table, for a caller who may maintain it. Raises as `LanceMaintenance.table_state`."""
    return await LANCE_MAINTENANCE.of(ctx.services).table_state(ctx, scope, levels=levels)


async def stored_state(services: NodeServices, node_id: int) -> LanceTableState | None:
    """Read the state of a table without a caller; None for a table that no longer exists, has no data, or whose
    location conflicts with another object's. Raises StorageFailed.
    """
    look_up = services.gate.look_up
    document, node = await look_up(lambda: document_read(node_id)), await look_up(lambda: node_read(node_id))
    place = None if document is None else await table_place(services, document)
    if document is None or node is None or place is None:
        return None
    try:
        table = MaintainedLanceTable(node, document, place)
        return await LANCE_MAINTENANCE.of(services).stored_table_state(services, table)
    except NotFound:
        return None


async def change_table(request: ActingRequest, *, kind: str, table_id: int, planned: PolicyTerms | None) -> str:
    """Execute an operation of a kind on a table's files. Returns the result as human-readable text.

    Raises as `LanceMaintenance.table_compact`, and UnsupportedOperation for a kind that Lance tables do not
    have, PermissionDenied for an expiry whose policy is not the `planned` one.
    """
    ctx, scope, levels = request
    if kind == COMPACT:
        compaction = await LANCE_MAINTENANCE.of(ctx.services).table_compact(ctx, scope, levels=levels)
        return f"{compaction.before} fragments became {compaction.after}"
    if kind == INDEXES:
        refresh = await LANCE_MAINTENANCE.of(ctx.services).indexes_refresh(ctx, scope, levels=levels)
        trained = f"; trained again: {', '.join(refresh.trained)}" if refresh.trained else ""
        return f"{refresh.before - refresh.after} rows were added to indexes; {refresh.after} are missing{trained}"
    if kind != EXPIRE:
        raise UnsupportedOperation(f"Lance tables have no operation {kind}")
    node = await ctx.read(scope, lambda request_view: maintained_lance_table(request_view, levels).entity)
    blocked = await removal_refusal(ctx, node)
    if blocked is not None:
        return f"nothing is removed: {blocked}"
    chain = await AssessmentRound(ctx.services, tables_max=0).chain_of(table_id)
    policies = (await ctx.look_up(policies_load)).effective(chain)
    require_terms(planned, policies.get(SNAPSHOT_EXPIRATION))
    state = await current_state(ctx, scope, levels=levels)
    plan = await clean_up_plan(ctx, state, node_id=table_id, policies=policies)
    if not plan.removed:
        return f"removed no versions; {len(state.versions)} stay"
    change_result = await LANCE_MAINTENANCE.of(ctx.services).versions_clean_up(
        ctx, scope, levels=levels, versions=plan.removed
    )
    removed_count, size = len(change_result.removed), change_result.removed_bytes
    return f"removed {removed_count} versions and {size} bytes; {change_result.after} versions stay"


async def clean_up_plan(
    ctx: Context, state: LanceTableState, *, node_id: int, policies: Mapping[str, EffectivePolicy]
) -> CleanUpPlan:
    """Choose the versions of a table to remove, by its policies and the pins of runs and scans."""
    now_ms = ctx.services.store.time.now_ms()
    pinned = await pinned_snapshots(ctx.services, node_id, now_ms=now_ms)
    return plan_clean_up(state, assessment_rules(policies), pinned=pinned, now_ms=now_ms)


async def removal_refusal(ctx: Context, node: Node) -> str | None:
    """Return the reason why no version of a table may be removed; None if versions may be removed."""
    if await ctx.look_up(lambda: protection_read(node.id)):
        return "the table is protected"
    properties = node.record.properties if isinstance(node.record, TableRecord) else {}
    if properties.get(GC_ENABLED, "").lower() == "false":
        return "gc.enabled is false"
    return None
