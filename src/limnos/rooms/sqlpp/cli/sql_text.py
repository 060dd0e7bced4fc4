# SPDX-License-Identifier: Apache-2.0
"""Analysis of SQL++ texts for the shell: whether a text is complete, where an error is, and the dataverse that USE
selects.

Does no input and no output.
"""

from __future__ import annotations

import re
from typing import Final

from limnos.cli.tables import text_width
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, TextPosition, parse
from limnos.rooms.sqlpp.language.lexer import TokenizedText
from limnos.rooms.sqlpp.language.tokens import END
from limnos.rooms.sqlpp.language.tree import Use

_PLACES: Final = (
    re.compile(r"\(in line (\d+), at column (\d+)\)"),
    re.compile(r"\AASX\d{4}: Syntax error: In line (\d+) >>.*<< Encountered .* at column (\d+)\.", re.DOTALL),
    re.compile(r"Lexical error at line (\d+), column (\d+)\."),
)
_WORD: Final = re.compile(r"[A-Za-z0-9_$]+|`[^`]*`|\S")
_PROBE: Final = "probe"
SHOWN_MAX: Final = 120
"""Maximum width of a line shown with its error."""


def is_whole(text: str) -> bool:
    """Return whether a text is complete: it ends with a semicolon outside of strings and comments."""
    try:
        tokens = TokenizedText(text).tokens
    except SqlppError:
        return not _is_open(text) and text.rstrip().endswith(";")
    kinds = [token.kind for token in tokens if token.kind != END]
    return not kinds or kinds[-1] == ";"


def _is_open(text: str) -> bool:
    """Return whether a text ends inside a string, a quoted name or a comment."""
    try:
        TokenizedText(text)
    except SqlppError as error:
        return "  Encountered: <EOF>, after" in error.message
    return False


def takes_words(text: str) -> bool:
    """Return whether the cursor after a text is in SQL++ code, not in a string or a comment."""
    try:
        return any(token.image == _PROBE for token in TokenizedText(f"{text} {_PROBE}").tokens[-2:])
    except SqlppError:
        return False


def error_position(message: str) -> TextPosition | None:
    """Parse the line and column in an error message of SQL++; None if it has none."""
    for pattern in _PLACES:
        match = pattern.search(message)
        if match:
            return TextPosition(int(match[1]), int(match[2]))
    return None


def underline_position(text: str, place: TextPosition) -> str | None:
    """Return the line of a position, and below it carets under the word at the position; None if the text has no such
    position.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    if place.line > len(lines):
        return None
    line = lines[place.line - 1].replace("\t", " ")
    column = min(place.column - 1, len(line))
    word = _WORD.match(line, column)
    end = word.end() if word else column + 1
    begin = max(0, min(column - SHOWN_MAX // 2, len(line) - SHOWN_MAX))
    head = "..." if begin else ""
    rendered = f"{head}{line[begin : begin + SHOWN_MAX]}"
    number = f"{place.line:>4} | "
    indent = " " * (len(number) + len(head) + text_width(line[begin:column]))
    return f"{number}{rendered}\n{indent}{'^' * max(1, text_width(line[column : min(end, begin + SHOWN_MAX)]))}"


def active_dataverse(text: str, before: Levels | None) -> Levels | None:
    """Return the current dataverse after statements have succeeded: that of the last USE, else `before`."""
    try:
        uses = [each.statement for each in parse(text) if isinstance(each.statement, Use)]
    except SqlppError:
        return before
    return uses[-1].name.parts if uses else before


def changes_names(text: str) -> bool:
    """Return whether statements may have created, dropped or renamed objects, so that names for completion must be
    reloaded.
    """
    return bool(re.search(r"\b(?:create|drop|alter)\b", text, re.IGNORECASE))
