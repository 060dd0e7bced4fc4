# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, by hand-written examples: results with their types, NULL and MISSING, overflow."""

from __future__ import annotations

import math

import pytest

from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.values.arithmetic import add, div, divide, mod, multiply, negate, power, subtract
from limnos.rooms.sqlpp.language.values.model import MISSING, Date, Float, Integer, SmallInt, TinyInt, Value

M, N = MISSING, None
LARGEST = 2**63 - 1
OPERATIONS = {"+": add, "-": subtract, "*": multiply, "/": divide, "div": div, "mod": mod, "^": power}


def worked_out(left: Value, operator: str, right: Value) -> Value:
    """Return the result of an operator."""
    return OPERATIONS[operator](left, right)


@pytest.mark.parametrize(
    "left,operator,right,expected",
    [
        (1, "+", 2, 3),
        (1, "+", 2.0, 3.0),
        (TinyInt(1), "+", TinyInt(2), TinyInt(3)),
        (TinyInt(100), "+", SmallInt(100), SmallInt(200)),
        (SmallInt(1), "+", Integer(2), Integer(3)),
        (Integer(1), "+", 2, 3),
        (1, "+", Float(0.5), Float(1.5)),
        (Float(0.1), "+", 0.0, 0.10000000149011612),
        (Float(0.1), "+", Float(0.2), Float(0.3)),
        (LARGEST, "+", 0, LARGEST),
        (1e308, "+", 1e308, math.inf),
        (5, "-", 7, -2),
        (-LARGEST, "-", 1, -(2**63)),
        (TinyInt(-128), "-", TinyInt(0), TinyInt(-128)),
        (3, "*", -4, -12),
        (TinyInt(11), "*", TinyInt(11), TinyInt(121)),
        (1e200, "*", 1e200, math.inf),
        (Float(2), "*", Float(3), Float(6)),
        (7, "/", 2, 3.5),
        (6, "/", 2, 3.0),
        (TinyInt(1), "/", TinyInt(4), 0.25),
        (1, "/", Float(4), Float(0.25)),
        (1, "/", 0, N),
        (1.0, "/", 0.0, N),
        (1, "/", -0.0, N),
        (7, "div", 2, 3),
        (-7, "div", 2, -3),
        (7, "div", -2, -3),
        (-7, "div", -2, 3),
        (7.0, "div", 2, 3.5),
        (TinyInt(7), "div", TinyInt(2), TinyInt(3)),
        (1, "div", 0, N),
        (7, "mod", 3, 1),
        (-7, "mod", 3, -1),
        (7, "mod", -3, 1),
        (7.5, "mod", 2, 1.5),
        (-7.5, "mod", 2, -1.5),
        (1, "mod", 0, N),
        (1.0, "mod", 0.0, N),
        (5.0, "mod", math.inf, 5.0),
        (2, "^", 10, 1024),
        (-2, "^", 3, -8),
        (2, "^", 0, 1),
        (0, "^", 0, 1),
        (-1, "^", LARGEST, -1),
        (-1, "^", LARGEST - 1, 1),
        (0, "^", LARGEST, 0),
        (2.0, "^", -1, 0.5),
        (2, "^", 0.5, math.sqrt(2)),
        (0.0, "^", -1.0, math.inf),
        (-0.0, "^", -1.0, -math.inf),
        (1e200, "^", 2.0, math.inf),
        (-1e200, "^", 3.0, -math.inf),
        (N, "+", 1, N),
        (1, "+", N, N),
        (M, "+", 1, M),
        (N, "*", M, M),
        (M, "/", "a", M),
        ("1", "+", 1, N),
        (True, "+", 1, N),
        ((), "*", 1, N),
        (1, "-", {}, N),
        (Date(1), "+", 1, N),
    ],
)
def test_operators_return_expected_result_and_type(left: Value, operator: str, right: Value, expected: Value) -> None:
    """Each operator has the expected result, with exactly the expected type."""
    result = worked_out(left, operator, right)

    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "left,operator,right",
    [
        (math.inf, "mod", 2.0),
        (math.nan, "+", 1),
        (-8.0, "^", 1 / 3),
        (math.nan, "^", 2.0),
        (1.0, "^", math.inf),
        (-1.0, "^", math.inf),
        (1.0, "^", math.nan),
        (math.inf, "-", math.inf),
        (math.inf, "*", 0),
    ],
)
def test_undefined_arithmetic_result_is_nan(left: Value, operator: str, right: Value) -> None:
    """The result is NaN where Java gives NaN, and never an exception."""
    result = worked_out(left, operator, right)

    assert isinstance(result, float)
    assert math.isnan(result)


@pytest.mark.parametrize(
    "left,operator,right,message",
    [
        (LARGEST, "+", 1, "ASX0007: Overflow in numeric-add"),
        (-LARGEST, "-", 2, "ASX0008: Underflow in numeric-subtract"),
        (TinyInt(100), "+", TinyInt(100), "ASX0007: Overflow in numeric-add"),
        (SmallInt(-200), "*", SmallInt(200), "ASX0008: Underflow in numeric-multiply"),
        (Integer(2**31 - 1), "*", Integer(2), "ASX0007: Overflow in numeric-multiply"),
        (-(2**63), "div", -1, "ASX0007: Overflow in numeric-div"),
        (Float(3e38), "*", Float(2), "ASX0007: Overflow in numeric-multiply"),
        (Float(-3e38), "*", Float(2), "ASX0008: Underflow in numeric-multiply"),
        (2, "^", 63, "ASX0007: Overflow in power"),
        (-3, "^", 10**9 + 1, "ASX0008: Underflow in power"),
        (10, "^", LARGEST, "ASX0007: Overflow in power"),
        (
            2,
            "^",
            -1,
            (
                "ASX0010: Invalid value: function power expects its second input parameter to be a non-negative value,"
                " got -1"
            ),
        ),
    ],
)
def test_arithmetic_overflow_is_an_error_with_function_name(
    left: Value, operator: str, right: Value, message: str
) -> None:
    """A result outside of its type is an error that names the function."""
    with pytest.raises(SqlppError) as caught:
        worked_out(left, operator, right)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    "value,expected",
    [(1, -1), (-1.5, 1.5), (TinyInt(5), TinyInt(-5)), (Float(0.1), Float(-0.1)), (N, N), (M, M), ("a", N), (True, N)],
)
def test_negation_retains_the_type(value: Value, expected: Value) -> None:
    """Negation keeps the type of the value."""
    result = negate(value)

    assert result == expected
    assert type(result) is type(expected)


def test_negative_zero_has_a_sign_and_least_integer_is_refused() -> None:
    """A double zero has a sign; the least integer cannot be negated."""
    zero = negate(0.0)

    assert isinstance(zero, float)
    assert math.copysign(1, zero) == -1
    with pytest.raises(SqlppError, match="ASX0007: Overflow in numeric-unary-minus"):
        negate(TinyInt(-128))


def test_every_pair_of_types_returns_or_raises_language_error() -> None:
    """For any pair of values an operator returns a value or raises an error of the language."""
    values: list[Value] = [M, N, True, 3, TinyInt(3), Float(0.5), 2.5, "a", b"", Date(1), (1,), {"a": 1}]

    for name in OPERATIONS:
        for left in values:
            for right in values:
                numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
                known = numbers and not isinstance(left, bool) and not isinstance(right, bool)

                assert (worked_out(left, name, right) in (M, N)) is not known
