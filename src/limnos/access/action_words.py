"""Action names as people type them: parsing, and suggestions for unknown ones.

May import `model`, the actions and the policy. Decides nothing.
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


def parse_action(text: str) -> Action:
    """Parse an action's name, in any case, with dashes or underscores: "Table-Load" is `TABLE_LOAD`.

    Raises BadRequest for an unknown name, with similar ones, and for a privilege, with the actions that need it.
    """
    word = text.strip().lower().replace("-", "_")
    try:
        return Action(word)
    except ValueError:
        pass
    if word.upper() in Privilege.__members__:
        named = ", ".join(action.word for action in actions_of(Privilege[word.upper()]))
        raise BadRequest(
            f"'{word}' is a privilege, not an action: name an action that needs it, for example {named}"
        ) from None
    near = get_close_matches(word, [a.word for a in Action], n=4, cutoff=0.5) or ["table_load", "namespace_create"]
    raise BadRequest(
        f"Unknown action '{escape_percent(text)}'; did you mean {', '.join(near)}? 'limnos access explain --actions' lists all"
    ) from None


def actions_of(privilege: Privilege) -> tuple[Action, ...]:
    """Return the actions that need a privilege: those on the kind in its name, or all if there are none; at most
    eight.
    """
    noun = privilege.word.partition("_")[2]
    prefix = f"{_PREFIXES.get(noun, noun)}_"
    needing = [action for action, rule in POLICY.items() if privilege in _privileges(rule)]
    own = [
        action for action in needing if action.word.startswith(prefix) and not action.word.endswith(("_see", "_list"))
    ]
    return tuple((own or needing)[:_NAMED_MAX])


def _privileges(rule: Rule) -> Iterator[Privilege]:
    if isinstance(rule, PrivilegeRule):
        yield rule.privilege
    elif isinstance(rule, AllOf | AnyOf):
        for part in rule.parts:
            yield from _privileges(part)
    elif isinstance(rule, ByKind):
        for part in rule.rules.values():
            yield from _privileges(part)
