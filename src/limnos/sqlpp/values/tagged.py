"""Values as lossless plain JSON, for plans and jobs between our own processes.

May import `model`. Must not know readers outside: users see another form. JSON's types stand for themselves (a number
without a point is a bigint, one with a point a double). Other types are an object with one field named after the type.
"""

from __future__ import annotations

import math
import uuid
from typing import TYPE_CHECKING, Final, cast

from limnos.sqlpp.values.model import (
    MISSING,
    Bag,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Float,
    Integer,
    SmallInt,
    Time,
    TinyInt,
    Value,
    YearMonthDuration,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_MADE: Final[Mapping[str, Callable[[Json], Value]]] = {
    "missing": lambda _: MISSING,
    "tinyint": lambda held: TinyInt(cast("int", held)),
    "smallint": lambda held: SmallInt(cast("int", held)),
    "integer": lambda held: Integer(cast("int", held)),
    "float": lambda held: Float(float(cast("str", held))),
    "double": lambda held: float(cast("str", held)),
    "binary": lambda held: bytes.fromhex(cast("str", held)),
    "uuid": lambda held: uuid.UUID(cast("str", held)),
    "date": lambda held: Date(cast("int", held)),
    "time": lambda held: Time(cast("int", held)),
    "datetime": lambda held: DateTime(cast("int", held)),
    "duration": lambda held: Duration(*cast("list[int]", held)),
    "year-month-duration": lambda held: YearMonthDuration(cast("int", held)),
    "day-time-duration": lambda held: DayTimeDuration(cast("int", held)),
    "multiset": lambda held: Bag(from_tagged_json(item) for item in cast("list[Json]", held)),
    "object": lambda held: {name: from_tagged_json(item) for name, item in cast("dict[str, Json]", held).items()},
}


def to_tagged_json(value: Value) -> Json:
    """Encode a value."""
    if value is None or type(value) in (bool, int, str):
        return cast("Json", value)
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is tuple:
        return [to_tagged_json(item) for item in value]
    return {type_name(value): _tagged_content(value)}


def _tagged_content(value: Value) -> Json:
    """The content under the name of a value's type."""
    match value:
        case Bag():
            return [to_tagged_json(item) for item in value]
        case dict():
            return {name: to_tagged_json(item) for name, item in value.items()}
        case bytes():
            return value.hex()
        case Duration():
            return [value.months, value.ms]
        case Date() | Time() | DateTime() | YearMonthDuration() | DayTimeDuration():
            return value[0]
        case float():
            return float.__repr__(value)
        case int():
            return int(value)
        case uuid.UUID():
            return str(value)
    return 0


def from_tagged_json(held: Json) -> Value:
    """Decode a value. Raises KeyError, ValueError or TypeError for JSON that `to_tagged_json` did not make."""
    if isinstance(held, list):
        return tuple(from_tagged_json(item) for item in held)
    if isinstance(held, dict):
        ((name, item),) = held.items()
        return _MADE[name](item)
    return held
