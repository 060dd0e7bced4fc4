# SPDX-License-Identifier: Apache-2.0
"""Operations that rewrite files of tables: the queue of operations for executors, and the leases of tables.

Must not know rules of maintenance. The operation itself is a row of `maintenance_operation`. A lease is a row with the
table as its key, so that a table has at most one lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from typing import Final, NamedTuple

from limnos.store.sql import Load, Params, Sql
from limnos.store.transaction import Writes

_IDS = "SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:nodes AS json)) v"
_IDS_SQLITE = "SELECT value FROM json_each(:nodes)"
HOUR_MS: Final = 3_600_000
_WAITING = (
    "r.operation_id, o.node_id, o.catalog_id, r.metalake_id, o.kind, o.user_name, o.policy, r.attempts, r.options"
)
_OPEN = "maintenance_rewrite r JOIN maintenance_operation o ON o.id = r.operation_id"
_UNLEASED = "NOT EXISTS (SELECT 1 FROM maintenance_lease l WHERE l.node_id = o.node_id AND l.expires_at > :now)"
_LIVES = "EXISTS (SELECT 1 FROM node n WHERE n.id = o.node_id AND n.deleted = 0)"
_URGENCY = f"r.priority * (1 + (:now - r.asked_at) / {HOUR_MS}) DESC, r.operation_id"
DUE = Sql(
    f"SELECT * FROM (SELECT {_WAITING}, o.bytes, r.priority, COALESCE(w.principal_id, 0) AS owner_id,"
    f" row_number() OVER (PARTITION BY w.principal_id ORDER BY {_URGENCY}) AS place"
    f" FROM {_OPEN} LEFT JOIN owner w ON w.object_id = o.node_id"
    f" WHERE r.metalake_id = :metalake AND r.due_at <= :now AND {_UNLEASED}"
    f" AND {_LIVES}) q"
    " WHERE place <= :limit ORDER BY place, operation_id"
)
DELAYED = Sql(
    f"SELECT {_WAITING}, o.bytes, r.priority, COALESCE(w.principal_id, 0), 0, o.result"
    f" FROM {_OPEN} LEFT JOIN owner w ON w.object_id = o.node_id"
    f" WHERE r.due_at > :now AND r.priority < :below AND {_UNLEASED} AND {_LIVES}"
    " ORDER BY r.operation_id LIMIT :limit"
)
DELAYED_MAX: Final = 10_000
DAY_MS: Final = 86_400_000
USED = Sql(
    "SELECT COALESCE(w.principal_id, 0), o.policy, COALESCE(sum(COALESCE(o.bytes, 0)), 0), count(*),"
    " COALESCE(c.parent_id, 0)"
    " FROM maintenance_operation o LEFT JOIN owner w ON w.object_id = o.node_id LEFT JOIN node c ON c.id = o.catalog_id"
    " WHERE o.leased_at > :since GROUP BY w.principal_id, o.policy, c.parent_id"
)
DUE_METALAKE = Sql(
    "SELECT m.name FROM maintenance_rewrite r CROSS JOIN maintenance_operation o CROSS JOIN node m"
    " WHERE o.id = r.operation_id AND m.id = r.metalake_id AND m.deleted = 0"
    f" AND r.due_at <= :now AND {_UNLEASED} AND {_LIVES} ORDER BY r.due_at LIMIT 1"
)
OPEN_OF = Sql(
    f"SELECT o.node_id, o.kind, o.id FROM {_OPEN} WHERE o.node_id IN ({_IDS})",
    on_sqlite=f"SELECT o.node_id, o.kind, o.id FROM {_OPEN} WHERE o.node_id IN ({_IDS_SQLITE})",
)
LEASED_OF = Sql(
    f"SELECT node_id, operation_id FROM maintenance_lease WHERE expires_at > :now AND node_id IN ({_IDS})",
    on_sqlite=(
        f"SELECT node_id, operation_id FROM maintenance_lease WHERE expires_at > :now AND node_id IN ({_IDS_SQLITE})"
    ),
)
RECENT_OF = Sql(
    "SELECT node_id, kind, state, ended_at FROM maintenance_operation WHERE ended_at IS NOT NULL"
    f" AND node_id IN ({_IDS}) ORDER BY id DESC",
    on_sqlite=(
        "SELECT node_id, kind, state, ended_at FROM maintenance_operation WHERE ended_at IS NOT NULL"
        f" AND node_id IN ({_IDS_SQLITE}) ORDER BY id DESC"
    ),
)
COUNT_OPEN = Sql(
    f"SELECT COALESCE(w.principal_id, 0), count(*) FROM {_OPEN} LEFT JOIN owner w ON w.object_id = o.node_id"
    " GROUP BY w.principal_id"
)
INSERT = Sql(
    "INSERT INTO maintenance_rewrite (operation_id, metalake_id, priority, asked_at, due_at, attempts, options)"
    " VALUES (:id, :metalake, :priority, :now, :now, 0, :options)"
)
START = Sql(
    "UPDATE maintenance_operation SET state = 'running', result = NULL, leased_at = :now WHERE id = :id AND ended_at IS"
    " NULL"
)
REQUEUE = Sql(
    "UPDATE maintenance_operation SET state = 'waiting', result = :result WHERE id = :id AND ended_at IS NULL"
)
RESTATE = Sql(
    "UPDATE maintenance_operation SET result = :result WHERE id = :id AND state = 'waiting' AND ended_at IS NULL"
)
RESCHEDULE = Sql("UPDATE maintenance_rewrite SET due_at = :due WHERE operation_id = :id AND priority < :below")
IS_WAITING = Sql(
    "SELECT 1 FROM maintenance_rewrite r WHERE r.operation_id = :id AND r.priority < :below"
    " AND NOT EXISTS (SELECT 1 FROM maintenance_lease l WHERE l.operation_id = :id)"
)
NOT_BEGUN = Sql("UPDATE maintenance_operation SET leased_at = NULL WHERE id = :id AND ended_at IS NULL")
DELAY = Sql(
    "UPDATE maintenance_rewrite SET due_at = CAST(:now AS bigint)"
    " + CAST(:delay AS bigint) * CASE WHEN :failed = 1 THEN CAST(1 AS bigint) << CAST(attempts AS integer) ELSE 1 END,"
    " attempts = attempts + :failed WHERE operation_id = :id"
    " RETURNING attempts"
)
_IS_HELD_BACK = (
    "EXISTS (SELECT 1 FROM maintenance_rewrite r WHERE r.operation_id = :id AND r.priority < :priority)"
    " AND NOT EXISTS (SELECT 1 FROM maintenance_lease l WHERE l.operation_id = :id)"
)
ASSIGN_TO_USER = Sql(
    "UPDATE maintenance_operation SET user_name = :user, policy = NULL, result = NULL WHERE id = :id AND"
    f" {_IS_HELD_BACK}"
)
PRIORITIZE = Sql(
    "UPDATE maintenance_rewrite SET priority = :priority, options = :options, due_at = :now WHERE operation_id = :id"
)
SET_OPTIONS = Sql("UPDATE maintenance_rewrite SET options = :options WHERE operation_id = :id")
OPTIONS_OF = Sql("SELECT options FROM maintenance_rewrite WHERE operation_id = :id")
OPTIONS_OF_KIND = Sql(
    "SELECT o.id, r.options FROM maintenance_operation o JOIN maintenance_rewrite r ON r.operation_id = o.id"
    " WHERE o.node_id = :node AND o.kind = :kind ORDER BY o.id"
)
DELETE = Sql("DELETE FROM maintenance_rewrite WHERE operation_id = :id")
_LEASE = "node_id, operation_id, token_id, holder, expires_at, commits"
TAKE = Sql(
    f"INSERT INTO maintenance_lease ({_LEASE}) VALUES (:node, :id, :token, :holder, :expires, 0) ON CONFLICT DO NOTHING"
)
_OF_METALAKE = "EXISTS (SELECT 1 FROM maintenance_rewrite r WHERE r.operation_id = :id AND r.metalake_id = :metalake)"
"""True for operations in the queue of a metalake, which executors lease; False for operations of the server itself."""
RENEW = Sql(
    "UPDATE maintenance_lease SET expires_at = :expires WHERE operation_id = :id AND holder = :holder"
    f" AND expires_at > :now AND {_OF_METALAKE}"
)
RENEW_SERVER_LEASE = Sql("UPDATE maintenance_lease SET expires_at = :expires WHERE operation_id = :id AND token_id = 0")
COMMIT = Sql(
    "UPDATE maintenance_lease SET commits = commits + 1 WHERE token_id = :token AND node_id = :node"
    " AND expires_at > :now"
)
RELEASE = Sql("DELETE FROM maintenance_lease WHERE operation_id = :id")
LEASE_OF_HOLDER = Sql(
    f"SELECT {_LEASE} FROM maintenance_lease WHERE operation_id = :id AND holder = :holder AND {_OF_METALAKE}"
)
BY_TOKEN = Sql(f"SELECT {_LEASE} FROM maintenance_lease WHERE token_id = :token")
LEASE_ENDS = Sql("SELECT expires_at FROM maintenance_lease WHERE operation_id = :id")
OF_TABLE = Sql(f"SELECT {_LEASE} FROM maintenance_lease WHERE node_id = :node")
OVER = Sql(f"SELECT {_LEASE} FROM maintenance_lease WHERE expires_at <= :now ORDER BY node_id LIMIT 1000")
_GONE = "NOT EXISTS (SELECT 1 FROM maintenance_operation o WHERE o.id = {}.operation_id)"
SWEEPS = tuple(
    Sql(f"DELETE FROM {table} WHERE {_GONE.format(table)}") for table in ("maintenance_rewrite", "maintenance_lease")
)
"""Statements that delete rows whose operation was deleted with its table."""


class WaitingRewrite(NamedTuple):
    """An operation that waits for an executor; `options` is a JSON object that the services define."""

    operation_id: int
    node_id: int
    catalog_id: int
    metalake_id: int
    kind: str
    user: str
    policy: str | None
    attempts: int
    options: str
    bytes: int | None
    priority: int
    owner_id: int
    """The owner of the table; 0 for none."""
    place: int
    """Its position among the due operations on tables of the same owner, from 1; 0 for an operation that is not due."""


class DelayedRewrite(NamedTuple):
    """An operation that is not due yet, with the stored reason of its delay."""

    row: WaitingRewrite
    reason: str | None


class RecentUse(NamedTuple):
    """The count and bytes of the operations of one owner's tables under one policy that were leased in the last 24
    hours. `policy` None: operations without a policy.
    """

    owner_id: int
    policy: str | None
    bytes: int
    operations: int
    metalake_id: int
    """The metalake of the tables: names of policies are those of a metalake."""


class LeaseRow(NamedTuple):
    """A lease of a table. `token_id` is 0 for an operation of the server itself."""

    node_id: int
    operation_id: int
    token_id: int
    holder: str
    expires_at: int
    commits: int

    def is_over(self, now_ms: int) -> bool:
        """Return whether the lease has expired, so that any other operation may end it."""
        return self.expires_at <= now_ms


class EndedOperation(NamedTuple):
    """An operation that ended: its table, kind, state and end time in milliseconds since 1970."""

    node_id: int
    kind: str
    state: str
    ended_at: int


def metalake_due(now_ms: int) -> Load[str | None]:
    """Read the name of a metalake in which a due operation waits for an executor, or None."""
    rows = yield DUE_METALAKE, {"now": now_ms}
    return str(rows[0][0]) if rows else None


def delayed_rewrites(now_ms: int, *, below: int) -> Load[list[DelayedRewrite]]:
    """Read the operations of a priority below `below` that are not due yet, the oldest `DELAYED_MAX`."""
    rows = yield DELAYED, {"now": now_ms, "below": below, "limit": DELAYED_MAX}
    return [DelayedRewrite(WaitingRewrite(*row[:-1]), row[-1]) for row in rows]


def recent_use_read(now_ms: int) -> Load[list[RecentUse]]:
    """Read the operations of the last 24 hours, counted by owner, policy and metalake."""
    return [RecentUse(*row) for row in (yield USED, {"since": now_ms - DAY_MS})]


def open_rewrites(node_ids: Sequence[int]) -> Load[dict[tuple[int, str], int]]:
    """Read the ids of unfinished operations of some tables, by (table id, kind)."""
    return {(row[0], row[1]): row[2] for row in (yield OPEN_OF, {"nodes": dumps(node_ids)})}


def leased_operations(node_ids: Sequence[int], *, now_ms: int) -> Load[dict[int, int]]:
    """Read the operations that have the unexpired leases of some tables, by table id."""
    return {row[0]: row[1] for row in (yield LEASED_OF, {"nodes": dumps(node_ids), "now": now_ms})}


def ended_operations(node_ids: Sequence[int]) -> Load[list[EndedOperation]]:
    """Read the operations on some tables that ended, newest first."""
    return [EndedOperation(*row) for row in (yield RECENT_OF, {"nodes": dumps(node_ids)})]


def lease_of_table(node_id: int) -> Load[LeaseRow | None]:
    """Read the lease of a table, even if it has expired; None if there is none."""
    rows = yield OF_TABLE, {"node": node_id}
    return LeaseRow(*rows[0]) if rows else None


def open_rewrites_counts() -> Load[dict[int, int]]:
    """Count the operations that wait or are leased, by the owner of their tables; owner 0 means that the table has no
    owner.
    """
    return {row[0]: row[1] for row in (yield COUNT_OPEN, {})}


def lease_by_token(token_id: int) -> Load[LeaseRow | None]:
    """Read the lease whose executor authenticates with this token, or None."""
    rows = yield BY_TOKEN, {"token": token_id}
    return LeaseRow(*rows[0]) if rows else None


def lease_end_read(operation_id: int) -> Load[int | None]:
    """Read when the lease of an operation ends, in milliseconds since 1970; None if it has no lease."""
    rows = yield LEASE_ENDS, {"id": operation_id}
    return int(rows[0][0]) if rows else None


def options_of_kind_read(node_id: int, *, kind: str) -> Load[dict[int, str]]:
    """Read the stored options of a table's operations of a kind that have not ended, by their ids."""
    rows = yield OPTIONS_OF_KIND, {"node": node_id, "kind": kind}
    return {row[0]: str(row[1]) for row in rows}


def options_read(operation_id: int) -> Load[str | None]:
    """Read the stored options of an operation that has not ended, or None."""
    rows = yield OPTIONS_OF, {"id": operation_id}
    return str(rows[0][0]) if rows else None


class RewriteWrites(Writes):
    """Reads and writes queued operations and the leases of tables inside a transaction."""

    def add(self, operation_id: int, *, metalake_id: int, priority: int, options: str) -> None:
        """Queue an operation for an executor."""
        self.tx.count(
            INSERT,
            {
                "id": operation_id,
                "metalake": metalake_id,
                "priority": priority,
                "options": options,
                "now": self.tx.now_ms,
            },
        )

    def due(self, metalake_id: int, *, limit: int) -> list[WaitingRewrite]:
        """Read the due operations of a metalake whose tables have no unexpired lease, at most `limit` for each owner.

        Owners alternate: first the most urgent operation of each (priority times waiting time), then the second, etc.
        """
        rows = self.tx.rows(DUE, {"metalake": metalake_id, "now": self.tx.now_ms, "limit": limit})
        return [WaitingRewrite(*row) for row in rows]

    def recent_use(self) -> list[RecentUse]:
        """Read the operation counts of the last 24 hours inside the transaction, like `recent_use_read`."""
        return [RecentUse(*row) for row in self.tx.rows(USED, {"since": self.tx.now_ms - DAY_MS})]

    def open_of(self, node_id: int) -> dict[str, int]:
        """Read the ids of a table's unfinished operations, by kind."""
        return {row[1]: row[2] for row in self.tx.rows(OPEN_OF, {"nodes": dumps([node_id])})}

    def prioritize(self, operation_id: int, *, user: str, priority: int, options: str) -> bool:
        """Turn a waiting operation of a policy into one that a user requested, and make it due now.

        Returns False for an operation that is leased, or has this priority or a higher one already: it is not changed.
        """
        is_assigned = self.tx.count(ASSIGN_TO_USER, {"id": operation_id, "user": user, "priority": priority}) > 0
        if is_assigned:
            params: Params = {"id": operation_id, "priority": priority, "options": options, "now": self.tx.now_ms}
            self.tx.count(PRIORITIZE, params)
        return is_assigned

    def options_of(self, operation_id: int) -> str | None:
        """Read the stored options of an operation that has not ended inside the transaction, or None."""
        rows = self.tx.rows(OPTIONS_OF, {"id": operation_id})
        return str(rows[0][0]) if rows else None

    def options_of_kind(self, node_id: int, *, kind: str) -> dict[int, str]:
        """Read options inside the transaction, like `options_of_kind_read`."""
        return {row[0]: str(row[1]) for row in self.tx.rows(OPTIONS_OF_KIND, {"node": node_id, "kind": kind})}

    def set_options(self, operation_id: int, options: str) -> None:
        """Replace the stored options of a queued operation, a JSON object."""
        self.tx.count(SET_OPTIONS, {"id": operation_id, "options": options})

    def take(self, operation_id: int, *, node_id: int, token_id: int, holder: str, lease_ms: int) -> bool:
        """Lease a table for an operation and mark the operation as running. Returns False if the table has a lease."""
        count = self.tx.count(
            TAKE,
            {
                "node": node_id,
                "id": operation_id,
                "token": token_id,
                "holder": holder,
                "expires": self.tx.now_ms + lease_ms,
            },
        )
        if count:
            self.tx.count(START, {"id": operation_id, "now": self.tx.now_ms})
        return bool(count)

    def renew(self, operation_id: int, *, metalake_id: int, holder: str, lease_ms: int) -> bool:
        """Renew a holder's lease for an operation of a metalake. Returns False if it has expired or does not exist."""
        now_ms = self.tx.now_ms
        params: Params = {
            "id": operation_id,
            "metalake": metalake_id,
            "holder": holder,
            "now": now_ms,
            "expires": now_ms + lease_ms,
        }
        return self.tx.count(RENEW, params) > 0

    def renew_server_lease(self, operation_id: int, *, lease_ms: int) -> bool:
        """Renew the lease of an operation of the server itself. Returns False if another operation has ended it."""
        return self.tx.count(RENEW_SERVER_LEASE, {"id": operation_id, "expires": self.tx.now_ms + lease_ms}) > 0

    def record_commit(self, token_id: int, *, node_id: int) -> bool:
        """Count a commit under an unexpired lease. Returns False if the token has no unexpired lease of the table."""
        return self.tx.count(COMMIT, {"token": token_id, "node": node_id, "now": self.tx.now_ms}) > 0

    def lease_of_holder(self, operation_id: int, *, metalake_id: int, holder: str) -> LeaseRow | None:
        """Read a holder's lease for an operation of a metalake, or None."""
        rows = self.tx.rows(LEASE_OF_HOLDER, {"id": operation_id, "metalake": metalake_id, "holder": holder})
        return LeaseRow(*rows[0]) if rows else None

    def lease_of(self, node_id: int) -> LeaseRow | None:
        """Read the lease of a table, even if it has expired; None if there is none."""
        rows = self.tx.rows(OF_TABLE, {"node": node_id})
        return LeaseRow(*rows[0]) if rows else None

    def free(self, lease: LeaseRow) -> None:
        """Delete a lease without changing its operation."""
        self.tx.count(RELEASE, {"id": lease.operation_id})

    def read_expired(self) -> list[LeaseRow]:
        """Read up to 1000 expired leases."""
        return [LeaseRow(*row) for row in self.tx.rows(OVER, {"now": self.tx.now_ms})]

    def return_to_queue(self, operation_id: int, *, delay_ms: int, failed: bool, reason: str) -> int:
        """End an operation's lease, and return it to the queue with a reason. Returns how often it has failed.

        It is due after `delay_ms`, doubled for each previous failure if it `failed`. A failed operation has rewritten
        files, so its bytes still count toward the limits.
        """
        self.tx.count(RELEASE, {"id": operation_id})
        self.tx.count(REQUEUE, {"id": operation_id, "result": reason})
        if not failed:
            self.tx.count(NOT_BEGUN, {"id": operation_id})
        params: Params = {"id": operation_id, "now": self.tx.now_ms, "delay": delay_ms, "failed": int(failed)}
        rows = self.tx.rows(DELAY, params)
        return int(rows[0][0]) if rows else 0

    def is_waiting(self, operation_id: int, *, below: int) -> bool:
        """Return whether an operation is in the queue without a lease, and its priority is below `below`."""
        return bool(self.tx.rows(IS_WAITING, {"id": operation_id, "below": below}))

    def reschedule(self, operation_id: int, *, delay_ms: int, reason: str | None, below: int) -> None:
        """Make a waiting operation due after `delay_ms`, and store the reason.

        No-op unless its priority is below `below`; operations that users request have a higher priority than those of
        policies. For a leased operation only the due time changes, and the end of the lease replaces it.
        """
        params: Params = {"id": operation_id, "due": self.tx.now_ms + delay_ms, "below": below}
        if self.tx.count(RESCHEDULE, params):
            self.tx.count(RESTATE, {"id": operation_id, "result": reason})

    def end(self, operation_id: int) -> None:
        """End the lease of an operation, and remove the operation from the queue."""
        self.tx.count(RELEASE, {"id": operation_id})
        self.tx.count(DELETE, {"id": operation_id})
