# SPDX-License-Identifier: Apache-2.0
"""Intervals, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.values.model import MISSING, Date, DayTimeDuration, Interval, Time, Value
from tests.rooms.sqlpp.language.evaluation import value

A = "interval(date('2020-01-01'), date('2020-01-11'))"


def days(start: int, end: int) -> str:
    """Return an interval of days in January 2020."""
    return f"interval(date('2020-01-{start:02}'), date('2020-01-{end:02}'))"


@pytest.mark.parametrize(
    "text, expected",
    [
        (A, Interval(Date(18262), Date(18272))),
        ("interval(date('2020-01-11'), date('2020-01-01'))", None),
        ("interval(date('2020-01-01'), time('10:00:00'))", None),
        ("interval(1, 2)", None),
        ("interval(null, date('2020-01-01'))", None),
        ("interval(missing, null)", MISSING),
        ("interval_start_from_date('2020-01-01', 'P10D') = " + A, True),
        ("interval_start_from_date(date('2020-01-01'), 10)", None),
        ("interval_start_from_time('01:00:00', 'PT1H')", Interval(Time(3_600_000), Time(7_200_000))),
        (f"get_interval_start({A})", Date(18262)),
        (f"get_interval_end_date({A})", Date(18272)),
        (f"get_interval_end_datetime({A})", None),
        (f"duration_from_interval({A})", DayTimeDuration(10 * 86_400_000)),
        (f"is_interval({A})", True),
        (f"{A} < {A}", None),
        (f"{A} = {A}", True),
        (f"get_overlapping_interval({A}, {days(5, 20)}) = {days(5, 11)}", True),
        (f"get_overlapping_interval({A}, {days(11, 20)})", None),
        (
            (
                "interval_bin(date('2010-10-30'), date('1990-01-01'), year_month_duration('P1Y')) ="
                " interval(date('2010-01-01'), date('2011-01-01'))"
            ),
            True,
        ),
        (
            (
                "interval_bin(date('1989-12-31'), date('1990-01-01'), day_time_duration('P7D')) ="
                " interval(date('1989-12-25'), date('1990-01-01'))"
            ),
            True,
        ),
        ("interval_bin(time('12:23:34'), time('00:00:00'), year_month_duration('P1Y'))", None),
        (
            "string(get_interval_end(interval_bin(time('23:23:34'), time('00:00:00'), day_time_duration('PT1H'))))",
            "00:00:00.000",
        ),
        (
            (
                "interval_bin(time('23:23:34'), time('00:00:00'), day_time_duration('PT1H')) ="
                " interval_bin(time('23:59:59'), time('00:00:00'), day_time_duration('PT1H'))"
            ),
            True,
        ),
        ("interval_bin(date('2010-10-30'), date('1990-01-01'), day_time_duration('PT0S'))", None),
        (f"array_length(overlap_bins({A}, date('2020-01-01'), day_time_duration('P4D')))", 3),
    ],
)
def test_interval_functions_return_expected_values(text: str, expected: Value) -> None:
    """Both ends have one type, and the start precedes the end."""
    assert value(text) == expected


RELATIONS = {
    "before": [(1, 2, 3, 4)],
    "after": [(3, 4, 1, 2)],
    "meets": [(1, 2, 2, 4)],
    "met_by": [(2, 4, 1, 2)],
    "overlaps": [(1, 3, 2, 4)],
    "overlapped_by": [(2, 4, 1, 3)],
    "overlapping": [
        (1, 3, 2, 4),
        (2, 4, 1, 3),
        (1, 4, 1, 3),
        (1, 3, 1, 4),
        (2, 3, 1, 4),
        (1, 4, 2, 3),
        (2, 4, 1, 4),
        (1, 4, 2, 4),
        (1, 2, 1, 2),
    ],
    "starts": [(1, 3, 1, 4), (1, 2, 1, 2)],
    "started_by": [(1, 4, 1, 3), (1, 2, 1, 2)],
    "covers": [(1, 4, 2, 3), (1, 4, 1, 3), (1, 4, 2, 4), (1, 2, 1, 2)],
    "covered_by": [(2, 3, 1, 4), (1, 3, 1, 4), (2, 4, 1, 4), (1, 2, 1, 2)],
    "ends": [(2, 4, 1, 4), (1, 2, 1, 2)],
    "ended_by": [(1, 4, 2, 4), (1, 2, 1, 2)],
}
CASES = sorted({case for cases in RELATIONS.values() for case in cases})


@pytest.mark.parametrize("name", RELATIONS)
def test_each_relation_holds_for_its_cases_alone(name: str) -> None:
    """Of all positions of two intervals, each relation holds for exactly its cases."""
    matches = [case for case in CASES if value(f"interval_{name}({days(*case[:2])}, {days(*case[2:])})") is True]

    assert matches == sorted(RELATIONS[name])
    assert value(f"interval_{name}({A}, 1)") is None
    assert value(f"interval_{name}({A}, interval(time('01:00:00'), time('02:00:00')))") is None


def test_too_many_bins_are_refused() -> None:
    """A long interval with small bins is refused, because it would exhaust the memory."""
    with pytest.raises(SqlppError, match="more than 1000000 bins"):
        value(
            "overlap_bins(interval(datetime('2000-01-01T00:00:00'), datetime('2020-01-01T00:00:00')),"
            " datetime('2000-01-01T00:00:00'), day_time_duration('PT1S'))"
        )


def test_interval_is_printed_as_asterixdb_json() -> None:
    """JSON has an interval in AsterixDB's form."""
    assert json_text(value(A)) == '{"interval":{"start":"2020-01-01","end":"2020-01-11"}}'
