"""What a mutation leaves for the audit that leaves no change in the feed: a note, in its own transaction.

May import the room's `sql`. Kept apart from the lines, which are written in the order in which they are read: notes are written under the
clocks of many zones at once, and become lines under one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.store.sql import Sql

if TYPE_CHECKING:
    from limnos.store.sql import Params
    from limnos.store.transaction import StoreTransaction

NOTE_NEW = Sql(
    "INSERT INTO audit_note (id, zone, actor, request_id, at, payload) VALUES (:id, :zone, :actor, :request, :at, :payload)"
)
NOTES = Sql("SELECT id, zone, actor, request_id, at, payload FROM audit_note ORDER BY id LIMIT :limit")
NOTES_DROP = Sql("DELETE FROM audit_note WHERE id = :id")


def note_params(tx: StoreTransaction, zone: int, *, account: str) -> Params:
    """Return what a note holds."""
    return {
        "id": tx.next_id(), "zone": zone, "actor": tx.actor, "request": tx.request_id, "at": tx.now_ms, "payload": account,
    }  # fmt: skip
