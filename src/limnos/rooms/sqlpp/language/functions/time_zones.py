# SPDX-License-Identifier: Apache-2.0
"""Conversion of times between time zones, and comparison of durations.

Must not know plans. A time zone is an offset such as `+08:00` or a name such as `Asia/Tokyo`. The result is NULL for
another string, and for years outside of the time zone database.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from limnos.rooms.sqlpp.language.functions.costs import character_cost, unbounded_cost, unit_cost
from limnos.rooms.sqlpp.language.functions.numbers import to_integer
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.functions.times import DAY_MS, datetime_of_unix_ms, time_text
from limnos.rooms.sqlpp.language.values.model import DateTime, DayTimeDuration, Duration, Time, Value, YearMonthDuration

_OFFSET: Final = re.compile(r"([+-])(\d\d):?(\d\d)", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _offset_minutes(zone: Value) -> int | None:
    match = _OFFSET.fullmatch(zone.strip()) if isinstance(zone, str) else None
    if match is None:
        return None
    return (int(match[2]) * 60 + int(match[3])) * (-1 if match[1] == "-" else 1)


def _offset_text(minutes: int) -> str:
    sign, minutes = "-" if minutes < 0 else "+", abs(minutes)
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"


@scalar("adjust_time_for_timezone", least=2, cost=character_cost)
def adjust_time(value: Value, zone: Value) -> Value:
    """Format a time of day (UTC) in a time zone offset, such as `08:00:00.000+08:00`."""
    minutes = _offset_minutes(zone)
    if not isinstance(value, Time) or minutes is None:
        return None
    return f"{time_text(Time((value.ms + minutes * 60_000) % DAY_MS))}{_offset_text(minutes)}"


@scalar("adjust_datetime_for_timezone", least=2, cost=character_cost)
def adjust_datetime(value: Value, zone: Value) -> Value:
    """Format a datetime (UTC) in a time zone offset."""
    minutes = _offset_minutes(zone)
    if not isinstance(value, DateTime) or minutes is None:
        return None
    return f"{time_text(DateTime(value.ms + minutes * 60_000))}{_offset_text(minutes)}"


def _shift_ms(ms: int, zone: Value, *, is_local: bool) -> int | None:
    """Return the offset of a time zone at a time, in milliseconds: local time minus UTC.

    `is_local` is whether `ms` is a local time. None for an unknown time zone.
    """
    minutes = _offset_minutes(zone)
    if minutes is not None:
        return minutes * 60_000
    try:
        rules = ZoneInfo(zone) if isinstance(zone, str) else None
        moment = _EPOCH + timedelta(milliseconds=ms)
    except (ZoneInfoNotFoundError, ValueError, OverflowError):
        return None
    if rules is None:
        return None
    shift = (moment.replace(tzinfo=rules) if is_local else moment.astimezone(rules)).utcoffset()
    return None if shift is None else int(shift.total_seconds() * 1000)


def _register_from_unix(name: str, unit_ms: int) -> None:
    def run(count: Value, zone: Value = "+00:00") -> Value:
        moment = datetime_of_unix_ms(to_integer(count), unit_ms)
        shift = None if moment is None else _shift_ms(moment.ms, zone, is_local=False)
        return None if moment is None or shift is None else DateTime(moment.ms + shift)

    scalar(name, least=1, most=2, cost=unbounded_cost)(run)


def _register_to_unix(name: str, unit_ms: int) -> None:
    def run(value: Value, zone: Value = "+00:00") -> Value:
        shift = _shift_ms(value.ms, zone, is_local=True) if isinstance(value, DateTime) else None
        return (value.ms - shift) // unit_ms if isinstance(value, DateTime) and shift is not None else None

    scalar(name, least=1, most=2, cost=unbounded_cost)(run)


for _unit, _unit_ms in (("ms", 1), ("secs", 1000)):
    _register_from_unix(f"datetime_from_unix_time_in_{_unit}", _unit_ms)
    _register_to_unix(f"unix_time_from_datetime_in_{_unit}", _unit_ms)


def _months(value: Value) -> int | None:
    return value.months if isinstance(value, (Duration, YearMonthDuration)) else None


def _ms(value: Value) -> int | None:
    return value.ms if isinstance(value, (Duration, DayTimeDuration)) else None


def _register_comparison(name: str, part: Callable[[Value], int | None], *, is_greater: bool) -> None:
    """Register a comparison of two durations by one of their parts, such as the months."""

    def run(one: Value, other: Value) -> Value:
        first, second = part(one), part(other)
        if first is None or second is None:
            return None
        return first > second if is_greater else first < second

    scalar(name, least=2, cost=unit_cost)(run)


for _kind, _part in (("year_month", _months), ("day_time", _ms)):
    _register_comparison(f"{_kind}_duration_greater_than", _part, is_greater=True)
    _register_comparison(f"{_kind}_duration_less_than", _part, is_greater=False)


@scalar("duration_equal", least=2, cost=unit_cost)
def equal_durations(one: Value, other: Value) -> Value:
    """Return whether two durations have equal months and equal milliseconds."""
    kinds = (Duration, YearMonthDuration, DayTimeDuration)
    if not isinstance(one, kinds) or not isinstance(other, kinds):
        return None
    return (_months(one) or 0, _ms(one) or 0) == (_months(other) or 0, _ms(other) or 0)
