# SPDX-License-Identifier: Apache-2.0
"""Comparison operators and connectives, by hand-written examples."""

from __future__ import annotations

import itertools
import math

import pytest

from limnos.rooms.sqlpp.language.values import comparison
from limnos.rooms.sqlpp.language.values.comparison import Truth
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    Bag,
    Date,
    DateTime,
    Duration,
    Float,
    Integer,
    TinyInt,
    Value,
    YearMonthDuration,
)
from tests.rooms.sqlpp.language.values.examples import ORDERED

M, N = MISSING, None


@pytest.mark.parametrize(
    "left,right,expected",
    [
        (1, 1, True),
        (1, 2, False),
        (1, 1.0, True),
        (TinyInt(1), Integer(1), True),
        (0.1, Float(0.1), False),
        (0.0, -0.0, True),
        (math.nan, math.nan, True),
        (2**53 + 1, float(2**53), False),
        ("a", "a", True),
        ("a", "A", False),
        (1, "1", False),
        (1, True, False),
        (Date(1), DateTime(1), False),
        (Duration(1, 0), Duration(1, 0), True),
        (Duration(1, 0), YearMonthDuration(1), False),
        (N, 1, N),
        (N, N, N),
        (M, 1, M),
        (M, N, M),
        (N, M, M),
        (M, M, M),
        ((), (), True),
        ((1, 2), (1, 2), True),
        ((1, 2), (2, 1), False),
        ((1,), (1, 2), False),
        ((1, N), (1, N), N),
        ((1, N), (2, N), False),
        ((N, 1), (N, 2), False),
        ((M, 1), (N, 1), M),
        ((N, M), (1, 1), N),
        ((1, "a"), (1, 2), False),
        (("a", 1), (2, 2), False),
        ((1,), Bag((1,)), False),
        (((1,),), ((1.0,),), True),
        (Bag((1, 2)), Bag((2, 1)), True),
        (Bag((1, 2)), Bag((2, 2)), False),
        ({}, {}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": N}, False),
        ({"a": N}, {"a": N}, N),
        ({"a": N, "b": 1}, {"a": N, "b": 2}, False),
        ({"a": {"b": (1,)}}, {"a": {"b": (1,)}}, True),
        ({"a": 1}, (1,), False),
    ],
)
def test_equality_is_symmetric(left: Value, right: Value, expected: Truth) -> None:
    """`=` is symmetric, and `!=` is its negation."""
    assert comparison.equal(left, right) is expected
    if M not in (left, right):
        assert comparison.equal(right, left) is expected
    assert comparison.not_equal(left, right) is comparison.negated(expected)


@pytest.mark.parametrize(
    "left,right,less,less_or_equal",
    [
        (1, 2, True, True),
        (2, 1, False, False),
        (1, 1.0, False, True),
        (1, 1.5, True, True),
        (math.nan, 1, False, False),
        (1, math.nan, True, True),
        (math.inf, math.nan, True, True),
        ("a", "b", True, True),
        ("B", "a", True, True),
        ("a", "a\x00", True, True),
        (False, True, True, True),
        (Date(1), Date(2), True, True),
        (YearMonthDuration(1), YearMonthDuration(1), False, True),
        (1, "2", N, N),
        (N, 1, N, N),
        (M, N, M, M),
        ((1,), (2,), N, N),
        (Bag(), Bag(), N, N),
        ({}, {"a": 1}, N, N),
        (Duration(1, 0), Duration(2, 0), N, N),
    ],
)
def test_less_than_of_unordered_types_is_null(left: Value, right: Value, less: Truth, less_or_equal: Truth) -> None:
    """`<` and `<=`; types without an order give NULL."""
    assert comparison.less(left, right) is less
    assert comparison.less_or_equal(left, right) is less_or_equal


@pytest.mark.parametrize(
    "left,right,both,either",
    [
        (True, True, True, True),
        (True, False, False, True),
        (False, False, False, False),
        (True, N, N, True),
        (True, M, M, True),
        (False, N, False, N),
        (False, M, False, M),
        (N, N, N, N),
        (M, M, M, M),
        (N, M, M, N),
        (True, 1, N, True),
        (False, "x", False, N),
        (1, 1, N, N),
        (M, 1, M, N),
    ],
)
def test_and_or_are_symmetric(left: Value, right: Value, both: Truth, either: Truth) -> None:
    """AND and OR are symmetric; a value that is not a boolean counts as NULL."""
    assert comparison.both(left, right) is both
    assert comparison.both(right, left) is both
    assert comparison.either(left, right) is either
    assert comparison.either(right, left) is either


@pytest.mark.parametrize("value,expected", [(True, False), (False, True), (N, N), (M, M), (1, N), ((), N)])
def test_not_negates_booleans_only(value: Value, expected: Truth) -> None:
    """NOT."""
    assert comparison.negated(value) is expected


@pytest.mark.parametrize(
    "value,items,expected",
    [
        (1, (1, 2), True),
        (3, (1, 2), False),
        (1, (), False),
        (1, (N, 1), True),
        (3, (N, 1), N),
        (3, (M, 1), M),
        (3, (M, N), N),
        (1, ("a", 2), False),
        (1.0, Bag((2, 1)), True),
        (N, (1,), N),
        (N, (), False),
        (M, (), False),
        (M, (1,), M),
        (N, Bag(()), False),
        (1, M, M),
        (1, N, N),
        (1, 1, N),
        (1, Date(1), N),
        ((1,), ((2,), (1,)), True),
        ({"a": 1}, ({"a": 1},), True),
    ],
)
def test_in_prefers_true_to_unknown(value: Value, items: Value, expected: Truth) -> None:
    """IN: true takes precedence, then unknown."""
    assert comparison.includes(items, value) is expected


def test_is_distinct_from_is_never_unknown() -> None:
    """IS DISTINCT FROM is never unknown: it is true if the values belong to different groups."""
    for one, other in itertools.product(range(len(ORDERED)), repeat=2):
        assert comparison.distinct(ORDERED[one][0], ORDERED[other][-1]) is (one != other)


def test_equality_agrees_with_the_order() -> None:
    """If `=` and `<` are not NULL, they agree with the total order."""
    flat = [(index, value) for index, group in enumerate(ORDERED) for value in group]
    for (one, left), (other, right) in itertools.product(flat, repeat=2):
        assert comparison.equal(left, right) in (one == other, N, M)
        assert comparison.less(left, right) in (one < other, N, M)
