# SPDX-License-Identifier: Apache-2.0
"""Layered layout (Sugiyama) of directed graphs, for diagrams of lineage and of pipelines.

Pure. Layers go from left to right. Cycles are allowed: the edges that close a cycle are marked as back edges, and drawn
from right to left. An edge over several layers has a waypoint in each layer that it crosses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

ORDER_SWEEPS: Final = 6
PLACE_SWEEPS: Final = 8
POINTS_MAX: Final = 300
"""The maximum number of points of edges over several layers, in total."""
_Point = tuple[float, float]
_Key = tuple[str, int]
"""A vertex with 0, or a point of a long edge: the edge's key and the layer."""


class GraphSizes(NamedTuple):
    """Sizes in pixels: width and height of a node, and the gaps between layers (x) and between nodes (y)."""

    width: int = 184
    height: int = 44
    gap_x: int = 64
    gap_y: int = 16


DEFAULT_SIZES: Final = GraphSizes()


class RoutedEdge(NamedTuple):
    """An edge with the points of its polyline. `is_back` edges close a cycle."""

    source: str
    target: str
    points: tuple[_Point, ...]
    is_back: bool


class GraphLayout(NamedTuple):
    """The upper left corner of each node, the routed edges, and the total size."""

    corners: dict[str, _Point]
    edges: tuple[RoutedEdge, ...]
    width: float
    height: float


def layered_layout(
    nodes: Sequence[str],
    edges: Iterable[tuple[str, str]],
    *,
    sizes: GraphSizes = DEFAULT_SIZES,
    heights: Mapping[str, int] | None = None,
) -> GraphLayout:
    """Return the layout of a graph. Self-loops, duplicate edges, and edges with unknown nodes are omitted.

    `heights` are the heights of nodes, in pixels, that differ from that in `sizes`.
    """
    known_heights = heights or {}
    node_ids = set(nodes)
    distinct_edges = list(dict.fromkeys(each for each in edges if each[0] != each[1] and node_ids.issuperset(each)))
    back = _closing_edges(nodes, distinct_edges)
    forward = [(each[1], each[0]) if each in back else each for each in distinct_edges]
    layer_of = _layers(nodes, forward)
    chains = _chains(forward, layer_of)
    layers, before, after = _rows(nodes, layer_of, chains=chains)
    _order(layers, before, after=after)
    halves = {name: known_heights.get(name, sizes.height) / 2 for name in nodes}
    centres = _places(layers, before, after=after, halves=halves, gap=sizes.gap_y)
    step = sizes.width + sizes.gap_x
    corners = {name: (float(layer_of[name] * step), centres[name, 0] - halves[name]) for name in nodes}
    routed = tuple(
        RoutedEdge(*edge, _route(chain, corners, centres=centres, sizes=sizes), edge in back)
        for edge, chain in zip(distinct_edges, chains, strict=True)
    )
    height = max((corner[1] + 2 * halves[name] for name, corner in corners.items()), default=float(sizes.height))
    return GraphLayout(corners, routed, (max(layer_of.values(), default=0) + 1) * step - sizes.gap_x, height)


def svg_path(points: Sequence[tuple[float, float]], *, margin: int) -> str:
    """Return the SVG path of an edge: curves between the layers, and straight lines through them. `margin` pixels are
    added on the left and above.
    """
    (x, y), *others = [(round(x) + margin, round(y) + margin) for x, y in points]
    parts = [f"M{x} {y}"]
    for number, (right, low) in enumerate(others):
        if number % 2:
            parts.append(f"L{right} {low}")
        else:
            middle = (x + right) // 2
            parts.append(f"C{middle} {y} {middle} {low} {right} {low}")
        x, y = right, low
    return "".join(parts)


def _closing_edges(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the back edges of a depth-first search. The graph without them is acyclic."""
    out: dict[str, list[str]] = {name: [] for name in nodes}
    has_source = set()
    for source, target in edges:
        out[source].append(target)
        has_source.add(target)
    state: dict[str, int] = {}
    back: set[tuple[str, str]] = set()
    for root in sorted(nodes, key=lambda name: name in has_source):
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(out[root]))]
        while stack:
            at, following = stack[-1]
            neighbour = next(following, None)
            if neighbour is None:
                state[at] = 2
                stack.pop()
            elif state.get(neighbour) == 1:
                back.add((at, neighbour))
            elif neighbour not in state:
                state[neighbour] = 1
                stack.append((neighbour, iter(out[neighbour])))
    return back


def _layers(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the layer of each node: the length of the longest path to it; nodes without incoming edges are moved to
    the layer before their targets.
    """
    out: dict[str, list[str]] = {name: [] for name in nodes}
    missing = dict.fromkeys(nodes, 0)
    for source, target in edges:
        out[source].append(target)
        missing[target] += 1
    sources = [name for name in nodes if not missing[name]]
    layer_of = dict.fromkeys(nodes, 0)
    waiting = deque(sources)
    while waiting:
        at = waiting.popleft()
        for target in out[at]:
            layer_of[target] = max(layer_of[target], layer_of[at] + 1)
            missing[target] -= 1
            if not missing[target]:
                waiting.append(target)
    for name in sources:
        layer_of[name] = max(0, min((layer_of[target] for target in out[name]), default=1) - 1)
    return layer_of


def _chains(edges: Sequence[tuple[str, str]], layer_of: dict[str, int]) -> list[list[_Key]]:
    """Return the waypoints of each edge.

    If all edges together have more than `POINTS_MAX` waypoints, the longest edges are straight lines without waypoints.
    """
    lengths = sorted(layer_of[target] - layer_of[source] for source, target in edges)
    points, longest = 0, 0
    for length in lengths:
        points += length - 1
        if points > POINTS_MAX:
            longest = length - 1
            break
        longest = length
    return [
        _chain(each, layer_of) if layer_of[each[1]] - layer_of[each[0]] <= longest else [(each[0], 0), (each[1], 0)]
        for each in edges
    ]


def _chain(edge: tuple[str, str], layer_of: dict[str, int]) -> list[_Key]:
    source, target = edge
    between = range(layer_of[source] + 1, layer_of[target])
    return [(source, 0), *((f"{source}\0{target}", layer) for layer in between), (target, 0)]


_Neighbours = dict[_Key, list[_Key]]


def _rows(
    nodes: Sequence[str], layer_of: dict[str, int], *, chains: Sequence[list[_Key]]
) -> tuple[list[list[_Key]], _Neighbours, _Neighbours]:
    layers: list[list[_Key]] = [[] for _ in range(max(layer_of.values(), default=0) + 1)]
    for name in nodes:
        layers[layer_of[name]].append((name, 0))
    before: _Neighbours = {}
    after: _Neighbours = {}
    for chain in chains:
        for key in chain[1:-1]:
            layers[key[1]].append(key)
        is_straight = len(chain) == 2 and layer_of[chain[1][0]] - layer_of[chain[0][0]] > 1
        for left, right in () if is_straight else pairwise(chain):
            after.setdefault(left, []).append(right)
            before.setdefault(right, []).append(left)
    return layers, before, after


def _order(layers: list[list[_Key]], before: _Neighbours, *, after: _Neighbours) -> None:
    """Order each layer by the medians of its neighbours, in both directions, and keep the order with the fewest
    crossings.
    """
    best, fewest = [list(layer) for layer in layers], _crossings(layers, after)
    for sweep in range(ORDER_SWEEPS):
        if not fewest:
            break
        is_down = sweep % 2 == 0
        neighbours = before if is_down else after
        numbers = range(1, len(layers)) if is_down else range(len(layers) - 2, -1, -1)
        for number in numbers:
            at = {key: index for index, key in enumerate(layers[number - 1 if is_down else number + 1])}
            order_by_key = {key: index for index, key in enumerate(layers[number])}
            layers[number].sort(
                key=lambda key: (
                    _median([at[each] for each in neighbours[key]]) if key in neighbours else order_by_key[key]
                )
            )
        count = _crossings(layers, after)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    layers[:] = best


def _median(values: list[float] | list[int]) -> float:
    """Return the median of one or more numbers; nearly all have one or two, for which `statistics` is slow."""
    count = len(values)
    if count == 1:
        return values[0]
    if count == 2:
        return (values[0] + values[1]) / 2
    sorted_values = sorted(values)
    middle = count // 2
    return sorted_values[middle] if count % 2 else (sorted_values[middle - 1] + sorted_values[middle]) / 2


def _crossings(layers: list[list[_Key]], after: _Neighbours) -> int:
    """Count the edge crossings between neighbouring layers, as inversions of the edges' end positions."""
    total = 0
    for left, right in pairwise(layers):
        place = {key: number for number, key in enumerate(right)}
        positions: list[int] = []
        for key in left:
            for end in sorted([place[each] for each in after.get(key, ())]):
                at = bisect_right(positions, end)
                total += len(positions) - at
                positions.insert(at, end)
    return total


def _places(
    layers: list[list[_Key]],
    before: _Neighbours,
    *,
    after: _Neighbours,
    halves: Mapping[str, float],
    gap: int,
) -> dict[_Key, float]:
    """Return the vertical centre of each node and waypoint: near the median of its neighbours, without changing the
    order of the layer or its gaps.
    """
    offsets = [_offsets(layer, halves, gap=gap) for layer in layers]
    centres = {
        key: place for layer, own in zip(layers, offsets, strict=True) for key, place in zip(layer, own, strict=True)
    }
    for sweep in range(PLACE_SWEEPS):
        neighbours = (before, after)[sweep % 2]
        for layer, own in zip(layers, offsets, strict=True):
            targets = [
                _median([centres[each] for each in neighbours[key]]) if key in neighbours else centres[key]
                for key in layer
            ]
            fitted = _isotonic([place - offset for place, offset in zip(targets, own, strict=True)])
            centres.update(zip(layer, [place + offset for place, offset in zip(fitted, own, strict=True)], strict=True))
    top = min((centre - _half_height(key, halves) for key, centre in centres.items()), default=0.0)
    return {key: place - top for key, place in centres.items()}


def _offsets(layer: list[_Key], halves: Mapping[str, float], *, gap: int) -> list[float]:
    """Return the vertical centres of a layer's nodes in the tightest layout."""
    offsets: list[float] = []
    at = 0.0
    for key in layer:
        half = _half_height(key, halves)
        at += half
        offsets.append(at)
        at += half + gap
    return offsets


def _half_height(key: _Key, halves: Mapping[str, float]) -> float:
    """Return half of the height of a node; waypoints of edges need less than nodes."""
    return halves[key[0]] if key[1] == 0 else 2.0


def _isotonic(values: Sequence[float]) -> list[float]:
    """Isotonic regression: return the non-decreasing sequence nearest to the values, by the pool-adjacent-violators
    algorithm.
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            more, others = pools.pop()
            total, count = total + more, count + others
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


def _route(
    chain: list[_Key], corners: dict[str, _Point], *, centres: dict[_Key, float], sizes: GraphSizes
) -> tuple[_Point, ...]:
    """Return the points of an edge: from the right side of its left node, through its waypoints, to the left side of
    its right node.
    """
    step = sizes.width + sizes.gap_x
    left, right = corners[chain[0][0]], corners[chain[-1][0]]
    points = [(left[0] + sizes.width, centres[chain[0]])]
    for key in chain[1:-1]:
        points += [(float(key[1] * step), centres[key]), (float(key[1] * step + sizes.width), centres[key])]
    return (*points, (right[0], centres[chain[-1]]))
