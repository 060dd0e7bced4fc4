# SPDX-License-Identifier: Apache-2.0
"""The graph of a pipeline as an HTML page: the drawing, a list of the nodes, and on request a panel for each node.

A panel opens by a click on a box, by the address of the page alone (`#n3`), so that pages need no scripts. It has the
node between what it reads and what reads it, and a table of its columns. Must not know Spark or servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from limnos.pipeline.declared_values import Parts
from limnos.pipeline.drawing import NODES_MAX, svg
from limnos.pipeline.drawn_graph import DrawnNode, PipelineGraph
from limnos.pipeline.engine.plan_columns import ColumnOrigin
from limnos.pipeline.markup import escape, link, page, table
from limnos.pipeline.table_lineage import ResolvedColumn, TableLineage, origin_kind

NEIGHBOURS_MAX: Final = 6
"""The maximum number of boxes on each side of a panel's own box."""
PICTURES_MAX: Final = 300
"""The maximum number of panels with pictures in a page. Those of a larger graph have tables alone."""
LISTED_MAX: Final = 1000
"""The maximum number of columns in a panel's table. A page with many panels has fewer in each."""
_LISTED_TOTAL: Final = 50_000
_LISTED_MIN: Final = 30
_LINKS_MAX: Final = 20
"""The maximum number of columns in one cell of a table."""
_PICTURE: Final = "picture"
_PANEL_STYLE: Final = (
    ".panel{display:none}.panel:target{display:block;position:fixed;left:0;right:0;bottom:0;max-height:62vh;"
    "overflow:auto;background:#fff;border-top:2px solid #5b6b82;padding:8px 24px 24px}"
    ".panel h2{margin:4px 0;overflow-wrap:anywhere}.close{float:right;text-decoration:none;"
    "padding:2px 10px;border:1px solid #5b6b82;border-radius:6px;color:#1d2733}"
    "body:has(.panel:target){padding-bottom:64vh}svg a{cursor:pointer}svg a:hover rect{stroke-width:2.5}"
)


def html_graph(graph: PipelineGraph) -> str:
    """Return the drawing as a page, with the same facts as a list. With columns, a click on a box opens its panel."""
    if not graph.has_columns:
        return page(graph.title, picture(graph))
    addresses = {node.id: f"#n{number}" for number, node in enumerate(graph.nodes)}
    linked = _add_links(graph, addresses)
    hint = "<p>A click on a box opens its columns.</p>"
    body = [hint, *picture(_without_columns(linked)), *_panels(linked, addresses)]
    return page(graph.title, body, style=_PANEL_STYLE + "".join(_marks(graph)))


def picture(graph: PipelineGraph) -> list[str]:
    """Return the drawing and its list, as parts of a page. A graph that is too large has the list alone."""
    names = {node.id: node.name for node in graph.nodes}
    inputs: dict[Parts, list[str]] = {}
    for source, target in graph.edges:
        if source in names:
            inputs.setdefault(target, []).append(names[source])
    rows = [
        [
            link(node.name, node.href),
            escape(node.kind),
            escape(node.place),
            escape(", ".join(inputs.get(node.id, ()))),
        ]
        for node in graph.nodes
    ]
    listed = table(("name", "kind", "", "reads"), rows)
    if len(graph.nodes) > NODES_MAX:
        return [f"<p>{escape(f'More than {NODES_MAX:,} nodes are not drawn; the list has them.')}</p>", *listed]
    return [f'<div class="picture" id="{_PICTURE}">', svg(graph), "</div>", *listed]


def neighbourhood(graph: PipelineGraph, node: Parts) -> PipelineGraph:
    """Return the graph of a node, what it reads and what reads it, with those columns of others that it has to do with.

    At most `NEIGHBOURS_MAX` nodes are on each side.
    """
    inputs = [source for source, target in graph.edges if target == node][:NEIGHBOURS_MAX]
    readers = [target for source, target in graph.edges if source == node][:NEIGHBOURS_MAX]
    chosen_nodes = {node, *inputs, *readers}
    own_node = next(each for each in graph.nodes if each.id == node)
    used = {
        (origin.source, origin.column.lower())
        for column in (own_node.lineage.columns if own_node.lineage else ())
        for origin in column.origins
    }
    nodes = [
        each
        if each.id == node
        else _reduce_columns(each, used=used)
        if each.id in inputs
        else _reduce_columns(each, reads=node)
        for each in graph.nodes
        if each.id in chosen_nodes
    ]
    edges = tuple(edge for edge in graph.edges if node in edge and chosen_nodes.issuperset(edge))
    return PipelineGraph(title=own_node.name, nodes=tuple(nodes), edges=edges, after=graph.after & frozenset(edges))


def describe_lineage(graph: PipelineGraph, node: DrawnNode, *, most: int = LISTED_MAX) -> Iterator[str]:
    """Yield a table of a node's columns with their origins and uses, and the columns on which its rows depend."""
    lineage = node.lineage or TableLineage()
    if lineage.unknown:
        yield f"<p>{escape(f'Its columns are not known: {lineage.unknown}.')}</p>"
        return
    if lineage.is_published:
        yield "<p>Columns of the table as it is published: its function makes them, which a check does not call.</p>"
    names = {each.id: each for each in graph.nodes}
    uses = _uses(graph, node.id)
    rows = [
        [
            escape(column.name),
            escape(column.type.lower()),
            _links([_origin_link(each, names) for each in column.origins]),
            _links(uses.get(column.name.lower(), [])),
        ]
        for column in lineage.columns[:most]
    ]
    yield from table(("column", "type", "comes from", "used by"), rows)
    if len(lineage.columns) > most:
        yield f"<p>{escape(f'and {len(lineage.columns) - most:,} more columns')}</p>"
    if lineage.rows:
        listed = _links([_origin_link(each, names) for each in lineage.rows])
        yield f"<p>Its rows depend on {listed}.</p>"


def _panels(graph: PipelineGraph, addresses: dict[Parts, str]) -> Iterator[str]:
    most = max(_LISTED_MIN, min(LISTED_MAX, _LISTED_TOTAL // max(1, len(graph.nodes))))
    many = len(graph.nodes) > PICTURES_MAX
    for node in graph.nodes:
        yield f'<section class="panel" id="{addresses[node.id].removeprefix("#")}">'
        yield f'<a class="close" href="#{_PICTURE}" >close</a>'
        yield f"<h2>{escape(node.name)}</h2><p>{escape(f'{node.kind}: {node.place}')}</p>"
        if many:
            yield f"<p>{escape(f'A page of more than {PICTURES_MAX} boxes has no pictures of columns.')}</p>"
        else:
            near = neighbourhood(graph, node.id)
            yield from ('<div class="picture">', svg(near), "</div>")
            yield from _left_out(graph, node, near=near)
        yield from describe_lineage(graph, node, most=most)
        yield "</section>"


def _left_out(graph: PipelineGraph, node: DrawnNode, *, near: PipelineGraph) -> Iterator[str]:
    """Yield how many neighbours the picture of a panel leaves out."""
    count = sum(node.id in edge for edge in graph.edges) - len(near.edges)
    if count:
        yield f"<p>{escape(f'{count:,} more that it reads, or that read it, are not in this picture.')}</p>"


def _add_links(graph: PipelineGraph, addresses: dict[Parts, str]) -> PipelineGraph:
    return replace(graph, nodes=tuple(replace(node, href=addresses[node.id]) for node in graph.nodes))


def _without_columns(graph: PipelineGraph) -> PipelineGraph:
    return replace(graph, nodes=tuple(replace(node, lineage=None) for node in graph.nodes))


def _marks(graph: PipelineGraph) -> Iterator[str]:
    """Yield the rules that mark the box of the open panel in the picture."""
    for number in range(len(graph.nodes) if len(graph.nodes) <= NODES_MAX else 0):
        yield f'body:has(#n{number}:target) #{_PICTURE} a[href="#n{number}"] rect{{stroke:#1d2733;stroke-width:3}}'


def _reduce_columns(node: DrawnNode, *, used: Iterable[object] = (), reads: Parts | None = None) -> DrawnNode:
    """Return a neighbour with the columns that the panel's node reads, or that come from the node `reads`."""
    lineage = node.lineage
    if lineage is None or lineage.unknown:
        return node
    pairs = set(used)
    columns = tuple(
        [
            column
            for column in lineage.columns
            if (node.id, column.name.lower()) in pairs or any(each.source == reads for each in column.origins)
        ]
    )
    return replace(
        node, lineage=replace(lineage, columns=columns, is_published=False), hidden=len(lineage.columns) - len(columns)
    )


def _uses(graph: PipelineGraph, node: Parts) -> dict[str, list[str]]:
    """Return links to the columns that come from each column of a node, by its name in lower case."""
    uses: dict[str, list[str]] = {}
    for target in [other for source, other in graph.edges if source == node]:
        reader = next((each for each in graph.nodes if each.id == target), None)
        for column in reader.lineage.columns if reader is not None and reader.lineage is not None else ():
            for origin in column.origins:
                if reader is not None and origin.source == node:
                    uses.setdefault(origin.column.lower(), []).append(_column_link(reader, column, origin=origin))
    return uses


def _column_link(node: DrawnNode, column: ResolvedColumn, *, origin: ColumnOrigin) -> str:
    return f"{link(f'{node.name}: {column.name}', node.href)} ({escape(origin_kind(origin))})"


def _origin_link(origin: ColumnOrigin, nodes: dict[Parts, DrawnNode]) -> str:
    source = origin.source if isinstance(origin.source, tuple) else ()
    node = nodes.get(source)
    name = ".".join(map(str, source)) if node is None else node.name
    href = "" if node is None else node.href
    return f"{link(f'{name}: {origin.column}', href)} ({escape(origin_kind(origin))})"


def _links(links: list[str]) -> str:
    more = f" and {len(links) - _LINKS_MAX:,} more" if len(links) > _LINKS_MAX else ""
    return ", ".join(links[:_LINKS_MAX]) + more
