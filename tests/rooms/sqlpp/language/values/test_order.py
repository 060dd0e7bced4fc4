# SPDX-License-Identifier: Apache-2.0
"""The total order: byte keys, one for each group of values."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.values.comparison import equal
from limnos.rooms.sqlpp.language.values.model import MISSING, Bag, Value
from limnos.rooms.sqlpp.language.values.order import DEPTH_MAX, key
from tests.rooms.sqlpp.language.values.examples import ORDERED

pytestmark = pytest.mark.slow

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.integers(-5, 5).map(lambda n: 2**53 + n)
SCALARS: st.SearchStrategy[Value] = (
    st.none() | st.booleans() | NUMBERS | st.text(max_size=4) | st.binary(max_size=4) | st.just(MISSING)
)
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(Bag)
        | st.dictionaries(st.text(max_size=2), inner.filter(lambda value: value is not MISSING), max_size=3)
    ),
    max_leaves=6,
)


def test_keys_of_all_types_are_in_order() -> None:
    """The keys of the examples are sorted, and equal within a group."""
    keys = [{key(value) for value in group} for group in ORDERED]

    assert [len(group) for group in keys] == [1] * len(ORDERED)
    assert all(min(one) < min(other) for one, other in itertools.pairwise(keys))


def test_no_example_key_is_a_prefix_of_the_next() -> None:
    """No key of the examples, which include strings with trailing NULs, is a prefix of the next."""
    keys = sorted(key(group[0]) for group in ORDERED)

    assert not any(other.startswith(one) for one, other in itertools.pairwise(keys))


@given(NUMBERS, NUMBERS)
def test_numbers_compare_exactly(one: float, other: float) -> None:
    """Integers and doubles of any size are ordered by their numeric value."""
    assert (key(one) < key(other)) == (one < other)
    assert (key(one) == key(other)) == (one == other)


@given(st.text(max_size=6), st.text(max_size=6))
def test_strings_compare_by_code_points(one: str, other: str) -> None:
    """Strings are ordered by their code points, including NUL."""
    assert (key(one) < key(other)) == (one < other)


@given(VALUES, VALUES)
def test_no_key_is_a_prefix_of_another(one: Value, other: Value) -> None:
    """No key is a prefix of another, so that keys can be concatenated to composite keys."""
    first, second = key(one), key(other)

    assert first == second or not (first.startswith(second) or second.startswith(first))


@given(st.lists(VALUES, max_size=4), st.lists(VALUES, max_size=4))
def test_arrays_compare_item_by_item(one: list[Value], other: list[Value]) -> None:
    """Arrays are ordered item by item; a prefix precedes the longer array."""
    keys = [[key(item) for item in items] for items in (one, other)]

    assert (key(tuple(one)) < key(tuple(other))) == (keys[0] < keys[1])


@given(st.lists(VALUES, max_size=5))
def test_multisets_have_no_order(items: list[Value]) -> None:
    """The order of items in a multiset does not matter."""
    assert key(Bag(items)) == key(Bag(reversed(items)))


def test_value_beyond_the_maximum_depth_is_refused() -> None:
    """A value of the maximum depth has a key; a deeper one is refused, not by a RecursionError."""
    value: Value = 1
    for _ in range(DEPTH_MAX):
        value = (value,)

    assert key(value)
    assert equal(value, value) is True
    with pytest.raises(SqlppError, match="ASX1079: Compilation error: A value is nested more than"):
        key((value,))
