"""Times by a format."""

from __future__ import annotations

import pytest

from limnos.sqlpp.values.model import Value
from tests.sqlpp.evaluation import value


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
        ("print_date(date('2013-03-05'), 'D MMM YYYY')", "'5 Mar 2013'"),
        ("print_date(date('2013-11-30'), 'hh')", "null"),
        ("print_time(time('08:30:10.007'), 'hh-mm-ss.nnn')", "'08-30-10.007'"),
        ("print_time(time('15:30:00'), 'h:mm a')", "'3:30 pm'"),
        ("print_datetime(datetime('2013-11-30T00:30:10'), 'DD.MM.YYYY hh:mm a')", "'30.11.2013 12:30 am'"),
        ("print_datetime('x', 'Y')", "null"),
    ],
)
def test_value(text: str, expected: str) -> None:
    """What is read and written by letters of a pattern."""
    found: Value = value(text)

    assert found == value(expected)
