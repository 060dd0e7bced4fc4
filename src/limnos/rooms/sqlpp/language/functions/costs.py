# SPDX-License-Identifier: Apache-2.0
"""Costs of functions and operators, in units that are charged before the work is done.

Must not know budgets. A unit is about a quarter of a microsecond of the evaluator. A cost is a function of the
arguments and of the remaining units. It stops counting when these are exceeded, so an array of a million items is not
traversed to its end. A value costs one unit for each item or field at any depth (a shared item each time it occurs),
and one for every 16 characters or bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from limnos.rooms.sqlpp.language.values.model import Bag, Value

Cost = Callable[[Sequence[Value], int], int]
"""A function from the arguments and the remaining units to the units of the call.

The result is larger than the remaining units if counting stopped.
"""

SHIFT: Final = 4
"""A string costs one unit for every `1 << SHIFT` characters."""
CALL: Final = 16
"""The basic units of any call."""
OPERATOR: Final = 4
"""The basic units of an operator."""
COMPARED_EACH: Final = 8
PRINTED_EACH: Final = 4
UNBOUNDED: Final = 1 << 62


def weight_of(value: Value, most: int, *, shift: int = SHIFT) -> int:
    """Return the units for one traversal of a value; `most + 1` or more as soon as they exceed `most`."""
    total = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        total += 1
        if isinstance(one, (str, bytes)):
            total += len(one) >> shift
        elif type(one) is tuple or isinstance(one, Bag):
            if total + len(one) > most:
                return most + 1
            waiting.extend(one)
        elif isinstance(one, dict):
            total += len(one) + (sum(map(len, one)) >> shift)
            if total + len(one) > most:
                return most + 1
            waiting.extend(one.values())
        if total > most:
            return most + 1
    return total


def _sum(arguments: Sequence[Value], most: int, *, shift: int = SHIFT) -> int:
    total = 0
    for argument in arguments:
        total += weight_of(argument, most - total, shift=shift)
        if total > most:
            break
    return total


def unit_cost(_arguments: Sequence[Value], _most: int) -> int:
    """Return a cost of one unit, for a function that returns an argument or only checks types."""
    return 1


def linear_cost(arguments: Sequence[Value], most: int) -> int:
    """Return the cost of a function that traverses each argument once, or creates a result of that size."""
    return _sum(arguments, most)


def character_cost(arguments: Sequence[Value], most: int) -> int:
    """Return the cost of a function that inspects each character of a string."""
    return _sum(arguments, most, shift=0)


def print_cost(arguments: Sequence[Value], most: int) -> int:
    """Return the cost of a function that formats its arguments as a string."""
    return PRINTED_EACH * _sum(arguments, most // PRINTED_EACH)


def compare_cost(arguments: Sequence[Value], most: int) -> int:
    """Return the cost of a function that builds keys of all items, to compare, sort or look them up."""
    return COMPARED_EACH * _sum(arguments, most // COMPARED_EACH)


def product_cost(arguments: Sequence[Value], most: int) -> int:
    """Return the cost of a function that combines each item or character of the first argument with each of the other
    arguments.
    """
    first, rest = _sum(arguments[:1], most, shift=0), _sum(arguments[1:], most, shift=0)
    return first * max(1, rest)


def quadratic_cost(arguments: Sequence[Value], most: int) -> int:
    """Return the cost of a function that combines each item of the arguments with each other item."""
    total = _sum(arguments, most)
    return total * total


def match_cost(arguments: Sequence[Value], most: int) -> int:
    """Return the cost of a function that compares each item of the first argument with each of the other arguments."""
    return COMPARED_EACH * product_cost(arguments, most // COMPARED_EACH)


def repeat_cost(at: int) -> Cost:
    """Return the cost function for a function that repeats its other arguments as often as argument `at` specifies."""

    def cost(arguments: Sequence[Value], most: int) -> int:
        others = [argument for index, argument in enumerate(arguments) if index != at]
        count = arguments[at] if at < len(arguments) else 1
        times = count if isinstance(count, (int, float)) else 1
        if not times <= most:  # written with `not`, so that NaN counts as too many
            return most + 1
        return 1 + int(max(1, times) * _sum(others, most))

    return cost


def range_cost(arguments: Sequence[Value], most: int) -> int:
    """Return the cost of an array of the numbers from the first argument to the second, in steps of the third.

    A cost above `most` is returned as `most + 1`.
    """
    numbers = [argument for argument in arguments if isinstance(argument, (int, float))]
    if len(numbers) != len(arguments) or len(numbers) < 2:
        return 1
    step = abs(numbers[2]) if len(numbers) > 2 else 1
    width = abs(numbers[1] - numbers[0])
    return 1 + int(width / step) if step and width / step <= most else most + 1 if step else 1


def unbounded_cost(_arguments: Sequence[Value], _most: int) -> int:
    """Return a cost above any budget, for functions that must not run on the event loop, such as regular
    expressions.
    """
    return UNBOUNDED
