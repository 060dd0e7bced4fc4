"""Functions of arrays and multisets, by hand-written vectors."""

from __future__ import annotations

import pytest

from limnos.sqlpp.errors import SqlppError
from limnos.sqlpp.values.model import MISSING, Bag, Value
from tests.sqlpp.asking import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("array_length([1, 2])", 2),
        ("len({'a': 1})", 1),
        ("len('abc')", 3),
        ("len(1)", None),
        ("array_append([1], 2, 3)", (1, 2, 3)),
        ("array_append([1], null)", (1, None)),
        ("array_append([1], missing)", MISSING),
        ("array_append(null, 1)", None),
        ("array_append(1, 1)", None),
        ("array_prepend(0, [1])", (0, 1)),
        ("array_concat([1], [2, 3], [])", (1, 2, 3)),
        ("array_concat([1], 2)", None),
        ("array_contains([1, 2], 2)", True),
        ("array_contains([1, 2], 3)", False),
        ("array_contains([1, 2], null)", None),
        ("array_position(['a', 'b'], 'b')", 1),
        ("array_position(['a', 'b'], 'c')", -1),
        ("array_distinct([1, 1.0, null, null, 'a'])", (1, None, "a")),
        ("array_reverse([1, 2, 3])", (3, 2, 1)),
        ("array_sort(['b', 1, null, 'a'])", (None, 1, "a", "b")),
        ("array_flatten([1, [2, [3, [4]]]], 1)", (1, 2, (3, (4,)))),
        ("array_flatten([1, [2, [3, [4]]]], -1)", (1, 2, 3, 4)),
        ("array_flatten([[1]], 0)", ((1,),)),
        ("array_ifnull([null, 3, 4])", 3),
        ("array_ifnull([null])", None),
        ("array_insert([1, 3], 1, 2)", (1, 2, 3)),
        ("array_insert([1, 3], -1, 2)", (1, 2, 3)),
        ("array_insert([1, 3], 9, 2)", None),
        ("array_put([1, 2], 2, 3)", (1, 2, 3)),
        ("array_remove([1, 2, 1, 3], 1, 3)", (2,)),
        ("array_replace([1, 2, 1], 1, 9)", (9, 2, 9)),
        ("array_replace([1, 2, 1], 1, 9, 1)", (9, 2, 1)),
        ("array_replace([1], 1, null)", (None,)),
        ("array_repeat('a', 2)", ("a", "a")),
        ("array_repeat(null, 2)", (None, None)),
        ("array_range(1, 4)", (1, 2, 3)),
        ("array_range(0, 10, 5)", (0, 5)),
        ("array_range(3, 0, -1)", (3, 2, 1)),
        ("array_range(0, 5, 0)", ()),
        ("range(1, 3)", (1, 2, 3)),
        ("array_slice([1, 2, 3, 4], 1, 3)", (2, 3)),
        ("array_slice([1, 2, 3, 4], -2)", (3, 4)),
        ("array_slice([1, 2], 5, 6)", None),
        ("array_union([1, 2], [2, 3])", (1, 2, 3)),
        ("array_intersect([1, 2, 2, 3], [2, 3, 4])", (2, 3)),
        ("array_except([1, 2, 3], [2])", (1, 3)),
        ("array_symdiff([1, 2], [2, 3])", (1, 3)),
        ("array_star([{'a': 1, 'b': 2}, {'a': 3}])", {"a": (1, 3), "b": (2, None)}),
        ("array_star([1])", MISSING),
        ("array_count([1, null, missing, 'a'])", 2),
        ("array_sum([1, 2, null])", 3),
        ("array_sum([])", None),
        ("array_sum([1, 'a'])", None),
        ("array_avg([1, 2])", 1.5),
        ("array_min([3, 1, 2])", 1),
        ("array_max(['a', 'b'])", "b"),
        ("array_max([1, 'a'])", None),
        ("coll_count([1, 2])", 2),
        ("strict_count([1, null])", 2),
        ("strict_sum([1, null])", None),
        ("strict_sum([1, 2])", 3),
        ("array_var_pop([1, 2, 3])", pytest.approx(2 / 3)),
        ("array_stddev([1, 3])", pytest.approx(2**0.5)),
        ("array_stddev([1])", None),
        ("array_skewness([1, 1, 4])", pytest.approx(0.7071067811865475)),
        ("array_kurtosis([1, 2, 3, 4])", pytest.approx(-1.36)),
        ("array_reverse({{ 1 }})", Bag((1,))),
        ("[1, 2, 3][1]", 2),
        ("[1, 2, 3][-1]", 3),
        ("[1, 2, 3][7]", MISSING),
        ("[1, 2, 3][1:]", (2, 3)),
        ("[1, 2, 3][0:2]", (1, 2)),
        ("[{'a': 1}, {'a': 2}][*].a", (1, 2)),
        ("2 in [1, 2]", True),
        ("3 not in [1, 2]", True),
        ("exists [1]", True),
        ("exists []", False),
    ],
)
def test_value(text: str, expected: Value) -> None:
    """The value; what is no collection gives NULL."""
    assert value(text) == expected


@pytest.mark.parametrize("text", ["range(1, 100000000)", "array_repeat(1, 100000000)", "array_range(0, 1000000000)"])
def test_too_many(text: str) -> None:
    """Arrays that are made from numbers have an end."""
    with pytest.raises(SqlppError, match="more than"):
        value(text)
