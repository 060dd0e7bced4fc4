# SPDX-License-Identifier: Apache-2.0
"""Webhooks: the URL, the position in the change feed, the node that delivers, and the last error.

Must not know deliveries. One node at a time leases a webhook; a random token that only this node knows identifies the
lease. Only the holder of the lease, or a user who retries a webhook, can change the position. So a node that lost the
lease cannot reset it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from limnos.model.entities import Webhook
from limnos.model.kinds import Kind
from limnos.store.sql import Load, Row, Sql, Value
from limnos.store.transaction import Writes

FAR_MS: Final = 1 << 52
_COLUMNS = (
    "id, metalake_id, user_name, user_id, url, secret, position, created_at, due_at, leased_until, attempts, stopped,"
    " error, delivered_at, operations"
)
OF_METALAKE = Sql(f"SELECT {_COLUMNS} FROM webhook WHERE metalake_id = :metalake ORDER BY id")
BY_ID = Sql(f"SELECT {_COLUMNS} FROM webhook WHERE id = :id AND metalake_id = :metalake")
INSERT = Sql(
    "INSERT INTO webhook (id, metalake_id, user_name, user_id, url, secret, position, created_at, due_at, leased_until,"
    " holder, attempts, stopped, operations) VALUES (:id, :metalake, :user, :user_id, :url, :secret, :position, :now,"
    " :now, 0, '', 0, FALSE, :operations)"
)
SECRETS = Sql("SELECT id, metalake_id, secret FROM webhook ORDER BY id")
SEALED = Sql("UPDATE webhook SET secret = :sealed WHERE id = :id AND secret = :before")
COUNT = Sql("SELECT count(*) FROM webhook WHERE metalake_id = :metalake")
DELETE = Sql("DELETE FROM webhook WHERE id = :id AND metalake_id = :metalake")
_FREE = "due_at <= :now AND leased_until <= :now AND stopped = FALSE"
ANY_DUE = Sql(f"SELECT 1 FROM webhook WHERE {_FREE} LIMIT 1")
DUE = Sql(f"SELECT {_COLUMNS} FROM webhook WHERE {_FREE} ORDER BY due_at, id LIMIT :limit")
LEASE = Sql(f"UPDATE webhook SET leased_until = :until, holder = :holder WHERE id = :id AND {_FREE}")
REACHED = Sql(
    "UPDATE webhook SET position = :position, leased_until = :until, attempts = 0, error = NULL,"
    " delivered_at = coalesce(:delivered_at, delivered_at) WHERE id = :id AND holder = :holder"
)
FAILED = Sql(
    "UPDATE webhook SET leased_until = 0, holder = '', attempts = attempts + 1, due_at = :due, error = :error,"
    " stopped = :stopped WHERE id = :id AND holder = :holder"
)
RELEASE = Sql("UPDATE webhook SET leased_until = 0, holder = '' WHERE id = :id AND holder = :holder")
RETRY = Sql(
    "UPDATE webhook SET due_at = :now, leased_until = 0, holder = '', attempts = 0, error = NULL, stopped = FALSE,"
    " position = coalesce(:position, position) WHERE id = :id AND metalake_id = :metalake"
)
SWEEP = Sql(
    "DELETE FROM webhook WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = webhook.metalake_id AND n.deleted = 0"
    f" AND n.kind = {int(Kind.METALAKE)})"
)


def _webhook_of(row: Row) -> Webhook:
    return Webhook(
        id=row[0],
        metalake_id=row[1],
        user=row[2],
        user_id=row[3],
        url=row[4],
        secret=row[5],
        position=row[6],
        created_at=row[7],
        due_at=row[8],
        leased_until=row[9],
        attempts=row[10],
        stopped=bool(row[11]),
        error=row[12],
        delivered_at=row[13],
        operations=tuple((row[14] or "").split()),
    )


def webhooks_read(metalake_id: int) -> Load[list[Webhook]]:
    """Read a metalake's webhooks by id."""
    rows = yield OF_METALAKE, {"metalake": metalake_id}
    return [_webhook_of(row) for row in rows]


def webhook_secrets_read() -> Load[list[tuple[int, int, str]]]:
    """Read the webhook id, metalake id and stored secret of each webhook of the store."""
    rows = yield SECRETS, {}
    return [(row[0], row[1], row[2]) for row in rows]


def webhooks_due(now_ms: int) -> Load[bool]:
    """Return whether an enabled webhook is due and not leased."""
    rows = yield ANY_DUE, {"now": now_ms}
    return bool(rows)


class WebhookWrites(Writes):
    """Reads and writes webhooks inside a transaction."""

    def create(
        self, *, metalake_id: int, user_id: int, url: str, secret: str, position: str, operations: Sequence[str] = ()
    ) -> Webhook:
        """Insert a webhook. It delivers the changes visible to the user who created it."""
        tx = self.tx
        webhook_id = tx.next_id()
        params: dict[str, Value] = {
            "id": webhook_id,
            "metalake": metalake_id,
            "user": tx.actor,
            "user_id": user_id,
            "url": url,
            "secret": secret,
            "position": position,
            "now": tx.now_ms,
            "operations": " ".join(operations) or None,
        }
        tx.count(INSERT, params)
        return Webhook(
            id=webhook_id,
            metalake_id=metalake_id,
            user=tx.actor,
            user_id=user_id,
            url=url,
            secret=secret,
            position=position,
            created_at=tx.now_ms,
            due_at=tx.now_ms,
            leased_until=0,
            attempts=0,
            stopped=False,
            error=None,
            delivered_at=None,
            operations=tuple(operations),
        )

    def seal(self, webhook_id: int, *, before: str, sealed: str) -> bool:
        """Replace a webhook's secret by its encrypted form.

        Returns False if the stored secret is no longer `before`.
        """
        return self.tx.count(SEALED, {"id": webhook_id, "before": before, "sealed": sealed}) > 0

    def count(self, metalake_id: int) -> int:
        """Count a metalake's webhooks."""
        rows: int = self.tx.rows(COUNT, {"metalake": metalake_id})[0][0]
        return rows

    def drop(self, metalake_id: int, webhook_id: int) -> bool:
        """Delete a webhook. Returns whether it existed."""
        return self.tx.count(DELETE, {"id": webhook_id, "metalake": metalake_id}) > 0

    def retry(self, metalake_id: int, webhook_id: int, *, position: str | None) -> bool:
        """Enable a webhook, end its lease, and make it due immediately, optionally from another position in the feed.

        Returns whether it exists.
        """
        params: dict[str, Value] = {
            "id": webhook_id,
            "metalake": metalake_id,
            "now": self.tx.now_ms,
            "position": position,
        }
        return self.tx.count(RETRY, params) > 0

    def lease(self, holder: str, *, limit: int, lease_ms: int) -> list[Webhook]:
        """Lease up to `limit` enabled webhooks that are due."""
        now = self.tx.now_ms
        params: dict[str, Value] = {"now": now, "until": now + lease_ms, "holder": holder}
        rows = self.tx.rows(DUE, {"now": now, "limit": limit})
        return [_webhook_of(row) for row in rows if self.tx.count(LEASE, {**params, "id": row[0]})]

    def store_position(self, webhook_id: int, holder: str, *, position: str, lease_ms: int, delivered: bool) -> bool:
        """Store the position reached in the change feed, and renew the lease.

        Returns False if this node has lost the lease.
        """
        now = self.tx.now_ms
        params: dict[str, Value] = {
            "id": webhook_id,
            "holder": holder,
            "position": position,
            "until": now + lease_ms,
            "delivered_at": now if delivered else None,
        }
        return self.tx.count(REACHED, params) > 0

    def record_failure(self, webhook_id: int, holder: str, error: str, *, delay_ms: int | None) -> None:
        """End the lease of a webhook with an error; it is due again after `delay_ms`.

        With None the webhook is disabled until a user retries it.
        """
        params: dict[str, Value] = {
            "id": webhook_id,
            "holder": holder,
            "error": error,
            "stopped": delay_ms is None,
            "due": FAR_MS if delay_ms is None else self.tx.now_ms + delay_ms,
        }
        self.tx.count(FAILED, params)

    def release(self, webhook_id: int, holder: str) -> None:
        """End the lease of a webhook, so that other nodes can take it."""
        self.tx.count(RELEASE, {"id": webhook_id, "holder": holder})


SECRET_PROPERTY: Final = "webhook-secret"  # noqa: S105 - a name
"""The property name under which a webhook's secret is encrypted; the encryption authenticates it with the secret."""
