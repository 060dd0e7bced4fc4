"""The graph of a pipeline as a drawing: sources, tables, and the rows that went along each edge.

Job: values in, SVG out. May import the standard library only; it must not know where the numbers are from.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 190, 44, 110, 22, 12


@dataclass(frozen=True, slots=True)
class Edge:
    """From what is read to what is made, with the rows that went along it; None: not counted."""

    start: str
    end: str
    rows: int | None


def columns(edges: Sequence[Edge]) -> list[list[str]]:
    """The names by how many edges lie before them at most, in the order in which they are named."""
    names = list(dict.fromkeys(name for edge in edges for name in (edge.start, edge.end)))
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for edge in edges:
            depth[edge.end] = max(depth[edge.end], depth[edge.start] + 1)
    return [[name for name in names if depth[name] == level] for level in range(max(depth.values(), default=-1) + 1)]


def drawing(edges: Sequence[Edge], *, notes: Mapping[str, str]) -> str:
    """The graph as one SVG element; `notes` are second lines of names. Texts are escaped."""
    levels = columns(edges)
    tallest = max((len(level) for level in levels), default=0)
    height = 2 * _MARGIN + tallest * (_HEIGHT + _GAP_Y)
    width = 2 * _MARGIN + len(levels) * (_WIDTH + _GAP_X) - _GAP_X
    places = {
        name: _place(at, row, count=len(level), height=height)
        for at, level in enumerate(levels)
        for row, name in enumerate(level)
    }
    lines = "".join(_line(edge, places) for edge in edges)
    boxes = "".join(_box(name, place, note=notes.get(name, "")) for name, place in places.items())
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Graph of the pipeline" class="graph">{lines}{boxes}</svg>'


def _place(level: int, row: int, *, count: int, height: int) -> tuple[float, float]:
    step = (height - 2 * _MARGIN) / count
    return _MARGIN + level * (_WIDTH + _GAP_X), _MARGIN + step * row + (step - _HEIGHT) / 2


def _line(edge: Edge, places: Mapping[str, tuple[float, float]]) -> str:
    (x1, y1), (x2, y2) = places[edge.start], places[edge.end]
    x1, y1, y2 = x1 + _WIDTH, y1 + _HEIGHT / 2, y2 + _HEIGHT / 2
    bend = (x2 - x1) / 2
    path = f'<path d="M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"/>'
    if edge.rows is None:
        return path
    x, y = x1 + 6, y1 - 5
    return f'{path}<text class="rows" x="{x:.0f}" y="{y:.0f}">{edge.rows:,}</text>'


def _box(name: str, place: tuple[float, float], *, note: str) -> str:
    x, y = place
    first = y + (_HEIGHT / 2 + 5 if not note else 19)
    second = f'<text class="note" x="{x + 10:.0f}" y="{y + 35:.0f}">{html.escape(note)}</text>' if note else ""
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
        f'<text x="{x + 10:.0f}" y="{first:.0f}">{html.escape(name)}</text>{second}'
    )
