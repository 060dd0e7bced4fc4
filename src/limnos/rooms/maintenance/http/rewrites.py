# SPDX-License-Identifier: Apache-2.0
"""Operations that rewrite tables: lease, heartbeat and report of executors, and cancellation by users.

Has no business rules.
"""

from __future__ import annotations

import msgspec

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import NotFound
from limnos.rooms.maintenance.services.rewriting import cancellation, leases
from limnos.services.request.context import Context

_BASE = "/api/limnos/v1/metalakes/{m}/maintenance"


class LeaseBody(AdminRequestBody, frozen=True):
    """A request to lease operations: the executor's name, and the maximum number of operations to lease."""

    holder: str = ""
    limit: int = 10


class RenewalBody(AdminRequestBody, frozen=True):
    """A heartbeat: the executor, and the operations whose leases it renews."""

    holder: str = ""
    operations: tuple[int, ...] = ()


class ReportBody(AdminRequestBody, frozen=True):
    """An executor's report about an operation: the executor's name, the outcome, and a message."""

    holder: str = ""
    outcome: str = ""
    text: str = ""


async def operations_lease(request: Request, ctx: Context) -> Response:
    """Lease waiting operations, each with a token that allows rewrites of one table while the lease lasts.

    A lease expires `lease_s` seconds after its last heartbeat.
    """
    (metalake,) = names_of(request)
    body = Request.decode(await request.body() or b"{}", LeaseBody)
    leased = await leases.operations_lease(ctx, metalake, holder=body.holder, limit=body.limit)
    return json_response(
        {"lease_s": leases.LEASE_MS // 1000, "operations": [msgspec.structs.asdict(each) for each in leased]}
    )


async def leases_renew(request: Request, ctx: Context) -> Response:
    """Renew an executor's leases. Returns the operations whose leases it has lost, which it must stop."""
    (metalake,) = names_of(request)
    body = Request.decode(await request.body() or b"{}", RenewalBody)
    lost_operations = await leases.leases_renew(ctx, metalake, holder=body.holder, operations=body.operations)
    return json_response({"lost": lost_operations})


async def operation_report(request: Request, ctx: Context) -> Response:
    """Report the result of an operation: `done`, `failed`, or `yielded` because of a conflicting commit.

    The report of an executor whose lease has expired is not `accepted`.
    """
    metalake, text = names_of(request)
    body = Request.decode(await request.body() or b"{}", ReportBody)
    operation = number_of(text)
    if operation is None:
        await leases.lease_require(ctx, metalake)
        raise NotFound(f"Operation {text[:50]} does not exist", kind="operation")
    is_accepted = await leases.operation_report(
        ctx, metalake, operation=operation, holder=body.holder, outcome=body.outcome, text=body.text
    )
    return json_response({"accepted": is_accepted})


async def operation_cancel(request: Request, ctx: Context) -> Response:
    """Cancel an operation that an executor executes, or that waits for an executor.

    Returns its state: `cancelled`, or the state in which it had ended before. The caller must be allowed to modify the
    operation's table. The executor stops the operation when it next renews the lease.
    """
    metalake, text = names_of(request)
    operation = number_of(text)
    if operation is None:
        raise await cancellation.cancel_refusal(ctx, metalake, operation=text)
    row = await cancellation.cancel_by_id(ctx, metalake, operation=operation)
    return json_response({"operation": row.id, "state": row.state})


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="POST", path=f"{_BASE}/leases", handler=operations_lease, operation="lease-maintenance-operations"),
    Route(method="PUT", path=f"{_BASE}/leases", handler=leases_renew, operation="renew-maintenance-leases"),
    Route(
        method="POST",
        path=f"{_BASE}/operations/{{o}}/report",
        handler=operation_report,
        operation="report-maintenance-operation",
    ),
    Route(
        method="POST",
        path=f"{_BASE}/operations/{{o}}/cancel",
        handler=operation_cancel,
        operation="cancel-maintenance-operation",
    ),
)
