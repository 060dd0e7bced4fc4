# SPDX-License-Identifier: Apache-2.0
"""Locks of SQL++ statements as rows: holders, waiters, and the leases of their nodes.

Must not decide which request is granted. All rows of one request have its token. Transactions that grant locks lock the
server's clock. So one runs at a time on all nodes, and tokens grow in the order of their commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from hmac import compare_digest

from limnos.model.errors import LockLost
from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest, LockRow, contains, secret_of
from limnos.names.dataverse import DataverseName
from limnos.store.sql import Params, Query, Row, Sql, Value
from limnos.store.transaction import Writes

_COLUMNS = "o.token, o.catalog_id, o.kind, o.dataverse, o.entity, o.mode, o.wanted"
_KEY = "catalog_id = :catalog AND kind = :kind AND dataverse = :dataverse AND entity = :entity"


def _same_entity(one: str, other: str) -> str:
    return " AND ".join(
        f"{one}.{column} = {other}.{column}" for column in ("catalog_id", "kind", "dataverse", "entity")
    )


AT_KEY = Sql(f"SELECT 1 FROM sqlpp_lock WHERE {_KEY} AND wanted <> {int(LockMode.READ)} LIMIT 1")
ANY_AT_KEY = Sql(f"SELECT 1 FROM sqlpp_lock WHERE {_KEY} LIMIT 1")
INSERT = Sql(
    "INSERT INTO sqlpp_lock (catalog_id, kind, dataverse, entity, token, mode, wanted, holder) VALUES"
    " (:catalog, :kind, :dataverse, :entity, :token, 0, :wanted, :holder)"
)
ROWS_AT_KEYS = Sql(
    f"SELECT {_COLUMNS} FROM sqlpp_lock m JOIN sqlpp_lock o ON {_same_entity('o', 'm')} WHERE m.token = :token ORDER BY"
    " o.token"
)
"""The query for all rows at the keys of a request, including its own."""
ROWS_AT_WAITERS_KEYS = Sql(
    f"SELECT {_COLUMNS} FROM (SELECT DISTINCT k.catalog_id, k.kind, k.dataverse, k.entity FROM sqlpp_lock k WHERE"
    f" k.token IN (SELECT w.token FROM sqlpp_lock m JOIN sqlpp_lock w ON {_same_entity('w', 'm')}"
    " WHERE m.token = :token AND"
    f" w.mode <> w.wanted)) b JOIN sqlpp_lock o ON {_same_entity('o', 'b')} ORDER BY o.token"
)
"""The query for all rows at all keys of the requests that wait at a key of a request."""
UPGRADES = Sql(
    f"SELECT {_COLUMNS} FROM (SELECT DISTINCT catalog_id, kind, dataverse, entity FROM sqlpp_lock WHERE mode <> 0 AND"
    f" mode <> wanted) b JOIN sqlpp_lock o ON {_same_entity('o', 'b')} ORDER BY o.token"
)
GRANT = Sql("UPDATE sqlpp_lock SET mode = wanted WHERE token = :token")
REQUEST_UPGRADE = Sql(f"UPDATE sqlpp_lock SET wanted = :wanted WHERE token = :token AND mode <> 0 AND {_KEY}")
DOWNGRADE = Sql(
    f"UPDATE sqlpp_lock SET mode = {int(LockMode.EXCLUSIVE_MODIFY)}, wanted = {int(LockMode.EXCLUSIVE_MODIFY)}"
    f" WHERE token = :token AND wanted = {int(LockMode.UPGRADED_WRITE)} AND mode <> 0 AND {_KEY}"
)
DELETE = Sql("DELETE FROM sqlpp_lock WHERE token = :token")
HOLD = Sql(
    f"UPDATE sqlpp_lock SET holder = holder WHERE token = :token AND mode <> 0 AND {_KEY} RETURNING mode, holder"
)
HOLD_ANY = Sql("UPDATE sqlpp_lock SET holder = holder WHERE token = :token AND mode <> 0 RETURNING mode, holder")
TOKENS = Sql("SELECT DISTINCT token FROM sqlpp_lock WHERE holder = :holder ORDER BY token")
RENEW_LEASE = Sql(
    "INSERT INTO sqlpp_lock_node (holder, leased_until) VALUES (:holder, :until)"
    " ON CONFLICT (holder) DO UPDATE SET leased_until = excluded.leased_until"
)
EXPIRED_HOLDERS = Sql(
    "SELECT holder FROM sqlpp_lock_node WHERE leased_until <= :now AND holder <> :holder ORDER BY holder"
)
DELETE_LEASE = Sql("DELETE FROM sqlpp_lock_node WHERE holder = :holder")
OF_TOKEN = Sql("SELECT 1 FROM sqlpp_lock WHERE token = :token LIMIT 1")
STANDING = Sql(
    "SELECT token, max(CASE WHEN mode = wanted THEN 0 ELSE 1 END) FROM sqlpp_lock WHERE holder = :holder GROUP BY token"
    " UNION ALL SELECT 0, count(*) FROM sqlpp_lock_node WHERE leased_until <= :now AND holder <> :holder"
)


def lock_status_query(holder: str, *, now_ms: int) -> Query:
    """Return the query for the lock requests of a node: rows of (token, 1 if it still waits, else 0).

    Token 0 has the count of other nodes with expired leases.
    """
    return STANDING, {"holder": holder, "now": now_ms}


def lock_exists_query(token: int) -> Query:
    """Return the statement that checks whether a request still exists."""
    return OF_TOKEN, {"token": token}


def competing_locks_query(wanted_lock: LockRequest) -> Query:
    """Return the query for locks or waiters that might block a lock request."""
    return AT_KEY if wanted_lock.mode is LockMode.READ else ANY_AT_KEY, _params(wanted_lock.key)


def _params(key: LockKey) -> dict[str, Value]:
    return {
        "catalog": key.catalog_id,
        "kind": int(key.kind),
        "dataverse": key.dataverse.canonical_form,
        "entity": key.entity,
    }


def _lock_of(row: Row) -> LockRow:
    token, catalog_id, kind, dataverse, entity, mode, target = row
    key = LockKey(catalog_id, LockKind(kind), DataverseName.from_canonical_form(dataverse), entity)
    return LockRow(token, key, LockMode(mode) if mode else None, LockMode(target))


class SqlppLockWrites(Writes):
    """Reads and writes lock requests inside a transaction, and checks the lock that a mutation depends on."""

    def require(self, token: int, covers: LockRequest | None = None, *, secret: str | None = None) -> None:
        """Check that a lock is granted to a token, and lock its row until this transaction's commit.

        Raises LockLost if the token has no lock (its node may have been considered dead), or none that `covers` the
        given request, or if `secret` is wrong. Clients send this secret with a token, since tokens can be guessed.
        """
        if covers is None:
            rows = self.tx.rows(HOLD_ANY, {"token": token})
        else:
            rows = self.tx.rows(HOLD, {**_params(covers.key), "token": token})
        is_holder = not rows or secret is None or compare_digest(secret_of(rows[0][1], token).encode(), secret.encode())
        if not rows or not is_holder or (covers is not None and not contains(LockMode(rows[0][0]), covers.mode)):
            what = "any more" if covers is None else f"on {covers.key} any more"
            raise LockLost(
                f"The statement doesn't hold its lock {what}; nothing was changed: run it again", token=token
            )

    def insert(self, token: int, *, holder: str, lock_requests: Sequence[LockRequest]) -> None:
        """Insert a waiting request: a row for each of the locks in `lock_requests`."""
        rows: list[Params] = [
            {**_params(wanted_lock.key), "token": token, "wanted": int(wanted_lock.mode), "holder": holder}
            for wanted_lock in lock_requests
        ]
        self.tx.session.many(INSERT, rows)

    def rows_at_keys(self, token: int) -> list[LockRow]:
        """Read all lock rows, granted or waiting, that have a key in common with a request."""
        return [_lock_of(row) for row in self.tx.rows(ROWS_AT_KEYS, {"token": token})]

    def rows_at_waiters_keys(self, token: int) -> list[LockRow]:
        """Read the lock rows at all keys of the requests that wait for a key of this request, to find the next to
        grant.
        """
        return [_lock_of(row) for row in self.tx.rows(ROWS_AT_WAITERS_KEYS, {"token": token})]

    def upgrades(self) -> list[LockRow]:
        """Read all lock rows at keys for which a lock upgrade waits."""
        return [_lock_of(row) for row in self.tx.rows(UPGRADES, {})]

    def grant(self, token: int) -> None:
        """Mark all rows of a lock request as granted."""
        self.tx.count(GRANT, {"token": token})

    def request_upgrade(self, token: int, wanted_lock: LockRequest) -> None:
        """Request the upgrade of a granted lock to another mode."""
        self.tx.count(REQUEST_UPGRADE, {**_params(wanted_lock.key), "token": token, "wanted": int(wanted_lock.mode)})

    def downgrade(self, token: int, key: LockKey) -> None:
        """Downgrade a lock from `UPGRADED_WRITE` to `EXCLUSIVE_MODIFY`, whether the upgrade was granted or not."""
        self.tx.count(DOWNGRADE, {**_params(key), "token": token})

    def delete(self, token: int) -> None:
        """Delete the rows of a lock request, which releases its locks."""
        self.tx.count(DELETE, {"token": token})

    def tokens(self, holder: str) -> list[int]:
        """Read the tokens of all lock requests of a node."""
        return [row[0] for row in self.tx.rows(TOKENS, {"holder": holder})]

    def renew_lease(self, holder: str, *, lease_ms: int) -> None:
        """Renew a node's lease for `lease_ms`."""
        self.tx.count(RENEW_LEASE, {"holder": holder, "until": self.tx.now_ms + lease_ms})

    def expired_holders(self, *, but: str) -> list[str]:
        """Read the ids of the nodes whose lease has expired, except `but`."""
        return [row[0] for row in self.tx.rows(EXPIRED_HOLDERS, {"now": self.tx.now_ms, "holder": but})]

    def delete_lease(self, holder: str) -> None:
        """Delete the lease of a node."""
        self.tx.count(DELETE_LEASE, {"holder": holder})
