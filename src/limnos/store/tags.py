"""What tags are on: rows between a tag and an object. Tags themselves are nodes of the metalake.

May import `model` and the room's `sql`, `changes`, `ancestry`. An attachment is on the metalake's clock, whatever the
object is; it decides nothing, so it moves no access revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.model.kinds import Kind
from limnos.store.ancestry import Ancestry, ancestry_of, with_ancestors
from limnos.store.changes import ChangeDraft
from limnos.store.sql import Load, Sql
from limnos.store.trash import KEPT

if TYPE_CHECKING:
    from limnos.store.tx import Tx

ON = Sql("SELECT tag_id FROM tag_object WHERE object_id = :id ORDER BY tag_id")
NAMED_ON = Sql(
    "SELECT n.id, n.name FROM tag_object t JOIN node n ON n.id = t.tag_id AND n.deleted = 0 WHERE t.object_id = :id"
    " ORDER BY n.name"
)
OBJECT_IDS = Sql("SELECT object_id FROM tag_object WHERE tag_id = :id ORDER BY object_id")
OBJECTS = with_ancestors("SELECT t.object_id FROM tag_object t WHERE t.tag_id = :id")
ATTACH = Sql("INSERT INTO tag_object (object_id, tag_id) VALUES (:object, :tag) ON CONFLICT DO NOTHING")
DETACH = Sql("DELETE FROM tag_object WHERE object_id = :object AND tag_id = :tag")
SWEEP = Sql(
    "DELETE FROM tag_object WHERE (NOT EXISTS"
    " (SELECT 1 FROM node n WHERE n.id = tag_object.object_id AND n.deleted = 0)"
    f" AND NOT {KEPT.format('tag_object.object_id')}) OR NOT EXISTS"
    " (SELECT 1 FROM node n WHERE n.id = tag_object.tag_id AND n.deleted = 0)"
)


def tags_on_read(object_id: int) -> Load[tuple[int, ...]]:
    """Read the ids of the tags that are on an object itself; some may have been dropped since."""
    rows = yield ON, {"id": object_id}
    return tuple([row[0] for row in rows])


def tag_objects_read(tag_id: int) -> Load[tuple[tuple[int, ...], Ancestry]]:
    """Read the ids of the objects that a tag is on, and where the live ones lie."""
    ids = yield OBJECT_IDS, {"id": tag_id}
    rows = yield OBJECTS, {"id": tag_id}
    return tuple([row[0] for row in ids]), ancestry_of(rows)


class TagWrites:
    """What mutations do to attachments."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx

    def on(self, object_id: int) -> list[tuple[int, str]]:
        """Read ids and names of the live tags on an object itself, by name, inside the transaction."""
        return [(row[0], row[1]) for row in self.tx.rows(NAMED_ON, {"id": object_id})]

    def attach(self, tag_id: int, object_id: int) -> bool:
        """Put a tag on an object; says whether it was not there before."""
        return self._changed("attach", ATTACH, tag_id, object_id=object_id)

    def detach(self, tag_id: int, object_id: int) -> bool:
        """Take a tag from an object; says whether it was there."""
        return self._changed("detach", DETACH, tag_id, object_id=object_id)

    def _changed(self, operation: str, statement: Sql, tag_id: int, *, object_id: int) -> bool:
        """Run the statement; what it touched is the object: `Change.object_id`."""
        if not self.tx.count(statement, {"object": object_id, "tag": tag_id}):
            return False
        self.tx.changed(ChangeDraft(operation, Kind.TAG, tag_id, Kind.TAG.word, new_parent=object_id))
        return True
