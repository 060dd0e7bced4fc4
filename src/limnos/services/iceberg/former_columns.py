# SPDX-License-Identifier: Apache-2.0
"""Former columns: restrictions keep applying to a column that a commit renames or drops.

Must not know any wire format. A restriction of a namespace names its columns. When a commit ends such a name of a
column, the same transaction adds the column to the restriction, which then means it too. Setting the restriction again
forgets these columns. Decision record 0166.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.field_ids import schema_of
from limnos.formats.iceberg.json_types import Json, integer_at
from limnos.formats.iceberg.read_restrictions import ANY_NAME, former_columns, referenced_names, returning_columns
from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.model.restrictions import FormerColumn, Restriction, RestrictionTerms
from limnos.store.tx import Tx

FORMER_MAX: Final = 1_000
"""The maximum number of former columns of one restriction, since all restrictions of a catalog are one fact."""

EndedNames = tuple[tuple[int, str], ...]
"""Field ids and names of columns that have the name no longer."""


def ended_names(before: Json, after: Json) -> EndedNames:
    """Return the columns that a commit renames or drops, or adds under a former field id, from the metadata before and
    after it.
    """
    number = after.get("current-schema-id")
    if number is not None and before.get("current-schema-id") == number:
        return ()
    old, new = iceberg_metadata.current_schema(before), iceberg_metadata.current_schema(after)
    if not old or not new:
        return ()
    last_id = integer_at(before, "last-column-id", where="Table metadata")
    return former_columns(old, new) + returning_columns(old, new, last_id=last_id)


def ended_names_of(before: bytes, after: bytes) -> EndedNames:
    """Return the columns that a new document renames or drops, from the documents' bytes."""
    return former_columns(schema_of(before), schema_of(after))


def restrictions_follow(tx: Tx, table: Node, *, ended: EndedNames) -> None:
    """Add columns to the restrictions of the table's catalog that name them. Raises BadRequest above the limit."""
    if not ended:
        return
    for restriction in tx.restrictions.of_zone(table.zone):
        terms = _following(restriction, table_id=table.id, ended=ended)
        if terms is not None:
            tx.restrictions.amend(restriction, terms)


def _following(restriction: Restriction, *, table_id: int, ended: EndedNames) -> RestrictionTerms | None:
    """Return the terms with the columns that they name; None if they name no further column."""
    names, former_ids = referenced_names(restriction.terms), restriction.terms.former
    following = (
        FormerColumn(table_id, number, each)
        for number, name in ended
        for each in (sorted(names) if name == ANY_NAME else [name])
        if each.casefold() in names
    )
    more = tuple(each for each in following if each not in former_ids)
    if not more:
        return None
    if len(former_ids) + len(more) > FORMER_MAX:
        raise BadRequest(
            "A restricted column was renamed too often: a user who may grant on the table must set its restrictions"
            " again"
        )
    return msgspec.structs.replace(restriction.terms, former=former_ids + more)
