"""What became of requests that have a key: a row in the mutation's own transaction, kept for a time.

May import the room's `sql`. A row is no object: nothing is decided by it, and it is not in the feed. Under the lock of its
zone nobody else writes one, so of two transactions with one key the second finds what the first has left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.store.sql import Sql

if TYPE_CHECKING:
    from limnos.store.sql import Query, Row
    from limnos.store.transaction import StoreTransaction

PRUNED_AT_ONCE = 1000
FIND = Sql(
    "SELECT fingerprint, operation, status, object_id, body FROM idempotency"
    " WHERE zone = :zone AND caller = :caller AND key = :key AND expires_at > :now"
)
KEEP = Sql(
    "INSERT INTO idempotency (zone, caller, key, fingerprint, operation, status, object_id, body, expires_at) VALUES"
    " (:zone, :caller, :key, :fingerprint, :operation, :status, :object_id, :body, :expires_at)"
    " ON CONFLICT (zone, caller, key) DO UPDATE SET fingerprint = excluded.fingerprint, operation = excluded.operation,"
    " status = excluded.status, object_id = excluded.object_id, body = excluded.body, expires_at = excluded.expires_at"
    " WHERE idempotency.expires_at <= :now"
)
"""In place of a row, if there is one, that has expired; else nothing is written."""
PRUNE = Sql(
    "DELETE FROM idempotency WHERE (zone, caller, key) IN"
    " (SELECT zone, caller, key FROM idempotency WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)"
)


class IdempotencyKey(NamedTuple):
    """A key as it is looked for: on whose clock, by whom it was sent, and its text."""

    zone: int
    caller: str
    text: str


class RequestOutcome(NamedTuple):
    """What became of a request: its fingerprint and operation, the status, what it made or changed, and what it was told.

    `body` is kept only where the answer can't be made again from what is there.
    """

    fingerprint: bytes
    operation: str
    status: int
    object_id: int | None
    body: bytes | None


def outcome_query(key: IdempotencyKey, *, now_ms: int) -> Query:
    """Ask what became of the request with a key."""
    return FIND, {"zone": key.zone, "caller": key.caller, "key": key.text, "now": now_ms}


def outcome_of(rows: list[Row]) -> RequestOutcome | None:
    """Read the answer to that; None when it is not known, or no more."""
    return RequestOutcome(*rows[0]) if rows else None


class RequestOutcomeWrites:
    """What mutations do to outcomes."""

    def __init__(self, tx: StoreTransaction) -> None:
        self.tx = tx

    def keep(self, key: IdempotencyKey, outcome: RequestOutcome, *, lifetime_ms: int) -> RequestOutcome | None:
        """Keep an outcome for a time; returns the one that is kept already, if there is one, and leaves it as it is."""
        now_ms = self.tx.now_ms
        written = self.tx.count(
            KEEP,
            {
                "zone": key.zone, "caller": key.caller, "key": key.text, "fingerprint": outcome.fingerprint,
                "operation": outcome.operation, "status": outcome.status, "object_id": outcome.object_id,
                "body": outcome.body, "expires_at": now_ms + lifetime_ms, "now": now_ms,
            },
        )  # fmt: skip
        return None if written else self._find(key)

    def _find(self, key: IdempotencyKey) -> RequestOutcome:
        rows = self.tx.rows(FIND, {"zone": key.zone, "caller": key.caller, "key": key.text, "now": self.tx.now_ms})
        return RequestOutcome(*rows[0])

    def prune(self) -> int:
        """Delete outcomes whose time is over, the oldest first and not too many at once; returns how many."""
        return self.tx.count(PRUNE, {"now": self.tx.now_ms, "limit": PRUNED_AT_ONCE})
