# SPDX-License-Identifier: Apache-2.0
"""Similarity of two values."""

from __future__ import annotations

import random

import pytest

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.values.model import MISSING, Float, Integer, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("edit_distance('SuzannaTillson', 'Suzanna Tilson')", 2),
        ("edit_distance('', 'abc')", 3),
        ("edit_distance('Audria Haylett', 'Ria Haflett')", 4),
        ("edit_distance([1, 2, 3], [1, 3])", 1),
        ("edit_distance([1], [1.0])", 0),
        ("edit_distance('a', ['a'])", None),
        ("edit_distance(1, 2)", None),
        ("edit_distance('a', missing)", MISSING),
        ("edit_distance_check('happy', 'hapy', 1)", (True, 1)),
        ("edit_distance_check('happy', 'sad', 2)", (False, Integer(2147483647))),
        ("edit_distance_contains('the happy few', 'hapy', 1)", (True, 1)),
        ("edit_distance_contains('the happy few', 'sad', 1)", (False, Integer(2147483647))),
        ("edit_distance_contains([1, 2, 3], [2, 3], 0)", (True, 0)),
        ("edit_distance_contains(1, 'a', 0)", None),
        ("[edit_distance_list_is_filterable([1, 2], 1), edit_distance_list_is_filterable([1], 1)]", (True, False)),
        (
            (
                "[edit_distance_string_is_filterable('abcdefghij', 5, 2, true),"
                " edit_distance_string_is_filterable('abcdefghij', 5, 2, false)]"
            ),
            (True, False),
        ),
        (
            "[edit_distance_string_is_filterable('', 0, 2, true), edit_distance_string_is_filterable(1, 0, 2, true)]",
            (False, None),
        ),
        ("edit_distance_check('a', 'b', 'x')", None),
        ("similarity_jaccard([1, 5, 8, 9], [1, 5, 9, 10])", Float(0.6)),
        ("similarity_jaccard(['Ab', 'c'], ['aB'])", 0.5),
        ("similarity_jaccard_sorted([1, 2], [2, 3])", Float(1 / 3)),
        ("similarity_jaccard_sorted_check([1], [1], 1)", (True, 1.0)),
        (
            "[prefix_len_jaccard(10, float('0.8')), prefix_len_jaccard(5, float('0.9')), prefix_len_jaccard(5, 'a')]",
            (3, 1, None),
        ),
        ("similarity_jaccard_prefix(3, [1, 2, 3], 3, [1, 2, 4], 1, 0.5)", 0.5),
        ("similarity_jaccard_prefix(3, [1, 2, 3], 3, [1, 2, 4], 1, 0.6)", 0.0),
        ("similarity_jaccard_prefix_check(3, [1, 2, 3], 9, [1, 2, 3], 1, 0.5)", (False, 0.0)),
        ("similarity_jaccard_prefix_check(4, [1, 2, 3, 4], 4, [1, 2], 1, 0.33)", (True, Float(1 / 3))),
        ("similarity_jaccard_prefix_check(4, 1, 4, [1, 2], 1, 0.33)", None),
        ("similarity_jaccard([1, 1], [1])", 0.5),
        ("similarity_jaccard([], [])", 0.0),
        ("similarity_jaccard({{'a'}}, ['a'])", 1.0),
        ("similarity_jaccard('a', ['a'])", None),
        ("similarity_jaccard_check([1, 5, 8, 9], [1, 5, 9, 10], 0.6)", (True, Float(0.6))),
        ("similarity_jaccard_check([1, 5, 8, 9], [1, 5, 9, 10], 0.7)", (False, 0.0)),
    ],
)
def test_similarity_functions_return_expected_values(text: str, expected: Value) -> None:
    """Edit distances, and the similarity of collections."""
    assert value(text) == expected


def test_too_expensive_comparison_is_refused() -> None:
    """Comparisons whose product of lengths exceeds the limit are refused."""
    with pytest.raises(SqlppError, match="takes too long"):
        value("edit_distance(repeat('a', 2000), repeat('b', 2000))")


def _table_distance(one: str, other: str, *, is_part: bool) -> int:
    """Return the edit distance by the table of all prefixes; with `is_part`, the least distance to a part of the first
    text.
    """
    row = list(range(len(other) + 1))
    nearest = row[-1]
    for at, first in enumerate(one, 1):
        following = [0 if is_part else at]
        for place, second in enumerate(other, 1):
            following.append(min(following[-1] + 1, row[place] + 1, row[place - 1] + (first != second)))
        row = following
        nearest = min(nearest, row[-1])
    return nearest if is_part else row[-1]


def test_edit_distances_match_the_table_algorithm() -> None:
    """For random short texts, whole and as parts, the distance equals that of the table."""
    of = random.Random(7)
    for _ in range(3000):
        one, other = ("".join(of.choices("abc", k=of.randrange(9))) for _ in range(2))

        assert value(f"edit_distance('{one}', '{other}')") == _table_distance(one, other, is_part=False)
        contained = _table_distance(one, other, is_part=True)
        assert value(f"edit_distance_contains('{one}', '{other}', 99)") == (True, contained)


def test_strings_and_other_items_are_counted_alike() -> None:
    """Collections of strings use a faster algorithm; numbers that Python considers equal to booleans remain
    different.
    """
    assert value("similarity_jaccard(['A', 'b', 'b'], ['a', 'B', 'c'])") == Float(0.5)
    assert value("similarity_jaccard(['A', 'b', 'b', 1], ['a', 'B', 'c', true])") == Float(1 / 3)
    assert value("similarity_jaccard([1], [true])") == 0.0
