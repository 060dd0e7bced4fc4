# SPDX-License-Identifier: Apache-2.0
"""Metadata documents of tables and views: JSON bytes and the location of the metadata file, replaced by
compare-and-swap, with digests that show whether a document is still what was written.

Must not know the content of the bytes. A table's files are those below its location, so no location may be inside
another table's. A writer of a new location first takes locks that conflict with writers in other catalogs: exclusive on
its own location, shared on those above it. On SQLite the file's write lock covers all of them. Then it checks the
locations above by key, and those below with one index probe: the cost grows with the path's depth, not with the number
of tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from typing import Final

import google_crc32c

from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest, StoreDamaged
from limnos.store.objects.nodes import STILL_THERE, still_there_params
from limnos.store.objects.storage_locations import LocationWrites, overlap_params, parent_locations
from limnos.store.objects.trash import TrashWrites
from limnos.store.sql import Load, Row, Sql, Value
from limnos.store.transaction import Writes

_VERSION_BITS: Final = 31
_CRC_BITS: Final = 32
_KIND: Final = -1 << (_VERSION_BITS + _CRC_BITS)
"""The sign of digests by CRC-32C. Digests without it are by another function, and say nothing."""

WITHOUT_DIGEST: Final = "digest IS NULL OR digest >> 32 <> version % 2147483648 - 2147483648"
"""The condition of documents that have no digest of their version, because an older release wrote them."""


def digest_of(document: MetadataDocument, *, version: int) -> int:
    """Return the digest of a document that is stored as `version`, as a negative integer of 64 bits.

    It is a CRC-32C, which detects each change of up to 32 bits in a row, with the document's version beside it. A
    digest of another version was left by a release without digests, which writes documents but not their digests: it
    says nothing, like NULL.
    """
    head = f"{document.uuid}\n{document.location}\n{document.metadata_location}".encode()
    crc: int = google_crc32c.extend(google_crc32c.value(head), document.body)
    return _stamp(version) | crc


def is_intact(document: MetadataDocument, digest: int | None) -> bool:
    """Return whether a document is what was written, or its digest is unknown."""
    if digest is None or digest >> _CRC_BITS != _stamp(document.version) >> _CRC_BITS:
        return True
    return digest == digest_of(document, version=document.version)


def require_intact(document: MetadataDocument, digest: int | None) -> MetadataDocument:
    """Return the document. Raises StoreDamaged if it is not what was written."""
    if is_intact(document, digest):
        return document
    raise StoreDamaged(
        "The stored metadata of this table or view is damaged: an operator runs 'limnos server check', and restores a"
        " backup",
        node_id=document.node_id,
        version=document.version,
    )


def _stamp(version: int) -> int:
    return _KIND | (version & ((1 << _VERSION_BITS) - 1)) << _CRC_BITS


_COLUMNS = "node_id, version, uuid, location, metadata_location, body, digest"
BY_ID = Sql(f"SELECT {_COLUMNS} FROM document WHERE node_id = :id")
_MANY = f"SELECT {_COLUMNS} FROM document WHERE node_id IN ({{nodes}})"
MANY = Sql(
    _MANY.replace("{nodes}", "SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:nodes AS json)) v"),
    on_sqlite=_MANY.replace("{nodes}", "SELECT value FROM json_each(:nodes)"),
)
HEAD = Sql("SELECT version FROM document WHERE node_id = :id")
_ABOVE = (
    "SELECT 1 FROM document d WHERE d.location = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(:above AS jsonb))))"
)
_ABOVE_SQLITE = "SELECT 1 FROM json_each(:above) AS place CROSS JOIN document d ON d.location = place.value"
"""The query uses a join in this order: IN would first build an index of the locations, which costs as much as the whole
insert.
"""
_BELOW = "SELECT 1 FROM document d WHERE d.location > :low AND d.location < :high"
_INTO = f"INTO document ({_COLUMNS})"
_REST = ":uuid, :location, :metadata_location, :body, :digest"
INSERT = Sql(
    f"INSERT {_INTO} SELECT :id, :version, {_REST} WHERE NOT EXISTS ({_ABOVE}) AND NOT EXISTS ({_BELOW}) ON CONFLICT DO"
    " NOTHING",
    # As for nodes: if the location is not free, the version is null and the row is ignored.
    on_sqlite=(
        f"INSERT OR IGNORE {_INTO} VALUES"
        f" (:id, (SELECT :version WHERE NOT EXISTS ({_ABOVE_SQLITE}) AND NOT EXISTS ({_BELOW})), {_REST})"
    ),
)
INSERT_JUDGED = Sql(f"INSERT {_INTO} VALUES (:id, :version, {_REST}) ON CONFLICT DO NOTHING")
"""The insert for locations that the register has checked.

Only the location itself may conflict, with a table of a node of an older release.
"""
SWAP = Sql(
    "UPDATE document SET version = version + 1, uuid = :uuid, location = :location, metadata_location ="
    " :metadata_location, body = :body, digest = :digest WHERE node_id = :id AND version = :expected"
)
SWAP_STILL = Sql(f"{SWAP.text} AND {STILL_THERE}")
REPLACE_BODY = Sql(
    "UPDATE document SET version = version + 1, metadata_location = :metadata_location, body = :body, digest = :digest"
    " WHERE node_id = :id AND version = :expected"
)
"""The swap of a document whose uuid and location stay: SQLite writes the pages of an index for each indexed column that
a statement sets, also if its value is the same.
"""
REPLACE_BODY_STILL = Sql(f"{REPLACE_BODY.text} AND {STILL_THERE}")
CLAIMS = Sql(
    "SELECT node_id, location FROM document WHERE location = :location UNION ALL"
    f" {_ABOVE.replace('SELECT 1', 'SELECT d.node_id, d.location', 1)} UNION ALL SELECT * FROM"
    f" ({_BELOW.replace('SELECT 1', 'SELECT d.node_id, d.location', 1)} ORDER BY d.location LIMIT :limit) AS lower",
    on_sqlite=(
        "SELECT node_id, location FROM document WHERE location = :location UNION ALL"
        f" {_ABOVE_SQLITE.replace('SELECT 1', 'SELECT d.node_id, d.location', 1)} UNION ALL SELECT * FROM"
        f" ({_BELOW.replace('SELECT 1', 'SELECT d.node_id, d.location', 1)} ORDER BY d.location LIMIT :limit) AS lower"
    ),
)
"""The query for tables at a location, above it, or (at most `:limit`) below it."""
CLAIMS_MAX = 1000
_CHOOSE = "choose another location, or leave it out to get one (dropped objects keep their locations for a while)"
PAGE = Sql(
    "SELECT node_id, location, metadata_location FROM document WHERE location > :after ORDER BY location LIMIT :limit"
)
DAMAGE_PAGE = Sql(f"SELECT {_COLUMNS} FROM document WHERE node_id > :after ORDER BY node_id LIMIT :limit")
UNDIGESTED_AT_ONCE = 50
UNDIGESTED = Sql(f"SELECT {_COLUMNS} FROM document WHERE {WITHOUT_DIGEST} ORDER BY node_id LIMIT {UNDIGESTED_AT_ONCE}")
"""The query for documents that an older release wrote. Its index has these documents only."""
DIGEST = Sql("UPDATE document SET digest = :digest WHERE node_id = :id AND version = :version")
DELETE = Sql("DELETE FROM document WHERE node_id = :id")


def document_of(row: Row) -> MetadataDocument:
    """Build a document from a row whose columns are `_COLUMNS`. Raises StoreDamaged if it is not what was written."""
    return require_intact(_document_of(row), row[6])


def intact_document_of(row: Row) -> MetadataDocument | None:
    """Build a document from a row whose columns are `_COLUMNS`; None if it is not what was written."""
    document = _document_of(row)
    return document if is_intact(document, row[6]) else None


def _document_of(row: Row) -> MetadataDocument:
    return MetadataDocument(
        node_id=row[0], version=row[1], uuid=row[2], location=row[3], metadata_location=row[4], body=bytes(row[5])
    )


def intact_documents_read(node_ids: Sequence[int]) -> Load[dict[int, MetadataDocument]]:
    """Read documents by node id, in one statement, without those that are not what was written: for background work
    over many objects, which goes on with the others.
    """
    rows = yield MANY, {"nodes": dumps(node_ids)}
    return {row[0]: document for row in rows if (document := intact_document_of(row)) is not None}


def documents_read(node_ids: Sequence[int]) -> Load[dict[int, MetadataDocument | None]]:
    """Read documents by node id, in one statement; None for nodes without a document. Raises StoreDamaged."""
    rows = yield MANY, {"nodes": dumps(node_ids)}
    documents: dict[int, MetadataDocument | None] = dict.fromkeys(node_ids)
    documents.update((row[0], document_of(row)) for row in rows)
    return documents


def document_read(node_id: int) -> Load[MetadataDocument | None]:
    """Read the document of a table or view; None if the node has no document. Raises StoreDamaged."""
    rows = yield BY_ID, {"id": node_id}
    return document_of(rows[0]) if rows else None


def claims_read(location: str) -> Load[list[tuple[int, str]]]:
    """Read the tables and views (id, location) at a location, above it, and below it (at most `CLAIMS_MAX` of
    these).
    """
    rows = yield CLAIMS, overlap_params(location) | {"location": location, "limit": CLAIMS_MAX}
    return [(row[0], row[1]) for row in rows]


def document_locks(document: MetadataDocument, location: str) -> dict[str, bool]:
    """Return the locks to take for a document's location: exclusive (True) or shared (False) by location key.

    A directory that is named after the table's uuid cannot conflict, so only its parent locations are locked.
    """
    locks = dict.fromkeys(parent_locations(location), False)
    if location.rpartition("/")[2] != document.uuid.replace("-", ""):
        locks[location] = True
    return locks


class DocumentWrites(Writes):
    """Reads and writes metadata documents inside a transaction."""

    def create(self, document: MetadataDocument) -> None:
        """Insert a document.

        Deletes a table in the trash that the caller owned or dropped at the same location. Raises BadRequest if another
        table is at the location, above it or below it; StalePermit if the conflicting table was dropped concurrently.
        """
        self._lock(document)
        params = self._params(document, version=document.version) | overlap_params(document.location)
        if self.tx.count(INSERT, params) == 0:
            self._refuse_location(document)
            if self.tx.count(INSERT, params) == 0:
                self.tx.stale()  # the conflicting table was dropped concurrently

    def insert(self, document: MetadataDocument) -> None:
        """Insert a document whose location the register has checked.

        Raises BadRequest if a table that the register does not list has the location, StalePermit if that table is in
        the caller's trash or was dropped concurrently.
        """
        if self.tx.count(INSERT_JUDGED, self._params(document, version=document.version)) == 0:
            self._refuse_location(document)
            self.tx.stale()

    def swap(
        self, document: MetadataDocument, *, expected: int, relocates: bool = True, table: Node | None = None
    ) -> bool:
        """Replace the document if its version is still `expected`. Returns whether it was replaced.

        Args:
            document: The new document.
            expected: The version that the caller read.
            relocates: The table's location or uuid may change, so the new location must be free. Raises BadRequest if
                it is not. If False, both are the stored ones.
            table: The table's node at the decision, which must be unchanged. None if the caller has checked that.
        """
        if relocates:
            self._lock(document)
            self._refuse_location(document)
        params = self._params(document, version=expected + 1) | {"expected": expected}
        if table is None:
            return self.tx.count(SWAP if relocates else REPLACE_BODY, params) > 0
        params |= still_there_params(table)
        return self.tx.count(SWAP_STILL if relocates else REPLACE_BODY_STILL, params) > 0

    def version(self, node_id: int) -> int | None:
        """Read the version of a document, which cannot change before this transaction's commit; None if there is no
        document.
        """
        rows = self.tx.rows(HEAD, {"id": node_id})
        return rows[0][0] if rows else None

    def read(self, node_id: int) -> MetadataDocument | None:
        """Read a document inside the transaction, or None. Raises StoreDamaged."""
        rows = self.tx.rows(BY_ID, {"id": node_id})
        return document_of(rows[0]) if rows else None

    def page(self, after: str, *, limit: int) -> list[tuple[int, str, str]]:
        """Read the next tables and views (id, location, metadata file) whose locations sort after `after`."""
        rows = self.tx.rows(PAGE, {"after": after, "limit": limit})
        return [(row[0], row[1], row[2]) for row in rows]

    def fill_digests(self) -> int:
        """Store the digests of some documents that an older release wrote. Returns their number; 0 at the end."""
        rows = self.tx.rows(UNDIGESTED, {})
        for row in rows:
            digest = digest_of(_document_of(row), version=row[1])
            self.tx.count(DIGEST, {"id": row[0], "version": row[1], "digest": digest})
        return len(rows)

    def delete(self, node_id: int) -> None:
        """Delete a document, but not the metadata files and data files."""
        self.tx.count(DELETE, {"id": node_id})

    def claims(self, location: str) -> list[tuple[int, str]]:
        """Read tables and views whose location equals, contains or lies below `location`, inside the transaction.

        Returns ids and locations, as `claims_read` does.
        """
        rows = self.tx.rows(CLAIMS, overlap_params(location) | {"location": location, "limit": CLAIMS_MAX})
        return [(row[0], row[1]) for row in rows]

    def _lock(self, document: MetadataDocument) -> None:
        """Take locks that conflict with writers of other catalogs."""
        if self.tx.session.has_location_locks:
            self.tx.session.lock_locations(document_locks(document, document.location))

    def _refuse_location(self, document: MetadataDocument) -> None:
        """Raise BadRequest if another table's location conflicts with the document's location.

        A table in the trash that the caller owned or dropped at this same location is deleted permanently instead.
        """
        location, trash = document.location, TrashWrites(self.tx)
        rivals = [claim for claim in self.claims(location) if claim[0] != document.node_id]
        if [rival for _, rival in rivals] == [location] and trash.is_own(rivals[0][0]):
            LocationWrites(self.tx).replace(rivals[0][0])
            if trash.forget(rivals[0][0]):
                return
        others = [rival for _, rival in rivals]
        if location in others:
            raise BadRequest(f"Another table is at location {location}: {_CHOOSE}")
        if others:
            where = (
                "inside the location of another table" if len(others[0]) < len(location) else "around another table's"
            )
            raise BadRequest(f"Location {location} is {where}, and tables cannot share files: {_CHOOSE}")

    def _params(self, document: MetadataDocument, *, version: int) -> dict[str, Value]:
        return {
            "id": document.node_id,
            "version": version,
            "uuid": document.uuid,
            "location": document.location,
            "metadata_location": document.metadata_location,
            "body": document.body,
            "digest": digest_of(document, version=version),
        }
