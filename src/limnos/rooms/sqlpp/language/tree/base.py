# SPDX-License-Identifier: Apache-2.0
"""Base classes of the syntax tree's nodes, and qualified names.

Must not know the grammar or resolve names, which the binder does. Nodes are frozen and contain only nodes, tuples of
nodes, texts, numbers and flags. So no cycle is possible, and the garbage collector skips them. To compare trees use
`outline` (in `tree_walk`), which ignores positions and does not recurse.
"""

from __future__ import annotations

from msgspec import Struct

from limnos.rooms.sqlpp.language.errors import TextPosition


class SyntaxNode(Struct, frozen=True, gc=False):
    """Base class of all nodes. The position is that of the operator of an operation, otherwise that of the first
    token.
    """

    at: TextPosition


class Expression(SyntaxNode, frozen=True):
    """Base class of the nodes that have a value."""


class TypeExpression(SyntaxNode, frozen=True):
    """Base class of the types in declarations."""


class Statement(SyntaxNode, frozen=True):
    """Base class of all statements in the syntax tree."""


class DottedName(SyntaxNode, frozen=True):
    """A possibly qualified name: the last part names the object, the parts before it name the dataverse.

    Without a dataverse the name is in the active dataverse.
    """

    parts: tuple[str, ...]

    @property
    def dataverse(self) -> tuple[str, ...]:
        """The parts of the dataverse's name; empty for an unqualified name."""
        return self.parts[:-1]

    @property
    def last(self) -> str:
        """The object's name."""
        return self.parts[-1]
