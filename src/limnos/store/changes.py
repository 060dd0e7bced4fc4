"""The change feed and its clock: what the gate reads, what a mutation writes, how old rows are pruned.

May import `model` and the room's `sql`. Knows nothing of what a change means to a cache.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec

from limnos.model.entities import Change, ClockRow
from limnos.model.kinds import Kind
from limnos.store.sql import Load, Query, Row, Sql

UNKNOWN = -1
"""The known revision of a zone never asked for: its clock is read, its history is not."""
_NO_HISTORY = 2**62


class Moved(NamedTuple):
    """What a gate read found: empty clocks mean that nothing moved in any zone asked for."""

    epoch: int
    clocks: tuple[ClockRow, ...]
    changes: tuple[Change, ...]


NOTHING = Moved(0, (), ())


@cache
def _gate_statement(zones: int) -> Sql:
    """The gate for that many zones: the store's row, each clock that differs, and the changes after what is known."""
    cases = " ".join(f"WHEN :z{i} THEN :s{i}" for i in range(zones))
    knowns = " ".join(f"WHEN :z{i} THEN :k{i}" for i in range(zones))
    names = ", ".join(f":z{i}" for i in range(zones))
    return Sql(
        "SELECT s.epoch, c.zone, c.revision, c.access_revision, c.pruned_to, h.revision, h.ordinal, h.operation, h.kind,"
        " h.node_id, h.name_space, h.old_parent, h.old_name, h.new_parent, h.new_name"
        " FROM store s CROSS JOIN clock c LEFT JOIN change h"
        f" ON h.zone = c.zone AND h.revision > (CASE c.zone {cases} END)"
        f" WHERE c.zone IN ({names}) AND (s.epoch <> :epoch OR c.revision <> (CASE c.zone {knowns} END))"
        " ORDER BY c.zone, h.revision, h.ordinal"
    )


GATE_POSTGRES = Sql(
    "SELECT s.epoch, c.zone, c.revision, c.access_revision, c.pruned_to, h.revision, h.ordinal, h.operation, h.kind,"
    " h.node_id, h.name_space, h.old_parent, h.old_name, h.new_parent, h.new_name"
    " FROM store s CROSS JOIN unnest(:zones::bigint[], :known::bigint[], :since::bigint[]) AS k(zone, revision, since)"
    " JOIN clock c ON c.zone = k.zone"
    " LEFT JOIN change h ON h.zone = c.zone AND h.revision > k.since"
    " WHERE s.epoch <> :epoch OR c.revision <> k.revision"
    " ORDER BY c.zone, h.revision, h.ordinal"
)


def gate_query(epoch: int, known: tuple[tuple[int, int], ...]) -> Query:
    """The gate on SQLite, for (zone, known revision) pairs; `UNKNOWN` asks for the clock alone."""
    params: dict[str, int] = {"epoch": epoch}
    for i, (zone, revision) in enumerate(known):
        params[f"z{i}"] = zone
        params[f"k{i}"] = revision
        params[f"s{i}"] = revision if revision >= 0 else _NO_HISTORY
    return _gate_statement(len(known)), params


def gate_query_postgres(epoch: int, known: tuple[tuple[int, int], ...]) -> Query:
    """The gate on PostgreSQL: one prepared statement for any number of zones."""
    return GATE_POSTGRES, {
        "epoch": epoch,
        "zones": [zone for zone, _ in known],
        "known": [revision for _, revision in known],
        "since": [revision if revision >= 0 else _NO_HISTORY for _, revision in known],
    }


def moved_of(rows: list[Row]) -> Moved:
    """Read the gate's rows: a clock repeats for each of its changes."""
    if not rows:
        return NOTHING
    clocks = {row[1]: ClockRow(row[1], row[2], row[3], row[4]) for row in rows}
    changes = [
        Change(row[1], row[5], row[6], row[7], Kind(row[8]), row[9], row[10], row[11], row[12], row[13], row[14])
        for row in rows
        if row[5] is not None
    ]
    return Moved(rows[0][0], tuple(clocks.values()), tuple(changes))


class Draft(msgspec.Struct, frozen=True):
    """A change that a running mutation has made; it gets zone, revision, time and actor when the mutation ends."""

    operation: str
    kind: Kind
    node_id: int
    name_space: str = ""
    old_parent: int | None = None
    old_name: str | None = None
    new_parent: int | None = None
    new_name: str | None = None
    moves_access: bool = False
    payload: str | None = None


EPOCH = Sql("SELECT epoch FROM store")
CLOCK_READ = Sql("SELECT revision, access_revision FROM clock WHERE zone = :zone")
CLOCK_HOLD = Sql("SELECT revision, access_revision FROM clock WHERE zone = :zone FOR UPDATE")
CLOCK_MOVE = Sql("UPDATE clock SET revision = :revision, access_revision = :access_revision WHERE zone = :zone")
CLOCK_NEW = Sql("INSERT INTO clock (zone, revision, access_revision, pruned_to) VALUES (:zone, 0, 0, 0)")
CHANGE_NEW = Sql(
    "INSERT INTO change (zone, revision, ordinal, operation, kind, node_id, name_space, old_parent, old_name, new_parent,"
    " new_name, actor, request_id, at, payload) VALUES (:zone, :revision, :ordinal, :operation, :kind, :node_id,"
    " :name_space, :old_parent, :old_name, :new_parent, :new_name, :actor, :request_id, :at, :payload)"
)
PRUNE_CLOCKS = Sql(
    "UPDATE clock SET pruned_to = coalesce((SELECT max(h.revision) FROM change h WHERE h.zone = clock.zone AND"
    " h.at < :before), pruned_to) WHERE EXISTS (SELECT 1 FROM change h WHERE h.zone = clock.zone AND h.at < :before)"
)
PRUNE_CHANGES = Sql(
    "DELETE FROM change WHERE revision <= (SELECT c.pruned_to FROM clock c WHERE c.zone = change.zone)"
)
FEED = Sql(
    "SELECT zone, revision, ordinal, operation, kind, node_id, name_space, old_parent, old_name, new_parent, new_name"
    " FROM change WHERE zone = :zone AND revision > :since ORDER BY revision, ordinal"
)


def changes_read(zone: int, since: int) -> Load[list[Change]]:
    """Read a zone's feed after a revision, in order."""
    rows = yield FEED, {"zone": zone, "since": since}
    return [Change(row[0], row[1], row[2], row[3], Kind(row[4]), *row[5:]) for row in rows]
