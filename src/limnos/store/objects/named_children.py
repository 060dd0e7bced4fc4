# SPDX-License-Identifier: Apache-2.0
"""Reads of several children of one parent by their names.

Must not know rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps

from limnos.model.entities import Node
from limnos.store.objects.name_search import one_of
from limnos.store.objects.node_reads import SELECT_NODES, node_of
from limnos.store.sql import Load, Sql

_NAMED = f"{SELECT_NODES} WHERE n.parent_id = :parent AND n.name_space = :space AND n.deleted = 0 AND n.name "
CHILDREN_NAMED = Sql(_NAMED + one_of("names", "text")[0], on_sqlite=_NAMED + one_of("names")[1])


def named_children_read(parent_id: int, space: str, *, names: Sequence[str]) -> Load[list[Node]]:
    """Read the live children of a parent with the given names, in no order."""
    rows = yield CHILDREN_NAMED, {"parent": parent_id, "space": space, "names": dumps(names)}
    return [node_of(row) for row in rows]
