# SPDX-License-Identifier: Apache-2.0
"""Reasons of waiting operations that have no stored reason: another operation on the table, an executor, or the server.

Must not know any wire format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from limnos.services.request.context import Context
from limnos.store.activity.maintenance import OperationRow
from limnos.store.activity.rewrites import leased_operations, open_rewrites

FOR_EXECUTOR: Final = "waits for an executor"
FOR_SERVER: Final = "waits for the server"


async def with_reasons(ctx: Context, rows: Sequence[OperationRow]) -> list[OperationRow]:
    """Return the operations; the result of a waiting operation is the reason for which it waits."""
    tables = list({row.node_id for row in rows if row.state == "waiting" and not row.result})
    if not tables:
        return [*rows]
    now_ms = ctx.services.store.time.now_ms()
    leased = await ctx.look_up(lambda: leased_operations(tables, now_ms=now_ms))
    queued = set((await ctx.look_up(lambda: open_rewrites(tables))).values())

    def reason(row: OperationRow) -> str:
        if row.node_id in leased:
            return f"waits for operation {leased[row.node_id]} on this table"
        return FOR_EXECUTOR if row.id in queued else FOR_SERVER

    return [row._replace(result=reason(row)) if row.state == "waiting" and not row.result else row for row in rows]
