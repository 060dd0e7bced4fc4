# SPDX-License-Identifier: Apache-2.0
"""The Python representation of SQL++ values, and the names of their types.

Must not know operators. A bigint is an `int`, a double a `float`, a string a `str`, a boolean a `bool`, binary `bytes`,
NULL `None`, an array a `tuple`, an object a `dict` that is never changed. The other types are classes here. MISSING is
a separate value that no object contains: a MISSING field is absent.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, Literal, NamedTuple, Self


class MissingType(Enum):
    """The type of the value MISSING, which stands for an absent field."""

    MISSING = "missing"

    def __bool__(self) -> bool:
        return False


MISSING: Final = MissingType.MISSING


class TinyInt(int):
    """An 8-bit integer."""

    __slots__ = ()


class SmallInt(int):
    """A 16-bit integer."""

    __slots__ = ()


class Integer(int):
    """A 32-bit integer."""

    __slots__ = ()


class Float(float):
    """A single-precision number; created from a double, it is rounded."""

    __slots__ = ()

    def __new__(cls, value: float) -> Self:
        return super().__new__(cls, single(value))


def single(value: float) -> float:
    """Round to the nearest single-precision number; infinity beyond the largest."""
    try:
        rounded: float = struct.unpack(">f", struct.pack(">f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded


class Bag(tuple["Value", ...]):
    """A multiset (bag): a collection of unordered items."""

    __slots__ = ()


class Date(NamedTuple):
    """A date, in days since 1970-01-01."""

    days: int


class Time(NamedTuple):
    """A time of day, in milliseconds since midnight."""

    ms: int


class DateTime(NamedTuple):
    """A datetime, in milliseconds since 1970-01-01T00:00:00Z."""

    ms: int


class Duration(NamedTuple):
    """A duration of months and milliseconds. Durations have no order: a month has no fixed length."""

    months: int
    ms: int


class YearMonthDuration(NamedTuple):
    """A year-month duration, as a number of months."""

    months: int


class DayTimeDuration(NamedTuple):
    """A day-time duration, as a number of milliseconds."""

    ms: int


class Interval(NamedTuple):
    """A period from a start (inclusive) to an end (exclusive): both are dates, times or datetimes."""

    start: Date | Time | DateTime
    end: Date | Time | DateTime


class Point(NamedTuple):
    """A point: x and y."""

    coordinates: tuple[float, ...]


class Point3D(NamedTuple):
    """A point in space: x, y and z."""

    coordinates: tuple[float, ...]


class Line(NamedTuple):
    """A line segment: the x and y of its two ends."""

    coordinates: tuple[float, ...]


class Rectangle(NamedTuple):
    """A rectangle: x and y of its lower left corner, then of its upper right one."""

    coordinates: tuple[float, ...]


class Circle(NamedTuple):
    """A circle: x and y of its center, then its radius."""

    coordinates: tuple[float, ...]


class Polygon(NamedTuple):
    """A polygon: x and y of each corner."""

    coordinates: tuple[float, ...]


class Geometry(NamedTuple):
    """A geometry of any type, such as several polygons: its well-known binary (WKB) in hexadecimal digits."""

    wkb: str


Shape = Point | Point3D | Line | Rectangle | Circle | Polygon
SHAPES: tuple[type[Shape], ...] = (Point, Point3D, Line, Rectangle, Circle, Polygon)
Value = (
    MissingType
    | None
    | bool
    | int
    | float
    | str
    | bytes
    | uuid.UUID
    | Date
    | Time
    | DateTime
    | Duration
    | YearMonthDuration
    | DayTimeDuration
    | Interval
    | Shape
    | Geometry
    | tuple["Value", ...]
    | dict[str, "Value"]
)

ScalarName = Literal[
    "boolean",
    "tinyint",
    "smallint",
    "integer",
    "bigint",
    "float",
    "double",
    "string",
    "binary",
    "uuid",
    "date",
    "time",
    "datetime",
    "duration",
    "year-month-duration",
    "day-time-duration",
    "interval",
    "point",
    "point3d",
    "line",
    "rectangle",
    "circle",
    "polygon",
    "geometry",
]
"""The types of values without parts."""
TypeName = Literal["missing", "null", ScalarName, "array", "multiset", "object"]

_TYPES: Mapping[type, TypeName] = {
    MissingType: "missing",
    type(None): "null",
    bool: "boolean",
    TinyInt: "tinyint",
    SmallInt: "smallint",
    Integer: "integer",
    int: "bigint",
    Float: "float",
    float: "double",
    str: "string",
    bytes: "binary",
    uuid.UUID: "uuid",
    Date: "date",
    Time: "time",
    DateTime: "datetime",
    Duration: "duration",
    YearMonthDuration: "year-month-duration",
    DayTimeDuration: "day-time-duration",
    Interval: "interval",
    Point: "point",
    Point3D: "point3d",
    Line: "line",
    Rectangle: "rectangle",
    Circle: "circle",
    Polygon: "polygon",
    Geometry: "geometry",
    tuple: "array",
    Bag: "multiset",
    dict: "object",
}

WIDTHS: Mapping[TypeName, int] = {"tinyint": 8, "smallint": 16, "integer": 32, "bigint": 64}
NUMERIC: tuple[TypeName, ...] = ("tinyint", "smallint", "integer", "bigint", "float", "double")
"""Number types, from the narrowest to the widest."""


def type_name(value: Value) -> TypeName:
    """Return the name of a value's type. Raises TypeError for a Python value that is not a SQL++ value, such as a
    list.
    """
    try:
        return _TYPES[type(value)]
    except KeyError:
        raise TypeError(f"{type(value).__name__} is not a type of SQL++ values") from None


def type_of_shape(shape: type[Shape]) -> TypeName:
    """Return the SQL++ type name of a class of geometric shapes, such as `point` for `Point`."""
    return _TYPES[shape]


def is_unknown(value: Value) -> bool:
    """Return whether a value is NULL or MISSING."""
    return value is None or value is MISSING


def object_of(pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Return an object of these fields, without MISSING ones. Of several fields with the same name the first wins."""
    fields: dict[str, Value] = {}
    for name, value in pairs:
        if value is not MISSING:
            fields.setdefault(name, value)
    return fields
