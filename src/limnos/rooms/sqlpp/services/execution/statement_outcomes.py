# SPDX-License-Identifier: Apache-2.0
"""Statement outcomes: determines from the dataset's history whether a statement was committed, if its engine did not
report it.

Must not know wire formats or engines. Every commit of a statement needs its lock. So after the release of the lock no
commit is possible, and the history is final: a statement's snapshot records its id.
"""

from __future__ import annotations

import asyncio
from typing import Final

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.errors import LimnosError
from limnos.rooms.sqlpp.services.locks.statement_locks import HeldLocks
from limnos.services.request.context import Context
from limnos.store.activity.sqlpp_locks import lock_exists_query
from limnos.store.objects.documents import document_read

STATEMENT: Final = "sqlpp.statement"
"""The key in a snapshot's summary for the id of the statement that created it."""


async def is_carried_out(ctx: Context, locks: HeldLocks, *, table_id: int, statement: str) -> bool | None:
    """Release the statement's locks, then return whether it was committed; None if that cannot be determined now."""
    await locks.release()
    try:
        if await ctx.find(lock_exists_query(locks.token)):
            return None  # the lock could not be released: a commit may still come
        document = await ctx.look_up(lambda: document_read(table_id))
    except LimnosError:
        return None
    return document is not None and await asyncio.to_thread(_has, document.body, statement)


def _has(body: bytes, statement: str) -> bool:
    """Return whether the current snapshot or one of its ancestors records a statement's id."""
    metadata = iceberg_metadata.decode(body)
    snapshots_by_id = {one.get("snapshot-id"): one for one in iceberg_metadata.rows(metadata, "snapshots")}
    at: object = iceberg_metadata.current_snapshot_id(metadata)
    for _ in range(len(snapshots_by_id)):
        snapshot = snapshots_by_id.get(at)
        if snapshot is None:
            return False
        summary = snapshot.get("summary")
        if isinstance(summary, dict) and summary.get(STATEMENT) == statement:
            return True
        at = snapshot.get("parent-snapshot-id")
    return False
