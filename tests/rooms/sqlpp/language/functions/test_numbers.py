# SPDX-License-Identifier: Apache-2.0
"""Functions of numbers, by hand-written examples."""

from __future__ import annotations

import math

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Float, TinyInt, Value, type_name
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        (
            "[from_base('A', 16), from_base('11', 2), from_base('A', 10), from_base('A', 1), from_base(1, 16)]",
            (10, 3, None, None, None),
        ),
        ("from_base('8000000000000000', 16)", None),
        ("abs(-3)", 3),
        ("round_half_up(2.345, 2)", 2.35),
        ("round_half_up(-2.5, 0)", -3.0),
        ("round_half_up(7, 1)", 7),
        ("round_half_up(1.005, 2)", 1.01),
        ("round_half_up(1251.0, -2)", 1300.0),
        ("round_half_to_even(83.08500000000001, 2)", 83.09),
        ("round_half_to_even(83.085, 2)", 83.08),
        ("to_string(round_half_to_even(float('0.15'), 1))", "0.2"),
        ("round_half_to_even(1e300, 400)", 1e300),
        ("round_half_to_even(1e-300, 2)", 0.0),
        ("trunc(0.29, 2)", 0.29),
        ("trunc(-1299.5, -2)", -1200.0),
        ("trunc(1299, -2)", 1299),
        ("abs(-2.5)", 2.5),
        ("to_string(abs(-0.0))", "-0.0"),
        ("abs('x')", None),
        ("abs(null)", None),
        ("abs(missing)", MISSING),
        ("sign(-7)", -1),
        ("sign(0)", 0),
        ("sign(0.5)", 1),
        ("ceil(1.2)", 2.0),
        ("ceiling(-1.2)", -1.0),
        ("floor(-1.2)", -2.0),
        ("floor(7)", 7),
        ("round(2.5)", 3.0),
        ("round(-2.5)", -3.0),
        ("round(2.45, 1)", 2.5),
        ("round(1234, -2)", 1200),
        ("round(7)", 7),
        ("trunc(2.79, 1)", 2.7),
        ("trunc(-2.79)", -2.0),
        ("round_half_to_even(2.5)", 2.0),
        ("round_half_to_even(3.5)", 4.0),
        ("sqrt(16)", 4.0),
        ("exp(0)", 1.0),
        ("ln(1)", 0.0),
        ("log(1000)", 3.0),
        ("ln(0)", -math.inf),
        ("power(2, 10)", 1024),
        ("power(2.0, 0.5)", 2.0**0.5),
        ("power(2, null)", None),
        ("sin(0)", 0.0),
        ("cos(0)", 1.0),
        ("atan2(1, 1)", math.pi / 4),
        ("degrees(pi())", 180.0),
        ("radians(180)", math.pi),
        ("bitand(12, 10)", 8),
        ("bitor(12, 10, 1)", 15),
        ("bitxor(12, 10)", 6),
        ("bitnot(0)", -1),
        ("bitcount(255)", 8),
        ("bitcount(-1)", 64),
        ("bitshift(1, 4)", 16),
        ("bitshift(16, -4)", 1),
        ("bitshift(1, 63)", -(2**63)),
        ("bitshift(1, 64, true)", 1),
        ("bitshift(1, 64)", 0),
        ("bitshift(1, 65)", 0),
        ("bitshift(1, 65, true)", 2),
        ("bitshift(1, -1)", 0),
        ("bitshift(1, -1, true)", -(2**63)),
        ("bitshift(3, -1, true)", -(2**63) + 1),
        ("bitshift(-9223372036854775807, 1, true)", 3),
        ("bitshift(-9223372036854775807, 1, false)", 2),
        ("bitshift(256, -10, true)", 2**62),
        ("bitshift(-1, -1)", 2**63 - 1),
        ("bitshift(-1, -64)", 0),
        ("bitshift(1, 1, 'yes')", None),
        ("bittest(6, 2)", True),
        ("bittest(6, [1, 2])", True),
        ("bittest(6, [1, 2], true)", False),
        ("bittest(6, 0)", None),
        ("bitset(0, [1, 4])", 9),
        ("bitset(0, 64)", -(2**63)),
        ("bitset(0, 65)", None),
        ("bitclear(9, 1)", 8),
        ("bitclear(9, [1, 4])", 0),
        ("bitclear(9, 'x')", None),
        ("e() > 2.718 and e() < 2.719", True),
    ],
)
def test_numeric_functions_return_expected_values(text: str, expected: Value) -> None:
    """The expected value, with its type."""
    result = value(text)

    assert result == pytest.approx(expected) if isinstance(expected, float) else result == expected
    assert type_name(result) == type_name(expected)


def test_undefined_numeric_result_is_nan() -> None:
    """An undefined result is NaN."""
    assert math.isnan(value("sqrt(-1)"))  # type: ignore[arg-type]
    assert math.isnan(value("ln(-1)"))  # type: ignore[arg-type]


def test_numeric_functions_retain_the_argument_type() -> None:
    """The type of the argument is kept: float, tinyint."""
    assert isinstance(value("abs(float('-1.5'))"), Float)
    assert isinstance(value("abs(tinyint('-3'))"), TinyInt)


def test_random_is_the_same_for_a_seed() -> None:
    """A seed determines the value, which is between 0 and 1."""
    one, other = value("random(7)"), value("random(7)")

    assert one == other
    assert isinstance(one, float)
    assert 0 <= one < 1
    assert value("random()") != value("random()")


@pytest.mark.parametrize(
    "text,expected,kind",
    [
        ("ceil(-0.3)", "-0.0", "double"),
        ("floor(-0.0)", "-0.0", "double"),
        ("round(-0.3)", "0.0", "double"),
        ("round(-456.456, -3)", "0.0", "double"),
        ("round(tinyint(127), -1)", "130", "bigint"),
        ("round(-9223372036854775807, -4)", "-9223372036854775808", "bigint"),
        ("round(9223372036854775807, -5)", "9223372036854775807", "bigint"),
        ("least(3, -2, 1.5)", "-2.0", "double"),
        ("greatest(tinyint(3), smallint(2))", "3", "smallint"),
        ("array_min([2, 3.5])", "2.0", "double"),
        ("array_max([7, float(1.5)])", "7.0", "float"),
        ("array_max([tinyint(7), 3])", "7", "bigint"),
        ("array_min(['a', 'b'])", "a", "string"),
        ("array_range(1, 3.0)[0]", "1.0", "double"),
        ("array_range(2, 9, 1.1)[6]", "8.6", "double"),
        ("array_length(array_range(1e16, 1e16 + 4, 0.5))", "9", "bigint"),
    ],
)
def test_number_type_and_sign_match_asterixdb(text: str, expected: str, kind: str) -> None:
    """The results of AsterixDB's tests `numeric`, `aggregate/agg_number_rec` and `comparison/least_mixed`."""
    result = value(text)
    assert (str(result), type_name(result)) == (expected, kind)
