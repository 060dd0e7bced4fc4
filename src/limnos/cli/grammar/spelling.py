# SPDX-License-Identifier: Apache-2.0
"""How commands are spelled, and the known words that a misspelt one may be."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from limnos.cli.operations import GROUP_ALIASES, OPERATIONS, Operation, plural


def spell_operation(operation: Operation) -> str:
    """Return how an operation is typed, with its arguments."""
    kind = plural(operation.kind) if operation.verb == "list" else operation.kind
    return f"limnos {operation.verb} {kind} {operation.arguments}".strip()


def typed_as(command: str) -> str:
    """Return the words by which a command is best typed: verb and kind where an operation performs it."""
    operations = {each.command: each for each in OPERATIONS}
    if command not in operations or " " not in command:
        return command
    return (
        spell_operation(operations[command]).removeprefix("limnos ").removesuffix(operations[command].arguments).strip()
    )


def aliases_of(group: str) -> list[str]:
    """Return the other spellings of the commands of a group."""
    return [alias.removeprefix(f"{group} ") for alias in GROUP_ALIASES if alias.rpartition(" ")[0] == group]


def close_words(word: str, known: Sequence[str], *, cutoff: float) -> list[str]:
    """Return the known words that a misspelt one may be, the nearest first: they begin with the same letter, since
    words that differ in it, such as `mask` and `task`, are different words.
    """
    start = word.lstrip("-")[:1]
    same = [each for each in known if each.lstrip("-")[:1] == start]
    return difflib.get_close_matches(word, same, n=3, cutoff=cutoff)


def nearest(word: str, known: Sequence[str], *, cutoff: float = 0.72) -> str | None:
    """Return the known word that a misspelt or shortened one most likely is; None without one."""
    close = close_words(word, known, cutoff=cutoff)
    if close:
        return close[0]
    longer = [each for each in known if len(word) > 4 and each.startswith(word)]
    return longer[0] if len(longer) == 1 else None
