# SPDX-License-Identifier: Apache-2.0
"""The function `spatial_intersect`: whether two planar shapes intersect.

Must not know plans. GEOS computes with points, lines and polygons; a circle is computed exactly, by its center and
radius. Shapes that touch intersect, with two exceptions as in AsterixDB: a point on the right or the lower edge of a
polygon is outside of it, and parallel lines do not intersect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.rooms.sqlpp.language.functions.costs import unbounded_cost
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import Circle, Line, Point, Polygon, Rectangle, Value

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

Plane = Point | Line | Rectangle | Circle | Polygon


@scalar("spatial_intersect", least=2, cost=unbounded_cost)
def spatial_intersect(one: Value, other: Value) -> Value:
    """Return whether two planar shapes have a point in common."""
    if not isinstance(one, Plane) or not isinstance(other, Plane):
        return None
    if isinstance(one, Polygon) and isinstance(other, Point):
        one, other = other, one
    if isinstance(one, Point) and isinstance(other, Polygon):
        return _is_inside(one, other)
    if isinstance(one, Line) and isinstance(other, Line) and _is_parallel(one, other):
        return False
    reach = _radius(one) + _radius(other)
    first, second = _geometry(one), _geometry(other)
    return bool(first.distance(second) <= reach) if reach else bool(first.intersects(second))


def _is_inside(point: Point, polygon: Polygon) -> bool:
    """Return whether a point is inside a polygon: a ray to the right crosses an odd number of the polygon's edges."""
    x, y = point.coordinates
    corners = list(zip(polygon.coordinates[::2], polygon.coordinates[1::2], strict=True))
    inside = False
    for (start_x, start_y), (end_x, end_y) in zip(corners, corners[1:] + corners[:1], strict=True):
        if min(start_y, end_y) < y <= max(start_y, end_y):
            inside ^= x < start_x + (y - start_y) * (end_x - start_x) / (end_y - start_y)
    return inside


def _is_parallel(one: Line, other: Line) -> bool:
    """Return whether two lines are parallel."""
    (ax, ay, bx, by), (cx, cy, dx, dy) = one.coordinates, other.coordinates
    return (bx - ax) * (dy - cy) == (by - ay) * (dx - cx)


def _radius(shape: Plane) -> float:
    return shape.coordinates[2] if isinstance(shape, Circle) else 0.0


def _geometry(shape: Plane) -> BaseGeometry:
    """Convert a shape to a GEOS geometry; a circle to its center."""
    from shapely import geometry  # noqa: PLC0415 - takes a second, and few servers compute with shapes

    coordinates = shape.coordinates
    pairs = list(zip(coordinates[::2], coordinates[1::2], strict=False))
    match shape:
        case Point():
            return geometry.Point(coordinates)
        case Circle():
            return geometry.Point(coordinates[:2])
        case Line():
            return geometry.LineString(pairs)
        case Rectangle():
            return geometry.box(*coordinates)
    return geometry.Polygon(pairs)
