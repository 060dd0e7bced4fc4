# SPDX-License-Identifier: Apache-2.0
"""Lossless text encoding of dates, times and durations.

Must not know columns. Values that AsterixDB's ISO 8601 texts cannot represent (a year of five digits, a duration whose
months and milliseconds have different signs) are written as numbers, with a comma between months and milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from limnos.rooms.sqlpp.language.functions import times
from limnos.rooms.sqlpp.language.values.model import (
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Time,
    TypeName,
    Value,
    YearMonthDuration,
)


def write_time_text(value: Value) -> str:
    """Encode a date, time or duration as text. A time shifted beyond 24 hours by an offset is wrapped."""
    if isinstance(value, Time):
        value = Time(value.ms % times.DAY_MS)
    text = times.time_text(value)
    if text is not None and isinstance(value, (Time, DateTime)):
        text = text.removesuffix(".000")
    kind = _KINDS[type(value)]
    if text is not None and read_time_text(text, kind) == value:
        return text
    return ",".join(str(part) for part in value)  # type: ignore[union-attr]


def read_time_text(text: str, kind: TypeName) -> Value:
    """Decode a date, time or duration of a type from text; None if the text is malformed."""
    result = _READERS[kind](text)
    return _numbers(text, kind) if result is None else result


def _numbers(text: str, kind: TypeName) -> Value:
    parts = text.split(",")
    make, count = _MAKERS[kind]
    if len(parts) != count or not all(part.lstrip("-").isdecimal() and len(part) <= 20 for part in parts):
        return None
    return make(*map(int, parts))


def _year_month(text: str) -> YearMonthDuration | None:
    duration = times.duration_of(text)
    return YearMonthDuration(duration.months) if duration is not None and not duration.ms else None


def _day_time(text: str) -> DayTimeDuration | None:
    duration = times.duration_of(text)
    return DayTimeDuration(duration.ms) if duration is not None and not duration.months else None


_READERS: Mapping[TypeName, Callable[[str], Value]] = {
    "date": times.date_of,
    "time": times.time_of,
    "datetime": times.datetime_of,
    "duration": times.duration_of,
    "year-month-duration": _year_month,
    "day-time-duration": _day_time,
}
_MAKERS: Mapping[TypeName, tuple[Callable[..., Value], int]] = {
    "date": (Date, 1),
    "time": (Time, 1),
    "datetime": (DateTime, 1),
    "duration": (Duration, 2),
    "year-month-duration": (YearMonthDuration, 1),
    "day-time-duration": (DayTimeDuration, 1),
}
_KINDS: Mapping[type, TypeName] = {
    Date: "date",
    Time: "time",
    DateTime: "datetime",
    Duration: "duration",
    YearMonthDuration: "year-month-duration",
    DayTimeDuration: "day-time-duration",
}
