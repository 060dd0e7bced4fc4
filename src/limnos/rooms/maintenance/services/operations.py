# SPDX-License-Identifier: Apache-2.0
"""Operations on tables: requests for them, their rows, and the task that executes an operation on behalf of its user.

Must not know any wire format. A request creates a row and a task in one transaction. The task acts with a token that
never leaves this process, with the trust of the requester's credential.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from limnos.formats.gravitino.policies import ORPHAN_FILE_REMOVAL, SNAPSHOT_EXPIRATION
from limnos.model.decisions import Decision
from limnos.model.entities import Node
from limnos.model.errors import CommitConflict, LimnosError, ServiceUnavailable, StorageFailed, UnsupportedOperation
from limnos.model.permits import Permit
from limnos.model.principals import TokenTrust
from limnos.names.path import Levels
from limnos.rooms.maintenance.services.acting import acting_as
from limnos.rooms.maintenance.services.assessing import effective_policies
from limnos.rooms.maintenance.services.expiry import table_expire
from limnos.rooms.maintenance.services.policies import PolicyTerms
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.rooms.maintenance.services.table_leases import OPERATIONS, await_with_table, lease_for_task
from limnos.services.identity.tokens import origin_of
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG
from limnos.services.request.task_context import TaskContext
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.maintenance")
EXPIRE: Final = "expire"
EXPIRE_SNAPSHOTS: Final = "expire-snapshots"
"""The kind of the task that executes a requested operation."""
_TERMS: Final = {EXPIRE: SNAPSHOT_EXPIRATION, "orphans": ORPHAN_FILE_REMOVAL}
"""The type of the policy whose content an operation of a kind reads when it is executed."""


class OperationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The command to execute an operation on a table on behalf of a user. `trust` is the trust of the user's
    credential, `root_id` the root of its token family.
    """

    table: Node
    user: str
    trust: TokenTrust
    root_id: int | None
    kind: str = EXPIRE
    task: str = EXPIRE_SNAPSHOTS
    policy: PolicyTerms | None = None


class OperationPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The payload of the task: the operation's row, the table, and the user on whose behalf it is executed, with the
    trust and the token family of the user's credential.

    `policy` is the policy that decided when the operation was requested or planned, if its execution reads the policy's
    content: it fails if the policy has changed since. `second_user_id` is the user who attached it, whose rights a
    planned operation needs.
    """

    operation: int
    table_id: int
    user: str
    trust: TokenTrust = TokenTrust.PROVEN
    root_id: int | None = None
    policy: PolicyTerms | None = None
    second_user_id: int = 0


class MaintenanceRequest(NamedTuple):
    """A request about a table: the table, the decision, the user, and the trust and the token family of the user's
    credential.
    """

    table: Node
    decision: Decision
    user: str
    trust: TokenTrust
    root_id: int | None


def request_of(
    ctx: Context, request_view: RequestView, *, path: Levels, table_format: str = ICEBERG
) -> MaintenanceRequest:
    """Build the request of a caller about a table. Raises as `maintained_table` if the caller may not maintain it."""
    node, _, decision = maintained_table(request_view, path, table_format=table_format)
    origin = origin_of(ctx, request_view, user=request_view.user)
    return MaintenanceRequest(
        table=node, decision=decision, user=request_view.user, trust=origin.trust, root_id=origin.root_id
    )


async def expiry_request(ctx: Context, scope: RequestScope, *, path: Levels) -> int:
    """Request an expiry of a table's snapshots.

    Returns the operation's id; that of the open operation if there is one. Raises as `operation_request`.
    """
    return await operation_request(ctx, scope, path=path, kind=EXPIRE, task=EXPIRE_SNAPSHOTS)


async def operation_request(
    ctx: Context,
    scope: RequestScope,
    *,
    path: Levels,
    kind: str,
    task: str,
    refusal: str | None = None,
    table_format: str = ICEBERG,
) -> int:
    """Request an operation on a table. Returns its id; that of the open operation if the table has one of the kind.

    Args:
        ctx: The request.
        scope: The catalog.
        path: The table's path below it.
        kind: The kind of the operation.
        task: The kind of the task that executes it; its payload is an `OperationPayload`.
        refusal: The reason why this server does not execute it; None if it does.
        table_format: The format of the table.

    Raises:
        NotFound: The table is missing or has another format.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not maintain it.
        UnsupportedOperation: The server does not execute it, or the catalog is federated or shows a directory.
    """

    def look(request_view: RequestView) -> int:
        return maintained_table(request_view, path, table_format=table_format).entity.id

    node_id = await ctx.read(scope, look)
    policies = await effective_policies(ctx.services, node_id)
    policy = policies.get(_TERMS[kind]) if kind in _TERMS else None

    def decide(request_view: RequestView) -> Permit[OperationRequest]:
        asking = request_of(ctx, request_view, path=path, table_format=table_format)
        if refusal is not None:
            raise UnsupportedOperation(refusal)
        if asking.table.id != node_id:
            raise CommitConflict("The table was replaced during the request: send it again")
        command = OperationRequest(
            table=asking.table,
            user=asking.user,
            trust=asking.trust,
            root_id=asking.root_id,
            kind=kind,
            task=task,
            policy=None if policy is None else policy.terms,
        )
        return request_view.permit(command, asking.decision)

    operation = await ctx.write(scope, decide, operation_ask)
    ctx.services.wake_worker()
    return operation


def operation_ask(tx: Tx, permit: Permit[OperationRequest]) -> int:
    """Record an operation and create its task.

    Returns the operation's id; that of the open operation if the table has one of the same kind.
    """
    command = permit.command
    table = tx.nodes.confirm(command.table)
    open_operation = tx.maintenance.open_of(table.id, kind=command.kind)
    if open_operation is not None:
        return open_operation
    operation = tx.maintenance.begin(
        catalog_id=table.zone, node_id=table.id, kind=command.kind, user=command.user, policy=None, state="waiting"
    )
    payload = OperationPayload(
        operation=operation,
        table_id=table.id,
        user=command.user,
        trust=command.trust,
        root_id=command.root_id,
        policy=command.policy,
    )
    tx.tasks.create(command.task, msgspec.json.encode(payload).decode())
    return operation


async def operation_run(work: TaskContext, payload: OperationPayload) -> None:
    """Execute an operation and end its row. Raises ServiceUnavailable, StorageFailed, after which the task is retried.

    A permanent error ends the operation as failed.
    """
    services = work.services
    if services is None:
        raise ServiceUnavailable("This node runs no services: another node runs the task")
    if not await lease_for_task(work, operation=payload.operation, table_id=payload.table_id):
        raise ServiceUnavailable("A rewrite of this table's files is in progress: its snapshots expire after it")
    try:
        text = await await_with_table(work, _expire(work, services, payload=payload), operation=payload.operation)
    except (ServiceUnavailable, StorageFailed) as error:
        reason = error.message
        await work.submit(
            lambda tx: tx.rewrites.return_to_queue(payload.operation, delay_ms=0, failed=False, reason=reason)
        )
        raise
    except LimnosError as error:
        log.warning("snapshots of a table were not expired", table=payload.table_id, error=error.message)
        await operation_end(work, payload.operation, state="failed", text=error.message)
        return
    finally:
        await work.submit(lambda tx: tx.rewrites.end(payload.operation))
    await operation_end(work, payload.operation, state="done", text=text)


async def operation_end(work: TaskContext, operation: int, *, state: str, text: str) -> None:
    """Store the final `state` of an operation, and its result `text`."""
    OPERATIONS[EXPIRE, state] += 1
    await work.submit(lambda tx: tx.maintenance.end(operation, state=state, result=text[:2000]))


async def _expire(work: TaskContext, services: NodeServices, *, payload: OperationPayload) -> str:
    """Expire a table's snapshots on behalf of the payload's user. Returns the result as human-readable text."""
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
        return (await table_expire(request.ctx, request.scope, path=request.path, planned=payload.policy)).text
