# SPDX-License-Identifier: Apache-2.0
"""Messages about flags that a command does not have: what is wrong, and the command to type."""

from __future__ import annotations

import difflib
import itertools
import re
import shlex
from collections.abc import Sequence
from typing import Final, Literal, get_args, get_origin

import msgspec
from cyclopts.exceptions import (
    UnknownOptionError,
)

from limnos.cli.errors import UsageError
from limnos.cli.flags import GUESSED_FLAGS
from limnos.cli.foreign_flags import (
    CHOICES,
    FILE,
    FIND_FILTERS,
    OTHER_COMMANDS,
    SECOND_COMMANDS,
)
from limnos.cli.grammar.reading import answers
from limnos.cli.grammar.spelling import close_words
from limnos.cli.hints.called_command import CONNECTION_FLAGS, CalledCommand
from limnos.cli.hints.near_flags import filtered_list, near_flags, proposed_flags, with_named_argument
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.operations import KIND_WORDS
from limnos.cli.output import flag_values
from limnos.cli.sentences import proposal_for, quote_command
from limnos.cli.token_words import take_words, without_flag
from limnos.model.declared_kinds import DECLARED

_CONFIRMED: Final = frozenset({"--yes", "-y", "--assume-yes", "--no-confirm"})
"""Flags that answer a question before it is asked."""
_PREVIEWS: Final = ("--what-if", "--plan", "--dry-run", "--preview", "--simulate")
"""Flags by which a command, here or elsewhere, shows what it would do."""
_READING: Final = frozenset({"list", "show", "find", "tree", "head", "audit", "whoami"})
"""First words of commands that change nothing."""
_ROW_SEARCHES: Final = frozenset({"--table", "--dataset", "--index", "--vector", "--text", "--fts", "--nearest"})
"""Flags of a search of rows, which `find` does not do."""
_OWN_FIELDS: Final = {
    f"--{field.name.replace('_', '-')}": declared.plural
    for declared in DECLARED
    for field in msgspec.structs.fields(declared.fields)
}
"""Flags of the own fields of declared kinds, and the client's resource of the kind."""


def _typed_value(tokens: Sequence[str], flag: str) -> str:
    """Return the value of a flag in a command line, quoted for a shell; VALUE if it has none."""
    for at, token in enumerate(tokens):
        name, sign, value = token.partition("=")
        if name == flag:
            return shlex.quote(value if sign else next(iter(tokens[at + 1 :]), "VALUE"))
    return "VALUE"


def unknown_flag(error: UnknownOptionError, command: CalledCommand) -> UsageError:
    """Return the error for a flag that the command does not have, with what to type instead."""
    parsed = (error.token.keyword or error.token.value).partition("=")[0]
    typed_flag = next((token for token in command.rest if token in GUESSED_FLAGS and parsed[1:] in token), parsed)
    message = f"'{command.name}' has no flag {typed_flag}"
    command_flags = [*command.flags, *(["-r"] if "--recursive" in command.flags else [])]
    command_flags += ["-l"] if "--long" in command.flags else []
    if (
        error_of_command := _of_one_command(typed_flag, command, message=message, has_yes="--yes" in command_flags)
    ) is not None:
        return error_of_command
    if (hint := _said_elsewhere(typed_flag, command)) is not None:
        return UsageError(message, hint=hint)
    with_argument = answers.propose(command.typed_tokens)
    if with_argument != quote_command(command.typed_tokens) and len(take_words(command.rest)[0]) < _count(
        with_argument, command
    ):
        return UsageError(message, hint=with_argument)
    if (instead := OTHER_COMMANDS.get((" ".join(command.words), typed_flag))) is not None:
        words = [token for token in command.rest if not token.startswith("-")]
        if len(words) > 1 and words[0] in KIND_WORDS and "." in words[1]:
            words = words[1:]
        value = _typed_value(command.rest, typed_flag)
        return UsageError(f"{message}: {instead[0]}", hint=instead[1].format(*words, "NAME", "VALUE", value=value))
    for guess in _guesses(typed_flag):
        if guess.split()[0] in {*command_flags, *command.list_flags}:
            return UsageError(message, hint=answers.propose(shlex.split(command.again(typed_flag, guess))[1:]))
    if (near := _near_flag(typed_flag, [*command_flags, *command.list_flags])) is not None:
        return UsageError(message, hint=f"'{command.again(typed_flag, near)}'")
    if (filtered := filtered_list(typed_flag, command.words, rest=command.rest)) is not None:
        return UsageError(f"{message}: {filtered.reason}", hint=filtered.hint)
    if (flag := _flag_with_choice(typed_flag, command)) is not None:
        return UsageError(message, hint=answers.propose(shlex.split(command.again(typed_flag, flag))[1:]))
    if (as_argument := with_named_argument(typed_flag, command.words, rest=command.rest)) is not None:
        return UsageError(f"{message}: the value stands alone", hint=answers.propose(as_argument))
    if typed_flag == "--catalog" and (catalog := next(iter(flag_values(command.rest, typed_flag)), "")):
        rest = [token for token in command.rest if token not in {typed_flag, catalog, f"{typed_flag}={catalog}"}]
        words, flags = take_words(rest)
        path = [f"{catalog}.{words[0]}" if words else catalog, *words[1:]] if len(words) < 2 else words
        return UsageError(
            f"{message}: a path begins with its catalog", hint=answers.propose([*command.words, *path, *flags])
        )
    return UsageError(message, hint=_nearest(typed_flag, command, known=command_flags))


def _flag_with_choice(typed: str, command: CalledCommand) -> str | None:
    """Return the flag that takes the word of an unknown one as a value, as `--state failed` for `--failed`; None
    without one.
    """
    word = typed.lstrip("-").lower()
    after = next((following for token, following in itertools.pairwise(command.rest) if token == typed), "-")
    if not after.startswith("-"):
        return None
    for argument in command.arguments:
        choices = _choices(argument.hint)
        value = word if word in choices else CHOICES.get(word, "")
        if argument.name.startswith("--") and argument.name not in CONNECTION_FLAGS and value in choices:
            return f"{argument.name} {value}"
    return None


def _choices(hint: object) -> list[str]:
    """Return the values of a flag that takes one of several words; empty for another type."""
    if get_origin(hint) is Literal:
        return [str(each) for each in get_args(hint)]
    return [choice for each in get_args(hint) for choice in _choices(each)]


def _nearest(typed: str, command: CalledCommand, *, known: Sequence[str]) -> str:
    """Return the hint for a flag that no rule knows: at most two near flags, or the command line without the flag. A
    command that takes something away is not proposed without it.
    """
    own_flags = [flag for flag in known if flag not in CONNECTION_FLAGS and not flag.startswith("--no-")]
    if near := near_flags(typed, own_flags):
        return proposed_flags(near, name=command.name)
    explains = f"'{command.name} --help' explains its {'flags' if own_flags else 'arguments'}"
    if TypedCommand(command.tokens).is_removal or "delete" in command.tokens[:2]:
        return explains
    plain = answers.propose(command.typed_tokens).partition(" (it has no")[0]
    return explains if typed in plain.split() else f"{plain} without it; {explains}"


def _of_one_command(typed: str, command: CalledCommand, *, message: str, has_yes: bool) -> UsageError | None:
    """Return the error for a flag that one command, or one group of commands, answers in its own way; None for other
    flags.
    """
    if command.words == ["find"] and typed in _ROW_SEARCHES:
        text = " ".join(take_words(command.rest)[0][:1])
        again = ["head", text] if "." in text else ["find", text or "WORDS"]
        return UsageError(
            f"{message}: it searches names and words of objects, and LanceDB's clients search rows",
            hint=f"{answers.propose(again)}{' shows rows of it' if '.' in text else ''}",
        )
    if command.words == ["head"] and typed in {"--where", "--filter", "-w"}:
        return _filtered_head(message, typed, command=command)
    if command.words == ["find"] and typed.startswith("--"):
        return UsageError(f"{message}: filters are words", hint=f"'{command.again(typed, f'{typed[2:]}:{{}}')}'")
    if command.words == ["access", "who"] and typed == "--column":
        path = next((token for token in take_words(command.rest)[0] if "." in token), "PATH")
        return UsageError(
            f"{message}: rights are for the whole table, and masks for columns",
            hint=answers.propose(["show", "restriction", path]),
        )
    if command.words == ["list"] and typed in FIND_FILTERS:
        value = _typed_value(command.rest, typed)
        return UsageError(f"{message}: find has filters", hint=f"'limnos find {FIND_FILTERS[typed]}:{value}'")
    if command.words == ["access", "explain"] and typed == "--action":
        value = next(iter(flag_values(command.rest, typed)), "ACTION")
        rest = [token for token in command.rest if token not in {typed, value, f"{typed}={value}"}]
        return UsageError(f"{message}: the action comes first", hint=answers.propose([*command.words, value, *rest]))
    if typed in _PREVIEWS and command.words[0] not in _READING:
        flags = {each.name for each in command.arguments}
        preview_flag = next((each for each in _PREVIEWS if each in flags), None)
        if preview_flag is None:  # the command without the flag would do what was only to be shown
            text = f"{message}: nothing shows what it would do"
            return UsageError(text, hint=f"'{command.name} --help' explains what it does")
        return UsageError(
            f"{message}: {preview_flag} shows what it would do", hint=f"'{command.again(typed, preview_flag)}'"
        )
    if typed in _CONFIRMED and not has_yes:
        rest = [token for token in command.rest if token != typed]
        return UsageError(f"{message}: it does not ask", hint=answers.propose([*command.typed_name, *rest]))
    if command.words == ["login"] and typed in {"--username", "-u", "--name"}:
        return UsageError(message, hint=answers.propose(shlex.split(command.again(typed, "{}"))[1:]))
    if command.words == ["access", "explain"] and typed == "--missing":
        rest = [token for token in command.rest if token != typed]
        text = f"{message}: it names the missing rights without one"
        return UsageError(text, hint=answers.propose([*command.words, *rest]))
    if command.words[0] == "server" and typed in CONNECTION_FLAGS:
        text = f"'{command.name}' is about this machine, and asks no server: it has no flag {typed}"
        return UsageError(text, hint=answers.propose([*command.words, *without_flag(command.rest, typed)]))
    if command.words == ["set"] and typed in _OWN_FIELDS:
        return _own_field(message, typed, command=command)
    if command.words == ["delete"] and typed == "-f":
        text = f"{message}, and reads no file: an object is named by its path"
        return UsageError(text, hint=answers.propose(["delete", *_delete_arguments(command)]))
    return None


def _own_field(message: str, typed: str, *, command: CalledCommand) -> UsageError:
    """Return the error for an own field of a declared kind. No flag of the connection is proposed, as `--uri` for
    `--url`: the request would be sent to that address, with its token.
    """
    plural = _OWN_FIELDS[typed]
    path = next(iter(take_words(command.rest)[0]), "PATH")
    field = typed[2:].replace("-", "_")
    return UsageError(
        f"{message}: it is a field of {plural}, which commands set only when they create one",
        hint=f"in Python: client.{plural}.alter({path!r}, fields={{{field!r}: VALUE}})",
    )


def _delete_arguments(command: CalledCommand) -> list[str]:
    """Return the arguments of `delete -f`: a path that was typed, never a name that kubectl would read as a file's."""
    words, flags = take_words([word for word in command.rest if word != "-f"])
    paths = [word for word in words if "." in word and not FILE.fullmatch(word)]
    return [*(paths or ["PATH"]), *[flag for flag in flags if flag not in _CONFIRMED]]


def _filtered_head(message: str, typed: str, *, command: CalledCommand) -> UsageError:
    """Return the error for a condition on the rows of `head`, with the statement that has it."""
    path = next(iter(take_words(command.rest)[0]), "PATH")
    condition = next(iter(flag_values(command.rest, typed)), "CONDITION")
    statement = proposal_for([f"select * from {path} where {condition}"])  # noqa: S608 - proposed, not run
    if statement is None or not path.startswith("main."):
        return UsageError(f"{message}: engines filter rows", hint=answers.propose(["head", path]))
    return UsageError(f"{message}: statements filter rows", hint=answers.propose(statement.command))


def _count(proposal: str, command: CalledCommand) -> int:
    """Return the number of arguments of a proposed command line."""
    text = proposal.partition(" (it has no")[0]
    try:
        words, _ = take_words(shlex.split(text[1:-1] if text.startswith("'") else text)[1:])
    except ValueError:  # a quote in the text after the command
        return 0
    return len(words) - len(command.typed_name)


def _guesses(typed: str) -> list[str]:
    """Return our flags for a flag of other tools."""
    guessed_flag = GUESSED_FLAGS.get(typed, GUESSED_FLAGS.get(typed.replace("_", "-"), ""))
    return [each for each in guessed_flag.split("|") if each]


def _near_flag(typed: str, known: Sequence[str]) -> str | None:
    """Return the flag that a misspelt one is: the command's own ones first, then others' words for them, last those of
    every command.
    """
    name = typed.replace("_", "-")
    own_flags = [flag for flag in known if flag not in CONNECTION_FLAGS and not flag.startswith("--no-")]
    if near := close_words(name, own_flags, cutoff=0.75):
        return near[0]
    for guessed in difflib.get_close_matches(name, list(GUESSED_FLAGS), n=3, cutoff=0.85):
        for guess in GUESSED_FLAGS[guessed].split("|"):
            if guess.split()[0] in own_flags:
                return guess
    near = difflib.get_close_matches(name, [flag for flag in known if flag in CONNECTION_FLAGS], n=1, cutoff=0.8)
    return near[0] if near and near[0] != "--as" else None


def _said_elsewhere(typed: str, command: CalledCommand) -> str | None:
    """Return the commands that do what a flag of a `create` command would do elsewhere; None for other flags."""
    words, _ = take_words(command.rest)
    then = SECOND_COMMANDS.get((" ".join(command.words), typed))
    if then is None or not words:
        return None
    value = next(iter(flag_values(command.rest, typed)), "VALUE")
    names = [each for each in [*re.split(r"[\s,]+", value), *(re.split(r"[\s,]+", " ".join(words[1:])))] if each]
    if names and then.startswith("group add {value}"):
        each_group = [["group", "add", group, words[0]] for group in names]
    else:
        each_group = [_with_words(then, name=words[0], values=names)]
    after = ", ".join(quote_command(each) for each in each_group)
    return f"{answers.propose([*command.typed_name, words[0]])}, then {after}"


def _with_words(template: str, *, name: str, values: Sequence[str]) -> list[str]:
    """Return the words of a command: `{name}` is the typed name, `{value}` all values."""
    words = [[name] if word == "{name}" else list(values) if word == "{value}" else [word] for word in template.split()]
    return [word for part in words for word in part]
