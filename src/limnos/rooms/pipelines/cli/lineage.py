# SPDX-License-Identifier: Apache-2.0
"""`lineage up`, `lineage down`: sources of a table, view or column, and objects derived from it.

The server decides whether the last part of a path is a column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.hints.missing_objects import NO_COLUMN
from limnos.cli.output import show_done, visible
from limnos.client import DeniedError, NotFoundError
from limnos.client.values import LineageEdge, LineageGraph, LineageNode
from limnos.names import display

app = App(name="lineage")
Depth = Annotated[int, Parameter(help="Maximum number of steps.")]
Column = Annotated[str | None, Parameter(help="A column of the table PATH.")]


@app.command
def up(path: str, /, *, depth: Depth = 3, column: Column = None, common: CommonFlags = DEFAULTS) -> None:
    """Show the sources of PATH, directly or through other objects.

    Parameters
    ----------
    path
        A table or view, as `main.curated.delays`, or a column of it, as `main.curated.delays.total`.
    """
    with common.client() as client:
        graph = _find(path, column, ask=lambda parts, name: client.lineage.up(parts, column=name, depth=depth))
    _show(graph, common, up=True)


@app.command
def down(path: str, /, *, depth: Depth = 3, column: Column = None, common: CommonFlags = DEFAULTS) -> None:
    """Show the objects derived from PATH, directly or through other objects.

    Parameters
    ----------
    path
        A table or view, as `main.raw.trips`, or a column of it, as `main.raw.trips.fare`.
    """
    with common.client() as client:
        graph = _find(path, column, ask=lambda parts, name: client.lineage.down(parts, column=name, depth=depth))
    _show(graph, common, up=False)


def _find(path: str, column: str | None, *, ask: Callable[[tuple[str, ...], str | None], LineageGraph]) -> LineageGraph:
    """Load the lineage graph of the table or view at a path; if it does not exist, of the column at the path.

    If the column's table does not exist either, the error is about the typed path, else about the column.
    """
    parts = display.parse(path)
    try:
        return ask(parts, column)
    except (NotFoundError, DeniedError):
        if column is not None or len(parts) < 4:
            raise
        try:
            return ask(parts[:-1], parts[-1])
        except NotFoundError as error:
            if NO_COLUMN in error.message:
                raise
        except DeniedError:
            pass
        raise


def _show(graph: LineageGraph, common: CommonFlags, *, up: bool) -> None:
    if common.output_format == "json":
        show_done("", msgspec.to_builtins(graph), output_format="json")
        return
    for line in lines_of(graph, up=up):
        print(visible(line))
    if not graph.complete:
        print("… there are more objects than are shown: request fewer steps")


def lines_of(graph: LineageGraph, *, up: bool) -> list[str]:
    """Format a graph as a tree. A node that occurs again is not expanded again."""
    nodes = {node.id: node for node in graph.nodes}
    following: dict[str, list[LineageEdge]] = {}
    for edge in graph.edges:
        following.setdefault(edge.target if up else edge.source, []).append(edge)
    lines = [_name(nodes[graph.root])]
    _branch(lines, graph.root, prefix="", nodes=nodes, following=following, up=up, printed_ids={graph.root})
    return (
        lines
        if len(lines) > 1
        else [*lines, f"  no object is recorded that {'it comes from' if up else 'comes from it'}"]
    )


def _branch(
    lines: list[str],
    node_id: str,
    *,
    prefix: str,
    nodes: dict[str, LineageNode],
    following: dict[str, list[LineageEdge]],
    up: bool,
    printed_ids: set[str],
) -> None:
    edges = sorted(following.get(node_id, []), key=lambda edge: not edge.direct)
    for number, edge in enumerate(edges, 1):
        last = number == len(edges)
        other = edge.source if up else edge.target
        again = other in printed_ids and bool(following.get(other))
        lines.append(
            f"{prefix}{'└─ ' if last else '├─ '}{_name(nodes[other])}{_edge_origin(edge)}{' (above)' if again else ''}"
        )
        if other not in printed_ids:
            printed_ids.add(other)
            deeper = prefix + ("   " if last else "│  ")
            _branch(lines, other, prefix=deeper, nodes=nodes, following=following, up=up, printed_ids=printed_ids)


def _name(node: LineageNode) -> str:
    if node.path is not None:
        return display.render(node.path if node.column is None else (*node.path, node.column))
    if node.kind == "outside":
        name = f"{node.namespace} {node.name}"
        return f"{name} column {node.column}" if node.column else name
    return "an object that you may not see"


def _edge_origin(edge: LineageEdge) -> str:
    """Describe how columns derive from the source, and by which job."""
    kinds = sorted({kind.lower() for statement in edge.said for kind in statement.kinds})
    words = [*kinds, *([] if edge.direct else ["indirect"])]
    job = f" by {edge.said[0].job.name}" if edge.said else ""
    return f"{'  (' + ', '.join(words) + ')' if words else ''}{job}"
