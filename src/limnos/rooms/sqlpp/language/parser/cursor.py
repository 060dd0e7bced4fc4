# SPDX-License-Identifier: Apache-2.0
"""The token cursor: a position in a list of tokens, and the methods that every part of the grammar uses.

Must not know grammar rules. It counts the depth: a text that is nested deeper than DEPTH_MAX is a syntax error, so that
no text can exhaust the interpreter's stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from limnos.rooms.sqlpp.language.errors import (
    SqlppError,
    TextPosition,
    compilation,
    syntax,
    unexpected_token,
    unexpected_word,
)
from limnos.rooms.sqlpp.language.lexer import TokenizedText
from limnos.rooms.sqlpp.language.tokens import IDENTIFIER, INTEGER, QUOTED, STRING, Token
from limnos.rooms.sqlpp.language.tree import DottedName

T = TypeVar("T")

DEPTH_MAX = 120
"""The maximum number of nested levels of brackets, calls, parentheses and types; a subquery counts as three, a window
as two.

A level takes at most five Python calls, so the deepest text needs 600 of the thousand that Python allows by default.
"""

_NAMES = (IDENTIFIER, QUOTED)
_INTEGER_DIGITS_MAX = 19
_INTEGER_MAX = 2**63 - 1


class TokenCursor:
    """Reads tokens one after another. `kind` is the kind of the next token, stored separately for speed.

    All methods of its subclasses that parse a construct raise SqlppError for a syntax error.
    """

    def __init__(self, lexed: TokenizedText) -> None:
        self.lexed = lexed
        self.tokens = lexed.tokens
        self.index = 0
        self.token: Token = self.tokens[0]
        self.kind: str = self.token.kind
        self.depth = 0
        self.parameters = 0

    @property
    def at(self) -> TextPosition:
        """The position of the next token."""
        return self.token.place

    @property
    def before(self) -> TextPosition:
        """The position of the last consumed token."""
        return self.tokens[max(0, self.index - 1)].place

    def advance(self) -> Token:
        """Consume the next token and return it. The final END is returned repeatedly."""
        token = self.token
        if self.index < len(self.tokens) - 1:
            self.index += 1
        self.token = self.tokens[self.index]
        self.kind = self.token.kind
        return token

    def peek(self, ahead: int = 1) -> Token:
        """Return a later token without consuming it; `ahead` is its offset from the next token."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def accept(self, kind: str) -> bool:
        """Consume the next token if it is of this kind. Returns whether it was consumed."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str) -> Token:
        """Consume the next token, which must be of this kind. Raises SqlppError for another token."""
        if self.kind != kind:
            raise self.error()
        return self.advance()

    def accept_soft(self, word: str) -> bool:
        """Consume the next token if it is this soft keyword. Returns whether it was consumed."""
        if self.token.soft != word:
            return False
        self.advance()
        return True

    def expect_soft(self, *words: str) -> str:
        """Consume one of these soft keywords and return it in lower case. Raises SqlppError for another token."""
        if self.kind != IDENTIFIER:
            raise self.error()
        if self.token.soft not in words:
            raise unexpected_word(self.token.image, self.at)
        return self.advance().image.lower()

    def error(self) -> SqlppError:
        """Return the syntax error for the next token."""
        place = self.at
        return unexpected_token(self.lexed.line(place.line), self.token.display_text, place)

    def enter(self) -> None:
        """Increase the nesting depth. Raises SqlppError beyond DEPTH_MAX. After an error `leave` need not be called."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise compilation(f"The statement is nested more than {DEPTH_MAX} levels deep", self.at)

    def leave(self) -> None:
        """Decrease the nesting depth."""
        self.depth -= 1

    @property
    def named(self) -> bool:
        """Whether the next token is an identifier, so that it can be a name."""
        return self.kind in _NAMES

    def identifier(self) -> str:
        """Consume an identifier and return its name. Raises SqlppError for another token."""
        if self.kind not in _NAMES:
            raise self.error()
        return self.advance().value

    def path(self) -> tuple[str, ...]:
        """Consume identifiers separated by dots and return their names."""
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        return tuple(parts)

    def name(self) -> DottedName:
        """Consume identifiers separated by dots and return them as a name with its position."""
        return DottedName(self.at, self.path())

    def string(self) -> str:
        """Consume a string literal and return its value. Raises SqlppError for another token, and for two adjacent
        strings.
        """
        value = self.expect(STRING).value
        if self.kind == STRING:
            raise syntax("Invalid string literal", self.at)
        return value

    def constant(self) -> str:
        """Consume a string literal or a back-quoted text and return its value."""
        return self.advance().value if self.kind == QUOTED else self.string()

    def integer(self) -> int:
        """Consume an integer and return its value. Raises SqlppError for another token, and beyond 64 bits."""
        token = self.expect(INTEGER)
        digits = token.image.lstrip("0") or "0"
        if len(digits) > _INTEGER_DIGITS_MAX or int(digits) > _INTEGER_MAX:
            text = token.image if len(token.image) <= 40 else token.image[:37] + "..."
            raise syntax(f'Could not parse numeric literal "{text}"', token.place)
        return int(digits)

    def comma_separated(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Parse one or more items separated by commas; `item` parses one."""
        items = [item()]
        while self.kind == ",":
            self.advance()
            items.append(item())
        return tuple(items)
