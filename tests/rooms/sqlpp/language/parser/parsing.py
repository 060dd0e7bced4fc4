# SPDX-License-Identifier: Apache-2.0
"""Helpers of the parser's tests: parsing a text, comparing trees, catching errors."""

from __future__ import annotations

from typing import TypeVar

import pytest

from limnos.rooms.sqlpp.language import SqlppError, outline, parse, parse_body
from limnos.rooms.sqlpp.language.tree import Expression, Statement

S = TypeVar("S", bound=Statement)


def statement(text: str) -> Statement:
    """Return the only statement of a text."""
    (parsed,) = parse(text)
    return parsed.statement


def read(kind: type[S], text: str) -> S:
    """Return the only statement of a text, which must be of the given kind."""
    parsed_statement = statement(text)
    assert isinstance(parsed_statement, kind)
    return parsed_statement


def same(one: str, other: str) -> bool:
    """Return whether two statements have the same tree."""
    return outline(statement(one)) == outline(statement(other))


def same_body(one: str, other: str) -> bool:
    """Return whether two expressions have the same tree."""
    return outline(parse_body(one)) == outline(parse_body(other))


def shape(node: Expression) -> list[object]:
    """Return a tree without its positions."""
    return outline(node)


def refusal(text: str) -> SqlppError:
    """Return the error of a text."""
    with pytest.raises(SqlppError) as caught:
        parse(text)
    return caught.value


def encountered(text: str, what: str, column: int, *, line: int = 1) -> str:
    """Return the message for an unexpected token."""
    source_line = text.split("\n")[line - 1]
    return f"ASX1001: Syntax error: In line {line} >>{source_line}<< Encountered {what} at column {column}."
