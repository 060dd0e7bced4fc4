# SPDX-License-Identifier: Apache-2.0
"""The graph of a pipeline as SVG, and as an HTML page: sources, tables that it reads, steps and their order.

Names, comments and all other texts are written by users: each passes `escaped`. The files have no scripts, and load
nothing. Must not know Spark or servers.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from limnos.formats.graphs import GraphSizes, layered_layout, svg_path
from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.pipeline.declaration import (
    STORAGE_COLUMNS,
    Files,
    Jdbc,
    Kafka,
    Parts,
    Pipeline,
    PythonSource,
    StepDeclaration,
    StorageSource,
    SystemTableSource,
    TableSource,
)
from limnos.pipeline.reads import StepReads

if TYPE_CHECKING:
    from limnos.client.activity.runs import Run, RunStep

NODES_MAX: Final = 1000
"""The maximum number of nodes of a drawing. The layout of so many takes less than a second of CPU."""
_SIZES: Final = GraphSizes(width=232)
_MARGIN: Final = 12
_NAME_MAX, _PLACE_MAX = 26, 34
_ILLEGAL = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069\u200e\u200f]"
)
"""Characters that XML does not allow, and those that reverse the direction of text."""
STYLE: Final = (
    "svg{font-family:system-ui,sans-serif}.line{fill:none;stroke:#8a94a6}.line.after{stroke-dasharray:4 3}"
    "rect{fill:#fff;stroke:#5b6b82}.source rect{fill:#eef6ee}.table rect{fill:#f3f3f3}.step rect{fill:#eaf1fb}"
    ".name{font-size:13px;fill:#1d2733}.place{font-size:11px;fill:#5b6675}"
    ".done rect{fill:#e3f4e6;stroke:#2e7d3a}.running rect{fill:#fff4d6;stroke:#9a6b00}"
    ".failed rect{fill:#fde4e1;stroke:#b3261e}.waiting rect{fill:#fff;stroke-dasharray:3 3}"
)
_STATES: Final = frozenset({"done", "running", "failed"})
"""The states of a run's step that have a color. A step in another state, or without one, is drawn as waiting."""
_PAGE_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:24px;color:#1d2733}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:4px 12px 4px 0;vertical-align:top;border-bottom:1px solid #dde2e8}"
    "pre{white-space:pre-wrap;background:#f5f6f8;padding:12px}.picture{overflow:auto}"
)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNode:
    """A node: a source, a table that no step makes, or a step. `href` is a relative address of ours, or empty."""

    id: Parts
    name: str
    place: str
    kind: str
    """`source`, `table` or `step`."""
    href: str = ""
    state: str = ""
    """Of a drawn run, the state of the step: `done`, `running`, `failed` or `waiting`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineGraph:
    """The nodes of a pipeline, and its edges from what is read to what reads it. `after` has edges of order alone."""

    title: str
    nodes: tuple[DrawnNode, ...]
    edges: tuple[tuple[Parts, Parts], ...]
    after: frozenset[tuple[Parts, Parts]] = frozenset()


def escaped(text: object) -> str:
    """Return a text for HTML and SVG, in elements and in quoted attributes."""
    return html.escape(_ILLEGAL.sub("\ufffd", str(text)), quote=True)


def graph_of(
    pipeline: Pipeline,
    reads: Mapping[str, StepReads],
    *,
    hrefs: Mapping[Parts, str] | None = None,
    run: Run | None = None,
) -> PipelineGraph:
    """Return the graph of a pipeline. `hrefs` are the addresses of pages about tables of steps. `run` is a run with its
    steps, whose states are drawn.
    """
    steps = {step.table: step for step in pipeline.steps}
    used = {name for one in reads.values() for name in one.sources}
    nodes = [
        DrawnNode(id=(source.name,), name=source.name, place=describe_source(source.kind), kind="source")
        for source in pipeline.sources
        if source.name in used
    ]
    outside = {table for one in reads.values() for table in (*one.tables, *one.past)} - set(steps)
    nodes += [_table_node(table, kind="table", note="table") for table in sorted(outside)]
    run_steps = {} if run is None else {step.name: step for step in run.steps}
    for step in pipeline.steps:
        node = _table_node(step.table, kind="step", note=step.write.mode.value, href=(hrefs or {}).get(step.table, ""))
        nodes.append(node if run is None else _with_state(node, run_steps.get(step.name)))
    edges = dict.fromkeys(edge for step in pipeline.steps for edge in _edges(step, reads.get(step.name)))
    after = [(table, step.table) for step in pipeline.steps for table in step.after if (table, step.table) not in edges]
    return PipelineGraph(
        title=f"Pipeline {pipeline.name}" + ("" if run is None else f", run {run.id}: {run.state}"),
        nodes=tuple(nodes),
        edges=tuple(dict.fromkeys([*edges, *after])),
        after=frozenset(after),
    )


def describe_source(kind: object) -> str:
    """Return the kind and the place of a source. Addresses of databases are left out: they may have credentials."""
    if isinstance(kind, Files):
        return f"{kind.format} files {kind.path}"
    if isinstance(kind, TableSource):
        return f"table {display.render(kind.table)}"
    if isinstance(kind, Jdbc):
        return f"database, {kind.table or 'a query'}"
    if isinstance(kind, Kafka):
        return f"topic {kind.topic}"
    if isinstance(kind, PythonSource):
        return f"function {kind.function}"
    if isinstance(kind, SystemTableSource):
        return f"system table {kind.table}"
    if isinstance(kind, StorageSource):
        return "manifests in storage" if kind.content == STORAGE_COLUMNS else "files in storage"
    return "stream"


def svg(graph: PipelineGraph) -> str:
    """Return the drawing as an SVG document. Raises BadRequest for a graph with more than `NODES_MAX` nodes."""
    if len(graph.nodes) > NODES_MAX:
        raise BadRequest(f"the graph has {len(graph.nodes):,} nodes, and at most {NODES_MAX:,} are drawn")
    numbers = {node.id: str(number) for number, node in enumerate(graph.nodes)}
    after = {(numbers[source], numbers[target]) for source, target in graph.after if source in numbers}
    edges = [(numbers[source], numbers[target]) for source, target in graph.edges if source in numbers]
    layout = layered_layout(list(numbers.values()), edges, sizes=_SIZES)
    lines = [
        f'<path class="line{" after" if (edge.source, edge.target) in after else ""}" '
        f'd="{svg_path(edge.points, margin=_MARGIN)}"/>'
        for edge in layout.edges
    ]
    nodes = [_svg_node(node, layout.corners[numbers[node.id]]) for node in graph.nodes]
    width, height = round(layout.width) + 2 * _MARGIN, round(layout.height) + 2 * _MARGIN
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width}'
                f' {height}">'
            ),
            f"<title>{escaped(graph.title)}</title><style>{STYLE}</style>",
            *lines,
            *nodes,
            "</svg>\n",
        ]
    )


def page(title: str, body: Iterable[str]) -> str:
    """Return an HTML page. `title` is text; `body` has parts of HTML whose texts are escaped."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escaped(title)}</title><style>{_PAGE_STYLE}</style></head><body>",
            f"<h1>{escaped(title)}</h1>",
            *body,
            "</body></html>\n",
        ]
    )


def html_graph(graph: PipelineGraph) -> str:
    """Return the drawing as a page, with the same facts as a list."""
    return page(graph.title, picture(graph))


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
            escaped(node.kind),
            escaped(node.place),
            escaped(", ".join(inputs.get(node.id, ()))),
        ]
        for node in graph.nodes
    ]
    listed = table(("name", "kind", "", "reads"), rows)
    if len(graph.nodes) > NODES_MAX:
        return [f"<p>{escaped(f'More than {NODES_MAX:,} nodes are not drawn; the list has them.')}</p>", *listed]
    return ['<div class="picture">', svg(graph), "</div>", *listed]


def link(text: str, href: str) -> str:
    """Return a text as a link to a page of ours; as text if `href` is empty."""
    return f'<a href="{escaped(href)}">{escaped(text)}</a>' if href else escaped(text)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table. `heads` are texts, the cells of `rows` are escaped already."""
    return [
        f"<table><thead><tr>{''.join(f'<th>{escaped(head)}</th>' for head in heads)}</tr></thead><tbody>",
        *(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows),
        "</tbody></table>",
    ]


def _edges(step: StepDeclaration, reads: StepReads | None) -> list[tuple[Parts, Parts]]:
    if reads is None:
        return []
    sources = [(name,) for name in sorted(reads.sources)]
    return [(one, step.table) for one in (*sources, *sorted(reads.tables | reads.past)) if one != step.table]


def _table_node(parts: Parts, *, kind: str, note: str, href: str = "") -> DrawnNode:
    return DrawnNode(
        id=parts,
        name=display.render(parts[1:]),
        place=f"{note}, in {display.render(parts[:1])}",
        kind=kind,
        href=href,
    )


def _with_state(node: DrawnNode, step: RunStep | None) -> DrawnNode:
    """Return the node of a step with its state in a run, and the number of its rows."""
    if step is None:
        return replace(node, place="not in this run", state="waiting")
    state = step.state if step.state in _STATES else "waiting"
    return replace(node, place=step.state if step.rows is None else f"{step.state}, {step.rows:,} rows", state=state)


def _svg_node(node: DrawnNode, corner: tuple[float, float]) -> str:
    x, y = round(corner[0]) + _MARGIN, round(corner[1]) + _MARGIN
    classes = f"{node.kind} {node.state}".rstrip()
    drawn = (
        f'<g class="{classes}" transform="translate({x} {y})"><title>{escaped(node.name)}</title>'
        f'<rect width="{_SIZES.width}" height="{_SIZES.height}" rx="6"/>'
        f'<text class="name" x="12" y="19">{escaped(_short(node.name, _NAME_MAX))}</text>'
        f'<text class="place" x="12" y="35">{escaped(_short(node.place, _PLACE_MAX))}</text></g>'
    )
    return f'<a href="{escaped(node.href)}">{drawn}</a>' if node.href else drawn


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
