# SPDX-License-Identifier: Apache-2.0
"""Temporal values in a given format."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.values.model import Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("parse_date('30/11/2013', 'D/M/Y')", "date('2013-11-30')"),
        ("parse_date('11/30/2013', 'MM/DD/YYYY')", "date('2013-11-30')"),
        ("parse_date('5 mar 2020', 'D MMM YYYY')", "date('2020-03-05')"),
        ("parse_date('2013-11-30', 'MM/DD/YYYY|YYYY-MM-DD')", "date('2013-11-30')"),
        ("parse_date('2013-02-30', 'YYYY-MM-DD')", "null"),
        ("parse_date('2013-02-03x', 'YYYY-MM-DD')", "null"),
        ("parse_date(1, 'YYYY')", "null"),
        ("parse_time('08.30.10', 'hh.mm.ss')", "time('08:30:10')"),
        ("parse_time('12:05 am', 'hh:mm a')", "time('00:05:00')"),
        ("parse_time('12:05 pm', 'hh:mm a')", "time('12:05:00')"),
        ("parse_time('13:05 pm', 'hh:mm a')", "null"),
        ("parse_time('25:00', 'hh:mm')", "null"),
        ("parse_datetime('30/11/2013 08:30:10.5', 'DD/MM/YYYY hh:mm:ss.nnn')", "datetime('2013-11-30T08:30:10.500')"),
        ("print_date(date('2013-11-30'), 'YYYY/MM/DD')", "'2013/11/30'"),
        ("print_date(date('2013-03-05'), 'D MMM YYYY')", "'5 MAR 2013'"),
        ("print_date(date('2013-11-30'), 'hh')", "null"),
        ("print_time(time('08:30:10.007'), 'hh-mm-ss.nnn')", "'08-30-10.007'"),
        ("print_time(time('15:30:00'), 'h:mm a')", "'3:30 PM'"),
        ("print_datetime(datetime('2013-11-30T00:30:10'), 'DD.MM.YYYY hh:mm a')", "'30.11.2013 12:30 AM'"),
        ("print_datetime('x', 'Y')", "null"),
        ("print_date(date('2020-05-31'), 'YYYY-Q QQ DDD EEE EEEE MMMM')", "'2020-2 02 152 Sun Sunday MAY'"),
        ("print_date(date('-0123-01-30'), 'YY/M/D YYYY')", "'-123/1/30 -0123'"),
        ("print_time(time('00:00:01.100'), 's.S s.SS s.SSS s.nn')", "'1.1 1.10 1.100 1.10'"),
        ("print_time(time('00:00:00'), 's.S')", "'0.000'"),
        ("parse_date('2020-4', 'YYYY-Q')", "date('2020-10-01')"),
        ("parse_date('2020-November-02', 'YYYY-MMMM-DD')", "date('2020-11-02')"),
        ("parse_date('Aug 12 -12', 'MMM D Y')", "date('-0012-08-12')"),
        ("parse_date('Monday 2021-07-20', 'EEEE YYYY-MM-DD')", "date('2021-07-20')"),
        ("parse_date('no Mon Aug 19 2013', 'O EEE MMM D Y')", "date('2013-08-19')"),
        ("parse_date('no such day', 'EEE')", "null"),
        ("parse_time('6:30:40.948 pm Asia/Shanghai', 'h:m:s|h:mm:ss.nnn a z')", "time('18:30:40.948')"),
        ("parse_time('6:30 ?', 'h:mm z')", "null"),
        ("parse_datetime('1970-01-01T00:00:01.999', 'YYYY-MM-DDThh:mm:ss.SSS')", "datetime('1970-01-01T00:00:01.999')"),
    ],
)
def test_values_are_parsed_and_formatted_by_pattern(text: str, expected: str) -> None:
    """Values are parsed and formatted by the letters of a pattern."""
    result: Value = value(text)

    assert result == value(expected)
