# SPDX-License-Identifier: Apache-2.0
"""Routes for scan planning: plan a scan, load a plan, fetch tasks, cancel.

Has no business rules.

403 or 404: as for the table's credentials, but with the right to read its rows. A missing table is 404 to a caller who
could read it if it had no grants of its own, and to one who creates tables or works with views in its namespace;
otherwise 403.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

import msgspec

from limnos.formats.iceberg.read_restrictions import BoundRestrictions
from limnos.formats.scans.request import ScanRequest
from limnos.http.iceberg.errors import error_response
from limnos.http.iceberg.paths import levels_of, name_of, referencing_views_of, split_path
from limnos.http.iceberg.vended_credentials import config_of, delegates_of, entry_of
from limnos.http.request import Request
from limnos.http.response import JSON, NO_STORE, Response, no_content
from limnos.model import errors
from limnos.model.errors import BadRequest
from limnos.names.path import Levels
from limnos.services.iceberg import scan_plans, scans
from limnos.services.iceberg.policy_enforcement import restricted_credentials, scan_restricted
from limnos.services.iceberg.scan_plans import ScanPlanView
from limnos.services.iceberg.scans import ScanTarget, ScanTasks
from limnos.services.request.concurrency.loop_turns import in_turns
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.vending.credentials import is_vending, table_credentials

T = TypeVar("T")
LOOK_S: Final = 0.5
"""The interval in seconds of checks whether the client is still connected."""
EVERYTHING: Final = ScanRequest()
NOTHING: Final = ScanTasks(b"", b"", 0)
_FAILURES: Final = (
    errors.BadRequest,
    errors.MissingFile,
    errors.InvalidTable,
    errors.UnsupportedOperation,
    errors.StorageFailed,
    errors.TooLarge,
)
"""Errors that end a plan: a client that loads the plan gets the status `failed` with the error."""


class FetchTasks(msgspec.Struct, rename="kebab"):
    """The body of a fetchScanTasks request: the token of a plan task."""

    plan_task: str


async def scan_plan(request: Request, ctx: Context) -> Response:
    """Plan a scan. Returns its file scan tasks, tokens of plan tasks to fetch them, or the status `submitted`."""
    data = await request.body()
    request.decode(data, dict)  # also checks that the ignored fields are JSON
    scan_request = request.decode(data, ScanRequest)
    scan_request.check()
    plan_target = await _find_plan_target(request, ctx, scan_request=scan_request)
    if plan_target.scanned.bound is not None:
        return await _plan_restricted_scan(request, ctx, seen=plan_target, bound=plan_target.scanned.bound)
    plan_result = await run_while_connected(request.is_gone, scan_plans.plan_begin(ctx, plan_target.scanned))
    return await _plan_response(
        request, ctx, seen=plan_target, planned=plan_result, head=b'"plan-id":"%b",' % plan_result.plan_id.encode()
    )


async def plan_load(request: Request, ctx: Context) -> Response:
    """Return the status of a scan plan, and its results if it is complete."""
    plan_target = await _find_plan_target(request, ctx)
    try:
        plan_result = await run_while_connected(
            request.is_gone, scan_plans.plan_load(ctx, plan_target.scanned, plan_id=plan_target.plan_id)
        )
    except _FAILURES as error:
        body = error_response(error, operation="load-plan").body
        return Response(200, b'{"status":"failed",' + body.removeprefix(b"{"), (JSON, NO_STORE))
    return await _plan_response(request, ctx, seen=plan_target, planned=plan_result)


async def plan_cancel(request: Request, ctx: Context) -> Response:
    """Cancel a scan plan."""
    plan_target = await _find_plan_target(request, ctx)
    await scan_plans.plan_cancel(ctx, plan_target.scanned, plan_id=plan_target.plan_id)
    return no_content()


async def tasks_load(request: Request, ctx: Context) -> Response:
    """Return the file scan tasks of one plan task."""
    body = request.decode(await request.body(), FetchTasks)
    plan_target = await _find_plan_target(request, ctx)
    tasks = await run_while_connected(
        request.is_gone, scan_plans.tasks_load(ctx, plan_target.scanned, task=body.plan_task)
    )
    return _scan_tasks(tasks)


class PlanTarget(NamedTuple):
    """The table of a request, after the access decision, and the id of the requested plan."""

    scope: RequestScope
    path: Levels
    scanned: ScanTarget
    plan_id: str = ""


async def _find_plan_target(request: Request, ctx: Context, *, scan_request: ScanRequest = EVERYTHING) -> PlanTarget:
    """Find the table of a request, and make the access decision on the scan. Raises NotFound, PermissionDenied."""
    scope, params = split_path(request, ctx, 3 if request.method != "POST" else 2)
    path = (*levels_of(params[0]), name_of(params[1]))
    through = referencing_views_of(request) if request.query_string else ()
    scan_target = await ctx.read(
        scope, lambda request_view: scans.scan_look(request_view, path, scan_request=scan_request, through=through)
    )
    return PlanTarget(scope, path, scan_target, name_of(params[2]) if len(params) > 2 else "")


async def _plan_response(
    request: Request, ctx: Context, *, seen: PlanTarget, planned: ScanPlanView, head: bytes = b""
) -> Response:
    if not planned.is_complete:
        status = b"cancelled" if planned.is_cancelled else b"submitted"
        return Response(200, b'{%b"status":"%b"}' % (head, status), (JSON, NO_STORE))
    credentials = await _credentials(request, ctx, seen=seen)
    tasks = b'"plan-tasks":%b,' % msgspec.json.encode(planned.tasks) if planned.tasks else b""
    return _scan_tasks(
        planned.scan_tasks or NOTHING, head=b'%b"status":"completed",%b' % (head, tasks), credentials=credentials
    )


async def _plan_restricted_scan(
    request: Request, ctx: Context, *, seen: PlanTarget, bound: BoundRestrictions
) -> Response:
    """Plan a scan for a restricted user: the visible rows in rewritten files, and credentials for these files only."""
    plan = await run_while_connected(request.is_gone, scan_restricted(ctx, seen.scanned, bound=bound))
    credentials = b""
    if delegates_of(request) and is_vending(seen.scanned.place.catalog.properties):
        vended_credentials = (
            None if plan.into is None else await restricted_credentials(ctx, seen.scanned.place, into=plan.into)
        )
        if vended_credentials is not None:
            config = config_of(vended_credentials, seen.scope, levels=seen.path, renewed=False)
            entry = {"prefix": f"{vended_credentials.location}/", "config": config}
            credentials = b',"storage-credentials":' + msgspec.json.encode([entry])
    head = b'"status":"completed","plan-id":%b,' % msgspec.json.encode(scan_plans.whole_plan_id(plan.plan))
    return _scan_tasks(plan.scan_tasks, head=head, credentials=credentials)


async def _credentials(request: Request, ctx: Context, *, seen: PlanTarget) -> bytes:
    """Encode the credentials that a client requested; empty if it requested none or the catalog vends none."""
    if not (delegates_of(request) and is_vending(seen.scanned.place.catalog.properties)):
        return b""
    credentials = await table_credentials(ctx, seen.scope, levels=seen.path)
    if credentials is None:
        return b""
    return b',"storage-credentials":' + msgspec.json.encode([entry_of(credentials, seen.scope, levels=seen.path)])


def _scan_tasks(tasks: ScanTasks, *, head: bytes = b"", credentials: bytes = b"") -> Response:
    """Return a response with scan tasks.

    An empty list of delete files is omitted: clients accept the field only with tasks that refer to its files.
    """
    deletes = b"".join((b'"delete-files":[', tasks.deletes, b"],")) if tasks.deletes else b""
    body = b"".join((b"{", head, deletes, b'"file-scan-tasks":[', tasks.files, b"]", credentials, b"}"))
    return Response(200, body, (JSON, NO_STORE))


async def run_while_connected(is_gone: Callable[[], bool] | None, work: Coroutine[object, object, T]) -> T:
    """Await `work` while the client is connected. If the client disconnects, cancel `work` and raise BadRequest."""
    task = asyncio.ensure_future(in_turns(work))
    try:
        while True:
            await asyncio.wait((task,), timeout=LOOK_S)
            if task.done():
                return task.result()
            if is_gone is not None and is_gone():
                raise BadRequest("The client disconnected before its scan was planned")
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
