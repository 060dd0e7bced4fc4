# SPDX-License-Identifier: Apache-2.0
"""Resolution of GROUP BY keys in the expressions after the grouping, and the function `grouping`.

Must not know rows.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.binder.scope import GroupBinding, VariableScope
from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.functions import find, normalize_name
from limnos.rooms.sqlpp.language.tree_walk import outline


def key_outline(node: tree.SyntaxNode) -> list[object]:
    """Return the outline of a key for comparison, with aliases of built-in functions replaced by one name."""
    return outline(node, function_name=_function_name)


def _function_name(parts: tuple[str, ...]) -> tuple[str, ...]:
    return (normalize_name(parts[0]),) if len(parts) == 1 and find(parts[0]) is not None else parts


def find_key(group: GroupBinding, node: tree.Expression) -> tuple[int, str] | None:
    """Return the slot and name of the GROUP BY key that equals an expression; None if there is none."""
    constants = (tree.Integer, tree.String, tree.Null, tree.MissingLiteral, tree.Boolean, tree.Decimal)
    if isinstance(node, constants) or not group.keys:
        return None
    shape = key_outline(node)
    return next(((slot, name) for key, slot, name in group.keys if key == shape), None)


def grouping_bits(
    node: tree.Call, group: GroupBinding, *, bind: Callable[[tree.Expression, VariableScope], plan.Expression]
) -> plan.Expression:
    """Bind `grouping(key, …)`: a bit mask, the last key in the lowest bit; a bit is set if the grouping set lacks the
    key.

    Args:
        node: The call.
        group: The group.
        bind: Binds an expression in a scope.

    Raises:
        SqlppError: An argument is not a key of GROUP BY.
    """
    slots = [slot for _, slot, _ in group.keys]
    keys = VariableScope(None, {name: slot for _, slot, name in group.keys}, fields_of=())
    positions = []
    for argument in node.arguments:
        bound = bind(argument, keys)
        if not isinstance(bound, plan.Local) or bound.slot not in slots:
            raise compilation("grouping takes keys of GROUP BY", node.at)
        positions.append(slots.index(bound.slot))
    if not positions or group.number is None:
        raise compilation("grouping takes keys of GROUP BY", node.at)
    if len(group.sets) == 1:
        return plan.Constant(node.at, 0)
    branches = []
    for number, chosen in enumerate(group.sets):
        bits = 0
        for place in positions:
            bits = bits * 2 + (place not in chosen)
        branches.append((plan.Constant(node.at, number), plan.Constant(node.at, bits)))
    return plan.CaseOf(node.at, plan.Local(node.at, group.number, "grouping"), tuple(branches), None)
