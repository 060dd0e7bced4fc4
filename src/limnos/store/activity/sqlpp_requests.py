# SPDX-License-Identifier: Apache-2.0
"""Long-running requests of the query service, and results that clients fetch later.

Must not know statements. The node that runs a request renews the row's lease; a running row with an expired lease
belongs to a dead node. No decision and no cache depends on these rows, so none leaves a change row.
"""

from __future__ import annotations

import msgspec

from limnos.model.entities import IMMEDIATE, RUNNING, StatementRequest
from limnos.model.principals import Requester
from limnos.store.sql import Params, Query, Row, Sql
from limnos.store.transaction import Writes

LISTED_MAX = 1_000
EXPIRED_AT_ONCE = 20
"""The number of expired results that one transaction deletes."""


_FIELDS = StatementRequest.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_OWN = "user_name = :user AND user_id = :user_id"
INSERT = Sql(
    f"INSERT INTO sqlpp_request ({_COLUMNS}, cancelled) VALUES ({', '.join(f':{each}' for each in _FIELDS)}, 0)"
)
FIND = Sql(f"SELECT {_COLUMNS} FROM sqlpp_request WHERE handle = :handle AND {_OWN}")
RUNS = Sql(
    f"SELECT {_COLUMNS} FROM sqlpp_request WHERE state = '{RUNNING}' AND alive_until > :now AND (:everybody = 1 OR"
    f" ({_OWN})) ORDER BY started_at, handle LIMIT {LISTED_MAX}"
)
BEAT = Sql(f"UPDATE sqlpp_request SET alive_until = :until WHERE holder = :holder AND state = '{RUNNING}'")
HELD = Sql(f"SELECT handle, cancelled FROM sqlpp_request WHERE holder = :holder AND state = '{RUNNING}'")
_CANCEL = (
    f"UPDATE sqlpp_request SET cancelled = 1 WHERE state = '{RUNNING}' AND alive_until > :now AND (:everybody = 1 OR"
    f" ({_OWN})) AND {{}} = :id RETURNING request_id"
)
CANCEL = {each: Sql(_CANCEL.format(each)) for each in ("request_id", "client_context_id", "handle")}
GROW = Sql(
    "UPDATE sqlpp_request SET size = size + :size, rows_count = rows_count + :count"
    f" WHERE handle = :handle AND state = '{RUNNING}' AND cancelled = 0"
)
PART = Sql("INSERT INTO sqlpp_result (handle, number, body) VALUES (:handle, :number, :body)")
PARTS = Sql("SELECT body FROM sqlpp_result WHERE handle = :handle AND number = :number")
END = Sql(
    "UPDATE sqlpp_request SET state = :state, outcome = :outcome, expires_at = :expires"
    f" WHERE handle = :handle AND state = '{RUNNING}'"
)
KEPT = Sql(f"SELECT count(*), coalesce(sum(size), 0) FROM sqlpp_request WHERE {_OWN} AND mode <> '{IMMEDIATE}'")
DELETE = Sql("DELETE FROM sqlpp_request WHERE handle = :handle")
DELETE_PARTS = Sql("DELETE FROM sqlpp_result WHERE handle = :handle")
OVER = Sql(
    "SELECT handle FROM sqlpp_request WHERE expires_at <= :now AND alive_until <= :now ORDER BY expires_at LIMIT :limit"
)


def _row(row: Row) -> StatementRequest:
    request = StatementRequest(*row)
    return msgspec.structs.replace(request, outcome=bytes(request.outcome))


def request_query(handle: str, requester: Requester) -> Query:
    """Return the statement that reads a user's request by its handle."""
    return FIND, {"handle": handle, "user": requester.name, "user_id": requester.id}


def runs_query(requester: Requester, *, everybody: bool, now_ms: int) -> Query:
    """Return the statement that reads the running requests of live nodes: of one user, or with `everybody` of all."""
    return RUNS, {"user": requester.name, "user_id": requester.id, "everybody": int(everybody), "now": now_ms}


def held_query(holder: str) -> Query:
    """Return the statement that reads the handles of a node's running requests, each with whether it was cancelled."""
    return HELD, {"holder": holder}


def part_query(handle: str, number: int) -> Query:
    """Return the statement that reads one part of a result. Parts are numbered from 0."""
    return PARTS, {"handle": handle, "number": number}


def rows_of(results: list[Row]) -> list[StatementRequest]:
    """Build `StatementRequest` values from rows of the table of requests."""
    return [_row(row) for row in results]


class RequestWrites(Writes):
    """Reads and writes SQL++ requests and their results inside a transaction."""

    def insert(self, row: StatementRequest) -> None:
        """Insert the row of a SQL++ request, before its execution begins."""
        self.tx.count(INSERT, msgspec.structs.asdict(row))

    def beat(self, holder: str, *, lease_ms: int) -> None:
        """Renew the leases of a node's running requests."""
        self.tx.count(BEAT, {"holder": holder, "until": self.tx.now_ms + lease_ms})

    def cancel(self, by: str, value: str, *, requester: Requester, everybody: bool) -> list[str]:
        """Mark the running requests that have a given id as cancelled; the nodes that run them stop the statements.

        Returns their request ids. `by` is the kind of the id in `value`: a key of `CANCEL`. With `everybody`, requests
        of other users are cancelled, too.
        """
        params: Params = {
            "id": value,
            "user": requester.name,
            "user_id": requester.id,
            "everybody": int(everybody),
            "now": self.tx.now_ms,
        }
        return [row[0] for row in self.tx.rows(CANCEL[by], params)]

    def count_results(self, requester: Requester) -> tuple[int, int]:
        """Return the number of a user's requests that store results, and the size of these results in bytes."""
        ((count, size),) = self.tx.rows(KEPT, {"user": requester.name, "user_id": requester.id})
        return count, int(size)

    def add(self, handle: str, number: int, *, body: bytes, count: int) -> bool:
        """Store the part `number` of a result, with `count` rows.

        Returns False if the request was cancelled or has ended.
        """
        if not self.tx.count(GROW, {"handle": handle, "size": len(body), "count": count}):
            return False
        self.tx.count(PART, {"handle": handle, "number": number, "body": body})
        return True

    def end(self, handle: str, *, state: str, outcome: bytes, keep_ms: int) -> None:
        """Store the outcome of a running request for `keep_ms`. The results of an unsuccessful request are deleted."""
        if state != "success":
            self.tx.count(DELETE_PARTS, {"handle": handle})
        self.tx.count(END, {"handle": handle, "state": state, "outcome": outcome, "expires": self.tx.now_ms + keep_ms})

    def delete(self, handle: str) -> None:
        """Delete a request with its results."""
        self.tx.count(DELETE_PARTS, {"handle": handle})
        self.tx.count(DELETE, {"handle": handle})

    def expire(self, limit: int) -> int:
        """Delete up to `limit` expired requests and requests of dead nodes. Returns the number of deleted requests."""
        results = [row[0] for row in self.tx.rows(OVER, {"now": self.tx.now_ms, "limit": limit})]
        for handle in results:
            self.delete(handle)
        return len(results)
