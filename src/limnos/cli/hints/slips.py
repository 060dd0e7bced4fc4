# SPDX-License-Identifier: Apache-2.0
"""Messages about arguments that a command does not take: what is wrong, and the command to type.

The parser's own texts are not shown, except the choices of a value.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args, get_origin

from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from limnos.cli.errors import UsageError
from limnos.cli.flags import with_joined_durations
from limnos.cli.foreign_flags import (
    CHOICES,
    PLACES,
    SHORT_KINDS,
)
from limnos.cli.grammar.reading import answers
from limnos.cli.grammar.spelling import close_words
from limnos.cli.guesses import FILLERS, command_for
from limnos.cli.hints.called_command import CalledCommand
from limnos.cli.hints.explained_words import ordered_words
from limnos.cli.hints.missing_values import missing_value
from limnos.cli.hints.selections import lost_quotes
from limnos.cli.hints.unknown_flags import unknown_flag
from limnos.cli.output import flag_values
from limnos.cli.token_words import take_words
from limnos.model.declared_kinds import DECLARED_WORDS

if TYPE_CHECKING:
    from cyclopts import App, Token


def slip_of(error: CycloptsError, *, tokens: Sequence[str], tree: App) -> UsageError:
    """Return the usage error for arguments that the parser refused. `tokens` begin with the command's words."""
    command = CalledCommand(tokens, tree)
    if isinstance(error, UnknownOptionError):
        return unknown_flag(error, command)
    if isinstance(error, MissingArgumentError):
        return missing_value(error, command)
    if isinstance(error, UnusedCliTokensError):
        extra = error.unused_tokens or [""]
        return lost_quotes(extra, command.typed_tokens, flags=command.flags) or _too_many(extra[0], command)
    if isinstance(error, RepeatArgumentError):
        return UsageError(f"{error.token.keyword} is given twice", hint=f"give it once: '{command.usage}'")
    if isinstance(error, CoercionError) and error.token is not None:
        return _wrong_value(error, error.token, command=command)
    return UsageError(str(error), hint=f"'{command.name} --help' explains its arguments")


def _too_many(extra: str, command: CalledCommand) -> UsageError:
    """Return the error for an argument too many, with the command that has a place for it."""
    message = f"'{extra}' is one argument too many"
    words, flags = take_words(command.rest)
    for phrase in (command.tokens, words):
        if (guess := command_for(phrase, least=2)) is not None:
            return answers.guess_error(" ".join(phrase[:2]), guess, flags=())
    if (flag := _flag_of_list(extra, command)) is not None:
        text = f"{flag} takes one value, and is repeated for others, such as '{extra}'"
        return UsageError(text, hint=answers.propose(_with_repeated_flag(flag, command)))
    at = command.tokens.index(extra) if extra in command.tokens else 0
    earlier_token = command.tokens[at - 1] if at else ""
    if command.words[0] in {"protect", "unprotect", "undrop"} and words and words[0].lower() in _PRINCIPALS:
        text = f"'limnos {command.words[0]}' is for objects, not for a {words[0].lower()}"
        return UsageError(text, hint=f"'{shlex.join(['limnos', 'show', words[0].lower(), extra])}' shows it")
    if command.words[0] == "undrop" and words and words[0].lower() in DECLARED_WORDS:
        text = f"'limnos undrop' takes the path of a {words[0].lower()} alone"
        return UsageError(text, hint=answers.propose(["undrop", *words[1:], *flags]))
    if (rest := with_joined_durations(command.rest)) != command.rest:
        text = "a duration is one word, such as 30d"
        return UsageError(text, hint=answers.propose([*command.typed_name, *rest]))
    plain = [word for word in words if word.lower() not in FILLERS]
    if len(plain) < len(words) and command.words[0] in {"list", "show", "tree", "head", "files"}:
        joins = next(word for word in words if word.lower() in FILLERS)
        return UsageError(f"'{joins}' is one word too many", hint=answers.propose([*command.words, *plain, *flags]))
    if command.words == ["access", "explain"] and (ordered := ordered_words(words)) is not None:
        return UsageError(ordered.message, hint=answers.propose([*ordered.command, *flags]))
    if "=" in extra and "=" in earlier_token:
        tokens = [*command.tokens[:at], "--property", *command.tokens[at:]]
        return UsageError(f"each property has its own --property: '{extra}'", hint=answers.propose(tokens))
    if (template := PLACES.get(" ".join(command.words))) is not None:
        return _in_its_place(extra, template, command=command, words=words, flags=flags)
    if command.words[0] in {"show", "list", "delete", "set", "tree", "head", "protect"} and len(words) > 1:
        return _of_path(message, command, words=words, flags=flags)
    return UsageError(message, hint=f"'{command.usage}'")


def _in_its_place(
    extra: str, template: Sequence[str], *, command: CalledCommand, words: Sequence[str], flags: Sequence[str]
) -> UsageError:
    """Return the error for an argument too many that has a place in another command, of which `template` has the forms
    (see `PLACES`).
    """
    message = f"'{extra}' is one argument too many"
    last = words[-1] if words else extra
    form = template[1] if "." in last and len(template) > 1 else template[0]
    texts = {"{0}": words[0] if words else "", "{1}": last, "{+}": " ".join(words)}
    texts |= {"{2}": words[1] if len(words) > 1 else "", "{catalog}": last.partition(".")[0]}
    typed_flags = {flag.partition("=")[0] for flag in flags}
    if typed_flags & {*form.split()}:
        return UsageError(message, hint=answers.propose([*command.typed_name, *flags]))
    hint = answers.propose([*(texts.get(word, word) for word in form.split()), *flags])
    if command.words == ["changes"] and "." in last and not flags:
        hint = f"{answers.propose(['audit', '--action', 'change', '--path', last])}; of the whole catalog: {hint}"
    if command.words[0] == "create" and len(command.words) == 2:
        message = f"{message}: each command creates one {command.words[1]}"
    if command.words == ["group", "create"]:
        hint += f", then {answers.propose(['group', 'add', *words])}"
    if command.words == ["role", "list"]:
        hint += f"; the roles of a user: {answers.propose(['show', 'user', last])}"
    if command.words == ["user", "list"]:
        hint += f"; the users of a group: {answers.propose(['show', 'group', last])}"
    return UsageError(message, hint=hint)


def _flag_of_list(extra: str, command: CalledCommand) -> str | None:
    """Return the flag after whose value an argument too many stands, if the flag may be repeated; None otherwise."""
    earlier_words = command.rest[: command.rest.index(extra)] if extra in command.rest else []
    at = max((at for at, token in enumerate(earlier_words) if token.startswith("--")), default=-1)
    flag = earlier_words[at] if 0 <= at < len(earlier_words) - 1 else ""
    lists = (argument for argument in command.arguments if flag in argument.names)
    is_list = any({*map(get_origin, (each.hint, *get_args(each.hint)))} & {list, tuple} for each in lists)
    return flag if is_list else None


def _with_repeated_flag(flag: str, command: CalledCommand) -> list[str]:
    """Return the command line with a flag before each of the values that follow it."""
    result: list[str] = []
    is_after = False
    for token in command.typed_tokens:
        is_after = token == flag or (is_after and not token.startswith("-"))
        result += [flag, token] if is_after and token != flag else [] if is_after else [token]
    return result


def _of_path(message: str, command: CalledCommand, *, words: Sequence[str], flags: Sequence[str]) -> UsageError:
    """Return the error for a path of several words: a name with a space, a kind of another tool, a list of paths."""
    first, *rest = words
    if first.lower() in SHORT_KINDS and len(words) == 2:
        tokens = [*command.words, SHORT_KINDS[first.lower()], *rest, *flags]
        return UsageError(f"'{first}' is no kind here", hint=answers.propose(tokens))
    if command.words == ["set"]:
        name, _, value = " ".join(rest).partition("=" if "=" in rest[0] else " ")
        if name in {"comment", "owner", "tag", "property"}:
            typed = [*command.words, first, f"--{name}", value or name.upper(), *flags]
            return UsageError(f"'{name}' is an option", hint=answers.propose(typed))
        return UsageError(message, hint=f"'{command.usage}' with --comment, --owner, --tag or --property")
    if command.words == ["show"] and all(word.isdigit() for word in rest):
        text = f"{message}: 'show' takes no version, and shows the newest one with the number of versions"
        return UsageError(text, hint=answers.propose([*command.words, first, *flags]))
    if len(words) == 2 and "." in rest[0] and "." not in first and "`" not in first + rest[0]:
        text = f"'limnos {' '.join(command.words)}' knows no '{first}'"  # a name of a catalog has no space
        return UsageError(text, hint=answers.propose([*command.words, *rest, *flags]))
    joined = " ".join(words)
    path = joined if "`" in joined else ".".join(f"`{part}`" if " " in part else part for part in joined.split("."))
    as_one = answers.propose([*command.words, path, *flags])
    if all("." in word for word in words) and "`" not in joined:
        each = answers.propose([*command.words, first, *flags])
        is_list = first.partition(".")[0] == rest[0].partition(".")[0]
        hint = each if is_list else f"{each}; a name with a space is typed {as_one}"
        return UsageError(f"{message}: one path at a time", hint=hint)
    if "." not in joined and "`" not in joined and command.words[0] in {"show", "list", "tree", "head"}:
        text = f"{message}: the parts of a path have dots between them"
        return UsageError(text, hint=answers.propose([*command.words, ".".join(words), *flags]))
    if "." not in joined:
        return UsageError(message, hint=f"'{command.usage}'")
    text = f"{message}: a name with a space stands in back-quotes, and its path in single quotes"
    return UsageError(text, hint=as_one)


_PRINCIPALS: Final = frozenset({"user", "group", "role", "token"})


def _wrong_value(error: CoercionError, token: Token, *, command: CalledCommand) -> UsageError:
    label = token.keyword or ("" if error.argument is None else error.argument.name)
    choices = [str(each) for each in get_args(error.target_type)] if get_origin(error.target_type) is Literal else []
    takes = f"one of {', '.join(choices)}" if choices else _VALUE_WORDS.get(error.target_type, "another value")
    meant = CHOICES.get(token.value.lower(), "")
    if label == "--preset" and token.value.lower() in {"owner", "ownership", "own"}:
        return _owner_instead(command)
    if meant not in choices and "published" in choices:  # of runs, not of the audit
        meant = {"done": "published", "refused": "failed"}.get(meant or token.value.lower(), meant)
    near = [meant] if meant in choices else close_words(token.value.lower(), choices, cutoff=0.7)
    if not choices and error.target_type is int and label != "--snapshot" and label.startswith("-"):
        near = ["10"]
    again = f"'{command.again(token.value, near[0])}'" if near else f"'{command.name} --help' explains its arguments"
    words = take_words(command.rest)[0]
    if label == "--snapshot" and words:
        again = f"{answers.propose(['list', 'snapshots', words[0]])} has the ids, and the id of each tag"
    source = "" if token.source in {"", "cli"} else f" from {token.source}"
    return UsageError(f"{label} takes {takes}, not '{token.value}'{source}", hint=again)


def _owner_instead(command: CalledCommand) -> UsageError:
    """Return the error for a preset `owner`: an object has one owner, which another command sets."""
    words, _ = take_words(command.rest)
    path = next(iter([*flag_values(command.rest, "--on"), *words]), "PATH")
    holder = next(iter(flag_values(command.rest, "--to")), "OWNER").removeprefix("user:")
    return UsageError(
        "an object has one owner, which is no preset", hint=answers.propose(["set", "owner", path, holder])
    )


_VALUE_WORDS: Final[dict[object, str]] = {int: "a whole number", float: "a number", Path: "a file"}
