"""Metadata documents of tables: JSON bytes beside the place of their file, replaced by compare-and-swap.

May import `model` and the room's `sql`, `nodes`. Knows nothing of what the bytes say.

A table's files are those below its location, so no location lies inside another's. Whoever brings a new one first takes
locks that rivals in other catalogs meet (its own exclusively, those above it shared; on SQLite the file's write lock is all
of them), and then looks above by key and below by one probe of the index: the cost is that of the path's depth, however
many tables there are.
"""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING

from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest
from limnos.store.location_params import overlap_params, parent_locations
from limnos.store.nodes import STILL_THERE, still_there_params
from limnos.store.sql import Load, Row, Sql, Value
from limnos.store.storage_locations import LocationWrites
from limnos.store.trash import TrashWrites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.entities import Node
    from limnos.store.transaction import StoreTransaction

_COLUMNS = "node_id, version, uuid, location, metadata_location, body"
BY_ID = Sql(f"SELECT {_COLUMNS} FROM document WHERE node_id = :id")
_BODIES = "SELECT node_id, body FROM document WHERE node_id IN ({nodes})"
BODIES = Sql(
    _BODIES.replace("{nodes}", "SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:nodes AS json)) v"),
    on_sqlite=_BODIES.replace("{nodes}", "SELECT value FROM json_each(:nodes)"),
)
HEAD = Sql("SELECT version FROM document WHERE node_id = :id")
_ABOVE = (
    "SELECT 1 FROM document d WHERE d.location = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(:above AS jsonb))))"
)
_ABOVE_SQLITE = "SELECT 1 FROM json_each(:above) AS place CROSS JOIN document d ON d.location = place.value"
"""A join in this order: IN would first make an index of the places, which costs as much as the whole insert."""
_BELOW = "SELECT 1 FROM document d WHERE d.location > :low AND d.location < :high"
_INTO = f"INTO document ({_COLUMNS})"
_REST = ":uuid, :location, :metadata_location, :body"
INSERT = Sql(
    f"INSERT {_INTO} SELECT :id, :version, {_REST} WHERE NOT EXISTS ({_ABOVE}) AND NOT EXISTS ({_BELOW}) ON CONFLICT DO NOTHING",
    # As for nodes: where the location is not free the version is null, and the row is ignored.
    on_sqlite=f"INSERT OR IGNORE {_INTO} VALUES"
    f" (:id, (SELECT :version WHERE NOT EXISTS ({_ABOVE_SQLITE}) AND NOT EXISTS ({_BELOW})), {_REST})",
)
INSERT_JUDGED = Sql(f"INSERT {_INTO} VALUES (:id, :version, {_REST}) ON CONFLICT DO NOTHING")
"""Where the register of places has been asked: only the location itself may be another table's, which a node of an earlier release made."""
SWAP = Sql(
    "UPDATE document SET version = version + 1, uuid = :uuid, location = :location, metadata_location = :metadata_location,"
    " body = :body WHERE node_id = :id AND version = :expected"
)
SWAP_STILL = Sql(f"{SWAP.text} AND {STILL_THERE}")
CLAIMS = Sql(
    "SELECT node_id, location FROM document WHERE location = :location UNION ALL"
    f" {_ABOVE.replace('SELECT 1', 'SELECT d.node_id, d.location', 1)} UNION ALL"
    f" SELECT * FROM ({_BELOW.replace('SELECT 1', 'SELECT d.node_id, d.location', 1)} ORDER BY d.location LIMIT :limit) AS lower",
    on_sqlite="SELECT node_id, location FROM document WHERE location = :location UNION ALL"
    f" {_ABOVE_SQLITE.replace('SELECT 1', 'SELECT d.node_id, d.location', 1)} UNION ALL"
    f" SELECT * FROM ({_BELOW.replace('SELECT 1', 'SELECT d.node_id, d.location', 1)} ORDER BY d.location LIMIT :limit) AS lower",
)
"""Who lies at a location, above it, or (the first few) below it."""
CLAIMS_MAX = 1000
_CHOOSE = "choose a location of its own, or leave it out to get one (what was dropped keeps its place for a while)"
PAGE = Sql(
    "SELECT node_id, location, metadata_location FROM document WHERE location > :after ORDER BY location LIMIT :limit"
)
DELETE = Sql("DELETE FROM document WHERE node_id = :id")


def document_of(row: Row) -> MetadataDocument:
    """Build the value of a row whose columns are `_COLUMNS`."""
    return MetadataDocument(row[0], row[1], row[2], row[3], row[4], bytes(row[5]))


def document_bodies_read(node_ids: Sequence[int]) -> Load[dict[int, bytes]]:
    """Read the bodies of documents by their node's id, by one statement."""
    rows = yield BODIES, {"nodes": dumps(node_ids)}
    return {row[0]: bytes(row[1]) for row in rows}


def document_read(node_id: int) -> Load[MetadataDocument | None]:
    """Read a table's document."""
    rows = yield BY_ID, {"id": node_id}
    return document_of(rows[0]) if rows else None


def claims_read(location: str) -> Load[list[tuple[int, str]]]:
    """Read the tables (id, location) at a location, above it, and below it (at most `CLAIMS_MAX` of these)."""
    rows = yield CLAIMS, overlap_params(location) | {"location": location, "limit": CLAIMS_MAX}
    return [(row[0], row[1]) for row in rows]


class DocumentWrites:
    """What mutations do to documents."""

    def __init__(self, tx: StoreTransaction) -> None:
        self.tx = tx

    def create(self, document: MetadataDocument) -> None:
        """Insert a document. Raises BadRequest when another table lies at its location, above it or below it."""
        self._lock(document)
        params = self._params(document) | overlap_params(document.location) | {"version": document.version}
        if self.tx.count(INSERT, params) == 0:
            self._refuse_location(document)
            if self.tx.count(INSERT, params) == 0:
                self.tx.stale()  # whoever was in the way has gone meanwhile

    def lock(self, document: MetadataDocument) -> None:
        """Take the locks of a new location, before the register of places is asked."""
        self._lock(document)

    def insert(self, document: MetadataDocument) -> None:
        """Insert a document whose place the register has. Raises BadRequest when another table lies there all the same."""
        if self.tx.count(INSERT_JUDGED, self._params(document) | {"version": document.version}) == 0:
            self._refuse_location(document)
            self.tx.stale()

    def swap(
        self, document: MetadataDocument, *, expected: int, relocates: bool = True, table: Node | None = None
    ) -> bool:
        """Replace the document if its version is still the expected one; says whether it was.

        `relocates`: the table's location is another one than before, and must be free. `table`: its node as it was decided
        on, which must be that still; without it the caller has looked.
        """
        if relocates:
            self._lock(document)
            self._refuse_location(document)
        params = self._params(document) | {"expected": expected}
        wrote = (
            self.tx.count(SWAP, params)
            if table is None
            else self.tx.count(SWAP_STILL, params | still_there_params(table))
        )
        return wrote > 0

    def meet(self, documents: Sequence[MetadataDocument]) -> None:
        """Take the locks of several new locations in one order, so that two such sets do not wait for each other."""
        if len(documents) > 1:
            for document in sorted(documents, key=lambda each: each.location):
                self._lock(document)

    def version(self, node_id: int) -> int | None:
        """Read which version of a document there is, to be relied on until the commit."""
        rows = self.tx.rows(HEAD, {"id": node_id})
        return rows[0][0] if rows else None

    def read(self, node_id: int) -> MetadataDocument | None:
        """Read a document inside the transaction."""
        rows = self.tx.rows(BY_ID, {"id": node_id})
        return document_of(rows[0]) if rows else None

    def page(self, after: str, *, limit: int) -> list[tuple[int, str, str]]:
        """Read the tables (id, location, metadata file) whose locations come after one, in their order."""
        rows = self.tx.rows(PAGE, {"after": after, "limit": limit})
        return [(row[0], row[1], row[2]) for row in rows]

    def delete(self, node_id: int) -> None:
        """Forget a document; its files stay."""
        self.tx.count(DELETE, {"id": node_id})

    def claims(self, location: str) -> list[tuple[int, str]]:
        """As `claims_read`, inside the transaction."""
        rows = self.tx.rows(CLAIMS, overlap_params(location) | {"location": location, "limit": CLAIMS_MAX})
        return [(row[0], row[1]) for row in rows]

    def _lock(self, document: MetadataDocument) -> None:
        """Meet rivals of other catalogs. A directory named after the table's own uuid nobody else lies in."""
        location = document.location
        own = location.rpartition("/")[2] == document.uuid.replace("-", "")
        self.tx.session.lock_locations(parent_locations(location), None if own else location)

    def _refuse_location(self, document: MetadataDocument) -> None:
        """Raise BadRequest when another table is in the way.

        A dropped one of the caller's own, at this very place, makes way: it cannot be brought back after that.
        """
        location, trash = document.location, TrashWrites(self.tx)
        rivals = [claim for claim in self.claims(location) if claim[0] != document.node_id]
        if [place for _, place in rivals] == [location] and trash.is_own(rivals[0][0]):
            LocationWrites(self.tx).replace(rivals[0][0])
            if trash.forget(rivals[0][0]):
                return
        others = [place for _, place in rivals]
        if location in others:
            raise BadRequest(f"Another table lies at location {location}: {_CHOOSE}")
        if others:
            where = (
                "inside the location of another table" if len(others[0]) < len(location) else "around another table's"
            )
            raise BadRequest(f"Location {location} lies {where}, and tables do not share files: {_CHOOSE}")

    def _params(self, document: MetadataDocument) -> dict[str, Value]:
        return {
            "id": document.node_id, "uuid": document.uuid, "location": document.location,
            "metadata_location": document.metadata_location, "body": document.body,
        }  # fmt: skip
