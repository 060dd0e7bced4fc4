# SPDX-License-Identifier: Apache-2.0
"""Arithmetic: types of results, overflow, and NULL.

Must not know dates and times, which have functions of their own. The result has the wider type of the two operands; `/`
of integers is a double. If an operand is MISSING the result is MISSING, else if one is NULL it is NULL. Values that are
not numbers, and division by zero, give NULL. An integer or `float` that does not fit its type is an error, as in
AsterixDB.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    NUMERIC,
    WIDTHS,
    Float,
    Integer,
    SmallInt,
    TinyInt,
    TypeName,
    Value,
    is_unknown,
    single,
    type_name,
)

OVERFLOW = 7
UNDERFLOW = 8
NOT_NEGATIVE = 10

_WHOLE: dict[TypeName, type[int]] = {"tinyint": TinyInt, "smallint": SmallInt, "integer": Integer, "bigint": int}
_NUMBERS: dict[TypeName, type[int | float]] = {**_WHOLE, "float": Float, "double": float}


def add(left: Value, right: Value, *, function: str = "numeric-add") -> Value:
    """Return `left + right`. Raises SqlppError, which names `function`, if the result does not fit its type."""
    return _typed_result(function, left, right, whole=int.__add__, real=float.__add__)


def subtract(left: Value, right: Value) -> Value:
    """Return `left - right`. Raises SqlppError if the result does not fit its type."""
    return _typed_result("numeric-subtract", left, right, whole=int.__sub__, real=float.__sub__)


def multiply(left: Value, right: Value) -> Value:
    """Return `left * right`. Raises SqlppError if the result does not fit its type."""
    return _typed_result("numeric-multiply", left, right, whole=int.__mul__, real=float.__mul__)


def divide(left: Value, right: Value) -> Value:
    """Return `left / right`; integers are divided as doubles. Raises SqlppError if the result does not fit its type."""
    return _typed_result("numeric-divide", left, right, whole=None, real=_quotient)


def div(left: Value, right: Value) -> Value:
    """Return `left DIV right`: the truncated quotient of integers; for other numbers the same as `/`.

    Raises SqlppError if the result does not fit its type.
    """
    return _typed_result("numeric-div", left, right, whole=_whole_quotient, real=_quotient)


def mod(left: Value, right: Value) -> Value:
    """Return `left MOD right`, with the sign of `left`."""
    return _typed_result("numeric-mod", left, right, whole=_whole_rest, real=_rest)


def power(left: Value, right: Value) -> Value:
    """Return `left ^ right`. Raises SqlppError for an integer to a negative power, or if the result does not fit its
    type.
    """
    return _typed_result("power", left, right, whole=_whole_power, real=_power)


def negate(value: Value) -> Value:
    """Return `-value`. Raises SqlppError if the result does not fit its type."""
    if type_name(value) in ("float", "double"):
        return _typed_result("numeric-unary-minus", -1.0, value, whole=None, real=float.__mul__, kind=type_name(value))
    return _typed_result("numeric-unary-minus", TinyInt(0), value, whole=int.__sub__, real=float.__sub__)


def promote(value: Value, other: Value) -> Value:
    """Return a number in the wider type of two numbers; other values are returned unchanged."""
    if type(value) is type(other):
        return value
    names = type_name(value), type_name(other)
    if any(name not in NUMERIC for name in names):
        return value
    return _NUMBERS[max(names, key=NUMERIC.index)](cast("float", value))


def _typed_result(
    function: str,
    left: Value,
    right: Value,
    *,
    whole: Callable[[int, int], int | None] | None,
    real: Callable[[float, float], float | None],
    kind: TypeName | None = None,
) -> Value:
    """Compute a numeric operator in the type of its result.

    `whole` computes with integers; if it is None, integers are converted to doubles. `real` computes with doubles. If
    they return None, the result is NULL. Raises SqlppError if the result does not fit its type.
    """
    if is_unknown(left) or is_unknown(right):
        return MISSING if left is MISSING or right is MISSING else None
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return None
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    wider = max(type_name(left), type_name(right), key=NUMERIC.index) if kind is None else kind
    if whole is not None and isinstance(left, int) and isinstance(right, int):
        return _fit_integer(function, whole(int(left), int(right)), wider)
    result = real(float(left), float(right))
    if result is None or wider != "float":
        return result
    if math.isfinite(result) and math.isinf(single(result)):
        raise _out_of_range(function, result)
    return Float(result)


def _fit_integer(function: str, result: int | None, kind: TypeName) -> Value:
    if result is None:
        return None
    edge = 1 << (WIDTHS[kind] - 1)
    if not -edge <= result < edge:
        raise _out_of_range(function, result)
    return _WHOLE[kind](result)


def _out_of_range(function: str, result: float) -> SqlppError:
    if result > 0:
        return SqlppError(OVERFLOW, f"Overflow in {function}")
    return SqlppError(UNDERFLOW, f"Underflow in {function}")


def _quotient(left: float, right: float) -> float | None:
    return None if right == 0 else left / right


def _whole_quotient(left: int, right: int) -> int | None:
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _whole_rest(left: int, right: int) -> int | None:
    return None if right == 0 else abs(left) % abs(right) * (-1 if left < 0 else 1)


def _rest(left: float, right: float) -> float | None:
    if right == 0:
        return None
    return math.nan if math.isinf(left) else math.fmod(left, right)


def _whole_power(left: int, right: int) -> int:
    if right < 0:
        raise SqlppError(
            NOT_NEGATIVE,
            f"Invalid value: function power expects its second input parameter to be a non-negative value, got {right}",
        )
    if left in (0, 1, -1):
        return left if right % 2 else int(right == 0) or left * left
    # 2**64 stands for every result beyond BIGINT, which is an overflow.
    return int(left**right) if right < 64 else (1 << 64) * (-1 if left < 0 and right % 2 else 1)


def _power(left: float, right: float) -> float:
    """Return a power as Java does: infinity or NaN where Python raises an exception."""
    if abs(left) == 1 and math.isinf(right):
        return math.nan
    if left == 1 and math.isnan(right):
        return math.nan
    odd = right.is_integer() and right % 2 == 1
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and odd else math.inf
    except ValueError:
        if left == 0:
            return -math.inf if math.copysign(1, left) < 0 and odd else math.inf
        return math.nan
