"""Parsing and printing of dates and times by a pattern.

May import the table, `times` and `values`. Must not know plans. A letter of a pattern stands for a part and is repeated
for the number of digits: `Y` year, `M` month (`MMM` an English abbreviation), `D` day, `h` hour, `m` minute, `s`
second, `n` fraction of a second, `a` `am` or `pm`. Other characters stand for themselves. `|` separates patterns, which
are tried in order when a text is parsed. The result is NULL for a text or value that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from limnos.sqlpp.functions.costs import character_cost
from limnos.sqlpp.functions.table import scalar
from limnos.sqlpp.functions.times import DAY_MS, civil, date_of
from limnos.sqlpp.values.model import Date, DateTime, Time, Value

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_RUNS: Final = re.compile(r"MMM|Y+|M+|D+|h+|m+|s+|n+|a|.", re.DOTALL)
_DATE_LETTERS, _TIME_LETTERS = frozenset("YMD"), frozenset("hmsna")
Parts = dict[str, int]


@lru_cache(256)
def _runs(pattern: str) -> tuple[str, ...]:
    return tuple(_RUNS.findall(pattern))


def _read(text: str, pattern: str) -> Parts | None:
    """Return the parts of a text by a pattern; None if it does not fit."""
    results: Parts = {}
    at = 0
    for run in _runs(pattern):
        letter = run[0]
        if letter not in _DATE_LETTERS | _TIME_LETTERS:
            name, value = run, None
        elif run in ("MMM", "a"):
            name = text[at : at + (3 if run == "MMM" else 2)].lower()
            names = MONTHS if run == "MMM" else ("am", "pm")
            value = names.index(name) + (run == "MMM") if name in names else None
            if value is None:
                return None
        else:
            most = max(len(run), {"Y": 4, "n": 3}.get(letter, 2))
            match = re.compile(rf"\d{{1,{most}}}", re.ASCII).match(text, at)
            if match is None:
                return None
            name = match[0]
            value = int((name + "00")[:3]) if letter == "n" else int(name)
        if text[at : at + len(name)].lower() != name.lower():
            return None
        at += len(name)
        if value is not None:
            results[letter] = value
    return results if at == len(text) else None


def _days(parts: Mapping[str, int]) -> int | None:
    date = date_of(f"{parts.get('Y', 1970):04d}-{parts.get('M', 1):02d}-{parts.get('D', 1):02d}")
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
    """Return the parts by the first pattern that fits."""
    if not isinstance(text, str) or not isinstance(pattern, str):
        return None
    return next((results for each in pattern.split("|") if (results := _read(text, each)) is not None), None)


@scalar("parse_date", least=2, cost=character_cost)
def parse_date(text: Value, pattern: Value) -> Value:
    """Parse a date by a pattern."""
    parts = _first(text, pattern)
    days = None if parts is None else _days(parts)
    return None if days is None else Date(days)


@scalar("parse_time", least=2, cost=character_cost)
def parse_time(text: Value, pattern: Value) -> Value:
    """Parse a time of day by a pattern."""
    parts = _first(text, pattern)
    number = None if parts is None else _day_ms(parts)
    return None if number is None else Time(number)


@scalar("parse_datetime", least=2, cost=character_cost)
def parse_datetime(text: Value, pattern: Value) -> Value:
    """Parse a datetime by a pattern."""
    parts = _first(text, pattern)
    if parts is None:
        return None
    days, of_day = _days(parts), _day_ms(parts)
    return None if days is None or of_day is None else DateTime(days * DAY_MS + of_day)


def _format_moment(pattern: Value, days: int | None, *, of_day: int | None) -> str | None:
    """Format a date, a time or both by a pattern; None if the pattern has other parts."""
    if not isinstance(pattern, str):
        return None
    known = _parts_of(days, of_day)
    pieces = []
    for run in _runs(pattern):
        letter = run[0]
        if letter not in _DATE_LETTERS | _TIME_LETTERS:
            pieces.append(run)
        elif letter not in known:
            return None
        else:
            pieces.append(_piece(run, known, twelve="a" in pattern))
    return "".join(pieces)


def _parts_of(days: int | None, of_day: int | None) -> Parts:
    results: Parts = {}
    if days is not None:
        results |= dict(zip("YMD", civil(days), strict=True))
    if of_day is not None:
        seconds, fraction = divmod(of_day, 1000)
        hour = seconds // 3600
        results |= {"h": hour, "m": seconds // 60 % 60, "s": seconds % 60, "n": fraction, "a": hour // 12}
    return results


def _piece(run: str, known: Parts, *, twelve: bool) -> str:
    value = known[run[0]]
    if run == "MMM":
        return MONTHS[value - 1].capitalize()
    if run == "a":
        return ("am", "pm")[value]
    if run[0] == "n":
        return f"{value:03d}"[: len(run)].ljust(len(run), "0")
    if run[0] == "h" and twelve:
        value = (value + 11) % 12 + 1
    return f"{value:0{len(run)}d}"


@scalar("print_date", least=2, cost=character_cost)
def print_date(value: Value, pattern: Value) -> Value:
    """Format a date by a pattern."""
    return _format_moment(pattern, value.days, of_day=None) if isinstance(value, Date) else None


@scalar("print_time", least=2, cost=character_cost)
def print_time(value: Value, pattern: Value) -> Value:
    """Format a time of day by a pattern."""
    return _format_moment(pattern, None, of_day=value.ms) if isinstance(value, Time) else None


@scalar("print_datetime", least=2, cost=character_cost)
def print_datetime(value: Value, pattern: Value) -> Value:
    """Format a datetime by a pattern."""
    if not isinstance(value, DateTime):
        return None
    days, of_day = divmod(value.ms, DAY_MS)
    return _format_moment(pattern, days, of_day=of_day)
