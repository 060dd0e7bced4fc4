"""Edits of an object's name, comment and properties, as values that are applied inside the transaction.

May import `model` and msgspec, and types of `store`. Applied to what is stored then, so that two edits of different properties both count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import msgspec

if TYPE_CHECKING:
    from limnos.model.entities import Node
    from limnos.model.records import JobTemplateRecord, PolicyRecord, TagRecord
    from limnos.store.tx import Tx


class PropertyEdits(msgspec.Struct, frozen=True):
    """What to change: None and empty leave as it is. `clears_comment` sets the comment to nothing."""

    name: str | None = None
    comment: str | None = None
    clears_comment: bool = False
    sets: Mapping[str, str] = msgspec.field(default_factory=dict)
    removes: tuple[str, ...] = ()

    def over(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties with the edits applied; removals of what is not there are fine."""
        kept = {key: value for key, value in properties.items() if key not in self.removes}
        return {**kept, **self.sets}

    def edited_comment(self, comment: str | None) -> str | None:
        """Return the comment with the edits applied."""
        if self.clears_comment:
            return None
        return comment if self.comment is None else self.comment


def metalake_object_edit(tx: Tx, held: Node, *, edits: PropertyEdits) -> Node:
    """Write the edited record, then the new name, of an object that lies beside the tree, where no decision goes by a name."""
    record = cast("TagRecord | PolicyRecord | JobTemplateRecord", held.record)
    comment, properties = edits.edited_comment(record.comment), edits.over(record.properties)
    tx.nodes.write_record(held, replace(record, comment=comment, properties=properties))
    if edits.name is not None and edits.name != held.name:
        tx.nodes.move(held, parent_id=held.parent_id, name=edits.name, moves_access=False)
    return tx.nodes.by_id(held.id)
