# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of server nodes: each node's name, release, start, last heartbeat, clock and failing loops.

Must not know rights. A node writes its row at intervals; such a write is not a change of any zone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from limnos.store.sql import Load, Sql
from limnos.store.transaction import Writes

FORGET_MS: Final = 86_400_000
"""The age of the last heartbeat, in milliseconds, after which the row of a node is deleted."""
_COLUMNS = "id, name, version, started_at, seen_at, clock_offset_ms, failing"
BEAT = Sql(
    f"INSERT INTO node_seen ({_COLUMNS}) VALUES (:id, :name, :version, :started_at, :now, :clock_offset_ms, :failing)"
    " ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, clock_offset_ms = excluded.clock_offset_ms,"
    " failing = excluded.failing"
)
FORGET = Sql("DELETE FROM node_seen WHERE seen_at < :before")
LEAVE = Sql("DELETE FROM node_seen WHERE id = :id")
LIST = Sql(f"SELECT {_COLUMNS} FROM node_seen ORDER BY started_at, id LIMIT :limit")


class FailingLoop(msgspec.Struct, frozen=True):
    """A background loop of a node whose last step failed, or whose step has not ended in its time."""

    name: str
    since: int
    """The time of the first failure, or of the last progress, in milliseconds since 1970 by the store's clock."""
    error: str
    """The class of the last error; empty for a step that has not ended. Its message may name secrets."""


FailingLoops = tuple[FailingLoop, ...]


class NodeHeartbeat(NamedTuple):
    """A server node. Times are milliseconds since 1970 by the store's clock.

    `name` is the host and the process; `clock_offset_ms` is the number of milliseconds by which the node's clock is
    ahead of the store's.
    """

    id: str
    name: str
    version: str
    started_at: int
    seen_at: int
    clock_offset_ms: int
    failing: FailingLoops = ()


def nodes_read(limit: int) -> Load[tuple[NodeHeartbeat, ...]]:
    """Read up to `limit` server nodes, in the order of their start times."""
    rows = yield LIST, {"limit": limit}
    return tuple(NodeHeartbeat(*row)._replace(failing=_failing_of(row[6])) for row in rows)


def _failing_of(text: str | None) -> FailingLoops:
    """Return the failing loops of a row; none for nodes of an earlier release, which do not report them."""
    return msgspec.json.decode(text, type=FailingLoops) if text else ()


class NodeBeatWrites(Writes):
    """Writes the heartbeats of server nodes inside a transaction."""

    def beat(self, node: NodeHeartbeat) -> None:
        """Store a node's heartbeat, and delete the nodes whose last heartbeat is more than a day old.

        `seen_at` is the store's time.
        """
        now = self.tx.now_ms
        self.tx.count(BEAT, {**node._asdict(), "now": now, "failing": msgspec.json.encode(node.failing).decode()})
        self.tx.count(FORGET, {"before": now - FORGET_MS})

    def leave(self, node_id: str) -> None:
        """Delete the row of a node that stops."""
        self.tx.count(LEAVE, {"id": node_id})
