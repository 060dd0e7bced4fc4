# SPDX-License-Identifier: Apache-2.0
"""The words of `access explain` in another order than the command's: action, path and user have forms of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_ACTION: Final = re.compile(r"[a-z]+(?:_[a-z]+)+")
_VERBS: Final = {
    "read": "table_read",
    "select": "table_read",
    "query": "table_read",
    "write": "table_commit",
    "insert": "table_commit",
    "update": "table_commit",
}
"""Words of SQL, and the action on a table that they mean."""
_FIRST: Final = frozenset({"restrict", "protect", "unprotect", "undrop", *_VERBS})
"""First words that the server knows, or answers itself."""
_JOINS: Final = frozenset({"on", "for", "to", "of", "user"})


class OrderedWords(NamedTuple):
    """What is wrong with the order of words, and the command in the right one."""

    message: str
    command: tuple[str, ...]


def ordered_words(typed: Sequence[str]) -> OrderedWords | None:
    """Return the answer to words after `access explain` of which the first is no action; None if it may be one, or if
    no word is a path.
    """
    first = typed[0].lower()
    words = [word for word in typed if word.lower() not in _JOINS]
    if len(words) < 2 or first in _FIRST or (_ACTION.fullmatch(first) and len(typed) < 3):
        return None
    actions = [word for word in words if _VERBS.get(word.lower()) or _is_action(word)]
    rest = [word for word in words if word not in actions[:1]]
    path = next((word for word in rest if "." in word and "@" not in word), None)
    if path is None:
        return None
    users = [word for word in rest if word != path]
    action = _VERBS.get(actions[0].lower(), actions[0]) if actions else "table_read"
    message = (
        "the action comes first, then the path" if actions else f"'{typed[0]}' is no action: the action is missing"
    )
    command = ("access", "explain", action, path, *(("--for", users[0]) if users else ()))
    return OrderedWords(f"{message}, and a user stands after --for" if users else message, command)


def _is_action(word: str) -> bool:
    if _ACTION.fullmatch(word) is None:
        return False
    from limnos.access.actions import Action  # only for words in a wrong order

    return word in {action.word for action in Action}
