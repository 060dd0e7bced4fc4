# SPDX-License-Identifier: Apache-2.0
"""The trash: dropped objects that can be restored until their retention time ends.

Their nodes, owners and documents exist until then. Must not know files. A row guarantees that the object can be
restored. Only the transaction that deletes the row, to restore the object or to delete it permanently, may change its
node, owner or document. Grants on it refer to its id, and are deleted after the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from limnos.model.entities import Node, TrashRow
from limnos.model.kinds import KINDS, Kind
from limnos.store.sql import Load, Row, Sql
from limnos.store.transaction import StoreTransaction, Writes

_COLUMNS = (
    "t.node_id, n.kind, n.name_space, n.name, t.parent_id, t.dropped_by, t.dropped_by_id, t.dropped_at, t.expires_at"
)
_FROM = f"SELECT {_COLUMNS} FROM trash t JOIN node n ON n.id = t.node_id"
PUT = Sql(
    "INSERT INTO trash (node_id, zone, parent_id, dropped_by, dropped_by_id, dropped_at, expires_at, purges) VALUES"
    " (:id, :zone, :parent, :actor, :actor_id, :now, :expires, :purges)"
)
TAKE = Sql("DELETE FROM trash WHERE node_id = :id")
ONE = Sql(f"{_FROM} WHERE t.node_id = :id AND t.zone = :zone")
PAGE = Sql(
    f"{_FROM} WHERE t.zone = :zone AND (t.dropped_at, t.node_id) < (:at, :id)"
    " ORDER BY t.dropped_at DESC, t.node_id DESC LIMIT :limit"
)
IN = Sql(f"{_FROM} WHERE t.parent_id = :parent ORDER BY t.dropped_at DESC, t.node_id DESC LIMIT :limit")
_UP = (
    "WITH RECURSIVE up (id, parent_id, kind, name) AS (SELECT n.id, n.parent_id, n.kind, n.name FROM node n WHERE n.id"
    " IN ({}) UNION SELECT p.id, p.parent_id, p.kind, p.name FROM up JOIN node p ON p.id = up.parent_id) SELECT id,"
    " parent_id, kind, name FROM up"
)
ABOVE = Sql(
    _UP.format("SELECT jsonb_array_elements_text(CAST(:ids AS jsonb))::bigint"),
    on_sqlite=_UP.format("SELECT value FROM json_each(:ids)"),
)
_REMEMBERED = (
    "SELECT object_id, restriction FROM former_restriction WHERE object_id IN ({}) ORDER BY object_id, restriction"
)
REMEMBERED = Sql(
    _REMEMBERED.format("SELECT jsonb_array_elements_text(CAST(:ids AS jsonb))::bigint"),
    on_sqlite=_REMEMBERED.format("SELECT value FROM json_each(:ids)"),
)
EXPIRED = Sql(
    "SELECT t.node_id, t.zone, n.format, d.location, d.metadata_location, t.purges FROM trash t JOIN node n ON n.id ="
    " t.node_id LEFT JOIN document d ON d.node_id = t.node_id WHERE t.expires_at <= :now ORDER BY t.expires_at LIMIT"
    " :limit"
)
FORGET_DOCUMENT = Sql("DELETE FROM document WHERE node_id = :id")
FORGET_FORMER = Sql("DELETE FROM former_object WHERE object_id = :id")
FORGET_OWNER = Sql("DELETE FROM owner WHERE object_id = :id")
IS_MINE = Sql(
    "SELECT 1 FROM trash t LEFT JOIN owner o ON o.object_id = t.node_id WHERE t.node_id = :id"
    " AND (t.dropped_by_id = :actor OR o.principal_id = :actor)"
)
KEPT = "EXISTS (SELECT 1 FROM trash t WHERE t.node_id = {})"
"""The condition that an id is in the trash, for statements that delete orphan rows."""
FOLLOWED = f"({KEPT.format('{0}')} OR EXISTS (SELECT 1 FROM former_object f WHERE f.object_id = {{0}}))"
"""The condition that an id is in the trash, or that a path remembers its object for a successor."""
SWEPT_MAX = 500

Ancestors = dict[int, tuple[int, Kind, str]]
"""By id: parent, kind and name of the requested objects and their ancestors, dropped or not."""


class TrashRows(NamedTuple):
    """Dropped objects, newest first, the ancestors of their nodes, and by id the names of the restrictions and denials
    that stay with their paths.
    """

    rows: tuple[TrashRow, ...]
    above: Ancestors
    remembered: Mapping[int, tuple[str, ...]]


def _trashed_of(row: Row) -> TrashRow:
    return TrashRow(
        id=row[0],
        kind=KINDS[row[1]],
        name_space=row[2],
        name=row[3],
        parent_id=row[4],
        dropped_by=row[5],
        dropped_by_id=row[6],
        dropped_at=row[7],
        expires_at=row[8],
    )


def trash_read(zone: int, *, before: tuple[int, int], limit: int) -> Load[TrashRows]:
    """Read up to `limit` objects of a catalog that were dropped before the key `before` (time, id), newest first."""
    rows = yield PAGE, {"zone": zone, "at": before[0], "id": before[1], "limit": limit}
    return (yield from _with_ancestors(rows))


def trashed_read(zone: int, node_id: int) -> Load[TrashRows]:
    """Read one dropped object of a catalog; no row if it is not in the trash."""
    rows = yield ONE, {"zone": zone, "id": node_id}
    return (yield from _with_ancestors(rows))


def _with_ancestors(rows: Sequence[Row]) -> Load[TrashRows]:
    if not rows:
        return TrashRows((), {}, {})
    ids = msgspec.json.encode([row[0] for row in rows]).decode()
    above = yield ABOVE, {"ids": ids}
    remembered: dict[int, tuple[str, ...]] = {}
    for object_id, name in (yield REMEMBERED, {"ids": ids}):
        remembered[object_id] = (*remembered.get(object_id, ()), name)
    return TrashRows(
        tuple([_trashed_of(row) for row in rows]),
        {row[0]: (row[1], KINDS[row[2]], row[3]) for row in above},
        {object_id: tuple(dict.fromkeys(names)) for object_id, names in remembered.items()},
    )


class TrashWrites(Writes):
    """Reads and writes the trash inside a transaction."""

    def put(self, node: Node, *, keep_ms: int, purges: bool = False) -> None:
        """Put a dropped node into the trash for `keep_ms`. With `purges`, its files are deleted after that."""
        tx = self.tx
        tx.count(
            PUT,
            {
                "id": node.id,
                "zone": node.zone,
                "parent": node.parent_id,
                "actor": tx.actor,
                "actor_id": tx.actor_id,
                "now": tx.now_ms,
                "expires": tx.now_ms + keep_ms,
                "purges": purges,
            },
        )

    def take(self, node_id: int) -> bool:
        """Remove an object from the trash.

        Returns whether it was in the trash; only then may the caller change the object's node, owner or document.
        """
        return self.tx.count(TAKE, {"id": node_id}) > 0

    def within(self, parent_id: int, *, limit: int) -> list[TrashRow]:
        """Read up to `limit` objects that were dropped directly in a parent, newest first."""
        return [_trashed_of(row) for row in self.tx.rows(IN, {"parent": parent_id, "limit": limit})]

    def forget(self, node_id: int) -> bool:
        """Remove an object from the trash permanently, with its document and its owner row, but not its files.

        Returns whether it was in the trash.
        """
        if not self.take(node_id):
            return False
        self.tx.count(FORGET_DOCUMENT, {"id": node_id})
        self.tx.count(FORGET_FORMER, {"id": node_id})
        self.tx.count(FORGET_OWNER, {"id": node_id})
        return True

    def is_own(self, node_id: int) -> bool:
        """Return whether the caller owned or dropped the object. Always True if access control is off."""
        actor = self.tx.actor_id
        return actor is None or bool(self.tx.rows(IS_MINE, {"id": node_id, "actor": actor}))


class ExpiredObject(NamedTuple):
    """An object whose retention time in the trash has ended. `purges` states whether its files are deleted now."""

    node_id: int
    zone: int
    format: str
    location: str | None
    metadata_location: str | None
    purges: bool


def trash_expired(tx: StoreTransaction) -> list[ExpiredObject]:
    """Read up to `SWEPT_MAX` objects whose retention time in the trash has ended."""
    return [ExpiredObject(*row) for row in tx.rows(EXPIRED, {"now": tx.now_ms, "limit": SWEPT_MAX})]
