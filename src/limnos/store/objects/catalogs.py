# SPDX-License-Identifier: Apache-2.0
"""Reads of the catalogs of all metalakes of a store.

Must not know rights.
"""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.model.records import CatalogRecord
from limnos.store.sql import Load, Sql
from limnos.store.transaction import StoreTransaction

_CATALOGS = "FROM clock c CROSS JOIN node n WHERE n.id = c.zone AND n.kind = :kind AND n.deleted = 0 ORDER BY c.zone"
"""Each catalog is a zone and has a clock, so only the nodes of zones are read."""
CATALOGS_PLACED = Sql(f"SELECT n.id, n.parent_id, n.record {_CATALOGS}")
CATALOGS = Sql(f"SELECT n.id, n.record {_CATALOGS}")
ANY_RECORD = Sql("SELECT record FROM node WHERE id = :id")
ANY_ZONE = Sql("SELECT zone FROM node WHERE id = :id AND format = :format")


def catalog_of(tx: StoreTransaction, node_id: int, *, node_format: str) -> int | None:
    """Read the id of the catalog that contains or contained a node; None if no node with this id and format existed."""
    rows = tx.rows(ANY_ZONE, {"id": node_id, "format": node_format})
    return int(rows[0][0]) if rows else None


def catalog_read(tx: StoreTransaction, catalog_id: int) -> CatalogRecord | None:
    """Read a catalog's record, even of a dropped one; None if it never existed."""
    rows = tx.rows(ANY_RECORD, {"id": catalog_id})
    return CatalogRecord.read(rows[0][0]) if rows else None


def catalog_records_read() -> Load[list[tuple[int, int, CatalogRecord]]]:
    """Read every live catalog of the store: its id, its metalake's id, and its record."""
    rows = yield CATALOGS_PLACED, {"kind": int(Kind.CATALOG)}
    return [(row[0], row[1], CatalogRecord.read(row[2])) for row in rows]


def catalogs_read(tx: StoreTransaction) -> list[tuple[int, CatalogRecord]]:
    """Read every live catalog of the store, inside the transaction: its id and its record."""
    rows = tx.rows(CATALOGS, {"kind": int(Kind.CATALOG)})
    return [(row[0], CatalogRecord.read(row[1])) for row in rows]
