# SPDX-License-Identifier: Apache-2.0
"""The graph of a pipeline as SVG: boxes, lines between them, and if the graph has them columns with their lineage.

Names, comments and all other texts are written by users: each passes `escaped`. The files have no scripts, and load
nothing. Must not know Spark or servers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from limnos.formats.graphs import GraphLayout, GraphSizes, RoutedEdge, layered_layout, svg_path
from limnos.model.errors import BadRequest
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.drawn_graph import DrawnNode, PipelineGraph
from limnos.pipeline.engine.plan_columns import ColumnOrigin
from limnos.pipeline.markup import escape, shorten
from limnos.pipeline.table_lineage import ResolvedColumn, origin_kind

NODES_MAX: Final = 1000
"""The maximum number of nodes of a drawing. The layout of so many takes less than a second of CPU."""
ROWS_MAX: Final = 20
"""The maximum number of columns in a box. A drawing of many boxes has fewer in each."""
_ROWS_TOTAL: Final = 6000
_ROWS_MIN: Final = 3
LINES_MAX: Final = 5000
"""The maximum number of lines between columns of a drawing."""
_SIZES: Final = GraphSizes(width=232)
_WIDE: Final = GraphSizes(width=300, gap_x=120, gap_y=24)
"""The sizes of a drawing with columns."""
_ROW: Final = 18
_MARGIN: Final = 12
_LEGEND: Final = 26
_LEGEND_WIDTH: Final = 420
_TITLE_MAX: Final = 1000
"""The maximum length of a text that a browser shows beside the pointer."""
STYLE: Final = (
    "svg{font-family:system-ui,sans-serif}.line{fill:none;stroke:#8a94a6}.line.after{stroke-dasharray:4 3}"
    "rect{fill:#fff;stroke:#5b6b82}.source rect{fill:#eef6ee}.table rect{fill:#f3f3f3}.step rect{fill:#eaf1fb}"
    ".name{font-size:13px;fill:#1d2733}.place{font-size:11px;fill:#5b6675}"
    ".done rect{fill:#e3f4e6;stroke:#2e7d3a}.running rect{fill:#fff4d6;stroke:#9a6b00}"
    ".failed rect{fill:#fde4e1;stroke:#b3261e}.waiting rect{fill:#fff;stroke-dasharray:3 3}"
)
_COLUMN_STYLE: Final = (
    ".line{stroke:#c3cad5}.column{font-size:12px;fill:#1d2733}.type{font-size:11px;fill:#5b6675;text-anchor:end}"
    ".note{font-size:11px;fill:#5b6675;font-style:italic}.rule{stroke:#c3cad5}"
    ".from{fill:none;stroke:#2f6db5;stroke-width:1.3;opacity:.75}.from.computed,.from.aggregated{stroke:#b0561b;"
    "stroke-dasharray:5 3}.from.depends{stroke:#777;stroke-dasharray:1.5 3}.from:hover{stroke-width:3;opacity:1}"
    "g:hover>.column{font-weight:600}"
)
_KINDS: Final = (("same", "the same value"), ("computed", "computed"), ("depends", "order or window"))
"""The classes of lines between columns, with their explanations."""


def svg(graph: PipelineGraph) -> str:
    """Return the drawing as an SVG document. Raises BadRequest for a graph with more than `NODES_MAX` nodes."""
    if len(graph.nodes) > NODES_MAX:
        raise BadRequest(f"the graph has {len(graph.nodes):,} nodes, and at most {NODES_MAX:,} are drawn")
    return _SvgDocument(graph).text()


@dataclass(frozen=True, slots=True)
class _BoxRow:
    """A line in a box: a column, or a note."""

    text: str
    type: str = ""
    title: str = ""
    is_note: bool = False


class _SvgDocument:
    """A drawing of one graph. Nodes have numbers in place of their names, which may be long."""

    def __init__(self, graph: PipelineGraph) -> None:
        self._graph = graph
        self._numbers = {node.id: str(number) for number, node in enumerate(graph.nodes)}
        self._sizes = _WIDE if graph.has_columns else _SIZES
        self._names = {node.id: node.name for node in graph.nodes}
        most = max(_ROWS_MIN, min(ROWS_MAX, _ROWS_TOTAL // max(1, len(graph.nodes))))
        self._rows = {node.id: _box_rows(node, most=most, names=self._names) for node in graph.nodes}
        self._places = {
            node.id: {each.name.lower(): index for index, each in enumerate(node.lineage.columns)}
            for node in graph.nodes
            if node.lineage is not None
        }
        self._ids = [node.id for node in graph.nodes]
        self._after = {(self._numbers.get(one), self._numbers.get(other)) for one, other in graph.after}
        self._layout = self._compute_layout()

    def text(self) -> str:
        """Return the SVG document."""
        layout = self._layout
        lines = [*map(self._line, layout.edges)]
        columns = list(self._column_lines())
        legend = _LEGEND if columns else 0
        width, height = round(layout.width) + 2 * _MARGIN, round(layout.height) + 2 * _MARGIN + legend
        width = max(width, _LEGEND_WIDTH) if legend else width
        style = STYLE + (_COLUMN_STYLE if self._graph.has_columns else "")
        return "\n".join(
            [
                (
                    f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width}'
                    f' {height}">'
                ),
                f"<title>{escape(self._graph.title)}</title><style>{style}</style>",
                *lines,
                *[self._box(node) for node in self._graph.nodes],
                *columns,
                *(_legend(height - _LEGEND) if legend else ()),
                "</svg>\n",
            ]
        )

    def _compute_layout(self) -> GraphLayout:
        numbers = self._numbers
        edges = [(numbers[source], numbers[target]) for source, target in self._graph.edges if source in numbers]
        heights = {numbers[node.id]: self._height(node) for node in self._graph.nodes}
        return layered_layout(list(numbers.values()), edges, sizes=self._sizes, heights=heights)

    def _height(self, node: DrawnNode) -> int:
        rows = self._rows[node.id]
        return self._sizes.height + (len(rows) * _ROW + 6 if rows else 0)

    def _top_left(self, node: Parts) -> tuple[int, int]:
        x, y = self._layout.corners[self._numbers[node]]
        return round(x), round(y)

    def _line(self, edge: RoutedEdge) -> str:
        points = list(edge.points)
        if self._graph.has_columns:  # lines of boxes end at the names, and those of columns below them
            ends = [
                self._top_left(self._ids[int(one)])[1] + self._sizes.height / 2 for one in (edge.source, edge.target)
            ]
            points[0], points[-1] = (points[0][0], ends[0]), (points[-1][0], ends[1])
        kind = "line after" if (edge.source, edge.target) in self._after else "line"
        return f'<path class="{kind}" d="{svg_path(points, margin=_MARGIN)}"/>'

    def _box(self, node: DrawnNode) -> str:
        x, y = (each + _MARGIN for each in self._top_left(node.id))
        classes = f"{node.kind} {node.state}".rstrip()
        wide = self._graph.has_columns
        width, head = self._sizes.width, self._sizes.height
        rows = self._rows[node.id]
        drawn = (
            f'<g class="{classes}" transform="translate({x} {y})">'
            f"<title>{escape(shorten(node.name, _TITLE_MAX))}</title>"
            f'<rect width="{width}" height="{self._height(node)}" rx="6"/>'
            f'<text class="name" x="12" y="19">{escape(shorten(node.name, 34 if wide else 26))}</text>'
            f'<text class="place" x="12" y="35">{escape(shorten(node.place, 46 if wide else 34))}</text>'
            + (f'<path class="rule" d="M0 {head}H{width}"/>' if rows else "")
            + "".join(_svg_row(row, at=head + 15 + number * _ROW, width=width) for number, row in enumerate(rows))
            + "</g>"
        )
        return f'<a href="{escape(node.href)}">{drawn}</a>' if node.href else drawn

    def _column_lines(self) -> Iterator[str]:
        """Yield the lines between columns, along those between their boxes."""
        numbers = self._numbers
        routes = {(edge.source, edge.target): edge.points for edge in self._layout.edges}
        drawn: set[tuple[tuple[float, float], ...]] = set()
        for node in self._graph.nodes:
            for index, column in enumerate(node.lineage.columns if node.lineage else ()):
                for origin in column.origins:
                    source = origin.source if isinstance(origin.source, tuple) else ()
                    route = routes.get((numbers.get(source, ""), numbers[node.id]))
                    if route is None or len(drawn) >= LINES_MAX:
                        continue
                    start, end = self._row_y(source, origin.column), self._row_at(node.id, index)
                    points = ((route[0][0], start), *route[1:-1], (route[-1][0], end))
                    if points not in drawn:
                        drawn.add(points)
                        yield _column_line(points, origin, target=(node.name, column.name), names=self._names)

    def _row_y(self, node: Parts, column: str) -> float:
        """Return the middle of a column's row in a box; of its last row for a column that is left out."""
        row_offsets = self._places.get(node, {})
        return self._row_at(node, row_offsets.get(column.lower(), len(row_offsets)))

    def _row_at(self, node: Parts, index: int) -> float:
        rows = self._rows[node]
        top = self._top_left(node)[1]
        if not rows:
            return top + self._sizes.height / 2
        return top + self._sizes.height + 11 + _ROW * min(index, len(rows) - 1)


def _box_rows(node: DrawnNode, *, most: int, names: Mapping[Parts, str]) -> tuple[_BoxRow, ...]:
    """Return the rows of a box: its columns, the number of those that are left out, and notes."""
    lineage = node.lineage
    if lineage is None:
        return ()
    if lineage.unknown:
        lines = textwrap.wrap(f"not known: {lineage.unknown}", 46, max_lines=2, placeholder=" …")
        return tuple([_BoxRow(line, title=lineage.unknown, is_note=True) for line in lines])
    columns = lineage.columns
    describe = partial(_title, names=names)
    rows = [_BoxRow(each.name, each.type, describe(each)) for each in columns[:most]]
    left_out = len(columns) - len(rows) + node.hidden
    if left_out:
        rows.append(_BoxRow(f"and {left_out:,} more", is_note=True))
    if lineage.is_published:
        rows.append(_BoxRow("as published: a function makes the columns", is_note=True))
    return tuple(rows)


def _title(column: ResolvedColumn, *, names: Mapping[Parts, str]) -> str:
    """Return the text about a column that a browser shows beside the pointer."""
    origins = [f"{origin_kind(each)}: {_origin_text(each, names=names)}" for each in column.origins]
    return shorten("\n".join([f"{column.name} {column.type}", *origins]), _TITLE_MAX)


def _origin_text(origin: ColumnOrigin, *, names: Mapping[Parts, str]) -> str:
    source = origin.source if isinstance(origin.source, tuple) else ()
    return f"{names.get(source, '.'.join(map(str, source)))}: {origin.column}"


def _svg_row(row: _BoxRow, *, at: int, width: int) -> str:
    if row.is_note:
        title = f"<title>{escape(shorten(row.title, _TITLE_MAX))}</title>" if row.title else ""
        return f'<text class="note" x="12" y="{at}">{title}{escape(row.text)}</text>'
    return (
        f'<g><title>{escape(row.title)}</title><text class="column" x="12" y="{at}">'
        f'{escape(shorten(row.text, 28))}</text><text class="type" x="{width - 12}" y="{at}">'
        f"{escape(shorten(row.type.lower(), 16))}</text></g>"
    )


def _column_line(
    points: tuple[tuple[float, float], ...],
    origin: ColumnOrigin,
    *,
    target: tuple[str, str],
    names: Mapping[Parts, str],
) -> str:
    kind = origin_kind(origin)
    word = kind if kind in {"same", "computed", "aggregated"} else "depends"
    title = f"{_origin_text(origin, names=names)} → {target[0]}: {target[1]} ({kind})"
    return (
        f'<path class="from {word}" d="{svg_path(points, margin=_MARGIN)}">'
        f"<title>{escape(shorten(title, _TITLE_MAX))}</title></path>"
    )


def _legend(top: int) -> Iterator[str]:
    """Yield the explanation of the lines between columns."""
    for number, (kind, text) in enumerate(_KINDS):
        x, y = _MARGIN + number * 136, top + 12
        yield f'<path class="from {kind}" d="M{x} {y - 4}H{x + 24}"/>'
        yield f'<text class="place" x="{x + 30}" y="{y}">{text}</text>'
