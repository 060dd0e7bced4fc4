# SPDX-License-Identifier: Apache-2.0
"""Table maintenance: findings, checkpoints of incremental readers, and operations.

Must not know rules of maintenance. Rows are keyed by node id, so renames, moves and restores change no row here. No
decision and no cache depends on them, so none leaves a change row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import dumps
from typing import Final, NamedTuple

from limnos.model.kinds import KINDS, Kind
from limnos.store.ancestry import Ancestry, ancestry_of, with_ancestors
from limnos.store.objects.documents import intact_documents_read
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Load, Params, Row, Sql
from limnos.store.transaction import Writes

_IDS = "SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:nodes AS json)) v"
_IDS_SQLITE = "SELECT value FROM json_each(:nodes)"


def _with_node_ids(text: str) -> Sql:
    """Build a statement for both backends; `{nodes}` in `text` becomes the subselect over the parameter `nodes`."""
    return Sql(text.replace("{nodes}", _IDS), on_sqlite=text.replace("{nodes}", _IDS_SQLITE))


_TABLES = (
    "SELECT d.node_id, n.zone, n.parent_id, d.version, n.record, length(d.body), n.deleted FROM document d"
    " JOIN node n ON n.id = d.node_id AND n.kind = :kind AND n.format = :format WHERE"
)
_PAGE = "d.node_id > :after ORDER BY d.node_id LIMIT :limit"
_SOME = "d.node_id IN ({nodes}) ORDER BY d.node_id"
_OR_KEPT = f"(n.deleted = 0 OR {KEPT.format('n.id')}) AND"
PAGE, PAGE_WITH_TRASH = Sql(f"{_TABLES} n.deleted = 0 AND {_PAGE}"), Sql(f"{_TABLES} {_OR_KEPT} {_PAGE}")
SOME, SOME_WITH_TRASH = (
    _with_node_ids(f"{_TABLES} n.deleted = 0 AND {_SOME}"),
    _with_node_ids(f"{_TABLES} {_OR_KEPT} {_SOME}"),
)
VERSIONS = _with_node_ids("SELECT node_id, version FROM document WHERE node_id IN ({nodes})")
LOCK_CHECKPOINTS = Sql("SELECT pg_advisory_xact_lock(4999503, 1)", on_sqlite="SELECT 1")
"""Serializes replacements of checkpoints over all nodes. SQLite has one writer anyway."""
CLOCKS = Sql(
    "SELECT c.zone, c.revision, c.pruned_to, n.kind, s.epoch FROM clock c CROSS JOIN store s"
    " CROSS JOIN node n WHERE n.id = c.zone AND n.deleted = 0"
)
CHANGED = Sql(
    "SELECT DISTINCT node_id FROM change WHERE zone = :zone AND revision > :after AND revision <= :until AND kind ="
    " :kind"
)
ATTACHED = Sql("SELECT DISTINCT policy_id FROM policy_object")
POLICY_OBJECTS = _with_node_ids(
    "SELECT policy_id, object_id, attached_by FROM policy_object WHERE policy_id IN ({nodes})"
)
ANCESTORS = Sql(with_ancestors(_IDS).text, on_sqlite=with_ancestors(_IDS_SQLITE).text)

_FINDING = "node_id, kind, catalog_id, score, reason, figures, version, found_at"
FINDINGS_OF = _with_node_ids(
    f"SELECT {_FINDING} FROM maintenance_finding WHERE node_id IN ({{nodes}}) ORDER BY node_id, kind"
)
FINDINGS = Sql(
    f"SELECT {_FINDING} FROM maintenance_finding WHERE catalog_id = :catalog AND node_id > :after"
    " ORDER BY node_id, kind LIMIT :limit"
)
FINDINGS_OF_KIND = Sql(
    f"SELECT {_FINDING} FROM maintenance_finding f WHERE kind = :kind AND node_id > :after"
    " AND EXISTS (SELECT 1 FROM node n WHERE n.id = f.node_id AND n.format = :format)"
    " ORDER BY node_id LIMIT :limit"
)
LAST_OF = _with_node_ids(
    "SELECT node_id, max(started_at) FROM maintenance_operation WHERE node_id IN ({nodes}) AND kind = :kind GROUP BY"
    " node_id"
)
DONE_SINCE = _with_node_ids(
    "SELECT DISTINCT node_id FROM maintenance_operation WHERE node_id IN ({nodes}) AND kind = :kind AND state = 'done'"
    " AND ended_at > :since"
)
COUNTS = Sql("SELECT kind, count(*) FROM maintenance_finding GROUP BY kind")
DELETE = _with_node_ids("DELETE FROM maintenance_finding WHERE node_id IN ({nodes})")
INSERT = Sql(
    f"INSERT INTO maintenance_finding ({_FINDING})"
    " VALUES (:node, :kind, :catalog, :score, :reason, :figures, :version, :at) ON CONFLICT DO NOTHING"
)
CHECKPOINTS_OF = Sql(
    "SELECT c.reader_id, c.source, c.snapshot_id, c.at FROM maintenance_checkpoint c"
    f" JOIN node n ON n.id = c.reader_id AND (n.deleted = 0 OR {KEPT.format('n.id')})"
    " WHERE c.source = :source AND c.at >= :since"
)
READ_BY = _with_node_ids(
    "SELECT reader_id, source, snapshot_id, at FROM maintenance_checkpoint WHERE reader_id IN ({nodes})"
    " ORDER BY reader_id, source"
)
FORGET = _with_node_ids("DELETE FROM maintenance_checkpoint WHERE reader_id IN ({nodes})")
REMEMBER = Sql(
    "INSERT INTO maintenance_checkpoint (reader_id, source, snapshot_id, at)"
    " VALUES (:reader, :source, :snapshot, :at) ON CONFLICT DO NOTHING"
)
_OPERATION = "id, catalog_id, node_id, kind, state, user_name, policy, result, started_at, ended_at, leased_at"
BEGIN = Sql(
    f"INSERT INTO maintenance_operation ({_OPERATION}, bytes)"
    " VALUES (:id, :catalog, :node, :kind, :state, :user, :policy, NULL, :now, NULL, NULL, :bytes)"
)
END = Sql(
    "UPDATE maintenance_operation SET state = :state, result = :result, ended_at = :now WHERE id = :id AND ended_at IS"
    " NULL"
)
KIND_OF = Sql("SELECT kind FROM maintenance_operation WHERE id = :id")
OPEN_OF = Sql(
    "SELECT id FROM maintenance_operation WHERE node_id = :node AND kind = :kind AND ended_at IS NULL ORDER BY id"
    " LIMIT 1"
)
OPERATIONS = Sql(
    f"SELECT {_OPERATION} FROM maintenance_operation WHERE catalog_id = :catalog AND id < :before"
    " ORDER BY id DESC LIMIT :limit"
)
OPERATIONS_OF = Sql(
    f"SELECT {_OPERATION} FROM maintenance_operation WHERE node_id = :node ORDER BY id DESC LIMIT :limit"
)
OPERATION = Sql(f"SELECT {_OPERATION} FROM maintenance_operation WHERE id = :id")
_OF_METALAKE = (
    f"SELECT {_OPERATION} FROM maintenance_operation WHERE catalog_id IN"
    " (SELECT n.id FROM node n WHERE n.parent_id = :metalake AND n.deleted = 0)"
    " AND kind IN ({kinds}) ORDER BY id DESC LIMIT :limit"
)
OPERATIONS_OF_METALAKE = Sql(
    _OF_METALAKE.replace("{kinds}", "SELECT v FROM json_array_elements_text(CAST(:kinds AS json)) v"),
    on_sqlite=_OF_METALAKE.replace("{kinds}", "SELECT value FROM json_each(:kinds)"),
)
LOST = Sql(
    "UPDATE maintenance_operation SET state = 'lost', ended_at = :now WHERE state = 'running' AND started_at < :before"
    " AND NOT EXISTS (SELECT 1 FROM maintenance_rewrite r WHERE r.operation_id = maintenance_operation.id)"
)
OLD = Sql("DELETE FROM maintenance_operation WHERE ended_at IS NOT NULL AND ended_at < :before")
SWEEPS = tuple(
    Sql(
        f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = {table}.{column} AND n.deleted = 0)"
        f" AND NOT {KEPT.format(f'{table}.{column}')}"
    )
    for table, column in (
        ("maintenance_finding", "node_id"),
        ("maintenance_checkpoint", "reader_id"),
        ("maintenance_operation", "node_id"),
    )
)
AT_ONCE: Final = 64
"""The maximum number of documents in one read, since the event loop waits for it."""


class TableHead(NamedTuple):
    """A table with a metadata document: its catalog, its parent, the document's version and length, and the table's
    record.
    """

    node_id: int
    catalog_id: int
    parent_id: int
    version: int
    record: bytes
    size: int
    is_dropped: bool
    """Whether it is in the trash."""


class TableBody(NamedTuple):
    """A table's metadata document and its version."""

    node_id: int
    version: int
    metadata_location: str
    body: bytes


class CatalogClock(NamedTuple):
    """A zone's revision, the revision up to which its changes were pruned, its kind, and the store's epoch."""

    zone: int
    revision: int
    pruned_to: int
    kind: Kind
    epoch: int


class FindingRow(NamedTuple):
    """A finding of a table; `figures` is a JSON object of numbers."""

    node_id: int
    kind: str
    catalog_id: int
    score: int
    reason: str
    figures: str
    version: int
    found_at: int


class CheckpointRow(NamedTuple):
    """The last snapshot of a source that a reader has read, and the time of its report."""

    reader_id: int
    source: str
    snapshot_id: int
    at: int


class OperationRow(NamedTuple):
    """An operation on a table: `waiting`, `running`, `done`, `failed`, `cancelled` or `lost`.

    Times are in milliseconds since 1970. `started_at` is the time of the request, `leased_at` the time at which an
    executor last leased the operation: None if none did, as for an operation that the server executes itself.
    """

    id: int
    catalog_id: int
    node_id: int
    kind: str
    state: str
    user: str
    policy: str | None
    result: str | None
    started_at: int
    ended_at: int | None
    leased_at: int | None = None


def _heads(rows: Sequence[Row]) -> list[TableHead]:
    return [
        TableHead(
            node_id=row[0],
            catalog_id=row[1],
            parent_id=row[2],
            version=row[3],
            record=bytes(row[4]),
            size=row[5],
            is_dropped=row[6] != 0,
        )
        for row in rows
    ]


def tables_page(
    after: int, *, limit: int, with_trash: bool = False, table_format: str = "iceberg"
) -> Load[list[TableHead]]:
    """Read the next tables of a format, by node id and without their documents; with `with_trash` also dropped
    ones.
    """
    statement = PAGE_WITH_TRASH if with_trash else PAGE
    params: Params = {"after": after, "limit": limit, "kind": int(Kind.TABLE), "format": table_format}
    return _heads((yield statement, params))


def tables_of(
    node_ids: Sequence[int], *, with_trash: bool = False, table_format: str = "iceberg"
) -> Load[list[TableHead]]:
    """Read the tables of a format among some ids, without the documents; with `with_trash` also dropped ones."""
    statement = SOME_WITH_TRASH if with_trash else SOME
    return _heads((yield statement, {"nodes": dumps(node_ids), "kind": int(Kind.TABLE), "format": table_format}))


def table_bodies_read(node_ids: Sequence[int]) -> Load[list[TableBody]]:
    """Read the metadata documents of some tables by node id, without damaged ones."""
    documents = yield from intact_documents_read(node_ids)
    return [TableBody(each.node_id, each.version, each.metadata_location, each.body) for each in documents.values()]


def clocks_read() -> Load[list[CatalogClock]]:
    """Read the clocks of all live metalakes and catalogs."""
    rows = yield CLOCKS, {}
    return [
        CatalogClock(zone=row[0], revision=row[1], pruned_to=row[2], kind=KINDS[row[3]], epoch=row[4]) for row in rows
    ]


def changed_read(zone: int, *, after: int, until: int, kind: Kind) -> Load[list[int]]:
    """Read the ids of objects of a kind that changed in a range of revisions of a zone."""
    rows = yield CHANGED, {"zone": zone, "after": after, "until": until, "kind": int(kind)}
    return [row[0] for row in rows]


def attached_policies_read() -> Load[list[int]]:
    """Read the ids of all policies that are attached to an object."""
    return [row[0] for row in (yield ATTACHED, {})]


class PolicyAttachment(NamedTuple):
    """A policy on an object, and the user who attached it; 0 if unknown."""

    policy_id: int
    object_id: int
    attached_by: int


def policy_objects_read(policy_ids: Sequence[int]) -> Load[list[PolicyAttachment]]:
    """Read the attachments of some policies."""
    return [PolicyAttachment(*row) for row in (yield POLICY_OBJECTS, {"nodes": dumps(policy_ids)})]


def ancestors_read(node_ids: Sequence[int]) -> Load[Ancestry]:
    """Read live nodes and all their ancestors: parent, kind and name by id."""
    return ancestry_of((yield ANCESTORS, {"nodes": dumps(node_ids)}))


def findings_of(node_ids: Sequence[int]) -> Load[list[FindingRow]]:
    """Read the maintenance findings (such as too many small files) of some tables."""
    return [FindingRow(*row) for row in (yield FINDINGS_OF, {"nodes": dumps(node_ids)})]


def findings_page(catalog_id: int, *, after: int, limit: int) -> Load[list[FindingRow]]:
    """Read up to `limit` findings of a catalog's tables in the order of node ids, beginning after the id `after`."""
    return [FindingRow(*row) for row in (yield FINDINGS, {"catalog": catalog_id, "after": after, "limit": limit})]


def findings_of_kind(kind: str, *, after: int, limit: int, table_format: str = "iceberg") -> Load[list[FindingRow]]:
    """Read up to `limit` findings of a kind about tables of a format in all catalogs, by node id, beginning after
    `after`.
    """
    params: Params = {"kind": kind, "after": after, "limit": limit, "format": table_format}
    return [FindingRow(*row) for row in (yield FINDINGS_OF_KIND, params)]


def last_operations(node_ids: Sequence[int], *, kind: str) -> Load[dict[int, int]]:
    """Read the start time of the last operation of a kind on each of some tables, in milliseconds since 1970."""
    return {row[0]: row[1] for row in (yield LAST_OF, {"nodes": dumps(node_ids), "kind": kind})}


def done_since(node_ids: Sequence[int], *, kind: str, since_ms: int) -> Load[frozenset[int]]:
    """Read the ids of those tables on which an operation of the kind succeeded since a time."""
    rows = yield DONE_SINCE, {"nodes": dumps(node_ids), "kind": kind, "since": since_ms}
    return frozenset([row[0] for row in rows])


def finding_counts_read() -> Load[dict[str, int]]:
    """Count findings by kind."""
    return {row[0]: row[1] for row in (yield COUNTS, {})}


def checkpoints_of(source: str, *, since_ms: int) -> Load[list[CheckpointRow]]:
    """Read the readers' checkpoints for a source, by its path below the metalake, that were reported since a time.

    Readers in the trash count, since they may be restored.
    """
    return [CheckpointRow(*row) for row in (yield CHECKPOINTS_OF, {"source": source, "since": since_ms})]


def checkpoints_by(node_ids: Sequence[int]) -> Load[list[CheckpointRow]]:
    """Read the checkpoints of some readers."""
    return [CheckpointRow(*row) for row in (yield READ_BY, {"nodes": dumps(node_ids)})]


def operations_page(catalog_id: int, *, before: int, limit: int) -> Load[list[OperationRow]]:
    """Read up to `limit` operations on tables of a catalog with ids below `before`, newest first."""
    rows = yield OPERATIONS, {"catalog": catalog_id, "before": before, "limit": limit}
    return [OperationRow(*row) for row in rows]


def operations_of(node_id: int, *, limit: int) -> Load[list[OperationRow]]:
    """Read up to `limit` operations on a table, newest first."""
    return [OperationRow(*row) for row in (yield OPERATIONS_OF, {"node": node_id, "limit": limit})]


def operation_read(operation_id: int) -> Load[OperationRow | None]:
    """Read an operation by its id; None if it does not exist."""
    rows = yield OPERATION, {"id": operation_id}
    return OperationRow(*rows[0]) if rows else None


def metalake_operations_read(metalake_id: int, *, kinds: Sequence[str], limit: int) -> Load[list[OperationRow]]:
    """Read up to `limit` operations of some kinds of all live catalogs of a metalake, newest first."""
    params: Params = {"metalake": metalake_id, "kinds": dumps(kinds), "limit": limit}
    rows = yield OPERATIONS_OF_METALAKE, params
    return [OperationRow(*row) for row in rows]


class MaintenanceWrites(Writes):
    """Reads and writes findings, checkpoints and maintenance operations inside a transaction."""

    def replace_findings(self, node_ids: Sequence[int], rows: Sequence[FindingRow]) -> None:
        """Replace the findings of some tables."""
        self.tx.count(DELETE, {"nodes": dumps(node_ids)})
        params: list[Params] = [
            {
                "node": row.node_id,
                "kind": row.kind,
                "catalog": row.catalog_id,
                "score": row.score,
                "reason": row.reason,
                "figures": row.figures,
                "version": row.version,
                "at": self.tx.now_ms,
            }
            for row in rows
        ]
        if params:
            self.tx.session.many(INSERT, params)

    def finding(self, node_id: int, *, kind: str) -> FindingRow | None:
        """Read a table's finding of a kind, or None."""
        rows = [FindingRow(*row) for row in self.tx.rows(FINDINGS_OF, {"nodes": dumps([node_id])})]
        return next((row for row in rows if row.kind == kind), None)

    def replace_checkpoints(
        self, reader_ids: Sequence[int], rows: Sequence[CheckpointRow], *, versions: Mapping[int, int]
    ) -> None:
        """Replace the checkpoints of some readers.

        `versions` are the versions of the documents that were assessed. The checkpoints of a reader whose document has
        changed since are not replaced: the assessment of the newer version stores them.
        """
        self.tx.rows(LOCK_CHECKPOINTS, {})
        now = {row[0]: row[1] for row in self.tx.rows(VERSIONS, {"nodes": dumps(list(versions))})}
        stale = {reader_id for reader_id, version in versions.items() if now.get(reader_id, version) != version}
        self.tx.count(FORGET, {"nodes": dumps([each for each in reader_ids if each not in stale])})
        params: list[Params] = [
            {"reader": row.reader_id, "source": row.source, "snapshot": row.snapshot_id, "at": row.at}
            for row in rows
            if row.reader_id not in stale
        ]
        if params:
            self.tx.session.many(REMEMBER, params)

    def checkpoints(self, source: str, *, since_ms: int) -> list[CheckpointRow]:
        """Read the readers' checkpoints for a source, inside the transaction."""
        rows = self.tx.rows(CHECKPOINTS_OF, {"source": source, "since": since_ms})
        return [CheckpointRow(*row) for row in rows]

    def open_of(self, node_id: int, *, kind: str) -> int | None:
        """Read the id of a table's operation of a kind that has not ended, or None."""
        rows = self.tx.rows(OPEN_OF, {"node": node_id, "kind": kind})
        return int(rows[0][0]) if rows else None

    def begin(
        self,
        *,
        catalog_id: int,
        node_id: int,
        kind: str,
        user: str,
        policy: str | None,
        state: str = "running",
        bytes_: int = 0,
    ) -> int:
        """Record an operation on a table as waiting or running, with the bytes that it rewrites. Returns its id."""
        operation_id = self.tx.next_id()
        self.tx.count(
            BEGIN,
            {
                "id": operation_id,
                "catalog": catalog_id,
                "node": node_id,
                "kind": kind,
                "user": user,
                "policy": policy,
                "now": self.tx.now_ms,
                "state": state,
                "bytes": bytes_,
            },
        )
        return operation_id

    def kind_of(self, operation_id: int) -> str | None:
        """Read the kind of an operation, such as `expire`; None if it does not exist."""
        rows = self.tx.rows(KIND_OF, {"id": operation_id})
        return str(rows[0][0]) if rows else None

    def end(self, operation_id: int, *, state: str, result: str) -> None:
        """Set the final state of an operation, and its result as a message for users. No-op if it has ended."""
        self.tx.count(END, {"id": operation_id, "state": state, "result": result, "now": self.tx.now_ms})

    def tidy(self, *, lost_ms: int, keep_ms: int) -> None:
        """Mark running operations as lost `lost_ms` after their start, and delete ended operations after `keep_ms`.

        Operations in the queue of rewrites are not marked, because their leases expire.
        """
        self.tx.count(LOST, {"before": self.tx.now_ms - lost_ms, "now": self.tx.now_ms})
        self.tx.count(OLD, {"before": self.tx.now_ms - keep_ms})
