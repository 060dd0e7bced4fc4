"""What tags and policies are on: rows between one of them and an object. They themselves are nodes of the metalake.

May import `model` and the room's `sql`, `changes`, `ancestry`. An attachment is on the metalake's clock, whatever the
object is; it decides nothing, so it moves no access revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.model.kinds import Kind
from limnos.store.ancestry import Ancestry, ancestry_of, with_ancestors
from limnos.store.changes import ChangeDraft
from limnos.store.sql import Load, Sql
from limnos.store.trash import KEPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.store.tx import Tx


class _Statements(NamedTuple):
    """What is asked of one kind's table."""

    on: Sql
    named_on: Sql
    object_ids: Sql
    objects: Sql
    attach: Sql
    detach: Sql
    sweep: Sql


def _of(table: str, column: str) -> _Statements:
    return _Statements(
        on=Sql(f"SELECT {column} FROM {table} WHERE object_id = :id ORDER BY {column}"),
        named_on=Sql(
            f"SELECT n.id, n.name FROM {table} t JOIN node n ON n.id = t.{column} AND n.deleted = 0"
            " WHERE t.object_id = :id ORDER BY n.name"
        ),
        object_ids=Sql(f"SELECT object_id FROM {table} WHERE {column} = :id ORDER BY object_id"),
        objects=with_ancestors(f"SELECT t.object_id FROM {table} t WHERE t.{column} = :id"),
        attach=Sql(f"INSERT INTO {table} (object_id, {column}) VALUES (:object, :attached) ON CONFLICT DO NOTHING"),
        detach=Sql(f"DELETE FROM {table} WHERE object_id = :object AND {column} = :attached"),
        sweep=Sql(
            f"DELETE FROM {table} WHERE (NOT EXISTS"
            f" (SELECT 1 FROM node n WHERE n.id = {table}.object_id AND n.deleted = 0)"
            f" AND NOT {KEPT.format(f'{table}.object_id')}) OR NOT EXISTS"
            f" (SELECT 1 FROM node n WHERE n.id = {table}.{column} AND n.deleted = 0)"
        ),
    )


_OF: Final[Mapping[Kind, _Statements]] = {
    Kind.TAG: _of("tag_object", "tag_id"),
    Kind.POLICY: _of("policy_object", "policy_id"),
}
"""The kinds that are attached to objects."""
SWEEPS = tuple(each.sweep for each in _OF.values())


def attached_read(kind: Kind, object_id: int) -> Load[tuple[int, ...]]:
    """Read the ids of what is attached to an object itself; some may have been dropped since."""
    rows = yield _OF[kind].on, {"id": object_id}
    return tuple([row[0] for row in rows])


def attached_objects_read(kind: Kind, attached_id: int) -> Load[tuple[tuple[int, ...], Ancestry]]:
    """Read the ids of the objects that something is attached to, and where the live ones lie."""
    ids = yield _OF[kind].object_ids, {"id": attached_id}
    rows = yield _OF[kind].objects, {"id": attached_id}
    return tuple([row[0] for row in ids]), ancestry_of(rows)


class AttachmentWrites:
    """What mutations do to attachments of one kind."""

    def __init__(self, tx: Tx, kind: Kind) -> None:
        self.tx = tx
        self.kind = kind

    def on(self, object_id: int) -> list[tuple[int, str]]:
        """Read ids and names of what is live and attached to an object itself, by name, inside the transaction."""
        return [(row[0], row[1]) for row in self.tx.rows(_OF[self.kind].named_on, {"id": object_id})]

    def attach(self, attached_id: int, object_id: int) -> bool:
        """Attach something to an object; says whether it was not there before."""
        return self._changed("attach", _OF[self.kind].attach, attached_id=attached_id, object_id=object_id)

    def detach(self, attached_id: int, object_id: int) -> bool:
        """Take something from an object; says whether it was there."""
        return self._changed("detach", _OF[self.kind].detach, attached_id=attached_id, object_id=object_id)

    def _changed(self, operation: str, statement: Sql, *, attached_id: int, object_id: int) -> bool:
        """Run the statement; what it touched is the object: `Change.object_id`."""
        if not self.tx.count(statement, {"object": object_id, "attached": attached_id}):
            return False
        self.tx.changed(ChangeDraft(operation, self.kind, attached_id, self.kind.word, new_parent=object_id))
        return True
