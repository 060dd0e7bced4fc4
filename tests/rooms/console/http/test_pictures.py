# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs: limited in nodes and lines, with a count of the omitted ones."""

from __future__ import annotations

from limnos.rooms.console.http.pictures import EDGES_MAX, NODES_MAX, PictureNode, graph_picture


def nodes(count: int) -> list[PictureNode]:
    """Nodes with numbers as ids."""
    return [
        PictureNode(id=str(each), name=f"t{each}", place="main.raw", icon="table", href="", look="plain")
        for each in range(count)
    ]


def test_a_dense_graph_is_bounded_and_the_rest_is_counted() -> None:
    """The picture has the first nodes and the first lines between them. The number of omitted lines excludes lines to
    omitted nodes.
    """
    edges = [(str(one), str(two)) for one in range(30) for two in range(30, 60)]
    edges += [("0", str(NODES_MAX + 5))]

    picture = graph_picture("dense", nodes(NODES_MAX + 10), edges=edges)

    assert len(picture.nodes) == NODES_MAX
    assert len(picture.lines) == EDGES_MAX
    assert (picture.left_out, picture.lines_left_out) == (10, 900 - EDGES_MAX)


def test_small_graph_is_drawn_completely() -> None:
    """Nothing is left out below the limits."""
    picture = graph_picture("small", nodes(3), edges=[("0", "1"), ("1", "2"), ("2", "0")])

    assert (len(picture.nodes), len(picture.lines)) == (3, 3)
    assert (picture.left_out, picture.lines_left_out) == (0, 0)
    assert sum(line.is_back for line in picture.lines) == 1
