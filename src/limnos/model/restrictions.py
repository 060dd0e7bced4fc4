"""Read restrictions as values: which rows and what of columns somebody may see of a table.

May import this room. Knows no schema and no wire: filters are JSON in their normal form (`formats.iceberg.restrictions`), masks are words of the closed
list of Iceberg's REST specification. Decision record 0093.
"""

from __future__ import annotations

from typing import Final

import msgspec

RESTRICTIONS_MAX: Final = 1_000
"""Restrictions in one catalog: all of them are one fact of the view."""
CLOSED_TO: Final = "read-restricted-use-server-planning"
"""What a reader meets wherever the files of a table would be, in words and as a location."""


class ColumnMask(msgspec.Struct, frozen=True):
    """What becomes of one column: its name when the mask was set, and its field id; 0 in a namespace, where names decide."""

    column: str
    action: str
    field_id: int = 0


class RestrictionTerms(msgspec.Struct, frozen=True):
    """What a restriction says: the rows that are left, what becomes of columns, and for whom.

    `row_filter` is JSON, empty for all rows. `to` and `unless` are ids of users, groups and roles; nobody in `to` means everybody.
    """

    row_filter: str = ""
    masks: tuple[ColumnMask, ...] = ()
    to: tuple[int, ...] = ()
    unless: tuple[int, ...] = ()


class Restriction(msgspec.Struct, frozen=True):
    """A restriction of one name on a table, or on a namespace for all tables below it."""

    object_id: int
    name: str
    terms: RestrictionTerms
    set_by: str
    set_at: int


class CatalogRestrictions(msgspec.Struct, frozen=True):
    """All restrictions of a catalog, by the objects that they are on."""

    by_object: dict[int, tuple[Restriction, ...]]

    @property
    def size(self) -> int:
        """What they take in memory, about, in bytes."""
        return sum(
            400 + len(each.terms.row_filter) + 150 * len(each.terms.masks)
            for held in self.by_object.values()
            for each in held
        )
