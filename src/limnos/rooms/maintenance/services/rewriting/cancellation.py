# SPDX-License-Identifier: Apache-2.0
"""Cancellation of operations that rewrite a table's files, by users who may maintain the table.

Must not know any wire format. The operations of the server itself end within a minute and cannot be cancelled.
"""

from __future__ import annotations

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import NotFound, PermissionDenied, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.names.path import Levels
from limnos.rooms.maintenance.services.rewriting.kinds import LEASED_KINDS
from limnos.rooms.maintenance.services.rewriting.leases import operation_cancel, token_revoke
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.rooms.maintenance.services.table_leases import CANCELLED
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, format_of
from limnos.store.activity.maintenance import OperationRow, ancestors_read, operation_read
from limnos.store.activity.rewrites import LeaseRow
from limnos.store.ancestry import path_of
from limnos.store.tx import Tx


class OperationStop(msgspec.Struct, frozen=True):
    """The command to cancel an operation that rewrites files."""

    table: Node
    operation: int
    user: str


async def rewrite_cancel(ctx: Context, scope: RequestScope, *, path: Levels, operation: int) -> None:
    """Cancel an operation on a table; its executor stops when it next renews its lease. An ended operation stays
    unchanged.

    Raises NotFound for an operation on another table, UnsupportedOperation for one that the server executes itself,
    and as `maintained_table`.
    """
    row = await ctx.look_up(lambda: operation_read(operation))

    def decide(request_view: RequestView) -> Permit[OperationStop]:
        table_format = format_of(request_view)
        node, _, decision = maintained_table(
            request_view, path, action=Action.TABLE_MAINTAIN, table_format=table_format
        )
        if row is None or row.node_id != node.id:
            raise NotFound(f"Operation {operation} on this table does not exist", kind="operation")
        if row.kind not in LEASED_KINDS or table_format != ICEBERG:
            raise UnsupportedOperation("The server executes this operation within a minute: it cannot be cancelled")
        return request_view.permit(OperationStop(node, operation, request_view.user), decision)

    lease = await ctx.write(scope, decide, operation_stop)
    if lease is not None:
        await token_revoke(ctx.services, lease)


async def cancel_by_id(ctx: Context, metalake: str, *, operation: int) -> OperationRow:
    """Cancel an operation of a metalake by its id alone. Returns it; an ended operation is unchanged.

    A caller who may not maintain the table does not learn whether the operation exists, nor the name of its table.

    Raises:
        NotFound: The metalake is missing; or the operation is missing or the caller may not cancel it, for a caller who
            may lease operations.
        PermissionDenied: The operation is missing or the caller may not cancel it, for any other caller.
        UnsupportedOperation: The server executes the operation itself.
    """
    row = await ctx.look_up(lambda: operation_read(operation))
    ancestry = {} if row is None else await ctx.look_up(lambda: ancestors_read([row.node_id]))
    path = None if row is None else path_of(row.node_id, ancestry)
    metalakes = {name for _, kind, name in ancestry.values() if kind is Kind.METALAKE}
    if row is None or path is None or metalakes != {metalake}:
        raise await cancel_refusal(ctx, metalake, operation=str(operation))
    try:
        await rewrite_cancel(ctx, RequestScope(metalake, path[0]), path=path[1:], operation=operation)
    except (NotFound, PermissionDenied):
        raise await cancel_refusal(ctx, metalake, operation=str(operation)) from None
    return row if row.ended_at is not None else row._replace(state=CANCELLED)


async def cancel_refusal(ctx: Context, metalake: str, *, operation: str) -> NotFound | PermissionDenied:
    """Return the error for an operation that does not exist, or that the caller may not cancel.

    Raises NotFound or PermissionDenied for a metalake that the caller may not use.
    """

    def look(request_view: RequestView) -> bool:
        request_view.require(Action.METALAKE_LOAD, request_view.settled.outer[-1:])
        return request_view.decide(Action.OPERATION_LEASE, request_view.settled.outer).allowed

    if await ctx.read(RequestScope(metalake), look):
        return NotFound(f"Operation {operation[:50]} does not exist, or its table was dropped", kind="operation")
    return PermissionDenied(f"Operation {operation[:50]} does not exist, or you may not modify its table")


def operation_stop(tx: Tx, permit: Permit[OperationStop]) -> LeaseRow | None:
    """Cancel an operation unless it has ended. Returns its lease, if it had one."""
    command = permit.command
    table = tx.nodes.confirm(command.table)
    return operation_cancel(tx, command.operation, node_id=table.id, user=command.user)
