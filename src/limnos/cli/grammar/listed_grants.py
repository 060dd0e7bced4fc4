# SPDX-License-Identifier: Apache-2.0
"""Lists with commas in `grant` and `revoke`, as SQL has them: several objects or holders, a command for each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final

_VERBS: Final = frozenset({"grant", "revoke", "deny"})
_PLACES: Final = frozenset({"on", "to", "from", "--on", "--to", "--from"})
_KINDS: Final = frozenset(
    {"table", "view", "schema", "namespace", "database", "catalog", "fileset", "model", "user", "group", "role"}
)
_NAMES: Final = re.compile(r"[\w.@:-]+(?:,[\w.@:-]+)+,?")
"""A list of names. One without blanks may be a name, such as `cn=ana,dc=example`: then the server answers."""
_COMMANDS_MAX: Final = 4


def single_grants(tokens: Sequence[str]) -> list[list[str]] | None:
    """Return a command line for each pair of an object and a holder, if one of both is a list with commas, or one with
    blanks between roles; None for other command lines. Of long lists it has the first four.
    """
    if len(tokens) < 2 or tokens[0].lower() not in _VERBS:
        return None
    joined = _join_lists(tokens)
    is_role = joined[1].lower() == "role"
    names = [[token] for token in joined]
    lists: list[int] = []
    for at, token in enumerate(joined[2:], 2):
        if _NAMES.fullmatch(token) is None:
            continue
        earlier_word = joined[at - 1].lower()
        place = joined[at - 2].lower() if earlier_word in _KINDS and at > 2 else earlier_word
        if place in {"on", "to", "from", "--on"} or (place in _PLACES and len(joined) < len(tokens)):
            lists.append(at)
        elif place in _PLACES or not is_role or len(joined) == len(tokens):
            continue
        names[at] = [name for name in token.split(",") if name]
    if all(len(each) == 1 for each in names):
        return None
    choices = itertools.islice(itertools.product(*(names[at] for at in lists)), _COMMANDS_MAX)
    return [_line(names, dict(zip(lists, choice, strict=True))) for choice in choices]


def _line(names: Sequence[Sequence[str]], chosen: dict[int, str]) -> list[str]:
    """Return the words of a command with the chosen name of each list."""
    return [name for at, each in enumerate(names) for name in ([chosen[at]] if at in chosen else each)]


def _join_lists(tokens: Sequence[str]) -> list[str]:
    """Return a command line in which `a, b` is the word `a,b`."""
    result: list[str] = []
    for token in tokens:
        if len(result) > 1 and not token.startswith("-") and (result[-1].endswith(",") or token.startswith(",")):
            result[-1] += token
        else:
            result.append(token)
    return result
