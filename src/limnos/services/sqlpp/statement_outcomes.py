"""What became of a statement whose engine did not say so: looked up in the dataset's own history.

May import the rooms below. Knows no wire format and no engine. Every commit of a statement rests on its lock, so once that is given back no commit can come any more, and
what the history says then is the truth: the snapshot of a statement bears its number.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.errors import LimnosError
from limnos.store.documents import document_read
from limnos.store.sqlpp_locks import lock_exists_query

if TYPE_CHECKING:
    from limnos.services.request.context import Context
    from limnos.services.sqlpp.statement_locks import HeldLocks

STATEMENT: Final = "sqlpp.statement"
"""Of a snapshot's summary: the statement that made it."""


async def is_carried_out(ctx: Context, held: HeldLocks, *, table_id: int, statement: str) -> bool | None:
    """Give the statement's locks back, then look whether it was carried out; None when that cannot be said now."""
    await held.release()
    try:
        if await ctx.find(lock_exists_query(held.token)):
            return None  # it could not be given back: a commit may still come
        document = await ctx.look_up(lambda: document_read(table_id))
    except LimnosError:
        return None
    return document is not None and await asyncio.to_thread(_has, document.body, statement)


def _has(body: bytes, statement: str) -> bool:
    """Whether a snapshot that the current state rests on bears a statement's number."""
    metadata = iceberg_metadata.decode(body)
    known = {one.get("snapshot-id"): one for one in iceberg_metadata.rows(metadata, "snapshots")}
    at: object = iceberg_metadata.current_snapshot_id(metadata)
    for _ in range(len(known)):
        snapshot = known.get(at)
        if snapshot is None:
            return False
        summary = snapshot.get("summary")
        if isinstance(summary, dict) and summary.get(STATEMENT) == statement:
            return True
        at = snapshot.get("parent-snapshot-id")
    return False
