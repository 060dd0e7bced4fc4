"""Metadata documents of tables: JSON bytes beside the place of their file, replaced by compare-and-swap.

May import `model` and the room's `sql`, `nodes`. Knows nothing of what the bytes say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.model.entities import Document
from limnos.model.errors import BadRequest
from limnos.store.nodes import STILL_THERE, still
from limnos.store.sql import Load, Row, Sql, Value

if TYPE_CHECKING:
    from limnos.model.entities import Node
    from limnos.store.tx import Tx

_COLUMNS = "node_id, version, uuid, location, metadata_location, body"
BY_ID = Sql(f"SELECT {_COLUMNS} FROM document WHERE node_id = :id")
HEAD = Sql("SELECT version FROM document WHERE node_id = :id")
INSERT = Sql(
    "INSERT INTO document (node_id, version, uuid, location, metadata_location, body) VALUES"
    " (:id, :version, :uuid, :location, :metadata_location, :body) ON CONFLICT DO NOTHING"
)
SWAP = Sql(
    "UPDATE document SET version = version + 1, uuid = :uuid, location = :location, metadata_location = :metadata_location,"
    " body = :body WHERE node_id = :id AND version = :expected"
)
SWAP_STILL = Sql(f"{SWAP.text} AND {STILL_THERE}")
AT_LOCATION = Sql("SELECT node_id FROM document WHERE location = :location")
DELETE = Sql("DELETE FROM document WHERE node_id = :id")


def document_of(row: Row) -> Document:
    """Build the value of a row whose columns are `_COLUMNS`."""
    return Document(row[0], row[1], row[2], row[3], row[4], bytes(row[5]))


def document_read(node_id: int) -> Load[Document | None]:
    """Read a table's document."""
    rows = yield BY_ID, {"id": node_id}
    return document_of(rows[0]) if rows else None


class DocumentWrites:
    """What mutations do to documents."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx

    def create(self, document: Document) -> None:
        """Insert a document. Raises BadRequest when another table lies at its location."""
        if self.tx.count(INSERT, self._params(document) | {"version": document.version}) == 0:
            self._refuse_location(document.location)

    def swap(self, document: Document, *, expected: int, relocates: bool = True, table: Node | None = None) -> bool:
        """Replace the document if its version is still the expected one; says whether it was.

        `relocates`: the table's location is another one than before, and must be free. `table`: its node as it was decided
        on, which must be that still; without it the caller has looked.
        """
        if relocates and self._is_taken(document):
            self._refuse_location(document.location)
        params = self._params(document) | {"expected": expected}
        wrote = self.tx.count(SWAP, params) if table is None else self.tx.count(SWAP_STILL, params | still(table))
        return wrote > 0

    def read(self, node_id: int) -> Document | None:
        """Read a document inside the transaction."""
        rows = self.tx.rows(BY_ID, {"id": node_id})
        return document_of(rows[0]) if rows else None

    def delete(self, node_id: int) -> None:
        """Forget a document; its files stay."""
        self.tx.count(DELETE, {"id": node_id})

    def _is_taken(self, document: Document) -> bool:
        rows = self.tx.rows(AT_LOCATION, {"location": document.location})
        return bool(rows) and rows[0][0] != document.node_id

    def _refuse_location(self, location: str) -> None:
        raise BadRequest(
            f"Another table lies at location {location}: choose a location of its own, or leave it out to get one"
        )

    def _params(self, document: Document) -> dict[str, Value]:
        return {
            "id": document.node_id, "uuid": document.uuid, "location": document.location,
            "metadata_location": document.metadata_location, "body": document.body,
        }  # fmt: skip
