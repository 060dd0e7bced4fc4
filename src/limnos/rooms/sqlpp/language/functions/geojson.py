# SPDX-License-Identifier: Apache-2.0
"""Conversion of geometries to and from GeoJSON and well-known text (WKT).

Must not know the table of functions. GEOS, the library that computes with geometries, is imported with the first call.
In GeoJSON a point has up to four numbers: x, y, z and m.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from limnos.rooms.sqlpp.language.values.model import Geometry, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapely.geometry.base import BaseGeometry

NAMES: Final = (
    "Point",
    "LineString",
    "LinearRing",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
    "GeometryCollection",
)
"""The types of geometries, in the order of their numbers in GEOS."""
POINT, LINE, RING, POLYGON, _, _, _, COLLECTION = range(8)
_DEPTHS: Final = {"Point": 0, "LineString": 1, "MultiPoint": 1, "Polygon": 2, "MultiLineString": 2, "MultiPolygon": 3}
_MEASURED: Final = re.compile(r"([A-Za-z])\s*\bM\b(?=\s*[(E])")
_SPACED: Final = re.compile(r" (ZM?) \(")


def geometry_of(shape: BaseGeometry | None) -> Geometry | None:
    """Convert a GEOS geometry to a SQL++ value; None for None."""
    import shapely  # noqa: PLC0415 - takes a second, and few servers compute with geometries

    if shape is None:
        return None
    text = shapely.to_wkb(shape, hex=True, output_dimension=4, flavor="extended", include_srid=True, byte_order=1)
    return Geometry(cast("str", text))


def shape_of(geometry: Geometry) -> BaseGeometry:
    """Convert a SQL++ geometry to a GEOS geometry."""
    import shapely  # noqa: PLC0415

    return shapely.from_wkb(geometry.wkb)


def read_text(text: str) -> BaseGeometry | None:
    """Parse well-known text; None if it is malformed. The third number of a point `M` is its z, as in AsterixDB."""
    import shapely  # noqa: PLC0415

    return shapely.from_wkt(_MEASURED.sub(r"\1 Z", text), on_invalid="ignore")


def write_text(geometry: Geometry) -> str:
    """Format a geometry as well-known text, with the spaces of AsterixDB's output."""
    import shapely  # noqa: PLC0415

    text = shapely.to_wkt(shape_of(geometry), rounding_precision=-1, output_dimension=4)
    return _SPACED.sub(r" \1(", cast("str", text))


def read_geojson(value: Value) -> BaseGeometry | None:
    """Parse a GeoJSON object to a geometry; None if it is malformed."""
    text = _text_of(value)
    return None if text is None else read_text(text)


def _text_of(value: Value) -> str | None:
    """Convert a GeoJSON object to well-known text; None for another value."""
    if not isinstance(value, dict):
        return None
    name = value.get("type")
    if name == "GeometryCollection":
        members = value.get("geometries")
        texts = [_text_of(member) for member in members] if isinstance(members, tuple) else [None]
        member_texts = [text for text in texts if text is not None]
        return f"GEOMETRYCOLLECTION ({', '.join(member_texts)})" if len(member_texts) == len(texts) else None
    coordinates = value.get("coordinates")
    if not isinstance(name, str) or name not in _DEPTHS or not isinstance(coordinates, tuple):
        return None
    if not coordinates:
        return f"{name} EMPTY"
    numbers = _first_point(coordinates)
    inside = _nested_text(coordinates, _DEPTHS[name], width=len(numbers))
    mark = {2: "", 3: "Z", 4: "ZM"}.get(len(numbers))
    if inside is None or mark is None:
        return None
    return f"{name} {mark} ({inside})" if name == "Point" else f"{name} {mark} {inside}"


def _first_point(coordinates: tuple[Value, ...]) -> tuple[Value, ...]:
    while coordinates and isinstance(coordinates[0], tuple):
        coordinates = coordinates[0]
    return coordinates


def _nested_text(value: Value, depth: int, *, width: int) -> str | None:
    """Format nested GeoJSON coordinates as well-known text; None if they are malformed.

    `depth` is the count of array levels, `width` the count of numbers per point.
    """
    if not isinstance(value, tuple):
        return None
    if depth == 0:
        numbers = [one for one in value if isinstance(one, (int, float)) and not isinstance(one, bool)]
        return " ".join(map(repr, map(float, numbers))) if len(numbers) == len(value) == width else None
    texts = [_nested_text(item, depth - 1, width=width) for item in value]
    member_texts = [text for text in texts if text is not None]
    return f"({', '.join(member_texts)})" if len(member_texts) == len(texts) else None


def write_geojson(geometry: Geometry) -> dict[str, Value]:
    """Convert a geometry to a GeoJSON object. Integral coordinates have no fraction."""
    return _document(shape_of(geometry))


def _document(shape: BaseGeometry) -> dict[str, Value]:
    import shapely  # noqa: PLC0415

    kind = int(shapely.get_type_id(shape))
    if kind == COLLECTION:
        return {"type": NAMES[kind], "geometries": tuple(map(_document, shapely.get_parts(shape)))}
    return {"type": NAMES[kind], "coordinates": _coordinates(shape, kind)}


def _coordinates(shape: BaseGeometry, kind: int) -> Value:
    import shapely  # noqa: PLC0415

    if kind > POLYGON:
        return tuple(_coordinates(part, int(shapely.get_type_id(part))) for part in shapely.get_parts(shape))
    if kind == POLYGON:
        return tuple(_coordinates(ring, RING) for ring in shapely.get_rings(shape))
    rows = shapely.get_coordinates(shape, include_z=shape.has_z, include_m=shape.has_m).tolist()
    points = tuple(tuple(map(_short, row)) for row in cast("Sequence[Sequence[float]]", rows))
    if kind != POINT:
        return points
    return points[0] if points else ()


def _short(number: float) -> float:
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number
