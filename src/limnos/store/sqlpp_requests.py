"""Requests of the query service that take a while, as rows, and the results of those that are fetched later.

May import `model` and the room's `sql`. Each row has its node, which says that it lives; a row that still runs and whose node has said nothing for too
long belongs to a node that is gone. Nothing that anybody decides or caches rests on these rows, so they leave no change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.model.entities import IMMEDIATE, RUNNING, StatementRequest
from limnos.store.sql import Query, Row, Sql

if TYPE_CHECKING:
    from limnos.model.principals import Requester
    from limnos.store.sql import Params
    from limnos.store.transaction import StoreTransaction

LISTED_MAX = 1_000


_FIELDS = StatementRequest.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_OWN = "user_name = :user AND user_id = :user_id"
INSERT = Sql(
    f"INSERT INTO sqlpp_request ({_COLUMNS}, cancelled) VALUES ({', '.join(f':{each}' for each in _FIELDS)}, 0)"
)
FIND = Sql(f"SELECT {_COLUMNS} FROM sqlpp_request WHERE handle = :handle AND {_OWN}")
RUNS = Sql(
    f"SELECT {_COLUMNS} FROM sqlpp_request WHERE state = '{RUNNING}' AND alive_until > :now AND (:everybody = 1 OR ({_OWN}))"
    f" ORDER BY started_at, handle LIMIT {LISTED_MAX}"
)
BEAT = Sql(f"UPDATE sqlpp_request SET alive_until = :until WHERE holder = :holder AND state = '{RUNNING}'")
CANCELLED = Sql(f"SELECT handle FROM sqlpp_request WHERE holder = :holder AND state = '{RUNNING}' AND cancelled = 1")
_CANCEL = (
    f"UPDATE sqlpp_request SET cancelled = 1 WHERE state = '{RUNNING}' AND alive_until > :now AND (:everybody = 1 OR ({_OWN}))"
    " AND {} = :id RETURNING request_id"
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
    found = StatementRequest(*row)
    return msgspec.structs.replace(found, outcome=bytes(found.outcome))


def request_query(handle: str, asker: Requester) -> Query:
    """Ask for a request by its handle, for whose it is."""
    return FIND, {"handle": handle, "user": asker.name, "user_id": asker.id}


def runs_query(asker: Requester, *, everybody: bool, now_ms: int) -> Query:
    """Ask for the requests that run on nodes that live, of one or of all."""
    return RUNS, {"user": asker.name, "user_id": asker.id, "everybody": int(everybody), "now": now_ms}


def cancelled_query(holder: str) -> Query:
    """Ask for the handles of a node's requests that somebody wants to end."""
    return CANCELLED, {"holder": holder}


def part_query(handle: str, number: int) -> Query:
    """Ask for one part of a result; they count from 0."""
    return PARTS, {"handle": handle, "number": number}


def rows_of(found: list[Row]) -> list[StatementRequest]:
    """The requests of rows."""
    return [_row(row) for row in found]


class RequestWrites:
    """What becomes of requests in the store."""

    def __init__(self, tx: StoreTransaction) -> None:
        self.tx = tx

    def insert(self, row: StatementRequest) -> None:
        """Take note of a request."""
        self.tx.count(INSERT, msgspec.structs.asdict(row))

    def beat(self, holder: str, *, lease_ms: int) -> None:
        """Say that a node lives, and so what it runs."""
        self.tx.count(BEAT, {"holder": holder, "until": self.tx.now_ms + lease_ms})

    def cancel(self, by: str, wanted: str, *, asker: Requester, everybody: bool) -> list[str]:
        """Ask the nodes that run requests of an id to end them; `by` is a column of `CANCEL`. Returns their own ids."""
        params: Params = {
            "id": wanted, "user": asker.name, "user_id": asker.id, "everybody": int(everybody), "now": self.tx.now_ms,
        }  # fmt: skip
        return [row[0] for row in self.tx.rows(CANCEL[by], params)]

    def kept(self, asker: Requester) -> tuple[int, int]:
        """Count what is kept for a user: handles, and bytes of results."""
        ((count, size),) = self.tx.rows(KEPT, {"user": asker.name, "user_id": asker.id})
        return count, int(size)

    def add(self, handle: str, number: int, *, body: bytes, count: int) -> bool:
        """Keep a part of a result; False when nobody waits for it any more."""
        if not self.tx.count(GROW, {"handle": handle, "size": len(body), "count": count}):
            return False
        self.tx.count(PART, {"handle": handle, "number": number, "body": body})
        return True

    def end(self, handle: str, *, state: str, outcome: bytes, keep_ms: int) -> None:
        """Note how a request went, and how long that is kept. One that has failed keeps no results."""
        if state != "success":
            self.tx.count(DELETE_PARTS, {"handle": handle})
        self.tx.count(END, {"handle": handle, "state": state, "outcome": outcome, "expires": self.tx.now_ms + keep_ms})

    def delete(self, handle: str) -> None:
        """Forget a request with its results."""
        self.tx.count(DELETE_PARTS, {"handle": handle})
        self.tx.count(DELETE, {"handle": handle})

    def expire(self, limit: int) -> int:
        """Forget what was kept long enough, and what nodes left that are gone; returns how many."""
        found = [row[0] for row in self.tx.rows(OVER, {"now": self.tx.now_ms, "limit": limit})]
        for handle in found:
            self.delete(handle)
        return len(found)
