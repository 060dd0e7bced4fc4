# SPDX-License-Identifier: Apache-2.0
"""Scan plans: begin a plan, return it or its tasks, cancel it.

Must not know any wire format. A plan whose first response is complete is not stored. For any other plan the store has a
row with its scan and, once computed, the number of its tasks. So any node can return the plan, and compute it again. A
caller who may no longer read the table cannot load an older plan either. Decision record 0092.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Final, NamedTuple

import msgspec

from limnos.formats.scans.request import ScanRequest, ScanScope
from limnos.model.errors import NotFound
from limnos.model.permits import upkeep_permit
from limnos.services.iceberg.restricted_reads import directory_leave
from limnos.services.iceberg.running_plans import RUNNING_PLANS
from limnos.services.iceberg.scans import ScanTarget, ScanTasks, TableScan, scan_of
from limnos.services.iceberg.snapshot_pins import PLAN_PINS, snapshots_of_scan
from limnos.services.request.context import Context
from limnos.store.activity.scan_plans import ScanPlan, plan_of, plan_query
from limnos.store.tx import Tx

_PERMIT: Final = upkeep_permit("limnos")
_ID_LENGTH: Final = 32
_COMPLETE_PREFIX: Final = "told-"
"""The prefix of ids of plans that were complete in their first response.

Iceberg's Java library cancels every plan after reading it; plans with this prefix have no row.
"""


class ScanPlanView(NamedTuple):
    """The state of a plan: complete in `scan_tasks`, or as `tasks` to fetch one by one.

    Without both it is still running or was cancelled.
    """

    plan_id: str
    scan_tasks: ScanTasks | None = None
    tasks: tuple[str, ...] = ()
    is_cancelled: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the computation of the plan has finished."""
        return self.scan_tasks is not None or bool(self.tasks)


class _StoredPlan(msgspec.Struct, frozen=True):
    aim: ScanScope
    asked: ScanRequest


class _PlanResult(NamedTuple):
    """The result of computing a plan: the complete plan, or its count of tasks."""

    scan_tasks: ScanTasks | None
    parts: int = 0


async def plan_begin(ctx: Context, scanned: ScanTarget) -> ScanPlanView:
    """Plan a scan, and wait for it up to the setting `scan_wait_s`; a longer plan is stored and continues.

    Raises BadRequest (unknown snapshots or columns), UnsupportedOperation, OutsideRoots, MissingFile, InvalidTable,
    ServiceUnavailable.
    """
    scan, plan_id = await scan_of(ctx, scanned), token_hex(_ID_LENGTH // 2)
    await PLAN_PINS.of(ctx.services).hold(ctx, scanned, aim=scan.aim, plan_id=plan_id)
    result = await _work_out(ctx, scan, plan_id=plan_id)
    if result is None or result.scan_tasks is None:
        plan = ScanPlan(
            plan_id,
            msgspec.json.encode(_StoredPlan(scan.aim, scanned.request)),
            "" if result is None else str(result.parts),
        )
        await _store_plan(ctx, scanned, plan=plan, snapshots=snapshots_of_scan(scan.aim))
        return _plan_view(plan_id, result)
    return _plan_view(whole_plan_id(plan_id), result)


def whole_plan_id(plan_id: str = "") -> str:
    """Return the id of a plan that was complete in its first response: a prefix and `plan_id`, by default random."""
    return f"{_COMPLETE_PREFIX}{plan_id or token_hex(_ID_LENGTH // 2)}"


async def plan_load(ctx: Context, scanned: ScanTarget, *, plan_id: str) -> ScanPlanView:
    """Return the state of an earlier plan.

    Raises NotFound (no such plan), PermissionDenied, and as `plan_begin` does.
    """
    plan = await _find(ctx, scanned, plan_id=plan_id)
    if plan is None:
        raise _no_plan()
    if plan.is_cancelled:
        return ScanPlanView(plan_id, is_cancelled=True)
    # Refuses a caller to whom a restriction has applied since the plan began.
    scan = _scan(ctx, scanned, plan_record=plan)
    if plan.parts:
        return _plan_view(plan_id, _PlanResult(None, int(plan.parts)))
    result = await _work_out(ctx, scan, plan_id=plan_id)
    if result is not None and result.parts:
        parts = str(result.parts)
        await ctx.services.store.submit(_PERMIT, lambda tx: tx.scan_plans.set_parts(plan_id, parts))
    return _plan_view(plan_id, result)


async def plan_cancel(ctx: Context, scanned: ScanTarget, *, plan_id: str) -> None:
    """Cancel a plan and its computation. For a plan that was complete in its first response, only release its pins and,
    for a restricted user, its directory of rewritten files.

    Raises NotFound if there is no such plan.
    """
    if plan_id.startswith(_COMPLETE_PREFIX):
        if scanned.bound is not None:
            await directory_leave(ctx, scanned, bound=scanned.bound, plan=plan_id.removeprefix(_COMPLETE_PREFIX))
        await PLAN_PINS.of(ctx.services).release(
            ctx, table_id=scanned.document.node_id, plan_id=plan_id.removeprefix(_COMPLETE_PREFIX)
        )
        return
    plan = await _find(ctx, scanned, plan_id=plan_id)
    if plan is None:
        raise _no_plan()
    RUNNING_PLANS.of(ctx.services).end(plan_id)

    def mutation(tx: Tx) -> None:
        tx.scan_plans.cancel(plan_id)
        tx.snapshot_pins.plan_drop(plan_id)

    await ctx.services.store.submit(_PERMIT, mutation)
    # After the cancellation: the pin of a killed node expires by itself, a half-cancelled plan would not.
    await PLAN_PINS.of(ctx.services).release(ctx, table_id=scanned.document.node_id, plan_id=plan_id)


async def tasks_load(ctx: Context, scanned: ScanTarget, *, task: str) -> ScanTasks:
    """Return one task of a plan.

    Raises NotFound (no such task, or its plan was cancelled), PermissionDenied, and as `plan_begin` does.
    """
    plan_id, _, number = task.partition("-")
    plan = (
        await _find(ctx, scanned, plan_id=plan_id)
        if number.isascii() and number.isdigit() and len(number) < 10
        else None
    )
    if plan is None or plan.is_cancelled or not plan.parts or int(number) >= int(plan.parts):
        raise NotFound(
            "You have no such plan task for this table: its plan has ended or was cancelled, or another server issued"
            " it. Plan the scan again",
            kind="plan-task",
        )
    scan = _scan(ctx, scanned, plan_record=plan)
    parts = scan.parts(await scan.needed_manifests())
    if int(number) >= len(parts):
        return ScanTasks(b"", b"", 0)  # another node's settings gave more tasks; the existing ones contain all files
    return await scan.tasks(parts[int(number)])


async def _work_out(ctx: Context, scan: TableScan, *, plan_id: str) -> _PlanResult | None:
    async def work() -> _PlanResult:
        scan_manifests = await scan.needed_manifests()
        parts = scan.parts(scan_manifests)
        return _PlanResult(None, len(parts)) if len(parts) > 1 else _PlanResult(await scan.tasks(scan_manifests))

    return await RUNNING_PLANS.of(ctx.services).outcome(
        plan_id, work, caller=scan.requester.name, wait_s=ctx.services.defaults.scan_wait_s
    )


def _plan_view(plan_id: str, result: _PlanResult | None) -> ScanPlanView:
    if result is None:
        return ScanPlanView(plan_id)
    return ScanPlanView(plan_id, result.scan_tasks, tuple(f"{plan_id}-{number}" for number in range(result.parts)))


def _scan(ctx: Context, scanned: ScanTarget, *, plan_record: ScanPlan) -> TableScan:
    """Return the scan of a stored plan, on the table's state at the start of the plan."""
    stored_plan = msgspec.json.decode(plan_record.scan, type=_StoredPlan)
    return TableScan(ctx, scanned._replace(request=stored_plan.asked), aim=stored_plan.aim)


async def _find(ctx: Context, scanned: ScanTarget, *, plan_id: str) -> ScanPlan | None:
    if len(plan_id) != _ID_LENGTH:
        return None
    now_ms = ctx.services.store.time.now_ms()
    query = plan_query(plan_id, table_id=scanned.document.node_id, requester=scanned.requester, now_ms=now_ms)
    return plan_of(await ctx.find(query))


async def _store_plan(ctx: Context, scanned: ScanTarget, *, plan: ScanPlan, snapshots: tuple[int, ...]) -> None:
    defaults = ctx.services.defaults

    def mutation(tx: Tx) -> None:
        if snapshots and defaults.keep_pinned:
            tx.snapshot_pins.plan_set(
                plan.id, table_id=scanned.document.node_id, snapshots=snapshots, keep_ms=defaults.scan_keep_ms
            )
        tx.scan_plans.insert(
            plan,
            requester=scanned.requester,
            table_id=scanned.document.node_id,
            keep_ms=defaults.scan_keep_ms,
            most=defaults.scan_plans_max,
        )

    await ctx.services.store.submit(_PERMIT, mutation)


def _no_plan() -> NotFound:
    return NotFound(
        "You have no such plan for this table: it has ended, or its first response was complete", kind="plan"
    )
