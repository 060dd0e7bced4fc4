# SPDX-License-Identifier: Apache-2.0
"""Orphan files of tables: candidates with their waiting time, files that are being deleted, and checks.

Must not know rules of maintenance. Rows are keyed by node id. No decision and no cache depends on them, so none leaves
a change row. A file is a candidate first, then it is marked for deletion: from then on commits of the table that
reference it are refused (`REMOVING`). Its row stays after the deletion (`DELETED`), so that the commit of a slow writer
is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json import dumps
from typing import Final, NamedTuple

from limnos.store.audit_notes import NOTE_NEW
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Load, Params, Sql
from limnos.store.transaction import Writes

CANDIDATE: Final = 0
REMOVING: Final = 1
"""The state of a file that is marked for deletion: commits of the table that reference it are refused."""
DELETED: Final = 2
_FILE = "node_id, name, size, modified_ms, first_seen_at, seen_at, waited_ms, state, reason"
FILES = Sql(f"SELECT {_FILE} FROM maintenance_orphan_file WHERE node_id = :node AND state <= :state ORDER BY name")
FENCED_TABLES = Sql("SELECT DISTINCT node_id FROM maintenance_orphan_file WHERE state >= 1")
MARKED_TABLES = Sql("SELECT DISTINCT node_id FROM maintenance_orphan_file WHERE state = 1")
REMOVING_OF = Sql("SELECT 1 FROM maintenance_orphan_file WHERE node_id = :node AND state = 1 LIMIT 1")
FENCED = Sql("SELECT name, state FROM maintenance_orphan_file WHERE node_id = :node AND state >= 1")
REMOVED = Sql(
    f"SELECT {_FILE} FROM maintenance_orphan_file WHERE node_id = :node AND state = 2 ORDER BY seen_at DESC, name LIMIT"
    " :limit"
)
INSERT = Sql(
    f"INSERT INTO maintenance_orphan_file ({_FILE})"
    " VALUES (:node, :name, :size, :modified, :now, :now, 0, :state, :reason)"
    " ON CONFLICT (node_id, name) DO UPDATE SET size = excluded.size, modified_ms = excluded.modified_ms,"
    " first_seen_at = excluded.first_seen_at, seen_at = excluded.seen_at, waited_ms = 0, state = excluded.state,"
    " reason = excluded.reason"
)
WAITED = Sql(
    "UPDATE maintenance_orphan_file SET waited_ms = waited_ms + :step, seen_at = :now WHERE node_id = :node AND"
    " state = 0"
)
DROP = Sql("DELETE FROM maintenance_orphan_file WHERE node_id = :node AND name = :name AND state < 2")
DROP_ALL = Sql("DELETE FROM maintenance_orphan_file WHERE node_id = :node AND state <= :state")
MARK = Sql(
    "UPDATE maintenance_orphan_file SET state = :state, reason = :reason, seen_at = :now"
    " WHERE node_id = :node AND name = :name"
)
TIDY = Sql("DELETE FROM maintenance_orphan_file WHERE state = 2 AND seen_at < :before")
_CHECK = "node_id, catalog_id, epoch, checked_at, listed, referenced, candidates, candidate_bytes, blocked, policy"
CHECK = Sql(f"SELECT {_CHECK} FROM maintenance_orphan_check WHERE node_id = :node")
CHECKS_OF = Sql(
    f"SELECT {_CHECK} FROM maintenance_orphan_check WHERE node_id IN"
    " (SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:nodes AS json)) v)",
    on_sqlite=f"SELECT {_CHECK} FROM maintenance_orphan_check WHERE node_id IN (SELECT value FROM json_each(:nodes))",
)
CHECKS = Sql(
    f"SELECT {_CHECK} FROM maintenance_orphan_check WHERE catalog_id = :catalog AND node_id > :after"
    " AND candidates > 0 ORDER BY node_id LIMIT :limit"
)
PUT_CHECK = Sql(
    f"INSERT INTO maintenance_orphan_check ({_CHECK}) VALUES (:node, :catalog, :epoch, :now, :listed, :referenced,"
    " :candidates, :bytes, :blocked, :policy) ON CONFLICT (node_id) DO UPDATE SET catalog_id = excluded.catalog_id,"
    " epoch = excluded.epoch, checked_at = excluded.checked_at, listed = excluded.listed,"
    " referenced = excluded.referenced, candidates = excluded.candidates,"
    " candidate_bytes = excluded.candidate_bytes, blocked = excluded.blocked, policy = excluded.policy"
)
SWEEPS = tuple(
    Sql(
        f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = {table}.node_id AND n.deleted = 0)"
        f" AND NOT {KEPT.format(f'{table}.node_id')}"
    )
    for table in ("maintenance_orphan_file", "maintenance_orphan_check")
)
DOCUMENTS = Sql(
    "SELECT d.node_id FROM document d JOIN node n ON n.id = d.node_id WHERE n.kind = :kind AND d.node_id > :after"
    f" AND (n.deleted = 0 OR {KEPT.format('d.node_id')}) ORDER BY d.node_id LIMIT :limit"
)
"""Tables with metadata, live or in the trash."""


class OrphanFileRow(NamedTuple):
    """An orphan file, by its path relative to the table's location.

    `waited_ms` is the sum of the times between checks, so that a jump of the system clock adds little.
    """

    node_id: int
    name: str
    size: int
    modified_ms: int
    first_seen_at: int
    seen_at: int
    waited_ms: int
    state: int
    reason: str


class OrphanCheckRow(NamedTuple):
    """The last check of a table; `blocked` is the reason why none of its files may be removed, if any."""

    node_id: int
    catalog_id: int
    epoch: int
    checked_at: int
    listed: int
    referenced: int
    candidates: int
    candidate_bytes: int
    blocked: str | None
    policy: str | None


class NewOrphan(NamedTuple):
    """A file that a check found for the first time, or found changed."""

    name: str
    size: int
    modified_ms: int


def orphan_files_read(node_id: int) -> Load[list[OrphanFileRow]]:
    """Read a table's files that are candidates for deletion, and those that are being deleted."""
    return [OrphanFileRow(*row) for row in (yield FILES, {"node": node_id, "state": REMOVING})]


def removed_files_read(node_id: int, *, limit: int) -> Load[list[OrphanFileRow]]:
    """Read up to `limit` deleted files of a table, the last deleted first."""
    return [OrphanFileRow(*row) for row in (yield REMOVED, {"node": node_id, "limit": limit})]


def fenced_tables_read() -> Load[frozenset[int]]:
    """Read the ids of tables whose files are being deleted, or were deleted recently."""
    return frozenset([row[0] for row in (yield FENCED_TABLES, {})])


def marked_tables_read() -> Load[frozenset[int]]:
    """Read the ids of tables with files that are being deleted."""
    return frozenset([row[0] for row in (yield MARKED_TABLES, {})])


def fenced_files_read(node_id: int) -> Load[dict[str, int]]:
    """Read the names of a table's files that are being deleted or were deleted, with their state."""
    return {row[0]: row[1] for row in (yield FENCED, {"node": node_id})}


def orphan_check_read(node_id: int) -> Load[OrphanCheckRow | None]:
    """Read the last check of a table."""
    rows = yield CHECK, {"node": node_id}
    return OrphanCheckRow(*rows[0]) if rows else None


def orphan_checks_read(node_ids: Sequence[int]) -> Load[dict[int, OrphanCheckRow]]:
    """Read the last checks of some tables, by node id."""
    return {row[0]: OrphanCheckRow(*row) for row in (yield CHECKS_OF, {"nodes": dumps(node_ids)})}


def orphan_checks_page(catalog_id: int, *, after: int, limit: int) -> Load[list[OrphanCheckRow]]:
    """Read the last checks of the tables of a catalog that have orphan files, by node id."""
    return [OrphanCheckRow(*row) for row in (yield CHECKS, {"catalog": catalog_id, "after": after, "limit": limit})]


def documents_after(after: int, *, kind: int, limit: int) -> Load[list[int]]:
    """Read the next ids of objects of a kind with a metadata document, live or in the trash."""
    return [row[0] for row in (yield DOCUMENTS, {"after": after, "kind": kind, "limit": limit})]


class OrphanFileWrites(Writes):
    """Reads and writes orphan files and checks inside a transaction."""

    def check(self, node_id: int) -> OrphanCheckRow | None:
        """Read the last check of a table."""
        rows = self.tx.rows(CHECK, {"node": node_id})
        return OrphanCheckRow(*rows[0]) if rows else None

    def of(self, node_id: int) -> list[OrphanFileRow]:
        """Read a table's files that are candidates for deletion, and those that are being deleted."""
        return [OrphanFileRow(*row) for row in self.tx.rows(FILES, {"node": node_id, "state": REMOVING})]

    def is_removing(self, node_id: int) -> bool:
        """Return whether files of a table are being deleted."""
        return bool(self.tx.rows(REMOVING_OF, {"node": node_id}))

    def put_check(self, row: OrphanCheckRow) -> None:
        """Store the check of a table. Its time is that of the transaction."""
        self.tx.count(
            PUT_CHECK,
            {
                "node": row.node_id,
                "catalog": row.catalog_id,
                "epoch": row.epoch,
                "now": self.tx.now_ms,
                "listed": row.listed,
                "referenced": row.referenced,
                "candidates": row.candidates,
                "bytes": row.candidate_bytes,
                "blocked": row.blocked,
                "policy": row.policy,
            },
        )

    def clear(self, node_id: int, *, with_marks: bool = False) -> None:
        """Delete the rows of a table's candidates, and with `with_marks` also of files marked for deletion.

        A later check lists them again with a waiting time of 0.
        """
        self.tx.count(DROP_ALL, {"node": node_id, "state": REMOVING if with_marks else CANDIDATE})

    def add_waiting_time(self, node_id: int, *, step_ms: int) -> None:
        """Add `step_ms` to the waiting time of each candidate of a table."""
        self.tx.count(WAITED, {"node": node_id, "step": step_ms, "now": self.tx.now_ms})

    def add(self, node_id: int, files: Iterable[NewOrphan], *, state: int = CANDIDATE, reason: str = "") -> None:
        """Add files that a check found, with a waiting time of 0."""
        params: list[Params] = [
            {
                "node": node_id,
                "name": each.name,
                "size": each.size,
                "modified": each.modified_ms,
                "now": self.tx.now_ms,
                "state": state,
                "reason": reason,
            }
            for each in files
        ]
        if params:
            self.tx.session.many(INSERT, params)

    def drop(self, node_id: int, names: Iterable[str]) -> None:
        """Delete the rows of files that are not orphans or no longer exist, so that commits may reference them again.

        Rows of files that the server deleted (`DELETED`) are not changed.
        """
        params: list[Params] = [{"node": node_id, "name": name} for name in names]
        if params:
            self.tx.session.many(DROP, params)

    def mark(self, node_id: int, names: Iterable[str], *, state: int, reason: str) -> None:
        """Set the state of files by name (such as `REMOVING`), and the reason for the state."""
        params: list[Params] = [
            {"node": node_id, "name": name, "state": state, "reason": reason, "now": self.tx.now_ms} for name in names
        ]
        if params:
            self.tx.session.many(MARK, params)

    def audit(self, catalog_id: int, *, actor: str, request_id: str, accounts: Sequence[str]) -> None:
        """Store an audit note for each item of `accounts`, the encoded request contexts of deleted files."""
        ids = self.tx.session.next_ids(len(accounts))
        params: list[Params] = [
            {
                "id": number,
                "zone": catalog_id,
                "actor": actor,
                "request": request_id,
                "at": self.tx.now_ms,
                "payload": text,
            }
            for number, text in zip(ids, accounts, strict=True)
        ]
        if params:
            self.tx.session.many(NOTE_NEW, params)

    def tidy(self, *, keep_ms: int) -> None:
        """Delete the rows of files that were deleted more than `keep_ms` ago.

        Commits may reference such files again.
        """
        self.tx.count(TIDY, {"before": self.tx.now_ms - keep_ms})
