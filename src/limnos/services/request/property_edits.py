# SPDX-License-Identifier: Apache-2.0
"""Property edits: changes of an object's name, comment and properties, as values that the transaction applies.

Edits apply to the stored state, so that concurrent edits of different properties both take effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.store.tx import Tx

PROPERTIES_MAX: Final = 10_000
"""The maximum number of properties of a namespace: they are decoded and compared on the event loop at each change."""
PROPERTY_LETTERS_MAX: Final = 1 << 18
"""The maximum total length of the names and values of a namespace's properties, in characters."""


def check_properties(properties: Mapping[str, str], *, before: Mapping[str, str]) -> None:
    """Check the count and the lengths of a namespace's new properties.

    A count or total length above its limit is accepted if it does not exceed the one before. Raises BadRequest
    otherwise.
    """
    if len(properties) > max(PROPERTIES_MAX, len(before)):
        raise BadRequest(f"A namespace may have at most {PROPERTIES_MAX} properties, and would have {len(properties)}")
    letters = _letters(properties)
    if letters > PROPERTY_LETTERS_MAX and letters > _letters(before):
        raise BadRequest(
            f"The properties of a namespace may have at most {PROPERTY_LETTERS_MAX} characters, and would have"
            f" {letters}"
        )


def _letters(properties: Mapping[str, str]) -> int:
    return sum(map(len, properties)) + sum(map(len, properties.values()))


class PropertyEdits(msgspec.Struct, frozen=True, kw_only=True):
    """Edits of an object. None or an empty collection changes nothing; `clears_comment` removes the comment."""

    name: str | None = None
    comment: str | None = None
    clears_comment: bool = False
    sets: Mapping[str, str] = msgspec.field(default_factory=dict)
    removes: tuple[str, ...] = ()

    def over(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties with the edits applied. Removing a missing property has no effect."""
        removes = frozenset(self.removes)
        entries = {key: value for key, value in properties.items() if key not in removes}
        return {**entries, **self.sets}

    def edited_comment(self, comment: str | None) -> str | None:
        """Return the comment with the edits applied."""
        if self.clears_comment:
            return None
        return comment if self.comment is None else self.comment


def object_edit(tx: Tx, node: Node, *, edits: PropertyEdits) -> Node:
    """Write the edited record and the new name of a metalake object or of an object in a namespace.

    No decision depends on the name of such an object. Grants and tags refer to the object's id, so they are not
    affected. Raises AlreadyExists if the new name is taken.
    """
    record = node.record
    comment, properties = edits.edited_comment(record.comment), edits.over(record.properties)
    tx.nodes.write_record(node, replace(record, comment=comment, properties=properties))
    if edits.name is not None and edits.name != node.name:
        tx.nodes.move(node, parent_id=node.parent_id, name=edits.name, moves_access=False)
    return tx.nodes.by_id(node.id)
