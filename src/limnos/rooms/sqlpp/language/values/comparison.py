# SPDX-License-Identifier: Apache-2.0
"""Comparison operators, whose result is true, false, NULL or MISSING.

Values of different types, except numbers, are unequal, and `<` between them is NULL. `<` is also NULL between arrays,
multisets, objects, durations, intervals and shapes, which only have `=`. If an operand is MISSING the result is
MISSING, else if one is NULL it is NULL.

`=` compares arrays and objects deeply. Two that differ in comparable values are unequal, even if other values in them
are NULL or MISSING. If no values differ and one is NULL or MISSING, the result is, too.
"""

from __future__ import annotations

from typing import Literal

from limnos.rooms.sqlpp.language.values.model import MISSING, NUMERIC, Bag, MissingType, TypeName, Value, type_name
from limnos.rooms.sqlpp.language.values.order import key

Truth = bool | MissingType | None
"""The result of a comparison or a condition."""

_EQUALITY_ALONE = frozenset[TypeName](
    (
        "array",
        "multiset",
        "object",
        "duration",
        "interval",
        "point",
        "point3d",
        "line",
        "rectangle",
        "circle",
        "polygon",
        "geometry",
    )
)


def equal(left: Value, right: Value) -> Truth:
    """Return `left = right`: a boolean, NULL or MISSING."""
    if type(left) is str and type(right) is str:
        return left == right
    waiting = [(left, right)]
    result: Truth = True
    while waiting:
        one, other = waiting.pop()
        unknown = MISSING if one is MISSING or other is MISSING else None if one is None or other is None else False
        if unknown is False:
            inside = _inside(one, other)
            if inside is None:
                return False
            waiting.extend(reversed(inside))
        elif result is True:
            result = unknown
    return result


def _inside(left: Value, right: Value) -> list[tuple[Value, Value]] | None:
    """Return the pairs of parts that must be equal for two values of one type to be equal; None if the values are
    unequal.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        return [(left[name], right[name]) for name in sorted(left)] if left.keys() == right.keys() else None
    if isinstance(left, Bag) and isinstance(right, Bag):
        left, right = tuple(sorted(left, key=key)), tuple(sorted(right, key=key))
    if type(left) is tuple and type(right) is tuple:
        return list(zip(left, right, strict=True)) if len(left) == len(right) else None
    return [] if _family(left) == _family(right) and key(left) == key(right) else None


def _unknown(left: Value, right: Value) -> MissingType | Literal[False] | None:
    """Return the result of an ordering comparison if it is MISSING or NULL; False if the two values are comparable."""
    if left is MISSING or right is MISSING:
        return MISSING
    if left is None or right is None or _family(left) != _family(right):
        return None
    return False


def _family(value: Value) -> str:
    name = type_name(value)
    return "number" if name in NUMERIC else name


def less(left: Value, right: Value) -> Truth:
    """Return `left < right`: a boolean, NULL or MISSING."""
    unknown = _unknown(left, right)
    if unknown is not False:
        return unknown
    return key(left) < key(right) if has_order(left) else None


def has_order(value: Value) -> bool:
    """Return whether `<` is defined for the type of a value. Objects, collections, durations, intervals and shapes have
    none.
    """
    return type_name(value) not in _EQUALITY_ALONE


def less_or_equal(left: Value, right: Value) -> Truth:
    """Return `left <= right`: a boolean, NULL or MISSING."""
    return negated(less(right, left))


def not_equal(left: Value, right: Value) -> Truth:
    """Return `left != right`: a boolean, NULL or MISSING."""
    return negated(equal(left, right))


def distinct(left: Value, right: Value) -> bool:
    """Return `left IS DISTINCT FROM right`, which is never NULL: NULL, MISSING and NaN are each equal to themselves."""
    return key(left) != key(right)


def negated(value: Value) -> Truth:
    """Return `NOT value`; NULL for a value that is not a boolean."""
    if isinstance(value, bool):
        return not value
    return MISSING if value is MISSING else None


def both(left: Value, right: Value) -> Truth:
    """Return `left AND right`: false if one is false, else MISSING takes precedence over NULL, and NULL over true."""
    if left is False or right is False:
        return False
    if left is MISSING or right is MISSING:
        return MISSING
    return True if left is True and right is True else None


def either(left: Value, right: Value) -> Truth:
    """Return `left OR right`: true if one is true, else NULL takes precedence over MISSING, and MISSING over false."""
    if left is True or right is True:
        return True
    if left is False and right is False:
        return False
    undecided_values = [value for value in (left, right) if value is not False]
    return MISSING if all(value is MISSING for value in undecided_values) else None


def includes(items: Value, value: Value) -> Truth:
    """Return `value IN items`: true if an item is equal, else NULL or MISSING if a comparison is, else false.

    An empty collection gives false. Otherwise the result is MISSING if `value` or `items` is, else NULL if `value` is
    NULL or `items` is not a collection.
    """
    if isinstance(items, tuple) and not items:
        return False
    if items is MISSING or value is MISSING:
        return MISSING
    if value is None or not isinstance(items, tuple) or type_name(items) not in ("array", "multiset"):
        return None
    result: Truth = False
    for item in items:
        result = either(result, equal(item, value))
    return result
