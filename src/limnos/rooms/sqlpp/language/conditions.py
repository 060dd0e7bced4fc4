# SPDX-License-Identifier: Apache-2.0
"""Conditions on the objects of one source: comparisons of a path with a constant.

Must not know engines or the use of conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.values import arithmetic
from limnos.rooms.sqlpp.language.values.model import MISSING, Value, is_unknown

Operator: TypeAlias = Literal["=", "<", "<=", ">", ">=", "in"]

_TURNED: Mapping[str, Operator] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Condition(Struct, frozen=True):
    """A comparison of the value at a path with a value; for `in`, with a tuple of values.

    The values are never NULL or MISSING.
    """

    path: tuple[str, ...]
    operator: Operator
    value: Value


def conditions_of(node: plan.Expression | None, slot: int) -> tuple[Condition, ...] | None:
    """Return the conditions whose conjunction is equivalent to an expression; None if the expression has other
    parts.
    """
    if node is None:
        return ()
    if isinstance(node, plan.Operate) and node.operators[0] == "and":
        conditions: tuple[Condition, ...] = ()
        for operand in node.operands:
            more = conditions_of(operand, slot)
            if more is None:
                return None
            conditions += more
        return conditions
    result = tuple(necessary_conditions(node, slot))
    requested = 2 if isinstance(node, plan.Between) else 1
    return result if len(result) == requested else None


def necessary_conditions(node: plan.Expression, slot: int) -> Iterator[Condition]:
    """Yield conditions that every object meets for which an expression is true."""
    if isinstance(node, plan.Between) and not node.negated:
        yield from _comparison_conditions(">=", node.value, other=node.low, slot=slot)
        yield from _comparison_conditions("<=", node.value, other=node.high, slot=slot)
    if not isinstance(node, plan.Operate):
        return
    first = node.operators[0]
    if first == "and":
        for operand in node.operands:
            yield from necessary_conditions(operand, slot)
    elif len(node.operands) == 2:
        left, right = node.operands
        if first == "in":
            yield from _membership_conditions(left, right, slot=slot)
        elif first in _TURNED:
            yield from _comparison_conditions(first, left, other=right, slot=slot)
            yield from _comparison_conditions(_TURNED[first], right, other=left, slot=slot)


def _comparison_conditions(
    operator: str, node: plan.Expression, *, other: plan.Expression, slot: int
) -> Iterator[Condition]:
    path = path_of(node, slot)
    if path is None:
        return
    value = constant_value(other)
    if not is_unknown(value):
        yield Condition(path, operator, value)  # type: ignore[arg-type]


def _membership_conditions(node: plan.Expression, items: plan.Expression, *, slot: int) -> Iterator[Condition]:
    path, value = path_of(node, slot), constant_value(items)
    if path is not None and type(value) is tuple and not any(is_unknown(item) for item in value):
        yield Condition(path, "in", value)


def path_of(node: plan.Expression, slot: int) -> tuple[str, ...] | None:
    """Return the field names of a path that begins at a variable; None if the expression is not such a path."""
    names: list[str] = []
    while isinstance(node, plan.FieldOf):
        names.append(node.name)
        node = node.base
    return tuple(reversed(names)) if names and isinstance(node, plan.Local) and node.slot == slot else None


def constant_value(node: plan.Expression) -> Value:
    """Evaluate a constant expression; MISSING if it is not constant, is not deterministic, or its evaluation fails."""
    if isinstance(node, plan.Constant):
        return node.value
    if isinstance(node, plan.ArrayOf):
        items = tuple(map(constant_value, node.items))
        return MISSING if MISSING in items else items
    try:
        if isinstance(node, plan.SignOf) and node.minus:
            return arithmetic.negate(constant_value(node.operand))
        if isinstance(node, plan.FunctionCall) and node.function.is_deterministic and node.arguments:
            arguments = tuple(map(constant_value, node.arguments))
            return MISSING if any(map(is_unknown, arguments)) else node.function.run(*arguments)
    except SqlppError:
        pass
    return MISSING
