"""Base classes of the syntax tree's nodes, and names.

May import `errors` for the position. Must not know the grammar or resolve names, which the binder does. Nodes are
frozen and contain only nodes, tuples of nodes, texts, numbers and flags. So no cycle is possible, and the garbage
collector skips them. To compare trees use `outline` (in `tree_walk`), which ignores positions and does not recurse.
"""

from __future__ import annotations

from msgspec import Struct

from limnos.sqlpp.errors import TextPosition


class SyntaxNode(Struct, frozen=True, gc=False):
    """A part of a statement, and its position: for an operation that of its operator, otherwise that of the first
    token.
    """

    at: TextPosition


class Expression(SyntaxNode, frozen=True):
    """A node that has a value."""


class TypeExpression(SyntaxNode, frozen=True):
    """A type in a declaration."""


class Statement(SyntaxNode, frozen=True):
    """Base class of all statements in the syntax tree."""


class DottedName(SyntaxNode, frozen=True):
    """A dotted name: the last part is the object's, those before it the dataverse's.

    Without them the name is in the active dataverse.
    """

    parts: tuple[str, ...]

    @property
    def dataverse(self) -> tuple[str, ...]:
        """The parts of the dataverse; empty when the name has one part."""
        return self.parts[:-1]

    @property
    def last(self) -> str:
        """The object's name."""
        return self.parts[-1]
