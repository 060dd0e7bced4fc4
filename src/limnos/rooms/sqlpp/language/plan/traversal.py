# SPDX-License-Identifier: Apache-2.0
"""Traversals of plans: all nodes of a plan, and a copy of a node with other nodes below it.

Must not know kinds of nodes by name, except constants: copies do not look into their values, which may be deeply nested
arrays, or named tuples such as dates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import structs

from limnos.rooms.sqlpp.language.plan.expressions import Constant, PlanNode


def walk(node: PlanNode) -> list[PlanNode]:
    """Return a node and all its descendants, each node before its descendants."""
    waiting: list[object] = [node]
    nodes: list[PlanNode] = []
    while waiting:
        item = waiting.pop()
        if isinstance(item, PlanNode):
            nodes.append(item)
            waiting.extend([getattr(item, name) for name in item.__struct_fields__[1:]])
        elif type(item) is tuple:
            waiting.extend(item)
    return nodes


def replace_children(
    node: PlanNode, change: Callable[[PlanNode], PlanNode], *, finished: Mapping[str, object] | None = None
) -> PlanNode:
    """Return a copy of a node with each child replaced by the result of `change`.

    Args:
        node: The node, which is not changed.
        change: Returns the replacement of a child; it is called in the order of the fields.
        finished: New values of fields for which `change` is not called.
    """
    if isinstance(node, Constant):
        return node
    fields = dict(finished or {})
    for name in node.__struct_fields__[1:]:
        content = getattr(node, name)
        if name in fields:
            continue
        if isinstance(content, PlanNode):
            fields[name] = change(content)
        elif type(content) is tuple and content:
            fields[name] = _replace_items(content, change)
    return structs.replace(node, **fields)


def _replace_items(items: tuple[object, ...], change: Callable[[PlanNode], PlanNode]) -> tuple[object, ...]:
    return tuple(
        [
            change(item)
            if isinstance(item, PlanNode)
            else _replace_items(item, change)
            if type(item) is tuple
            else item
            for item in items
        ]
    )
