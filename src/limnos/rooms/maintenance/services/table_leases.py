# SPDX-License-Identifier: Apache-2.0
"""Leases of tables: the end of a lease, and the short lease of a server task, renewed while the task works.

Must not know any wire format. A table has one lease at most, of an executor or of the server. An expired lease blocks
no operation: the next operation on the table ends it, and revokes the token of its executor.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Final, TypeVar

from limnos.model.errors import ServiceUnavailable
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.rewrites import LeaseRow
from limnos.store.tx import Tx
from limnos.telemetry.metrics import Counter

T = TypeVar("T")
LOSSES_MAX: Final = 5
"""The number of expired or returned leases after which an operation has failed."""
YIELD_MS: Final = 60_000
"""The delay of an operation after it yielded to a writer, in milliseconds; each further conflict doubles it. An
operation whose executor is lost waits until its lease expires.
"""
DONE, FAILED, YIELDED, CANCELLED = "done", "failed", "yielded", "cancelled"
OPERATIONS = Counter(
    "limnos_maintenance_operations_total", "Operations on tables, by kind and outcome.", ("kind", "outcome")
)
LEASES = Counter("limnos_maintenance_leases_total", "Leases of maintenance operations, by outcome.", ("outcome",))


def lease_end(tx: Tx, lease: LeaseRow, *, outcome: str, text: str, delay_ms: int = YIELD_MS) -> None:
    """End a lease, and its operation with the given outcome.

    The outcome `YIELDED` returns the operation to the queue instead, to be leased again after `delay_ms`, doubled for
    each failure before. After `LOSSES_MAX` such returns the operation has failed.
    """
    if outcome == YIELDED:
        times = tx.rewrites.return_to_queue(lease.operation_id, delay_ms=delay_ms, failed=True, reason=text[:2000])
        if times < LOSSES_MAX:
            return
        outcome, text = FAILED, f"failed after {times} attempts: {text}"
    operation_close(tx, lease.operation_id, outcome=outcome, text=text)


def operation_close(tx: Tx, operation: int, *, outcome: str, text: str) -> None:
    """End an operation with the given outcome, and its lease if it has one."""
    OPERATIONS[tx.maintenance.kind_of(operation) or "", outcome] += 1
    tx.maintenance.end(operation, state=outcome, result=text[:2000])
    tx.rewrites.end(operation)


def leases_expire(tx: Tx) -> None:
    """End all expired leases."""
    for lease in tx.rewrites.read_expired():
        lease_expire(tx, lease)


def lease_expire(tx: Tx, lease: LeaseRow) -> None:
    """End an expired lease. The operation of an executor returns to the queue, or is done if it had committed."""
    if not lease.token_id:
        tx.rewrites.end(lease.operation_id)
        return
    LEASES["expired",] += 1
    text = "its executor stopped responding"
    lease_end(tx, lease, outcome=DONE if lease.commits else YIELDED, text=text, delay_ms=0)
    lease_revoke(tx, lease)


def lease_revoke(tx: Tx, lease: LeaseRow) -> None:
    """Revoke the token of a lease, within a transaction."""
    token = tx.tokens.by_id(lease.token_id)
    if token is not None:
        tx.tokens.revoke(token)


def table_lease(tx: Tx, operation: int, *, table_id: int, lease_ms: int) -> bool:
    """Lease a table for an operation of the server, so that no other operation on it begins. Returns whether the table
    was free.

    An expired lease of another operation is ended.
    """
    former_lease = tx.rewrites.lease_of(table_id)
    if former_lease is not None and former_lease.operation_id == operation:
        tx.rewrites.free(former_lease)
    elif former_lease is not None and former_lease.is_over(tx.now_ms):
        lease_expire(tx, former_lease)
    return tx.rewrites.take(operation, node_id=table_id, token_id=0, holder="server", lease_ms=lease_ms)


async def lease_for_task(work: TaskContext, *, operation: int, table_id: int) -> bool:
    """Lease a table for an operation of the server, as long as its task is leased. Returns whether the table was
    free.
    """
    return await work.submit(lambda tx: table_lease(tx, operation, table_id=table_id, lease_ms=work.lease_ms))


async def await_with_table(work: TaskContext, call: Coroutine[None, None, T], *, operation: int) -> T:
    """Await work on a table that is leased for an operation, and renew its lease along with that of the task.

    Raises ServiceUnavailable, and cancels the work, if the lease expired and another operation ended it.
    """

    def renew(tx: Tx) -> None:
        if not tx.rewrites.renew_server_lease(operation, lease_ms=work.lease_ms):
            raise ServiceUnavailable("Its lease of the table expired, and another operation began: it is tried again")

    return await work.await_with_lease(call, renew=renew)
