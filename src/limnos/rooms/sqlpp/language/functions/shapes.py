# SPDX-License-Identifier: Apache-2.0
"""Functions on points, lines, rectangles, circles and polygons: construction, text, parts, distance and area.

Must not know plans. In a string, a shape is a list of points, as in `1,2 3,4`. The result is NULL for arguments of
other types.
"""

from __future__ import annotations

import math
import re

from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.costs import character_cost, linear_cost, unit_cost
from limnos.rooms.sqlpp.language.functions.numbers import number
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import (
    SHAPES,
    Circle,
    Line,
    Point,
    Point3D,
    Polygon,
    Rectangle,
    Shape,
    Value,
    type_of_shape,
)
from limnos.rooms.sqlpp.language.values.text import real_text

_REAL = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?[dDfF]?"
_PAIR = rf"{_REAL}\s*,\s*{_REAL}"
_TEXTS: dict[type[Shape], re.Pattern[str]] = {
    Point: re.compile(_PAIR, re.ASCII),
    Point3D: re.compile(rf"{_PAIR}\s*,\s*{_REAL}", re.ASCII),
    Line: re.compile(rf"{_PAIR}\s+{_PAIR}", re.ASCII),
    Rectangle: re.compile(rf"{_PAIR}\s+{_PAIR}", re.ASCII),
    Circle: re.compile(rf"{_PAIR}\s+{_REAL}", re.ASCII),
    Polygon: re.compile(rf"{_PAIR}(?:\s+{_PAIR}){{2,}}", re.ASCII),
}
_NUMBER = re.compile(_REAL, re.ASCII)
_TEXT_MAX = 1 << 16
_PI = 3.14159265
"""The number by which AsterixDB computes areas of circles."""


def shape_of(text: str, kind: type[Shape]) -> Value:
    """Parse a shape; NULL if the string is malformed."""
    text = text.strip()
    if len(text) > _TEXT_MAX or _TEXTS[kind].fullmatch(text) is None:
        return None
    coordinates = tuple(float(one.rstrip("dDfF")) for one in _NUMBER.findall(text))
    return _rectangle(coordinates) if kind is Rectangle else kind(coordinates)


def shape_text(value: Shape) -> str:
    """Format a shape as a string that `shape_of` parses."""
    if isinstance(value, (Point, Point3D)):
        return ",".join(map(real_text, value.coordinates))
    pairs = zip(value.coordinates[::2], value.coordinates[1::2], strict=False)
    text = " ".join(f"{real_text(x)},{real_text(y)}" for x, y in pairs)
    return f"{text} {real_text(value.coordinates[2])}" if isinstance(value, Circle) else text


def shape_items(value: Shape) -> tuple[Value, ...]:
    """Return a shape as nested arrays, for JSON: its points, and for a circle its center and radius."""
    if isinstance(value, (Point, Point3D)):
        return value.coordinates
    pairs = tuple(zip(value.coordinates[::2], value.coordinates[1::2], strict=False))
    return (*pairs, value.coordinates[2]) if isinstance(value, Circle) else pairs


def _rectangle(corners: tuple[float, ...]) -> Rectangle:
    """Return the rectangle between two opposite corners."""
    x, y, other_x, other_y = corners
    return Rectangle((min(x, other_x), min(y, other_y), max(x, other_x), max(y, other_y)))


def _register_constructor(kind: type[Shape]) -> None:
    def run(value: Value) -> Value:
        if isinstance(value, str):
            return shape_of(value, kind)
        return value if isinstance(value, kind) else None

    name = type_of_shape(kind)
    scalar(name, least=1, cost=character_cost)(run)
    scalar(f"is_{name}", f"is{name}", least=1, cost=unit_cost)(lambda value: isinstance(value, kind))


for _kind in SHAPES:
    _register_constructor(_kind)
scalar("is_spatial", "isspatial", least=1, cost=unit_cost)(lambda value: isinstance(value, SHAPES))


@scalar("create_point", least=2, cost=unit_cost)
def create_point(x: Value, y: Value) -> Value:
    """Create a point from two coordinates; NULL if one is not a number."""
    first, second = number(x), number(y)
    return None if first is None or second is None else Point((float(first), float(second)))


@scalar("create_line", least=2, cost=unit_cost)
def create_line(start: Value, end: Value) -> Value:
    """Return a line between two points."""
    return Line((*start.coordinates, *end.coordinates)) if isinstance(start, Point) and isinstance(end, Point) else None


@scalar("create_rectangle", least=2, cost=unit_cost)
def create_rectangle(corner: Value, opposite: Value) -> Value:
    """Return a rectangle between two opposite corners."""
    if not isinstance(corner, Point) or not isinstance(opposite, Point):
        return None
    return _rectangle((*corner.coordinates, *opposite.coordinates))


@scalar("create_circle", least=2, cost=unit_cost)
def create_circle(center: Value, radius: Value) -> Value:
    """Return a circle around a point."""
    length = number(radius)
    return None if not isinstance(center, Point) or length is None else Circle((*center.coordinates, float(length)))


@scalar("create_polygon", least=1, cost=linear_cost)
def create_polygon(value: Value) -> Value:
    """Return a polygon of at least three corners, from a flat array of their x and y."""
    numbers = [number(one) for one in items(value) or ()]
    coordinates = [float(one) for one in numbers if one is not None]
    return Polygon(tuple(coordinates)) if len(coordinates) == len(numbers) >= 6 and len(coordinates) % 2 == 0 else None


def _register_coordinate(name: str, at: int) -> None:
    scalar(name, least=1, cost=unit_cost)(lambda value: value.coordinates[at] if isinstance(value, Point) else None)


_register_coordinate("get_x", 0)
_register_coordinate("get_y", 1)


@scalar("get_points", least=1, cost=linear_cost)
def get_points(value: Value) -> Value:
    """Return the points that define a shape: a point, two ends, two opposite corners of a rectangle, all corners of a
    polygon, or the center of a circle.
    """
    if not isinstance(value, (Point, Line, Rectangle, Circle, Polygon)):
        return None
    coordinates = value.coordinates[:2] if isinstance(value, Circle) else value.coordinates
    return tuple(Point(pair) for pair in zip(coordinates[::2], coordinates[1::2], strict=True))


@scalar("get_center", least=1, cost=unit_cost)
def get_center(value: Value) -> Value:
    """Return the center of a circle."""
    return Point(value.coordinates[:2]) if isinstance(value, Circle) else None


@scalar("get_radius", least=1, cost=unit_cost)
def get_radius(value: Value) -> Value:
    """Return the radius of a circle."""
    return value.coordinates[2] if isinstance(value, Circle) else None


@scalar("spatial_distance", least=2, cost=unit_cost)
def spatial_distance(one: Value, other: Value) -> Value:
    """Return the Euclidean distance of two points."""
    if not isinstance(one, Point) or not isinstance(other, Point):
        return None
    return math.sqrt(sum((a - b) * (a - b) for a, b in zip(one.coordinates, other.coordinates, strict=True)))


@scalar("spatial_area", least=1, cost=linear_cost)
def spatial_area(value: Value) -> Value:
    """Return the area of a rectangle, a circle or a polygon."""
    match value:
        case Rectangle((x, y, other_x, other_y)):
            return (other_x - x) * (other_y - y)
        case Circle((_, _, radius)):
            return _PI * radius * radius
        case Polygon(known):
            corners = list(zip(known[::2], known[1::2], strict=True))
            following = [*corners[1:], corners[0]]
            return abs(sum(x * v - u * y for (x, y), (u, v) in zip(corners, following, strict=True))) / 2
    return None


@scalar("spatial_cell", least=4, cost=unit_cost)
def spatial_cell(point: Value, origin: Value, width: Value, height: Value) -> Value:
    """Return the grid cell that contains a point: a rectangle of the given width and height. `origin` is a corner of a
    cell.
    """
    wide, high = number(width), number(height)
    if not isinstance(point, Point) or not isinstance(origin, Point) or not wide or not high:
        return None
    left, below = origin.coordinates
    x = left + math.floor((point.coordinates[0] - left) / wide) * wide
    y = below + math.floor((point.coordinates[1] - below) / high) * high
    return Rectangle((x, y, x + wide, y + high))
