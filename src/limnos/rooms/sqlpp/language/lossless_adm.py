# SPDX-License-Identifier: Apache-2.0
"""Values as lossless ADM in JSON: the format in which AsterixDB's JDBC driver reads results and sends parameters.

Must not know a protocol. JSON numbers are bigints; booleans, NULL, objects and arrays represent themselves. Every other
value is a string: the type tag as two hexadecimal digits, a colon, and the parts of the value as decimal numbers
separated by colons, where a double is represented by the integer value of its bits. A string value has an empty tag
before its colon, and the empty string has no colon either. Multisets are written as arrays.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Final, cast

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.functions.times import DAY_MS, YEAR_MAX, days_of
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    Circle,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Float,
    Integer,
    Line,
    Point,
    Point3D,
    Polygon,
    Rectangle,
    Shape,
    SmallInt,
    Time,
    TinyInt,
    TypeName,
    Value,
    YearMonthDuration,
    type_name,
)

NO_FORM: Final = 4000
"""The number of a value that the format cannot have."""
_TAGS: Final[Mapping[TypeName, int]] = {
    "tinyint": 1,
    "smallint": 2,
    "integer": 3,
    "bigint": 4,
    "binary": 9,
    "float": 11,
    "double": 12,
    "string": 13,
    "missing": 14,
    "boolean": 15,
    "datetime": 16,
    "date": 17,
    "time": 18,
    "duration": 19,
    "point": 20,
    "point3d": 21,
    "line": 30,
    "polygon": 31,
    "circle": 32,
    "rectangle": 33,
    "year-month-duration": 36,
    "day-time-duration": 37,
    "uuid": 38,
    "null": 41,
}
"""AsterixDB's number of each type (`ATypeTag`)."""
_TYPES: Final = {tag: name for name, tag in _TAGS.items()}


def lossless_adm_text(value: Value) -> str:
    """Encode a value as lossless ADM in JSON. Raises SqlppError for an interval, which the format cannot represent."""
    return json.dumps(_encode(value), ensure_ascii=False, separators=(",", ":"))


def _encode(value: Value) -> object:
    if isinstance(value, dict):
        return {name: _encode(item) for name, item in value.items() if item is not MISSING}
    if value is None or isinstance(value, bool) or type(value) is int:
        return value
    if isinstance(value, str):
        return f":{value}" if value else ""
    name = type_name(value)
    if name in ("array", "multiset"):
        return [_encode(item) for item in cast("tuple[Value, ...]", value)]
    tag = _TAGS.get(name)
    if tag is None:
        raise SqlppError(NO_FORM, f"The format lossless-adm has no form for a value of type {name}")
    return f"{tag:02X}" if value is MISSING else f"{tag:02X}:{_parts(value)}"


def _parts(value: Value) -> str:
    match value:
        case Float():
            return str(struct.unpack(">i", struct.pack(">f", value))[0])
        case float():
            return _bits(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case uuid.UUID():
            return str(value)
        case Polygon(coordinates):
            return ":".join((str(len(coordinates) // 2), *map(_bits, coordinates)))
        case Point(coordinates) | Point3D(coordinates) | Line(coordinates) | Rectangle(coordinates):
            return ":".join(map(_bits, coordinates))
        case Circle(coordinates):
            return ":".join(map(_bits, coordinates))
        case tuple():
            return ":".join(map(str, value))
    return str(int(cast("int", value)))


def _bits(number: float) -> str:
    return str(struct.unpack(">q", struct.pack(">d", number))[0])


def lossless_adm_value(document: object) -> Value:
    """Convert a decoded JSON document to a value. Raises ValueError for a string without a valid tag or parts."""
    if isinstance(document, dict):
        return {str(name): lossless_adm_value(item) for name, item in document.items()}
    if isinstance(document, list):
        return tuple(lossless_adm_value(item) for item in document)
    return _decode(document) if isinstance(document, str) else cast("Value", document)


def _decode(text: str) -> Value:
    if not text or text.startswith(":"):
        return text[1:]
    name = _TYPES.get(int(text[:2], 16))
    if name == "missing":
        return MISSING
    if name == "null":
        return None
    if name is None or text[2:3] != ":":
        raise ValueError(text)
    try:
        return _READERS[name](text[3:])
    except (binascii.Error, struct.error, OverflowError, TypeError):
        raise ValueError(text) from None


def _double(text: str) -> float:
    (number,) = struct.unpack(">d", struct.pack(">q", int(text)))
    return float(number)


def _shape(shape: type[Shape], numbers: int) -> Callable[[str], Value]:
    """Return the function that parses a shape with this count of coordinates."""

    def read(text: str) -> Value:
        coordinates = tuple(map(_double, text.split(":")))
        if len(coordinates) != numbers:
            raise ValueError(text)
        return shape(coordinates)

    return read


def _polygon(text: str) -> Value:
    count, *numbers = text.split(":")
    if len(numbers) != 2 * int(count):
        raise ValueError(text)
    return Polygon(tuple(map(_double, numbers)))


def _integer_parser(bits: int) -> Callable[[str], int]:
    """Return the function that parses an integer of this width in bits."""
    edge = 1 << (bits - 1)

    def read(text: str) -> int:
        number = int(text)
        if not -edge <= number < edge:
            raise ValueError(text)
        return number

    return read


_INT, _LONG = _integer_parser(32), _integer_parser(64)
_DAYS_MAX: Final = days_of(YEAR_MAX, 12, day=31)
"""A date beyond the years of the calendar cannot be formatted."""


def _days(text: str) -> int:
    days = int(text)
    if abs(days) > _DAYS_MAX:
        raise ValueError(text)
    return days


def _moment(text: str) -> int:
    ms = int(text)
    if abs(ms // DAY_MS) > _DAYS_MAX:
        raise ValueError(text)
    return ms


def _time(text: str) -> int:
    ms = int(text)
    if not 0 <= ms < DAY_MS:
        raise ValueError(text)
    return ms


def _duration(text: str) -> Value:
    months, ms = text.split(":")
    return Duration(_INT(months), _LONG(ms))


_READERS: Final[Mapping[TypeName, Callable[[str], Value]]] = {
    "tinyint": lambda text: TinyInt(_integer_parser(8)(text)),
    "smallint": lambda text: SmallInt(_integer_parser(16)(text)),
    "integer": lambda text: Integer(_INT(text)),
    "bigint": _LONG,
    "binary": lambda text: base64.b64decode(text, validate=True),
    "float": lambda text: Float(struct.unpack(">f", struct.pack(">i", int(text)))[0]),
    "double": _double,
    "string": str,
    "boolean": lambda text: int(text) != 0,
    "datetime": lambda text: DateTime(_moment(text)),
    "date": lambda text: Date(_days(text)),
    "time": lambda text: Time(_time(text)),
    "duration": _duration,
    "point": _shape(Point, 2),
    "point3d": _shape(Point3D, 3),
    "line": _shape(Line, 4),
    "polygon": _polygon,
    "circle": _shape(Circle, 3),
    "rectangle": _shape(Rectangle, 4),
    "year-month-duration": lambda text: YearMonthDuration(_INT(text)),
    "day-time-duration": lambda text: DayTimeDuration(_LONG(text)),
    "uuid": uuid.UUID,
}
