"""Edits of an object's name, comment and properties, as values that are applied inside the transaction.

May import only `model` and msgspec. Applied to what is stored then, so that two edits of different properties both count.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Edits(msgspec.Struct, frozen=True):
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

    def comment_over(self, comment: str | None) -> str | None:
        """Return the comment with the edits applied."""
        if self.clears_comment:
            return None
        return comment if self.comment is None else self.comment
