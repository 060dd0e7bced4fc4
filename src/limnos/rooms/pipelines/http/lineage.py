# SPDX-License-Identifier: Apache-2.0
"""Lineage: accepts OpenLineage events, and returns the graph around a table or view.

Has no business rules. Producers post to `/api/lineage` or `/api/v1/lineage`; the metalake is in the query
(`?metalake=`), by default the server's default one.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from limnos.access.actions import Action
from limnos.http.admin.bodies import names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import LONG_BODY_BYTES, Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.rooms.pipelines.formats.openlineage import events_read
from limnos.rooms.pipelines.services import lineage
from limnos.rooms.pipelines.services.lineage_graph import (
    DEPTH_MAX,
    GraphQuery,
    LineageArc,
    LineageGraphPart,
    LineageVertex,
    graph_require_user,
    lineage_graph,
)
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

PAGE_MAX = 1000
"""The maximum number of edges in one response."""


def metalake_of(request: Request, ctx: Context) -> str:
    """Return the metalake of an event: from the path or the query, otherwise the server's default."""
    names = names_of(request)
    return names[0] if names else request.query("metalake") or ctx.services.defaults.metalake


def _scope_of(request: Request, ctx: Context) -> RequestScope:
    return RequestScope(metalake_of(request, ctx))


async def events_receive(request: Request, ctx: Context) -> Response:
    """Store the lineage of an OpenLineage event, or of an array of events.

    Returns the number of stored edges, and the rejected datasets.
    """
    metalake = metalake_of(request, ctx)
    home = await lineage.home_find(ctx, metalake)
    events = events_read(await request.body())
    host = request.headers.get(b"host", b"").decode("latin-1")
    rejections = await lineage.lineage_take(ctx, metalake=metalake, home=home, events=events, authority=host)
    left_out = [
        {"namespace": each.dataset[0], "name": each.dataset[1], "reason": each.why} for each in rejections.left_out
    ]
    return json_response({"kept": rejections.stored_count, "left_out": left_out}, 201)


async def lineage_show(request: Request, ctx: Context) -> Response:
    """Return a page of the lineage graph of the table or view at `path`, or of its `column`, up to `depth` edges.

    `direction` is `up` (upstream, the default) or `down` (downstream).
    """
    (metalake,) = names_of(request)
    await graph_require_user(ctx, metalake)
    path = tuple(display.parse(request.query("path") or "-"))
    direction = request.query("direction") or "up"
    if direction not in ("up", "down"):
        raise BadRequest(f"direction must be up or down, not '{direction[:20]}'")
    depth = _number(request, "depth", default=1, most=DEPTH_MAX)
    limit = _number(request, "limit", default=PAGE_MAX, most=PAGE_MAX)
    question = GraphQuery(
        metalake=metalake, path=path, column=request.query("column") or None, up=direction == "up", depth=depth
    )
    graph = await lineage_graph(ctx, question)
    return json_response(
        _page(graph, request.query("after") or "", limit=limit) | {"direction": direction, "depth": depth}
    )


def _page(graph: LineageGraphPart, after: str, *, limit: int) -> dict[str, object]:
    """Encode a page of a lineage graph's edges as JSON, with the page token of the next page.

    Node ids are local to a graph, so a page token `after` is valid only while the edges of the earlier pages are
    unchanged. Raises BadRequest if they have changed.
    """
    begin = 0
    if after:
        count, _, mark = after.partition("-")
        begin = number_of(count) or 0
        if not begin or mark != _mark(graph, begin):
            raise BadRequest(
                "The lineage has changed since the previous page, or 'after' is not valid: start again without it"
            )
    arcs = graph.arcs[begin : begin + limit]
    end = begin + len(arcs)
    vertex_keys = {each for arc in arcs for each in (arc.source, arc.target)}
    vertices = [each for each in graph.vertices if each.id in vertex_keys or each is graph.vertices[0]]
    return {
        "root": graph.vertices[0].id,
        "nodes": [_vertex(each) for each in vertices],
        "edges": [_arc(each) for each in arcs],
        "complete": graph.is_whole,
        "after": f"{end}-{_mark(graph, end)}" if end < len(graph.arcs) else None,
    }


def _mark(graph: LineageGraphPart, count: int) -> str:
    """Return a digest of the first `count` edges, the part of a page token that detects a changed graph."""
    data = msgspec.json.encode([[arc.source, arc.target] for arc in graph.arcs[:count]])
    return blake2b(data, digest_size=8).hexdigest()


def _vertex(vertex: LineageVertex) -> dict[str, object]:
    body: dict[str, object] = {"id": vertex.id, "kind": vertex.kind}
    if vertex.path is not None:
        body["path"] = vertex.path
    if vertex.outside is not None:
        body |= {"namespace": vertex.outside.namespace, "name": vertex.outside.name}
    if vertex.column is not None:
        body["column"] = vertex.column
    return body


def _arc(arc: LineageArc) -> dict[str, object]:
    body: dict[str, object] = {"source": arc.source, "target": arc.target, "depth": arc.depth}
    if arc.statements:
        body["direct"] = arc.is_direct
        body["said"] = [
            {
                "job": {"namespace": each.job[0], "name": each.job[1]},
                "run": each.run or None,
                "at": instant(each.at),
                "by": each.said_by,
                "kinds": each.kinds,
            }
            for each in arc.statements
        ]
    return body


def _number(request: Request, name: str, *, default: int, most: int) -> int:
    text = request.query(name)
    if not text:
        return default
    number = number_of(text)
    if not number or number > most:
        raise BadRequest(f"{name} must be a number from 1 to {most}, not '{text[:20]}'")
    return number


def _receive_route(path: str, operation: str, *query: str) -> Route[Handler]:
    return Route(
        method="POST",
        path=path,
        handler=events_receive,
        operation=operation,
        body_bytes_max=LONG_BODY_BYTES,
        asks=(Action.TABLE_COMMIT, Action.VIEW_ALTER),
        query=query,
        scope=_scope_of if query else None,
    )


ROUTES: tuple[Route[Handler], ...] = (
    _receive_route("/api/lineage", "take-lineage", "metalake"),
    _receive_route("/api/v1/lineage", "take-lineage-v1", "metalake"),
    _receive_route("/api/limnos/v1/metalakes/{m}/lineage", "take-lineage-of-metalake"),
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/lineage",
        handler=lineage_show,
        operation="show-lineage",
        query=("path", "column", "direction", "depth", "after", "limit"),
    ),
)
