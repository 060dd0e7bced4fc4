# SPDX-License-Identifier: Apache-2.0
"""Ancestry: parent, kind and name of given nodes and of all their ancestors up to the metalake, read in one statement.

Must not know rights. Used to convert ids to names in responses, such as the ids of the objects of a role's grants.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.model.kinds import KINDS, Kind
from limnos.store.sql import Row, Sql

Ancestry = dict[int, tuple[int, Kind, str]]
"""By id: parent, kind and name of the requested nodes and of all their ancestors."""


def with_ancestors(chosen: str) -> Sql:
    """Build the statement for the live nodes whose ids the subselect `chosen` returns, and their ancestors."""
    return Sql(
        "WITH RECURSIVE up (id, parent_id, kind, name) AS ("
        f"SELECT n.id, n.parent_id, n.kind, n.name FROM node n WHERE n.deleted = 0 AND n.id IN ({chosen})"
        " UNION SELECT p.id, p.parent_id, p.kind, p.name FROM up JOIN node p ON p.id = up.parent_id AND p.deleted = 0"
        ") SELECT id, parent_id, kind, name FROM up"
    )


def ancestry_of(rows: Sequence[Row]) -> Ancestry:
    """Build the mapping from node id to (parent id, kind, name) from rows of `with_ancestors`."""
    return {row[0]: (row[1], KINDS[row[2]], row[3]) for row in rows}


def path_of(object_id: int, nodes: Ancestry) -> tuple[str, ...] | None:
    """Return the path of an object below its metalake; for a metalake, its own name.

    None if the object or an ancestor was dropped.
    """
    names: list[str] = []
    while object_id in nodes:
        object_id, kind, name = nodes[object_id]
        if kind is Kind.METALAKE:
            return tuple(reversed(names)) or (name,)
        names.append(name)
    return None
