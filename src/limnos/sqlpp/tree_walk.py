"""Ways through a tree that do not recurse.

May import the tree's base. Must not know a kind of node by name.
"""

from __future__ import annotations

from collections.abc import Iterator

from limnos.sqlpp.tree.base import SyntaxNode


def descendants(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """The node and all below it, in the order in which they were written."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(children(node))))


def children(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """The nodes right below one."""
    for name in node.__struct_fields__:
        value = getattr(node, name)
        if isinstance(value, SyntaxNode):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, SyntaxNode))


def outline(node: SyntaxNode) -> list[object]:
    """The tree without its places, flat: two trees say the same if their outlines are equal."""
    waiting: list[object] = [node]
    told: list[object] = []
    while waiting:
        item = waiting.pop()
        if isinstance(item, SyntaxNode):
            told.append(type(item).__name__)
            waiting.extend(getattr(item, name) for name in item.__struct_fields__[:0:-1])
        elif type(item) is tuple:
            told.append(len(item))
            waiting.extend(reversed(item))
        else:
            told.append((type(item).__name__, item))
    return told
