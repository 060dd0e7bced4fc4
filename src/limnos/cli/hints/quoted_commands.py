# SPDX-License-Identifier: Apache-2.0
"""Quotes around commands in messages and hints, so that a shell takes what a reader copies.

A command stands in single quotes. One whose arguments have quotes or back-quotes stands without them, and each such
argument is quoted for the shell.
"""

from __future__ import annotations

import re
import shlex
from typing import Final

_START: Final = re.compile(r"(?<![\w'])'limnos (?=\S)")
_QUOTED: Final = re.compile(r"'[^']*'(?:\"'\"'[^']*')*")
"""An argument as `shlex.quote` writes it."""
_BARE: Final = re.compile(r"(?:[^\s'`]|`[^`]*`)+")
"""An argument without quotes; a part of a path in back-quotes may have blanks."""


def with_plain_commands(text: str) -> str:
    """Return a text in which no command has quotes within quotes, or back-quotes that a shell would run."""
    parts: list[str] = []
    at = 0
    while (start := _START.search(text, at)) is not None:
        command = _command_at(text, start.start())
        end = start.end() if command is None else command[1]
        parts += [text[at : start.start()], text[start.start() : end] if command is None else command[0]]
        at = end
    return "".join([*parts, text[at:]])


def _command_at(text: str, start: int) -> tuple[str, int] | None:
    """Return the command that begins with the quote at `start`, as it is printed, and the position after it; None if
    the quotes do not fit.
    """
    words: list[str] = []
    at, is_plain = start + 1, True
    while True:
        match = _QUOTED.match(text, at) or _BARE.match(text, at)
        if match is None:
            return None
        word = match[0]
        is_plain = is_plain and word[0] != "'" and "`" not in word
        words.append(word if word[0] == "'" or "`" not in word else shlex.quote(word))
        at = match.end()
        if text[at : at + 1] == "'":
            return (text[start : at + 1] if is_plain else " ".join(words)), at + 1
        if text[at : at + 1] != " ":
            return None
        at += 1
