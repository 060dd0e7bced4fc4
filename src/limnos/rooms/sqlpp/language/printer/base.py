# SPDX-License-Identifier: Apache-2.0
"""The core of the printer: for each type of node a registered function yields its pieces, and one loop joins them.

Must not recurse: a tree may be as deep as the parser allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

from limnos.names.sqlpp import identifier
from limnos.rooms.sqlpp.language.tree import DottedName, Expression, QueryExpression, SyntaxNode
from limnos.rooms.sqlpp.language.tree.expressions import level_of

Piece = str | SyntaxNode
N = TypeVar("N", bound=SyntaxNode)

_STRING_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029]')
_STRING_SHORT = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_PIECES: dict[type[SyntaxNode], Callable[[SyntaxNode], Iterable[Piece]]] = {}


def prints(kind: type[N]) -> Callable[[Callable[[N], Iterable[Piece]]], Callable[[N], Iterable[Piece]]]:
    """Register the function that yields the pieces (texts and child nodes) of a type of node."""

    def register(pieces: Callable[[N], Iterable[Piece]]) -> Callable[[N], Iterable[Piece]]:
        _PIECES[kind] = cast("Callable[[SyntaxNode], Iterable[Piece]]", pieces)
        return pieces

    return register


def render(node: SyntaxNode) -> str:
    """Render a tree as text, on one line. Parsing the text gives the same tree, except for positions."""
    waiting: list[Piece] = [node]
    done: list[str] = []
    while waiting:
        piece = waiting.pop()
        if isinstance(piece, str):
            done.append(piece)
        else:
            waiting.extend(reversed(list(_PIECES[type(piece)](piece))))
    return "".join(done)


def printed_kinds() -> frozenset[type[SyntaxNode]]:
    """Return the types of nodes for which a print function is registered."""
    return frozenset(_PIECES)


def path(parts: Iterable[str]) -> str:
    """Join identifiers with dots, each quoted where needed."""
    return ".".join(map(identifier, parts))


def string(value: str) -> str:
    """Return a string literal in double quotes, with escapes."""
    return f'"{_STRING_ESCAPED.sub(_escape_match, value)}"'


def _escape_match(match: re.Match[str]) -> str:
    return _STRING_SHORT.get(match[0]) or f"\\u{ord(match[0]):04x}"


def operand(node: Expression, level: int = 0) -> Iterator[Piece]:
    """Yield an expression as an operand: in parentheses if it is a query, or if its precedence is below `level`."""
    if isinstance(node, QueryExpression) or level_of(node) < level:
        yield "("
        yield node
        yield ")"
    else:
        yield node


def list_pieces(nodes: Iterable[SyntaxNode]) -> Iterator[Piece]:
    """Yield nodes separated by commas; expressions are printed as operands."""
    for number, node in enumerate(nodes):
        if number:
            yield ", "
        if isinstance(node, Expression):
            yield from operand(node)
        else:
            yield node


def dotted_name(name: DottedName) -> str:
    """Print a dotted name, quoted where needed."""
    return path(name.parts)
