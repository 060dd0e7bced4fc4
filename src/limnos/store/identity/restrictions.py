# SPDX-License-Identifier: Apache-2.0
"""Read restrictions: rows by the table or namespace they are set on, and by name.

Must not know rights. A write moves the access revision of the object's zone, so it applies from the next read on. Rows
are retained while their object is in the trash.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json import dumps
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import KINDS
from limnos.model.restrictions import RESTRICTIONS_MAX, RETAINED_MAX, CatalogRestrictions, Restriction, RestrictionTerms
from limnos.store.changes import ChangeDraft
from limnos.store.objects.former_names import FormerNameWrites, has_too_many
from limnos.store.objects.name_search import one_of
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Load, Row, Sql
from limnos.store.transaction import Writes

READ_TOGETHER_MAX: Final = 5_000
"""The number of restrictions of several catalogs in one statement: some milliseconds."""
_OF_ZONES = (
    "SELECT zone, object_id, name, terms, set_by, set_at FROM restriction WHERE zone {} ORDER BY zone LIMIT :limit"
)
OF_ZONES = Sql(_OF_ZONES.format(one_of("zones")[0]), on_sqlite=_OF_ZONES.format(one_of("zones")[1]))
OF_ZONE = Sql(
    "SELECT object_id, name, terms, set_by, set_at FROM restriction WHERE zone = :zone ORDER BY object_id, name"
)
NAMING = Sql(
    "SELECT r.object_id, r.name, r.terms, r.set_by, r.set_at, c.name, '' FROM restriction r JOIN node c ON"
    " c.id = r.zone AND c.parent_id = :metalake AND c.deleted = 0 JOIN node n ON n.id = r.object_id"
    f" AND (n.deleted = 0 OR {KEPT.format('n.id')})"
    """ WHERE r.terms NOT LIKE '%"to":[]%'"""
    " UNION ALL SELECT f.object_id, f.restriction, f.terms, f.set_by, f.set_at, c.name, f.path FROM"
    " former_restriction f JOIN node c ON c.id = f.zone AND c.parent_id = :metalake AND c.deleted = 0"
    """ WHERE f.expires_at > :now AND f.terms NOT LIKE '%"to":[]%' ORDER BY 1, 2"""
)
AMEND = Sql("UPDATE restriction SET terms = :terms WHERE object_id = :id AND name = :name")
PUT = Sql(
    "INSERT INTO restriction (object_id, name, zone, terms, set_by, set_at) VALUES (:id, :name, :zone, :terms, :actor,"
    " :now) ON CONFLICT (object_id, name) DO UPDATE SET terms = excluded.terms, set_by = excluded.set_by, set_at ="
    " excluded.set_at"
)
KIND_OF = Sql("SELECT kind, name_space FROM node WHERE id = :id")
DELETE = Sql("DELETE FROM restriction WHERE object_id = :id AND name = :name")
SWEEP = Sql(
    "DELETE FROM restriction WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = restriction.object_id AND n.deleted ="
    f" 0) AND NOT {KEPT.format('restriction.object_id')}"
)


def restriction_of(row: Row) -> Restriction:
    """Build a restriction from a row: object, name, terms, author, time."""
    return Restriction(
        object_id=row[0],
        name=row[1],
        terms=msgspec.json.decode(row[2], type=RestrictionTerms),
        set_by=row[3],
        set_at=row[4],
    )


def restrictions_read(zone: int) -> Load[CatalogRestrictions]:
    """Read all restrictions of a catalog, by the id of their object."""
    return _restrictions_of((yield OF_ZONE, {"zone": zone}))


def many_restrictions_read(zones: Sequence[int]) -> Load[dict[int, CatalogRestrictions]]:
    """Read the restrictions of several catalogs; if there are many, of the first ones only."""
    rows = yield OF_ZONES, {"zones": dumps(zones), "limit": READ_TOGETHER_MAX}
    by_zone: dict[int, list[Row]] = {}
    for zone, *row in rows:
        by_zone.setdefault(zone, []).append(tuple(row))
    complete_zones = [zone for zone in zones if len(rows) < READ_TOGETHER_MAX or zone < rows[-1][0]]
    return {zone: _restrictions_of(sorted(by_zone.get(zone, ()), key=itemgetter(0, 1))) for zone in complete_zones}


def _restrictions_of(rows: Iterable[Row]) -> CatalogRestrictions:
    restrictions: dict[int, tuple[Restriction, ...]] = {}
    for row in rows:
        one = restriction_of(row)
        restrictions[one.object_id] = (*restrictions.get(one.object_id, ()), one)
    denying = tuple(each for some in restrictions.values() for each in some if each.terms.denies)
    return CatalogRestrictions(restrictions, denying)


class NamingRestriction(NamedTuple):
    """A restriction that names principals. `former_path` is the path that remembers it; None for one that is set."""

    restriction: Restriction
    former_path: tuple[str, ...] | None


def _former_path(catalog: str, path: str) -> tuple[str, ...] | None:
    return (catalog, *msgspec.json.decode(path, type=tuple[str, ...])) if path else None


class RestrictionWrites(Writes):
    """Writes read restrictions (row filters, column masks) inside a transaction."""

    def put(self, node: Node, name: str, *, terms: RestrictionTerms, forgets: bool = False, summary: str = "") -> None:
        """Set a restriction; it replaces one of the same name, with `forgets` also that of former objects of the path.

        `summary` are the terms in words, for the audit.

        Raises BadRequest if the catalog has more than `RESTRICTIONS_MAX`, or `RETAINED_MAX` with the trash.
        """
        tx = self.tx
        if forgets:
            FormerNameWrites(tx).forget(node, name)
        text = msgspec.json.encode(terms).decode()
        tx.count(
            PUT, {"id": node.id, "name": name, "zone": node.zone, "terms": text, "actor": tx.actor, "now": tx.now_ms}
        )
        if has_too_many(tx, node.zone):
            raise BadRequest(
                f"A catalog has at most {RESTRICTIONS_MAX} restrictions, and {RETAINED_MAX} with those of objects in"
                " the trash: set them on namespaces, remove some first, or empty the trash"
            )
        tx.add_change(self._draft("restrict", node, text=f"{name}: {summary}" if summary else name))

    def of_zone(self, zone: int) -> list[Restriction]:
        """Read all restrictions of a catalog, also those of objects in the trash."""
        return [restriction_of(row) for row in self.tx.rows(OF_ZONE, {"zone": zone})]

    def naming_principals(self, metalake_id: int) -> list[NamingRestriction]:
        """Read the restrictions in a metalake that apply to named principals, also those of objects in the trash, and
        those that paths remember.
        """
        rows = self.tx.rows(NAMING, {"metalake": metalake_id, "now": self.tx.now_ms})
        return [NamingRestriction(restriction_of(row), _former_path(row[5], row[6])) for row in rows]

    def amend(self, restriction: Restriction, terms: RestrictionTerms) -> None:
        """Replace the terms of a restriction, which keeps its author. A catalog's other restrictions are unchanged."""
        tx, name = self.tx, restriction.name
        tx.count(AMEND, {"id": restriction.object_id, "name": name, "terms": msgspec.json.encode(terms).decode()})
        rows = tx.rows(KIND_OF, {"id": restriction.object_id})
        tx.add_change(
            ChangeDraft(
                operation="restrict",
                kind=KINDS[rows[0][0]],
                node_id=restriction.object_id,
                name_space=rows[0][1],
                moves_access=True,
                detail=f"restriction {name}, which follows a column that was renamed or dropped",
            )
        )

    def delete(self, node: Node, name: str, *, forgets: bool = False) -> bool:
        """Delete a restriction, with `forgets` also from what later objects of the path take over.

        Returns whether it existed.
        """
        if forgets:
            FormerNameWrites(self.tx).forget(node, name)
        if not self.tx.count(DELETE, {"id": node.id, "name": name}):
            return False
        self.tx.add_change(self._draft("unrestrict", node, text=name))
        return True

    @staticmethod
    def _draft(operation: str, node: Node, *, text: str) -> ChangeDraft:
        return ChangeDraft(
            operation=operation,
            kind=node.kind,
            node_id=node.id,
            name_space=node.name_space,
            moves_access=True,
            detail=f"restriction {text}",
        )
