# SPDX-License-Identifier: Apache-2.0
"""Layered graph layout: order, cycles, no overlaps, and bounded work for large graphs."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from limnos.formats.graphs import POINTS_MAX, GraphSizes, layered_layout

SIZES = GraphSizes()
GRAPHS = st.integers(1, 24).flatmap(
    lambda count: st.tuples(
        st.just([str(number) for number in range(count)]),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=60),
    )
)


@given(GRAPHS)
def test_nodes_do_not_overlap_and_edges_point_right(graph: tuple[list[str], list[tuple[int, int]]]) -> None:
    """For any edges, nodes keep their distance, every edge goes from left to right, and edges of cycles are marked."""
    nodes, numbers = graph
    edges = [(str(source), str(target)) for source, target in numbers]

    layout = layered_layout(nodes, edges, sizes=SIZES)

    corners = sorted(layout.corners.values())
    assert set(layout.corners) == set(nodes)
    for (left, top), (other, low) in pairwise(corners):
        assert left != other or low - top >= SIZES.height
    for edge in layout.edges:
        xs = [point[0] for point in edge.points]
        assert xs == sorted(xs)
        left, right = (edge.target, edge.source) if edge.is_back else (edge.source, edge.target)
        assert layout.corners[left][0] < layout.corners[right][0]
    assert {(each.source, each.target) for each in layout.edges} == {each for each in edges if each[0] != each[1]}


def test_layers_follow_longest_path() -> None:
    """Layers follow the longest path. A long edge has points in the layers between its ends."""
    layout = layered_layout(list("abcd"), [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])

    assert [layout.corners[name][0] for name in "abcd"] == [0, 248, 496, 744]
    assert [len(each.points) for each in layout.edges] == [2, 2, 4, 2]
    assert not any(each.is_back for each in layout.edges)


def test_cycle_of_two_tables_has_one_backward_edge() -> None:
    """If two tables read each other, one of the two edges is drawn backwards."""
    layout = layered_layout(["a", "b"], [("a", "b"), ("b", "a")])

    assert [each.is_back for each in layout.edges] == [False, True]


def test_empty_graph_has_empty_layout() -> None:
    """A graph without nodes has an empty layout."""
    assert layered_layout([], []).edges == ()


def test_number_of_edge_points_is_bounded() -> None:
    """In a graph with many long edges the total number of their points is limited; the others are straight."""
    nodes = [str(number) for number in range(120)]
    edges = [(str(number), str(number * step % 120)) for number in range(120) for step in (3, 7, 11)]

    layout = layered_layout(nodes, edges)

    assert sum(len(each.points) - 2 for each in layout.edges) <= 2 * POINTS_MAX
    assert len(layout.corners) == 120


@given(GRAPHS, st.lists(st.integers(44, 400), min_size=24, max_size=24))
def test_tall_nodes_do_not_overlap(graph: tuple[list[str], list[tuple[int, int]]], tall: list[int]) -> None:
    """Nodes of different heights keep their distance, begin at 0 or below, and end within the picture."""
    nodes, numbers = graph
    heights = dict(zip(nodes, tall, strict=False))

    layout = layered_layout(nodes, [(str(source), str(target)) for source, target in numbers], heights=heights)

    for name, other in pairwise(sorted(nodes, key=lambda one: layout.corners[one])):
        (left, top), (next_left, next_top) = layout.corners[name], layout.corners[other]
        assert left != next_left or next_top - top >= heights[name] + SIZES.gap_y - 0.001
    assert min(top for _, top in layout.corners.values()) >= -0.001
    assert max(layout.corners[name][1] + heights[name] for name in nodes) == layout.height
