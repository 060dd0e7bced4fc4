# SPDX-License-Identifier: Apache-2.0
"""The client's lineage calls: pages are joined into one graph, and events are sent unchanged."""

from __future__ import annotations

from limnos.client import Client
from tests.client.fake import FakeServer

LINEAGE = "/api/limnos/v1/metalakes/lake/lineage"


def test_pages_become_one_graph(fake: FakeServer, client: Client) -> None:
    """All pages are requested; a node on several pages occurs once."""
    root = {"id": "1", "kind": "table", "path": ["main", "a", "t"]}
    first = {
        "root": "1",
        "nodes": [root, {"id": "hidden-1", "kind": "hidden"}],
        "after": "1-x",
        "edges": [{"source": "hidden-1", "target": "1", "depth": 1}],
    }
    second = {
        "root": "1",
        "nodes": [root, {"id": "2", "kind": "outside", "namespace": "s3://b", "name": "x"}],
        "after": None,
        "edges": [
            {
                "source": "2",
                "target": "1",
                "depth": 1,
                "direct": True,
                "said": [
                    {
                        "job": {"namespace": "n", "name": "j"},
                        "at": "2026-01-31T00:00:00Z",
                        "by": "ana",
                        "kinds": ["IDENTITY"],
                    }
                ],
            }
        ],
    }
    query = "path=main.a.t&column=c&depth=2&direction=up"
    fake.on("GET", f"{LINEAGE}?{query}", first)
    fake.on("GET", f"{LINEAGE}?{query}&after=1-x", second)

    graph = client.lineage.up("main.a.t", column="c", depth=2)

    assert [node.id for node in graph.nodes] == ["1", "hidden-1", "2"]
    assert [edge.source for edge in graph.edges] == ["hidden-1", "2"]
    assert (graph.edges[1].said[0].job.name, graph.after) == ("j", None)


def test_events_are_sent(fake: FakeServer, client: Client) -> None:
    """The answer names the stored and the ignored parts of the events."""
    fake.on("POST", LINEAGE, {"kept": 2, "left_out": [{"namespace": "n", "name": "d", "reason": "r"}]}, status=201)

    receipt = client.lineage.send({"eventTime": "2026-01-31T00:00:00Z"})

    assert (receipt.kept, receipt.left_out[0].reason) == (2, "r")
