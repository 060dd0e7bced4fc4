# SPDX-License-Identifier: Apache-2.0
"""Writes of nodes of the tree by mutations; `node_reads` has the reads for the view.

Must not know rights. A mutation confirms the node by id, parent and name before it writes (rule 6), so that an outdated
path is never written to.
"""

from __future__ import annotations

from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, NotEmpty, StalePermit
from limnos.model.kinds import KINDS, Kind
from limnos.model.records import NodeRecord, encode
from limnos.names.parts import fold
from limnos.store.changes import ChangeDraft
from limnos.store.objects.former_names import REMEMBERED, FormerNameWrites, PlacedObject
from limnos.store.objects.node_reads import BY_ID, columns_of, node_of
from limnos.store.objects.owners import OwnerWrites
from limnos.store.objects.protection import UNPROTECTED, ProtectionWrites
from limnos.store.objects.trash import TrashWrites
from limnos.store.sql import Sql, Value
from limnos.store.transaction import Writes

DATA_ONLY = "data"
"""A marker in a commit's change row in place of a name: comment and current schema are unchanged, so searches skip the
row.
"""
BELOW_MAX = 100_000
"""The maximum number of namespaces that a transaction reads to compute heights before it refuses a further one."""

CONFIRMED = Sql(
    f"SELECT {columns_of('n')} FROM node n WHERE n.id = :id AND n.parent_id = :parent AND n.name = :name AND"
    " n.deleted = 0"
)
STILL_THERE_CHECK = Sql("SELECT 1 FROM node WHERE id = :id AND parent_id = :parent AND name = :name AND deleted = 0")
ALIVE = Sql("SELECT 1 FROM node WHERE id = :id AND deleted = 0")
BY_NAME = Sql(
    f"SELECT {columns_of('n')} FROM node n WHERE n.parent_id = :parent AND n.name_space = :space AND n.name = :name AND"
    " n.deleted = 0"
)
_INTO = (
    "INTO node (id, zone, parent_id, kind, name_space, name, format, implicit, created_by, created_at, revision,"
    " deleted, record, folded)"
)
_AFTER_ZONE = ":parent, :kind, :space, :name, :format, :implicit, :actor, :now, :revision, 0, :record, :folded"
_REMEMBERED = f"RETURNING {REMEMBERED}"
INSERT = Sql(f"INSERT {_INTO} VALUES (:id, :zone, {_AFTER_ZONE}) ON CONFLICT DO NOTHING {_REMEMBERED}")
"""The statement that inserts a node. Returns one row with whether former names may have restrictions for it; none if
the name is taken.
"""
_STILL = "FROM node s WHERE s.id = :still_id AND s.parent_id = :still_parent AND s.name = :still_name AND s.deleted = 0"
STILL_THERE = f"EXISTS (SELECT 1 {_STILL})"
"""The condition that `require` checks, for statements that need no other column of the node."""
INSERT_UNDER = Sql(
    f"INSERT {_INTO} SELECT :id, :zone, {_AFTER_ZONE} {_STILL} ON CONFLICT DO NOTHING {_REMEMBERED}",
    # For a SELECT from the table it inserts into, SQLite first copies the rows, which takes as long as the insert. Here
    # a missing parent makes the zone null, and the row is ignored, like one whose name is taken.
    on_sqlite=f"INSERT OR IGNORE {_INTO} VALUES (:id, (SELECT :zone {_STILL}), {_AFTER_ZONE}) {_REMEMBERED}",
)
_OWNED = (
    f"WITH added AS ({{}} RETURNING id, {REMEMBERED} AS remembered), owned AS (INSERT INTO owner (object_id,"
    " principal_id) SELECT id, :owner FROM added) SELECT remembered FROM added"
)
INSERT_OWNED_POSTGRES = Sql(_OWNED.format(INSERT.text.removesuffix(f" {_REMEMBERED}")))
INSERT_UNDER_OWNED_POSTGRES = Sql(_OWNED.format(INSERT_UNDER.text.removesuffix(f" {_REMEMBERED}")))
"""The same statements with the row of the owner, for stores whose statements write to several tables."""
SET_PLACE = Sql(
    "UPDATE node SET parent_id = :parent, name = :name, folded = :folded, modified_by = :actor, modified_at = :now,"
    " revision = :revision WHERE id = :id"
)
SET_RECORD = Sql(
    "UPDATE node SET record = :record, modified_by = :actor, modified_at = :now, revision = :revision WHERE id = :id"
)
SET_DROPPED = Sql(
    "UPDATE node SET deleted = :id, modified_by = :actor, modified_at = :now, revision = :revision WHERE id = :id"
    f" AND {UNPROTECTED}"
)
SET_RESTORED = Sql(
    "UPDATE node SET deleted = 0, parent_id = :parent, name = :name, folded = :folded, modified_by = :actor,"
    " modified_at = :now, revision = :revision WHERE id = :id"
)
OWNER = Sql("SELECT principal_id FROM owner WHERE object_id = :id")
ANY_CHILD = Sql("SELECT kind, name FROM node WHERE parent_id = :id AND deleted = 0 LIMIT 1")
HEIGHT = Sql(
    "WITH RECURSIVE below(id, zone, depth) AS (SELECT id, zone, 0 FROM node WHERE id = :id UNION ALL SELECT n.id,"
    " n.zone, b.depth + 1 FROM below b JOIN node n ON n.zone = b.zone AND n.parent_id = b.id AND n.kind ="
    f" {int(Kind.NAMESPACE)} AND n.deleted = 0) SELECT max(b.depth + CASE WHEN EXISTS (SELECT 1 FROM node c WHERE"
    " c.parent_id = b.id AND c.deleted = 0) THEN 1 ELSE 0 END), count(*) FROM below b"
)
"""Reads the namespaces below a namespace, and one object in each: other objects contain none."""
SUBTREE = Sql(
    "WITH RECURSIVE below(id, depth) AS (SELECT id, 1 FROM node WHERE parent_id = :id AND deleted = 0 UNION ALL"
    " SELECT n.id, b.depth + 1 FROM below b JOIN node n ON n.parent_id = b.id AND n.deleted = 0)"
    f" SELECT {columns_of('n')} FROM below b JOIN node n ON n.id = b.id ORDER BY b.depth DESC, n.id LIMIT :limit"
)
CHILDREN = Sql(
    f"SELECT {columns_of('n')} FROM node n WHERE n.parent_id = :id AND n.deleted = 0"
    " ORDER BY n.name_space, n.name LIMIT :limit"
)
SET_IMPLICIT = Sql(
    "UPDATE node SET implicit = :implicit, modified_by = :actor, modified_at = :now, revision = :revision WHERE id"
    " = :id"
)
ZONE = Sql("SELECT zone FROM node WHERE id = :id")
KIND_AND_NAME = Sql("SELECT kind, name FROM node WHERE id = :id")
PARENT = Sql("SELECT parent_id FROM node WHERE id = :id")
DELETE_OWNER = Sql("DELETE FROM owner WHERE object_id = :id")


def still_there_params(node: Node) -> dict[str, Value]:
    """Return the parameters of the SQL condition `STILL_THERE`: the node exists with this id, parent and name."""
    return {"still_id": node.id, "still_parent": node.parent_id, "still_name": node.name}


class NodeWrites(Writes):
    """Reads and writes nodes inside a transaction. Each write adds its change row. The caller must hold the zone's
    locks.
    """

    def confirm(self, node: Node) -> Node:
        """Read the node again by id, parent and name. Raises StalePermit if any of the three has changed."""
        rows = self.tx.rows(CONFIRMED, {"id": node.id, "parent": node.parent_id, "name": node.name})
        if not rows:
            raise StalePermit
        return node_of(rows[0])

    def require(self, node: Node) -> None:
        """Raise StalePermit if the node's id, parent or name has changed.

        Like `confirm`, but without reading the node.
        """
        if not self.tx.rows(STILL_THERE_CHECK, {"id": node.id, "parent": node.parent_id, "name": node.name}):
            raise StalePermit

    def find(self, parent_id: int, space: str, name: str) -> Node | None:
        """Read the live node with this name in a name space of a parent, or None."""
        rows = self.tx.rows(BY_NAME, {"parent": parent_id, "space": space, "name": name})
        return node_of(rows[0]) if rows else None

    def by_id(self, node_id: int) -> Node:
        """Read a live node by id. Raises StalePermit if it was dropped."""
        rows = self.tx.rows(BY_ID, {"id": node_id})
        if not rows:
            raise StalePermit
        return node_of(rows[0])

    def live(self, node_id: int) -> Node | None:
        """Read a live node by id, or None."""
        rows = self.tx.rows(BY_ID, {"id": node_id})
        return node_of(rows[0]) if rows else None

    def describe(self, node_id: int) -> str:
        """Return the kind and the name of a node, dropped or not, for messages."""
        rows = self.tx.rows(KIND_AND_NAME, {"id": node_id})
        return f"{KINDS[rows[0][0]].word} {rows[0][1]}" if rows else "an object that no longer exists"

    def is_alive(self, node_id: int) -> bool:
        """Return whether the node is live."""
        return bool(self.tx.rows(ALIVE, {"id": node_id}))

    def require_empty(self, node: Node, otherwise: str = "", *, named: str = "") -> None:
        """Raise NotEmpty if the node has a live child.

        `otherwise` is appended to the advice in the message; `named` is the node's full name.
        """
        rows = self.tx.rows(ANY_CHILD, {"id": node.id})
        if rows:
            kind, name = KINDS[rows[0][0]].word, rows[0][1]
            what = f"{node.kind.word.capitalize()} {named or node.name}"
            raise NotEmpty(f"{what} is not empty: drop its {kind} {name} first{otherwise}", kind=node.kind.word)

    def create(
        self,
        *,
        kind: Kind,
        space: str,
        name: str,
        parent_id: int,
        zone: int,
        record: NodeRecord,
        implicit: bool = False,
        node_format: str = "",
        owner_id: int | None = None,
        node_id: int | None = None,
        under: Node | None = None,
    ) -> Node:
        """Insert a node with its owner.

        `under` is the parent at the decision; the same statement checks that it is unchanged. An implicit parent
        becomes an explicit one.

        Raises:
            AlreadyExists: The name is taken. The error contains the kind of the existing object.
            StalePermit: `under` has changed.
        """
        tx = self.tx
        node = Node(
            id=tx.next_id() if node_id is None else node_id,
            zone=zone,
            parent_id=parent_id,
            kind=kind,
            name_space=space,
            name=name,
            format=node_format,
            implicit=implicit,
            created_by=tx.actor,
            created_at=tx.now_ms,
            modified_by=None,
            modified_at=None,
            revision=tx.revision,
            record=record,
        )
        is_remembered = self._insert(node, under=under, owner_id=owner_id)
        self._add_change("create", node, new_parent=parent_id, new_name=name, owner_id=owner_id)
        if is_remembered:
            FormerNameWrites(tx).take(PlacedObject(node.id, kind, space, zone), name=name)
        if under is not None:
            self.make_explicit(under, child=kind)
        return node

    def _insert(self, node: Node, *, under: Node | None, owner_id: int | None) -> bool:
        """Insert the rows of a node and its owner. Returns whether former names may have restrictions for it."""
        params: dict[str, Value] = {
            "id": node.id,
            "zone": node.zone,
            "parent": node.parent_id,
            "kind": int(node.kind),
            "space": node.name_space,
            "name": node.name,
            "format": node.format,
            "implicit": node.implicit,
            "record": encode(node.record),
            "folded": fold(node.name),
            **self._stamp(),
        }
        if under is not None:
            params |= still_there_params(under)
        if owner_id is not None and self.tx.session.combines_writes:
            statement = INSERT_OWNED_POSTGRES if under is None else INSERT_UNDER_OWNED_POSTGRES
            rows = self.tx.rows(statement, params | {"owner": owner_id})
        else:
            rows = self.tx.rows(INSERT if under is None else INSERT_UNDER, params)
        if not rows:
            if under is not None:
                self.require(under)
            self._refuse_taken(node.parent_id, node.name_space, node.name)
        if owner_id is not None and not self.tx.session.combines_writes:
            OwnerWrites(self.tx).insert(node.id, owner_id)
        return bool(rows[0][0])

    def _add_change(
        self,
        operation: str,
        node: Node,
        *,
        new_parent: int | None = None,
        new_name: str | None = None,
        moves_access: bool = False,
        owner_id: int | None = None,
        detail: str | None = None,
        has_old_place: bool = False,
    ) -> None:
        """Add the change row of a node; `has_old_place`: with its parent and name before the change."""
        self.tx.add_change(
            ChangeDraft(
                operation=operation,
                kind=node.kind,
                node_id=node.id,
                name_space=node.name_space,
                old_parent=node.parent_id if has_old_place else None,
                old_name=node.name if has_old_place else None,
                new_parent=new_parent,
                new_name=new_name,
                moves_access=moves_access,
                owner_id=owner_id,
                detail=detail,
            )
        )

    def _refuse_taken(self, parent_id: int, space: str, name: str) -> None:
        node = self.find(parent_id, space, name)
        kind = node.kind.word if node else space
        raise AlreadyExists(f"{kind.capitalize()} already exists: {name}", kind=kind)

    def move(self, node: Node, *, parent_id: int, name: str, moves_access: bool) -> None:
        """Change the node's parent, name or both.

        Writes one row, however large the subtree. Raises AlreadyExists if the name is taken.
        """
        used = self.find(parent_id, node.name_space, name)
        if used is not None and used.id != node.id:
            self._refuse_taken(parent_id, node.name_space, name)
        former_names = FormerNameWrites(self.tx)
        former = former_names.names_of(node) if node.kind is Kind.NAMESPACE else None
        detail = former_names.move_away(node, parent_id=parent_id)
        self.tx.count(
            SET_PLACE, {"id": node.id, "parent": parent_id, "name": name, "folded": fold(name), **self._stamp()}
        )
        self._add_change(
            "move",
            node,
            new_parent=parent_id,
            new_name=name,
            moves_access=moves_access,
            detail=detail,
            has_old_place=True,
        )
        former_names.take(PlacedObject(node.id, node.kind, node.name_space, node.zone), name=name, former=former)

    def write_record(self, node: Node, record: NodeRecord, *, moves_access: bool = False) -> None:
        """Replace the node's record (comment, properties, in-use)."""
        self.tx.count(SET_RECORD, {"id": node.id, "record": encode(record), **self._stamp()})
        self._add_change("alter", node, moves_access=moves_access)

    def add_commit_change(self, node: Node, *, keeps_words: bool = False) -> None:
        """Write the change row of a commit to the node's document. The last modifier in the node's row is not changed.

        With `keeps_words` the change row is marked as a change of neither the comment nor the current schema, so that
        the search index ignores it.
        """
        self._add_change("commit", node, new_name=DATA_ONLY if keeps_words else None)

    def drop(self, node: Node, *, keep_ms: int = 0, purges: bool = False, has_purge: bool = False) -> None:
        """Drop the node. Raises ProtectedObject if it, or any object in a dropped catalog or metalake, is protected.

        With `keep_ms` (milliseconds) it is moved to the trash with its owner; otherwise its owner is deleted, too.
        Grants on it are deleted later by the cleanup. Its id is used again only if it is restored from the trash.

        Args:
            node: The node, as confirmed in this transaction.
            keep_ms: The retention time in the trash, in milliseconds; 0 deletes it immediately.
            purges: Whether its files are deleted when it leaves the trash.
            has_purge: Whether a task of this transaction deletes its files, for the audit.
        """
        ProtectionWrites(self.tx).refuse_within(node)
        details = "with its files" if has_purge else None, FormerNameWrites(self.tx).leave(node, keep_ms=keep_ms)
        detail = "; ".join(filter(None, details)) or None
        if not self.tx.count(SET_DROPPED, {"id": node.id, **self._stamp()}):
            ProtectionWrites(self.tx).refuse(node)
        if keep_ms > 0:
            TrashWrites(self.tx).put(node, keep_ms=keep_ms, purges=purges)
        else:
            self.tx.count(DELETE_OWNER, {"id": node.id})
        self._add_change("drop", node, moves_access=True, detail=detail, has_old_place=True)

    def revive(self, node_id: int, *, kind: Kind, space: str, parent_id: int, name: str) -> None:
        """Restore a dropped node under a parent and a name. Raises AlreadyExists if the name is taken."""
        if self.find(parent_id, space, name) is not None:
            self._refuse_taken(parent_id, space, name)
        tx = self.tx
        tx.count(
            SET_RESTORED, {"id": node_id, "parent": parent_id, "name": name, "folded": fold(name), **self._stamp()}
        )
        owners = tx.rows(OWNER, {"id": node_id})
        owner_id = owners[0][0] if owners else None
        tx.add_change(
            ChangeDraft(
                operation="undrop",
                kind=kind,
                node_id=node_id,
                name_space=space,
                old_parent=None,
                old_name=None,
                new_parent=parent_id,
                new_name=name,
                moves_access=True,
                owner_id=owner_id,
            )
        )
        zone: int = tx.rows(ZONE, {"id": node_id})[0][0]
        FormerNameWrites(tx).take(PlacedObject(node_id, kind, space, zone), name=name, is_restored=True)

    def below(self, node_id: int, *, limit: int) -> list[Node]:
        """Read up to `limit` descendants of a node, the deepest first: in that order each can be dropped."""
        return [node_of(row) for row in self.tx.rows(SUBTREE, {"id": node_id, "limit": limit})]

    def children(self, node_id: int, *, limit: int) -> list[Node]:
        """Read up to `limit` children of a node."""
        return [node_of(row) for row in self.tx.rows(CHILDREN, {"id": node_id, "limit": limit})]

    def mark(self, node: Node, *, implicit: bool) -> None:
        """Store whether a namespace is implicit: it exists only as the parent of another namespace."""
        self.tx.count(SET_IMPLICIT, {"id": node.id, "implicit": implicit, **self._stamp()})
        self._add_change("alter", node)

    def make_explicit(self, parent: Node, *, child: Kind) -> None:
        """Mark an implicit namespace as an explicit one, because an object was put in it; no-op for a namespace."""
        if parent.implicit and child is not Kind.NAMESPACE:
            self.mark(parent, implicit=False)

    def height(self, node_id: int) -> int:
        """Count the levels below a namespace, down to its deepest object. It reads all namespaces below it.

        Raises BadRequest if earlier calls in the transaction have read more than `BELOW_MAX` namespaces.
        """
        if self.tx.looked_below > BELOW_MAX:
            raise BadRequest(
                f"More than {BELOW_MAX} namespaces are in the namespace that this transaction already moved: move this"
                " one in another transaction"
            )
        rows = self.tx.rows(HEIGHT, {"id": node_id})
        self.tx.looked_below += rows[0][1]
        number: int = rows[0][0]
        return number

    def is_below(self, node_id: int, ancestor_id: int) -> bool:
        """Return whether the node is `ancestor_id` or its descendant.

        If so, moving the ancestor below the node would create a cycle.
        """
        while node_id:
            if node_id == ancestor_id:
                return True
            rows = self.tx.rows(PARENT, {"id": node_id})
            node_id = rows[0][0] if rows else 0
        return False

    def _stamp(self) -> dict[str, str | int]:
        return {"actor": self.tx.actor, "now": self.tx.now_ms, "revision": self.tx.revision}
