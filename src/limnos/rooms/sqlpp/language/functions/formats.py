# SPDX-License-Identifier: Apache-2.0
"""Parsing and printing of dates and times by a format pattern, such as `YYYY-MM-DD`.

Must not know plans. A letter of a pattern denotes a part and is repeated for the number of digits: `Y` year, `Q`
quarter, `M` month (`MMM` and `MMMM` English names), `D` day (`DDD` of the year), `EEE` and `EEEE` names of weekdays,
`h` hour, `m` minute, `s` second, `n` or `S` fraction of a second, `a` `AM` or `PM`. A parsed weekday, zone (`z`) or
word (`O`) has no effect. Other characters are literals. `|` separates patterns, which are tried in order when a string
is parsed. The result is NULL for a string or value that does not match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from limnos.rooms.sqlpp.language.functions.costs import character_cost
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.functions.times import DAY_MS, civil, date_of
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Time, Value

MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
WEEKDAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_RUNS: Final = re.compile(r"MMMM|MMM|EEEE|EEE|DDD|QQ|Y+|M+|D+|h+|m+|s+|n+|S+|Q|O|a|z|.", re.DOTALL)
_NAMES: Final = {
    "MMMM": MONTHS,
    "MMM": tuple(name[:3] for name in MONTHS),
    "EEEE": WEEKDAYS,
    "EEE": tuple(name[:3] for name in WEEKDAYS),
    "a": ("am", "pm"),
}
_DATE_LETTERS, _TIME_LETTERS = frozenset("YMDQE"), frozenset("hmsnSa")
_YEAR: Final = re.compile(r"-?\d{1,4}", re.ASCII)
_WORD: Final = re.compile(r"\S+")
_ZONE: Final = re.compile(r"Z|[+-]\d{1,2}:?\d{2}|[A-Za-z][A-Za-z_]*(?:/[A-Za-z_]+)*", re.ASCII)
Parts = dict[str, int]


@lru_cache(256)
def _runs(pattern: str) -> tuple[str, ...]:
    return tuple(_RUNS.findall(pattern))


def _read(text: str, pattern: str) -> Parts | None:
    """Parse a string by a pattern; None if it does not match."""
    results: Parts = {}
    at = 0
    for run in _runs(pattern):
        part = _read_run(text, run, at=at)
        if part is None:
            return None
        at, value = part
        if value is not None:
            results["n" if run[0] == "S" else run[0]] = value
    return results if at == len(text) else None


def _read_run(text: str, run: str, *, at: int) -> tuple[int, int | None] | None:
    """Parse one pattern element at an offset. Returns the end offset, and the value of the part or None if it has none.

    None if the string does not match.
    """
    letter = run[0]
    if run in _NAMES:
        fitting = [name for name in _NAMES[run] if text[at : at + len(name)].lower() == name]
        if not fitting:
            return None
        value = _NAMES[run].index(fitting[0]) + (letter == "M")
        return at + len(fitting[0]), None if letter == "E" else value
    if letter in "Oz":
        match = (_WORD if letter == "O" else _ZONE).match(text, at)
        return None if match is None else (match.end(), None)
    if letter not in _DATE_LETTERS | _TIME_LETTERS:
        return (at + 1, None) if text[at : at + 1].lower() == run.lower() else None
    if letter == "Y":
        match = _YEAR.match(text, at)
    else:
        most = max(len(run), 3 if letter in "nS" else 2)
        match = re.compile(rf"\d{{1,{most}}}", re.ASCII).match(text, at)
    if match is None:
        return None
    return match.end(), int((match[0] + "00")[:3]) if letter in "nS" else int(match[0])


def _days(parts: Mapping[str, int]) -> int | None:
    year, month = parts.get("Y", 1970), parts.get("M", 3 * parts.get("Q", 1) - 2)
    sign = "-" if year < 0 else ""
    date = date_of(f"{sign}{abs(year):04d}-{month:02d}-{parts.get('D', 1):02d}")
    return None if date is None else date.days


def _day_ms(parts: Mapping[str, int]) -> int | None:
    hour, minute, second = parts.get("h", 0), parts.get("m", 0), parts.get("s", 0)
    if "a" in parts:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * parts["a"]
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1000 + parts.get("n", 0)


def _first(text: Value, pattern: Value) -> Parts | None:
    """Parse a string by the first of the alternative patterns that matches; None without a match."""
    if not isinstance(text, str) or not isinstance(pattern, str):
        return None
    return next((results for each in pattern.split("|") if (results := _read(text, each)) is not None), None)


@scalar("parse_date", least=2, cost=character_cost)
def parse_date(text: Value, pattern: Value) -> Value:
    """Parse a date by a pattern such as `YYYY-MM-DD`; NULL if the string does not match."""
    parts = _first(text, pattern)
    days = None if parts is None else _days(parts)
    return None if days is None else Date(days)


@scalar("parse_time", least=2, cost=character_cost)
def parse_time(text: Value, pattern: Value) -> Value:
    """Parse a time of day by a pattern such as `hh:mm:ss`; NULL if the string does not match."""
    parts = _first(text, pattern)
    number = None if parts is None else _day_ms(parts)
    return None if number is None else Time(number)


@scalar("parse_datetime", least=2, cost=character_cost)
def parse_datetime(text: Value, pattern: Value) -> Value:
    """Parse a datetime by a pattern; NULL if the string does not match."""
    parts = _first(text, pattern)
    if parts is None:
        return None
    days, of_day = _days(parts), _day_ms(parts)
    return None if days is None or of_day is None else DateTime(days * DAY_MS + of_day)


def _format_moment(pattern: Value, days: int | None, *, of_day: int | None) -> str | None:
    """Format a date, a time or both by a pattern; None if the pattern has parts that the value lacks."""
    if not isinstance(pattern, str):
        return None
    moment_parts = _parts_of(days, of_day)
    pieces = []
    for run in _runs(pattern):
        letter = "n" if run[0] == "S" else run[0]
        if letter not in _DATE_LETTERS | _TIME_LETTERS:
            pieces.append(run)
        elif letter not in moment_parts:
            return None
        else:
            pieces.append(_piece(run, moment_parts, twelve="a" in pattern))
    return "".join(pieces)


def _parts_of(days: int | None, of_day: int | None) -> Parts:
    results: Parts = {}
    if days is not None:
        year, month, day = civil(days)
        first = date_of(f"{'-' if year < 0 else ''}{abs(year):04d}-01-01")
        of_year = 0 if first is None else days - first.days + 1
        results |= {"Y": year, "M": month, "D": day, "Q": (month + 2) // 3, "E": (days + 4) % 7, "DDD": of_year}
    if of_day is not None:
        seconds, fraction = divmod(of_day, 1000)
        hour = seconds // 3600
        results |= {"h": hour, "m": seconds // 60 % 60, "s": seconds % 60, "n": fraction, "a": hour // 12}
    return results


def _piece(run: str, known: Parts, *, twelve: bool) -> str:
    letter = "n" if run[0] == "S" else run[0]
    value = known["DDD" if run == "DDD" else letter]
    if run in _NAMES:
        name = _NAMES[run][value - (letter == "M")]
        return name.capitalize() if letter == "E" else name.upper()
    if run == "DDD" or letter == "E":
        return str(value)
    if letter == "n":
        return f"{value:03d}".rstrip("0").ljust(len(run), "0") if value else "000"
    if letter == "h" and twelve:
        value = (value + 11) % 12 + 1
    return f"{'-' if value < 0 else ''}{abs(value):0{len(run)}d}"


@scalar("print_date", least=2, cost=character_cost)
def print_date(value: Value, pattern: Value) -> Value:
    """Format a date by a pattern; NULL if the pattern has parts of a time."""
    return _format_moment(pattern, value.days, of_day=None) if isinstance(value, Date) else None


@scalar("print_time", least=2, cost=character_cost)
def print_time(value: Value, pattern: Value) -> Value:
    """Format a time of day by a pattern; NULL if the pattern has parts of a date."""
    return _format_moment(pattern, None, of_day=value.ms) if isinstance(value, Time) else None


@scalar("print_datetime", least=2, cost=character_cost)
def print_datetime(value: Value, pattern: Value) -> Value:
    """Format a datetime by a pattern such as `YYYY-MM-DD hh:mm:ss`."""
    if not isinstance(value, DateTime):
        return None
    days, of_day = divmod(value.ms, DAY_MS)
    return _format_moment(pattern, days, of_day=of_day)
