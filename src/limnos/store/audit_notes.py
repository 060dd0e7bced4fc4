# SPDX-License-Identifier: Apache-2.0
"""Audit notes: the audit data of a mutation that writes no change row, stored in the mutation's own transaction.

Must not know audit records. Writers of notes hold the clocks of different zones, so notes have no common order. A
background task that holds the clock of zone 0 converts them to records.
"""

from __future__ import annotations

from limnos.store.sql import Params, Sql
from limnos.store.transaction import StoreTransaction

NOTE_NEW = Sql(
    "INSERT INTO audit_note (id, zone, actor, request_id, at, payload) VALUES (:id, :zone, :actor, :request, :at,"
    " :payload)"
)
NOTES = Sql("SELECT id, zone, actor, request_id, at, payload FROM audit_note ORDER BY id LIMIT :limit")
NOTES_DROP = Sql("DELETE FROM audit_note WHERE id = :id")


def note_params(tx: StoreTransaction, zone: int, *, account: str) -> Params:
    """Return the parameters of `NOTE_NEW`. `account` is the encoded context of the request."""
    return {
        "id": tx.next_id(),
        "zone": zone,
        "actor": tx.actor,
        "request": tx.request_id,
        "at": tx.now_ms,
        "payload": account,
    }
