# SPDX-License-Identifier: Apache-2.0
"""Lineage graph: the upstream or downstream objects of an object or one of its columns, up to a maximum depth.

Must not know any wire format. The traversal continues only from objects that are visible to the caller. A hidden object
is a vertex without a name, and the graph ends there. At the end, access to all objects is decided again, on one
consistent state of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.formats.iceberg.field_names import NOTHING, FieldNames, field_names
from limnos.model.errors import BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.services.lookup import visibility
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity import lineage

DEPTH_MAX: Final = 50
EDGES_MAX: Final = 10_000
"""The maximum number of edges in one graph; further ones are omitted."""
ROWS_MAX: Final = 50_000
"""The maximum number of rows of one step: several jobs may report the same edge."""
SAYINGS_MAX: Final = 10
"""The maximum number of jobs shown for one edge, the latest first."""

GraphPlace = tuple[int, int, str]
"""A vertex: the id of an object or dataset, then a column's field id, and its name if it has no id.

A table has 0 and "".
"""
WHOLE: Final = (lineage.EVERY_FIELD, "")
"""The column part of a graph position that stands for the whole table."""


class LineageStatement(NamedTuple):
    """One reported event for an edge: the job, its run, the time (milliseconds since 1970), the user, and the kinds of
    column lineage.
    """

    job: tuple[str, str]
    run: str
    at: int
    said_by: str
    kinds: tuple[str, ...]


class LineageVertex(NamedTuple):
    """An object (with a path), an external dataset (with namespace and name), or a hidden object.

    `id` is valid within the response.
    """

    id: str
    kind: str
    path: tuple[str, ...] | None = None
    outside: lineage.ExternalDataset | None = None
    column: str | None = None


class LineageArc(NamedTuple):
    """An edge of the graph, by the ids of its ends. An edge with a hidden end has no further details."""

    source: str
    target: str
    depth: int
    is_direct: bool = True
    statements: tuple[LineageStatement, ...] = ()


class LineageGraphPart(NamedTuple):
    """A lineage graph, whose first vertex is the root. `is_whole` is False if a limit truncated it."""

    vertices: tuple[LineageVertex, ...]
    arcs: tuple[LineageArc, ...]
    is_whole: bool


class GraphQuery(NamedTuple):
    """A request for a lineage graph: `up` for sources, else for derived objects; at most `depth` edges from the
    root.
    """

    metalake: str
    path: tuple[str, ...]
    column: str | None
    up: bool
    depth: int


class _GraphStep(NamedTuple):
    """An edge from one graph position to another, in the direction of the traversal."""

    here: GraphPlace
    neighbour: GraphPlace
    edge: lineage.LineageEdgeRow
    is_direct: bool
    subtype: str


async def graph_require_user(ctx: Context, metalake: str) -> None:
    """Raise PermissionDenied for a caller who may use no catalog, since no object would be visible to that caller."""
    if not (await ctx.read(RequestScope(metalake), visibility.usable_catalogs_of)).catalogs:
        raise PermissionDenied(
            f"You may use no catalog of metalake {metalake}: lineage is only shown to users who may load its objects"
        )


async def lineage_graph(ctx: Context, question: GraphQuery) -> LineageGraphPart:
    """Return the lineage graph of a table or view, or of one of its columns.

    Raises NotFound, NotInUse and PermissionDenied as loading the object does, NotFound for a missing column, BadRequest
    for an incomplete path.
    """
    if len(question.path) < 2:
        raise BadRequest("Name a table or view by its full path, as ?path=main.raw.trips")
    scope = RequestScope(question.metalake, question.path[0])
    node_id, body = await ctx.read(scope, lambda request_view: _root(request_view, question))
    walk = _GraphWalk(ctx, question)
    root = (node_id, *WHOLE) if question.column is None else _column_of(node_id, question, body=body)
    return await walk.run(root)


def _root(request_view: RequestView, question: GraphQuery) -> tuple[int, bytes | None]:
    """Return the id of the root, a table or view that the caller may load. Also returns the document of a table if a
    column's name must be resolved.
    """
    request_view.require_in_use()
    levels = question.path[1:]
    node, _ = request_view.find(levels, Kind.TABLE)
    is_view = node is not None and node.kind is Kind.VIEW
    kind, action, probe = (
        (Kind.VIEW, Action.VIEW_LOAD, Action.VIEW_MAY_PROBE)
        if is_view
        else (Kind.TABLE, Action.TABLE_LOAD, Action.TABLE_MAY_PROBE)
    )
    result = request_view.look_up(kind, levels, action, probe=probe)
    wants_fields = question.column is not None and kind is Kind.TABLE
    return result.entity.id, visibility.body_of(request_view, result.entity.id) if wants_fields else None


def _column_of(node_id: int, question: GraphQuery, *, body: bytes | None) -> GraphPlace:
    column_names = NOTHING if body is None else field_names(body)
    column = question.column or ""
    field_id = column_names.current.get(column)
    if field_id is None and column_names.current:
        raise NotFound(
            f"{display.render(question.path)} has no column {column}: it has"
            f" {', '.join(sorted(column_names.current)[:20])}",
            kind="column",
        )
    return (node_id, lineage.UNKNOWN_FIELD, column) if field_id is None else (node_id, field_id, "")


class _GraphWalk:
    """A breadth-first traversal of the graph, from visible objects only."""

    def __init__(self, ctx: Context, question: GraphQuery) -> None:
        self.ctx = ctx
        self.question = question
        self.by_column = question.column is not None
        self.outside: dict[int, lineage.ExternalDataset] = {}
        self.names: dict[int, FieldNames] = {}
        self.steps: dict[GraphPlace, list[_GraphStep]] = {}
        self.known: set[int] = set()
        self.is_whole = True

    async def run(self, root: GraphPlace) -> LineageGraphPart:
        """Traverse the graph to the requested depth, then return the part that is visible in one consistent state of
        the store.

        Raises NotFound if the root no longer exists, or the caller may no longer load it.
        """
        at = {root}
        visible_objects = await self._read_visibility({root[0]})
        for _ in range(self.question.depth):
            if not at:
                break
            steps = await self._read(at, visible_objects)
            visible_objects |= await self._read_visibility({step.neighbour[0] for step in steps})
            if self.by_column:
                steps = [self._with_field_id(step, visible_objects) for step in steps]
            at = self._add(steps, visible_objects)
        visible_objects = await self._read_visibility(self.known)
        if visible_objects.get(root[0]) is None:
            raise NotFound(
                f"{display.render(self.question.path)} no longer exists, or you may not load it", kind="table"
            )
        return _GraphBuilder(self, visible_objects).draw(root)

    async def _read(self, at: Iterable[GraphPlace], visible_objects: visibility.VisibleObjects) -> list[_GraphStep]:
        """Read the stored edges that begin or end at the given objects and columns."""
        up = self.question.up
        if not self.by_column:
            edges = await self.ctx.look_up(
                partial(lineage.edges_read, {place[0] for place in at}, up=up, limit=ROWS_MAX)
            )
            self.is_whole = self.is_whole and len(edges) < ROWS_MAX
            return [_table_step(edge, up=up) for edge in edges]
        names = self._column_names(visible_objects)
        fields = [(place[0], lineage.LineageField(place[1], place[2] or names(place))) for place in at]
        column_edge = await self.ctx.look_up(partial(lineage.columns_read, fields, up=up, limit=ROWS_MAX))
        self.is_whole = self.is_whole and len(column_edge) < ROWS_MAX
        steps = []
        for edge, pair in column_edge:
            source = _place(edge.source_id, pair.source)
            target = _place(edge.target_id, pair.target)
            existing_end = source if up else target
            here = _matching_positions(at, target if up else source, names=names)
            steps += [
                _GraphStep(here=place, neighbour=existing_end, edge=edge, is_direct=pair.direct, subtype=pair.subtype)
                for place in here
            ]
        return steps

    def _column_names(self, visible_objects: visibility.VisibleObjects) -> Callable[[GraphPlace], str]:
        def name_of(place: GraphPlace) -> str:
            return self.fields_of(place[0], visible_objects).names.get(place[1], "")

        return name_of

    def fields_of(self, node_id: int, visible_objects: visibility.VisibleObjects) -> FieldNames:
        names = self.names.get(node_id)
        visible_object = visible_objects.get(node_id)
        if names is None and visible_object is not None and visible_object.body is not None:
            names = self.names[node_id] = field_names(visible_object.body)
        return NOTHING if names is None else names

    async def _read_visibility(self, ids: set[int]) -> visibility.VisibleObjects:
        """Determine which objects of the given ids are visible to the caller, and which ids are external datasets."""
        self.known |= ids
        unknown = ids - self.outside.keys()
        self.outside |= await self.ctx.look_up(partial(lineage.external_datasets_read, unknown))
        return await visibility.visible_objects_of(
            self.ctx, self.question.metalake, ids=unknown - self.outside.keys(), with_documents=lambda _: self.by_column
        )

    def _with_field_id(self, step: _GraphStep, visible_objects: visibility.VisibleObjects) -> _GraphStep:
        """Replace a column that was reported by name by its current field id, if it has one."""
        node_id, field_id, name = step.neighbour
        if field_id == lineage.UNKNOWN_FIELD:
            number = self.fields_of(node_id, visible_objects).current.get(name)
            if number is not None:
                return step._replace(neighbour=(node_id, number, ""))
        return step

    def _add(self, steps: Sequence[_GraphStep], visible_objects: visibility.VisibleObjects) -> set[GraphPlace]:
        """Add edges to the graph. Returns the positions from which the traversal continues: visible positions that were
        reached directly and for the first time.
        """
        next_places: set[GraphPlace] = set()
        for step in steps:
            self.steps.setdefault(step.here, []).append(step)
            is_visible = step.neighbour[0] in self.outside or visible_objects.get(step.neighbour[0]) is not None
            is_column = not self.by_column or step.neighbour[1] != lineage.EVERY_FIELD
            if is_visible and step.is_direct and is_column and step.neighbour not in self.steps:
                next_places.add(step.neighbour)
        for place in next_places:
            self.steps.setdefault(place, [])
        if sum(len(steps) for steps in self.steps.values()) > ROWS_MAX:
            self.is_whole = False
            return set()
        return next_places


def _table_step(edge: lineage.LineageEdgeRow, *, up: bool) -> _GraphStep:
    target, source = (edge.target_id, *WHOLE), (edge.source_id, *WHOLE)
    return (
        _GraphStep(here=target, neighbour=source, edge=edge, is_direct=True, subtype="")
        if up
        else _GraphStep(here=source, neighbour=target, edge=edge, is_direct=True, subtype="")
    )


def _place(node_id: int, field: lineage.LineageField) -> GraphPlace:
    return (node_id, field.id, field.name if field.id == lineage.UNKNOWN_FIELD else "")


def _matching_positions(
    at: Iterable[GraphPlace], end: GraphPlace, *, names: Callable[[GraphPlace], str]
) -> list[GraphPlace]:
    """Return the positions of the traversal that match one end of an edge between columns."""
    return [
        place
        for place in at
        if place[0] == end[0]
        and (
            end[1] == lineage.EVERY_FIELD
            or (end[1] == place[1] and end[1] != lineage.UNKNOWN_FIELD)
            or (end[1] == lineage.UNKNOWN_FIELD and end[2] == (place[2] or names(place)))
        )
    ]


class _GraphBuilder:
    """Builds the graph of the response from the edges of the traversal, with vertices in the order of discovery."""

    def __init__(self, walk: _GraphWalk, visible_objects: visibility.VisibleObjects) -> None:
        self.walk = walk
        self.visible_objects = visible_objects
        self.vertices: dict[GraphPlace, LineageVertex] = {}
        self.hidden = 0

    def draw(self, root: GraphPlace) -> LineageGraphPart:
        """Build the graph that is reachable from the root through visible objects."""
        walk, is_whole = self.walk, self.walk.is_whole
        self._vertex(root)
        arcs: dict[tuple[str, str, bool], LineageArc] = {}
        at, removed = [root], {root}
        for depth in range(1, walk.question.depth + 1):
            next_places: list[GraphPlace] = []
            for step in [step for place in at for step in walk.steps.get(place, ())]:
                vertex = self._vertex(step.neighbour)
                if vertex is None:
                    continue
                if len(arcs) >= EDGES_MAX:
                    return LineageGraphPart(tuple(self.vertices.values()), tuple(arcs.values()), False)
                self._arc(arcs, step, neighbour=vertex, depth=depth)
                if vertex.kind != "hidden" and step.is_direct and step.neighbour not in removed:
                    removed.add(step.neighbour)
                    next_places.append(step.neighbour)
            at = next_places
        return LineageGraphPart(tuple(self.vertices.values()), tuple(arcs.values()), is_whole)

    def _arc(
        self, arcs: dict[tuple[str, str, bool], LineageArc], step: _GraphStep, *, neighbour: LineageVertex, depth: int
    ) -> None:
        here = self.vertices[self._vertex_key(step.here)]
        source, target = (neighbour.id, here.id) if self.walk.question.up else (here.id, neighbour.id)
        key = (source, target, step.is_direct or neighbour.kind == "hidden")
        existing_arc = arcs.get(key) or LineageArc(source=source, target=target, depth=depth, is_direct=step.is_direct)
        if neighbour.kind == "hidden":
            arcs[key] = LineageArc(
                source=source, target=target, depth=existing_arc.depth
            )  # details of a hidden object's edge are hidden, too
            return
        edge = step.edge
        kinds = ((step.subtype,) if step.subtype else ()) if self.walk.by_column else edge.kinds
        statement = LineageStatement(
            job=(edge.job.namespace, edge.job.name), run=edge.job.run, at=edge.job.at, said_by=edge.said_by, kinds=kinds
        )
        same = next((each for each in existing_arc.statements if each[:4] == statement[:4]), None)
        if same is not None:
            merged_arc = same._replace(kinds=tuple(dict.fromkeys((*same.kinds, *kinds))))
            arcs[key] = existing_arc._replace(
                statements=tuple([merged_arc if each is same else each for each in existing_arc.statements])
            )
        else:
            arcs[key] = existing_arc._replace(statements=(*existing_arc.statements, statement)[:SAYINGS_MAX])

    def _vertex_key(self, place: GraphPlace) -> GraphPlace:
        """Return the key of a vertex; all columns of a hidden object share one, and so do all columns of a restricted
        table that are not in its current schema.
        """
        if place[0] in self.walk.outside:
            return place
        visible_object = self.visible_objects.get(place[0])
        return (place[0], *WHOLE) if visible_object is None or self._is_former(place, visible_object) else place

    def _is_former(self, place: GraphPlace, visible_object: visibility.VisibleObject) -> bool:
        """Return whether a column is hidden from a restricted user, because it is not in the table's current schema."""
        if not self.walk.by_column or not visible_object.is_restricted or place[1] == lineage.EVERY_FIELD:
            return False
        return place[1] not in self.walk.fields_of(place[0], self.visible_objects).current.values()

    def _vertex(self, place: GraphPlace) -> LineageVertex | None:
        """Return the vertex of a graph position; None if the object no longer exists."""
        spot = self._vertex_key(place)
        existing_vertex = self.vertices.get(spot)
        if existing_vertex is not None:
            return existing_vertex
        node_id = place[0]
        outside = self.walk.outside.get(node_id)
        if outside is None and node_id not in self.visible_objects:
            return None
        vertex = self._build_vertex(spot, outside)
        self.vertices[spot] = vertex
        return vertex

    def _build_vertex(self, spot: GraphPlace, outside: lineage.ExternalDataset | None) -> LineageVertex:
        visible_object: visibility.VisibleObject | None = self.visible_objects.get(spot[0])
        if outside is None and visible_object is None:
            self.hidden += 1
            return LineageVertex(id=f"hidden-{self.hidden}", kind="hidden")
        column = None
        if self.walk.by_column and spot[1] != lineage.EVERY_FIELD:
            column = spot[2] or self.walk.fields_of(spot[0], self.visible_objects).names.get(spot[1]) or spot[2]
        number = f"{spot[0]}" if column is None else f"{spot[0]}:{spot[1] if spot[1] > 0 else column}"
        if visible_object is None:
            return LineageVertex(id=number, kind="outside", path=None, outside=outside, column=column)
        return LineageVertex(
            id=number, kind=visible_object.kind.word, path=visible_object.path, outside=None, column=column
        )
