# SPDX-License-Identifier: Apache-2.0
"""Field access, subscripts and slices, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.values.access import element, field, part, part_from
from limnos.rooms.sqlpp.language.values.model import MISSING, Bag, Date, Integer, Value

M, N = MISSING, None
ITEMS = ("a", "b", "c")


@pytest.mark.parametrize(
    "value,name,expected",
    [
        ({"a": 1}, "a", 1),
        ({"a": 1}, "A", M),
        ({"a": N}, "a", N),
        ({}, "a", M),
        (N, "a", N),
        (M, "a", M),
        ((1,), "a", M),
        ("text", "a", M),
        (Date(1), "days", M),
    ],
)
def test_only_objects_have_fields(value: Value, name: str, expected: Value) -> None:
    """Only objects have fields."""
    assert field(value, name) is expected or field(value, name) == expected


@pytest.mark.parametrize(
    "value,index,expected",
    [
        (ITEMS, 0, "a"),
        (ITEMS, 2, "c"),
        (ITEMS, 3, M),
        (ITEMS, -1, "c"),
        (ITEMS, -3, "a"),
        (ITEMS, -4, M),
        (ITEMS, Integer(1), "b"),
        (ITEMS, 1.0, "b"),
        (ITEMS, 1.5, N),
        (ITEMS, "1", N),
        (ITEMS, True, N),
        (ITEMS, N, N),
        (ITEMS, M, M),
        ((N,), 0, N),
        (Bag(("x",)), 0, "x"),
        ((), 0, M),
        (N, 0, N),
        (M, 0, M),
        (N, M, M),
        ({"a": 1}, 0, N),
        ("text", 0, N),
        (Date(1), 0, N),
    ],
)
def test_item_is_selected_by_position_from_either_end(value: Value, index: Value, expected: Value) -> None:
    """An item is selected by position, from either end."""
    assert element(value, index) is expected or element(value, index) == expected


@pytest.mark.parametrize(
    "value,start,end,expected",
    [
        (ITEMS, 0, 3, ITEMS),
        (ITEMS, 0, 1, ("a",)),
        (ITEMS, 1, -1, ("b",)),
        (ITEMS, -2, 3, ("b", "c")),
        (ITEMS, 1, 1, N),
        (ITEMS, 2, 1, N),
        (ITEMS, 0, 4, N),
        (ITEMS, -4, 3, N),
        (ITEMS, 0.5, 3, N),
        (ITEMS, 0.0, 2.0, ("a", "b")),
        (ITEMS, N, 1, N),
        (ITEMS, M, N, M),
        (M, 0, 1, M),
        (N, 0, 1, N),
        ("abc", 0, 1, N),
        (Bag(ITEMS), 0, 2, Bag(("a", "b"))),
    ],
)
def test_slice_outside_of_the_value_is_null(value: Value, start: Value, end: Value, expected: Value) -> None:
    """A slice outside of the value is NULL; its type is that of the value."""
    result = part(value, start, end)

    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "value,start,expected",
    [
        (ITEMS, 1, ("b", "c")),
        (ITEMS, -1, ("c",)),
        (ITEMS, 3, N),
        ((), 0, N),
        (M, 0, M),
        (N, 0, N),
        (1, 0, N),
        (ITEMS, M, M),
    ],
)
def test_slice_without_end_reaches_the_end(value: Value, start: Value, expected: Value) -> None:
    """A slice up to the end."""
    assert part_from(value, start) is expected or part_from(value, start) == expected
