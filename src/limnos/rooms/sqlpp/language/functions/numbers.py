# SPDX-License-Identifier: Apache-2.0
"""Functions on numbers: rounding, powers, trigonometry and bits.

Must not know plans. The result is NULL for a value that is not a number, and NaN outside of a function's domain (the
logarithm of a negative number), as in AsterixDB. A function of integers returns their type where possible.
"""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Callable

from limnos.rooms.sqlpp.language.functions.costs import linear_cost
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.arithmetic import negate, power
from limnos.rooms.sqlpp.language.values.model import Value
from limnos.rooms.sqlpp.language.values.text import real_text

_DIGITS_MAX = 400
_BIGINT_EDGE = 1 << 63
_EXACT = decimal.Context(prec=2 * _DIGITS_MAX)
"""Precision for all digits of a rounded float: at most 309 before the point, and `_DIGITS_MAX` after it."""


def number(value: Value) -> int | float | None:
    """Return the value as a number; None if it is not a number."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def to_integer(value: Value) -> int | None:
    """Return the value as an integer, also for a double with an integral value; None for another value."""
    result = number(value)
    if isinstance(result, float):
        return int(result) if result.is_integer() else None
    return None if result is None else int(result)


@scalar("abs", least=1, cost=linear_cost)
def absolute(value: Value) -> Value:
    """Return the absolute value; the result has the type of the argument.

    -0.0 is returned unchanged, as in AsterixDB, because it is not less than zero. Raises SqlppError for the smallest
    integer of a type.
    """
    result = number(value)
    return None if result is None else negate(value) if result < 0 else value


@scalar("sign", least=1, cost=linear_cost)
def sign(value: Value) -> Value:
    """Return the sign of a number: -1, 0 or 1; NULL for other values."""
    result = number(value)
    return None if result is None else (result > 0) - (result < 0)


def _round_value(value: Value, how: Callable[[float], int]) -> Value:
    """Round a double or a float with `how`, preserving the type and the sign of a zero; integers are returned
    unchanged.
    """
    result = number(value)
    if not isinstance(result, float) or not math.isfinite(result):
        return result
    return type(result)(math.copysign(how(result), result))


@scalar("ceil", "ceiling", least=1, cost=linear_cost)
def ceil(value: Value) -> Value:
    """Return the least integer that is greater than or equal to the number."""
    return _round_value(value, math.ceil)


@scalar("floor", least=1, cost=linear_cost)
def floor(value: Value) -> Value:
    """Return the greatest integer that is less than or equal to the number."""
    return _round_value(value, math.floor)


def round_half_up(value: float) -> float:
    """Round to the nearest integer, halves away from zero."""
    return math.copysign(math.floor(abs(value) + 0.5), value)


@scalar("round_half_up", least=2, cost=linear_cost)
def round_digits_half_up(value: Value, digits: Value) -> Value:
    """Implement `round_half_up`: round to a number of decimal digits, halves away from zero."""
    return _to_decimal(value, digits, rounding=decimal.ROUND_HALF_UP)


@scalar("round", least=1, most=2, cost=linear_cost)
def round_digits(value: Value, digits: Value = 0) -> Value:
    """Implement `round`: round to a number of decimal digits, halves away from zero."""
    return _to_digits(value, digits, how=round_half_up)


@scalar("trunc", "truncate", least=1, most=2, cost=linear_cost)
def truncate(value: Value, digits: Value = 0) -> Value:
    """Truncate to a number of decimal digits."""
    return _to_decimal(value, digits, rounding=decimal.ROUND_DOWN)


@scalar("round_half_to_even", least=1, most=2, cost=linear_cost)
def round_half_to_even(value: Value, digits: Value = 0) -> Value:
    """Round to a number of decimal digits, halves to the even neighbor."""
    return _to_decimal(value, digits, rounding=decimal.ROUND_HALF_EVEN)


def _to_decimal(value: Value, digits: Value, *, rounding: str) -> Value:
    """Round a number in its decimal text representation; integers are returned unchanged.

    `round` multiplies floats by a power of ten instead.
    """
    result, decimal_places = number(value), to_integer(digits)
    if result is None or decimal_places is None:
        return None
    if isinstance(result, int) or not result or not math.isfinite(result) or abs(decimal_places) > _DIGITS_MAX:
        return result
    exact = decimal.Decimal(real_text(result))
    return type(result)(exact.quantize(decimal.Decimal(1).scaleb(-decimal_places), rounding, _EXACT))


def _to_digits(value: Value, digits: Value, *, how: Callable[[float], float]) -> Value:
    """Round a number after multiplying it by a power of ten.

    An integer becomes a bigint, the nearest if the result does not fit; a zero has no sign.
    """
    result, decimal_places = number(value), to_integer(digits)
    if result is None or decimal_places is None or not math.isfinite(result) or abs(decimal_places) > _DIGITS_MAX:
        return None if result is None or decimal_places is None else result
    if isinstance(result, int) and decimal_places >= 0:
        return result
    if decimal_places == 0:
        return type(result)(how(result) + 0.0)  # -0.0 + 0.0 is 0.0
    scale = 10.0 ** min(abs(decimal_places), 308)
    moved = float(result) * scale if decimal_places > 0 else float(result) / scale
    if not math.isfinite(moved):
        return result
    back = how(moved) / scale if decimal_places > 0 else how(moved) * scale
    if isinstance(result, int):
        return min(max(int(back), -_BIGINT_EDGE), _BIGINT_EDGE - 1)
    return type(result)(back + 0.0)


def _register_double(name: str, work: Callable[[float], float]) -> None:
    """Register a function from double to double. A domain error gives NaN."""

    def run(value: Value) -> Value:
        match = number(value)
        if match is None:
            return None
        try:
            result = work(float(match))
        except ValueError:
            result = math.nan
        except OverflowError:
            result = math.inf
        return result

    scalar(name, least=1, cost=linear_cost)(run)


def _logarithm(of: Callable[[float], float]) -> Callable[[float], float]:
    return lambda result: -math.inf if result == 0 else of(result)


for _name, _work in {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": _logarithm(math.log),
    "log": _logarithm(math.log10),
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "degrees": math.degrees,
    "radians": math.radians,
}.items():
    _register_double(_name, _work)


@scalar("atan2", least=2, cost=linear_cost)
def atan2(y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y) in radians."""
    up, right = number(y), number(x)
    return None if up is None or right is None else math.atan2(up, right)


@scalar("power", least=2, cost=linear_cost)
def raise_to_power(base: Value, exponent: Value) -> Value:
    """Return the power `base ^ exponent`. Raises SqlppError as the operator."""
    return power(base, exponent)


@scalar("pi", least=0, cost=linear_cost)
def pi() -> Value:
    """Return the constant π."""
    return math.pi


@scalar("e", least=0, cost=linear_cost)
def euler() -> Value:
    """Return Euler's number e, the base of natural logarithms."""
    return math.e


@scalar("random", least=0, most=1, is_deterministic=False, cost=linear_cost)
def chance(seed: Value = None) -> Value:
    """Return a random double from 0 (inclusive) to 1 (exclusive); the same seed gives the same number."""
    if seed is None:
        return random.random()  # noqa: S311 - not used for secrets
    result = number(seed)
    return None if result is None else random.Random(result).random()  # noqa: S311


def _bits(value: Value) -> int | None:
    result = to_integer(value)
    return result if result is not None and -(1 << 63) <= result < 1 << 63 else None


def _wrap_int64(value: int) -> int:
    """Wrap an integer to signed 64 bits (two's complement)."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _register_bit_fold(name: str, work: Callable[[int, int], int]) -> None:
    def run(*values: Value) -> Value:
        total: int | None = None
        for value in values:
            bits = _bits(value)
            if bits is None:
                return None
            total = bits if total is None else work(total, bits)
        return total

    scalar(name, least=2, most=-1, cost=linear_cost)(run)


_register_bit_fold("bitand", int.__and__)
_register_bit_fold("bitor", int.__or__)
_register_bit_fold("bitxor", int.__xor__)


@scalar("bitnot", least=1, cost=linear_cost)
def bit_not(value: Value) -> Value:
    """Invert all 64 bits of an integer."""
    bits = _bits(value)
    return None if bits is None else ~bits


@scalar("bitcount", least=1, cost=linear_cost)
def bit_count(value: Value) -> Value:
    """Return the count of set bits in the 64-bit integer."""
    bits = _bits(value)
    return None if bits is None else (bits % (1 << 64)).bit_count()


@scalar("bitshift", least=2, most=3, cost=linear_cost)
def bit_shift(value: Value, count: Value, *rotate: Value) -> Value:
    """Shift bits left by `count`, or right if it is negative; with `rotate`, bits that are shifted out enter at the
    other end.
    """
    result, by = _bits(value), to_integer(count)
    if result is None or by is None or not all(isinstance(one, bool) for one in rotate):
        return None
    if rotate and rotate[0]:
        by %= 64
        bits = result % (1 << 64)
        return _wrap_int64((bits << by) | (bits >> (64 - by)))
    if abs(by) > 64:
        return 0
    return _wrap_int64(result << by) if by >= 0 else _wrap_int64((result % (1 << 64)) >> -by)


@scalar("bittest", "isbitset", least=2, most=3, cost=linear_cost)
def bit_test(value: Value, positions: Value, *every: Value) -> Value:
    """Return whether any of the bits at 1-based positions is set; with `every`, whether all are set."""
    bits = _bits(value)
    listed = positions if isinstance(positions, tuple) else (positions,)
    bit_numbers = [to_integer(place) for place in listed]
    if bits is None or not all(isinstance(one, bool) for one in every):
        return None
    valid_places = [place for place in bit_numbers if place is not None and 1 <= place <= 64]
    if len(valid_places) != len(bit_numbers):
        return None
    set_ = [bool(bits >> (place - 1) & 1) for place in valid_places]
    return all(set_) if every and every[0] else any(set_)


def _change_bits(value: Value, positions: Value, *, sets: bool) -> Value:
    """Set or clear the bits at 1-based positions."""
    bits = _bits(value)
    listed = positions if isinstance(positions, tuple) else (positions,)
    bit_numbers = [to_integer(place) for place in listed]
    if bits is None or not all(place is not None and 1 <= place <= 64 for place in bit_numbers):
        return None
    mask = 0
    for place in bit_numbers:
        mask |= 1 << ((place or 1) - 1)
    return _wrap_int64(bits | mask if sets else bits & ~mask)


@scalar("bitset", least=2, cost=linear_cost)
def bit_set(value: Value, positions: Value) -> Value:
    """Set the bits at 1-based positions."""
    return _change_bits(value, positions, sets=True)


@scalar("bitclear", least=2, cost=linear_cost)
def bit_clear(value: Value, positions: Value) -> Value:
    """Clear the bits at 1-based positions."""
    return _change_bits(value, positions, sets=False)


@scalar("from_base", least=2, cost=linear_cost)
def from_base(text: Value, base: Value) -> Value:
    """Parse a string as an integer in a base from 2 to 36; NULL if it is malformed or not a bigint."""
    radix = to_integer(base)
    if not isinstance(text, str) or radix is None or not 2 <= radix <= 36 or not text.isalnum() or len(text) > 64:
        return None
    try:
        number = int(text, radix)
    except ValueError:
        return None
    return number if number < 1 << 63 else None
