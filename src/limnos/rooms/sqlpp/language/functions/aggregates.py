# SPDX-License-Identifier: Apache-2.0
"""Aggregate functions: over the rows of a group, and the same functions over an array.

Must not know rows. Each has three forms. `sum(x)` works over a group and `array_sum(a)` over an array; both skip NULL
and MISSING. `strict_sum(a)` does not: one NULL or MISSING makes the result NULL, except that `strict_count` counts all
items. Without values `count` and `countn` are 0 and the others are NULL. For values that are not numbers `sum` and
`avg` add a warning and ignore them, `median` is NULL, and the other statistical functions raise an error.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.functions.collections import Items, items
from limnos.rooms.sqlpp.language.functions.costs import compare_cost, linear_cost
from limnos.rooms.sqlpp.language.functions.numbers import number
from limnos.rooms.sqlpp.language.functions.table import AggregateFold, aggregate, scalar
from limnos.rooms.sqlpp.language.values import comparison
from limnos.rooms.sqlpp.language.values.arithmetic import add, promote
from limnos.rooms.sqlpp.language.values.model import MISSING, Value, is_unknown, type_name

INCOMPATIBLE, UNSUPPORTED = 3, 4


def count(values: list[Value]) -> Value:
    """Implement `count`: the count of values."""
    return len(values)


def total(values: list[Value]) -> Value:
    """Implement `sum` of numbers: a bigint for integers of any width, a double if one value is not an integer.

    Values that are not numbers are ignored: if there are no numbers, the sum is 0. NULL without values. Raises
    SqlppError if a sum of integers does not fit a bigint.
    """
    result: Value = 0 if values else None
    for value in values:
        result = _add_number(result, value)
    return result


def _add_number(total: Value, value: Value) -> Value:
    addend = number(value)
    if addend is None:
        return total
    return add(total, int(addend) if isinstance(addend, int) else float(addend), function="agg-sum")


def _remove_number(total: Value, value: Value) -> Value:
    subtrahend = number(value)
    return total if subtrahend is None else add(total, -int(subtrahend), function="agg-sum")


def strict_total(values: list[Value]) -> Value:
    """Return the sum; NULL if a value is not a number. Raises SqlppError as `total`."""
    return None if strays(values) is not None else total(values)


def average(values: list[Value]) -> Value:
    """Implement `avg`: the mean of the numbers, as a double. Other values are ignored."""
    numbers = [float(known) for value in values if (known := number(value)) is not None]
    return math.fsum(numbers) / len(numbers) if numbers else None


def strict_average(values: list[Value]) -> Value:
    """Return the mean; NULL if a value is not a number."""
    return None if strays(values) is not None else average(values)


def strays(values: Sequence[Value]) -> Value:
    """Return the first value that is not a number, NULL or MISSING; NULL if there is none. For warnings and errors."""
    return next((value for value in values if not is_unknown(value) and number(value) is None), None)


def count_numbers(values: list[Value]) -> Value:
    """Return the count of the values that are numbers."""
    return sum(number(value) is not None for value in values)


def least(values: list[Value]) -> Value:
    """Return the smallest value, a number in the widest type of the numbers.

    NULL if two values cannot be compared, and for a type without an order, such as arrays, even for a single value.
    """
    return _extreme(values, better=_lesser)


def greatest(values: list[Value]) -> Value:
    """Return the largest value, a number in the widest type of the numbers.

    NULL if two values cannot be compared, and for a type without an order, such as arrays, even for a single value.
    """
    return _extreme(values, better=_greater)


def _extreme(values: list[Value], *, better: Callable[[Value, Value], Value]) -> Value:
    if not values:
        return None
    best = _orderable(values[0])
    for value in values[1:]:
        if best is None:
            return None
        best = better(best, value)
    return best


def _orderable(value: Value) -> Value:
    return value if comparison.has_order(value) else None


def _lesser(best: Value, value: Value) -> Value:
    """Return the smaller of two values, the first if they are equal; NULL if they cannot be ordered.

    A number has the wider type of both.
    """
    less = comparison.less(value, best)
    return None if not isinstance(less, bool) else promote(value, best) if less else promote(best, value)


def _greater(best: Value, value: Value) -> Value:
    """Return the greater of two values, the first if they are equal; NULL if they cannot be ordered.

    A number has the wider type of both.
    """
    less = comparison.less(best, value)
    return None if not isinstance(less, bool) else promote(value, best) if less else promote(best, value)


def _numbers(values: list[Value]) -> list[float] | None:
    """Return the values as doubles; None if there are no values, or if one is not a number."""
    results = [number(value) for value in values]
    floats = [float(value) for value in results if value is not None]
    return floats if floats and len(floats) == len(results) else None


def _moments(values: list[Value], *, function: str) -> tuple[int, list[float]] | None:
    """Return the count of values, and the sums of the second, third and fourth powers of their deviations from the
    mean.

    None if there are no values. Raises SqlppError if one is not a number.
    """
    stray = strays(values)
    if stray is not None:
        raise _stray_error(function, values, stray=stray)
    numbers = _numbers(values)
    if numbers is None:
        return None
    mean = math.fsum(numbers) / len(numbers)
    return len(numbers), [math.fsum((value - mean) ** power for value in numbers) for power in (2, 3, 4)]


def _stray_error(function: str, values: list[Value], *, stray: Value) -> SqlppError:
    """Return the error of an aggregate for `stray`, a value that is not a number."""
    other = next((value for value in values if number(value) is not None), None)
    if other is None:
        return SqlppError(UNSUPPORTED, f"Unsupported type: agg-{function} cannot process input type {type_name(stray)}")
    text = f"gets incompatible input values: {type_name(stray)} and {type_name(other)}"
    return SqlppError(INCOMPATIBLE, f"Type incompatibility: function agg-{function} {text}")


def variance_of_sample(values: list[Value], *, function: str = "var_samp") -> float | None:
    """Return the sample variance; None for fewer than two values. `function` is the name in errors.

    Raises SqlppError for a value that is not a number.
    """
    moments = _moments(values, function=function)
    return None if moments is None or moments[0] < 2 else moments[1][0] / (moments[0] - 1)


def variance_of_population(values: list[Value], *, function: str = "var_pop") -> float | None:
    """Return the population variance; None without values. `function` is the name in errors.

    Raises SqlppError for a value that is not a number.
    """
    moments = _moments(values, function=function)
    return None if moments is None else moments[1][0] / moments[0]


def deviation_of_sample(values: list[Value]) -> Value:
    """Return the sample standard deviation; NULL for fewer than two values.

    Raises SqlppError for a value that is not a number.
    """
    variance = variance_of_sample(values, function="stddev_samp")
    return None if variance is None else math.sqrt(variance)


def deviation_of_population(values: list[Value]) -> Value:
    """Return the population standard deviation; NULL without values.

    Raises SqlppError for a value that is not a number.
    """
    variance = variance_of_population(values, function="stddev_pop")
    return None if variance is None else math.sqrt(variance)


def skewness(values: list[Value]) -> Value:
    """Return the skewness, the third standardized moment; NULL for fewer than two values, or equal values.

    Raises SqlppError for a value that is not a number.
    """
    moments = _moments(values, function="skewness")
    if moments is None or moments[0] < 2 or moments[1][0] == 0:
        return None
    size, (second, third, _) = moments
    return float(math.sqrt(size) * third / second**1.5)


def kurtosis(values: list[Value]) -> Value:
    """Return the excess kurtosis: the fourth standardized moment minus 3; NULL for fewer than three values, or equal
    values.

    Raises SqlppError for a value that is not a number.
    """
    moments = _moments(values, function="kurtosis")
    if moments is None or moments[0] < 3 or moments[1][0] == 0:
        return None
    size, (second, _, fourth) = moments
    return size * fourth / second**2 - 3


def median(values: list[Value]) -> Value:
    """Return the median of numbers; NULL without values, or if a value is not a number."""
    numbers = _numbers(values)
    return None if numbers is None else statistics.median(numbers)


def collect_array(values: list[Value]) -> Value:
    """Implement `array_agg`: an array of all values."""
    return tuple(values)


_WORKS: dict[str, tuple[Callable[[list[Value]], Value], tuple[str, ...]]] = {
    "sum": (total, ()),
    "avg": (average, ()),
    "min": (least, ()),
    "max": (greatest, ()),
    "count": (count, ()),
    "countn": (count_numbers, ()),
    "stddev_samp": (deviation_of_sample, ("stddev",)),
    "stddev_pop": (deviation_of_population, ()),
    "var_samp": (variance_of_sample, ("variance", "variance_samp")),
    "var_pop": (variance_of_population, ("variance_pop",)),
    "skewness": (skewness, ()),
    "kurtosis": (kurtosis, ()),
    "median": (median, ()),
}


_STRICT: dict[str, Callable[[list[Value]], Value]] = {"sum": strict_total, "avg": strict_average}
_WARNED = frozenset({"sum", "avg"})
_FOLDS: dict[str, AggregateFold] = {
    "sum": AggregateFold(lambda value: _add_number(0, value), _add_number, without=_remove_number),
    "min": AggregateFold(_orderable, _lesser),
    "max": AggregateFold(_orderable, _greater),
    "count": AggregateFold(
        lambda _: 1, lambda count, _: add(count, 1), without=lambda count, _: add(count, -1), empty=0
    ),
}


def _without_unknowns(values: Items | list[Value]) -> list[Value]:
    return [value for value in values if not is_unknown(value)]


def _put(name: str, work: Callable[[list[Value]], Value], *, more: tuple[str, ...]) -> None:
    cost = compare_cost if name in ("min", "max", "sum") else linear_cost
    stray = strays if name in _WARNED else None
    strict_work = _STRICT.get(name, work)
    aggregate(name, *more, counts_rows=name == "count", cost=cost, stray=stray, fold=_FOLDS.get(name))(
        lambda values: work(_without_unknowns(values))
    )

    def over_array(value: Value) -> Value:
        elements = items(value)
        if elements is None:
            return 0 if name == "countn" else MISSING if value is MISSING else None
        return work(_without_unknowns(elements))

    def strictly(value: Value) -> Value:
        elements = items(value)
        if elements is None or (name != "count" and any(is_unknown(one) for one in elements)):
            return 0 if name == "count" or (name == "countn" and is_unknown(value)) else None
        return strict_work(list(elements))

    spelled = (name, *more)
    scalar(
        *(f"{form}_{one}" for form in ("array", "coll") for one in spelled),
        least=1,
        cost=cost,
        stray=stray,
        strict=False,
    )(over_array)
    scalar(*(f"strict_{one}" for one in spelled), least=1, cost=cost, stray=stray, strict=name != "countn")(strictly)


for _name, (_work, _more) in _WORKS.items():
    _put(_name, _work, more=_more)

aggregate("array_agg", "arrayagg", cost=linear_cost)(collect_array)
scalar("array_array_agg", "array_arrayagg", "strict_array_agg", "strict_arrayagg", least=1, cost=linear_cost)(
    lambda value: None if (current := items(value)) is None else tuple(current)
)
