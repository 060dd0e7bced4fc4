# SPDX-License-Identifier: Apache-2.0
"""Open requests for access: who asks for which preset on which path, and when. Decision record 0282.

Must not know objects: a path may name one that does not exist. No decision and no cache depends on these rows, so none
leaves a change row. A request that is granted, declined, withdrawn or too old is deleted; `access_answers` keeps the
answers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from limnos.model.kinds import Kind
from limnos.store.sql import Load, Params, Row, Sql
from limnos.store.transaction import Writes

KEPT_MS: Final = 30 * 86_400_000
"""The time after which a request without an answer is deleted, in milliseconds."""
PATH_BYTES_MAX: Final = 2_400
"""The maximum number of bytes of a path as JSON: a key of an index of PostgreSQL has 2,704 at most."""
KINDS: Final = {int(each): each for each in Kind}
"""Kinds by the numbers of their rows."""
KEY_CONDITION: Final = "metalake_id = :metalake AND user_id = :user AND kind = :kind AND path = :path"
NEWEST = Sql(
    "SELECT user_id, kind, path, preset, asked_at, reason FROM access_request WHERE metalake_id = :metalake"
    " AND asked_at > :since AND asked_at <= :before ORDER BY asked_at DESC, user_id DESC, kind DESC, path DESC"
    " LIMIT :limit OFFSET :skipped"
)
OWN = Sql(
    "SELECT user_id, kind, path, preset, asked_at, reason FROM access_request WHERE metalake_id = :metalake"
    " AND user_id = :user AND asked_at > :since ORDER BY asked_at DESC, kind, path"
)
COUNT = Sql("SELECT count(*) FROM access_request WHERE metalake_id = :metalake AND user_id = :user")
PUT = Sql(
    "INSERT INTO access_request (metalake_id, user_id, kind, path, preset, asked_at, reason)"
    " VALUES (:metalake, :user, :kind, :path, :preset, :asked, :reason) ON CONFLICT (metalake_id, user_id, kind, path)"
    " DO UPDATE SET preset = excluded.preset, asked_at = excluded.asked_at, reason = excluded.reason"
)
FIND = Sql(f"SELECT preset, asked_at, reason FROM access_request WHERE {KEY_CONDITION} AND asked_at > :since")
DROP = Sql(f"DELETE FROM access_request WHERE {KEY_CONDITION}")
PRUNE = Sql("DELETE FROM access_request WHERE metalake_id = :metalake AND asked_at <= :since")
SWEEP = Sql(
    "DELETE FROM access_request WHERE NOT EXISTS (SELECT 1 FROM principal p WHERE p.id = access_request.user_id"
    f" AND p.deleted = 0) OR asked_at <= :now - {KEPT_MS}"
)


class AccessRequestKey(NamedTuple):
    """The key of a request: the metalake, the user who asks, and the object's kind and path, which begins with the
    catalog's name.
    """

    metalake_id: int
    user_id: int
    kind: Kind
    path: tuple[str, ...]

    @property
    def params(self) -> Params:
        """The parameters of the statements for one request."""
        path = msgspec.json.encode(self.path).decode()
        return {"metalake": self.metalake_id, "user": self.user_id, "kind": int(self.kind), "path": path}

    @property
    def is_too_long(self) -> bool:
        """Whether the path has more than `PATH_BYTES_MAX` bytes."""
        return len(msgspec.json.encode(self.path)) > PATH_BYTES_MAX


class AccessRequestRow(NamedTuple):
    """A request: its key, the preset that the user asks for, its time in milliseconds since 1970, and the user's
    reason, which may be empty.
    """

    key: AccessRequestKey
    preset: str
    asked_at: int
    reason: str


class RequestCursor(NamedTuple):
    """The position after a part of the requests of a metalake, the newest first: the time of its last one in
    milliseconds since 1970, and how many of the part have that time.
    """

    asked_at: int = 2**53
    same_ms: int = 0


FIRST: Final = RequestCursor()
"""The position before the newest request."""


def access_requests_read(
    metalake_id: int, *, now_ms: int, limit: int, after: RequestCursor = FIRST
) -> Load[list[AccessRequestRow]]:
    """Read the open requests of a metalake after a position, the newest first."""
    params = {"metalake": metalake_id, "since": now_ms - KEPT_MS, "before": after.asked_at, "skipped": after.same_ms}
    rows = yield NEWEST, {**params, "limit": limit}
    return [_row(metalake_id, row) for row in rows]


def own_access_requests_read(metalake_id: int, user_id: int, *, now_ms: int) -> Load[list[AccessRequestRow]]:
    """Read the open requests of a user, the newest first."""
    rows = yield OWN, {"metalake": metalake_id, "user": user_id, "since": now_ms - KEPT_MS}
    return [_row(metalake_id, row) for row in rows]


def _row(metalake_id: int, row: Row) -> AccessRequestRow:
    user, kind, path, preset, asked_at, reason = row
    levels = msgspec.json.decode(path, type=tuple[str, ...])
    return AccessRequestRow(AccessRequestKey(metalake_id, user, KINDS[kind], levels), preset, asked_at, reason)


class AccessRequestWrites(Writes):
    """Writes requests for access inside a transaction."""

    def count(self, metalake_id: int, user_id: int) -> int:
        """Count a user's open requests, after the deletion of those of the metalake that are too old."""
        self.tx.count(PRUNE, {"metalake": metalake_id, "since": self.tx.now_ms - KEPT_MS})
        rows: int = self.tx.rows(COUNT, {"metalake": metalake_id, "user": user_id})[0][0]
        return rows

    def find(self, key: AccessRequestKey) -> AccessRequestRow | None:
        """Read an open request; None if there is none."""
        rows = self.tx.rows(FIND, {**key.params, "since": self.tx.now_ms - KEPT_MS})
        return AccessRequestRow(key, *rows[0]) if rows else None

    def put(self, key: AccessRequestKey, *, preset: str, reason: str) -> None:
        """Write a request; it replaces an earlier one of the user for the same object."""
        self.tx.count(PUT, {**key.params, "preset": preset, "asked": self.tx.now_ms, "reason": reason})

    def drop(self, key: AccessRequestKey) -> bool:
        """Delete a request. Returns whether it existed."""
        return self.tx.count(DROP, key.params) > 0
