# SPDX-License-Identifier: Apache-2.0
"""The functions `st_…` on geometries: construction, parts, predicates, and set operations.

Must not know plans. GEOS computes the results, with planar coordinates as in AsterixDB. The result is NULL for
arguments of other types and for malformed strings. Most functions have a second name without `_` between words. As in
AsterixDB, `st_geometry_n`, `st_point_n` and `st_interior_ring_n` count from 0, and the separate functions
`st_geometryn`, `st_pointn` and `st_interiorringn` from 1. AsterixDB's functions that need coordinate reference systems
(`st_transform`, `st_distance_spheroid`) are not supported.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from limnos.rooms.sqlpp.language.functions import geojson
from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.costs import unbounded_cost
from limnos.rooms.sqlpp.language.functions.numbers import number
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.values.model import Geometry, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shapely.geometry.base import BaseGeometry

EARTH_RADIUS_M: Final = 6_371_008.0
_REASON: Final = re.compile(r"(?P<what>.+)\[(?P<x>\S+) (?P<y>\S+)\]")
_MATRIX: Final = re.compile(r"[FT012*]{9}", re.ASCII)
_COLLECTED: Final = {1: "Point", 2: "LineString", 3: "Polygon"}


def _names(name: str) -> tuple[str, ...]:
    """Return the names of a function: with and without `_` between its words."""
    short = "st_" + name.removeprefix("st_").replace("_", "")
    return (name, short) if name.startswith("st_") and short != name else (name,)


def _value(result: object) -> Value:
    """Convert a result of GEOS, a geometry or a numpy scalar, to a SQL++ value."""
    if hasattr(result, "geom_type"):
        return geojson.geometry_of(result)
    return result.item() if hasattr(result, "item") else result  # type: ignore[return-value]


def _call_geos(run: Callable[..., object], *arguments: object) -> Value:
    """Call a GEOS function and convert its result; NULL if GEOS raises an error, as for rings that intersect
    themselves.
    """
    from shapely.errors import ShapelyError  # noqa: PLC0415

    try:
        return _value(run(*arguments))
    except (ShapelyError, ValueError, OverflowError):
        return None


def _register(name: str, run: Callable[..., object], *, geometries: int = 1, most: int = 0, also: str = "") -> None:
    """Register a function whose first `geometries` arguments are geometries. `most` is the count of all its
    arguments.
    """

    def call(*arguments: Value) -> Value:
        shapes = [geojson.shape_of(one) for one in arguments[:geometries] if isinstance(one, Geometry)]
        return _call_geos(run, *shapes, *arguments[geometries:]) if len(shapes) == geometries else None

    names = (*_names(name), also) if also else _names(name)
    scalar(*names, least=most or geometries, cost=unbounded_cost)(call)


def _call(name: str) -> Callable[..., object]:
    """Return a function that calls one of the library's functions by name, and imports the library at the first
    call.
    """

    def run(*arguments: object) -> object:
        import shapely  # noqa: PLC0415 - takes a second, and few servers compute with geometries

        return getattr(shapely, name)(*arguments)

    return run


for _name, _function in (
    ("st_area", "area"),
    ("st_boundary", "boundary"),
    ("st_centroid", "centroid"),
    ("st_convex_hull", "convex_hull"),
    ("st_is_empty", "is_empty"),
    ("st_is_simple", "is_simple"),
    ("st_is_valid", "is_valid"),
    ("st_length", "length"),
    ("st_line_merge", "line_merge"),
    ("st_normalize", "normalize"),
    ("st_num_geometries", "get_num_geometries"),
    ("st_point_on_surface", "point_on_surface"),
    ("st_reverse", "reverse"),
    ("st_srid", "get_srid"),
    ("st_unary_union", "unary_union"),
    ("st_dimension", "get_dimensions"),
):
    _register(_name, _call(_function))
for _name in (
    "contains",
    "crosses",
    "disjoint",
    "equals",
    "intersects",
    "overlaps",
    "touches",
    "within",
    "distance",
    "difference",
    "intersection",
):
    _register(f"st_{_name}", _call(_name), geometries=2)
_register("st_sym_difference", _call("symmetric_difference"), geometries=2)


@scalar("st_make_point", "st_makepoint", least=2, most=4, cost=unbounded_cost)
def make_point(*coordinates: Value) -> Value:
    """Return a point of two to four coordinates."""
    numbers = [number(one) for one in coordinates]
    known = tuple(float(one) for one in numbers if one is not None)
    if len(known) < len(numbers):
        return None
    return geojson.geometry_of(geojson.read_geojson({"type": "Point", "coordinates": known}))


@scalar("st_make_envelope", "st_makeenvelope", least=5, cost=unbounded_cost)
def make_envelope(left: Value, below: Value, right: Value, above: Value, srid: Value) -> Value:
    """Return a rectangle, given its bounds and the id of its coordinate reference system."""
    numbers = [number(one) for one in (left, below, right, above)]
    bounds = [float(one) for one in numbers if one is not None and math.isfinite(one)]
    if len(bounds) < len(numbers):
        return None
    return _with_srid(_box(bounds), srid)


def _box(bounds: Sequence[float]) -> BaseGeometry:
    """Return a rectangle by its left, lower, right and upper bound."""
    import shapely  # noqa: PLC0415

    left, below, right, above = bounds
    return shapely.Polygon([(left, below), (left, above), (right, above), (right, below)])


def _with_srid(shape: BaseGeometry | None, srid: Value) -> Value:
    import shapely  # noqa: PLC0415

    if shape is None or not isinstance(srid, int) or isinstance(srid, bool) or not 0 <= srid < 1 << 31:
        return None
    return geojson.geometry_of(shapely.set_srid(shape, srid))


@scalar("st_geom_from_text", "st_geomfromtext", least=1, most=2, cost=unbounded_cost)
def from_text(text: Value, srid: Value = 0) -> Value:
    """Parse well-known text to a geometry in the coordinate reference system `srid`."""
    return _with_srid(geojson.read_text(text), srid) if isinstance(text, str) else None


@scalar("st_geom_from_wkb", "st_geomfromwkb", least=1, most=2, cost=unbounded_cost)
def from_binary(binary: Value, srid: Value = 0) -> Value:
    """Parse well-known binary to a geometry in the coordinate reference system `srid`."""
    import shapely  # noqa: PLC0415

    return _with_srid(shapely.from_wkb(binary, on_invalid="ignore"), srid) if isinstance(binary, bytes) else None


@scalar("st_geom_from_geojson", "st_geomfromgeojson", least=1, cost=unbounded_cost)
def from_geojson(value: Value) -> Value:
    """Convert a GeoJSON object to a geometry."""
    return geojson.geometry_of(geojson.read_geojson(value))


def _register_text(names: tuple[str, ...], write: Callable[[Geometry], Value]) -> None:
    scalar(*names, least=1, cost=unbounded_cost)(lambda value: write(value) if isinstance(value, Geometry) else None)


def _binary(geometry: Geometry) -> bytes:
    import shapely  # noqa: PLC0415

    shape = geojson.shape_of(geometry)
    return bytes(shapely.to_wkb(shape, output_dimension=4, flavor="extended", byte_order=1))


_register_text(("st_as_text", "st_astext", "st_as_wkt", "st_aswkt"), geojson.write_text)
_register_text(("st_as_geojson", "st_asgeojson"), lambda geometry: json_text(geojson.write_geojson(geometry)))
_register_text(("st_as_binary", "st_asbinary", "st_as_wkb", "st_aswkb"), _binary)


def _is_point(shape: BaseGeometry) -> bool:
    return str(shape.geom_type) == "Point"


def _register_coordinate(axis: str) -> None:
    """Register `st_x` of a point, and `st_x_min` and `st_x_max` of a geometry, for an axis; NaN if a geometry has no
    such coordinate.
    """

    def values(shape: BaseGeometry) -> list[float]:
        import shapely  # noqa: PLC0415

        if axis == "z" and not shape.has_z:
            return []
        rows = shapely.get_coordinates(shape, include_z=axis == "z")
        return [float(row["xyz".index(axis)]) for row in rows]

    _register(f"st_{axis}", lambda shape: next(iter(values(shape)), math.nan) if _is_point(shape) else None)
    _register(f"st_{axis}_min", lambda shape: min(values(shape), default=math.nan))
    _register(f"st_{axis}_max", lambda shape: max(values(shape), default=math.nan))


for _name in "xyz":
    _register_coordinate(_name)
_register("st_m", lambda shape: float(shape.m) if shape.has_m else math.nan if _is_point(shape) else None)
_register("st_coord_dim", lambda shape: 2 + shape.has_z + shape.has_m)
_register("st_geometrytype", lambda shape: f"ST_{shape.geom_type}")
_register("geometry_type", lambda shape: shape.geom_type)
_register("st_is_collection", lambda shape: hasattr(shape, "geoms"))


def _parts(shape: BaseGeometry) -> list[BaseGeometry]:
    return list(getattr(shape, "geoms", (shape,)))


def _rings(shape: BaseGeometry) -> list[BaseGeometry]:
    import shapely  # noqa: PLC0415

    return list(shapely.get_rings(_parts(shape)))


def _point_count(shape: BaseGeometry) -> int:
    """Return the count of points; the closing point of a polygon's ring is not counted again."""
    import shapely  # noqa: PLC0415

    return int(shapely.get_num_coordinates(shape)) - len(_rings(shape))


def _is_closed(shape: BaseGeometry) -> bool:
    return all(part.is_closed for part in _parts(shape) if part.geom_type == "LineString")


_register("st_n_points", _point_count)
_register("st_num_points", lambda shape: _point_count(shape) if shape.geom_type == "LineString" else None)
_register("st_n_rings", lambda shape: len(_rings(shape)))
_register(
    "st_num_interior_rings",
    lambda shape: len(shape.interiors) if shape.geom_type == "Polygon" else None,
    also="st_numinteriorring",
)
_register("st_is_closed", _is_closed)
_register("st_is_ring", lambda shape: shape.is_ring if shape.geom_type == "LineString" else None)
_register("st_exterior_ring", lambda shape: shape.exterior if shape.geom_type == "Polygon" else None)


def _envelope(shape: BaseGeometry) -> BaseGeometry:
    return _box(shape.bounds) if shape.envelope.geom_type == "Polygon" and not shape.is_empty else shape.envelope


def _flip_coordinates(shape: BaseGeometry) -> BaseGeometry:
    import shapely  # noqa: PLC0415

    return shapely.transform(shape, lambda rows: rows[:, [1, 0, *range(2, rows.shape[1])]], include_z=shape.has_z)


_register("st_envelope", _envelope)
_register("st_flip_coordinates", _flip_coordinates)


def _points(shape: BaseGeometry) -> list[BaseGeometry]:
    """Return the points of a line; an empty list for another geometry."""
    import shapely  # noqa: PLC0415

    count = shapely.get_num_points(shape) if shape.geom_type == "LineString" else 0
    return [shapely.get_point(shape, at) for at in range(count)]


def _item(shapes: list[BaseGeometry], at: Value) -> BaseGeometry | None:
    return shapes[at] if isinstance(at, int) and 0 <= at < len(shapes) else None


def _register_item(zero: str, one: str, *, find: Callable[[BaseGeometry], list[BaseGeometry]]) -> None:
    """Register the two functions that return a part by its index: `zero` counts from 0, `one` from 1."""
    for name, first in ((zero, 0), (one, 1)):
        scalar(name, least=2, cost=unbounded_cost)(_item_function(find, first))


def _item_function(find: Callable[[BaseGeometry], list[BaseGeometry]], first: int) -> Callable[[Value, Value], Value]:
    def run(value: Value, at: Value) -> Value:
        if not isinstance(value, Geometry) or not isinstance(at, int):
            return None
        return geojson.geometry_of(_item(find(geojson.shape_of(value)), at - first))

    return run


_register_item("st_point_n", "st_pointn", find=_points)
_register_item("st_geometry_n", "st_geometryn", find=_parts)
_register_item("st_interior_ring_n", "st_interiorringn", find=lambda shape: list(getattr(shape, "interiors", ())))
_register("st_start_point", lambda shape: _item(_points(shape), 0))
_register("st_end_point", lambda shape: next(reversed(_points(shape)), None))


def _with_number(name: str, function: str, *, geometries: int = 1) -> None:
    """Register a function whose arguments are geometries, then a number, such as a distance."""
    run = _call(function)

    def call(*arguments: object) -> object:
        size = number(arguments[-1])  # type: ignore[arg-type]
        return None if size is None else run(*arguments[:-1], float(size))

    _register(name, call, geometries=geometries, most=geometries + 1)


_with_number("st_buffer", "buffer")
_with_number("st_dwithin", "dwithin", geometries=2)
_with_number("st_concave_hull", "concave_hull")
_with_number("st_simplify_preserve_topology", "simplify")


def _simplify(shape: BaseGeometry, tolerance: Value) -> object:
    size = number(tolerance)
    return None if size is None else shape.simplify(float(size), preserve_topology=False)


def _distance_sphere(one: BaseGeometry, other: BaseGeometry) -> float | None:
    """Return the great-circle distance of two points on a sphere in meters, by the haversine formula."""
    if not _is_point(one) or not _is_point(other) or one.is_empty or other.is_empty:
        return None
    (x, y), (u, v) = ((math.radians(point.x), math.radians(point.y)) for point in (one, other))
    half = math.sin((v - y) / 2) ** 2 + math.cos(y) * math.cos(v) * math.sin((u - x) / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(half)))


def _is_matrix(pattern: Value) -> bool:
    return isinstance(pattern, str) and _MATRIX.fullmatch(pattern) is not None


_register("st_simplify", _simplify, most=2)
_register("st_distance_sphere", _distance_sphere, geometries=2)
_register(
    "st_relate",
    lambda one, other, pattern: one.relate_pattern(other, pattern) if _is_matrix(pattern) else None,
    geometries=2,
    most=3,
)


@scalar("st_relate_match", "st_relatematch", least=2, cost=unbounded_cost)
def relate_match(matrix: Value, pattern: Value) -> Value:
    """Return whether an intersection matrix (DE-9IM) matches a pattern."""
    if not isinstance(matrix, str) or not isinstance(pattern, str):
        return None
    if not _MATRIX.fullmatch(matrix) or not _MATRIX.fullmatch(pattern):
        return None
    fits = {"*": "FT012*", "T": "T012"}
    return all(one in fits.get(mark, mark) for one, mark in zip(matrix, pattern, strict=True))


def _valid_reason(shape: BaseGeometry) -> str:
    import shapely  # noqa: PLC0415

    reason = str(shapely.is_valid_reason(shape))
    match = _REASON.fullmatch(reason)
    return reason if match is None else f"{match['what']} at or near point ({match['x']}, {match['y']}, NaN)"


def _multi(shape: BaseGeometry) -> BaseGeometry:
    """Convert a geometry to the multi-geometry of its type: a point to a multipoint."""
    return shape if hasattr(shape, "geoms") else _collection(shape.geom_type, [shape])


def _collection(name: str, parts: list[BaseGeometry]) -> BaseGeometry:
    import shapely  # noqa: PLC0415

    collection: BaseGeometry = getattr(shapely, f"Multi{name}")(parts)
    return collection


def _extract_kind(shape: BaseGeometry, kind: Value) -> BaseGeometry | None:
    """Return the members of a collection of one kind as a multi-geometry: points (1), lines (2) or polygons (3)."""
    name = _COLLECTED.get(kind) if isinstance(kind, int) else None
    members = [part for part in _parts(shape) if part.geom_type == name]
    return _collection(name, members) if name is not None and members else None


def _line_of(shape: BaseGeometry) -> BaseGeometry | None:
    import shapely  # noqa: PLC0415

    if shape.geom_type != "MultiPoint" or len(shape.geoms) < 2:
        return None
    return shapely.linestrings(shapely.get_coordinates(shape, include_z=shape.has_z))


_register("st_is_valid_reason", _valid_reason)
_register("st_multi", _multi)
_register("st_collection_extract", _extract_kind, most=2)
_register("st_line_from_multipoint", _line_of)


def _shapes_of(value: Value) -> list[BaseGeometry] | None:
    """Return the geometries of an array; None if an item is not a geometry."""
    members = items(value)
    if members is None:
        return None
    shapes = [geojson.shape_of(one) for one in members if isinstance(one, Geometry)]
    return shapes if len(shapes) == len(members) else None


@scalar("st_polygonize", least=1, cost=unbounded_cost)
def polygonize(value: Value) -> Value:
    """Return the polygons that an array of lines encloses, as a collection."""
    import shapely  # noqa: PLC0415

    shapes = _shapes_of(value)
    return None if shapes is None else geojson.geometry_of(shapely.polygonize(shapes))


@scalar("st_union", least=1, most=2, cost=unbounded_cost)
def union(*arguments: Value) -> Value:
    """Return the union of two geometries, or of all geometries in an array."""
    return strict_union(arguments[0] if len(arguments) == 1 else tuple(arguments))


@scalar("strict_st_union", least=1, cost=unbounded_cost)
def strict_union(value: Value) -> Value:
    """Return the union of all geometries in an array; NULL if an item is not a geometry."""
    import shapely  # noqa: PLC0415

    shapes = _shapes_of(value)
    if shapes is None:
        return None
    return geojson.geometry_of(shapely.union(*shapes) if len(shapes) == 2 else shapely.union_all(shapes))
