"""The parser of SQL++: recursive descent by hand, one area of the grammar a module.

May import the rest of this room but the evaluator. Must not know what exists: every name stays as it was written. Time grows
with the length of the text, depth is bounded (`cursor`), and the only exception that comes out is SqlppError.
"""

from __future__ import annotations

from msgspec import Struct

from limnos.sqlpp.lexer import Lexed
from limnos.sqlpp.parser.cursor import DEPTH_MAX
from limnos.sqlpp.parser.statements import StatementParser
from limnos.sqlpp.tokens import END, Hint
from limnos.sqlpp.tree import Expression, Statement

__all__ = ["DEPTH_MAX", "Parsed", "parse", "parse_body"]


class Parsed(Struct, frozen=True):
    """A statement, its text without the semicolon, and the hints in it."""

    statement: Statement
    text: str
    hints: tuple[Hint, ...]


def parse(text: str) -> tuple[Parsed, ...]:
    """The statements of a text, in order. The last needs no semicolon; a text may have none.

    Raises SqlppError: ASX1001 with the place of what does not belong, ASX1079 for what is too long or nested too deep.
    """
    parser = StatementParser(Lexed(text))
    hints = iter(parser.lexed.hints)
    hint = next(hints, None)
    parsed = []
    while parser.kind != END:
        if parser.accept(";"):
            continue
        begin = parser.token
        statement = parser.statement()
        if parser.kind not in (";", END):
            raise parser.error()
        last = parser.tokens[parser.index - 1]
        own = []
        while hint is not None and hint.place < parser.at:
            own.append(hint)
            hint = next(hints, None)
        parsed.append(Parsed(statement, text[begin.start : last.end], tuple(own)))
    return tuple(parsed)


def parse_body(text: str) -> Expression:
    """One query or expression and nothing after it: what a function or a view holds. Raises SqlppError as parse does."""
    parser = StatementParser(Lexed(text))
    body = parser.body()
    if parser.kind != END:
        raise parser.error()
    return body
