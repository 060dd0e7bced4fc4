"""Traversals of plans: all nodes of a plan, and a copy of a node with other nodes below it.

May import nodes of plans. Must not know kinds of nodes by name. Only plain tuples are searched for nodes: the value of
a constant may be a date or another value that is a named tuple, which must stay as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import structs

from limnos.sqlpp.plan.expressions import PlanNode


def walk(node: PlanNode) -> list[PlanNode]:
    """Return a node and all nodes below it."""
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
    """Return a node in which each node directly below it is replaced by what `change` returns for it.

    Args:
        node: The node, which stays as it is.
        change: Returns the new child for a child. It is called in the order of the fields.
        finished: New values of fields for which `change` is not called.
    """
    fields = dict(finished or {})
    for name in node.__struct_fields__[1:]:
        content = getattr(node, name)
        if name not in fields and (isinstance(content, PlanNode) or (type(content) is tuple and content)):
            fields[name] = _replaced(content, change)
    return structs.replace(node, **fields)


def _replaced(content: object, change: Callable[[PlanNode], PlanNode]) -> object:
    if isinstance(content, PlanNode):
        return change(content)
    return tuple([_replaced(item, change) for item in content]) if type(content) is tuple else content
