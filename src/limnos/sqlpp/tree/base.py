"""What every node of the syntax tree is, and names.

May import `errors` for the place. Must not know the grammar, nor what a name stands for: that is the binder's. Nodes are
frozen and hold nothing but nodes, tuples of nodes, texts, numbers and flags, so no cycle is possible and the collector need not
look at them. Two trees are compared by their `outline`
(`walk`), which leaves places out and does not recurse.
"""

from __future__ import annotations

from msgspec import Struct

from limnos.sqlpp.errors import TextPosition


class SyntaxNode(Struct, frozen=True, gc=False):
    """A part of a statement, and where it is: for an operation its operator, for all else the first token."""

    at: TextPosition


class Expression(SyntaxNode, frozen=True):
    """What has a value."""


class TypeExpression(SyntaxNode, frozen=True):
    """A type, as a declaration spells it."""


class Statement(SyntaxNode, frozen=True):
    """What ends with a semicolon."""


class DottedName(SyntaxNode, frozen=True):
    """A name with dots: the last part is the object's, those before it are its dataverse's; none means the active one."""

    parts: tuple[str, ...]

    @property
    def dataverse(self) -> tuple[str, ...]:
        """The parts of the dataverse; empty when the name has one part."""
        return self.parts[:-1]

    @property
    def last(self) -> str:
        """The object's own name."""
        return self.parts[-1]
