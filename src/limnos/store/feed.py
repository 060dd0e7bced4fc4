"""Reads of the change feed for those who follow it: what several zones committed after a position, all of one snapshot.

May import `model` and this room. Knows nothing of who may see what: whoever follows is shown less than is read here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.model.entities import ChangeRow
from limnos.model.kinds import KINDS, Kind
from limnos.store.sql import Load, Row, Sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OLDEST: Final = -1
"""The position before everything that is still kept of a zone."""
NEWEST: Final = -2
"""The position after everything that was committed so far."""


class FeedEntry(msgspec.Struct, frozen=True):
    """A change with who made it, when (milliseconds since 1970), and in which request."""

    change: ChangeRow
    actor: str
    request_id: str
    at: int


class ZoneClock(NamedTuple):
    """How far a zone is, and how far its changes were deleted."""

    revision: int
    pruned_to: int


class NodePosition(NamedTuple):
    """Where a node is, or lay when it was dropped."""

    zone: int
    parent_id: int
    kind: Kind
    name: str
    alive: bool


class FeedSlice(NamedTuple):
    """The next part of several zones' changes. A revision is in it whole or not at all.

    `reached` has the position after the part for each zone that exists; `node_positions` has the nodes that its changes are about,
    and all that lie above them.
    """

    epoch: int
    clocks: dict[int, ZoneClock]
    entries: dict[int, list[FeedEntry]]
    reached: dict[int, int]
    node_positions: dict[int, NodePosition]

    @property
    def behind(self) -> int:
        """How many revisions come after the part."""
        return sum(self.clocks[zone].revision - at for zone, at in self.reached.items())


def _ids(name: str) -> tuple[str, str]:
    """Spell a list of ids that comes as JSON text: on PostgreSQL, on SQLite."""
    return f"SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST({name} AS json)) v", (
        f"SELECT value FROM json_each({name})"
    )


_ZONES, _ZONES_SQLITE = _ids(":zones")
_CLOCKS = "SELECT s.epoch, c.zone, c.revision, c.pruned_to FROM store s LEFT JOIN clock c ON c.zone IN ({zones})"
CLOCKS = Sql(_CLOCKS.format(zones=_ZONES), on_sqlite=_CLOCKS.format(zones=_ZONES_SQLITE))
FEED_COLUMNS = (
    "zone, revision, ordinal, operation, kind, node_id, name_space, old_parent, old_name, new_parent, new_name, owner_id,"
    " actor, request_id, at"
)
FEED_SLICE = Sql(
    f"SELECT {FEED_COLUMNS} FROM change WHERE zone = :zone AND revision > :since AND revision <= :until"
    " ORDER BY revision, ordinal LIMIT :rows"
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
    """Read the store's epoch and the clocks of the zones that there are."""
    rows = yield CLOCKS, {"zones": json.dumps(list(zones))}
    return rows[0][0], {row[1]: ZoneClock(row[2], row[3]) for row in rows if row[1] is not None}


def feed_slice_read(positions: Mapping[int, int], *, limit: int) -> Load[FeedSlice]:
    """Read what comes after a position in each zone, about `limit` revisions in all.

    Every zone that is ahead gives the same number of revisions, so that none waits for a busy one. A zone whose position
    is before what is kept, or after what was committed, gives nothing.
    """
    epoch, clocks = yield from clocks_read(positions)
    reached = {zone: _resolve_position(positions[zone], clock) for zone, clock in clocks.items()}
    ahead = [zone for zone, clock in clocks.items() if clock.pruned_to <= reached[zone] < clock.revision]
    share = max(1, limit // max(1, len(ahead)))
    entries: dict[int, list[FeedEntry]] = {}
    for zone in ahead:
        since = reached[zone]
        until = min(since + share, clocks[zone].revision)
        rows, reached[zone] = yield from revisions_read(FEED_SLICE, zone, since=since, until=until, rows_max=4 * share)
        entries[zone] = [entry_of(row) for row in rows]
    node_positions = yield from node_positions_read(entries)
    return FeedSlice(epoch, clocks, entries, reached, node_positions)


def _resolve_position(position: int, clock: ZoneClock) -> int:
    return {OLDEST: clock.pruned_to, NEWEST: clock.revision}.get(position, position)


def revisions_read(statement: Sql, zone: int, *, since: int, until: int, rows_max: int) -> Load[tuple[list[Row], int]]:
    """Read the rows of whole revisions, those that fit; of one that never fits, all. Also says how far they go.

    The statement has the parameters of `FEED_SLICE`, and the revision in its second column.
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
    """Build a change with its circumstances from a row whose columns are those of `FEED_SLICE`."""
    change = ChangeRow(row[0], row[1], row[2], row[3], KINDS[row[4]], *row[5:12])
    return FeedEntry(change, row[12], row[13], row[14])


def zones_read(zones: Iterable[int]) -> Load[dict[int, NodePosition]]:
    """Read which zones there are or were, and where they lie; also what lies above them."""
    rows = yield NODE_POSITIONS, {"nodes": json.dumps(sorted(zones))}
    return {row[0]: node_position_of(row) for row in rows}


def node_position_of(row: Row) -> NodePosition:
    """Build a node's place from a row of `NODE_POSITIONS`."""
    return NodePosition(row[1], row[2], KINDS[row[3]], row[4], row[5] == 0)


def node_positions_read(entries: Mapping[int, list[FeedEntry]]) -> Load[dict[int, NodePosition]]:
    """Read where the nodes of changes are, or lay; the zones themselves are asked for, too: a catalog may be gone."""
    about: set[int] = set(entries)
    for part in entries.values():
        for entry in part:
            change = entry.change
            about.update(i for i in (change.node_id, change.old_parent, change.new_parent) if i)
    if not about:
        return {}
    rows = yield NODE_POSITIONS, {"nodes": json.dumps(sorted(about))}
    return {row[0]: node_position_of(row) for row in rows}
