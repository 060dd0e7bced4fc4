# SPDX-License-Identifier: Apache-2.0
"""A small tree for tests of stores, created by store mutations without permits and services."""

from __future__ import annotations

from dataclasses import dataclass

from limnos.model.entities import Node
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.records import CatalogRecord, MetalakeRecord, NamespaceRecord, TableRecord
from limnos.store.tx import Tx
from tests.backends import StoreLab

METALAKE = MetalakeRecord(comment=None, properties={}, in_use=True)
CATALOG = CatalogRecord(type="RELATIONAL", provider="lakehouse-iceberg", comment=None, properties={}, in_use=True)
NAMESPACE = NamespaceRecord(comment=None, properties={})
TABLE = TableRecord(comment=None, properties={})
ASTRAL = "\N{GRINNING FACE}"
"""A character beyond the basic plane: UTF-16 sorts it before U+FFFD, code points after it."""


@dataclass(frozen=True)
class StoreWorld:
    """A metalake `lake` with the catalogs `main` and `side`."""

    lake: Node
    main: Node
    side: Node


def make_world(lab: StoreLab) -> StoreWorld:
    """Create a metalake `lake` with the catalogs `main` and `side`."""
    lake = lab.write(lambda tx: _zone(tx, Kind.METALAKE, "lake", ROOT_ID))
    main, side = (
        lab.write(lambda tx, name=name: _zone(tx, Kind.CATALOG, name, lake.id), zone=lake.id)
        for name in ("main", "side")
    )
    return StoreWorld(lake, main, side)


def _zone(tx: Tx, kind: Kind, name: str, parent: int) -> Node:
    node_id = tx.next_id()
    tx.new_zone(node_id)
    record = METALAKE if kind is Kind.METALAKE else CATALOG
    return tx.nodes.create(
        kind=kind, space=kind.word, name=name, parent_id=parent, zone=parent, record=record, node_id=node_id
    )


def add_namespace(tx: Tx, parent: Node, name: str, *, owner_id: int | None = None) -> Node:
    """Insert a namespace below a catalog or namespace."""
    zone = parent.id if parent.kind is Kind.CATALOG else parent.zone
    return tx.nodes.create(
        kind=Kind.NAMESPACE,
        space="namespace",
        name=name,
        parent_id=parent.id,
        zone=zone,
        record=NAMESPACE,
        owner_id=owner_id,
    )


def add_table(tx: Tx, parent: Node, name: str) -> Node:
    """Insert a table, without a document."""
    return tx.nodes.create(
        kind=Kind.TABLE, space="table", name=name, parent_id=parent.id, zone=parent.zone, record=TABLE
    )
