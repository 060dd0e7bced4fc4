# SPDX-License-Identifier: Apache-2.0
"""Leases of operations: an executor leases operations for some time, renews the leases, and reports the results.

Must not know any wire format, nor Spark. An executor gets a token for each operation, which allows rewrites of one
table on behalf of the operation's user. The token lives as long as the lease is renewed, and is revoked at its end. If
a lease expires, the operation waits again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from limnos.access.actions import Action
from limnos.access.authentication import Credential, hash_secret, new_secret, token_text
from limnos.model.entities import MetadataDocument, Token
from limnos.model.errors import BadRequest, LimnosError, NotFound, ServiceUnavailable
from limnos.model.permits import Permit, upkeep_permit
from limnos.model.principals import TokenPurpose
from limnos.rooms.maintenance.formats.rewrites import OVERWRITES_PER_REWRITE, WriterActivity, writer_activity
from limnos.rooms.maintenance.formats.row_retention import RETENTION
from limnos.rooms.maintenance.formats.table_metadata import metadata_of
from limnos.rooms.maintenance.services.acting import ended_secret_reason
from limnos.rooms.maintenance.services.assessing import AssessmentRound, effective_policies
from limnos.rooms.maintenance.services.rewriting.kinds import RESTRICTED_FILES, RewriteOptions, action_options
from limnos.rooms.maintenance.services.rewriting.pauses import schedule_limits, withdrawal_text
from limnos.rooms.maintenance.services.rewriting.planning import IDLE, is_idle
from limnos.rooms.maintenance.services.rewriting.row_retention import planned_terms
from limnos.rooms.maintenance.services.rewriting.scheduling import OperationPause, ScheduleLimits, fair_order, pause_of
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.rooms.maintenance.services.table_leases import (
    CANCELLED,
    DONE,
    FAILED,
    LEASES,
    YIELDED,
    lease_end,
    lease_revoke,
    leases_expire,
    operation_close,
)
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey, NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.checked_files import check_table_for_engine
from limnos.store.activity.maintenance import ancestors_read
from limnos.store.activity.rewrites import LeaseRow, WaitingRewrite, recent_use_read
from limnos.store.ancestry import path_of
from limnos.store.objects.snapshot_pins import holders_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

T = TypeVar("T")
log = get_logger("limnos.maintenance")
LEASE_MS: Final = 60_000
"""The lifetime of a lease without a heartbeat, in milliseconds."""
TOKEN_GRACE_MS: Final = 15_000
"""The time for which an operation's token is valid after its lease, in milliseconds: a late commit is answered that its
lease has ended.
"""
TOKEN_MS: Final = LEASE_MS + TOKEN_GRACE_MS
"""The lifetime of an operation's token without a renewal of its lease, in milliseconds."""
RUN_PAUSE_MS: Final = 300_000
"""The delay of an operation on a table that a pipeline run uses, in milliseconds."""
LEASED_MAX: Final = 50
"""The maximum number of operations that one request leases."""
TRIED_MAX: Final = 100
"""The maximum number of operations that one lease request examines. It exceeds the number that one request leases, so
that operations which wait for budgets or hours do not block others.
"""
RENEWED_MAX: Final = 1_000
_ID_MAX: Final = (1 << 63) - 1
EXECUTOR_REQUESTS: Final = ComponentKey("executor requests", lambda _: dict[str, float]())
"""The time of the last request of an executor for leases in each metalake, on this node, by the monotonic clock."""
ACTIVE_S: Final = 60.0
"""The time after its last request for which an executor counts as running, in seconds."""
_FOR_WRITERS: Final = (
    f"waits until the table's writers are quiet, or have overwritten rows {OVERWRITES_PER_REWRITE} times"
)
ENDS: Final = (DONE, FAILED, YIELDED)
_PERMIT: Final = upkeep_permit("limnos")


class LeasedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that an executor has leased. `token` is valid only for its table; `options` are those of Iceberg's
    Spark action.
    """

    operation: int
    kind: str
    catalog: str
    path: tuple[str, ...]
    token: str
    options: dict[str, str]


async def operations_lease(ctx: Context, metalake: str, *, holder: str, limit: int) -> tuple[LeasedOperation, ...]:
    """Lease waiting operations of a metalake, in the order of `fair_order`.

    Args:
        ctx: The request.
        metalake: The metalake.
        holder: The executor's name, unique to one process.
        limit: The maximum number of operations.

    Raises:
        NotFound: The metalake is missing.
        PermissionDenied: The caller may not lease operations.
        BadRequest: The name or the limit is not allowed.
    """
    await lease_require(ctx, metalake)
    if not 0 < len(holder) <= 200 or not 0 < limit <= LEASED_MAX:
        raise BadRequest(
            f"Give the holder of the lease, in 1 to 200 characters, and the number of operations, 1 to {LEASED_MAX}"
        )
    services = ctx.services
    due, has_expired = await _write(ctx, metalake, mutation=partial(_due, limit=limit))
    if has_expired:
        await services.store.submit(_PERMIT, leases_expire)
        due, _ = await _write(ctx, metalake, mutation=partial(_due, limit=limit))
    EXECUTOR_REQUESTS.of(services)[metalake] = monotonic()
    tables: set[int] = set()
    leased: list[LeasedOperation] = []
    for row in due[:TRIED_MAX]:
        if row.node_id not in tables:
            tables.add(row.node_id)
            operation = await _lease_one(services, RequestScope(metalake), row=row, holder=holder)
            if operation is not None:
                leased.append(operation)
        if len(leased) == limit:
            break
    return tuple(leased)


async def leases_renew(ctx: Context, metalake: str, *, holder: str, operations: Sequence[int]) -> tuple[int, ...]:
    """Renew an executor's leases, and the tokens of their operations. Returns the operations whose lease `holder` no
    longer has, for example because it has expired or the operation was cancelled: the executor must end these
    operations.

    Raises NotFound, PermissionDenied, BadRequest for too many operations.
    """
    await lease_require(ctx, metalake)
    if len(operations) > RENEWED_MAX:
        raise BadRequest(f"An executor renews at most {RENEWED_MAX} leases at once, not {len(operations)}")

    def renew(tx: Tx, permit: Permit[int]) -> dict[int, int]:
        ids = [each for each in dict.fromkeys(operations) if 0 < each <= _ID_MAX]
        leases = [
            tx.rewrites.lease_of_holder(each, metalake_id=permit.command, holder=holder)
            for each in ids
            if tx.rewrites.renew(each, metalake_id=permit.command, holder=holder, lease_ms=LEASE_MS)
        ]
        return {lease.operation_id: lease.token_id for lease in leases if lease is not None}

    renewed_leases = await _write(ctx, metalake, mutation=renew)
    if renewed_leases:
        with suppress(ServiceUnavailable):  # the leases are renewed; the next renewal extends the tokens
            await ctx.services.store.submit(_PERMIT, partial(_tokens_extend, token_ids=tuple(renewed_leases.values())))
    lost_operations = tuple([each for each in operations if each not in renewed_leases])
    EXECUTOR_REQUESTS.of(ctx.services)[metalake] = monotonic()
    return lost_operations


def _tokens_extend(tx: Tx, *, token_ids: Sequence[int]) -> None:
    """Extend the tokens of renewed leases. Tokens are of the server, so this is a transaction of its own."""
    for token_id in token_ids:
        tx.tokens.extend(token_id, expires_at=tx.now_ms + TOKEN_MS)


async def operation_report(
    ctx: Context, metalake: str, *, operation: int, holder: str, outcome: str, text: str
) -> bool:
    """Report the outcome of an operation: `done`, `failed`, or `yielded` because of conflicting commits.

    Returns whether the holder had its lease; if not, nothing is changed.

    Raises:
        NotFound: The metalake is missing.
        PermissionDenied: The caller may not lease operations.
        BadRequest: The outcome is unknown.
    """
    await lease_require(ctx, metalake)
    if outcome not in ENDS:
        raise BadRequest(f"'{outcome[:50]}' is not an outcome of an operation: use one of {', '.join(ENDS)}")

    def report(tx: Tx, permit: Permit[int]) -> LeaseRow | None:
        lease = tx.rewrites.lease_of_holder(operation, metalake_id=permit.command, holder=holder)
        if lease is not None:
            lease_end(tx, lease, outcome=outcome, text=text.replace("\0", " "))
        return lease

    lease = await _write(ctx, metalake, mutation=report)
    if lease is not None:
        await token_revoke(ctx.services, lease)
    return lease is not None


async def _write(ctx: Context, metalake: str, *, mutation: Callable[[Tx, Permit[int]], T]) -> T:
    """Run a mutation of a caller who may lease operations; repeat the decision if access rights changed before the
    commit.
    """

    def decide(request_view: RequestView) -> Permit[int]:
        decision = request_view.require(Action.OPERATION_LEASE, request_view.settled.outer)
        return request_view.permit(request_view.metalake.id, decision)

    return await ctx.write(RequestScope(metalake), decide, mutation)


def _due(tx: Tx, permit: Permit[int], *, limit: int) -> tuple[list[WaitingRewrite], bool]:
    """Return the operations that may be leased, in the order of `fair_order`, and whether leases have expired."""
    rows = fair_order(tx.rewrites.due(permit.command, limit=limit), tx.rewrites.recent_use())
    return rows, bool(tx.rewrites.read_expired())


async def lease_require(ctx: Context, metalake: str) -> None:
    """Require that the caller may lease operations of a metalake. Raises NotFound, PermissionDenied."""

    def look(request_view: RequestView) -> None:
        request_view.require(Action.OPERATION_LEASE, request_view.settled.outer)

    await ctx.read(RequestScope(metalake), look)


def is_executor_active(services: NodeServices, metalake: str) -> bool:
    """Return whether an executor recently requested leases in a metalake, or renewed them, on this node."""
    asked_at = EXECUTOR_REQUESTS.of(services).get(metalake)
    return asked_at is not None and monotonic() - asked_at < ACTIVE_S


def operation_cancel(tx: Tx, operation: int, *, node_id: int, user: str) -> LeaseRow | None:
    """Cancel an operation on a table for a user, unless it has ended. Returns its lease, whose token the caller must
    revoke; None if it had no lease.
    """
    lease = tx.rewrites.lease_of(node_id)
    tx.maintenance.end(operation, state=CANCELLED, result=f"cancelled by {user}")
    tx.rewrites.end(operation)
    return lease if lease is not None and lease.operation_id == operation else None


async def token_revoke(services: NodeServices, lease: LeaseRow) -> None:
    """Revoke the token of a lease, in a transaction of its own."""
    await services.store.submit(_PERMIT, lambda tx: lease_revoke(tx, lease))


# ------------------------------------------------------------------------------------------- one lease


def _take(tx: Tx, *, row: WaitingRewrite, stored: RewriteOptions, holder: str, secret: str) -> Token | None:
    """Lease the operation's table with a new token. Returns None if the table is leased or the operation was ended."""
    if tx.rewrites.lease_of(row.node_id) is not None:
        return None
    refusal = ended_secret_reason(tx, stored.root_id)
    if refusal is not None:
        operation_close(tx, row.operation_id, outcome=FAILED, text=refusal)
        return None
    token = tx.tokens.create(
        user=row.user,
        name=f"maintenance {row.operation_id}",
        secret_hash=hash_secret(secret),
        expires_at=tx.tokens.limit_expiry(tx.now_ms + TOKEN_MS, opened_by=stored.root_id),
        trust=stored.trust,
        root_id=stored.root_id,
        opened_by=stored.root_id,
        purpose=TokenPurpose.OPERATION,
        table_id=row.node_id,
        second_user_id=stored.second_user_id,
    )
    ident = {"node_id": row.node_id, "token_id": token.id}
    if tx.rewrites.take(row.operation_id, **ident, holder=holder, lease_ms=LEASE_MS):
        return token
    tx.tokens.revoke(token)
    return None


async def _lease_one(
    services: NodeServices, scope: RequestScope, *, row: WaitingRewrite, holder: str
) -> LeasedOperation | None:
    """Lease one operation to `holder`. Returns None if the table is leased, if the operation was postponed, or if it
    was ended: it failed, is no longer required, or has nothing to do.
    """
    stored_options = msgspec.json.decode(row.options, type=RewriteOptions)
    secret = new_secret()

    take = partial(_take, row=row, stored=stored_options, holder=holder, secret=secret)
    token = await services.store.submit(_PERMIT, take)
    if token is None:
        return None
    ctx = Context(
        services,
        Credential(user=None, token_id=token.id, secret_hash=hash_secret(secret)),
        f"maintenance-{row.operation_id}",
    )
    try:
        catalog, path = await _path(services, row.node_id)
        limits = None
        if not stored_options.is_requested:
            limits = schedule_limits(services, await effective_policies(services, row.node_id), row=row)
            if limits is None:
                refuse = partial(_refuse, row=row, holder=holder, text=withdrawal_text(row), outcome=CANCELLED)
                await services.store.submit(_PERMIT, refuse)
                return None
        document = await _document(ctx, RequestScope(scope.metalake, catalog), path=path)
        activity = writer_activity(metadata_of(document.body), now_ms=services.store.time.now_ms())
        pause = await _pause(services, document.node_id, row=row, limits=limits, activity=activity)
        if is_idle(document, kind=row.kind):
            await services.store.submit(_PERMIT, partial(_refuse, row=row, holder=holder, text=IDLE, outcome=DONE))
            return None
        options = await _options(services, document, row=row, stored=stored_options, activity=activity)
    except LimnosError as error:
        await services.store.submit(_PERMIT, partial(_refuse, row=row, holder=holder, text=error.message))
        return None
    if pause is not None:
        await services.store.submit(_PERMIT, partial(_postpone, row=row, token=token, pause=pause))
        LEASES["postponed",] += 1
        return None
    LEASES["given",] += 1
    return LeasedOperation(
        operation=row.operation_id,
        kind=row.kind,
        catalog=catalog,
        path=path,
        token=token_text(token.id, secret),
        options=options,
    )


async def _options(
    services: NodeServices,
    document: MetadataDocument,
    *,
    row: WaitingRewrite,
    stored: RewriteOptions,
    activity: WriterActivity,
) -> dict[str, str]:
    """Return the options of an operation for its executor, and store the condition for the rows that row retention
    deletes.

    The first attempt of an operation that a user requested is one commit, even if the table has active writers: the
    user may know that they have finished.
    """
    if row.kind != RETENTION:
        is_busy = activity.is_busy and (row.attempts > 0 or not stored.is_requested)
        return action_options(row.kind, stored, is_busy=is_busy)
    terms = await planned_terms(services, document, planned=stored.policy, is_exact=stored.is_requested)
    await services.store.submit(_PERMIT, partial(_store_terms, row=row, stored=replace(stored, terms=terms)))
    return terms.options()


def _store_terms(tx: Tx, *, row: WaitingRewrite, stored: RewriteOptions) -> None:
    """Store the condition for the rows that the executor may delete.

    The server checks the executor's commit against this condition and against the policy at the time of the commit.
    """
    tx.rewrites.set_options(row.operation_id, msgspec.json.encode(stored).decode())


def _refuse(tx: Tx, *, row: WaitingRewrite, holder: str, text: str, outcome: str = FAILED) -> None:
    lease = tx.rewrites.lease_of_holder(row.operation_id, metalake_id=row.metalake_id, holder=holder)
    if lease is not None:
        lease_end(tx, lease, outcome=outcome, text=text)
        lease_revoke(tx, lease)


def _postpone(tx: Tx, *, row: WaitingRewrite, token: Token, pause: OperationPause) -> None:
    tx.tokens.revoke(token)
    tx.rewrites.return_to_queue(row.operation_id, delay_ms=pause.ms, failed=False, reason=pause.reason)


async def _path(services: NodeServices, node_id: int) -> tuple[str, tuple[str, ...]]:
    """Return a table's catalog, and its path below the catalog. Raises NotFound if the table was dropped."""
    path = path_of(node_id, await services.gate.look_up(lambda: ancestors_read([node_id])))
    if path is None:
        raise NotFound("The table was dropped", kind="table")
    return path[0], path[1:]


async def _document(ctx: Context, scope: RequestScope, *, path: tuple[str, ...]) -> MetadataDocument:
    """Return the document of a table, if the operation's user may currently read and modify it, and an executor may
    open it: its files are below its own locations, and no property of it names a class.

    Raises as `maintained_table` and `check_table_for_engine`, and BadRequest for a dataset of SQL++.
    """

    def look(request_view: RequestView) -> tuple[MetadataDocument, CatalogStorage]:
        node, chain, _ = maintained_table(request_view, path, action=Action.TABLE_REWRITE)
        request_view.require(Action.TABLE_READ, chain)
        request_view.defaults.location_conflicts.refuse(node.id, what="table")
        return request_view.document(node.id), catalog_storage_of(request_view)

    document, place = await ctx.read(scope, look)
    if await AssessmentRound(ctx.services, tables_max=0).is_dataset(document.node_id):
        raise BadRequest("SQL++ compacts its datasets by itself")
    await check_table_for_engine(ctx, document, place=place)
    return document


async def _pause(
    services: NodeServices,
    node_id: int,
    *,
    row: WaitingRewrite,
    limits: ScheduleLimits | None,
    activity: WriterActivity,
) -> OperationPause | None:
    """Return the delay of an operation on the table `node_id` because of pipeline runs, quiet hours, budgets or
    writers; None if it has none.

    `limits` is None for an operation that a user requested. An operation that does not change the table has no delay.
    """
    if row.kind == RESTRICTED_FILES:
        return None
    now_ms = services.store.time.now_ms()
    holders = await services.gate.look_up(lambda: holders_read(node_id, now_ms=now_ms))
    if any(each.run is not None for each in holders):
        return OperationPause(RUN_PAUSE_MS, "waits for a pipeline run that uses the table")
    if limits is None:
        return None
    used = await services.gate.look_up(lambda: recent_use_read(now_ms))
    pause = pause_of(limits, used, bytes_=row.bytes or 0, now_ms=now_ms)
    if pause is not None or limits.has_hours:
        return pause
    return OperationPause(activity.pause_ms, _FOR_WRITERS) if activity.pause_ms else None
