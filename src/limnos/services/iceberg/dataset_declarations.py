"""What SQL++ made, as its records say it: the statements of the language itself, read again.

May import `sqlpp` and `model`. Must not know the tree of names. Texts are read once and remembered, since they never change under a
record. Names of objects in such a statement are what they were when it was made; where they are now, the tree says.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar, cast

from limnos.model.records import SqlppObjectRecord, TableRecord
from limnos.sqlpp import parse_body, render, tree
from limnos.sqlpp.definitions import statements_of
from limnos.sqlpp.errors import TextPosition

if TYPE_CHECKING:
    from limnos.model.entities import Node
    from limnos.sqlpp.tree import Expression, Statement

S = TypeVar("S", bound="Statement")
NOWHERE = TextPosition(1, 1)


@lru_cache(4096)
def body_of(text: str) -> Expression:
    """The query or expression of a view's text. Raises SqlppError for what somebody else wrote into it."""
    return parse_body(text)


def declarations_of(node: Node, kind: type[S]) -> tuple[S, ...]:
    """The statements of a kind that made an object: of a function one for each number of parameters."""
    return statements_of(cast("SqlppObjectRecord | TableRecord", node.record).statements, kind)


def declaring_statement(node: Node, kind: type[S]) -> S:
    """The statement that made an object."""
    (found,) = declarations_of(node, kind)
    return found


def record_of(*statements: Statement) -> SqlppObjectRecord:
    """The record of what these statements make."""
    return SqlppObjectRecord(None, {}, tuple(map(render, statements)))


FunctionDeclaration = tuple[tree.CreateFunction, str]
"""A function with what its body named when it was made."""


def function_declarations_of(node: Node) -> tuple[FunctionDeclaration, ...]:
    """The functions of a name."""
    statements = declarations_of(node, tree.CreateFunction)
    texts = cast("SqlppObjectRecord", node.record).dependencies
    return tuple(zip(statements, texts or ("",) * len(statements), strict=True))
