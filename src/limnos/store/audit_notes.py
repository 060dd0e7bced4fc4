"""Audit notes: the audit data of a mutation that writes no change row, stored in the mutation's own transaction.

May import the store's `sql`. Must not know audit records. Notes are written under the clocks of many zones at once.
Records are written under one clock, in the order in which they are read; notes become records there.
"""

from __future__ import annotations

from limnos.store.sql import Params, Sql
from limnos.store.transaction import StoreTransaction

NOTE_NEW = Sql(
    "INSERT INTO audit_note (id, zone, actor, request_id, at, payload) VALUES (:id, :zone, :actor, :request, :at, :payload)"
)
NOTES = Sql("SELECT id, zone, actor, request_id, at, payload FROM audit_note ORDER BY id LIMIT :limit")
NOTES_DROP = Sql("DELETE FROM audit_note WHERE id = :id")


def note_params(tx: StoreTransaction, zone: int, *, account: str) -> Params:
    """Return the parameters of `NOTE_NEW`."""
    return {
        "id": tx.next_id(), "zone": zone, "actor": tx.actor, "request": tx.request_id, "at": tx.now_ms, "payload": account,
    }  # fmt: skip
