# SPDX-License-Identifier: Apache-2.0
"""Aggregates: the type of a sum, and its overflow."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.evaluator import Budget
from limnos.rooms.sqlpp.language.values.model import Value
from tests.rooms.sqlpp.language.evaluation import ask, value

BIG = "2000000000"
OVER = 4_000_000_000
FORMS = (
    "array_sum({})",
    "coll_sum({})",
    "strict_sum({})",
    "(select value sum(x) from {} x)[0]",
    "(select value sum(distinct x + integer('0')) + sum(x) - sum(distinct x) from {} x)[0]",
    "(select value sum(x) over () from {} x)[0]",
    "(from {} x group by 1 as one group as g select value array_sum((select value g.x from g)))[0]",
)


@pytest.mark.parametrize("form", FORMS)
def test_sum_of_integers_is_a_bigint(form: str) -> None:
    """The sum of integers of any width is a bigint, for every form of the aggregate."""
    numbers = f"[integer('{BIG}'), integer('{BIG}')]"

    total = value(form.format(numbers))

    assert (type(total), total) == (int, OVER)


@pytest.mark.parametrize(
    "text,expected",
    [
        ("array_sum([tinyint('100'), tinyint('100')])", 200),
        ("array_sum([smallint('32767'), smallint('1')])", 32_768),
        ("array_sum([tinyint('1')])", 1),
        ("array_sum([integer('-2147483648'), tinyint('-1')])", -2_147_483_649),
        ("array_sum([float('16777216'), float('1')])", 16_777_217.0),
        ("array_sum([float('3e38'), float('3e38')])", pytest.approx(6e38)),
        ("array_sum([float('0.5')])", 0.5),
        ("array_sum([integer('1'), 0.5])", 1.5),
        ("array_avg([integer('2000000000'), integer('2000000000')])", 2e9),
        ("array_avg([float('16777216'), float('16777217'), float('16777218')])", 50_331_650 / 3),
    ],
)
def test_sums_and_means_have_wide_types(text: str, expected: Value) -> None:
    """A sum is a bigint or a double, not the type of its numbers; a mean is a double."""
    aggregate = value(text)

    assert aggregate == expected
    assert type(aggregate) is (int if isinstance(expected, int) else float)


@pytest.mark.parametrize(
    "text,number",
    [
        ("array_sum([9223372036854775807, 1])", 7),
        ("array_sum([-9223372036854775807, tinyint('-2')])", 8),
        ("(select value sum(x) over () from [9223372036854775807, 1] x)[0]", 7),
    ],
)
def test_a_sum_beyond_bigint_is_refused(text: str, number: int) -> None:
    """A sum that overflows a bigint is an error that names the function."""
    with pytest.raises(SqlppError, match="in agg-sum") as error:
        value(text)

    assert error.value.number == number


@pytest.mark.parametrize(
    "text, expected",
    [
        ("array_sum([1, 'a', 2.5, null])", 3.5),
        ("array_sum(['a'])", 0),
        ("array_avg([1, 'a', 4])", 2.5),
        ("array_avg(['a'])", None),
        ("(select value sum(x) from [1, date('2020-01-01')] x)[0]", 1),
        ("(select value avg(x) over () from [3, 'a'] x)[0]", 3.0),
        ("strict_sum([1, 'a'])", None),
        ("strict_avg([1, 'a'])", None),
    ],
)
def test_sums_ignore_other_values_with_one_warning(text: str, expected: Value) -> None:
    """The statement gets one warning for all ignored values, with the type of the first."""
    budget = Budget()

    assert ask(text, budget=budget) == [expected]
    assert [warning.number for warning in budget.warnings.values()] == [4]
    assert next(iter(budget.warnings)).startswith(
        ("ASX0004: Unsupported type: agg-sum", "ASX0004: Unsupported type: agg-avg")
    )


def test_sum_ignores_null_and_missing_without_warning() -> None:
    """NULL and MISSING are ignored without a warning."""
    budget = Budget()

    assert ask("select value sum(x) from [1, null, missing, 2] x", budget=budget) == [3]
    assert budget.warnings == {}


@pytest.mark.parametrize("text, number", [("array_stddev_samp([1.5, 'a'])", 3), ("array_kurtosis(['a'])", 4)])
def test_statistical_aggregates_refuse_non_numeric_values(text: str, number: int) -> None:
    """Statistical aggregates refuse values that are not numbers, because a result over the rest would be misleading."""
    with pytest.raises(SqlppError) as error:
        value(text)

    assert error.value.number == number


@pytest.mark.parametrize(
    "text, expected",
    [
        ("array_countn([1, 'a', 2.5, null, missing])", 2),
        ("strict_countn([1, null, 'a'])", None),
        ("(select value countn(x) from [1, 'a'] x)[0]", 1),
        ("array_count(distinct [1, 1, 2, null])", 2),
        ("array_sum(distinct [1, 1, 2])", 3),
        ("strict_arrayagg([1, null])", (1, None)),
        ("Default.array_max([1, 3])", 3),
        ("(select value Default.count(x) from [1, 3] x)[0]", 2),
    ],
)
def test_aggregate_variants_return_expected_values(text: str, expected: Value) -> None:
    """Counts of numbers, distinct items, and names through a dataverse."""
    assert value(text) == expected


@pytest.mark.parametrize("function", ["array_min", "array_max", "strict_min", "strict_max"])
@pytest.mark.parametrize("item", ["[1]", "{'a': 1}", "duration('P1Y')", "point('1,2')"])
def test_min_and_max_of_unordered_values_are_null(function: str, item: str) -> None:
    """A value of a type without an order, such as an array, has no minimum and no maximum, even if it is the only
    value.
    """
    extreme = value(f"{function}([{item}])")

    assert extreme is None
