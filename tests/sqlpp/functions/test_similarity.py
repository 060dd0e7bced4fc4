"""How alike two values are."""

from __future__ import annotations

import pytest

from limnos.sqlpp.errors import SqlppError
from limnos.sqlpp.values.model import MISSING, Value
from tests.sqlpp.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("edit_distance('SuzannaTillson', 'Suzanna Tilson')", 2),
        ("edit_distance('', 'abc')", 3),
        ("edit_distance([1, 2, 3], [1, 3])", 1),
        ("edit_distance([1], [1.0])", 0),
        ("edit_distance('a', ['a'])", None),
        ("edit_distance(1, 2)", None),
        ("edit_distance('a', missing)", MISSING),
        ("edit_distance_check('happy', 'hapy', 1)", (True, 1)),
        ("edit_distance_check('happy', 'sad', 2)", (False, 0)),
        ("edit_distance_check('a', 'b', 'x')", None),
        ("similarity_jaccard([1, 5, 8, 9], [1, 5, 9, 10])", 0.6),
        ("similarity_jaccard([1, 1], [1])", 0.5),
        ("similarity_jaccard([], [])", 0.0),
        ("similarity_jaccard({{'a'}}, ['a'])", 1.0),
        ("similarity_jaccard('a', ['a'])", None),
        ("similarity_jaccard_check([1, 5, 8, 9], [1, 5, 9, 10], 0.6)", (True, 0.6)),
        ("similarity_jaccard_check([1, 5, 8, 9], [1, 5, 9, 10], 0.7)", (False, 0.0)),
    ],
)
def test_value(text: str, expected: Value) -> None:
    """Steps from one to the other, and what two have in common."""
    assert value(text) == expected


def test_what_takes_too_long() -> None:
    """The work is bounded by the product of two lengths."""
    with pytest.raises(SqlppError, match="takes too long"):
        value("edit_distance(repeat('a', 2000), repeat('b', 2000))")
