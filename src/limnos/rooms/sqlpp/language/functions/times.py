# SPDX-License-Identifier: Apache-2.0
"""Functions on dates, times and durations: parsing, printing, parts, and arithmetic.

Must not know the current time, which the caller of the binder provides. Times are UTC, in milliseconds. The calendar is
Gregorian, with years from -9999 to 9999. The result is NULL for a malformed string.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from limnos.rooms.sqlpp.language.functions.costs import character_cost
from limnos.rooms.sqlpp.language.functions.numbers import to_integer
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import (
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Time,
    Value,
    YearMonthDuration,
)

DAY_MS = 86_400_000
_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
YEAR_MAX = 9999

_DATE = re.compile(r"(-?\d{4})(-?)(\d\d)\2(\d\d)", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_COMPACT_TIME = re.compile(r"(\d\d)(\d\d)(\d\d)(\d{0,9})(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_DURATION = re.compile(
    r"([+-])?P(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?(?:T?(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,3}))?S)?)?",
    re.ASCII,
)


def days_of(year: int, month: int, *, day: int) -> int:
    """Convert a date to days since 1970-01-01, in the proleptic Gregorian calendar."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil(days: int) -> tuple[int, int, int]:
    """Convert days since 1970-01-01 to year, month and day."""
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def _month_days(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _MONTHS[month - 1]


def date_of(text: str) -> Date | None:
    """Parse `2013-01-31` or `20130131`; None if it is malformed."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day = map(int, match.group(1, 3, 4))
    if not (1 <= month <= 12 and 1 <= day <= _month_days(year, month)):
        return None
    return Date(days_of(year, month, day=day))


def time_of(text: str) -> Time | None:
    """Parse `23:59:59.999` or `235959999`; None if it is malformed.

    An offset is subtracted modulo 24 hours.
    """
    day_ms = _day_ms(text)
    return None if day_ms is None else Time(day_ms % DAY_MS)


def _day_ms(text: str) -> int | None:
    """Parse a time of day to milliseconds since midnight; None if it is malformed.

    The result is negative or longer than a day if the string has a time zone offset that shifts it there.
    """
    match = _TIME.fullmatch(text) or _COMPACT_TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = (int(part) for part in match.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        return None
    ms = int((match[4] or "").ljust(3, "0")[:3])
    return ((hour * 60 + minute) * 60 + second) * 1000 + ms - _offset_ms(match[5])


def _offset_ms(text: str | None) -> int:
    if text is None or text == "Z":
        return 0
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return minutes * 60_000 * (-1 if text[0] == "-" else 1)


def datetime_of(text: str) -> DateTime | None:
    """Parse `2013-01-31T23:59:59.999Z`; None if it is malformed."""
    day, _, rest = text.partition("T") if "T" in text else text.partition(" ")
    date, of_day = date_of(day), _day_ms(rest)
    return None if date is None or of_day is None else DateTime(date.days * DAY_MS + of_day)


def duration_of(text: str) -> Duration | None:
    """Parse `P1Y2M3DT4H5M6.789S`; None if it is malformed. The `T` may be absent."""
    match = _DURATION.fullmatch(text)
    if match is None or text[-1] in "PT":
        return None
    years, months, days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:7])
    ms = ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + int((match[8] or "").ljust(3, "0"))
    sign = -1 if match[1] == "-" else 1
    return Duration(sign * (years * 12 + months), sign * ms)


def time_text(value: Value) -> str | None:
    """Format a date, time, datetime or duration as ISO 8601 text; None for another value."""
    match value:
        case Date(days):
            return _date_text(days)
        case Time(ms):
            return _time_text(ms % DAY_MS)  # the end of a day's last bin is midnight
        case DateTime(ms):
            return f"{_date_text(ms // DAY_MS)}T{_time_text(ms % DAY_MS)}"
        case Duration(months, ms):
            return _duration_text(months, ms)
        case YearMonthDuration(months):
            return _duration_text(months, 0)
        case DayTimeDuration(ms):
            return _duration_text(0, ms)
    return None


def _date_text(days: int) -> str:
    year, month, day = civil(days)
    return f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{day:02}"


def _time_text(ms: int) -> str:
    seconds, rest = divmod(ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"


def _duration_text(months: int, ms: int) -> str:
    sign = "-" if months < 0 or ms < 0 else ""
    years, month = divmod(abs(months), 12)
    days, rest = divmod(abs(ms), DAY_MS)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    second, part = divmod(rest, 1000)
    date = "".join(f"{count}{unit}" for count, unit in ((years, "Y"), (month, "M"), (days, "D")) if count)
    seconds = f"{second}.{part:03}S" if part else f"{second}S" if second else ""
    time = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count) + seconds
    return f"{sign}P{date}{'T' + time if time else ''}" if date or time else "PT0S"


def shift_time(value: Value, by: Value, *, sign: int) -> Value:
    """Add (`sign` 1) or subtract (-1) a duration, or subtract two values of the same type; NULL if that is
    undefined.
    """
    if isinstance(by, (YearMonthDuration, DayTimeDuration, Duration)):
        months = sign * (0 if isinstance(by, DayTimeDuration) else by.months)
        ms = sign * (0 if isinstance(by, YearMonthDuration) else by.ms)
        return _move_date(value, months, ms=ms)
    if sign == 1 and isinstance(value, (YearMonthDuration, DayTimeDuration, Duration)):
        return shift_time(by, value, sign=1)
    return _between(value, by) if sign == -1 else None


def _between(value: Value, other: Value) -> Value:
    """Return the difference of two dates, times or datetimes as a duration."""
    if isinstance(value, Date) and isinstance(other, Date):
        return DayTimeDuration((value.days - other.days) * DAY_MS)
    if isinstance(value, Time) and isinstance(other, Time):
        return DayTimeDuration(value.ms - other.ms)
    if isinstance(value, DateTime) and isinstance(other, DateTime):
        return DayTimeDuration(value.ms - other.ms)
    return None


def _move_date(value: Value, months: int, *, ms: int) -> Value:
    match value:
        case Date(days):
            moved = _add_months(days, months)
            return None if moved is None else Date((moved * DAY_MS + ms) // DAY_MS)
        case DateTime(at):
            moved = _add_months(at // DAY_MS, months)
            return None if moved is None else DateTime(moved * DAY_MS + at % DAY_MS + ms)
        case Time(at):
            return None if months else Time((at + ms) % DAY_MS)
        case YearMonthDuration(current):
            return YearMonthDuration(current + months) if not ms else None
        case DayTimeDuration(current):
            return DayTimeDuration(current + ms) if not months else None
    return None


def _add_months(days: int, months: int) -> int | None:
    """Add months to a date, given in days; the day is cut to the last day of the resulting month. None beyond the
    calendar.
    """
    if not months:
        return days
    year, month, day = civil(days)
    year, month = divmod(year * 12 + month - 1 + months, 12)
    if abs(year) > YEAR_MAX:
        return None
    return days_of(year, month + 1, day=min(day, _month_days(year, month + 1)))


def _parts(value: Value) -> dict[str, int]:
    """Return the parts (year, month, day, hour, minute, second, millisecond) of a value; a string is parsed first."""
    if isinstance(value, str):
        text = value.strip()
        value = datetime_of(text) or date_of(text) or time_of(text)
    if isinstance(value, (Duration, YearMonthDuration, DayTimeDuration)):
        return _parts_of_duration(value)
    days = value.days if isinstance(value, Date) else value.ms // DAY_MS if isinstance(value, DateTime) else None
    ms = value.ms % DAY_MS if isinstance(value, (Time, DateTime)) else None
    results = {} if days is None else dict(zip(("year", "month", "day"), civil(days), strict=True))
    if ms is not None:
        results |= {
            "hour": ms // 3_600_000,
            "minute": ms // 60_000 % 60,
            "second": ms // 1000 % 60,
            "millisecond": ms % 1000,
        }
    return results


def _parts_of_duration(value: Duration | YearMonthDuration | DayTimeDuration) -> dict[str, int]:
    months = 0 if isinstance(value, DayTimeDuration) else value.months
    ms = 0 if isinstance(value, YearMonthDuration) else value.ms
    sign = -1 if months < 0 or ms < 0 else 1
    months, ms = abs(months), abs(ms)
    by_months = {"year": months // 12, "month": months % 12}
    by_ms = {
        "day": ms // DAY_MS,
        "hour": ms // 3_600_000 % 24,
        "minute": ms // 60_000 % 60,
        "second": ms // 1000 % 60,
        "millisecond": ms % 1000,
    }
    result = {} if isinstance(value, DayTimeDuration) else by_months
    if not isinstance(value, YearMonthDuration):
        result |= by_ms
    return {name: sign * part for name, part in result.items()}


def _part(name: str) -> None:
    scalar(f"get_{name}", name, least=1, cost=character_cost)(lambda value: _parts(value).get(name))


for _name in ("year", "month", "day", "hour", "minute", "second", "millisecond"):
    _part(_name)


def _day(value: Value) -> int | None:
    return value.days if isinstance(value, Date) else value.ms // DAY_MS if isinstance(value, DateTime) else None


def _register_day(name: str, work: Callable[[int], Value]) -> None:
    def run(value: Value) -> Value:
        days = _day(value)
        return None if days is None else work(days)

    scalar(name, least=1, cost=character_cost)(run)


WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


@scalar("week_of_year", least=1, most=2, cost=character_cost)
def week_of_year(value: Value, start: Value = 1) -> Value:
    """Return the week of the year. Week 1 contains 1 January; weeks begin on Sunday, or on a day given by name or
    number.
    """
    days, first = _day(value), _weekday(start)
    if days is None or first is None:
        return None
    begins = days - (days + 4 - first) % 7
    year = civil(begins + 6)[0]
    january = days_of(year, 1, day=1)
    return (begins - (january - (january + 4 - first) % 7)) // 7 + 1


def _weekday(value: Value) -> int | None:
    """Return the index of a weekday, from 0 for Sunday; the argument is a name, its first three letters, or a
    number.
    """
    if isinstance(value, str):
        names = (number for number, name in enumerate(WEEKDAYS) if value.lower() in (name, name[:3]))
        return next(names, None)
    number = to_integer(value)
    return None if number is None or not 1 <= number <= len(WEEKDAYS) else number - 1


@scalar("day_of_week", least=1, most=2, cost=character_cost)
def day_of_week(value: Value, start: Value = 1) -> Value:
    """Return the weekday of a date as a number, from 1 for Sunday or for the given first day of the week."""
    days, first = _day(value), _weekday(start)
    return None if days is None or first is None else (days + 4 - first) % 7 + 1


_register_day("day_of_year", lambda days: days - days_of(civil(days)[0], 1, day=1) + 1)
_register_day("quarter_of_year", lambda days: (civil(days)[1] + 2) // 3)
_register_day("get_date_from_datetime", Date)
_register_day("unix_time_from_date_in_days", lambda days: days)
_register_day("unix_time_from_date_in_ms", lambda days: days * DAY_MS)


@scalar("get_time_from_datetime", least=1, cost=character_cost)
def time_of_datetime(value: Value) -> Value:
    """Return the time of day of a datetime."""
    return Time(value.ms % DAY_MS) if isinstance(value, DateTime) else None


@scalar("datetime_from_date_time", least=2, cost=character_cost)
def join_date_time(date: Value, time: Value) -> Value:
    """Combine a date and a time of day to a datetime."""
    return DateTime(date.days * DAY_MS + time.ms) if isinstance(date, Date) and isinstance(time, Time) else None


@scalar("date_from_unix_time_in_days", least=1, cost=character_cost)
def from_unix_days(value: Value) -> Value:
    """Return the date that is a number of days after 1970-01-01."""
    time = datetime_of_unix_ms(to_integer(value), DAY_MS)
    return None if time is None else Date(time.ms // DAY_MS)


def datetime_of_unix_ms(count: int | None, unit_ms: int) -> DateTime | None:
    """Return the datetime that is `count` units of `unit_ms` after 1970; None beyond the calendar's years."""
    edge = days_of(YEAR_MAX, 12, day=31) * DAY_MS
    return DateTime(count * unit_ms) if count is not None and abs(count) <= edge // unit_ms else None


@scalar("unix_time_from_time_in_ms", least=1, cost=character_cost)
def time_ms(value: Value) -> Value:
    """Return a time of day in milliseconds since midnight."""
    return value.ms if isinstance(value, Time) else None


@scalar("time_from_unix_time_in_ms", least=1, cost=character_cost)
def from_time_ms(value: Value) -> Value:
    """Return the time of day at a number of milliseconds since midnight."""
    number = to_integer(value)
    return None if number is None or not 0 <= number < DAY_MS else Time(number)


@scalar("duration_from_ms", least=1, cost=character_cost)
def from_ms(value: Value) -> Value:
    """Return a duration of a number of milliseconds; NULL beyond 64 bits."""
    number = to_integer(value)
    return None if number is None or abs(number) >= 1 << 63 else Duration(0, number)


@scalar("duration_from_months", least=1, cost=character_cost)
def from_months(value: Value) -> Value:
    """Return a duration of a number of months; NULL beyond 32 bits."""
    number = to_integer(value)
    return None if number is None or abs(number) >= 1 << 31 else Duration(number, 0)


@scalar("get_year_month_duration", least=1, cost=character_cost)
def year_month_part(value: Value) -> Value:
    """Return the year-month part of a duration."""
    return YearMonthDuration(value.months) if isinstance(value, Duration) else None


@scalar("get_day_time_duration", least=1, cost=character_cost)
def day_time_part(value: Value) -> Value:
    """Return the day-time part of a duration."""
    return DayTimeDuration(value.ms) if isinstance(value, Duration) else None


@scalar("months_from_year_month_duration", least=1, cost=character_cost)
def months_of(value: Value) -> Value:
    """Return a year-month duration as a number of months."""
    return value.months if isinstance(value, YearMonthDuration) else None


@scalar("ms_from_day_time_duration", "milliseconds_from_day_time_duration", least=1, cost=character_cost)
def ms_of(value: Value) -> Value:
    """Return a day-time duration as a number of milliseconds."""
    return value.ms if isinstance(value, DayTimeDuration) else None
