# SPDX-License-Identifier: Apache-2.0
"""Reads of the change feed: the commits of several zones after a position, all from one snapshot.

Must not know rights: callers filter the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, NamedTuple

import msgspec

from limnos.model.entities import ChangeRow
from limnos.model.kinds import KINDS, Kind
from limnos.store.changes import change_of
from limnos.store.sql import Load, Row, Sql

OLDEST: Final = -1
"""The position before the oldest change that a zone still has."""
NEWEST: Final = -2
"""The position after the newest committed change."""


class FeedEntry(msgspec.Struct, frozen=True):
    """A change row with its actor, its time (milliseconds since 1970) and its request id."""

    change: ChangeRow
    actor: str
    request_id: str
    at: int


class ZoneClock(NamedTuple):
    """The newest revision of a zone, and the revision up to which its changes were pruned."""

    revision: int
    pruned_to: int


class NodePosition(NamedTuple):
    """The position of a node in the tree; for a dropped node, its last one."""

    zone: int
    parent_id: int
    kind: Kind
    name: str
    alive: bool


class FeedSlice(NamedTuple):
    """The next changes of several zones, in complete revisions only.

    `reached` maps each existing zone to its last revision in this slice, or to the caller's position if it has no
    changes here. `node_positions` has the changed nodes, their old and new parents, and all ancestors.
    """

    epoch: int
    clocks: dict[int, ZoneClock]
    entries: dict[int, list[FeedEntry]]
    reached: dict[int, int]
    node_positions: dict[int, NodePosition]

    @property
    def behind(self) -> int:
        """The number of revisions after this slice, which the caller has not read yet."""
        return sum(self.clocks[zone].revision - at for zone, at in self.reached.items())


def _ids(name: str) -> tuple[str, str]:
    """Return the subselect over the ids in the JSON array parameter `name`, for PostgreSQL and for SQLite."""
    return (
        f"SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST({name} AS json)) v",
        f"SELECT value FROM json_each({name})",
    )


_ZONES, _ZONES_SQLITE = _ids(":zones")
_CLOCKS = "SELECT s.epoch, c.zone, c.revision, c.pruned_to FROM store s LEFT JOIN clock c ON c.zone IN ({zones})"
CLOCKS = Sql(_CLOCKS.format(zones=_ZONES), on_sqlite=_CLOCKS.format(zones=_ZONES_SQLITE))
FEED_COLUMNS = (
    "zone, revision, ordinal, operation, kind, node_id, name_space, old_parent, old_name, new_parent, new_name,"
    " owner_id, actor, request_id, at"
)
FEED_SLICE = Sql(
    f"SELECT {FEED_COLUMNS} FROM change WHERE zone = :zone AND revision > :since AND revision <= :until"
    " ORDER BY revision, ordinal LIMIT :rows"
)
CHANGE_FILTERS: Final[Mapping[str, str]] = {
    "since_at": "at >= :since_at",
    "until_at": "at <= :until_at",
    "id": "node_id = :id",
    "kind": "kind = :kind",
    "actor": "actor = :actor",
    "operation": "operation = :operation",
}
"""Conditions on changes that the database evaluates, in the order of the primary key."""


@cache
def change_page(names: tuple[str, ...]) -> Sql:
    """Build the SELECT of the next changes of a zone after `:since` and `:ordinal`, up to the revision `:until`, with
    the conditions `names`. The statement examines the changes up to `:until` at most.
    """
    where = "".join([f" AND {CHANGE_FILTERS[name]}" for name in names])
    return Sql(
        f"SELECT {FEED_COLUMNS} FROM change WHERE zone = :zone AND revision <= :until"
        f" AND (revision, ordinal) > (:since, :ordinal){where} ORDER BY revision, ordinal LIMIT :limit"
    )


_NODES, _NODES_SQLITE = _ids(":nodes")
_LOTS = (
    "WITH RECURSIVE up (id, zone, parent_id, kind, name, deleted) AS ("
    "SELECT n.id, n.zone, n.parent_id, n.kind, n.name, n.deleted FROM node n WHERE n.id IN ({nodes})"
    " UNION SELECT p.id, p.zone, p.parent_id, p.kind, p.name, p.deleted FROM up JOIN node p ON p.id = up.parent_id"
    ") SELECT id, zone, parent_id, kind, name, deleted FROM up"
)
NODE_POSITIONS = Sql(_LOTS.format(nodes=_NODES), on_sqlite=_LOTS.format(nodes=_NODES_SQLITE))


def clocks_read(zones: Iterable[int]) -> Load[tuple[int, dict[int, ZoneClock]]]:
    """Read the store's epoch and the clocks of the zones that exist."""
    rows = yield CLOCKS, {"zones": json.dumps(list(zones))}
    return rows[0][0], {row[1]: ZoneClock(row[2], row[3]) for row in rows if row[1] is not None}


def feed_slice_read(positions: Mapping[int, int], *, limit: int) -> Load[FeedSlice]:
    """Read the changes after a position in each zone, about `limit` revisions in all.

    A position is a revision, `OLDEST` or `NEWEST`. Every zone with newer revisions contributes at most the same number
    of them, so that a busy zone does not delay the others. A zone whose position has been pruned, or is after its
    newest revision, contributes nothing.
    """
    epoch, clocks = yield from clocks_read(positions)
    start_positions = {zone: _resolve_position(positions[zone], clock) for zone, clock in clocks.items()}
    ahead = [zone for zone, clock in clocks.items() if clock.pruned_to <= start_positions[zone] < clock.revision]
    share = max(1, limit // max(1, len(ahead)))
    entries: dict[int, list[FeedEntry]] = {}
    for zone in ahead:
        since = start_positions[zone]
        until = min(since + share, clocks[zone].revision)
        rows, start_positions[zone] = yield from revisions_read(
            FEED_SLICE, zone, since=since, until=until, rows_max=4 * share
        )
        entries[zone] = [entry_of(row) for row in rows]
    node_positions = yield from node_positions_read(entries)
    return FeedSlice(
        epoch=epoch, clocks=clocks, entries=entries, reached=start_positions, node_positions=node_positions
    )


def _resolve_position(position: int, clock: ZoneClock) -> int:
    return {OLDEST: clock.pruned_to, NEWEST: clock.revision}.get(position, position)


def revisions_read(statement: Sql, zone: int, *, since: int, until: int, rows_max: int) -> Load[tuple[list[Row], int]]:
    """Read rows of complete revisions, and return them with the last revision read.

    Revisions that exceed `rows_max` rows are left to the next call, except the first, which is always read completely.
    The statement has the parameters of `FEED_SLICE`, and the revision as its second column.
    """
    params = {"zone": zone, "since": since, "until": until, "rows": rows_max + 1}
    rows = yield statement, params
    if len(rows) > rows_max:
        until = rows[-1][1] - 1
        rows = [row for row in rows if row[1] <= until]
        if not rows:
            until = since + 1
            rows = yield statement, {**params, "until": until, "rows": 2**31 - 1}
    return rows, until


def entry_of(row: Row) -> FeedEntry:
    """Build an entry from a row with the columns of `FEED_SLICE`."""
    change = change_of(row)
    return FeedEntry(change, row[12], row[13], row[14])


def zones_read(zones: Iterable[int]) -> Load[dict[int, NodePosition]]:
    """Read the positions of zones and their ancestors, including dropped ones."""
    rows = yield NODE_POSITIONS, {"nodes": json.dumps(sorted(zones))}
    return {row[0]: node_position_of(row) for row in rows}


def node_position_of(row: Row) -> NodePosition:
    """Build a position from a row of `NODE_POSITIONS`."""
    return NodePosition(zone=row[1], parent_id=row[2], kind=KINDS[row[3]], name=row[4], alive=row[5] == 0)


def node_positions_read(entries: Mapping[int, list[FeedEntry]]) -> Load[dict[int, NodePosition]]:
    """Read the tree positions of the changed nodes, of their old and new parents, of the zones, and of all ancestors,
    including dropped nodes.
    """
    about: set[int] = set(entries)
    for part in entries.values():
        for entry in part:
            change = entry.change
            about.update(i for i in (change.node_id, change.old_parent, change.new_parent) if i)
    if not about:
        return {}
    rows = yield NODE_POSITIONS, {"nodes": json.dumps(sorted(about))}
    return {row[0]: node_position_of(row) for row in rows}
