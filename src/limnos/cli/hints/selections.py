# SPDX-License-Identifier: Apache-2.0
"""Slips in flags that select steps of a pipeline: lost quotes, files in the place of a pattern, and a minus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from limnos.cli.errors import UsageError
from limnos.cli.grammar.reading import answers

_SELECTIONS: Final = frozenset({"--select", "--exclude"})
_PLUS_BLANK: Final = re.compile(r"(?<!\S)\+ | \+(?!\S)")
"""A `+` with a blank between it and its selector."""


def lost_quotes(extra: Sequence[str], tokens: Sequence[str], *, flags: Sequence[str]) -> UsageError | None:
    """Return the error for several words after a flag with selectors; None if the words stand elsewhere.

    Args:
        extra: The words for which the command has no place.
        tokens: The command line as it is typed.
        flags: The flags of the command.
    """
    at = max((index for index, token in enumerate(tokens) if token == extra[0]), default=0)
    start = next((index for index in range(at - 1, 0, -1) if tokens[index].startswith("-")), 0)
    if tokens[start] not in _SELECTIONS or tokens[start] not in flags:
        return None
    end = next((index for index in range(at, len(tokens)) if tokens[index].startswith("-")), len(tokens))
    words = tokens[start + 1 : end]
    before, after = tokens[: start + 1], tokens[end:]
    if all(Path(word).exists() for word in words):
        text = f"the shell has replaced a '*' after {tokens[start]} by names of files: the pattern stands in quotes"
        return UsageError(text, hint=answers.propose([*before, "NAMESPACE.*", *after]))
    joined = _PLUS_BLANK.sub("+", " ".join(words))
    text = f"{tokens[start]} has {len(words)} words: several selectors stand in one pair of quotes"
    return UsageError(text, hint=answers.propose([*before, joined, *after]))


def negated_selection(name: str, after: str, *, tokens: Sequence[str]) -> UsageError | None:
    """Return the error for a step with a minus after `--select`; None for another flag or word."""
    if name != "--select" or not after.startswith("-") or "." not in after:
        return None
    at = list(tokens).index(name)
    again = [*tokens[:at], "--exclude", after.lstrip("-"), *tokens[at + 2 :]]
    return UsageError(f"--select takes no steps to leave out, as '{after}'", hint=answers.propose(again))
