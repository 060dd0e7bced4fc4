# SPDX-License-Identifier: Apache-2.0
"""Messages about missing arguments, and flags without their values: what is wrong, and the command to type."""

from __future__ import annotations

import itertools
import shlex
from typing import Final

from cyclopts.exceptions import (
    MissingArgumentError,
)

from limnos.cli.errors import UsageError
from limnos.cli.grammar.reading import answers
from limnos.cli.hints.called_command import CalledCommand, value_name
from limnos.cli.hints.selections import negated_selection
from limnos.cli.output import flag_values
from limnos.cli.sentences import quote_command
from limnos.cli.token_words import take_words
from limnos.model.privileges import Privilege


def missing_value(error: MissingArgumentError, command: CalledCommand) -> UsageError:
    """Return the error for an argument, or the value of a flag, that is missing."""
    tokens = error.argument.tokens if error.argument is not None else ()
    name = error.keyword or next((token.keyword for token in tokens if token.keyword), None)
    if name is not None:
        return _without_value(name, command)
    if (named := _named_by_flag(command)) is not None:
        return named
    label = "an argument" if error.argument is None else error.argument.name
    _, flags = take_words(command.rest)
    usage = " ".join([command.usage, *map(shlex.quote, flags)]) if flags else command.usage
    hint = f"'{usage}'" if "'" not in usage else usage
    lists = _ID_LISTS.get(label)
    if lists is not None:
        words, _ = take_words(command.rest)
        hint += f"; {quote_command([*lists.split(), *(words[:1] if lists == 'list secrets' else [])])} has the ids"
    if label == "PATH" and f"NAME {' '.join(map(shlex.quote, take_words(command.rest)[0]))}" in usage:
        label = "NAME"
    return UsageError(f"{label} is missing", hint=hint)


_ID_LISTS: Final = {
    "SECRET_ID": "list secrets",
    "TOKEN_ID": "list tokens",
    "RUN_ID": "list runs",
    "TASK_ID": "list tasks",
    "WEBHOOK_ID": "list webhooks",
    "JOB": "list jobs",
    "REQUEST": "list requests",
}
"""The list that has the ids of a missing argument."""


def _without_value(name: str, command: CalledCommand) -> UsageError:
    """Return the error for a flag without its value, or with a negative one, which stands for a flag."""
    tokens = command.typed_tokens
    after = next((token for earlier_token, token in itertools.pairwise(tokens) if earlier_token == name), "")
    if after[1:2].isdigit():
        again = [after[1:] if token == after else token for token in tokens]
        return UsageError(f"{name} takes no negative value, as '{after}'", hint=answers.propose(again))
    if command.words[0] in {"grant", "revoke"}:
        return UsageError(f"{name} needs a value", hint=answers.propose(_whole_grant(name, command)))
    return negated_selection(name, after, tokens=tokens) or UsageError(
        f"{name} needs a value", hint=answers.propose([*tokens, value_name(name)])
    )


def _whole_grant(name: str, command: CalledCommand) -> list[str]:
    """Return a grant with a place to fill after a flag without a value: a holder of the kind that takes it. An object
    among privileges stands after --on.
    """
    words, flags = take_words([token for token in command.rest if token != name])
    is_role, has_preset = words[:1] == ["role"], "--preset" in flags
    objects = [] if is_role or has_preset else [word for word in words if word.upper() not in Privilege.__members__]
    value = {"--on": "PATH", "--preset": "reader"}.get(
        name, "USER" if is_role else "user:NAME" if has_preset else "ROLE"
    )
    on = (
        ["--on", objects[0]]
        if objects and len(objects) < len(words) and not {"--on", "--on-metalake"} & {name, *flags}
        else []
    )
    privileges = [word for word in words if word not in on]
    return [*command.words, *privileges, *on, *flags, name, value]


def _named_by_flag(command: CalledCommand) -> UsageError | None:
    """Return the error for a name that stands after a flag, as in `user create --user bob`; None for another one."""
    flag = f"--{command.typed_name[-1]}"
    value = next(iter(flag_values(command.rest, flag)), "")
    if not value or take_words(command.rest)[0]:
        return None
    rest = " ".join([shlex.quote(token) for token in command.rest])
    rest = rest.replace(f"{flag}={shlex.quote(value)}", "").replace(f"{flag} {shlex.quote(value)}", "")
    again = answers.propose([*command.typed_name, value, *shlex.split(rest)])
    return UsageError(f"the name stands without a flag, not after {flag}", hint=again)
