# SPDX-License-Identifier: Apache-2.0
"""The graph of a pipeline as a drawing: sources, tables, and the number of rows along each edge.

Job: values in, SVG out. May import the standard library only; it must not know the origin of the numbers.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WIDTH_MIN, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 190, 44, 110, 22, 12
_PAD = 10
_LETTER, _NOTE_LETTER = 9.0, 7.5
"""More than the mean width of a letter in the report's fonts, so that every text fits into its box."""


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge from an input to a table, with the number of rows read; None: not counted."""

    start: str
    end: str
    rows: int | None


def columns(edges: Sequence[DrawnEdge]) -> list[list[str]]:
    """Return the names by the maximum number of edges before them, in the given order."""
    names = list(dict.fromkeys(name for edge in edges for name in (edge.start, edge.end)))
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for edge in edges:
            depth[edge.end] = max(depth[edge.end], depth[edge.start] + 1)
    return [[name for name in names if depth[name] == level] for level in range(max(depth.values(), default=-1) + 1)]


def drawing(edges: Sequence[DrawnEdge], *, notes: Mapping[str, str]) -> str:
    """Return the graph as one SVG element; `notes` are second lines of names. Texts are escaped."""
    levels = columns(edges)
    tallest = max((len(level) for level in levels), default=0)
    height = 2 * _MARGIN + tallest * (_HEIGHT + _GAP_Y)
    names = [name for level in levels for name in level]
    box = max([_WIDTH_MIN, *(_text_width(name, notes.get(name, "")) for name in names)])
    width = 2 * _MARGIN + len(levels) * (box + _GAP_X) - _GAP_X
    places = {
        name: _place(at, row, count=len(level), height=height, width=box)
        for at, level in enumerate(levels)
        for row, name in enumerate(level)
    }
    lines = "".join(_line(edge, places, width=box) for edge in edges)
    boxes = "".join(_box(name, place, note=notes.get(name, ""), width=box) for name, place in places.items())
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Graph of the pipeline"'
        f' class="graph">{lines}{boxes}</svg>'
    )


def _text_width(name: str, note: str) -> int:
    """Return the width of a box that contains both lines, in the drawing's units."""
    return math.ceil(2 * _PAD + max(_LETTER * len(name), _NOTE_LETTER * len(note)))


def _place(level: int, row: int, *, count: int, height: int, width: int) -> tuple[float, float]:
    step = (height - 2 * _MARGIN) / count
    return _MARGIN + level * (width + _GAP_X), _MARGIN + step * row + (step - _HEIGHT) / 2


def _line(edge: DrawnEdge, places: Mapping[str, tuple[float, float]], *, width: int) -> str:
    (x1, y1), (x2, y2) = places[edge.start], places[edge.end]
    x1, y1, y2 = x1 + width, y1 + _HEIGHT / 2, y2 + _HEIGHT / 2
    bend = (x2 - x1) / 2
    path = f'<path d="M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"/>'
    if edge.rows is None:
        return path
    x, y = x1 + 6, y1 - 5
    return f'{path}<text class="rows" x="{x:.0f}" y="{y:.0f}">{edge.rows:,}</text>'


def _box(name: str, place: tuple[float, float], *, note: str, width: int) -> str:
    x, y = place
    first = y + (_HEIGHT / 2 + 5 if not note else 19)
    second = f'<text class="note" x="{x + _PAD:.0f}" y="{y + 35:.0f}">{html.escape(note)}</text>' if note else ""
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width}" height="{_HEIGHT}" rx="6"/>'
        f'<text x="{x + _PAD:.0f}" y="{first:.0f}">{html.escape(name)}</text>{second}'
    )
