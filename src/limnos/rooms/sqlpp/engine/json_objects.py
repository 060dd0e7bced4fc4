# SPDX-License-Identifier: Apache-2.0
"""Converts values of JSON files to a dataset's type: GeoJSON to shapes, doubles to integers, types that JSON lacks.

Must not know files. Strings for dates and other types are converted later, by `object_shaper`, as for all formats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, cast

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.stored import ArrayType, BagType, RecordType, Scalar
from limnos.rooms.sqlpp.language.values.model import Line, Point, Polygon, Value, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.rooms.sqlpp.language.stored import DeclaredType

UNSUPPORTED, MISMATCH, GEOMETRY = 4, 3054, 3021
_ABSENT: Final = (
    "circle",
    "rectangle",
    "point3d",
    "interval",
    "duration",
    "year-month-duration",
    "day-time-duration",
)
"""Types of which JSON has no values."""
_INTEGERS: Final = ("tinyint", "smallint", "integer", "bigint")
_SHAPES: Final = {"point": "Point", "line": "LineString", "polygon": "Polygon"}


def json_converter(type_: RecordType) -> Callable[[Value], Value]:
    """Return the function that converts an object of a JSON file to a record type.

    Raises SqlppError for a type with a field that JSON cannot represent. The function raises SqlppError for values of
    another type, and for GeoJSON geometries that have no SQL++ type.
    """
    return _converter(type_)


def _converter(type_: DeclaredType) -> Callable[[Value], Value]:
    if isinstance(type_, RecordType):
        fields = {field.name: _converter(field.type) for field in type_.fields}
        return lambda value: _object(value, fields)
    if isinstance(type_, BagType):
        raise SqlppError(UNSUPPORTED, "Unsupported type: JSON has no values of type multiset")
    if isinstance(type_, ArrayType):
        item = _converter(type_.item)
        return lambda value: _items(value, item)
    if isinstance(type_, Scalar):
        if type_.name in _ABSENT:
            raise SqlppError(UNSUPPORTED, f"Unsupported type: JSON has no values of type {type_.name}")
        name = type_.name
        return lambda value: _scalar(value, name)
    return lambda value: value


def _mismatch(name: str) -> SqlppError:
    return SqlppError(MISMATCH, f"Mismatch Type, expecting a value of type {name}")


def _object(value: Value, fields: dict[str, Callable[[Value], Value]]) -> Value:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _mismatch("object")
    return {name: fields[name](item) if name in fields else item for name, item in value.items()}


def _items(value: Value, item: Callable[[Value], Value]) -> Value:
    if value is None:
        return None
    if type_name(value) != "array":
        raise _mismatch("array")
    return tuple(map(item, cast("tuple[Value, ...]", value)))


def _scalar(value: Value, name: str) -> Value:
    if name in _SHAPES and isinstance(value, dict):
        return _shape(value, name)
    if name in _INTEGERS and type(value) is float and math.isfinite(value):
        return int(value)
    is_collection = type_name(value) in ("object", "array", "multiset")
    if is_collection or (name == "string" and value is not None and not isinstance(value, str)):
        raise _mismatch(name)
    return value


def _shape(value: dict[str, Value], name: str) -> Value:
    """Convert a GeoJSON geometry to a SQL++ shape. `name` is the declared type.

    Raises SqlppError for another geometry.
    """
    if value.get("type") not in _SHAPES.values():
        raise _simple_only()
    if value.get("type") != _SHAPES[name]:
        raise _mismatch(name)
    coordinates = cast("tuple[Value, ...]", value.get("coordinates"))
    try:
        if name == "point":
            return Point(_point(coordinates))
        if name == "line":
            points = list(map(_point, coordinates))
            if len(points) != 2:
                raise SqlppError(GEOMETRY, "Malformed input stream: Line must have 4 coordinates")
            return Line((*points[0], *points[1]))
        if len(coordinates) != 1:
            raise _simple_only()
        points = list(map(_point, cast("tuple[Value, ...]", coordinates[0])))
    except (TypeError, ValueError):
        raise _mismatch(name) from None
    if len(points) < 3 or points[0] != points[-1]:
        raise SqlppError(GEOMETRY, "Malformed input stream: Unclosed polygon is not supported")
    return Polygon(tuple(number for point in points for number in point))


def _point(value: Value) -> tuple[float, float]:
    x, y = cast("tuple[float, float]", value)
    return float(x), float(y)


def _simple_only() -> SqlppError:
    text = "Only simple geometries are supported (Point, LineString and Polygon without holes)"
    return SqlppError(GEOMETRY, f"Malformed input stream: {text}")
