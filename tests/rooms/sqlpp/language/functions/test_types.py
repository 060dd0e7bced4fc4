# SPDX-License-Identifier: Apache-2.0
"""Functions that test and construct types, by hand-written examples."""

from __future__ import annotations

import uuid

import pytest

from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    Bag,
    Date,
    DateTime,
    Duration,
    Float,
    Integer,
    SmallInt,
    Time,
    TinyInt,
    Value,
    type_name,
)
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("is_array([1])", True),
        ("int8('+48i8')", TinyInt(48)),
        ("int8('48i16')", None),
        ("double('-6.5d')", -6.5),
        ("float('-5.5f')", Float(-5.5)),
        ("double('d')", None),
        ("to_bigint(float('1e30'))", 9223372036854775807),
        ("to_bigint(double('-INF'))", -9223372036854775808),
        ("to_bigint(double('NaN'))", 0),
        (
            "[tinyint(999), smallint(-99999), integer(double('INF')), bigint('-INF')]",
            (127, -32768, 2147483647, -(1 << 63)),
        ),
        (
            "[tinyint('80.75'), tinyint('-8.5e1'), tinyint('999'), bigint('99999999999999999999'), bigint('')]",
            (80, -85, None, None, None),
        ),
        ("string(hex('0001'))", "AAE="),
        ("[date('31-12-2020', 'DD-MM-YYYY'), date('x', 'DD'), date(1, 'DD')]", (Date(18627), None, None)),
        (
            "[time('58-57-10', 'ss-mm-hh'), datetime('31-12-2020 01', 'DD-MM-YYYY hh')]",
            (Time(39_478_000), DateTime(18627 * 86_400_000 + 3_600_000)),
        ),
        ("datetime(time('00:00:01'))", DateTime(1000)),
        (
            "[duration(year_month_duration('P1Y')), duration(day_time_duration('PT1S')), duration(1)]",
            (Duration(12, 0), Duration(0, 1000), None),
        ),
        (
            "[duration('P4S'), duration('+P1D'), duration('-P1D')]",
            (Duration(0, 4000), Duration(0, 86_400_000), Duration(0, -86_400_000)),
        ),
        ("to_string([1])", None),
        ("to_string({})", None),
        ("to_string(float('2.1'))", "2.1"),
        ("to_string(float('16777217'))", "16777216.0"),
        ("to_string(float('1e-5'))", "1e-05"),
        ("get_type(create_uuid())", "uuid"),
        ("is_temporal(date('2020-01-01'))", True),
        ("is_temporal(duration('P1D'))", True),
        ("istemporal('2020-01-01')", False),
        ("is_temporal(null)", None),
        ("is_timestamp(datetime('2020-01-01T00:00:00'))", True),
        ("tobigint('3')", 3),
        ("is_array({{1}})", False),
        ("is_array(null)", None),
        ("is_array(missing)", MISSING),
        ("is_object({})", True),
        ("is_string('a')", True),
        ("isnumber(1.5)", True),
        ("is_boolean(false)", True),
        ("is_atomic('a')", True),
        ("is_atomic([1])", False),
        ("is_null(null)", True),
        ("is_null(missing)", MISSING),
        ("is_null(1)", False),
        ("is_missing(missing)", True),
        ("is_missing(null)", False),
        ("is_unknown(null)", True),
        ("get_type(missing)", "missing"),
        ("get_type({{1}})", "multiset"),
        ("get_type(1)", "bigint"),
        ("get_type(1.0)", "double"),
        ("to_string(1)", "1"),
        ("to_string(1.5)", "1.5"),
        ("to_string(true)", "true"),
        ("to_number('12')", 12),
        ("to_number('1.5')", 1.5),
        ("to_number('x')", None),
        ("to_number(true)", 1),
        ("to_bigint('9223372036854775808')", None),
        ("bigint('-5')", -5),
        ("bigint(2.9)", 2),
        ("tinyint('127')", TinyInt(127)),
        ("tinyint('128')", None),
        ("smallint('-3')", SmallInt(-3)),
        ("integer('7')", Integer(7)),
        ("int64('7')", 7),
        ("double('1e3')", 1000.0),
        ("double('abc')", None),
        ("float('0.5')", Float(0.5)),
        ("to_boolean('')", False),
        ("to_boolean(0)", False),
        ("to_boolean('x')", True),
        (
            "[to_boolean([]), to_boolean([0]), to_boolean({}), to_boolean(date('2017-06-30'))]",
            (False, True, False, None),
        ),
        ("is_temporal(interval(date('2013-01-01'), date('2013-01-02')))", True),
        ("boolean('TRUE')", None),
        ("boolean(' true ')", True),
        ("boolean('x')", None),
        ("to_array(1)", (1,)),
        ("to_array([1])", (1,)),
        ("to_array({{1}})", (1,)),
        ("to_multiset([1])", Bag((1,))),
        ("to_atomic([[5]])", 5),
        ("to_atomic({'a': [5]})", 5),
        ("to_atomic([1, 2])", None),
        ("to_object(1)", {}),
        ("uuid('c38f6f2e-9b5c-4c5a-8f1e-0123456789ab')", uuid.UUID("c38f6f2e-9b5c-4c5a-8f1e-0123456789ab")),
        ("uuid('nope')", None),
        ("string(uuid('c38f6f2e-9b5c-4c5a-8f1e-0123456789ab'))", "c38f6f2e-9b5c-4c5a-8f1e-0123456789ab"),
    ],
)
def test_type_functions_return_expected_values(text: str, expected: Value) -> None:
    """The expected value, with its type."""
    result = value(text)

    assert result == expected
    assert type_name(result) == type_name(expected)


def test_each_uuid_call_returns_another_uuid() -> None:
    """Each call without an argument returns another UUID."""
    assert value("uuid()") != value("uuid()")
