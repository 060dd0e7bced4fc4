# SPDX-License-Identifier: Apache-2.0
"""The lineage of a table, view or column, as a picture that can be expanded step by step, and as a list.

The service decides which objects are hidden. The URL contains the expanded nodes, so that a link shows the same graph.
"""

from __future__ import annotations

from functools import partial
from typing import Final
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.errors import BadRequest, LimnosError, PermissionDenied
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address
from limnos.rooms.console.http.errors import is_only_restricted
from limnos.rooms.console.http.frame import Frame, Link, icon_of
from limnos.rooms.console.http.navigation.heading_words import HeadingWords, further_heading, heading_words
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.pictures import GraphPicture, PictureNode, graph_picture
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.table_metadata import COLUMNS_MAX, decode_metadata
from limnos.rooms.console.http.tabs import ObjectHeading, object_frame
from limnos.rooms.pipelines.services.lineage_graph import (
    GraphQuery,
    LineageArc,
    LineageGraphPart,
    LineageVertex,
    lineage_graph,
)
from limnos.services.governance.details import ObjectDetails, details_load
from limnos.services.iceberg.restricted_tables import table_visibility
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, format_of

DEPTHS: Final = (1, 3, 10)
OPEN_MAX: Final = 20
LISTED_MAX: Final = 500


class LineageLine(msgspec.Struct, frozen=True, kw_only=True):
    """An edge of the list: both ends with their labels and page URLs, and the job that reported it."""

    source: str
    source_href: str
    target: str
    target_href: str
    words: str
    at_ms: int | None
    depth: int


class OpenLink(msgspec.Struct, frozen=True):
    """A link that expands the drawn graph around a node."""

    name: str
    href: str


class LineagePage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the lineage page: the object, the picture, the list of edges, and links that expand the graph."""

    frame: Frame
    heading: ObjectHeading
    name: str
    column: str
    columns: tuple[str, ...]
    """Columns of the table, as suggestions."""
    picture: GraphPicture
    lines: tuple[LineageLine, ...]
    lines_count: int
    depths: tuple[Link, ...]
    opens: tuple[OpenLink, ...]
    hidden_count: int
    is_whole: bool
    is_restricted: bool
    """Whether a read restriction hides the lineage from the caller."""


class _Graph:
    """The union of several traversals: vertices by a local key, edges by their ends."""

    def __init__(self) -> None:
        self.vertices: dict[str, LineageVertex] = {}
        self.arcs: dict[tuple[str, str], LineageArc] = {}
        self.is_whole = True
        self.is_restricted = False
        self.root = ""

    def add(self, part: LineageGraphPart, *, walk: str) -> None:
        """Add the result of a traversal. Hidden vertices of different traversals stay separate, so that the page
        does not reveal whether they are the same object.
        """
        keys = {each.id: f"{walk}{each.id}" if each.kind == "hidden" else each.id for each in part.vertices}
        self.root = self.root or keys[part.vertices[0].id]
        for each in part.vertices:
            self.vertices.setdefault(keys[each.id], each)
        for arc in part.arcs:
            self.arcs.setdefault((keys[arc.source], keys[arc.target]), arc)
        self.is_whole = self.is_whole and part.is_whole


async def lineage_page(page_request: PageRequest) -> Response:
    """Show the lineage of a table or view, or of a `column`, upstream and downstream up to a depth; a note for a
    caller from whom a read restriction hides it.
    """
    address = parse_address(page_request.request.params)
    if address.kind not in (Kind.TABLE, Kind.VIEW):
        raise BadRequest("Lineage is shown for tables and views")
    depth = _depth_of(page_request)
    column = page_request.request.query("column") or ""
    graph = _Graph()
    try:
        for path in ((address.catalog, *address.levels), *_open_paths(page_request)):
            await _walk(page_request, graph, metalake=address.metalake, path=path, column=column, depth=depth)
    except PermissionDenied as error:
        if not is_only_restricted(error):
            raise
        graph.is_restricted = True
    view = await _page(page_request, address, graph=graph, column=column, depth=depth)
    return html_response(page_request.request, render("lineage.html", view))


async def _walk(
    page_request: PageRequest, graph: _Graph, *, metalake: str, path: tuple[str, ...], column: str, depth: int
) -> None:
    """Add the lineage of an object upstream and downstream: `depth` steps of the first object, one step of others.

    Raises as `lineage_graph` for the first object; an error about another one is ignored.
    """
    is_root = not graph.vertices
    for is_up in (True, False):
        steps = depth if is_root else 1
        own_column = column or None if is_root else None
        try:
            part = await lineage_graph(
                page_request.ctx, GraphQuery(metalake=metalake, path=path, column=own_column, up=is_up, depth=steps)
            )
        except LimnosError:
            if is_root:
                raise
            return
        graph.add(part, walk=f"{display.render(path)} {is_up} ")


def _depth_of(page_request: PageRequest) -> int:
    text = page_request.request.query("depth") or ""
    return int(text) if text in {str(each) for each in DEPTHS} else 1


def _open_paths(page_request: PageRequest) -> list[tuple[str, ...]]:
    names = [name for name in (page_request.request.query("open") or "").split(",") if name]
    return [tuple(display.parse(name)) for name in names[:OPEN_MAX]]


async def _page(
    page_request: PageRequest, address: ObjectAddress, *, graph: _Graph, column: str, depth: int
) -> LineagePage:
    base = f"{page_request.base}/lineage{address.path.removeprefix('/o')}"
    nodes = [
        _node(page_request, address, vertex=vertex, key=key, graph=graph) for key, vertex in graph.vertices.items()
    ]
    dashed = frozenset(ends for ends, arc in graph.arcs.items() if not arc.is_direct)
    arcs = sorted(graph.arcs.items(), key=lambda item: (item[1].depth, not item[1].is_direct))
    lines = tuple(
        _line(page_request, address.metalake, graph=graph, ends=ends, arc=arc) for ends, arc in arcs[:LISTED_MAX]
    )
    hidden_count = sum(vertex.kind == "hidden" for vertex in graph.vertices.values())
    fields = {"column": column, "open": page_request.request.query("open") or ""}
    depths = tuple(
        Link(_step_words(each), f"{base}?{_query(fields | {'depth': str(each)})}", each == depth) for each in DEPTHS
    )
    details, columns, words = await page_request.ctx.read(address.scope, partial(_load_heading, address=address))
    return LineagePage(
        frame=await object_frame(page_request, address),
        heading=further_heading(page_request, address, details=details, words=words, tab="lineage"),
        name=display.render((address.catalog, *address.levels)),
        column="" if graph.is_restricted else column,
        columns=() if graph.is_restricted else columns,
        picture=graph_picture(_title(graph), nodes, edges=list(graph.arcs), dashed=dashed),
        lines=lines,
        lines_count=len(arcs),
        depths=depths,
        opens=_expansion_links(graph, base=base, query=fields | {"depth": str(depth)}),
        hidden_count=hidden_count,
        is_whole=graph.is_whole,
        is_restricted=graph.is_restricted,
    )


def _load_heading(view: RequestView, *, address: ObjectAddress) -> tuple[ObjectDetails, tuple[str, ...], HeadingWords]:
    """Return the details of the object, the names of an Iceberg table's columns, and the content of its heading."""
    columns: tuple[str, ...] = ()
    if address.kind is Kind.TABLE and format_of(view) != LANCE:
        metadata = decode_metadata(table_visibility(view, address.levels).document.body)
        columns = tuple(each.name for each in metadata.current_schema().fields[:COLUMNS_MAX])
    details = details_load(view, address.kind, levels=address.levels)
    return details, columns, heading_words(view, address, details=details)


def _step_words(depth: int) -> str:
    return "1 step" if depth == 1 else f"{depth} steps"


def _query(fields: dict[str, str]) -> str:
    return urlencode({name: value for name, value in fields.items() if value})


def _title(graph: _Graph) -> str:
    up = sum(target == graph.root for _, target in graph.arcs)
    down = sum(source == graph.root for source, _ in graph.arcs)
    return f"Comes from {up} directly, feeds {down} directly; {len(graph.vertices)} objects in all"


def _node(
    page_request: PageRequest, address: ObjectAddress, *, vertex: LineageVertex, key: str, graph: _Graph
) -> PictureNode:
    name, href = _name_and_href(page_request, address.metalake, vertex=vertex)
    if vertex.kind == "hidden":
        return PictureNode(id=key, name="hidden", place="an object that you may not see", icon="lock", look="hidden")
    if vertex.path is None:
        place, short = _split_name(vertex, name)
        return PictureNode(id=key, name=name, place=place, icon="object", look="outside", text=short)
    place = display.render(vertex.path[:-1])
    return PictureNode(
        id=key,
        name=name,
        place=place,
        icon=icon_of(vertex.kind),
        href=href,
        look="root" if key == graph.root else "plain",
    )


def _split_name(vertex: LineageVertex, name: str) -> tuple[str, str]:
    """Split the name of an external dataset into a short location and the last part of its path, for display."""
    directory, _, last = name.rpartition("/")
    namespace = "" if vertex.outside is None else vertex.outside.namespace
    return (f"{namespace} …/{directory.rpartition('/')[2]}" if directory else namespace), last


def _name_and_href(page_request: PageRequest, metalake: str, *, vertex: LineageVertex) -> tuple[str, str]:
    """Return the short name of a vertex and the URL of its page; an empty URL if it has no page."""
    column = f".{vertex.column}" if vertex.column else ""
    if vertex.path is None:
        name = "hidden" if vertex.outside is None else vertex.outside.name
        return f"{name}{column}", ""
    kind = Kind.VIEW if vertex.kind == Kind.VIEW.word else Kind.TABLE
    object_address = ObjectAddress(kind, metalake, vertex.path[0], vertex.path[1:])
    return f"{vertex.path[-1]}{column}", page_request.base + object_address.path


def _line(
    page_request: PageRequest, metalake: str, *, graph: _Graph, ends: tuple[str, str], arc: LineageArc
) -> LineageLine:
    texts = []
    for key in ends:
        vertex = graph.vertices[key]
        name, href = _name_and_href(page_request, metalake, vertex=vertex)
        path = (
            name
            if vertex.path is None
            else display.render(vertex.path) + (f".{vertex.column}" if vertex.column else "")
        )
        texts += [path if vertex.kind != "hidden" else "an object that you may not see", href]
    statement = arc.statements[0] if arc.statements else None
    words = "" if statement is None else f"{statement.job[1]}, run by {statement.said_by}"
    if not arc.is_direct:
        words = f"indirect; {words}"
    return LineageLine(
        source=texts[0],
        source_href=texts[1],
        target=texts[2],
        target_href=texts[3],
        words=words,
        at_ms=None if statement is None else statement.at,
        depth=arc.depth,
    )


def _expansion_links(graph: _Graph, *, base: str, query: dict[str, str]) -> tuple[OpenLink, ...]:
    """Return links that expand the graph by one more step, one link for each object that is not expanded yet; at most
    50.
    """
    open_names = [name for name in query["open"].split(",") if name]
    if len(open_names) >= OPEN_MAX:
        return ()
    links = []
    for key, vertex in graph.vertices.items():
        name = None if vertex.path is None else display.render(vertex.path)
        if name is None or key == graph.root or name in open_names or "," in name:
            continue
        fields = query | {"open": ",".join([*open_names, name])}
        links.append(OpenLink(name, f"{base}?{_query(fields)}"))
    return tuple(links[:50])


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/lineage/{kind}/{path...}",
        handler=lineage_page,
        operation="lineage-page",
        query=("depth", "open", "column"),
    ),
)
