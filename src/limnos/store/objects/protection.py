# SPDX-License-Identifier: Apache-2.0
"""Protection: rows that prevent drops of an object, or of an object and everything below it.

Must not know rights. Every drop of a node checks it in its own statement (`nodes.SET_DROPPED`), so no mutation can omit
the check. A mutation that removes an object in another way, such as replacing it, calls `refuse`.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.model.entities import Node
from limnos.model.errors import ProtectedObject
from limnos.model.kinds import KINDS, SCOPES, Kind
from limnos.names.display import render
from limnos.store.changes import ChangeDraft
from limnos.store.sql import Load, Sql
from limnos.store.transaction import Writes

_UP = (
    "WITH RECURSIVE up (id, parent_id, depth) AS (SELECT n.id, n.parent_id, 0 FROM node n WHERE n.id = :id"
    " UNION ALL SELECT p.id, p.parent_id, u.depth + 1 FROM up u JOIN node p ON p.id = u.parent_id)"
)
UNPROTECTED = (
    f"NOT EXISTS ({_UP} SELECT 1 FROM up JOIN protection p ON p.node_id = up.id AND (p.below OR p.node_id = :id))"
)
"""The condition that the node `:id` is not protected."""
ON = Sql(
    f"{_UP} SELECT p.node_id, p.below, p.set_by, p.set_at FROM up JOIN protection p ON p.node_id = up.id"
    " AND (p.below OR p.node_id = :id) ORDER BY up.depth LIMIT 1"
)
ITSELF = Sql("SELECT 1 FROM protection WHERE node_id = :id")
NAMES = Sql(f"{_UP} SELECT n.kind, n.name FROM up JOIN node n ON n.id = up.id ORDER BY up.depth DESC")
WITHIN = Sql(
    "SELECT p.node_id FROM protection p JOIN node n ON n.id = p.node_id AND n.deleted = 0 WHERE p.zone = :id OR p.zone"
    " IN (SELECT c.id FROM node c WHERE c.parent_id = :id AND c.kind = :kind AND c.deleted = 0) LIMIT 1"
)
SET = Sql(
    "INSERT INTO protection (node_id, zone, below, set_by, set_at) VALUES (:id, :zone, :below, :actor, :now)"
    " ON CONFLICT (node_id) DO UPDATE SET below = excluded.below OR protection.below"
)
CLEAR = Sql("DELETE FROM protection WHERE node_id = :id")


class Protection(NamedTuple):
    """The protection of an object: the protected node (the object or an ancestor), whether it covers descendants, and
    who set it and when.
    """

    node_id: int
    below: bool
    set_by: str
    set_at: int


def protection_read(node_id: int) -> Load[Protection | None]:
    """Read the nearest protection of a node, or None."""
    rows = yield ON, {"id": node_id}
    return Protection(rows[0][0], bool(rows[0][1]), rows[0][2], rows[0][3]) if rows else None


class ProtectionWrites(Writes):
    """Writes and checks protection inside a transaction."""

    def set(self, node: Node, *, below: bool) -> None:
        """Protect a node from drops; with `below` also its descendants.

        An existing protection of the descendants is not removed.
        """
        tx = self.tx
        tx.count(SET, {"id": node.id, "zone": node.zone, "below": below, "actor": tx.actor, "now": tx.now_ms})
        tx.add_change(ChangeDraft(operation="protect", kind=node.kind, node_id=node.id, name_space=node.name_space))

    def clear(self, node: Node) -> bool:
        """Remove the protection set on a node itself. Returns whether it existed."""
        if not self.tx.count(CLEAR, {"id": node.id}):
            return False
        self.tx.add_change(
            ChangeDraft(operation="unprotect", kind=node.kind, node_id=node.id, name_space=node.name_space)
        )
        return True

    def refuse(self, node: Node) -> None:
        """Raise ProtectedObject if the node is protected."""
        rows = self.tx.rows(ON, {"id": node.id})
        if rows:
            self._raise(node, rows[0][0])

    def refuse_move(self, node: Node) -> None:
        """Raise ProtectedObject if the node itself is protected.

        Otherwise a user could move the node below a node that the user owns, and remove its protection as owner of that
        node.
        """
        if not self.tx.rows(ITSELF, {"id": node.id}):
            return
        _, path = self._read_name(node.id)
        raise ProtectedObject(
            f"{node.kind.word.capitalize()} {render((node.name,))} is protected: moving it needs the ownership of an"
            f" object above it, as 'limnos unprotect {path}' does",
            kind=node.kind.word,
        )

    def refuse_within(self, node: Node) -> None:
        """Raise ProtectedObject if any object in a catalog or metalake is protected. No-op for nodes of other kinds."""
        if node.kind not in SCOPES:
            return
        rows = self.tx.rows(WITHIN, {"id": node.id, "kind": int(Kind.CATALOG)})
        if rows:
            self._raise(node, rows[0][0])

    def _raise(self, node: Node, by_id: int) -> None:
        kind, path = self._read_name(by_id)
        what, _ = node.kind, node.name
        why = (
            "is protected"
            if by_id == node.id
            else (
                f"cannot be dropped, because {kind.word} {path} is"
                f" protected{', with all objects below it' if node.kind not in SCOPES else ''}"
            )
        )
        raise ProtectedObject(
            f"{what.word.capitalize()} {render((node.name,))} {why}: an owner of an object above"
            f" {'it' if by_id == node.id else path} can end that with 'limnos unprotect {path}'",
            kind=what.word,
        )

    def _read_name(self, node_id: int) -> tuple[Kind, str]:
        rows = self.tx.rows(NAMES, {"id": node_id})
        names = [row[1] for row in rows if KINDS[row[0]] is not Kind.METALAKE]
        return KINDS[rows[-1][0]], render(names)
