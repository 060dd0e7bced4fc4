# SPDX-License-Identifier: Apache-2.0
"""Functions of objects, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("object_names({'a': 1, 'b': 2})", ("a", "b")),
        ("object_values({'a': 1, 'b': 2})", (1, 2)),
        ("object_pairs({'a': 1})", ({"name": "a", "value": 1},)),
        ("object_length({'a': 1, 'b': missing})", 1),
        ("object_length(3)", None),
        ("object_add({'a': 1}, 'b', 2)", {"a": 1, "b": 2}),
        ("object_add({'a': 1}, 'a', 2)", {"a": 1}),
        ("object_add({'a': 1}, 'b', null)", {"a": 1, "b": None}),
        ("object_add({'a': 1}, 'b', missing)", {"a": 1}),
        ("object_add(null, 'b', 1)", None),
        ("object_add(missing, 'b', 1)", MISSING),
        ("object_put({'a': 1}, 'a', 2)", {"a": 2}),
        ("object_put({'a': 1}, 'a', missing)", {}),
        ("object_remove({'a': 1, 'b': 2}, 'a')", {"b": 2}),
        ("object_remove_fields({'a': 1, 'b': 2}, ['a', 'x'])", {"b": 2}),
        ("object_rename({'a': 1, 'b': 2}, 'a', 'c')", {"c": 1, "b": 2}),
        ("object_rename({'a': 1, 'b': 2}, 'a', 'b')", None),
        ("object_rename({'a': 1, 'b': 2}, 'c', 'b')", {"a": 1, "b": 2}),
        (
            "[object_concat(), object_concat([]), object_concat({'a': 1}), object_concat(1)]",
            (None, None, {"a": 1}, None),
        ),
        ("object_concat([{'a': 1, 'b': 2}, {'a': 3}])", {"a": 3, "b": 2}),
        ("[object_concat([null]), object_concat([missing]) is missing]", (None, True)),
        ("object_concat_strict([{'a': 1}, {'a': 3}])", {"a": 3}),
        ("object_transform({'x': {'a': 3}}, {'x': {'a': 1, 'b': 2}, 'y': 1})", {"x": {"a": 3, "b": 2}, "y": 1}),
        ("`closed-object-constructor`('a', 1, 'b', missing)", {"a": 1}),
        ("open_object_constructor('a', 1, 2, 3)", None),
        ("field_access_by_index({'a': 1, 'b': 2}, 1)", 2),
        ("field_access_by_index({'a': 1}, 1)", MISSING),
        ("field_access_by_index(1, 0)", None),
        ("get_object_field_value({'a': 1}, 'a')", 1),
        ("get_object_field_value({'a': 1}, 'b')", MISSING),
        ("get_object_field_value({'a': 1}, 1)", None),
        ("pairs({'a': {'b': [1, 2]}, 'c': 4})", (("a", {"b": (1, 2)}), ("b", (1, 2)), ("b", 1), ("b", 2), ("c", 4))),
        ("[pairs([1, {'a': 3}]), pairs({}), pairs('x'), pairs(missing) is missing]", ((("a", 3),), (), None, True)),
        ("object_replace({'a': 1, 'b': 2}, 1, 9)", {"a": 9, "b": 2}),
        ("object_concat({'a': 1}, {'a': 2, 'b': 3})", {"a": 2, "b": 3}),
        ("object_names(object_concat({'a': 1, 'c': 0}, {'b': 3, 'a': 2}))", ("b", "a", "c")),
        ("object_concat({'a': 1}, 2)", None),
        ("object_merge({'a': {'x': 1}}, {'a': {'x': 2, 'y': 3}, 'b': 4})", {"a": {"x": 1, "y": 3}, "b": 4}),
        ("object_unwrap({'a': 5})", 5),
        ("object_unwrap({'a': 5, 'b': 6})", None),
        ("object_add_fields({'a': 1}, [{'field-name': 'b', 'field-value': 2}])", {"a": 1, "b": 2}),
        ("object_add_fields({'a': 1}, [{'name': 'b', 'value': 2}])", None),
        ("{'a': 1, 'b': missing, 'c': null}", {"a": 1, "c": None}),
        ("{'a': {'b': [10, 20]}}.a.b[1]", 20),
        ("{'a': 1}.b", MISSING),
        ("(null).b", None),
        ("(5).b", MISSING),
    ],
)
def test_object_functions_return_expected_values(text: str, expected: Value) -> None:
    """The expected value; a value that is not an object gives NULL."""
    assert value(text) == expected


def test_object_merge_does_not_change_its_arguments() -> None:
    """A merge does not change its arguments."""
    text = "FROM [{'o': {'x': {'y': 1}}}] AS r SELECT VALUE [object_merge(r.o, {'x': {'z': 2}}), r.o]"

    assert value(text) == ({"x": {"y": 1, "z": 2}}, {"x": {"y": 1}})
