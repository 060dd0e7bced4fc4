# SPDX-License-Identifier: Apache-2.0
"""`SqlppError`: an error in a statement and its position, with AsterixDB's numbers and messages.

Must not know status codes or response bodies: the query service turns an error into both. A number always has the
meaning that AsterixDB gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from limnos.names.parts import quote_for_message

SYNTAX = 1001
"""The number for a syntax error."""

OUTCOME_UNKNOWN = 3102
"""The number for an engine that ended during a statement."""

NO_ENGINE = 3109
"""AsterixDB's number for a cluster that cannot accept a job."""

COMPILATION = 1079
"""The number for a statement that is parsed, but invalid or unsupported."""

INVALID_NAME = 1115
"""The number for a new object's name that is not allowed."""

LINE_SHOWN_MAX = 240
"""The maximum number of characters of a source line in a message. Of a longer line only the part around the position is
shown.
"""

_TOKEN_SHOWN_MAX = 80


class TextPosition(NamedTuple):
    """A position in a text: line and column, from 1. Columns count code points; a tab is one column."""

    line: int
    column: int


class SqlppError(Exception):
    """An error of a statement. `number` is AsterixDB's error number, `place` is the position, if known.

    `text` is the message with code and position. If `has_position` is true, `message` itself contains line and column;
    otherwise they are appended.
    """

    number: int
    message: str
    place: TextPosition | None
    has_position: bool

    def __init__(
        self,
        number: int,
        message: str,
        place: TextPosition | None = None,
        has_position: bool = False,  # noqa: FBT001, FBT002 - an exception's arguments are its pickle
    ) -> None:
        super().__init__(number, message, place, has_position)
        self.number = number
        self.message = message
        self.place = place
        self.has_position = has_position

    @property
    def code(self) -> str:
        """The code in messages, such as `ASX1001`."""
        return f"ASX{self.number:04d}"

    @property
    def text(self) -> str:
        """The whole message, with code and position."""
        where = (
            ""
            if self.has_position or self.place is None
            else f" (in line {self.place.line}, at column {self.place.column})"
        )
        return f"{self.code}: {self.message}{where}"

    def __str__(self) -> str:
        return self.text


class BudgetSpent(Exception):
    """Raised if a budget of work is used up, or is too small for the next step, which is then not executed."""


class DuplicateKey(SqlppError):
    """Raised if an INSERT or LOAD writes a key that exists. Its code has the prefix `HYR` of AsterixDB's storage
    layer.
    """

    def __init__(self, key: str, *, is_load: bool = False) -> None:
        number, verb = (32, "Loading") if is_load else (33, "Inserting")
        super().__init__(number, f"{verb} duplicate keys into the primary storage: {key}")
        self.key = key

    def __reduce__(self) -> tuple[Callable[[str], DuplicateKey], tuple[str]]:
        return partial(DuplicateKey, is_load=self.number == 32), (self.key,)

    @property
    def code(self) -> str:
        return f"HYR{self.number:04d}"


class EngineUnavailable(SqlppError):
    """Raised if the engine cannot execute a statement now; nothing was changed. Clients may retry after `retry_after_s`
    seconds.
    """

    def __init__(self, message: str, *, number: int = NO_ENGINE, retry_after_s: int = 1) -> None:
        super().__init__(number, message)
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Callable[..., EngineUnavailable], tuple[()]]:
        return partial(EngineUnavailable, self.message, number=self.number, retry_after_s=self.retry_after_s), ()


class SnapshotMoved(EngineUnavailable):
    """Raised if a table has another snapshot than the one that the server checked; nothing was changed.

    The server checks the table again and repeats the job.
    """

    def __init__(self) -> None:
        super().__init__(
            "A table of the statement was changed repeatedly while the statement began; nothing was changed: try again",
            number=OUTCOME_UNKNOWN,
        )

    def __reduce__(self) -> tuple[type[SnapshotMoved], tuple[()]]:
        return SnapshotMoved, ()


class EngineFailed(SqlppError):
    """Raised for a failure that the statement did not cause; the message states its effect on the data."""

    def __init__(self, message: str) -> None:
        super().__init__(OUTCOME_UNKNOWN, message)

    def __reduce__(self) -> tuple[type[EngineFailed], tuple[str]]:
        return EngineFailed, (self.message,)


class OutcomeUnknown(SqlppError):
    """Raised if it is unknown whether the commit of a statement succeeded.

    The statement was executed completely or not at all.
    """

    def __init__(self) -> None:
        super().__init__(
            OUTCOME_UNKNOWN,
            "The engine ended in the middle of the statement, which was executed completely or not at all: check before"
            " you try again",
        )

    def __reduce__(self) -> tuple[type[OutcomeUnknown], tuple[()]]:
        return OutcomeUnknown, ()


def syntax(message: str, place: TextPosition, *, has_position: bool = False) -> SqlppError:
    """Return a syntax error. With `has_position` the message already contains line and column."""
    return SqlppError(SYNTAX, f"Syntax error: {message}", place, has_position)


def unexpected_token(line: str, what: str, place: TextPosition) -> SqlppError:
    """Return the error for a token that the grammar does not allow here. `line` is its whole line, `what` the displayed
    token.
    """
    text = shown_line(line, place.column)
    return syntax(
        f"In line {place.line} >>{text}<< Encountered {what} at column {place.column}.", place, has_position=True
    )


def lexical(character: str, after: str, place: TextPosition) -> SqlppError:
    """Return the error for a character that cannot begin or continue a token; an empty character means the end of the
    text.
    """
    met = f'"{escape_token(character)}" ({ord(character)})' if character else "<EOF>"
    text = escape_token(after[-_TOKEN_SHOWN_MAX:])
    where = f"Lexical error at line {place.line}, column {place.column}."
    return syntax(f'{where}  Encountered: {met}, after : "{text}"', place, has_position=True)


def unexpected_word(image: str, place: TextPosition) -> SqlppError:
    """Return the error for a keyword where the grammar does not allow it. `image` is the keyword as written."""
    return syntax(f"Unexpected token: {shorten(image)}", place)


def recursion(words: str, at: TextPosition | None) -> SqlppError:
    """Return the error for a recursive function or view."""
    return SqlppError(1149, f"Illegal function or view recursion: {words}", at)


def compilation(message: str, place: TextPosition | None = None) -> SqlppError:
    """Return the error for a statement that is syntactically valid but cannot be executed."""
    return SqlppError(COMPILATION, f"Compilation error: {message}", place)


def too_deep() -> SqlppError:
    """Return the error for a statement (views and functions inlined) or a value that is nested too deeply."""
    return compilation("A query, with its views and functions, or a value is nested too deep")


def invalid_name(part: str, place: TextPosition | None = None) -> SqlppError:
    """Return the error for a name that SQL++ or the server's tree does not allow."""
    return SqlppError(INVALID_NAME, f"Invalid name for a database object: {quote_for_message(part)}", place)


def shorten(text: str) -> str:
    """Return the text, truncated to 80 characters."""
    return text if len(text) <= _TOKEN_SHOWN_MAX else text[: _TOKEN_SHOWN_MAX - 3] + "..."


def escape_token(text: str) -> str:
    """Return a token's text inside double quotes, with quotes, backslashes and invisible characters escaped."""
    escaped_text = text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")
    return visible(escaped_text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t"))


def shown_line(line: str, column: int) -> str:
    """Return a line for a message: shortened, and without characters that could forge a log line."""
    if len(line) <= LINE_SHOWN_MAX:
        return visible(line)
    begin = max(0, min(column - 1 - LINE_SHOWN_MAX // 2, len(line) - LINE_SHOWN_MAX))
    end = begin + LINE_SHOWN_MAX
    head, tail = "..." if begin else "", "..." if end < len(line) else ""
    return f"{head}{visible(line[begin:end])}{tail}"


def visible(text: str) -> str:
    """Return the text with control characters (except tabs), line separators and lone surrogates escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\t " else _escape_character(char) for char in text)


def _escape_character(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
