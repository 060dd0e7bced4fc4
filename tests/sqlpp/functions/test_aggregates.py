"""Aggregates: what type a sum has, and where it ends."""

from __future__ import annotations

import pytest

from limnos.sqlpp.errors import SqlppError
from limnos.sqlpp.values.model import Value
from tests.sqlpp.evaluation import value

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
def test_a_sum_is_a_bigint(form: str) -> None:
    """Whole numbers of any width add up to a bigint, whatever way a sum is asked for."""
    held = f"[integer('{BIG}'), integer('{BIG}')]"

    found = value(form.format(held))

    assert (type(found), found) == (int, OVER)


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
def test_sums_and_means_are_wide(text: str, expected: Value) -> None:
    """A sum is a bigint or a double itself, not the type of its numbers; a mean is a double."""
    found = value(text)

    assert found == expected
    assert type(found) is (int if isinstance(expected, int) else float)


@pytest.mark.parametrize(
    "text,number",
    [
        ("array_sum([9223372036854775807, 1])", 7),
        ("array_sum([-9223372036854775807, tinyint('-2')])", 8),
        ("(select value sum(x) over () from [9223372036854775807, 1] x)[0]", 7),
    ],
)
def test_a_sum_beyond_bigint_is_refused(text: str, number: int) -> None:
    """A sum that no bigint holds is an error that names the function."""
    with pytest.raises(SqlppError, match="in sum") as told:
        value(text)

    assert told.value.number == number
