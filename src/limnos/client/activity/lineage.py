# SPDX-License-Identifier: Apache-2.0
"""Calls on lineage: sending events, and reading the graph around a table, view or column (own API).

Paths start with the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from limnos.client.flow import Flow, Resource, S, call, decode, request, verb
from limnos.client.paths import table_parts
from limnos.client.values import LineageEdge, LineageGraph, LineageNode, LineageReceipt
from limnos.names import display


class Lineage(Resource[S]):
    """Calls that report and read the lineage of tables, views and columns."""

    @verb
    def send(self, event: Mapping[str, object]) -> Flow[LineageReceipt]:
        """Send an OpenLineage event. Datasets that the caller may not change or see are skipped and reported."""
        return call("POST", self.own_url("lineage"), answer=LineageReceipt, body=event)

    @verb
    def up(self, path: str | Sequence[str], *, column: str | None = None, depth: int = 1) -> Flow[LineageGraph]:
        """Return the sources of a table, view or column, up to `depth` steps."""
        return (yield from self._graph(path, column, depth=depth, direction="up"))

    @verb
    def down(self, path: str | Sequence[str], *, column: str | None = None, depth: int = 1) -> Flow[LineageGraph]:
        """Return the objects derived from a table, view or column, up to `depth` steps."""
        return (yield from self._graph(path, column, depth=depth, direction="down"))

    def _graph(
        self, path: str | Sequence[str], column: str | None, *, depth: int, direction: str
    ) -> Flow[LineageGraph]:
        """Read all pages of a lineage graph and merge them. `direction` is `up` (sources) or `down` (derived
        objects).
        """
        query = {
            "path": display.render(table_parts(path)),
            "column": column,
            "depth": str(depth),
            "direction": direction,
        }
        nodes: dict[str, LineageNode] = {}
        edges: list[LineageEdge] = []
        after: str | None = None
        while True:
            reply = yield request("GET", self.own_url("lineage"), query=query | {"after": after})
            page = decode(reply, LineageGraph)
            nodes |= {node.id: node for node in page.nodes}
            edges += page.edges
            after = page.after
            if after is None:
                return msgspec.structs.replace(page, nodes=tuple(nodes.values()), edges=tuple(edges))
