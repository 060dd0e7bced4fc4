# SPDX-License-Identifier: Apache-2.0
"""Temporal values, by hand-written examples."""

from __future__ import annotations

import datetime as dt

import pytest

from limnos.rooms.sqlpp.language.functions.times import civil, days_of
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    Date,
    DateTime,
    DayTimeDuration,
    Time,
    Value,
    YearMonthDuration,
)
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("date('1970-01-01')", Date(0)),
        ("week_of_year(date('2021-01-01'))", 1),
        ("week_of_year(date('2021-01-03'))", 2),
        ("week_of_year(date('2021-01-03'), 'Monday')", 1),
        ("week_of_year(datetime('2021-12-26T01:01:01'))", 1),
        ("week_of_year(date('2021-12-26'), 'monday')", 52),
        ("week_of_year(date('2021-12-25'))", 52),
        ("week_of_year(date('2021-12-27'), 2)", 1),
        ("week_of_year(date('2021-01-01'), 8)", None),
        ("week_of_year(date('2021-01-01'), 'someday')", None),
        ("week_of_year(5)", None),
        ("unix_time_from_time_in_ms(time('01:00:00'))", 3_600_000),
        ("time_from_unix_time_in_ms(3600000) = time('01:00:00')", True),
        ("time_from_unix_time_in_ms(86400000)", None),
        ("unix_time_from_date_in_ms(date('1970-01-02'))", 86_400_000),
        ("duration_from_ms(1000) = duration('PT1S')", True),
        ("duration_from_months(14) = duration('P1Y2M')", True),
        ("duration_from_months('a')", None),
        ("date('1969-12-31')", Date(-1)),
        ("date('20000229')", Date(11016)),
        ("date('2000-0229')", None),
        ("time('235959999')", Time(86_399_999)),
        ("time(datetime('2020-01-02T03:04:05.678'))", Time(11_045_678)),
        ("get_year('1992-03-04')", 1992),
        ("get_month('1992-03-04T05:06:07')", 3),
        ("get_hour('1992-03-04T05:06:07')", 5),
        ("get_minute('05:06:07')", 6),
        ("get_day('no date')", None),
        ("get_year(duration('P3Y2M5DT7H'))", 3),
        ("get_day(duration('P3Y2M5DT7H'))", 5),
        ("get_hour(day_time_duration('P5DT7H'))", 7),
        ("get_month(year_month_duration('-P1Y2M'))", -2),
        ("get_day(year_month_duration('P1Y'))", None),
        ("string(year_month_duration(duration('P1Y3DT5H')))", "P1Y"),
        ("string(day_time_duration(duration('P1Y3DT5H')))", "P3DT5H"),
        ("year_month_duration(day_time_duration('P3D'))", None),
        ("date('2013-02-29')", None),
        ("date('2012-02-29')", Date(15399)),
        ("date('13-1-1')", None),
        ("date(null)", None),
        ("date(missing)", MISSING),
        ("time('01:02:03')", Time(3723000)),
        ("time('01:02:03.045')", Time(3723045)),
        ("time('24:00:00')", None),
        ("time('10:00:00-08:00')", Time(64_800_000)),
        ("time('23:00:00-08:00')", Time(25_200_000)),
        ("time('01:00:00+02:00')", Time(82_800_000)),
        ("time('01:00:00-00:30')", Time(5_400_000)),
        ("time('01:00:00-0030')", Time(5_400_000)),
        ("string(time('23:00:00-08:00'))", "07:00:00.000"),
        ("string(datetime('1999-12-31T23:00:00-02:30'))", "2000-01-01T01:30:00.000"),
        ("string(datetime('2000-03-01T01:00:00+02:00'))", "2000-02-29T23:00:00.000"),
        ("datetime('1970-01-01T00:00:00-05:00')", DateTime(18_000_000)),
        ("date('2000-02-29')", Date(11_016)),
        ("date('1900-02-29')", None),
        ("date('2100-02-29')", None),
        ("date('2400-02-29') - date('2400-02-28')", DayTimeDuration(86_400_000)),
        ("string(datetime('2000-02-29T12:00:00'))", "2000-02-29T12:00:00.000"),
        ("string(date('2000-01-31') + year_month_duration('P1M'))", "2000-02-29"),
        ("datetime('1970-01-01T00:00:01Z')", DateTime(1000)),
        ("datetime('1970-01-01T02:00:00+02:00')", DateTime(0)),
        ("datetime('1970-01-01')", None),
        ("datetime(date('1970-01-02'))", DateTime(86400000)),
        ("date(datetime('1970-01-02T23:00:00'))", Date(1)),
        ("string(date('2013-01-31'))", "2013-01-31"),
        ("string(datetime('2013-01-31T10:11:12.013'))", "2013-01-31T10:11:12.013"),
        ("string(time('10:11:12'))", "10:11:12.000"),
        ("string(duration('P1Y2M3DT4H5M6.789S'))", "P1Y2M3DT4H5M6.789S"),
        ("string(duration('-P1D'))", "-P1D"),
        ("string(day_time_duration('PT0S'))", "PT0S"),
        ("duration('P')", None),
        ("duration('PT')", None),
        ("year_month_duration('P1Y')", YearMonthDuration(12)),
        ("year_month_duration('P1D')", None),
        ("day_time_duration('PT1M')", DayTimeDuration(60000)),
        ("date('2013-01-31') + year_month_duration('P1M')", Date(15764)),
        ("date('2013-01-31') - year_month_duration('P1M')", Date(15705)),
        ("date('1970-01-01') + day_time_duration('P2D')", Date(2)),
        ("day_time_duration('P2D') + date('1970-01-01')", Date(2)),
        ("datetime('1970-01-01T00:00:00') + duration('P1DT1S')", DateTime(86401000)),
        ("date('1970-01-03') - date('1970-01-01')", DayTimeDuration(2 * 86400000)),
        ("time('23:00:00') + day_time_duration('PT2H')", Time(3600000)),
        ("date('9999-12-31') + year_month_duration('P1M')", None),
        ("date('1970-01-01') + 1", None),
        ("get_year(date('2013-01-31'))", 2013),
        ("get_month(datetime('2013-01-31T00:00:00'))", 1),
        ("get_day(date('2013-01-31'))", 31),
        ("get_hour(time('10:11:12'))", 10),
        ("get_second(datetime('2013-01-31T10:11:12'))", 12),
        ("get_millisecond(time('10:11:12.5'))", 500),
        ("get_hour(date('2013-01-31'))", None),
        ("day_of_week(date('1970-01-01'))", 5),
        ("day_of_year(date('2012-12-31'))", 366),
        ("quarter_of_year(date('2012-12-31'))", 4),
        ("unix_time_from_datetime_in_ms(datetime('1970-01-01T00:00:02'))", 2000),
        ("datetime_from_unix_time_in_ms(2000)", DateTime(2000)),
        ("datetime_from_unix_time_in_secs(2)", DateTime(2000)),
        ("date_from_unix_time_in_days(1)", Date(1)),
        ("datetime_from_unix_time_in_ms(99999999999999999)", None),
        ("unix_time_from_date_in_days(date('1970-01-03'))", 2),
        ("datetime_from_date_time(date('1970-01-02'), time('00:00:01'))", DateTime(86401000)),
        ("get_time_from_datetime(datetime('1970-01-02T00:00:01'))", Time(1000)),
        ("get_date_from_datetime(datetime('1970-01-02T00:00:01'))", Date(1)),
        ("months_from_year_month_duration(year_month_duration('P2Y1M'))", 25),
        ("ms_from_day_time_duration(day_time_duration('PT1S'))", 1000),
        ("get_year_month_duration(duration('P1YT1S'))", YearMonthDuration(12)),
        ("get_day_time_duration(duration('P1YT1S'))", DayTimeDuration(1000)),
        ("date('2013-01-31') < date('2013-02-01')", True),
    ],
)
def test_temporal_functions_return_expected_values(text: str, expected: Value) -> None:
    """The expected value; a value that is not temporal gives NULL."""
    assert value(text) == expected


def test_calendar_matches_the_standard_library() -> None:
    """Dates agree with the standard library in its range of years, and convert back in the whole range of SQL++."""
    first = dt.date(1970, 1, 1)
    for days in range(-719_162, 2_932_896, 997):
        date = first + dt.timedelta(days=days)

        assert civil(days) == (date.year, date.month, date.day)
        assert days_of(date.year, date.month, day=date.day) == days
    assert civil(days_of(-4, 2, day=29)) == (-4, 2, 29)
