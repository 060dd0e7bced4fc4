# SPDX-License-Identifier: Apache-2.0
"""Answers to requests for access, which the asking user reads for 30 days. Decision record 0301.

Must not know objects. No right comes from these rows: an open request is a row of another table, so that no reader can
take an answered request for an open one.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, cast

import msgspec

from limnos.store.identity.access_requests import (
    KEPT_MS,
    KEY_CONDITION,
    KINDS,
    AccessRequestKey,
    AccessRequestRow,
)
from limnos.store.sql import Load, Params, Row, Sql
from limnos.store.transaction import Writes

ANSWERS_MAX: Final = 50
"""The maximum number of answers to one user that are kept in a metalake: a further one replaces the oldest."""
Answer = Literal["granted", "declined"]
_OF_USER = "metalake_id = :metalake AND user_id = :user"
ANSWERS = Sql(
    "SELECT kind, path, preset, asked_at, reason, answer, answered_by, answered_at, note FROM access_answer"
    f" WHERE {_OF_USER} AND answered_at > :since ORDER BY answered_at DESC, kind, path"
)
PUT = Sql(
    "INSERT INTO access_answer (metalake_id, user_id, kind, path, preset, asked_at, reason, answer, answered_by,"
    " answered_at, note) VALUES (:metalake, :user, :kind, :path, :preset, :asked, :reason, :answer, :by, :answered,"
    " :note) ON CONFLICT (metalake_id, user_id, kind, path) DO UPDATE SET preset = excluded.preset,"
    " asked_at = excluded.asked_at, reason = excluded.reason, answer = excluded.answer,"
    " answered_by = excluded.answered_by, answered_at = excluded.answered_at, note = excluded.note"
)
DROP = Sql(f"DELETE FROM access_answer WHERE {KEY_CONDITION}")
TRIM = Sql(
    f"DELETE FROM access_answer WHERE {_OF_USER} AND (kind, path) NOT IN (SELECT kind, path FROM access_answer"
    f" WHERE {_OF_USER} ORDER BY answered_at DESC, kind, path LIMIT :most)"
)
SWEEP = Sql(
    "DELETE FROM access_answer WHERE NOT EXISTS (SELECT 1 FROM principal p WHERE p.id = access_answer.user_id"
    f" AND p.deleted = 0) OR answered_at <= :now - {KEPT_MS}"
)


class AccessAnswerRow(NamedTuple):
    """An answered request: what it was, the answer, who answered, when in milliseconds since 1970, and their note."""

    request: AccessRequestRow
    answer: Answer
    answered_by: str
    answered_at: int
    note: str


def access_answers_read(metalake_id: int, user_id: int, *, now_ms: int) -> Load[list[AccessAnswerRow]]:
    """Read the answers to a user's requests, the newest first."""
    rows = yield ANSWERS, {"metalake": metalake_id, "user": user_id, "since": now_ms - KEPT_MS}
    return [_answer_row(metalake_id, user_id, row=row) for row in rows]


def _answer_row(metalake_id: int, user_id: int, *, row: Row) -> AccessAnswerRow:
    kind, path, preset, asked_at, reason, answer, answered_by, answered_at, note = row
    levels = msgspec.json.decode(path, type=tuple[str, ...])
    key = AccessRequestKey(metalake_id, user_id, KINDS[kind], levels)
    return AccessAnswerRow(
        request=AccessRequestRow(key, preset, asked_at, reason),
        answer=cast("Answer", answer),
        answered_by=answered_by,
        answered_at=answered_at,
        note=note,
    )


class AccessAnswerWrites(Writes):
    """Writes answers inside a transaction."""

    def put(self, request: AccessRequestRow, *, answer: Answer, note: str = "") -> None:
        """Write the answer of the transaction's user to a request. Deletes the user's oldest answers over the limit."""
        values: Params = {
            "preset": request.preset,
            "asked": request.asked_at,
            "reason": request.reason,
            "answer": answer,
            "by": self.tx.actor,
            "answered": self.tx.now_ms,
            "note": note,
        }
        self.tx.count(PUT, {**request.key.params, **values})
        user = {"metalake": request.key.metalake_id, "user": request.key.user_id}
        self.tx.count(TRIM, {**user, "most": ANSWERS_MAX})

    def drop(self, key: AccessRequestKey) -> None:
        """Delete the answer to a request, if there is one."""
        self.tx.count(DROP, key.params)
