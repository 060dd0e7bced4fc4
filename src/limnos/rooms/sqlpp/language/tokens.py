# SPDX-License-Identifier: Apache-2.0
"""Tokens of SQL++: their kinds, the reserved words, and the soft keywords.

Must not know the lexer or the grammar. The kind of a reserved word is the word in upper case, the kind of a punctuation
token its text; other kinds, such as string literals, have a constant.
"""

from __future__ import annotations

from msgspec import Struct

from limnos.names.sqlpp import SOFT
from limnos.rooms.sqlpp.language.errors import TextPosition, escape_token, shorten

IDENTIFIER = "IDENTIFIER"
QUOTED = "QUOTED_STRING"
"""An identifier in back-quotes, which is never a keyword, not even a soft one."""
STRING = "STRING_LITERAL"
INTEGER = "INTEGER_LITERAL"
DOUBLE = "DOUBLE_LITERAL"
FLOAT = "FLOAT_LITERAL"
PARAMETER = "DOLLAR_IDENTIFIER"
NUMBERED = "DOLLAR_INTEGER_LITERAL"
END = "EOF"
PRESORTED = "PRE-SORTED"

_NAMED = frozenset({IDENTIFIER, QUOTED, STRING, INTEGER, DOUBLE, FLOAT, PARAMETER, NUMBERED})


class Token(Struct, frozen=True, gc=False, kw_only=True):
    """A token: its kind, its original text, its value (an identifier or a string without quotes), its position."""

    kind: str
    image: str
    value: str
    place: TextPosition
    start: int
    end: int

    @property
    def soft(self) -> str:
        """The token's text in upper case if it is a soft keyword; empty for other tokens."""
        word = self.image.upper() if self.kind == IDENTIFIER else ""
        return word if word in SOFT else ""

    @property
    def display_text(self) -> str:
        """The token as a syntax error displays it: the text, preceded by the kind for identifiers and literals."""
        if self.kind == END:
            return "<EOF>"
        kind = f"<{self.kind}> " if self.kind in _NAMED else ""
        return f'{kind}"{escape_token(shorten(self.image))}"'


class Hint(Struct, frozen=True):
    """A comment that begins with `/*+`: advice to an optimizer."""

    place: TextPosition
    text: str
