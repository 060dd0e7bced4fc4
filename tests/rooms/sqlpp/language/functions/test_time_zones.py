# SPDX-License-Identifier: Apache-2.0
"""Conversions between time zones, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text, expected",
    [
        ("adjust_time_for_timezone(time('20:15:10.327'), '+0800')", "04:15:10.327+08:00"),
        (
            "adjust_datetime_for_timezone(datetime('2010-10-23T01:12:13.329Z'), '-0615')",
            "2010-10-22T18:57:13.329-06:15",
        ),
        ("adjust_time_for_timezone(time('20:15:10.327'), 'x')", None),
        ("adjust_datetime_for_timezone(1, '+01:00')", None),
        ("string(datetime_from_unix_time_in_secs(1631671261, 'America/Los_Angeles'))", "2021-09-14T19:01:01.000"),
        ("string(datetime_from_unix_time_in_ms(1631671261000, 'Asia/Tokyo'))", "2021-09-15T11:01:01.000"),
        ("string(datetime_from_unix_time_in_ms(0, '-01:00'))", "1969-12-31T23:00:00.000"),
        ("string(datetime_from_unix_time_in_ms(1))", "1970-01-01T00:00:00.001"),
        ("datetime_from_unix_time_in_ms(0, 'No/Where')", None),
        ("datetime_from_unix_time_in_ms(0, '../etc/passwd')", None),
        ("datetime_from_unix_time_in_ms(-377705116799000, 'Asia/Tokyo')", None),
        ("datetime_from_unix_time_in_ms('x')", None),
        ("unix_time_from_datetime_in_secs(datetime('2021-09-14T19:01:01'), 'America/Los_Angeles')", 1631671261),
        ("unix_time_from_datetime_in_ms(datetime('1970-01-01T00:00:01'))", 1000),
        ("unix_time_from_datetime_in_ms(1)", None),
        ("year_month_duration_greater_than(duration('P13M'), duration('P1Y'))", True),
        ("year_month_duration_less_than(year_month_duration('P13M'), duration('P1Y'))", False),
        ("day_time_duration_less_than(duration('PT1S'), day_time_duration('PT2S'))", True),
        ("day_time_duration_greater_than(1, duration('PT2S'))", None),
        (
            (
                "[duration_equal(duration('P1D'), duration('PT24H')), duration_equal(duration('P1M'),"
                " year_month_duration('P1M'))]"
            ),
            (True, True),
        ),
        ("[duration_equal(duration('P1D'), duration('P1M')), duration_equal(1, duration('P1M'))]", (False, None)),
        ("duration_equal(missing, 1)", MISSING),
        (
            (
                "[day_of_week(date('1970-01-01')), day_of_week(date('1970-01-01'), 'MON'),"
                " day_of_week(date('1970-01-01'), 5)]"
            ),
            (5, 4, 1),
        ),
        ("[day_of_week(date('1970-01-01'), 'x'), day_of_week(1)]", (None, None)),
    ],
)
def test_time_zone_offsets_and_names_are_resolved(text: str, expected: Value) -> None:
    """Offsets and names of zones."""
    assert value(text) == expected
