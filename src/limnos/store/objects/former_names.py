# SPDX-License-Identifier: Apache-2.0
"""Former names: restrictions and denials that a new object of a name takes over from the former object of that name.

Must not know rights or schemas. When a restricted object is dropped, renamed or moved, the transaction stores its
restrictions and denials under its path. An object that gets the path later takes them over in the transaction that
creates or moves it. Decision record 0168.
"""

from __future__ import annotations

from json import dumps, loads
from typing import Final, NamedTuple

import msgspec

from limnos.model.entities import Node
from limnos.model.errors import BadRequest, InUse
from limnos.model.kind_table import NAME_SPACES, kinds_with
from limnos.model.kinds import KINDS, Kind
from limnos.model.restrictions import RESTRICTIONS_MAX, RETAINED_MAX, RestrictionTerms, terms_by_name
from limnos.store.changes import ChangeDraft
from limnos.store.objects.successors import SuccessorObject, SuccessorWrites, has_successors
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Row, Sql, Value
from limnos.store.transaction import StoreTransaction, Writes

REMEMBERED_MS: Final = 30 * 86_400_000
"""The time for which a name of an object that was dropped is remembered at least, in milliseconds."""
RESTRICTED: Final = kinds_with(lambda row: row.restricted)
INHERITING: Final = frozenset((*RESTRICTED, Kind.VIEW))
"""The kinds of objects that take over restrictions or denials. A view takes over denials only."""
OF_OBJECT = Sql("SELECT name, terms, set_by, set_at FROM restriction WHERE object_id = :id ORDER BY name")
DENIALS = Sql(
    "SELECT g.role_id, r.name, g.privilege FROM access_grant g JOIN role r ON r.id = g.role_id AND r.deleted = 0"
    " WHERE g.object_id = :id AND NOT g.allowed ORDER BY g.role_id, g.privilege"
)
CLOSED_IN_ZONE = Sql(
    "SELECT n.id, n.kind, n.name_space FROM (SELECT object_id FROM restriction WHERE zone = :zone"
    " UNION SELECT object_id FROM access_grant WHERE NOT allowed) r CROSS JOIN node n"
    " WHERE n.id = r.object_id AND n.zone = :zone AND n.deleted = 0"
)
CATALOG = Sql(
    "SELECT record, EXISTS (SELECT 1 FROM former_restriction WHERE zone = :zone AND object_id = :id) FROM node"
    " WHERE id = :zone"
)
"""The statement that reads the catalog's record, and whether paths remember restrictions of an object."""
KEEP_OBJECT = Sql("UPDATE former_restriction SET expires_at = :expires WHERE zone = :zone AND object_id = :id")
PATH = Sql(
    "WITH RECURSIVE up (id, parent_id, name, depth) AS (SELECT n.id, n.parent_id, n.name, 0 FROM node n WHERE n.id ="
    " :id UNION ALL SELECT p.id, p.parent_id, p.name, up.depth + 1 FROM up JOIN node p ON p.id = up.parent_id WHERE"
    " up.parent_id <> :zone) SELECT id, name FROM up ORDER BY depth DESC"
)
_COLUMNS = "zone, path, object_id, restriction, name, name_space, terms, set_by, set_at, expires_at"
PUT = Sql(
    f"INSERT INTO former_restriction ({_COLUMNS}) VALUES (:zone, :path, :id, :restriction, :name, :space, :terms,"
    " :set_by, :set_at, :expires) ON CONFLICT (zone, path, object_id, restriction) DO UPDATE SET terms ="
    " excluded.terms, expires_at = excluded.expires_at"
)
_VALID = (
    "(f.expires_at > :now OR EXISTS (SELECT 1 FROM node o WHERE o.id = f.object_id AND o.deleted = 0)"
    f" OR {KEPT.format('f.object_id')})"
)
_FOUND = (
    "SELECT f.path, f.object_id, f.restriction, f.name_space, f.terms, f.set_by, f.set_at FROM former_restriction f"
)
NAMED = Sql(
    f"{_FOUND} WHERE f.zone = :zone AND f.name = :name AND f.name_space = :space AND f.object_id <> :id AND {_VALID}"
    " ORDER BY f.object_id, f.restriction"
)
REMEMBERED: Final = (
    "EXISTS (SELECT 1 FROM former_restriction f WHERE f.zone = :zone AND f.name = :name AND f.name_space = :space)"
    " OR EXISTS (SELECT 1 FROM former_object o WHERE o.zone = :zone AND o.name = :name AND o.name_space = :space)"
)
"""The condition without which `FormerNameWrites.take` finds nothing for an object: a part of the statement that inserts
it.
"""
IN_ZONE = Sql(f"{_FOUND} WHERE f.zone = :zone AND {_VALID} ORDER BY f.path, f.object_id, f.restriction")
FORGET_OBJECT = Sql("DELETE FROM former_restriction WHERE zone = :zone AND path = :path AND object_id = :id")
FORGET_NAME = Sql("DELETE FROM former_restriction WHERE zone = :zone AND path = :path AND restriction = :restriction")
LEFT = Sql("SELECT path FROM former_restriction WHERE zone = :zone AND object_id = :id AND restriction = :restriction")
FORGET_LEFT = Sql(
    "DELETE FROM former_restriction WHERE zone = :zone AND path = :path AND object_id = :id"
    " AND restriction = :restriction"
)
FORGET_EXPIRED = Sql(
    "DELETE FROM former_restriction WHERE zone = :zone AND expires_at <= :now"
    " AND NOT EXISTS (SELECT 1 FROM node o WHERE o.id = former_restriction.object_id AND o.deleted = 0)"
    f" AND NOT {KEPT.format('former_restriction.object_id')}"
)
SWEEP = Sql(
    "DELETE FROM former_restriction WHERE NOT EXISTS"
    " (SELECT 1 FROM node c WHERE c.id = former_restriction.zone AND c.deleted = 0)"
)
_SPACES = ", ".join(f"'{space}'" for space in NAME_SPACES)
CHILD = Sql(
    f"SELECT id, kind, name_space FROM node WHERE parent_id = :parent AND name_space IN ({_SPACES}) AND name = :name"
    " AND deleted = 0 ORDER BY name_space"
)
INHERIT = Sql(
    "INSERT INTO restriction (object_id, name, zone, terms, set_by, set_at) VALUES (:id, :name, :zone, :terms, :set_by,"
    " :set_at)"
)
COUNTS = Sql(
    "SELECT coalesce(sum(CASE WHEN n.deleted = 0 THEN 1 ELSE 0 END), 0), count(*) FROM restriction r"
    " LEFT JOIN node n ON n.id = r.object_id WHERE r.zone = :zone"
)


class NameRestriction(NamedTuple):
    """A restriction, or the denials of one role, in the form that another object takes over."""

    name: str
    terms: RestrictionTerms
    set_by: str
    set_at: int


class PlacedObject(NamedTuple):
    """An object that got a path: a new, moved or restored node."""

    id: int
    kind: Kind
    space: str
    zone: int


def _path(names: list[str]) -> str:
    return dumps(names, ensure_ascii=False)


class FormerNameWrites(Writes):
    """Stores the restrictions and denials of names that objects lose, and gives them to objects that get the names."""

    has_successors = True
    """Whether the catalog may have successors: objects that take over grants, tags and lineage, too."""

    def leave(self, node: Node, *, keep_ms: int = 0) -> str | None:
        """Remember the restrictions and denials of a node that is dropped, under its path, for at least `keep_ms`.

        Returns their names for the change row; None if there are none.
        """
        if node.kind not in INHERITING:
            return None
        closings, expires = self._closing_restrictions(node.id), self.tx.now_ms + max(keep_ms, REMEMBERED_MS)
        record, is_remembered = self.tx.rows(CATALOG, {"zone": node.zone, "id": node.id})[0]
        self.has_successors = has_successors(record)
        if not closings and not is_remembered and not self.has_successors:
            return None
        names = self.names_of(node)
        if self.has_successors:
            SuccessorWrites(self.tx).remember(node, path=_path(names), keep_ms=keep_ms)
        self._remember(_placed_object(node), names, closings=closings)
        self.tx.count(KEEP_OBJECT, {"zone": node.zone, "id": node.id, "expires": expires})
        return _restriction_list(closings)

    def move_away(self, node: Node, *, parent_id: int) -> str | None:
        """Remember a node that gets another path, with the objects below it, and give it what its ancestors closed.

        Call it before the node moves. Returns the names of the restrictions, or None.
        """
        if node.kind not in INHERITING:
            return None
        self.tx.count(FORGET_EXPIRED, {"zone": node.zone, "now": self.tx.now_ms})
        self.has_successors = has_successors(self.tx.rows(CATALOG, {"zone": node.zone, "id": node.id})[0][0])
        closings = self._closing_restrictions(node.id)
        names = self.names_of(node)
        if self.has_successors:
            SuccessorWrites(self.tx).remember(node, path=_path(names))
            if node.kind is Kind.NAMESPACE:
                SuccessorWrites(self.tx).forget_below(node.zone, names)
        if closings:
            self._remember(_placed_object(node), names, closings=closings)
        if node.kind is Kind.NAMESPACE:
            self._remember_below(node)
        if parent_id != node.parent_id:
            self._keep_ancestors(node, parent_id=parent_id)
        return _restriction_list(closings)

    def take(
        self, placed: PlacedObject, *, name: str, former: list[str] | None = None, is_restored: bool = False
    ) -> None:
        """Give an object the restrictions and denials of former objects of its path, and let it take over from the last
        one what its owner may pass on (`successors`).

        Args:
            placed: The object, at its new path.
            name: Its name there.
            former: The names of the former path of a moved namespace: names remembered below it hold below the new
                path, too.
            is_restored: Whether it comes from the trash.

        Raises:
            MetalakeLockRequired: It takes over grants or tags, and the transaction lacks the metalake's lock.
            InUse: A view gets the name of a restricted table.
            BadRequest: The catalog has too many restrictions.
        """
        tx = self.tx
        if placed.kind not in INHERITING:
            return
        parameters = {"zone": placed.zone, "id": placed.id, "now": tx.now_ms}
        rows = tx.rows(NAMED, {**parameters, "name": name, "space": placed.space})
        is_namespace = placed.kind is Kind.NAMESPACE and former is not None
        if not rows and not is_namespace and not self.has_successors:
            return
        names = self._names(placed.id, placed.zone)
        self._inherit(placed, [row for row in rows if row[0] == _path(names)])
        if self.has_successors:
            self._take_over(placed, names, is_restored=is_restored, is_moved=former is not None)
        if is_namespace:
            self._take_below(placed, names, former=former or [])

    def names_of(self, node: Node) -> list[str]:
        """Return the names on the path of a node, below its catalog."""
        return self._names(node.id, node.zone)

    def forget(self, node: Node, restriction: str) -> None:
        """Forget a restriction of former objects of a node's path: it was set again, or removed.

        Names in the same namespace that the node itself has left forget it, too: who may lift it here may lift it
        there. A name in another namespace remembers it.
        """
        names = self._names(node.id, node.zone)
        path = _path(names)
        params: dict[str, Value] = {"zone": node.zone, "restriction": restriction}
        self.tx.count(FORGET_NAME, {**params, "path": path})
        for (left,) in self.tx.rows(LEFT, {**params, "id": node.id}):
            if loads(left)[:-1] == names[:-1]:
                self.tx.count(FORGET_LEFT, {**params, "id": node.id, "path": left})

    def _names(self, node_id: int, zone: int) -> list[str]:
        return [row[1] for row in self.tx.rows(PATH, {"id": node_id, "zone": zone})]

    def _closing_restrictions(self, object_id: int) -> list[NameRestriction]:
        """Return the restrictions and denials of an object. Former columns are those of other tables, or of those that
        leave the object, which is a namespace then.
        """
        tx, closings = self.tx, []
        for name, text, set_by, set_at in tx.rows(OF_OBJECT, {"id": object_id}):
            stored_terms = msgspec.json.decode(text, type=RestrictionTerms)
            terms = msgspec.structs.replace(terms_by_name(stored_terms), former=stored_terms.former)
            closings.append(NameRestriction(name, terms, set_by, set_at))
        denied: dict[tuple[int, str], list[int]] = {}
        for role_id, role, privilege in tx.rows(DENIALS, {"id": object_id}):
            denied.setdefault((role_id, role), []).append(privilege)
        for (role_id, role), privileges in denied.items():
            terms = RestrictionTerms(to=(role_id,), denies=tuple(privileges))
            closings.append(NameRestriction(f"denials of {role}", terms, tx.actor, tx.now_ms))
        return closings

    def _remember(self, node: PlacedObject, names: list[str], *, closings: list[NameRestriction]) -> None:
        self.tx.count(FORGET_OBJECT, {"zone": node.zone, "path": _path(names), "id": node.id})
        for each in closings:
            text = msgspec.json.encode(each.terms).decode()
            self._put(node.zone, names, former=(node.id, each.name, node.space, text, each.set_by, each.set_at))

    def _put(self, zone: int, names: list[str], *, former: Row) -> None:
        """Store a row of a former object, in the form of `IN_ZONE` without its path, under the path of these names."""
        object_id, restriction, space, terms, set_by, set_at = former
        self.tx.count(
            PUT,
            {
                "zone": zone,
                "path": _path(names),
                "id": object_id,
                "restriction": restriction,
                "name": names[-1],
                "space": space,
                "terms": terms,
                "set_by": set_by,
                "set_at": set_at,
                "expires": self.tx.now_ms + REMEMBERED_MS,
            },
        )

    def _remember_below(self, namespace: Node) -> None:
        """Remember the restricted objects below a namespace under their paths."""
        zone = namespace.zone
        for object_id, kind, space in self.tx.rows(CLOSED_IN_ZONE, {"zone": zone}):
            path = self.tx.rows(PATH, {"id": object_id, "zone": zone})
            if any(row[0] == namespace.id for row in path[:-1]):
                names, node = [row[1] for row in path], PlacedObject(object_id, KINDS[kind], space, zone)
                self._remember(node, names, closings=self._closing_restrictions(object_id))

    def _keep_ancestors(self, node: Node, *, parent_id: int) -> None:
        """Give a node what restricts it by its ancestors of which it will not be a descendant any more."""
        stays = {row[0] for row in self.tx.rows(PATH, {"id": parent_id, "zone": node.zone})}
        placed_node = _placed_object(node)
        for row in self.tx.rows(PATH, {"id": node.parent_id, "zone": node.zone}):
            if row[0] not in stays and row[0] != node.zone:
                for each in self._closing_restrictions(row[0]):
                    if each.terms.denies or placed_node.kind in RESTRICTED:
                        self._add(placed_node, each, is_exact=True)

    def _inherit(self, placed: PlacedObject, rows: list[Row]) -> None:
        for _, _, name, _, text, set_by, set_at in rows:
            terms = msgspec.json.decode(text, type=RestrictionTerms)
            if not terms.denies and placed.kind not in RESTRICTED:
                raise InUse(
                    f"A {placed.kind.word} cannot take the name of a table with read restrictions, because they would"
                    " not apply to it: use another name, or restore the table and remove its restrictions first",
                    kind=placed.kind.word,
                )
            if not terms.denies and placed.kind is Kind.TABLE:
                terms = msgspec.structs.replace(terms, inherited=True)
            self._add(placed, NameRestriction(name, terms, set_by, set_at))

    def _add(self, placed: PlacedObject, closing: NameRestriction, *, is_exact: bool = False) -> None:
        """Add a restriction to an object that has no equal one; it gets another name if its name is taken.

        One that binds the same names to field ids is equal too, unless `is_exact`.
        """
        tx = self.tx
        existing_names = {row[0]: row[1] for row in tx.rows(OF_OBJECT, {"id": placed.id})}
        if any(_is_same(closing.terms, text, is_exact=is_exact) for text in existing_names.values()):
            return
        name, number = closing.name, 2
        while name in existing_names:
            name, number = f"{closing.name} {number}", number + 1
        text = msgspec.json.encode(closing.terms).decode()
        tx.count(
            INHERIT,
            {
                "id": placed.id,
                "name": name,
                "zone": placed.zone,
                "terms": text,
                "set_by": closing.set_by,
                "set_at": closing.set_at,
            },
        )
        if has_too_many(tx, placed.zone):
            raise BadRequest(
                "The object would take over restrictions of a former one of its name, and a catalog has at most"
                f" {RESTRICTIONS_MAX}, and {RETAINED_MAX} with those of objects in the trash: remove some first, empty"
                " the trash, or use another name"
            )
        detail = f"restriction {name}, which a former object of this path had"
        tx.add_change(
            ChangeDraft(
                operation="restrict",
                kind=placed.kind,
                node_id=placed.id,
                name_space=placed.space,
                moves_access=True,
                detail=detail,
            )
        )

    def _take_below(self, namespace: PlacedObject, names: list[str], *, former: list[str]) -> None:
        """Give objects below a moved namespace what former objects of their new paths had, and remember the names
        below its former path also below its new one.
        """
        depth = len(names)
        for row in self.tx.rows(IN_ZONE, {"zone": namespace.zone, "now": self.tx.now_ms}):
            path = loads(row[0])
            if path[: len(former)] == former and len(path) > len(former):
                self._put(namespace.zone, [*names, *path[len(former) :]], former=row[1:])
            if path[:depth] == names and len(path) > depth:
                placed_node = self._find_below(namespace, path[depth:], space=row[3])
                if placed_node is not None and placed_node.id != row[1]:
                    self._inherit(placed_node, [row])

    def _take_over(self, placed: PlacedObject, names: list[str], *, is_restored: bool, is_moved: bool) -> None:
        """Let an object take over from the last object of its path. The change row of its creation or move says so."""
        tx, writes = self.tx, SuccessorWrites(self.tx)
        if placed.kind is Kind.NAMESPACE and is_moved:
            writes.forget_below(placed.zone, names)
        successor = SuccessorObject(
            id=placed.id, kind=placed.kind, space=placed.space, zone=placed.zone, names=names, path=_path(names)
        )
        if detail := writes.take(successor, is_restored=is_restored):
            for at in reversed(range(len(tx.drafts))):
                draft = tx.drafts[at]
                if draft.node_id == placed.id and draft.operation in ("create", "move"):
                    details = [each for each in (draft.detail, detail) if each]
                    tx.drafts[at] = msgspec.structs.replace(draft, detail="; ".join(details))
                    return

    def _find_below(self, namespace: PlacedObject, names: list[str], *, space: str) -> PlacedObject | None:
        parent_id = namespace.id
        for index, name in enumerate(names):
            rows = self.tx.rows(CHILD, {"parent": parent_id, "name": name})
            is_last = index == len(names) - 1
            fits = [row for row in rows if (row[2] == space if is_last else KINDS[row[1]] is Kind.NAMESPACE)]
            if not fits:
                return None
            parent_id = fits[0][0]
        return PlacedObject(parent_id, KINDS[fits[0][1]], fits[0][2], namespace.zone)


def has_too_many(tx: StoreTransaction, zone: int) -> bool:
    """Return whether a catalog has more restrictions than its limits, of live objects or in all."""
    ((live, every),) = tx.rows(COUNTS, {"zone": zone})
    return bool(live > RESTRICTIONS_MAX or every > RETAINED_MAX)


def _placed_object(node: Node) -> PlacedObject:
    return PlacedObject(node.id, node.kind, node.name_space, node.zone)


def _is_same(terms: RestrictionTerms, text: str, *, is_exact: bool) -> bool:
    """Return whether a stored restriction closes the same as some terms."""
    stored_terms = msgspec.json.decode(text, type=RestrictionTerms)
    if is_exact:
        return stored_terms == terms
    by_name = msgspec.structs.replace(terms_by_name(stored_terms), inherited=False)
    return by_name == msgspec.structs.replace(terms, former=(), inherited=False)


def _restriction_list(closings: list[NameRestriction]) -> str | None:
    return f"restrictions that stay with the name: {', '.join(each.name for each in closings)}" if closings else None
