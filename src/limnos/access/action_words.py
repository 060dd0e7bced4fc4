# SPDX-License-Identifier: Apache-2.0
"""Action names in commands and queries: parsing, and suggestions for unknown names.

Makes no access decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from limnos.access.actions import Action
from limnos.access.policy import POLICY
from limnos.access.rules import AllOf, AnyOf, ByKind, PrivilegeRule, Rule
from limnos.model.errors import BadRequest
from limnos.model.privileges import Privilege, escape_percent

_NAMED_MAX = 8
_PREFIXES = {"schema": "namespace", "model_version": "model", "users": "user", "groups": "group", "grants": "privilege"}
"""Action prefixes of privileges whose noun differs from that of their actions, by the privilege's noun."""

_MEANINGS = {
    word: action
    for action, words in {
        Action.TABLE_READ: "select read query scan get preview head",
        Action.TABLE_COMMIT: "insert write append update upsert merge overwrite commit modify delete",
        Action.TABLE_LOAD: "describe desc show load open",
        Action.TABLE_CREATE: "create",
        Action.TABLE_DROP: "drop remove truncate",
        Action.TABLE_RENAME: "rename",
        Action.TABLE_ALTER: "alter",
        Action.TABLE_LIST: "list ls",
        Action.PRIVILEGE_GRANT: "grant revoke share",
        Action.RESTRICT: "restrict mask filter",
    }.items()
    for word in words.split()
}
"""Words that people type for an action, and the action that means them, of a table where there are several."""


_READING = frozenset({"read", "get", "show", "view", "describe", "open", "select", "use"})
"""Verbs for which objects without rows have an action `…_load`."""


def parse_action(text: str) -> Action:
    """Parse an action's name, in any case, with dashes or underscores: "Table-Load" is `TABLE_LOAD`.

    Raises BadRequest for an unknown name (the message lists similar names) and for the name of a privilege (the message
    lists the actions that need the privilege).
    """
    word = text.strip().lower().replace("-", "_")
    try:
        return Action(word)
    except ValueError:
        pass
    if word.upper() in Privilege.__members__:
        action_names = ", ".join(action.word for action in actions_of(Privilege[word.upper()]))
        raise BadRequest(
            f"'{word}' is a privilege, not an action: name an action that needs it, for example {action_names}"
        ) from None
    if word in _MEANINGS:
        raise _unknown_action(text, _MEANINGS[word].word)
    words = [action.word for action in Action]
    if (swapped := "_".join(reversed(word.split("_")))) in words:  # drop_table
        raise _unknown_action(text, swapped)
    noun, _, verb = word.rpartition("_")
    if verb in _READING and f"{noun}_load" in words:  # model_read
        raise _unknown_action(text, f"{noun}_load")
    similar_words = get_close_matches(word, words, n=4, cutoff=0.65) or ["table_load", "namespace_create"]
    raise _unknown_action(text, ", ".join(similar_words)) from None


def _unknown_action(text: str, near: str) -> BadRequest:
    """Return the error for a text that is no action, with the names that may be meant."""
    return BadRequest(
        f"Unknown action '{escape_percent(text)}'; did you mean {near}? 'limnos access explain --actions' lists all"
    )


def actions_of(privilege: Privilege) -> tuple[Action, ...]:
    """Return up to eight actions that need a privilege, as suggestions for an error message.

    Actions on the kind in the privilege's name come first: for `select_table` those on tables. If there are none, other
    actions are returned.
    """
    noun = privilege.word.partition("_")[2]
    prefix = f"{_PREFIXES.get(noun, noun)}_"
    needing = [action for action, rule in POLICY.items() if privilege in _privileges(rule)]
    direct_actions = [
        action for action in needing if action.word.startswith(prefix) and not action.word.endswith(("_see", "_list"))
    ]
    return tuple((direct_actions or needing)[:_NAMED_MAX])


def _privileges(rule: Rule) -> Iterator[Privilege]:
    if isinstance(rule, PrivilegeRule):
        yield rule.privilege
    elif isinstance(rule, AllOf | AnyOf):
        for part in rule.parts:
            yield from _privileges(part)
    elif isinstance(rule, ByKind):
        for part in rule.rules.values():
            yield from _privileges(part)
