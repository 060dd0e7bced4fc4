# SPDX-License-Identifier: Apache-2.0
"""Functions on intervals of dates, times and datetimes: construction, parts, Allen's relations, and bins.

Must not know plans. An interval has a start and a later end of the same type. The result is NULL for arguments of other
types and for two intervals of different types.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.functions import times
from limnos.rooms.sqlpp.language.functions.collections import ITEMS_MAX
from limnos.rooms.sqlpp.language.functions.costs import unbounded_cost, unit_cost
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import (
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Interval,
    Time,
    Value,
    YearMonthDuration,
    type_name,
)

Moment = Date | Time | DateTime
_READERS: dict[str, Callable[[str], Moment | None]] = {
    "date": times.date_of,
    "time": times.time_of,
    "datetime": times.datetime_of,
}


def _make(start: Value, end: Value) -> Value:
    """Return an interval; NULL if the ends have different types, or the start is not before the end."""
    if not isinstance(start, Moment) or type(start) is not type(end) or not isinstance(end, Moment):
        return None
    return Interval(start, end) if start[0] < end[0] else None


@scalar("interval", least=2, cost=unit_cost)
def interval(start: Value, end: Value) -> Value:
    """Return the interval from a start to an end, both dates, times or datetimes."""
    return _make(start, end)


def _register_start_from(kind: str, type_: type[Moment]) -> None:
    def run(start: Value, length: Value) -> Value:
        first = _READERS[kind](start.strip()) if isinstance(start, str) else start
        span = times.duration_of(length.strip()) if isinstance(length, str) else length
        if not isinstance(first, type_) or not isinstance(span, (Duration, YearMonthDuration, DayTimeDuration)):
            return None
        return _make(first, times.shift_time(first, span, sign=1))

    scalar(f"interval_start_from_{kind}", least=2, cost=unit_cost)(run)


for _kind, _type in (("date", Date), ("time", Time), ("datetime", DateTime)):
    _register_start_from(_kind, _type)


def _register_part(name: str, part: Callable[[Interval], Moment]) -> None:
    """Register the function that returns one end of an interval, and its variants for one type (`…_date`).

    A variant returns NULL if the end has another type.
    """

    def run(value: Value) -> Value:
        return part(value) if isinstance(value, Interval) else None

    scalar(f"get_interval_{name}", least=1, cost=unit_cost)(run)
    for kind in _READERS:
        _register_typed_part(f"get_interval_{name}_{kind}", run, kind=kind)


def _register_typed_part(name: str, part: Callable[[Value], Value], *, kind: str) -> None:
    def run(value: Value) -> Value:
        moment = part(value)
        return moment if type_name(moment) == kind else None

    scalar(name, least=1, cost=unit_cost)(run)


_register_part("start", lambda value: value.start)
_register_part("end", lambda value: value.end)
scalar("is_interval", "isinterval", least=1, cost=unit_cost)(lambda value: isinstance(value, Interval))


@scalar("duration_from_interval", least=1, cost=unit_cost)
def duration(value: Value) -> Value:
    """Return the time between start and end, as a day-time-duration."""
    return times.shift_time(value.end, value.start, sign=-1) if isinstance(value, Interval) else None


def _register_relation(name: str, holds: Callable[[Interval, Interval], bool]) -> None:
    """Register a predicate on two intervals, such as `interval_before`."""

    def run(one: Value, other: Value) -> Value:
        if not isinstance(one, Interval) or not isinstance(other, Interval) or type(one.start) is not type(other.start):
            return None
        return holds(one, other)

    scalar(f"interval_{name}", least=2, cost=unit_cost)(run)


for _name, _holds in {
    "before": lambda one, other: one.end < other.start,
    "after": lambda one, other: one.start > other.end,
    "meets": lambda one, other: one.end == other.start,
    "met_by": lambda one, other: one.start == other.end,
    "overlaps": lambda one, other: one.start < other.start < one.end < other.end,
    "overlapped_by": lambda one, other: other.start < one.start < other.end < one.end,
    "overlapping": lambda one, other: one.start < other.end and other.start < one.end,
    "starts": lambda one, other: one.start == other.start and one.end <= other.end,
    "started_by": lambda one, other: one.start == other.start and one.end >= other.end,
    "covers": lambda one, other: one.start <= other.start and one.end >= other.end,
    "covered_by": lambda one, other: one.start >= other.start and one.end <= other.end,
    "ends": lambda one, other: one.end == other.end and one.start >= other.start,
    "ended_by": lambda one, other: one.end == other.end and one.start <= other.start,
}.items():
    _register_relation(_name, _holds)


@scalar("get_overlapping_interval", least=2, cost=unit_cost)
def overlap(one: Value, other: Value) -> Value:
    """Return the intersection of two intervals; NULL if they do not overlap."""
    if not isinstance(one, Interval) or not isinstance(other, Interval) or type(one.start) is not type(other.start):
        return None
    return _make(max(one.start, other.start), min(one.end, other.end))


@scalar("interval_bin", least=3, cost=unit_cost)
def interval_bin(value: Value, anchor: Value, size: Value) -> Value:
    """Return the bin that contains a time, as an interval. Bins have the duration `size`; one of them begins at the
    anchor.
    """
    number = _bin_number(value, anchor, size=size)
    return None if number is None else _bin(anchor, number, size=size)


def _bin_number(value: Value, anchor: Value, *, size: Value) -> int | None:
    """Return the index of the bin that contains a time; the bin at the anchor has index 0. None for arguments of wrong
    types.
    """
    if not isinstance(value, Moment) or type(value) is not type(anchor) or not isinstance(anchor, Moment):
        return None
    if isinstance(size, YearMonthDuration) and size.months > 0 and not isinstance(value, Time):
        return (_months(value) - _months(anchor)) // size.months
    if not isinstance(size, DayTimeDuration) or size.ms <= 0:
        return None
    unit = times.DAY_MS if isinstance(value, Date) else 1
    return (value[0] - anchor[0]) * unit // size.ms


def _months(value: Moment) -> int:
    year, month, _ = times.civil(value.days if isinstance(value, Date) else value.ms // times.DAY_MS)
    return year * 12 + month


def _bin(anchor: Value, number: int, *, size: Value) -> Value:
    """Return the bin with an index, as an interval. The end of a time of day is not wrapped at midnight."""
    if isinstance(anchor, Time) and isinstance(size, DayTimeDuration):
        return Interval(Time(anchor.ms + number * size.ms), Time(anchor.ms + (number + 1) * size.ms))
    return _make(_edge(anchor, number, size=size), _edge(anchor, number + 1, size=size))


def _edge(anchor: Value, number: int, *, size: Value) -> Value:
    if isinstance(size, YearMonthDuration):
        return times.shift_time(anchor, YearMonthDuration(size.months * number), sign=1)
    return (
        times.shift_time(anchor, DayTimeDuration(size.ms * number), sign=1)
        if isinstance(size, DayTimeDuration)
        else None
    )


@scalar("overlap_bins", least=3, cost=unbounded_cost)
def overlap_bins(value: Value, anchor: Value, size: Value) -> Value:
    """Return all bins that overlap an interval. Raises SqlppError if there are too many."""
    if not isinstance(value, Interval):
        return None
    first, last = _bin_number(value.start, anchor, size=size), _bin_number(value.end, anchor, size=size)
    if first is None or last is None:
        return None
    if last - first >= ITEMS_MAX:
        raise compilation(f"overlap_bins would return more than {ITEMS_MAX} bins")
    bins = (_bin(anchor, number, size=size) for number in range(first, last + 1))
    return tuple(one for one in bins if isinstance(one, Interval) and one.start[0] < value.end[0])
