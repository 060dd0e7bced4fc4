# SPDX-License-Identifier: Apache-2.0
"""Traversals of plans find each node, and copies differ only in the nodes below."""

from __future__ import annotations

from msgspec import structs

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.plan.traversal import replace_children, walk
from limnos.rooms.sqlpp.language.tokens import TextPosition
from limnos.rooms.sqlpp.language.values.model import Date, Value

AT = TextPosition(1, 1)
ONE, TWO, DAY = plan.Constant(AT, 1), plan.Constant(AT, 2), plan.Constant(AT, Date(1))


def as_three(node: plan.PlanNode) -> plan.PlanNode:
    """Return the same constant with the value 3."""
    return structs.replace(node, value=3)


def test_walk_finds_nodes_in_nested_tuples() -> None:
    """Nodes in nested tuples, such as the pairs of an object, are found."""
    pairs = plan.ObjectOf(AT, ((ONE, TWO), (DAY, plan.ArrayOf(AT, (ONE,)))))
    assert sorted(type(node).__name__ for node in walk(pairs)) == ["ArrayOf", *["Constant"] * 4, "ObjectOf"]


def test_children_in_nested_tuples_are_replaced() -> None:
    """The structure of the tuples is kept, and the original plan is unchanged."""
    three = plan.Constant(AT, 3)
    pairs = plan.ObjectOf(AT, ((ONE, TWO), (DAY, ONE)))
    assert replace_children(pairs, as_three) == plan.ObjectOf(AT, ((three, three), (three, three)))
    assert pairs.pairs[0] == (ONE, TWO)


def test_only_direct_children_are_replaced() -> None:
    """Only direct children are replaced; the replacing function handles deeper nodes."""
    seen: list[plan.PlanNode] = []

    def change(node: plan.PlanNode) -> plan.PlanNode:
        seen.append(node)
        return node

    inner = plan.ArrayOf(AT, (ONE, TWO))
    assert replace_children(plan.ArrayOf(AT, (inner, DAY)), change) == plan.ArrayOf(AT, (inner, DAY))
    assert seen == [inner, DAY]


def test_date_constants_are_not_turned_into_arrays() -> None:
    """A date is a named tuple: as a plain tuple it would be an array."""
    for value in (Date(1), (Date(1), Date(2)), ()):
        copy = replace_children(plan.Constant(AT, value), as_three)
        assert isinstance(copy, plan.Constant)
        assert copy.value == value
        assert type(copy.value) is type(value)


def test_deeply_nested_constants_are_returned_without_recursion() -> None:
    """A constant is returned as it is, however deeply its value is nested."""
    value: Value = ()
    for _ in range(10_000):
        value = (value,)
    constant = plan.Constant(AT, value)
    assert replace_children(constant, as_three) is constant


def test_finished_fields_are_not_replaced() -> None:
    """The function is not called for fields that are passed as finished."""
    changed = replace_children(plan.ArrayOf(AT, (ONE, TWO)), as_three, finished={"items": (DAY,)})
    assert changed == plan.ArrayOf(AT, (DAY,))
