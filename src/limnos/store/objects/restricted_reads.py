# SPDX-License-Identifier: Apache-2.0
"""Directories of data files that were rewritten for restricted users: the readers of each, their expiry, and its size
in bytes.

Must not know files. No decision and no cache depends on these rows, so none leaves a change row. Each row stands for
one reader of one directory. If all rows of a directory have expired, first the rows are deleted and then the files, so
that no reader can join a directory that is being deleted.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.model.principals import Requester
from limnos.store.sql import Load, Params, Sql
from limnos.store.transaction import Writes

JOIN_MS: Final = 60_000
"""The minimum remaining lifetime of a directory that can be joined, in milliseconds, so that no reader joins an
expiring directory.
"""
ENDED_AT_ONCE: Final = 100
_OWN = "user_name = :user AND user_id = :user_id"
_MINE = f"directory = :directory AND {_OWN}"
SHARED = Sql(
    "SELECT directory FROM restricted_read WHERE table_id = :table AND binding = :binding AND expires_at > :until"
    " ORDER BY expires_at DESC, directory LIMIT 1"
)
OF_TABLE = Sql("SELECT coalesce(sum(bytes), 0) FROM restricted_read WHERE table_id = :table")
OF_READER = Sql(
    "SELECT coalesce(sum(bytes), 0), coalesce(sum(CASE WHEN plan <> '' AND expires_at > :now THEN 1 ELSE 0 END), 0),"
    f" coalesce(min(expires_at), 0) FROM restricted_read WHERE {_OWN}"
)
INSERT = Sql(
    "INSERT INTO restricted_read (directory, user_name, user_id, table_id, binding, plan, plans, bytes, expires_at)"
    " VALUES (:directory, :user, :user_id, :table, :binding, :plan, 1, 0, :expires)"
)
AGAIN = Sql(f"UPDATE restricted_read SET plans = plans + 1, expires_at = :expires WHERE {_MINE}")
ADD = Sql(f"UPDATE restricted_read SET bytes = bytes + :bytes WHERE {_MINE}")
FIND = Sql(
    f"SELECT directory FROM restricted_read WHERE table_id = :table AND {_OWN} AND"
    " (plan = :plan OR (plan = '' AND binding = :binding)) ORDER BY plan DESC, expires_at DESC LIMIT 1"
)
LEAVE = Sql(f"UPDATE restricted_read SET plans = plans - 1 WHERE {_MINE} AND plans > 0")
IDLE = Sql(f"UPDATE restricted_read SET expires_at = :expires WHERE {_MINE} AND plans = 0 AND expires_at > :expires")
OVER = Sql(
    "SELECT DISTINCT r.directory FROM restricted_read r WHERE r.expires_at <= :now AND r.directory > :low AND"
    " r.directory < :high AND NOT EXISTS (SELECT 1 FROM restricted_read o WHERE o.directory = r.directory AND"
    " o.expires_at > :now) LIMIT :limit"
)
KNOWN = Sql("SELECT DISTINCT directory FROM restricted_read")
NEEDED = Sql("SELECT 1 FROM restricted_read WHERE directory = :directory AND expires_at > :now LIMIT 1")
DELETE = Sql("DELETE FROM restricted_read WHERE directory = :directory")


class RestrictedReadUsage(NamedTuple):
    """The bytes of rewritten files of a table and for a reader, the count of the reader's unexpired directories of one
    plan each, and the earliest expiry of the reader's directories in milliseconds since 1970 (0 for none).
    """

    table_bytes: int
    reader_bytes: int
    reader_directories: int
    first_end_ms: int


def is_directory_needed(directory: str, *, now_ms: int) -> Load[bool]:
    """Read whether a plan needs the files of a directory."""
    return bool((yield NEEDED, {"directory": directory, "now": now_ms}))


class RestrictedReadWrites(Writes):
    """Reads and writes the directories of restricted readers inside a transaction."""

    def usage(self, table_id: int, requester: Requester) -> RestrictedReadUsage:
        """Read the storage that rewritten files of a table, and all rewritten files of a reader, use at present."""
        ((of_table,),) = self.tx.rows(OF_TABLE, {"table": table_id})
        ((of_reader, directories, first),) = self.tx.rows(OF_READER, {**_who(requester), "now": self.tx.now_ms})
        return RestrictedReadUsage(int(of_table), int(of_reader), int(directories), int(first))

    def shared(self, table_id: int, binding: str) -> str | None:
        """Read the directory that readers of a table with the same restrictions share, or None.

        `binding` is the digest of these restrictions.
        """
        rows = self.tx.rows(SHARED, {"table": table_id, "binding": binding, "until": self.tx.now_ms + JOIN_MS})
        return rows[0][0] if rows else None

    def hold(
        self, directory: str, requester: Requester, *, table_id: int, binding: str, plan: str, keep_ms: int
    ) -> None:
        """Record that a reader uses a directory for `keep_ms`. `plan` is "" for a shared directory."""
        mine: Params = {**_who(requester), "directory": directory, "expires": self.tx.now_ms + keep_ms}
        if not self.tx.count(AGAIN, mine):
            self.tx.count(INSERT, {**mine, "table": table_id, "binding": binding, "plan": plan})

    def add(self, directory: str, requester: Requester, *, size: int) -> None:
        """Add `size` to the bytes written to a directory for a reader."""
        self.tx.count(ADD, {**_who(requester), "directory": directory, "bytes": size})

    def end_plan(self, requester: Requester, *, table_id: int, binding: str, plan: str, idle_ms: int) -> None:
        """End a reader's plan. When its last plan ends, the reader's row expires after `idle_ms`."""
        rows = self.tx.rows(FIND, {**_who(requester), "table": table_id, "plan": plan, "binding": binding})
        if not rows:
            return
        mine: Params = {**_who(requester), "directory": rows[0][0]}
        self.tx.count(LEAVE, mine)
        self.tx.count(IDLE, {**mine, "expires": self.tx.now_ms + idle_ms})

    def end(self, home: str) -> list[str]:
        """Delete the rows of up to `ENDED_AT_ONCE` directories below the warehouse location `home` whose readers have
        all expired.

        Returns the directories, whose files the caller must delete.
        """
        params: Params = {"now": self.tx.now_ms, "low": f"{home}/", "high": f"{home}0", "limit": ENDED_AT_ONCE}
        ended_homes = [row[0] for row in self.tx.rows(OVER, params)]
        for directory in ended_homes:
            self.tx.count(DELETE, {"directory": directory})
        return ended_homes

    def read_known(self) -> set[str]:
        """Read the registered directories of rewritten files, including those whose readers have all expired."""
        return {row[0] for row in self.tx.rows(KNOWN, {})}


def _who(requester: Requester) -> Params:
    return {"user": requester.name, "user_id": requester.id}
