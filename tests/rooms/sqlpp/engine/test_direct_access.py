# SPDX-License-Identifier: Apache-2.0
"""Filters passed to Iceberg's library, in its own JSON."""

from __future__ import annotations

import uuid

import pytest

from limnos.rooms.sqlpp.engine.direct_access import expression_of
from limnos.rooms.sqlpp.engine.single_values import NoSingleValue
from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Integer, Value


def _is(path: str, value: Value, by: str = "=") -> Condition:
    return Condition(tuple(path.split(".")), by, value)  # type: ignore[arg-type]


def test_keys_of_one_field_become_an_in_condition() -> None:
    """Several keys become one `in` condition; a single key becomes an equality."""
    assert expression_of([[_is("a.id", 1)], [_is("a.id", Integer(2))]]) == {
        "type": "in",
        "term": "a.id",
        "values": [1, 2],
    }
    assert expression_of([[_is("id", "x")]]) == {"type": "eq", "term": "id", "value": "x"}


def test_keys_of_several_fields_become_or_of_ands() -> None:
    """Several keys become an OR over the AND of each key's conditions."""
    expression = expression_of([[_is("a", 1), _is("b", 2)], [_is("a", 3), _is("b", 4)]])

    one, other = (
        {
            "type": "and",
            "left": {"type": "eq", "term": "a", "value": a},
            "right": {"type": "eq", "term": "b", "value": b},
        }
        for a, b in ((1, 2), (3, 4))
    )
    assert expression == {"type": "or", "left": one, "right": other}


def test_filter_depth_grows_logarithmically_with_keys() -> None:
    """The nesting depth of the filter grows logarithmically with the number of keys."""

    def depth(node: object) -> int:
        return 1 + max(map(depth, node.values()), default=0) if isinstance(node, dict) else 0

    assert depth(expression_of([[_is("a", at), _is("b", at)] for at in range(64)])) <= 10


@pytest.mark.parametrize("by, word", [("<", "lt"), ("<=", "lt-eq"), (">", "gt"), (">=", "gt-eq"), ("=", "eq")])
def test_each_comparison_has_icebergs_operator_name(by: str, word: str) -> None:
    """Each comparison operator has Iceberg's name."""
    assert expression_of([[_is("n", 5, by)]]) == {"type": word, "term": "n", "value": 5}


@pytest.mark.parametrize(
    "value, literal",
    [
        (Date(0), "1970-01-01"),
        (DateTime(1), "1970-01-01T00:00:00.001000+00:00"),
        (-7, -7),
        ("", ""),
    ],
)
def test_values_are_spelled_as_by_iceberg(value: Value, literal: object) -> None:
    """Values are spelled as by Iceberg, alone and in a set."""
    assert expression_of([[_is("k", value)]]) == {"type": "eq", "term": "k", "value": literal}
    assert expression_of([[_is("k", (value, value), "in")]]) == {
        "type": "in",
        "term": "k",
        "values": [literal, literal],
    }


def test_uuid_fields_are_not_compared() -> None:
    """UUIDs are not compared, because the order of file bounds differs from the library's; other fields of the key
    are.
    """
    own = uuid.UUID(int=1)

    assert expression_of([[_is("k", own)]]) is True
    assert expression_of([[_is("k", own)], [_is("k", own)]]) == {"type": "or", "left": True, "right": True}
    assert expression_of([[_is("k", own), _is("n", 2)]]) == {
        "type": "and",
        "left": True,
        "right": {"type": "eq", "term": "n", "value": 2},
    }


@pytest.mark.parametrize("value", [True, 0.5, b"x"])
def test_values_without_json_form_raise_no_single_value(value: Value) -> None:
    """Values without a JSON form raise NoSingleValue."""
    with pytest.raises(NoSingleValue):
        expression_of([[_is("k", value)]])
