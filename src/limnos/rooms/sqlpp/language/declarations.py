# SPDX-License-Identifier: Apache-2.0
"""Dataset declarations: parses the SQL++ statements that are stored in the records of datasets, views and functions.

Must not know the tree of names. Each text is parsed once and cached, since a stored text never changes. A stored
statement contains the names that objects had at its creation; the tree has their current names.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar, cast

from limnos.model.entities import Node
from limnos.model.records import SqlppObjectRecord, TableRecord
from limnos.rooms.sqlpp.language import parse_body, render, tree
from limnos.rooms.sqlpp.language.definitions import statements_of
from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.language.tree import Expression, Statement

S = TypeVar("S", bound="Statement")
NOWHERE = TextPosition(1, 1)


@lru_cache(4096)
def body_of(text: str) -> Expression:
    """Parse a view's text as a query or expression. Raises SqlppError for a text that is not SQL++."""
    return parse_body(text)


def declarations_of(node: Node, kind: type[S]) -> tuple[S, ...]:
    """Return the statements of a kind that created an object; a function has one for each arity."""
    return statements_of(cast("SqlppObjectRecord | TableRecord", node.record).statements, kind)


def declaring_statement(node: Node, kind: type[S]) -> S:
    """Return the only statement of a kind that created an object."""
    (s,) = declarations_of(node, kind)
    return s


def record_of(*statements: Statement) -> SqlppObjectRecord:
    """Return the record of an object that stores these statements."""
    return SqlppObjectRecord(comment=None, properties={}, statements=tuple(map(render, statements)))


FunctionDeclaration = tuple[tree.CreateFunction, str]
"""A function's statement, with the objects that its body named at its creation."""


def function_declarations_of(node: Node) -> tuple[FunctionDeclaration, ...]:
    """Return the declarations of all functions with a name."""
    statements = declarations_of(node, tree.CreateFunction)
    texts = cast("SqlppObjectRecord", node.record).dependencies
    return tuple(zip(statements, texts or ("",) * len(statements), strict=True))
