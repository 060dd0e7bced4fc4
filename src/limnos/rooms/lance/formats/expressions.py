# SPDX-License-Identifier: Apache-2.0
"""Checks SQL expressions for Lance's library: nesting that crashes it, and tokens that make it hang.

Must not know tables. Pure. Expressions are not parsed; their tokens are counted. The library recurses over a chain of
operators, and a chain of some thousand overflows the stack and crashes the process. AND, OR and commas may join any
number of terms. On placeholders and some string literals a thread of the library panics, and the request would hang
until its timeout.
"""

from __future__ import annotations

import re
from typing import Final

from limnos.model.errors import BadRequest

DEPTH_MAX: Final = 1000
"""The maximum number of tokens of nested chains, about twice the number of operators. The library supports twice
that.
"""
_BRIEF: Final = 60
_TOKEN: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|[\w.]+|\s+|.""", re.DOTALL)
_OPENS, _CLOSES = ("(", "["), (")", "]")
_PREFIXES: Final = frozenset({"N", "B", "R", "BR", "RB"})
"""String prefixes that make the library hang."""
_JOIN: Final = frozenset({"AND", "OR", "NOT", "BETWEEN", "LIKE", "IN", "WHEN", "THEN", "ELSE", "CASE"})


class _ExpressionDepth:
    """Tracks the nesting depth of an expression: the length of the operator chain at each level of open parentheses."""

    def __init__(self) -> None:
        self.depth = 0
        self._lengths = [0]
        self._open_betweens = [0]
        """The open BETWEENs: the next AND belongs to one of them and joins no conditions."""

    def opens(self) -> None:
        self._lengths.append(0)
        self._open_betweens.append(0)

    def closes(self) -> None:
        if len(self._lengths) > 1:
            self.depth -= self._lengths.pop()
            self._open_betweens.pop()

    def ends(self) -> None:
        self.depth -= self._lengths[-1]
        self._lengths[-1] = self._open_betweens[-1] = 0

    def joins(self) -> None:
        if self._open_betweens[-1]:
            self._open_betweens[-1] -= 1
            self.goes_on()
        else:
            self.ends()

    def goes_on(self, *, between: bool = False) -> None:
        self._open_betweens[-1] += between
        self._lengths[-1] += 1
        self.depth += 1


def check_expression(text: str) -> None:
    """Check an expression.

    Raises BadRequest if it is nested too deeply, or has placeholders or string literals with a prefix, such as `N'a'`.
    """
    chains = _ExpressionDepth()
    neighbour = last = ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if _hangs_library(token, beside=neighbour, last=last):
            raise BadRequest(
                f"The expression {text[:_BRIEF]} has {token[:1]} in the place of a value: parameters are not supported,"
                " and strings are written 'text', with no letter or $ before the quote"
            )
        neighbour = token
        if token.isspace():
            continue
        last = token
        _follow(chains, match[0].upper())
        if chains.depth > DEPTH_MAX:
            raise BadRequest(
                f"The expression {text[:_BRIEF]}… is a chain of too many operators (over {DEPTH_MAX // 2} nested):"
                " shorten it; chains of AND, OR or a list may be longer"
            )


def _hangs_library(part: str, *, beside: str, last: str) -> bool:
    """Return whether a token makes the library hang.

    `beside` is the preceding token, `last` the preceding token that is not white space.
    """
    if part in ("?", "$"):
        return part == "?" or not (beside[-1:].isalnum() or beside[-1:] == "_")
    if part == ":":
        return last == "" or last in "(,=<>+-*/%|!" or last.upper() in _JOIN
    return part[:1] in ("'", '"') and beside.upper() in _PREFIXES


def _follow(chains: _ExpressionDepth, word: str) -> None:
    if word in _OPENS:
        chains.opens()
    elif word in _CLOSES:
        chains.closes()
    elif word in (",", "OR"):
        chains.ends()
    elif word == "AND":
        chains.joins()
    else:
        chains.goes_on(between=word == "BETWEEN")
