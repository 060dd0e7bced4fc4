# SPDX-License-Identifier: Apache-2.0
"""State of the server for service admins: its nodes, and the lag of the search index.

Must not know any wire format. A node writes a heartbeat at intervals, with its release, its clock and its failing
background loops. Nothing is cached: each request reads the rows.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.services.request.concurrency.background_loops import LoopFailure
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_of_server
from limnos.services.request.node_services import OWN_NODE, NodeServices
from limnos.services.request.request_view import RequestView
from limnos.store.activity.node_beats import FailingLoop, FailingLoops, NodeHeartbeat, nodes_read
from limnos.store.activity.search_index import ZoneProgress, zones_behind_read

NODES_MAX: Final = 1_000
BEAT_S: Final = 30.0
"""The interval of a node's heartbeats, in seconds."""
SILENT_MS: Final = 100_000
"""A node whose last heartbeat is older, in milliseconds, counts as silent."""
ZONES_MAX: Final = 10_000


class NodeLine(NamedTuple):
    """A node, whether it handles this request, and whether its last heartbeat is overdue."""

    node: NodeHeartbeat
    is_own: bool
    is_silent: bool


class SearchBehind(NamedTuple):
    """The lag of the search index: the count of zones with unindexed changes, and the count of these changes."""

    zones: int
    changes: int


class ServerState(NamedTuple):
    """The nodes of a server, the lag of its search index, and the failing background loops of the node that answers."""

    nodes: tuple[NodeLine, ...]
    search: SearchBehind
    failures: tuple[LoopFailure, ...]


def failing_loops(services: NodeServices) -> FailingLoops:
    """Return the failing background loops of this node, as its heartbeats report them."""
    now_ms = services.store.time.now_ms()
    return tuple(
        FailingLoop(name=each.name, since=now_ms - round(each.failing_s * 1000), error=each.error)
        for each in services.loops.failures()
    )


async def server_state(ctx: Context) -> ServerState:
    """Return the nodes with a heartbeat within the last day, the lag of the search index, and this node's failing
    loops. Raises PermissionDenied.
    """

    async def read() -> tuple[tuple[NodeHeartbeat, ...], list[ZoneProgress]]:
        rows = await ctx.look_up(partial(nodes_read, NODES_MAX))
        return rows, await ctx.look_up(partial(zones_behind_read, limit=ZONES_MAX))

    rows, behind = await read_of_server(ctx, require=require_inspect, work=read)
    own_node, now_ms = OWN_NODE.of(ctx.services), ctx.services.store.time.now_ms()
    failing = failing_loops(ctx.services)
    nodes = tuple(
        NodeLine(
            each._replace(failing=failing) if each.id == own_node else each,
            each.id == own_node,
            now_ms - each.seen_at > SILENT_MS,
        )
        for each in rows
    )
    lag = SearchBehind(len(behind), sum(each.behind for each in behind))
    return ServerState(nodes, lag, ctx.services.loops.failures())


def may_inspect(request_view: RequestView) -> bool:
    """Return whether the caller may inspect the server's state. No refusal is recorded for the audit."""
    return request_view.decide(Action.SERVER_INSPECT, ()).allowed


def require_inspect(request_view: RequestView) -> None:
    """Raise PermissionDenied for callers who may not inspect the server's state."""
    request_view.require(Action.SERVER_INSPECT, ())
