"""The parser of SQL++: recursive descent by hand, one area of the grammar a module.

May import the rest of this room but the evaluator. Must not know what exists: every name stays as it was written. Time grows
with the length of the text, depth is bounded (`cursor`), and the only exception that comes out is SqlppError.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from limnos.sqlpp.errors import TextPosition
from limnos.sqlpp.lexer import TokenizedText
from limnos.sqlpp.parser.cursor import DEPTH_MAX
from limnos.sqlpp.parser.statements import StatementParser
from limnos.sqlpp.tokens import END, Hint
from limnos.sqlpp.tree import Expression, Statement

__all__ = ["DEPTH_MAX", "ParsedStatement", "StatementSpan", "find_spans", "parse", "parse_body"]


class ParsedStatement(Struct, frozen=True):
    """A statement, its text without the semicolon, and the hints in it."""

    statement: Statement
    text: str
    hints: tuple[Hint, ...]


class StatementSpan(NamedTuple):
    """Where a statement stands in a text: its kind, its offsets, its place, and how many `?` stand before it."""

    kind: str
    """The name of the statement's class."""
    start: int
    end: int
    place: TextPosition
    parameters: int


def parse(text: str, origin: StatementSpan | None = None) -> tuple[ParsedStatement, ...]:
    """The statements of a text, in order. The last needs no semicolon; a text may have none.

    With an `origin` the text is that part of a longer one, and places and `?` are counted as there. Raises SqlppError: ASX1001 with the
    place of what does not belong, ASX1079 for what is too long or nested too deep.
    """
    return tuple(parsed for parsed, _ in _statements(text, origin))


def find_spans(text: str) -> tuple[StatementSpan, ...]:
    """Where the statements of a text stand. Raises SqlppError as `parse` does: each statement is read whole."""
    return tuple(span for _, span in _statements(text, None))


def _statements(text: str, origin: StatementSpan | None) -> Iterator[tuple[ParsedStatement, StatementSpan]]:
    parser = StatementParser(TokenizedText(text) if origin is None else TokenizedText(text, origin.place))
    parser.parameters = 0 if origin is None else origin.parameters
    hints = iter(parser.lexed.hints)
    hint = next(hints, None)
    while parser.kind != END:
        if parser.accept(";"):
            continue
        begin, parameters = parser.token, parser.parameters
        statement = parser.statement()
        if parser.kind not in (";", END):
            raise parser.error()
        last = parser.tokens[parser.index - 1]
        own = []
        while hint is not None and hint.place < parser.at:
            own.append(hint)
            hint = next(hints, None)
        span = StatementSpan(type(statement).__name__, begin.start, last.end, begin.place, parameters)
        yield ParsedStatement(statement, text[begin.start : last.end], tuple(own)), span


def parse_body(text: str) -> Expression:
    """One query or expression and nothing after it: what a function or a view holds. Raises SqlppError as parse does."""
    parser = StatementParser(TokenizedText(text))
    body = parser.body()
    if parser.kind != END:
        raise parser.error()
    return body
