"""Cancellation of operations that rewrite a table's files, by users who may maintain the table.

May import the layers below. Must not know any wire format. The operations of the server itself end within a minute and
cannot be cancelled.
"""

from __future__ import annotations

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import NotFound, UnsupportedOperation
from limnos.model.permits import Permit
from limnos.names.path import Levels
from limnos.services.maintenance.rewriting.kinds import KINDS
from limnos.services.maintenance.rewriting.leases import operation_cancel, token_revoke
from limnos.services.maintenance.table_access import maintained_table
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.maintenance import operation_read
from limnos.store.activity.rewrites import LeaseRow
from limnos.store.tx import Tx


class OperationStop(msgspec.Struct, frozen=True):
    """The command to cancel an operation that rewrites files."""

    table: Node
    operation: int
    user: str


async def rewrite_cancel(ctx: Context, scope: RequestScope, *, path: Levels, operation: int) -> None:
    """Cancel an operation on a table; its executor ends when it next renews its lease. An ended one stays unchanged.

    Raises NotFound for an operation on another table, UnsupportedOperation for one that the server carries out itself,
    and as `maintained_table`.
    """
    row = await ctx.look_up(lambda: operation_read(operation))

    def decide(request_view: RequestView) -> Permit[OperationStop]:
        node, _, decision = maintained_table(request_view, path, action=Action.TABLE_MAINTAIN)
        if row is None or row.node_id != node.id:
            raise NotFound(f"Operation {operation} on this table does not exist", kind="operation")
        if row.kind not in KINDS:
            raise UnsupportedOperation("The server executes this operation within a minute: it cannot be cancelled")
        return request_view.permit(OperationStop(node, operation, request_view.user), decision)

    lease = await ctx.write(scope, decide, operation_stop)
    if lease is not None:
        await token_revoke(ctx.services, lease)


def operation_stop(tx: Tx, permit: Permit[OperationStop]) -> LeaseRow | None:
    """Cancel an operation unless it has ended. Returns its lease, if it had one."""
    command = permit.command
    table = tx.nodes.confirm(command.table)
    return operation_cancel(tx, command.operation, node_id=table.id, user=command.user)
