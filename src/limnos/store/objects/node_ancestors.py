# SPDX-License-Identifier: Apache-2.0
"""Reads of nodes with their ancestors, in one statement for nodes of many catalogs.

Must not know rights.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from json import dumps
from typing import NamedTuple

from limnos.model.entities import ClockRow, Node
from limnos.model.kinds import Kind
from limnos.store.objects import owners
from limnos.store.objects.name_search import one_of
from limnos.store.objects.node_reads import columns_of, node_of
from limnos.store.sql import Load, Row, Sql

_NODES = "up (id, parent_id, zone) AS (SELECT n.id, n.parent_id, n.zone FROM node n WHERE n.id {nodes}"
_ABOVE = " UNION SELECT p.id, p.parent_id, p.zone FROM up {above})"
_JOINED = " FROM up {node} {owner}"
_SELECTED = f" SELECT o.principal_id, n.deleted, {columns_of('n')}"
_UPWARDS = f"WITH RECURSIVE {_NODES}{_ABOVE}{_SELECTED}{_JOINED}"
# For EXISTS, PostgreSQL would read all restrictions.
_CONTAINERS = (
    "WITH RECURSIVE owned (id) AS (SELECT o.object_id FROM owner o WHERE o.principal_id {principals}"
    f" ORDER BY o.principal_id, o.object_id LIMIT :limit), {_NODES}"
    " UNION ALL SELECT n.id, n.parent_id, n.zone FROM owned up {node}"
    " UNION ALL SELECT x.id, x.parent_id, x.zone FROM (SELECT n.id, n.parent_id, n.zone FROM node n"
    " WHERE n.parent_id = :metalake AND n.name_space = 'catalog' AND n.deleted = 0 ORDER BY n.name LIMIT :limit) x"
    f"{_ABOVE}{_SELECTED}, c.revision, c.access_revision, c.pruned_to,"
    " (SELECT 1 FROM restriction r WHERE r.zone = n.id LIMIT 1) IS NOT NULL, (SELECT count(*) FROM owned)"
    f"{_JOINED} LEFT JOIN clock c ON c.zone = n.id AND n.kind = {int(Kind.CATALOG)}"
)
_JOINS_ON_SQLITE = {
    "above": "JOIN node p ON p.id = up.parent_id AND p.zone = up.zone",
    "node": "JOIN node n ON n.id = up.id",
    "owner": "LEFT JOIN owner o ON o.object_id = n.id",
}
# PostgreSQL overestimates how many ancestors there are. With plain joins it would read all nodes and owners.
_JOINS_ON_POSTGRES = {
    "above": "JOIN LATERAL (SELECT * FROM node x WHERE x.id = up.parent_id AND x.zone = up.zone LIMIT 1) p ON TRUE",
    "node": "JOIN LATERAL (SELECT * FROM node x WHERE x.id = up.id LIMIT 1) n ON TRUE",
    "owner": "LEFT JOIN LATERAL (SELECT * FROM owner x WHERE x.object_id = n.id LIMIT 1) o ON TRUE",
}


def _sql(text: str) -> Sql:
    postgres, sqlite = ({name: one_of(name)[index] for name in ("nodes", "principals")} for index in range(2))
    return Sql(text.format(**postgres, **_JOINS_ON_POSTGRES), on_sqlite=text.format(**sqlite, **_JOINS_ON_SQLITE))


UPWARDS = _sql(_UPWARDS)
CONTAINERS = _sql(_CONTAINERS)


class NodeRow(NamedTuple):
    """A node, its owner's id, and whether it is live."""

    node: Node
    owner_id: int | None
    is_live: bool


class ContainersRead(NamedTuple):
    """Catalogs of a metalake, and nodes with their ancestors.

    - `rows`: the catalogs and the nodes.
    - `clocks`: the clocks of the catalogs.
    - `unrestricted`: ids of the catalogs without read restrictions.
    - `has_all_catalogs`, `has_all_owned`: whether no catalog and no owned node is missing.
    """

    rows: list[NodeRow]
    clocks: tuple[ClockRow, ...]
    unrestricted: frozenset[int]
    has_all_catalogs: bool
    has_all_owned: bool


def nodes_read(node_ids: Sequence[int]) -> Load[list[NodeRow]]:
    """Read nodes by id, each with its ancestors in its zone."""
    return [_node_row(row) for row in (yield UPWARDS, {"nodes": dumps(node_ids)})]


def containers_read(
    metalake_id: int, principal_ids: Collection[int], *, node_ids: Sequence[int]
) -> Load[ContainersRead]:
    """Read the catalogs of a metalake, some nodes, the nodes that principals own, and the ancestors of both.

    At most `owners.OWNED_MAX` catalogs and as many owned nodes.
    """
    limit = owners.OWNED_MAX
    rows = yield (
        CONTAINERS,
        {
            "nodes": dumps(node_ids),
            "principals": dumps(sorted(principal_ids)),
            "metalake": metalake_id,
            "limit": limit,
        },
    )
    live_catalogs = [row for row in rows if row[5] == Kind.CATALOG and row[1] == 0]
    return ContainersRead(
        rows=[_node_row(row[:-5]) for row in rows],
        clocks=tuple([ClockRow(row[2], *row[-5:-2]) for row in live_catalogs]),
        unrestricted=frozenset(row[2] for row in live_catalogs if not row[-2]),
        has_all_catalogs=len(live_catalogs) < limit,
        has_all_owned=all(row[-1] < limit for row in rows[:1]),
    )


def _node_row(row: Row) -> NodeRow:
    return NodeRow(node_of(row[2:]), row[0], row[1] == 0)
