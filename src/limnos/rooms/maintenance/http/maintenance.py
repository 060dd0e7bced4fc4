# SPDX-License-Identifier: Apache-2.0
"""Maintenance of tables: findings, their reasons, and operations.

Has no business rules.
"""

from __future__ import annotations

import msgspec

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import ID_MAX, number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.names.path import Levels
from limnos.rooms.maintenance.services import reports
from limnos.rooms.maintenance.services.orphans.reports import ORPHAN_STATES, OrphanReport
from limnos.rooms.maintenance.services.reports import PolicyReport, TableFinding, TableOperation, TableReport
from limnos.rooms.maintenance.services.requests import operation_start as operation_start_of
from limnos.rooms.maintenance.services.table_access import catalog_require
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

_BASE = "/api/limnos/v1/metalakes/{m}/catalogs/{c}/maintenance"


class OperationStart(AdminRequestBody, frozen=True):
    """The body of a request for a maintenance operation: the table's path below the catalog, and the operation."""

    table: str = ""
    operation: str = "expire"


async def findings_list(request: Request, ctx: Context) -> Response:
    """Return the maintenance findings of a catalog, ordered by table, starting after the page token `after` of the
    previous page.
    """
    metalake, catalog = names_of(request)
    page = await reports.findings_list(
        ctx, RequestScope(metalake, catalog), after=await _number(request, ctx, name="after", default=0)
    )
    rows = [_finding(each) for each in page.findings]
    return json_response({"findings": rows, "after": page.after})


async def table_explain(request: Request, ctx: Context) -> Response:
    """Explain the maintenance of one `table`.

    Returns its findings, effective policies, operations and orphan files, and why its newest snapshots are kept.
    """
    metalake, catalog = names_of(request)
    path = _path(request.query("table"))
    return json_response(_report(await reports.table_explain(ctx, RequestScope(metalake, catalog), path=path)))


async def status_show(request: Request, ctx: Context) -> Response:
    """Return the settings of automatic maintenance, and the operations on a catalog's tables, newest first.

    `before` limits the operations to those with lower ids. `waiting_for_executor` counts the returned
    operations that wait for an executor; `executor_active` is true if an executor requested operations from this node
    within the last minute. `started_at` is the time of an operation's request, `leased_at` that of its last lease.
    """
    metalake, catalog = names_of(request)
    before = await _number(request, ctx, name="before", default=ID_MAX)
    page = await reports.operations_list(ctx, RequestScope(metalake, catalog), before=before)
    rows = [_operation(each) for each in page]
    queue = await reports.executor_queue(ctx, RequestScope(metalake, catalog), operations=page)
    defaults = ctx.services.defaults.maintenance
    settings = {
        "assess": defaults.assess,
        "expire": defaults.expire,
        "rewrite": defaults.rewrite,
        "metadata_keep_s": defaults.metadata_keep_ms // 1000,
        "orphans": defaults.orphans,
        "orphan_age_s": defaults.orphan_age_ms // 1000,
        "quiet_hours": [str(each) for each in defaults.quiet_hours],
        "bytes_per_day": defaults.bytes_per_day,
        "executor": queue.executor,
        "waiting_for_executor": queue.waiting,
        "executor_active": queue.is_active,
        "table_format": await reports.catalog_format(ctx, RequestScope(metalake, catalog)),
    }
    return json_response({**settings, "operations": rows})


async def operation_start(request: Request, ctx: Context) -> Response:
    """Request an `operation` on a `table`, to be executed in the background on behalf of the caller. Returns its id.

    `expire` removes unneeded snapshots. `orphans` checks the table for orphan files and removes old ones. `compact`,
    `deletes`, `manifests`, `statistics` and `retention` wait until an executor leases them. The server itself executes
    `expire`, `compact` and `indexes` of Lance tables. If an operation of the kind is open for the table, its id is
    returned.
    """
    metalake, catalog = names_of(request)
    body = Request.decode(await request.body() or b"{}", OperationStart)
    path = _path(body.table)
    operation = await operation_start_of(ctx, RequestScope(metalake, catalog), path=path, kind=body.operation)
    return json_response({"operation": operation})


def _path(text: str | None) -> Levels:
    return tuple(display.parse(text)) if text else ()


async def _number(request: Request, ctx: Context, *, name: str, default: int) -> int:
    text = request.query(name)
    if not text:
        return default
    number = number_of(text)
    if number is None:
        metalake, catalog = names_of(request)
        await ctx.read(RequestScope(metalake, catalog), catalog_require)
        raise BadRequest(f"{name} must be a number from the previous page, not '{text[:20]}'")
    return number


def _finding(finding: TableFinding) -> dict[str, object]:
    row = finding.row
    return {
        "table": display.render(finding.path),
        "kind": row.kind,
        "score": row.score,
        "reason": row.reason,
        "figures": msgspec.Raw(row.figures.encode()),
        "found_at": instant(row.found_at),
    }


def _operation(operation: TableOperation) -> dict[str, object]:
    row = operation.row
    return {
        "table": display.render(operation.path),
        "id": row.id,
        "kind": row.kind,
        "state": row.state,
        "user": row.user,
        "policy": row.policy,
        "result": row.result,
        "started_at": instant(row.started_at),
        "leased_at": instant(row.leased_at),
        "ended_at": instant(row.ended_at),
    }


def _policy(report: PolicyReport) -> dict[str, object]:
    policy = report.policy
    return {
        "type": policy.policy_type,
        "name": report.name,
        "on": display.render(report.on),
        "enabled": policy.is_enabled,
        "content": msgspec.Raw(policy.content.encode()),
        "not_applied": report.others,
        "decides": report.decides,
        "turned_off": report.turned_off,
    }


def _report(report: TableReport) -> dict[str, object]:
    explanation = msgspec.structs.asdict(report.explanation)
    retentions = [
        {"snapshot_id": each.snapshot_id, "at": instant(each.timestamp_ms), "kept_because": each.kept_because}
        for each in report.explanation.retentions
    ]
    del explanation["blocked"], explanation["retentions"]
    return {
        **explanation,
        "history": retentions,
        "findings": [_finding(each) for each in report.findings],
        "policies": [_policy(each) for each in report.policies],
        "blocked": report.blocked,
        "operations": [_operation(each) for each in report.operations],
        "orphans": _orphans(report.orphans),
        "inactions": report.inactions,
    }


def _orphans(report: OrphanReport) -> dict[str, object]:
    check = report.check
    files = [*report.files, *report.removed]
    return {
        "removal": report.removal,
        "age_s": None if report.age_ms is None else report.age_ms // 1000,
        "checked_at": None if check is None else instant(check.checked_at),
        "blocked": None if check is None else check.blocked,
        "listed": 0 if check is None else check.listed,
        "candidates": 0 if check is None else check.candidates,
        "candidate_bytes": 0 if check is None else check.candidate_bytes,
        "files": [
            {
                "name": each.name,
                "size": each.size,
                "state": ORPHAN_STATES[each.state],
                "first_seen_at": instant(each.first_seen_at),
                "waited_s": each.waited_ms // 1000,
            }
            for each in files
        ],
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=f"{_BASE}/findings",
        handler=findings_list,
        operation="list-maintenance-findings",
        query=("after",),
    ),
    Route(
        method="GET",
        path=f"{_BASE}/table",
        handler=table_explain,
        operation="explain-table-maintenance",
        query=("table",),
    ),
    Route(method="POST", path=f"{_BASE}/operations", handler=operation_start, operation="start-maintenance-operation"),
    Route(
        method="GET",
        path=f"{_BASE}/operations",
        handler=status_show,
        operation="list-maintenance-operations",
        query=("before",),
    ),
)
