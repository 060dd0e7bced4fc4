# SPDX-License-Identifier: Apache-2.0
"""The change feed and its clocks: the freshness gate's statement, the writes of a mutation, and the pruning of old
rows.

Must not know caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from limnos.model.entities import ChangeRow, ClockRow
from limnos.model.kinds import KINDS, Kind
from limnos.store.sql import Load, Query, Row, Sql

UNKNOWN = -1
"""The known revision of a zone that was never read. The gate then reads only its clock."""
_NO_HISTORY = 2**62


class GateResult(NamedTuple):
    """The changes that a read of the freshness gate returned; `NO_CHANGES` if no zone has changes."""

    epoch: int
    clocks: tuple[ClockRow, ...]
    changes: tuple[ChangeRow, ...]


NO_CHANGES = GateResult(0, (), ())

_GATE_COLUMNS = (
    "c.zone, c.revision, c.access_revision, c.pruned_to, h.revision, h.ordinal, h.operation, h.kind,"
    " h.node_id, h.name_space, h.old_parent, h.old_name, h.new_parent, h.new_name, h.owner_id"
)


@cache
def gate_text(zones: int) -> str:
    """Return the statement of the freshness gate on SQLite for `zones` zones: each changed clock, and the changes after
    the known revision.

    Parameters: the epoch, then for each zone its id, its known revision, and the revision after which changes are read.
    One index probe per zone costs a third less than a join. If the store has another epoch, the result also has a row
    without a zone.
    """
    probes = [
        f"SELECT (SELECT epoch FROM store), {_GATE_COLUMNS} FROM clock c LEFT JOIN change h"
        f" ON h.zone = c.zone AND h.revision > ?{4 + 3 * i} WHERE c.zone = ?{2 + 3 * i} AND c.revision <> ?{3 + 3 * i}"
        for i in range(zones)
    ]
    nothing = ", ".join(["NULL"] * _GATE_COLUMNS.count(","))
    return " UNION ALL ".join([*probes, f"SELECT epoch, {nothing}, NULL FROM store WHERE epoch <> ?1"])


def gate_params(epoch: int, known: tuple[tuple[int, int], ...]) -> list[int]:
    """Return the parameters of `gate_text` for (zone, revision) pairs.

    Revision `UNKNOWN` reads the clock without changes.
    """
    params = [epoch]
    for zone, revision in known:
        params += (zone, revision, revision if revision >= 0 else _NO_HISTORY)
    return params


GATE_POSTGRES = Sql(
    f"SELECT (SELECT epoch FROM store), {_GATE_COLUMNS}"
    " FROM unnest(:zones::bigint[], :known::bigint[], :since::bigint[]) AS k(zone, revision, since)"
    " JOIN clock c ON c.zone = k.zone"
    # As a join of `change` itself, PostgreSQL would read all changes of the zones, and leave out the known ones then.
    # The upper bound leaves out nothing; it tells the planner that few changes are new.
    " LEFT JOIN LATERAL (SELECT * FROM change WHERE zone = k.zone AND revision > k.since AND revision <= c.revision"
    " ORDER BY revision, ordinal) h ON TRUE"
    " WHERE (SELECT epoch FROM store) <> :epoch OR c.revision <> k.revision"
    " ORDER BY c.zone, h.revision, h.ordinal"
)


def gate_query_postgres(epoch: int, known: tuple[tuple[int, int], ...]) -> Query:
    """Return the query of the freshness gate on PostgreSQL: one prepared statement for any number of zones."""
    return GATE_POSTGRES, {
        "epoch": epoch,
        "zones": [zone for zone, _ in known],
        "known": [revision for _, revision in known],
        "since": [revision if revision >= 0 else _NO_HISTORY for _, revision in known],
    }


def gate_result_of(rows: list[Row]) -> GateResult:
    """Build the result of a gate read from its rows, in the order of each zone's revisions.

    Each row has one change and repeats the clock of the zone.
    """
    if not rows:
        return NO_CHANGES
    clocks = {row[1]: row for row in rows if row[1] is not None}
    changes = [
        ChangeRow(
            zone=row[1],
            revision=row[5],
            ordinal=row[6],
            operation=row[7],
            kind=KINDS[row[8]],
            node_id=row[9],
            name_space=row[10],
            old_parent=row[11],
            old_name=row[12],
            new_parent=row[13],
            new_name=row[14],
            owner_id=row[15],
        )
        for row in rows
        if row[5] is not None
    ]
    return GateResult(
        rows[0][0], tuple([ClockRow(row[1], row[2], row[3], row[4]) for row in clocks.values()]), tuple(changes)
    )


class ChangeDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a running mutation. It gets its zone, revision, time and actor when the mutation ends."""

    operation: str
    kind: Kind
    node_id: int
    name_space: str = ""
    old_parent: int | None = None
    old_name: str | None = None
    new_parent: int | None = None
    new_name: str | None = None
    moves_access: bool = False
    """Whether the change advances the zone's access revision."""
    owner_id: int | None = None
    detail: str | None = None
    """A detail for the audit that the columns lack, such as the privileges of a grant."""
    audit_word: str = ""
    """The word of the change in the audit; empty for the operation. See `AuditContext.change`."""


EPOCH = Sql("SELECT epoch FROM store")
CLOCK_HOLD = Sql("SELECT zone, revision, access_revision FROM clock WHERE zone = :zone FOR UPDATE")


CLOCKS_MAX = 3
"""The number of zones whose clocks one statement reads."""


def clock_params(zones: Sequence[int]) -> dict[str, int]:
    """Return the parameters of `CLOCKS_READ` for one to three zones, in which the last zone fills missing positions."""
    return {f"zone{index}": zones[min(index, len(zones) - 1)] for index in range(CLOCKS_MAX)}


_CLOCK = "SELECT zone, revision, access_revision FROM clock WHERE zone"
CLOCKS_READ = Sql(
    f"{_CLOCK} IN (:zone0, :zone1, :zone2)",
    # For IN, SQLite would first build an index of the three ids, which costs as much as the probes.
    on_sqlite=" UNION ALL ".join(f"{_CLOCK} = :zone{place}" for place in range(3)),
)
CLOCK_HOLD_POSTGRES = Sql(
    f"WITH held AS ({CLOCK_HOLD.text}) SELECT zone, revision, access_revision FROM held UNION ALL {_CLOCK} IN (:zone0,"
    " :zone1, :zone2) AND zone <> :zone"
)
"""The statement that locks a zone's clock, and reads those of zones whose locks are taken already, on PostgreSQL."""
CLOCK_MOVE = Sql("UPDATE clock SET revision = :revision, access_revision = :access_revision WHERE zone = :zone")
CLOCK_NEW = Sql("INSERT INTO clock (zone, revision, access_revision, pruned_to) VALUES (:zone, 0, 0, 0)")
CHANGE_NEW = Sql(
    "INSERT INTO change (zone, revision, ordinal, operation, kind, node_id, name_space, old_parent, old_name,"
    " new_parent, new_name, owner_id, actor, request_id, at, payload) VALUES (:zone, :revision, :ordinal, :operation,"
    " :kind, :node_id, :name_space, :old_parent, :old_name, :new_parent, :new_name, :owner_id, :actor, :request_id,"
    " :at, :payload)"
)
_CHANGE_COLUMNS = (
    "zone, revision, ordinal, operation, kind, node_id, name_space, old_parent, old_name, new_parent, new_name,"
    " owner_id, actor, request_id, at, payload"
)
CHANGES_NEW_POSTGRES = Sql(
    "WITH moved AS (UPDATE clock c SET revision = k.revision, access_revision = k.access_revision FROM"
    " json_to_recordset(CAST(:clocks AS json)) AS k(zone bigint, revision bigint, access_revision bigint)"
    f" WHERE c.zone = k.zone) INSERT INTO change ({_CHANGE_COLUMNS}) SELECT {_CHANGE_COLUMNS} FROM"
    " json_to_recordset(CAST(:changes AS json)) AS h(zone bigint, revision bigint, ordinal integer, operation text,"
    " kind smallint, node_id bigint, name_space text, old_parent bigint, old_name text, new_parent bigint, new_name"
    " text, owner_id bigint, actor text, request_id text, at bigint, payload text)"
)
"""The statement that writes all change rows of a batch, and moves its clocks, on PostgreSQL.

A row of a statement of its own costs the node and the database as much as ten rows of this one.
"""
_FIRST_KEPT = (
    "SELECT h.revision FROM change h WHERE h.zone = clock.zone AND (h.at >= :before OR NOT (:unaudited OR h.revision <="
    " (SELECT coalesce(max(p.revision), 0) FROM audit_position p WHERE p.zone = h.zone)))"
    " ORDER BY h.revision, h.ordinal LIMIT 1"
)
"""The first change that is kept: a newer one, or if the audit is on one that the audit has not read. The query reads
only the changes before it, which are deleted.
"""
PRUNE_CLOCKS = Sql(
    f"UPDATE clock SET pruned_to = coalesce(({_FIRST_KEPT}) - 1, revision) WHERE EXISTS (SELECT 1 FROM"
    " (SELECT o.revision FROM change o WHERE o.zone = clock.zone ORDER BY o.revision, o.ordinal LIMIT 1) oldest"
    f" WHERE oldest.revision < coalesce(({_FIRST_KEPT}), clock.revision + 1))"
)
PRUNE_CHANGES = Sql(
    # PostgreSQL would begin with all changes: OFFSET 0 makes it begin with the clocks.
    "DELETE FROM change h USING clock c CROSS JOIN LATERAL (SELECT o.zone, o.revision, o.ordinal FROM change o"
    " WHERE o.zone = c.zone AND o.revision <= c.pruned_to OFFSET 0) p"
    " WHERE h.zone = p.zone AND h.revision = p.revision AND h.ordinal = p.ordinal",
    on_sqlite=(
        "DELETE FROM change WHERE (zone, revision, ordinal) IN (SELECT h.zone, h.revision, h.ordinal FROM clock c"
        " CROSS JOIN change h WHERE h.zone = c.zone AND h.revision <= c.pruned_to)"
    ),
)
"""The delete reads the pruned rows only, and none that the feed keeps."""
FEED = Sql(
    "SELECT zone, revision, ordinal, operation, kind, node_id, name_space, old_parent, old_name, new_parent, new_name,"
    " owner_id FROM change WHERE zone = :zone AND revision > :since ORDER BY revision, ordinal"
)


def change_of(row: Row) -> ChangeRow:
    """Build a change from a row that begins with the columns of `FEED`."""
    return ChangeRow(
        zone=row[0],
        revision=row[1],
        ordinal=row[2],
        operation=row[3],
        kind=KINDS[row[4]],
        node_id=row[5],
        name_space=row[6],
        old_parent=row[7],
        old_name=row[8],
        new_parent=row[9],
        new_name=row[10],
        owner_id=row[11],
    )


def changes_read(zone: int, since: int) -> Load[list[ChangeRow]]:
    """Read the changes of a zone after a revision, in order."""
    rows = yield FEED, {"zone": zone, "since": since}
    return [change_of(row) for row in rows]
