# SPDX-License-Identifier: Apache-2.0
"""Values as lossless JSON with type tags, for plans and jobs between the processes of a server.

Must not know results for users, which have another format. JSON's types represent themselves (a number without a
decimal point is a bigint, one with a point a double). Values of other types are objects with one field, named after the
type.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from typing import Final, cast

from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    SHAPES,
    Bag,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Float,
    Geometry,
    Integer,
    Interval,
    Shape,
    SmallInt,
    Time,
    TinyInt,
    Value,
    YearMonthDuration,
    type_name,
    type_of_shape,
)

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def _shape_maker(shape: type[Shape]) -> Callable[[Json], Value]:
    return lambda current: shape(tuple(map(float, cast("list[str]", current))))


_MADE: Final[Mapping[str, Callable[[Json], Value]]] = {
    "missing": lambda _: MISSING,
    "tinyint": lambda current: TinyInt(cast("int", current)),
    "smallint": lambda current: SmallInt(cast("int", current)),
    "integer": lambda current: Integer(cast("int", current)),
    "float": lambda current: Float(float(cast("str", current))),
    "double": lambda current: float(cast("str", current)),
    "binary": lambda current: bytes.fromhex(cast("str", current)),
    "uuid": lambda current: uuid.UUID(cast("str", current)),
    "date": lambda current: Date(cast("int", current)),
    "time": lambda current: Time(cast("int", current)),
    "datetime": lambda current: DateTime(cast("int", current)),
    "duration": lambda current: Duration(*cast("list[int]", current)),
    "year-month-duration": lambda current: YearMonthDuration(cast("int", current)),
    "day-time-duration": lambda current: DayTimeDuration(cast("int", current)),
    "interval": lambda current: Interval(*map(_moment, cast("list[Json]", current))),
    **{type_of_shape(shape): _shape_maker(shape) for shape in SHAPES},
    "geometry": lambda current: Geometry(cast("str", current)),
    "multiset": lambda current: Bag(from_tagged_json(item) for item in cast("list[Json]", current)),
    "object": lambda current: {name: from_tagged_json(item) for name, item in cast("dict[str, Json]", current).items()},
}


def _moment(current: Json) -> Date | Time | DateTime:
    return cast("Date | Time | DateTime", from_tagged_json(current))


def to_tagged_json(value: Value) -> Json:
    """Encode a value as JSON with type tags."""
    if value is None or type(value) in (bool, int, str):
        return cast("Json", value)
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is tuple:
        return [to_tagged_json(item) for item in value]
    return {type_name(value): _tagged_content(value)}


def _tagged_content(value: Value) -> Json:
    """Return the JSON of a value that its type tag contains."""
    match value:
        case Bag():
            return [to_tagged_json(item) for item in value]
        case dict():
            return {name: to_tagged_json(item) for name, item in value.items()}
        case bytes():
            return value.hex()
        case Duration():
            return [value.months, value.ms]
        case Interval():
            return [to_tagged_json(value.start), to_tagged_json(value.end)]
        case _ if isinstance(value, SHAPES):
            return [float.__repr__(one) for one in value.coordinates]
        case Date() | Time() | DateTime() | YearMonthDuration() | DayTimeDuration() | Geometry():
            return value[0]
        case float():
            return float.__repr__(value)
        case int():
            return int(value)
        case uuid.UUID():
            return str(value)
    return 0


def from_tagged_json(current: Json) -> Value:
    """Decode a value from JSON with type tags. Raises KeyError, ValueError or TypeError for JSON that `to_tagged_json`
    did not write.
    """
    if isinstance(current, list):
        return tuple(from_tagged_json(item) for item in current)
    if isinstance(current, dict):
        ((name, item),) = current.items()
        return _MADE[name](item)
    return current
