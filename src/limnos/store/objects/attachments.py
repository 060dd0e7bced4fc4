# SPDX-License-Identifier: Apache-2.0
"""Attachments of tags and policies to objects and to columns of tables, with the values of tags.

Must not know rights: no decision depends on an attachment, so a write advances no access revision. Tags and policies
are nodes of the metalake, and a write of an attachment advances the metalake's clock, regardless of the object's zone.
A column is identified by its table's id and the field id of the table's format, so that renames change no row. Field 0
is the object itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from limnos.model.attachments import Attachment
from limnos.model.kind_table import kinds_with
from limnos.model.kinds import Kind
from limnos.store.ancestry import Ancestry, ancestry_of, with_ancestors
from limnos.store.changes import ChangeDraft
from limnos.store.objects.trash import FOLLOWED
from limnos.store.sql import Load, Params, Sql
from limnos.store.transaction import StoreTransaction

OWN: Final = 0
"""The field id of an attachment to the object itself."""


class _AttachmentStatements(NamedTuple):
    """The statements for attachments of one kind."""

    on: Sql
    named_on: Sql
    pairs: Sql
    objects: Sql
    attach: Sql
    detach: Sql


def _sweep_of(table: str, column: str) -> Sql:
    """Build the statement that deletes attachments whose object or whose tag or policy no longer exists."""
    return Sql(
        f"DELETE FROM {table} WHERE (NOT EXISTS (SELECT 1 FROM node n WHERE n.id = {table}.object_id AND n.deleted = 0)"
        f" AND NOT {FOLLOWED.format(f'{table}.object_id')})"
        f" OR NOT EXISTS (SELECT 1 FROM node n WHERE n.id = {table}.{column} AND n.deleted = 0)"
    )


def _attachment_statements(kind: Kind) -> _AttachmentStatements:
    table, column = f"{kind.word}_object", f"{kind.word}_id"
    more, values = (", attached_by", ", :user") if kind is Kind.POLICY else ("", "")
    of_columns = f"FROM column_attachment x WHERE x.kind = {int(kind)} AND"
    holders = (
        f"SELECT object_id FROM {table} WHERE {column} = :id UNION SELECT x.object_id {of_columns} x.attached_id = :id"
    )
    return _AttachmentStatements(
        on=Sql(
            f"SELECT {column} AS attached, 0 AS field FROM {table} WHERE object_id = :id"
            f" UNION ALL SELECT x.attached_id, x.field_id {of_columns} x.object_id = :id ORDER BY field, attached"
        ),
        named_on=Sql(
            f"SELECT n.id, n.name FROM node n WHERE n.deleted = 0 AND n.id IN (SELECT {column} FROM {table} WHERE"
            f" object_id = :object AND :field = 0 UNION ALL SELECT x.attached_id {of_columns} x.object_id = :object AND"
            " x.field_id = :field) ORDER BY n.name"
        ),
        pairs=Sql(
            f"SELECT object_id, 0 AS field FROM {table} WHERE {column} = :id"
            f" UNION ALL SELECT x.object_id, x.field_id {of_columns} x.attached_id = :id ORDER BY object_id, field"
        ),
        objects=with_ancestors(holders),
        attach=Sql(
            f"INSERT INTO {table} (object_id, {column}{more}) VALUES (:object, :attached{values}) ON CONFLICT DO"
            " NOTHING"
        ),
        detach=Sql(f"DELETE FROM {table} WHERE object_id = :object AND {column} = :attached"),
    )


_OF: Final[Mapping[Kind, _AttachmentStatements]] = {
    kind: _attachment_statements(kind) for kind in kinds_with(lambda row: row.attached_as)
}
"""The statements of each kind that can be attached."""
ATTACH_COLUMN = Sql(
    "INSERT INTO column_attachment (object_id, field_id, attached_id, kind) VALUES (:object, :field, :attached, :kind)"
    " ON CONFLICT DO NOTHING"
)
DETACH_COLUMN = Sql(
    "DELETE FROM column_attachment WHERE object_id = :object AND field_id = :field AND attached_id = :attached"
)
VALUES_ON = Sql("SELECT tag_id, field_id, value FROM tag_value WHERE object_id = :id ORDER BY position, value")
HAVE_VALUE = Sql(
    "SELECT object_id, field_id FROM tag_value WHERE tag_id = :id AND value = :value ORDER BY object_id, field_id"
)
IS_ON = Sql(
    "SELECT 1 FROM tag_object WHERE object_id = :object AND tag_id = :attached AND :field = 0 UNION ALL"
    " SELECT 1 FROM column_attachment WHERE object_id = :object AND field_id = :field AND attached_id = :attached"
)
VALUES = Sql(
    "SELECT value FROM tag_value WHERE object_id = :object AND field_id = :field AND tag_id = :attached ORDER BY"
    " position, value"
)
ADD_VALUE = Sql(
    "INSERT INTO tag_value (object_id, field_id, tag_id, value, position) VALUES (:object, :field, :attached, :value,"
    " :position)"
)
CLEAR_VALUES = Sql("DELETE FROM tag_value WHERE object_id = :object AND field_id = :field AND tag_id = :attached")
SWEEPS = (
    *(_sweep_of(f"{kind.word}_object", f"{kind.word}_id") for kind in _OF),
    _sweep_of("column_attachment", "attached_id"),
    _sweep_of("tag_value", "tag_id"),
)


def attached_read(kind: Kind, object_id: int) -> Load[tuple[Attachment, ...]]:
    """Read the attachments of an object and of its columns. Their tags or policies may have been dropped since."""
    rows = yield _OF[kind].on, {"id": object_id}
    values: dict[tuple[int, int], tuple[str, ...]] = {}
    if kind is Kind.TAG and rows:
        for tag_id, field_id, value in (yield VALUES_ON, {"id": object_id}):
            values[tag_id, field_id] = (*values.get((tag_id, field_id), ()), value)
    return tuple([Attachment(row[0], row[1], values.get((row[0], row[1]), ())) for row in rows])


def attached_objects_read(
    kind: Kind, attached_id: int, *, value: str | None = None
) -> Load[tuple[tuple[tuple[int, int], ...], Ancestry]]:
    """Read the (object id, field id) pairs that a tag or policy is attached to, and the ancestry of the live objects.

    With `value`, only the pairs whose attachment of the tag has that value.
    """
    if value is None:
        pairs = yield _OF[kind].pairs, {"id": attached_id}
    else:
        pairs = yield HAVE_VALUE, {"id": attached_id, "value": value}
    rows = yield _OF[kind].objects, {"id": attached_id}
    return tuple([(row[0], row[1]) for row in pairs]), ancestry_of(rows)


class AttachmentWrites:
    """Reads and writes attachments of one kind (tags or policies) inside a transaction."""

    def __init__(self, tx: StoreTransaction, kind: Kind, *, column: str | None = None) -> None:
        """`column` is the name of the column of the changes, for feed and audit; None for changes of objects."""
        self.column = column
        self.tx = tx
        self.kind = kind

    def on(self, object_id: int, *, field_id: int = OWN) -> list[tuple[int, str]]:
        """Read ids and names of the live tags or policies attached to an object or column, sorted by name."""
        rows = self.tx.rows(_OF[self.kind].named_on, {"object": object_id, "field": field_id})
        return [(row[0], row[1]) for row in rows]

    def attach(self, attached_id: int, object_id: int, *, field_id: int = OWN, user_id: int = 0) -> bool:
        """Attach a tag or policy for a user. Returns False if it was attached already.

        The user is stored for a policy on an object; 0 if unknown.
        """
        key = {"object": object_id, "attached": attached_id}
        if field_id == OWN:
            by: Params = {"user": user_id} if self.kind is Kind.POLICY else {}
            row_count = self.tx.count(_OF[self.kind].attach, {**key, **by})
        else:
            row_count = self.tx.count(ATTACH_COLUMN, {**key, "field": field_id, "kind": int(self.kind)})
        return self._add_change("attach", attached_id, object_id=object_id, field_id=field_id, done=bool(row_count))

    def detach(self, attached_id: int, object_id: int, *, field_id: int = OWN) -> bool:
        """Remove an attachment and its values. Returns whether it existed."""
        key = {"object": object_id, "attached": attached_id}
        if self.kind is Kind.TAG:
            self.tx.count(CLEAR_VALUES, {**key, "field": field_id})
        if field_id == OWN:
            row_count = self.tx.count(_OF[self.kind].detach, key)
        else:
            row_count = self.tx.count(DETACH_COLUMN, {**key, "field": field_id})
        return self._add_change("detach", attached_id, object_id=object_id, field_id=field_id, done=bool(row_count))

    def values(self, tag_id: int, object_id: int, *, field_id: int = OWN) -> tuple[str, ...] | None:
        """Read the values of a tag on an object or column; None if the tag is not attached."""
        key = {"object": object_id, "field": field_id, "attached": tag_id}
        if not self.tx.rows(IS_ON, key):
            return None
        return tuple([row[0] for row in self.tx.rows(VALUES, key)])

    def set_values(
        self,
        tag_id: int,
        object_id: int,
        *,
        values: Sequence[str],
        field_id: int = OWN,
        is_change_written: bool = False,
    ) -> None:
        """Replace the values of an attached tag, in the given order.

        `is_change_written` means that this transaction has written the change row of the attachment already.
        """
        key = {"object": object_id, "field": field_id, "attached": tag_id}
        self.tx.count(CLEAR_VALUES, key)
        for position, value in enumerate(values):
            self.tx.count(ADD_VALUE, {**key, "value": value, "position": position})
        self._add_change("attach", tag_id, object_id=object_id, field_id=field_id, done=not is_change_written)

    def _add_change(self, operation: str, attached_id: int, *, object_id: int, field_id: int, done: bool) -> bool:
        """Write the change row if something changed. `ChangeRow.object_id` is the object."""
        if done:
            self.tx.add_change(
                ChangeDraft(
                    operation=operation,
                    kind=self.kind,
                    node_id=attached_id,
                    name_space=self.kind.word,
                    new_parent=object_id,
                    detail=None if field_id == OWN else f"column {self.column or f'with field id {field_id}'}",
                )
            )
        return done
