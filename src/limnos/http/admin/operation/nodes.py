# SPDX-License-Identifier: Apache-2.0
"""State of the server: its nodes, the search index, and the effective settings of the node that handles the request.

The services mask secrets in the settings.
"""

from __future__ import annotations

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.services.request.context import Context
from limnos.services.upkeep.effective_settings import settings_list
from limnos.services.upkeep.nodes import NodeLine, server_state


async def nodes_list(_request: Request, ctx: Context) -> Response:
    """Return the server's nodes, and the lag of the search index."""
    state = await server_state(ctx)
    return json_response({"nodes": [_encode(each) for each in state.nodes], "search": state.search._asdict()})


def _encode(line: NodeLine) -> dict[str, object]:
    node = line.node
    return {
        "id": node.id,
        "name": node.name,
        "version": node.version,
        "started_at": instant(node.started_at),
        "seen_at": instant(node.seen_at),
        "clock_offset_ms": node.clock_offset_ms,
        "own": line.is_own,
        "silent": line.is_silent,
        "failing": [
            {"name": each.name, "since": instant(each.since), "error": each.error or None} for each in node.failing
        ],
    }


async def settings_read(_request: Request, ctx: Context) -> Response:
    """Return the effective settings of this node; secrets are masked."""
    lines = await settings_list(ctx)
    settings = [
        {
            "name": each.name,
            "value": msgspec.Raw(each.value.encode()),
            "default": each.is_default,
            "secret": each.is_secret,
            "origin": each.origin,
        }
        for each in lines
    ]
    return json_response({"settings": settings})


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path="/api/limnos/v1/nodes", handler=nodes_list, operation="list-nodes"),
    Route(method="GET", path="/api/limnos/v1/settings", handler=settings_read, operation="list-settings"),
)
