# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs: nodes and lines with their coordinates, for a template that writes SVG.

Pure. Each picture has a title as text, and its page shows the same facts as a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from limnos.formats.graphs import GraphSizes, layered_layout, svg_path

NODES_MAX: Final = 100
"""The maximum number of nodes in a picture; the page states the number of omitted ones."""
EDGES_MAX: Final = 200
"""The maximum number of lines in a picture; the page states the number of omitted ones.

With both limits the layout of a dense graph takes less than 10 ms of CPU, so it needs no process of its own.
"""
_SIZES: Final = GraphSizes()
_MARGIN: Final = 12
_TEXT_MAX: Final = 18
"""The number of characters of a name that fit beside the icon."""
_PLACE_MAX: Final = 28


class PictureNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node to draw. `look` is `plain`, `root`, `hidden`, `outside`, `ok`, `bad`, `warn` or `info`."""

    id: str
    name: str
    place: str
    icon: str
    href: str = ""
    look: str = "plain"
    text: str = ""
    """A shorter name to draw, if there is one."""


class PlacedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the picture with the coordinates of its upper left corner."""

    name: str
    text: str
    place: str
    icon: str
    href: str
    look: str
    x: int
    y: int


class PictureLine(msgspec.Struct, frozen=True):
    """A line of the picture, as an SVG path. A dashed line is indirect or closes a cycle."""

    path: str
    is_dashed: bool
    is_back: bool


class GraphPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture in pixels. `left_out` is the number of omitted nodes, `lines_left_out` that of omitted lines between
    drawn nodes.
    """

    title: str
    nodes: tuple[PlacedNode, ...]
    lines: tuple[PictureLine, ...]
    width: int
    height: int
    node_width: int
    node_height: int
    left_out: int
    lines_left_out: int


def graph_picture(
    title: str,
    nodes: Sequence[PictureNode],
    *,
    edges: Sequence[tuple[str, str]],
    dashed: frozenset[tuple[str, str]] = frozenset(),
) -> GraphPicture:
    """Return the picture of a graph with its first `NODES_MAX` nodes and `EDGES_MAX` lines."""
    drawn = nodes[:NODES_MAX]
    names = {each.id for each in drawn}
    known_edges = [each for each in edges if names.issuperset(each)]
    drawn_edges = known_edges[:EDGES_MAX]
    layout = layered_layout([each.id for each in drawn], drawn_edges, sizes=_SIZES)
    placed_nodes = []
    for each in drawn:
        x, y = layout.corners[each.id]
        placed_nodes.append(
            PlacedNode(
                name=each.name,
                text=_short(each.text or each.name, _TEXT_MAX),
                place=_short(each.place, _PLACE_MAX),
                icon=each.icon,
                href=each.href,
                look=each.look,
                x=round(x) + _MARGIN,
                y=round(y) + _MARGIN,
            )
        )
    lines = tuple(
        PictureLine(
            svg_path(edge.points, margin=_MARGIN), edge.is_back or (edge.source, edge.target) in dashed, edge.is_back
        )
        for edge in layout.edges
    )
    order = sorted(placed_nodes, key=lambda each: (each.x, each.y))
    return GraphPicture(
        title=title,
        nodes=tuple(order),
        lines=lines,
        width=round(layout.width) + 2 * _MARGIN,
        height=round(layout.height) + 2 * _MARGIN,
        node_width=_SIZES.width,
        node_height=_SIZES.height,
        left_out=len(nodes) - len(drawn),
        lines_left_out=len(known_edges) - len(drawn_edges),
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
