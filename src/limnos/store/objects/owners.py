# SPDX-License-Identifier: Apache-2.0
"""Owners: one principal, a user or a group, for each object. An owner row belongs to its object's zone.

Must not know rights.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from json import dumps
from typing import Final

from limnos.model.entities import OwnedRange
from limnos.model.kinds import KINDS, Kind
from limnos.store.changes import ChangeDraft
from limnos.store.objects.name_search import one_of
from limnos.store.sql import Load, Row, Sql
from limnos.store.transaction import Writes

OWNER = Sql("SELECT principal_id FROM owner WHERE object_id = :id")
OWNERS = Sql(
    f"SELECT object_id, principal_id FROM owner WHERE object_id {one_of('ids')[0]}",
    on_sqlite=f"SELECT object_id, principal_id FROM owner WHERE object_id {one_of('ids')[1]}",
)
INSERT = Sql("INSERT INTO owner (object_id, principal_id) VALUES (:id, :principal)")
SET = Sql(
    "INSERT INTO owner (object_id, principal_id) VALUES (:id, :principal)"
    " ON CONFLICT (object_id) DO UPDATE SET principal_id = excluded.principal_id"
)

NEW_AND_OLD = Sql(
    "SELECT kind, name FROM principal WHERE id = :principal UNION ALL"
    " SELECT p.kind, p.name FROM owner o JOIN principal p ON p.id = o.principal_id WHERE o.object_id = :id"
)
"""The statement that reads who is to own an object, and who owns it."""
OWNED_MAX: Final = 5_000
"""The number of owner rows in one statement: a few milliseconds."""
_OWNED = (
    "SELECT o.principal_id, o.object_id, n.zone, n.parent_id, n.kind FROM owner o"
    " LEFT JOIN node n ON n.id = o.object_id AND n.deleted = 0 WHERE o.principal_id {of_principals}"
    " AND o.object_id > :after ORDER BY o.principal_id, o.object_id LIMIT :limit"
)
OWNED = Sql(
    _OWNED.format(of_principals=one_of("principals")[0]), on_sqlite=_OWNED.format(of_principals=one_of("principals")[1])
)


_CONTAINERS = ", ".join(str(int(kind)) for kind in (Kind.METALAKE, Kind.CATALOG, Kind.NAMESPACE))
CONTAINERS = Sql(
    "SELECT o.object_id FROM owner o JOIN node n ON n.id = o.object_id AND n.deleted = 0"
    f" WHERE o.principal_id = :principal AND n.kind IN ({_CONTAINERS}) ORDER BY o.object_id LIMIT :limit"
)


def owned_read(
    principal_ids: Collection[int], *, zones: Collection[int], after: int
) -> Load[dict[tuple[int, int], OwnedRange]]:
    """Read the namespaces of catalogs in which principals own objects, and the namespaces that they own themselves.

    Reads a page of owned objects with ids greater than `after`. Returns a range by zone and principal, without those
    principals that the page did not reach.
    """
    rows = yield OWNED, {"principals": dumps(sorted(principal_ids)), "after": after, "limit": OWNED_MAX}
    return owned_ranges(rows, principal_ids, zones=zones, is_last=len(rows) < OWNED_MAX)


def owned_ranges(
    rows: Sequence[Row], principal_ids: Collection[int], *, zones: Collection[int], is_last: bool
) -> dict[tuple[int, int], OwnedRange]:
    """Build the ranges of owned objects by zone and principal.

    Args:
        rows: The owner, then id, zone, parent and kind of the object, in the order of owner and id; no zone for an
            object that is not a live node.
        principal_ids: The principals of the ranges.
        zones: The catalogs of the ranges.
        is_last: Whether no further rows follow. Else the result lacks the principals after the one of the last row.
    """
    parents: dict[tuple[int, int], set[int]] = {}
    namespaces: dict[tuple[int, int], set[int]] = {}
    for principal_id, object_id, zone, parent_id, kind in rows:
        if kind == Kind.NAMESPACE:
            namespaces.setdefault((zone, principal_id), set()).add(object_id)
        elif zone is not None:
            parents.setdefault((zone, principal_id), set()).add(parent_id)
    last_principal, last_object = (max(principal_ids, default=0), None) if is_last else rows[-1][:2]
    results: dict[tuple[int, int], OwnedRange] = {}
    for principal_id in principal_ids:
        if principal_id <= last_principal:
            last = last_object if principal_id == last_principal else None
            nothing = OwnedRange(frozenset(), frozenset(), last)
            for key in ((zone, principal_id) for zone in zones):
                if key in parents or key in namespaces:
                    of_parents, of_namespaces = parents.get(key, ()), namespaces.get(key, ())
                    results[key] = OwnedRange(frozenset(of_parents), frozenset(of_namespaces), last)
                else:
                    results[key] = nothing
    return results


def owner_read(object_id: int) -> Load[int | None]:
    """Read the id of an object's owner; None if it has no owner."""
    rows = yield OWNER, {"id": object_id}
    return rows[0][0] if rows else None


def owners_read(object_ids: Collection[int]) -> Load[dict[int, int | None]]:
    """Read the ids of the owners of several objects; None for an object without an owner."""
    rows = yield OWNERS, {"ids": dumps(sorted(object_ids))}
    return dict.fromkeys(object_ids) | dict(rows)


class OwnerWrites(Writes):
    """Writes owners inside a transaction."""

    def insert(self, object_id: int, principal_id: int) -> None:
        """Insert the owner of a new object.

        Writes no change row: the change row of the creation invalidates cached facts of the object and of its owner.
        """
        self.tx.count(INSERT, {"id": object_id, "principal": principal_id})

    def of(self, object_id: int) -> int | None:
        """Read the id of an object's owner inside the transaction; None if it has no owner."""
        rows = self.tx.rows(OWNER, {"id": object_id})
        return rows[0][0] if rows else None

    def containers_of(self, principal_id: int, *, limit: int) -> list[int]:
        """Read the ids of the live metalakes, catalogs and namespaces that a user or group owns, the oldest first."""
        return [row[0] for row in self.tx.rows(CONTAINERS, {"principal": principal_id, "limit": limit})]

    def set(
        self,
        object_id: int,
        kind: Kind,
        principal_id: int,
        *,
        parent_id: int | None,
        space: str,
        name: str | None = None,
    ) -> None:
        """Set the owner of an object. The change row has the object's parent and name, so that cached listings are
        updated.
        """
        names = [
            f"{KINDS[kind].word} {name}"
            for kind, name in self.tx.rows(NEW_AND_OLD, {"id": object_id, "principal": principal_id})
        ]
        self.tx.count(SET, {"id": object_id, "principal": principal_id})
        self.tx.add_change(
            ChangeDraft(
                operation="own",
                kind=kind,
                node_id=object_id,
                name_space=space,
                old_parent=parent_id,
                new_name=name,
                moves_access=True,
                owner_id=principal_id,
                detail=f"owner {', before '.join(names)}",
            )
        )
