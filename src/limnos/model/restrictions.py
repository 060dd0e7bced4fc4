# SPDX-License-Identifier: Apache-2.0
"""Read restrictions as values: the rows and columns of a table that users may read.

Must not know schemas or wire formats. Filters are JSON in normal form (`formats.iceberg.restrictions`); masks are from
the fixed list of actions in Iceberg's REST specification. Decision record 0093.
"""

from __future__ import annotations

from typing import Final

import msgspec

RESTRICTIONS_MAX: Final = 1_000
"""The maximum number of restrictions of live objects in one catalog, since all of them are one fact of the view."""
RETAINED_MAX: Final = 5 * RESTRICTIONS_MAX
"""The maximum number of restrictions in one catalog, with those of dropped objects that can be restored: tools that
rebuild restricted tables leave one for each rebuild.
"""
CLOSED_TO: Final = "read-restricted-set-scan-planning-mode-to-server"
"""Replaces a table's file locations in messages and responses to restricted users."""


class ColumnMask(msgspec.Struct, frozen=True):
    """The mask of one column: the column's name when the mask was set, its field id, and the action.

    The field id is 0 for a mask on a namespace. A mask applies to the column with its field id, and to columns with its
    name, ignoring case.
    """

    column: str
    action: str
    field_id: int = 0


class FormerColumn(msgspec.Struct, frozen=True):
    """A column that had a name when a restriction named that column: its table, its field id, and the former name."""

    table_id: int
    field_id: int
    name: str


class RestrictionTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of a restriction: a row filter, the column masks, and the principals it applies to.

    `row_filter` is JSON, "" for all rows. `to` and `unless` are ids of users, groups and roles; an empty `to` means all
    users. `former` are columns that were renamed or dropped since the restriction was set: a reference to a column by
    name means these columns too.
    """

    row_filter: str = ""
    masks: tuple[ColumnMask, ...] = ()
    to: tuple[int, ...] = ()
    unless: tuple[int, ...] = ()
    former: tuple[FormerColumn, ...] = ()
    inherited: bool = False
    """Whether a table took the terms over from a former table of its name. A mask whose column it lacks closes it."""
    denies: tuple[int, ...] = ()
    """Codes of privileges that the object denies to the roles in `to`, as a former object of its path did."""


def terms_by_name(terms: RestrictionTerms) -> RestrictionTerms:
    """Return terms that refer to columns by name, for another table. Its columns have other field ids."""
    text = terms.row_filter
    row_filter = msgspec.json.encode(_by_name(msgspec.json.decode(text))).decode() if text else ""
    masks = tuple(ColumnMask(each.column, each.action) for each in terms.masks)
    return msgspec.structs.replace(terms, row_filter=row_filter, masks=masks, former=())


def _by_name(part: object) -> object:
    """Return a part of a filter in which references have no field ids."""
    if not isinstance(part, dict):
        return part
    if part.get("type") == "reference":
        return {"type": "reference", "name": part.get("name")}
    return {key: value if part.get("type") == "literal" else _by_name(value) for key, value in part.items()}


class Restriction(msgspec.Struct, frozen=True, kw_only=True):
    """A named restriction on a table, or on a namespace for all tables below it."""

    object_id: int
    name: str
    terms: RestrictionTerms
    set_by: str
    set_at: int


class CatalogRestrictions(msgspec.Struct, frozen=True):
    """All restrictions of a catalog, by the id of their object. `denying` are those that deny privileges."""

    by_object: dict[int, tuple[Restriction, ...]]
    denying: tuple[Restriction, ...] = ()

    @property
    def size(self) -> int:
        """The estimated size in memory of these restrictions, in bytes."""
        return sum(
            400 + len(each.terms.row_filter) + 150 * (len(each.terms.masks) + len(each.terms.former))
            for restrictions in self.by_object.values()
            for each in restrictions
        )
