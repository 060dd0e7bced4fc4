# SPDX-License-Identifier: Apache-2.0
"""Type tests and conversions.

Must not know plans. A `to_…` function converts leniently. A constructor such as `date("2013-01-31")` accepts a string
of the right form or certain other types; that of a numeric type is the same as its `to_…` function. Both return NULL
for a value that cannot be converted.
"""

from __future__ import annotations

import base64
import json
import math
import re
import uuid
from collections.abc import Callable

from limnos.rooms.sqlpp.language.errors import too_deep
from limnos.rooms.sqlpp.language.functions import formats, geojson, shapes, times
from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.costs import character_cost, print_cost, unit_cost
from limnos.rooms.sqlpp.language.functions.numbers import number
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    NUMERIC,
    SHAPES,
    WIDTHS,
    Bag,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Float,
    Geometry,
    Integer,
    Interval,
    SmallInt,
    Time,
    TinyInt,
    TypeName,
    Value,
    YearMonthDuration,
    type_name,
)

_WHOLE = re.compile(r"([+-]?\d{1,400})(?:i(8|16|32|64))?", re.ASCII)
_REAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?|[+-]?INF|NaN", re.ASCII)
_NUMERAL = re.compile(r"[+-]?(?:\d.*|\..*|INF)|NaN", re.ASCII)
_SUFFIXED = re.compile(r"([^fFdD]*\d\.?)[fFdD]", re.ASCII)
_TEXT_MAX = 400

_MADE: dict[TypeName, Callable[[int], int]] = {
    "tinyint": TinyInt,
    "smallint": SmallInt,
    "integer": Integer,
    "bigint": int,
}


CONSTRUCTORS = frozenset(
    (
        "bigint",
        "boolean",
        "date",
        "datetime",
        "day_time_duration",
        "double",
        "duration",
        "float",
        "integer",
        "smallint",
        "time",
        "tinyint",
        "uuid",
        "year_month_duration",
    )
)
"""The functions that construct a value from a string; a malformed string gives NULL with a warning."""
DURATIONS: tuple[TypeName, ...] = ("duration", "year-month-duration", "day-time-duration")


def _register_type_test(name: str, *types: TypeName, also: tuple[str, ...] = ()) -> None:
    requested = frozenset(types)
    scalar(f"is_{name}", f"is{name}", *also, least=1, cost=unit_cost)(lambda value: type_name(value) in requested)


_register_type_test("array", "array")
_register_type_test("multiset", "multiset")
_register_type_test("object", "object", also=("is_obj", "isobj"))
_register_type_test("string", "string", also=("is_str", "isstr"))
_register_type_test("boolean", "boolean", also=("is_bool", "isbool"))
_register_type_test("number", *NUMERIC, also=("is_num", "isnum"))
_register_type_test("binary", "binary", also=("is_bin", "isbin"))
_register_type_test("uuid", "uuid")
_register_type_test("date", "date")
_register_type_test("time", "time")
_register_type_test("datetime", "datetime", also=("is_timestamp", "istimestamp"))
_register_type_test("duration", *DURATIONS)
_register_type_test("temporal", *DURATIONS, "date", "time", "datetime", "interval", also=("istemporal",))
_register_type_test(
    "atomic",
    *NUMERIC,
    "string",
    "boolean",
    "binary",
    "uuid",
    "date",
    "time",
    "datetime",
    "duration",
    "year-month-duration",
    "day-time-duration",
    also=("is_atom", "isatom"),
)

scalar("is_null", "isnull", least=1, strict=False, cost=unit_cost)(
    lambda value: MISSING if value is MISSING else value is None
)
scalar("is_missing", "ismissing", least=1, strict=False, cost=unit_cost)(lambda value: value is MISSING)
scalar("is_unknown", "isunknown", least=1, strict=False, cost=unit_cost)(
    lambda value: value is None or value is MISSING
)
scalar("get_type", "gettype", "type_name", least=1, strict=False, cost=unit_cost)(type_name)


def json_text(value: Value) -> str:
    """Return a value as JSON; types that JSON lacks become strings, MISSING in an array becomes null.

    Raises SqlppError for a value that is nested too deeply.
    """
    try:
        return json.dumps(_to_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise too_deep() from None


def _to_plain(value: Value) -> object:
    if isinstance(value, dict):
        return {name: _to_plain(elements) for name, elements in value.items()}
    elements = items(value)
    if elements is not None:
        return [_to_plain(item) for item in elements]
    if value is MISSING:
        return None
    if isinstance(value, Interval):
        return {"interval": {"start": text_of(value.start), "end": text_of(value.end)}}
    if isinstance(value, SHAPES):
        return _to_plain(shapes.shape_items(value))
    if isinstance(value, Geometry):
        return _to_plain(geojson.write_geojson(value))
    if isinstance(value, float) and not math.isfinite(value):
        return text_of(value)
    if isinstance(value, Float):
        return float(_real_text(value))
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return text_of(value)


def text_of(value: Value) -> str:
    """Return a value as a string: a string unchanged, an object or collection as JSON.

    Raises SqlppError for a value that is nested too deeply.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _real_text(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, SHAPES):
        return shapes.shape_text(value)
    return times.time_text(value) or (str(value) if isinstance(value, uuid.UUID) else json_text(value))


def _real_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return _single_text(value) if isinstance(value, Float) else float.__repr__(float(value))


def _single_text(value: Float) -> str:
    """Format a single-precision number with the fewest digits that identify it."""
    texts = (f"{float(value):.{digits}g}" for digits in range(1, 10))
    return repr(float(next(text for text in texts if Float(float(text)) == value)))


def real_of(text: str) -> float | None:
    """Parse a double, which may end in `d` or `f`; None if the string is malformed."""
    text = text.strip()
    suffixed = _SUFFIXED.fullmatch(text)
    text = text if suffixed is None else suffixed[1]
    if len(text) > _TEXT_MAX or _REAL.fullmatch(text) is None:
        return None
    return float(text.replace("INF", "inf"))


def convert_to_integer(value: Value, kind: TypeName) -> Value:
    """Convert a string, which may have a suffix such as `i8`, or a number to an integer type.

    A double is truncated, and NaN is 0. A number out of range becomes the nearest integer of the type; a string with
    such a number gives NULL.
    """
    if isinstance(value, str):
        return _parse_integer(value.strip(), kind)
    current = int(value) if isinstance(value, bool) else number(value)
    if current is None:
        return None
    edge = 1 << (WIDTHS[kind] - 1)
    bounded = 0 if math.isnan(current) else max(-edge, min(current, edge - 1))
    return _MADE[kind](int(bounded))


def _parse_integer(text: str, kind: TypeName) -> Value:
    """Parse a string as an integer; a string with a double is parsed as a double and converted."""
    read = _WHOLE.fullmatch(text)
    if read is None:
        real = real_of(text) if _NUMERAL.fullmatch(text) else None
        return None if real is None else convert_to_integer(real, kind)
    number, edge = int(read[1]), 1 << (WIDTHS[kind] - 1)
    is_own = int(read[2] or WIDTHS[kind]) == WIDTHS[kind]
    return _MADE[kind](number) if is_own and -edge <= number < edge else None


def _real(value: Value) -> float | None:
    if isinstance(value, str):
        return real_of(value)
    if isinstance(value, bool):
        return float(value)
    result = number(value)
    return None if result is None else float(result)


def _wholes(kind: TypeName, *names: str) -> None:
    scalar(*names, least=1, cost=character_cost)(lambda value: convert_to_integer(value, kind))


_wholes("tinyint", "tinyint", "int8", "to_tinyint")
_wholes("smallint", "smallint", "int16", "to_smallint")
_wholes("integer", "integer", "int32", "to_integer")
_wholes("bigint", "bigint", "int", "int64", "to_bigint", "tobigint")
scalar("double", "to_double", "todouble", least=1, cost=character_cost)(_real)


@scalar("float", "to_float", least=1, cost=character_cost)
def single(value: Value) -> Value:
    """Convert a value to a single-precision number (`float`)."""
    real = _real(value)
    return None if real is None else Float(real)


@scalar("to_number", "to_num", "tonumber", "tonum", least=1, cost=character_cost)
def to_number(value: Value) -> Value:
    """Convert a string or a boolean to a number; a number is returned unchanged."""
    if number(value) is not None:
        return value
    whole = (
        None
        if isinstance(value, str) and _WHOLE.fullmatch(value.strip()) is None
        else convert_to_integer(value, "bigint")
    )
    return _real(value) if whole is None else whole


@scalar("to_string", "to_str", "tostring", "tostr", "string", least=1, cost=print_cost)
def to_string(value: Value) -> Value:
    """Convert a value to a string, a binary in base 64; NULL for an object or a collection."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return None if isinstance(value, dict) or items(value) is not None else text_of(value)


@scalar("to_boolean", "to_bool", "toboolean", "tobool", least=1, cost=character_cost)
def to_boolean(value: Value) -> Value:
    """Convert a value to a boolean: false for false, zero, NaN and empty values, else true; NULL for other types."""
    if isinstance(value, float) and math.isnan(value):
        return False
    is_collection = items(value) is not None
    return bool(value) if is_collection or isinstance(value, (bool, int, float, str, dict)) else None


@scalar("boolean", least=1, cost=character_cost)
def boolean(value: Value) -> Value:
    """Convert the string `true` or `false`, or a number, to a boolean."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip())
    return to_boolean(value) if isinstance(value, (bool, int, float)) else None


@scalar("to_array", "toarray", least=1, cost=character_cost)
def to_array(value: Value) -> Value:
    """Convert a value to an array: an array unchanged, a multiset to an array of its items, else an array of the
    value.
    """
    elements = items(value)
    return (value,) if elements is None else tuple(elements)


@scalar("to_multiset", least=1, cost=character_cost)
def to_multiset(value: Value) -> Value:
    """Convert a value to a multiset: of the items of an array or multiset, else of the value."""
    elements = items(value)
    return Bag((value,)) if elements is None else Bag(elements)


@scalar("to_atomic", "to_atom", "toatomic", "toatom", least=1, cost=character_cost)
def to_atomic(value: Value) -> Value:
    """Unwrap an array with one item or an object with one field, recursively; NULL if there are none or several."""
    while not isinstance(value, (str, int, float, bool)):
        elements = tuple(value.values()) if isinstance(value, dict) else items(value)
        if elements is None:
            return value
        if len(elements) != 1:
            return None
        value = elements[0]
    return value


@scalar("to_object", "to_obj", "toobject", "toobj", least=1, cost=character_cost)
def to_object(value: Value) -> Value:
    """Convert a value to an object: an object unchanged, another value to an empty object."""
    return value if isinstance(value, dict) else {}


def _from_text(
    name: str, read: Callable[[str], Value], *, kind: TypeName, part: Callable[[Duration], Value] | None = None
) -> None:
    """Register a type constructor that parses strings. `part` converts a duration to the type."""

    def run(value: Value) -> Value:
        if isinstance(value, str):
            return read(value.strip())
        if part is not None and isinstance(value, Duration):
            return part(value)
        return value if type_name(value) == kind else None

    scalar(name, least=1, cost=character_cost)(run)


def _year_month(text: str) -> Value:
    duration = times.duration_of(text)
    return YearMonthDuration(duration.months) if duration is not None and not duration.ms else None


def _day_time(text: str) -> Value:
    duration = times.duration_of(text)
    return DayTimeDuration(duration.ms) if duration is not None and not duration.months else None


@scalar("time", least=1, most=2, cost=character_cost)
def time(value: Value, *pattern: Value) -> Value:
    """Convert a string or a datetime to a time of day; with a pattern, a string only."""
    if pattern:
        return formats.parse_time(value, pattern[0])
    if isinstance(value, str):
        return times.time_of(value.strip())
    if isinstance(value, DateTime):
        return Time(value.ms % times.DAY_MS)
    return value if isinstance(value, Time) else None


@scalar("duration", least=1, cost=character_cost)
def duration(value: Value) -> Value:
    """Convert a string, a year-month duration or a day-time duration to a duration."""
    match value:
        case str():
            return times.duration_of(value.strip())
        case YearMonthDuration(months):
            return Duration(months, 0)
        case DayTimeDuration(ms):
            return Duration(0, ms)
    return value if isinstance(value, Duration) else None


_from_text(
    "year_month_duration", _year_month, kind="year-month-duration", part=lambda value: YearMonthDuration(value.months)
)
_from_text("day_time_duration", _day_time, kind="day-time-duration", part=lambda value: DayTimeDuration(value.ms))


@scalar("date", least=1, most=2, cost=character_cost)
def date(value: Value, *pattern: Value) -> Value:
    """Convert a string or a datetime to a date; with a pattern, a string only."""
    if pattern:
        return formats.parse_date(value, pattern[0])
    if isinstance(value, str):
        return times.date_of(value.strip())
    if isinstance(value, DateTime):
        return Date(value.ms // times.DAY_MS)
    return value if isinstance(value, Date) else None


@scalar("datetime", least=1, most=2, cost=character_cost)
def datetime(value: Value, *pattern: Value) -> Value:
    """Convert a string, a date (midnight) or a time (of 1970-01-01) to a datetime; with a pattern, a string only."""
    if pattern:
        return formats.parse_datetime(value, pattern[0])
    if isinstance(value, str):
        return times.datetime_of(value.strip())
    if isinstance(value, Date):
        return DateTime(value.days * times.DAY_MS)
    if isinstance(value, Time):
        return DateTime(value.ms)
    return value if isinstance(value, DateTime) else None


@scalar("uuid", "create_uuid", least=0, most=1, is_deterministic=False, cost=character_cost)
def unique(*argument: Value) -> Value:
    """Return a new random UUID; with an argument, parse it as a UUID."""
    if not argument:
        return uuid.uuid4()
    (value,) = argument
    if isinstance(value, uuid.UUID):
        return value
    try:
        return uuid.UUID(value) if isinstance(value, str) and len(value) == 36 else None
    except ValueError:
        return None
