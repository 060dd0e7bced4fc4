# SPDX-License-Identifier: Apache-2.0
"""The words of a command line, and its flags with their values."""

from __future__ import annotations

from collections.abc import Sequence

from limnos.cli.flags import SWITCHES, VALUED, takes_value
from limnos.cli.operations import COMMANDS, VERB_ALIASES


def take_words(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate positional words from flags with their values."""
    words: list[str] = []
    flags: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token == "--":  # noqa: S105 - the end of options
            words += tokens[at + 1 :]
            break
        if token.startswith("-") and len(token) > 1:
            width = token_width(tokens, at)
            flags += tokens[at : at + width]
            at += width
        else:
            words.append(token)
            at += 1
    return words, flags


def token_width(tokens: Sequence[str], at: int) -> int:
    """Return the number of tokens of a flag with its value, or of a word. An unknown flag before a command or before
    a known flag has none.
    """
    token, following = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else "-"
    if token == "--version" and at and following[:1].isdigit():  # noqa: S105 - a flag of other tools
        return 2
    if not token.startswith("-") or len(token) == 1 or not takes_value(token):
        return 1
    others = {*COMMANDS, *VERB_ALIASES, *VALUED, *SWITCHES}
    is_value = not following.startswith("--") and (token in VALUED or following not in others)
    return 2 if is_value and at + 1 < len(tokens) else 1


def with_flags(command: Sequence[str], flags: Sequence[str]) -> list[str] | None:
    """Return a proposed command with typed flags, which replace places to fill of the same flags; None if the command
    has one of them with a value of its own.
    """
    result = list(command)
    for flag in flags:
        if flag.startswith("-") and flag in result:
            at = result.index(flag)
            if at + 1 >= len(result) or not result[at + 1].partition("=")[0].isupper():
                return None
            del result[at : at + 2]
    return [*result, *flags]


def without_flag(tokens: Sequence[str], flag: str) -> list[str]:
    """Return a command line without a flag and its value."""
    pairs = zip(["", *tokens], tokens, strict=False)
    return [
        token
        for earlier_token, token in pairs
        if flag not in {token, earlier_token} and not token.startswith(f"{flag}=")
    ]
