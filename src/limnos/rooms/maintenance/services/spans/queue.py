# SPDX-License-Identifier: Apache-2.0
"""The queue of plans for restricted users whose files executors write.

Must not know spans: an operation has the recipe from which they are computed. Plans with one recipe share an
operation. Decision record 0337.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from limnos.files import is_local
from limnos.model.kinds import Kind
from limnos.model.permits import upkeep_permit
from limnos.rooms.maintenance.services.acting import responsible_user
from limnos.rooms.maintenance.services.rewriting.kinds import RESTRICTED_FILES, RewriteOptions
from limnos.rooms.maintenance.services.rewriting.leases import is_executor_active
from limnos.rooms.maintenance.services.rewriting.scheduling import REQUESTED_PRIORITY
from limnos.rooms.maintenance.services.table_leases import CANCELLED, DONE, lease_revoke, operation_close
from limnos.services.iceberg.scans import ScanTarget
from limnos.services.iceberg.spans.executors import DelegationState, SpanRecipe
from limnos.services.request.context import Context
from limnos.services.vending.credentials import is_vending
from limnos.store.activity.maintenance import ancestors_read, operation_read
from limnos.store.activity.rewrites import ended_operations, lease_end_read, options_of_kind_read
from limnos.store.ancestry import Ancestry
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.restricting")
GIVEN_UP: Final = "no executor wrote the files in time: the server writes them"
PAUSE_MS: Final = 600_000
"""The time after an operation of a table that failed or was cancelled, in milliseconds, in which the server writes: a
reader repeats the request every half a minute.
"""
_PERMIT: Final = upkeep_permit("limnos")


class LeasedSpans:
    """Has the files of plans written by the executors that lease operations."""

    async def begin(self, ctx: Context, scanned: ScanTarget, *, recipe: SpanRecipe, is_large: bool) -> int | None:
        """Queue an operation, or return the open one for the recipe. As `SpanExecutors.begin`."""
        table_id = scanned.document.node_id
        ancestry = await ctx.look_up(lambda: ancestors_read([table_id]))
        metalake_id, metalake = _metalake_of(ancestry)
        has_access = is_local(recipe.directory) or is_vending(scanned.place.catalog.properties)
        if not has_access or not is_executor_active(ctx.services, metalake):
            return None
        open_operations = await ctx.look_up(lambda: options_of_kind_read(table_id, kind=RESTRICTED_FILES))
        operation = _operation_of(recipe, open_operations)
        if operation is not None or not is_large:
            return operation
        now_ms = ctx.services.store.time.now_ms()
        ended = await ctx.look_up(lambda: ended_operations([table_id]))
        last_operation = next((each for each in ended if each.kind == RESTRICTED_FILES), None)
        if last_operation is not None and last_operation.state != DONE and last_operation.ended_at > now_ms - PAUSE_MS:
            return None
        owner = await responsible_user(ctx.services, table_id, policy=None)
        if owner.refusal is not None:
            log.info("the server writes restricted files itself", table=table_id, reason=owner.refusal)
            return None
        begin = partial(_begin, table_id=table_id, metalake_id=metalake_id, user=owner.user, recipe=recipe)
        return await ctx.services.store.submit(_PERMIT, begin)

    async def state(self, ctx: Context, operation: int) -> DelegationState:
        """Return the state of an operation. It is lost if its lease has expired, or it has none, and no executor asks
        this node.
        """
        row = await ctx.look_up(lambda: operation_read(operation))
        if row is None or row.ended_at is not None:
            return DelegationState.ENDED
        lease_end_ms = await ctx.look_up(lambda: lease_end_read(operation))
        if lease_end_ms is not None and lease_end_ms > ctx.services.store.time.now_ms():
            return DelegationState.RUNNING
        _, metalake = _metalake_of(await ctx.look_up(lambda: ancestors_read([row.node_id])))
        return DelegationState.WAITING if is_executor_active(ctx.services, metalake) else DelegationState.LOST

    async def give_up(self, ctx: Context, operation: int) -> None:
        """Cancel an operation unless it has ended, and revoke its token."""
        row = await ctx.look_up(lambda: operation_read(operation))
        if row is not None:
            await ctx.services.store.submit(_PERMIT, partial(_cancel, operation=operation, table_id=row.node_id))


def _metalake_of(ancestry: Ancestry) -> tuple[int, str]:
    """Return the id and the name of the metalake among ancestors; 0 and an empty name without one."""
    return next(((at, name) for at, (_, kind, name) in ancestry.items() if kind is Kind.METALAKE), (0, ""))


def _operation_of(recipe: SpanRecipe, options: Mapping[int, str]) -> int | None:
    """Return the operation whose stored options have a recipe of the same scan and directory, for any reader."""
    for operation, text in options.items():
        spans = msgspec.json.decode(text, type=RewriteOptions).spans
        if spans is not None and (spans.directory, spans.request) == (recipe.directory, recipe.request):
            return operation
    return None


def _begin(tx: Tx, *, table_id: int, metalake_id: int, user: str, recipe: SpanRecipe) -> int | None:
    operation = _operation_of(recipe, tx.rewrites.options_of_kind(table_id, kind=RESTRICTED_FILES))
    table = tx.nodes.live(table_id)
    if operation is not None or table is None:
        return operation
    operation = tx.maintenance.begin(
        catalog_id=table.zone, node_id=table_id, kind=RESTRICTED_FILES, user=user, policy=None, state="waiting"
    )
    options = msgspec.json.encode(RewriteOptions(is_requested=True, spans=recipe)).decode()
    tx.rewrites.add(operation, metalake_id=metalake_id, priority=REQUESTED_PRIORITY, options=options)
    return operation


def _cancel(tx: Tx, *, operation: int, table_id: int) -> None:
    lease = tx.rewrites.lease_of(table_id)
    operation_close(tx, operation, outcome=CANCELLED, text=GIVEN_UP)
    if lease is not None and lease.operation_id == operation and lease.token_id:
        lease_revoke(tx, lease)
