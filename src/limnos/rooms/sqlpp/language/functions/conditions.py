# SPDX-License-Identifier: Apache-2.0
"""Conditional functions, which select an argument by NULL, MISSING, NaN, infinity or equality, such as `if_null`.

Must not know plans. Most of them are called even if an argument is NULL or MISSING.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from limnos.rooms.sqlpp.language.functions.costs import compare_cost, unit_cost
from limnos.rooms.sqlpp.language.functions.numbers import number
from limnos.rooms.sqlpp.language.functions.table import ANY_NUMBER, scalar
from limnos.rooms.sqlpp.language.values import comparison
from limnos.rooms.sqlpp.language.values.arithmetic import promote
from limnos.rooms.sqlpp.language.values.model import MISSING, Value, is_unknown


def _first(name: str, passed: Callable[[Value], bool], *more: str, numeric: bool = False) -> None:
    """Register a function that returns the first argument for which `passed` is false; NULL if there is none.

    If `numeric`, it also skips MISSING, and returns NULL if it reaches a value that is not a number.
    """

    def run(*values: Value) -> Value:
        for value in values:
            if numeric and value is MISSING:
                continue
            if numeric and number(value) is None:
                return None
            if not passed(value):
                return value
        return None

    scalar(name, *more, least=2 if numeric else 0, most=ANY_NUMBER, strict=False, cost=unit_cost)(run)


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_infinite(value: Value) -> bool:
    return isinstance(value, float) and math.isinf(value)


_first("if_missing", lambda value: value is MISSING, "ifmissing")
_first("if_null", lambda value: value is None, "ifnull")
_first("if_missing_or_null", is_unknown, "ifmissingornull", "coalesce")
_first("if_nan", _is_nan, "ifnan", numeric=True)
_first("if_inf", _is_infinite, "ifinf", numeric=True)
_first("if_nan_or_inf", lambda value: _is_nan(value) or _is_infinite(value), "ifnanorinf", numeric=True)


def _register_if_equal(name: str, then: Value, *more: str) -> None:
    """Register a function that returns `then` if both arguments are equal, else its first argument."""

    def run(value: Value, other: Value) -> Value:
        return then if comparison.equal(value, other) is True else value

    scalar(name, *more, least=2, strict=False, cost=compare_cost)(run)


_register_if_equal("null_if", None, "nullif")
_register_if_equal("missing_if", MISSING, "missingif")
_register_if_equal("nan_if", math.nan, "nanif")
_register_if_equal("posinf_if", math.inf, "posinfif")
_register_if_equal("neginf_if", -math.inf, "neginfif")


@scalar("nvl", least=2, strict=False, cost=unit_cost)
def nvl(value: Value, other: Value) -> Value:
    """Return the second value if the first is NULL or MISSING, else the first."""
    return other if is_unknown(value) else value


@scalar("nvl2", least=3, strict=False, cost=unit_cost)
def nvl2(value: Value, known: Value, unknown: Value) -> Value:
    """Return the second value if the first is neither NULL nor MISSING, else the third."""
    return unknown if is_unknown(value) else known


@scalar("greatest", least=1, most=ANY_NUMBER, strict=False, cost=compare_cost)
def greatest(*values: Value) -> Value:
    """Return the greatest of the values that are not NULL or MISSING, a number in the widest type of the numbers.

    NULL without any such value, or if two cannot be compared.
    """
    return _extreme(values, greatest=True)


@scalar("least", least=1, most=ANY_NUMBER, strict=False, cost=compare_cost)
def least(*values: Value) -> Value:
    """Return the least of the values that are not NULL or MISSING, a number in the widest type of the numbers.

    NULL without any such value, or if two cannot be compared.
    """
    return _extreme(values, greatest=False)


def _extreme(values: tuple[Value, ...], *, greatest: bool) -> Value:
    known_values = [value for value in values if not is_unknown(value)]
    if not known_values:
        return None
    best = known_values[0]
    for value in known_values[1:]:
        less = comparison.less(value, best)
        if less is not True and less is not False:
            return None
        is_better = less != greatest and comparison.equal(value, best) is not True
        best = promote(value, best) if is_better else promote(best, value)
    return best


@scalar("switch_case", least=3, most=ANY_NUMBER, strict=False, cost=compare_cost)
def switch_case(value: Value, *more: Value) -> Value:
    """Compare the first argument with pairs of a value and a result; return the result of the first equal value.

    Without an equal value, return the last unpaired argument, or NULL.
    """
    for at in range(0, len(more) - 1, 2):
        if comparison.equal(value, more[at]) is True:
            return more[at + 1]
    return more[-1] if len(more) % 2 else None


@scalar("deep_equal", least=2, cost=compare_cost)
def deep_equal(value: Value, other: Value) -> Value:
    """Return whether two values are equal at every depth; nested NULLs are equal. NULL if an argument is NULL."""
    return not comparison.distinct(value, other)


@scalar("is_nan", "isnan", least=1, cost=unit_cost)
def is_nan(value: Value) -> Value:
    """Return whether a number is NaN."""
    return None if number(value) is None else _is_nan(value)
