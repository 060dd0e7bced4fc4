# SPDX-License-Identifier: Apache-2.0
"""The parser of SQL++: hand-written recursive descent, one module for each area of the grammar.

Must not know existing objects: names stay unresolved. It takes linear time, the depth is limited (`cursor`), and the
only exception it raises is SqlppError.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.language.lexer import TokenizedText
from limnos.rooms.sqlpp.language.parser.cursor import DEPTH_MAX
from limnos.rooms.sqlpp.language.parser.statements import StatementParser
from limnos.rooms.sqlpp.language.tokens import END, Hint
from limnos.rooms.sqlpp.language.tree import Expression, Statement

__all__ = ["DEPTH_MAX", "ParsedStatement", "StatementSpan", "find_spans", "parse", "parse_body"]


class ParsedStatement(Struct, frozen=True):
    """A statement, its text without the semicolon, and the hints in it."""

    statement: Statement
    text: str
    hints: tuple[Hint, ...]


class StatementSpan(NamedTuple):
    """The extent of a statement in a text: its kind, offsets and position, and the count of `?` before it."""

    kind: str
    """The name of the statement's class."""
    start: int
    end: int
    place: TextPosition
    parameters: int


def parse(text: str, origin: StatementSpan | None = None) -> tuple[ParsedStatement, ...]:
    """Parse the statements of a text, in order. The last needs no semicolon; a text may have none.

    Args:
        text: The statements.
        origin: The span of the text in a longer text, from which positions and `?` are counted.

    Raises:
        SqlppError: ASX1001 with the position of an unexpected token, ASX1079 for a text that is too long or nested too
            deeply.
    """
    return tuple(parsed for parsed, _ in _statements(text, origin))


def find_spans(text: str) -> tuple[StatementSpan, ...]:
    """Return the spans of the statements of a text. Raises SqlppError as `parse` does."""
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
        span = StatementSpan(
            kind=type(statement).__name__, start=begin.start, end=last.end, place=begin.place, parameters=parameters
        )
        yield ParsedStatement(statement, text[begin.start : last.end], tuple(own)), span


def parse_body(text: str) -> Expression:
    """Parse the body of a function or view: one query or expression, up to the end of the text.

    Raises SqlppError as `parse` does.
    """
    parser = StatementParser(TokenizedText(text))
    body = parser.body()
    if parser.kind != END:
        raise parser.error()
    return body
