# SPDX-License-Identifier: Apache-2.0
"""Reads of nodes for the view (the in-memory cache): paths, single nodes, and lists of names.

Must not know rights. `nodes` has the writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from json import dumps

import msgspec

from limnos.model.entities import Listing, Node
from limnos.model.kinds import KINDS, Kind
from limnos.model.records import NODE_RECORDS
from limnos.store.objects.name_search import one_of
from limnos.store.sql import Load, Row, Sql, Value

COLUMNS = (
    "id",
    "zone",
    "parent_id",
    "kind",
    "name_space",
    "name",
    "format",
    "implicit",
    "created_by",
    "created_at",
    "modified_by",
    "modified_at",
    "revision",
    "record",
)
WIDTH = len(COLUMNS)


def columns_of(alias: str) -> str:
    """Return the columns of a node, for `node_of`, in the table with this alias."""
    return ", ".join(f"{alias}.{column}" for column in COLUMNS)


def node_of(row: Row) -> Node:
    """Build a node from a row whose columns are `COLUMNS`."""
    kind = KINDS[row[3]]
    return Node(
        id=row[0],
        zone=row[1],
        parent_id=row[2],
        kind=kind,
        name_space=row[4],
        name=row[5],
        format=row[6],
        implicit=bool(row[7]),
        created_by=row[8],
        created_at=row[9],
        modified_by=row[10],
        modified_at=row[11],
        revision=row[12],
        record=NODE_RECORDS[kind].read(row[13]),
    )


@cache
def _path_statement(depth: int) -> Sql:
    """Build a self-join that resolves a path of `depth` names below a parent. It returns NULLs for missing nodes."""
    joins = "".join(
        f" LEFT JOIN node n{i} ON n{i}.parent_id = n{i - 1}.id AND n{i}.name_space = :space{i} AND n{i}.name = :name{i}"
        f" AND n{i}.deleted = 0"
        for i in range(1, depth)
    )
    return Sql(
        f"SELECT {', '.join(columns_of(f'n{i}') for i in range(depth))} FROM node n0{joins}"
        " WHERE n0.parent_id = :parent AND n0.name_space = :space0 AND n0.name = :name0 AND n0.deleted = 0"
    )


SELECT_NODES = f"SELECT {columns_of('n')} FROM node n"
BY_ID = Sql(f"{SELECT_NODES} WHERE n.id = :id AND n.deleted = 0")
_NAMED = f"{SELECT_NODES} WHERE n.parent_id = :parent AND n.name_space = :space AND n.deleted = 0 AND n.name "
CHILDREN_NAMED = Sql(_NAMED + one_of("names", "text")[0], on_sqlite=_NAMED + one_of("names")[1])
_SELECT_NAMES = (
    "SELECT n.name, n.id, o.principal_id FROM node n LEFT JOIN owner o ON o.object_id = n.id WHERE n.parent_id ="
    " :parent AND n.name_space = :space AND n.kind = :kind AND n.deleted = 0 AND n.name > :after"
)
LISTING = Sql(f"{_SELECT_NAMES} ORDER BY n.name")
SPAN = Sql(f"{_SELECT_NAMES} ORDER BY n.name LIMIT :limit")
SPAN_UNTIL = Sql(f"{_SELECT_NAMES} AND n.name <= :until ORDER BY n.name LIMIT :limit")
_MANY = f"SELECT {columns_of('n')} FROM node n WHERE n.deleted = 0 AND n.id IN ({{nodes}})"
MANY = Sql(
    _MANY.replace("{nodes}", "SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:nodes AS json)) v"),
    on_sqlite=_MANY.replace("{nodes}", "SELECT value FROM json_each(:nodes)"),
)
_ZONES = "SELECT id, zone FROM node WHERE id IN ({nodes})"
ZONES = Sql(
    _ZONES.replace("{nodes}", "SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:nodes AS json)) v"),
    on_sqlite=_ZONES.replace("{nodes}", "SELECT value FROM json_each(:nodes)"),
)
_ALL = 2**62


def path_read(parent_id: int, names: Sequence[tuple[str, str]]) -> Load[list[Node | None]]:
    """Resolve a path of (name space, name) pairs below a parent.

    The result has None for the first missing node and all after it.
    """
    params: dict[str, int | str] = {"parent": parent_id}
    for i, (space, name) in enumerate(names):
        params[f"space{i}"] = space
        params[f"name{i}"] = name
    rows = yield _path_statement(len(names)), params
    if not rows:
        return [None] * len(names)
    parts = [rows[0][i * WIDTH : (i + 1) * WIDTH] for i in range(len(names))]
    return [None if part[0] is None else node_of(part) for part in parts]


def node_read(node_id: int) -> Load[Node | None]:
    """Read a live node by id, or None."""
    rows = yield BY_ID, {"id": node_id}
    return node_of(rows[0]) if rows else None


def live_nodes_read(node_ids: Sequence[int]) -> Load[list[Node]]:
    """Read the live nodes among some ids, in one statement, in no order."""
    rows = yield MANY, {"nodes": dumps(node_ids)}
    return [node_of(row) for row in rows]


def zones_of_read(node_ids: Sequence[int]) -> Load[dict[int, int]]:
    """Read the zones of nodes, including dropped ones.

    Ids that belong to no node are omitted. A node never changes its zone.
    """
    rows = yield ZONES, {"nodes": dumps(node_ids)}
    return {row[0]: row[1] for row in rows}


def listing_read(parent_id: int, space: str, kind: Kind) -> Load[Listing]:
    """Read all live names of a kind under a parent, with their owners, sorted by code point."""
    rows = yield LISTING, {"parent": parent_id, "space": space, "kind": int(kind), "after": ""}
    return listing_of(rows)


def span_read(parent_id: int, space: str, kind: Kind, *, after: str, until: str, limit: int = _ALL) -> Load[list[Row]]:
    """Read up to `limit` rows of a listing with names greater than `after` and up to `until` ("": no upper bound)."""
    params: dict[str, Value] = {
        "parent": parent_id,
        "space": space,
        "kind": int(kind),
        "after": after,
        "until": until,
        "limit": limit,
    }
    rows: list[Row] = yield (SPAN_UNTIL if until else SPAN), params
    return rows


def block_read(parent_id: int, space: str, kind: Kind, after: str, until: str) -> Load[Listing]:
    """Read all entries of a listing with names greater than `after` and up to `until`."""
    return listing_of((yield from span_read(parent_id, space, kind, after=after, until=until)))


def listing_of(rows: Sequence[Row]) -> Listing:
    """Build a listing from rows of name, id and owner."""
    if not rows:
        return Listing((), (), (), ())
    names, ids, owners = zip(*rows, strict=True)
    return Listing(names, ids, owners, tuple(map(msgspec.json.encode, names)))


def named_children_read(parent_id: int, space: str, *, names: Sequence[str]) -> Load[list[Node]]:
    """Read the live children of a parent with the given names, in no order."""
    rows = yield CHILDREN_NAMED, {"parent": parent_id, "space": space, "names": dumps(names)}
    return [node_of(row) for row in rows]
