# SPDX-License-Identifier: Apache-2.0
"""Traversals of a tree without recursion.

Must not know kinds of nodes by name, except calls of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from limnos.rooms.sqlpp.language.tree.base import SyntaxNode
from limnos.rooms.sqlpp.language.tree.expressions import Call


def descendants(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """Yield the node and all nodes below it, in the order of the text."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(children(node))))


def children(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """Yield the direct children of a node."""
    for name in node.__struct_fields__:
        value = getattr(node, name)
        if isinstance(value, SyntaxNode):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, SyntaxNode))


def outline(
    node: SyntaxNode, *, function_name: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda parts: parts
) -> list[object]:
    """Return the tree as a flat list without positions: two trees are equal if their outlines are.

    `function_name` normalizes the name of a called function, as parts.
    """
    waiting: list[object] = [node]
    entries: list[object] = []
    while waiting:
        item = waiting.pop()
        if isinstance(item, SyntaxNode):
            entries.append(type(item).__name__)
            waiting.extend(getattr(item, name) for name in item.__struct_fields__[:0:-1])
            if isinstance(item, Call):
                waiting[-1] = function_name(item.function.parts)
        elif type(item) is tuple:
            entries.append(len(item))
            waiting.extend(reversed(item))
        else:
            entries.append((type(item).__name__, item))
    return entries
