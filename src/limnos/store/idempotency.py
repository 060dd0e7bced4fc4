# SPDX-License-Identifier: Apache-2.0
"""Outcomes of requests with an idempotency key: rows written in the mutation's own transaction and retained for a
limited time.

Must not know protocols. No decision depends on these rows, and they are not in the change feed. Rows are written under
the lock of their zone. So of two transactions with one key, the second finds the outcome of the first.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.store.sql import Query, Row, Sql
from limnos.store.transaction import Writes

PRUNED_AT_ONCE = 1000
FIND = Sql(
    "SELECT fingerprint, operation, status, object_id, body FROM idempotency"
    " WHERE zone = :zone AND caller = :caller AND key = :key AND expires_at > :now"
)
FIND_MANY = Sql(
    "SELECT key, fingerprint FROM idempotency"
    " WHERE zone = :zone AND caller = :caller AND key >= :first AND key <= :last AND expires_at > :now"
)
KEEP = Sql(
    "INSERT INTO idempotency (zone, caller, key, fingerprint, operation, status, object_id, body, expires_at) VALUES"
    " (:zone, :caller, :key, :fingerprint, :operation, :status, :object_id, :body, :expires_at)"
    " ON CONFLICT (zone, caller, key) DO UPDATE SET fingerprint = excluded.fingerprint, operation = excluded.operation,"
    " status = excluded.status, object_id = excluded.object_id, body = excluded.body, expires_at = excluded.expires_at"
    " WHERE idempotency.expires_at <= :now"
)
"""The statement that stores an outcome. It replaces an expired row; a valid row is not changed."""
PRUNE = Sql(
    "DELETE FROM idempotency WHERE (zone, caller, key) IN"
    " (SELECT zone, caller, key FROM idempotency WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)"
)


class IdempotencyKey(NamedTuple):
    """An idempotency key: its zone, the caller who sent it, and its value."""

    zone: int
    caller: str
    text: str


class RequestOutcome(NamedTuple):
    """The outcome of a request: fingerprint, operation, status, and the object that it created or changed.

    `body` is stored only if the response cannot be rebuilt from the current state.
    """

    fingerprint: bytes
    operation: str
    status: int
    object_id: int | None
    body: bytes | None


def outcome_query(key: IdempotencyKey, *, now_ms: int) -> Query:
    """Return the query for the outcome of a key."""
    return FIND, {"zone": key.zone, "caller": key.caller, "key": key.text, "now": now_ms}


def fingerprints_query(first: IdempotencyKey, *, last: str, now_ms: int) -> Query:
    """Return the query for the keys, and the fingerprints, from `first` to `last` of one caller in one zone."""
    return FIND_MANY, {"zone": first.zone, "caller": first.caller, "first": first.text, "last": last, "now": now_ms}


def outcome_of(rows: list[Row]) -> RequestOutcome | None:
    """Build the outcome from the query's rows; None if there is none or it has expired."""
    return RequestOutcome(*rows[0]) if rows else None


class RequestOutcomeWrites(Writes):
    """Writes request outcomes inside a transaction."""

    def keep(self, key: IdempotencyKey, outcome: RequestOutcome, *, lifetime_ms: int) -> RequestOutcome | None:
        """Store an outcome for `lifetime_ms`.

        Returns None; or the existing unexpired outcome of the key, which is not replaced.
        """
        now_ms = self.tx.now_ms
        row_count = self.tx.count(
            KEEP,
            {
                "zone": key.zone,
                "caller": key.caller,
                "key": key.text,
                "fingerprint": outcome.fingerprint,
                "operation": outcome.operation,
                "status": outcome.status,
                "object_id": outcome.object_id,
                "body": outcome.body,
                "expires_at": now_ms + lifetime_ms,
                "now": now_ms,
            },
        )
        return None if row_count else self._find(key)

    def _find(self, key: IdempotencyKey) -> RequestOutcome:
        rows = self.tx.rows(FIND, {"zone": key.zone, "caller": key.caller, "key": key.text, "now": self.tx.now_ms})
        return RequestOutcome(*rows[0])

    def prune(self) -> int:
        """Delete up to `PRUNED_AT_ONCE` expired outcomes, the oldest first. Returns the number of deleted rows."""
        return self.tx.count(PRUNE, {"now": self.tx.now_ms, "limit": PRUNED_AT_ONCE})
