# SPDX-License-Identifier: Apache-2.0
r"""The open part: encodes the undeclared fields of an object as lossless JSON text, the content of the column `_open`.

Must not know columns. A bigint is a number without a decimal point, a double has one. Values of types that JSON lacks
are objects with one field that begins with `$`: `{"$date": "2012-11-20"}`. A user's object of this form is `{"$object":
[[name, value]]}`.

A VARIANT has one number type, which cannot distinguish 1.0 from 1. In text for a VARIANT, an integral double is tagged,
too.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Mapping

from limnos.rooms.sqlpp.language.errors import SqlppError, too_deep
from limnos.rooms.sqlpp.language.stored import time_texts
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    SHAPES,
    Bag,
    Date,
    DateTime,
    Float,
    Geometry,
    Integer,
    Interval,
    Shape,
    SmallInt,
    Time,
    TinyInt,
    TypeName,
    Value,
    type_name,
    type_of_shape,
)

UNREADABLE = 6
"""AsterixDB's number for an invalid format."""

_NUMBERS: Mapping[type, str] = {TinyInt: "$tinyint", SmallInt: "$smallint", Integer: "$integer"}
_REALS: Mapping[str, float] = {"NaN": math.nan, "INF": math.inf, "-INF": -math.inf, "-0.0": -0.0}


def write_json_text(value: Value, *, variant: bool = False) -> str:
    """Encode a value as lossless JSON text; with `variant`, for conversion to a VARIANT.

    Raises SqlppError if it is nested too deeply.
    """
    try:
        return json.dumps(_plain(value, variant), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise too_deep() from None


def read_json_text(text: str) -> Value:
    """Decode a value from lossless JSON text. Raises SqlppError for text that `write_json_text` did not write."""
    try:
        return _value(json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant))
    except RecursionError:
        raise too_deep() from None
    except (ValueError, TypeError, KeyError) as reason:
        raise SqlppError(UNREADABLE, f"Invalid format for the open part of an object: {reason}") from None


def _plain(value: Value, variant: bool) -> object:  # noqa: FBT001 - passed on by a function called for each value
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    if isinstance(value, float):
        return _real(value, variant)
    if isinstance(value, dict):
        fields = {name: _plain(item, variant) for name, item in value.items()}
        return {"$object": list(fields.items())} if len(fields) == 1 and not _TAGS.keys().isdisjoint(fields) else fields
    if type(value) is tuple:
        return [_plain(item, variant) for item in value]
    return _tag_value(value, variant)


def _real(value: float, variant: bool) -> object:  # noqa: FBT001
    if isinstance(value, Float):
        return {"$float": _real(float(value), variant)}
    if variant and value.is_integer():
        return {"$double": float(value) if value or math.copysign(1, value) > 0 else "-0.0"}
    if math.isfinite(value):
        return float(value)
    return {"$double": "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"}


def _tag_value(value: Value, variant: bool) -> object:  # noqa: FBT001
    if value is MISSING:
        return {"$missing": True}
    if isinstance(value, Bag):
        return {"$multiset": [_plain(item, variant) for item in value]}
    if isinstance(value, int):
        return {_NUMBERS[type(value)]: int(value)}
    if isinstance(value, bytes):
        return {"$binary": value.hex()}
    if isinstance(value, uuid.UUID):
        return {"$uuid": str(value)}
    if isinstance(value, Interval):
        return {"$interval": [type_name(value.start), value.start[0], value.end[0]]}
    if isinstance(value, Geometry):
        return {"$geometry": value.wkb}
    if isinstance(value, SHAPES):
        return {f"${type_name(value)}": [_real(one, variant) for one in value.coordinates]}
    return {f"${type_name(value)}": time_texts.write_time_text(value)}


def _moment(kind: object, number: object) -> Date | Time | DateTime:
    makers: Mapping[object, type[Date | Time | DateTime]] = {"date": Date, "time": Time, "datetime": DateTime}
    if not isinstance(number, int):
        raise TypeError(f"{number!r} is not a whole number")
    return makers[kind](number)


def _shape_maker(shape: type[Shape]) -> Callable[[list[str | float]], Value]:
    return lambda value: shape(tuple(map(float, value)))


def _object(pairs: list[tuple[str, object]]) -> object:
    if len(pairs) == 1:
        ((name, value),) = pairs
        make = _TAGS.get(name)
        if make is not None:
            return make(value)
    return {name: _value(value) for name, value in pairs}


def _value(value: object) -> Value:
    """Convert lists to tuples recursively: while JSON is decoded, arrays are lists."""
    return tuple(_value(item) for item in value) if isinstance(value, list) else value  # type: ignore[return-value]


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _time(kind: TypeName) -> Callable[[object], Value]:
    def make(value: object) -> Value:
        time_text = time_texts.read_time_text(str(value), kind)
        if time_text is None:
            raise ValueError(f"{value!r} is not of type {kind}")
        return time_text

    return make


def _double(value: str | float) -> float:
    return _REALS[value] if isinstance(value, str) else float(value)


_TIMES: tuple[TypeName, ...] = (
    "date",
    "time",
    "datetime",
    "duration",
    "year-month-duration",
    "day-time-duration",
)
_TAGS: Mapping[str, Callable[..., Value]] = {
    "$missing": lambda _: MISSING,
    "$multiset": lambda value: Bag(_value(item) for item in value),
    "$tinyint": TinyInt,
    "$smallint": SmallInt,
    "$integer": Integer,
    "$float": lambda value: Float(_double(value)),
    "$double": _double,
    "$binary": bytes.fromhex,
    "$uuid": uuid.UUID,
    "$interval": lambda value: Interval(_moment(value[0], value[1]), _moment(value[0], value[2])),
    **{f"${type_of_shape(shape)}": _shape_maker(shape) for shape in SHAPES},
    "$geometry": Geometry,
    **{f"${kind}": _time(kind) for kind in _TIMES},
    "$object": lambda pairs: {name: _value(item) for name, item in pairs},
}
