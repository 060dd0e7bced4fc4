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
from limnos.cli.flags import GUESSED_FLAGS
from limnos.cli.grammar import close_words, guess_error, take_words, typed_as
from limnos.cli.guesses import command_for

if TYPE_CHECKING:
    from cyclopts import App, Token

_CONNECTION = frozenset(
    {
        "--uri",
        "--metalake",
        "--token",
        "--token-file",
        "--user",
        "--as",
        "--ca-file",
        "--timeout",
        "--output",
        "--help",
        "--version",
        "-h",
    }
)
"""Flags of every command, which a list of a command's own flags leaves out."""


_FOUND_BY: Final = {"--owner": "owner", "--owned-by": "owner", "--tag": "tag"}
"""Filters of `find`, by flags that are typed for `list`."""


def slip_of(error: CycloptsError, *, tokens: Sequence[str], tree: App) -> UsageError:
    """Return the usage error for arguments that the parser refused. `tokens` begin with the command's words."""
    command = _Command(tokens, tree)
    if isinstance(error, UnknownOptionError):
        return _unknown_flag(error, command)
    if isinstance(error, MissingArgumentError):
        return _missing(error, command)
    if isinstance(error, UnusedCliTokensError):
        extra = (error.unused_tokens or [""])[0]
        if (guess := command_for(command.tokens, least=2)) is not None:
            return guess_error(" ".join(command.tokens[:2]), guess, flags=())
        return UsageError(f"'{extra}' is one argument too many", hint=f"'{command.usage}'")
    if isinstance(error, RepeatArgumentError):
        return UsageError(f"{error.token.keyword} is given twice", hint=f"give it once: '{command.usage}'")
    if isinstance(error, CoercionError) and error.token is not None:
        return _wrong_value(error, error.token, command=command)
    return UsageError(str(error), hint=f"'{command.name} --help' explains its arguments")


class _Command:
    """The command that was called, with its arguments."""

    def __init__(self, tokens: Sequence[str], tree: App) -> None:
        words: list[str] = []
        for token in tokens:
            if token.startswith("-") or token not in tree:
                break
            words.append(token)
            tree = tree[token]
        self.tokens = list(tokens)
        self.words = words
        self.rest = self.tokens[len(words) :]
        self.arguments = [] if tree.default_command is None else list(tree.assemble_argument_collection())

    @property
    def name(self) -> str:
        """The command as it is typed."""
        return " ".join(["limnos", *typed_as(" ".join(self.words)).split()])

    @property
    def usage(self) -> str:
        """The command with its arguments, those that were typed as they are, and the flags that it needs."""
        words = [self.name]
        typed, _ = take_words(self.rest)
        for argument in self.arguments:
            if argument.name == "*":
                continue
            if argument.name.startswith("-"):
                words += [f"{argument.name} {_value_name(argument.name)}"] if argument.required else []
            elif typed and not argument.token_count()[1]:
                words.append(shlex.quote(typed.pop(0)))
            else:
                words.append(argument.name if argument.required else f"[{argument.name}]")
        return " ".join(words)

    @property
    def flags(self) -> list[str]:
        """The long names of its flags."""
        names = [name for argument in self.arguments for name in argument.names if name.startswith("--")]
        return list(dict.fromkeys(names))

    def again(self, before: str, after: str) -> str:
        """Return the command line with a flag, or a value, replaced. `{}` in `after` stands for the typed value."""
        rest: list[str] = []
        remaining = iter(self.rest)
        for token in remaining:
            name, sign, value = token.partition("=")
            if name == before and "{}" in after:
                rest += after.replace("{}", value if sign else next(remaining, "VALUE")).split()
            elif before in {name, token}:
                rest += [f"{after}={value}"] if sign and " " not in after else after.split()
            else:
                rest.append("..." if rest and rest[-1] == "--token" else token)
        return shlex.join([*self.name.split(), *rest])


_INSTEAD: Final = {
    ("policy create", "--mask"): (
        "masks are of restrictions",
        "'limnos create restriction {0} PATH --mask {1}=ACTION'",
    ),
    ("policy create", "--filter"): (
        "filters are of restrictions",
        "'limnos create restriction {0} PATH --filter CONDITION'",
    ),
    ("audit", "--tail"): (
        "it shows the newest lines first",
        "'limnos changes --follow' follows changes as they are committed",
    ),
    ("audit", "--follow"): (
        "it shows the newest lines first",
        "'limnos changes --follow' follows changes as they are committed",
    ),
}
"""Flags of other tools for what another command does: the reason, and the command."""


def _typed_value(tokens: Sequence[str], flag: str) -> str:
    """Return the value of a flag in a command line, quoted for a shell; VALUE if it has none."""
    for at, token in enumerate(tokens):
        name, sign, value = token.partition("=")
        if name == flag:
            return shlex.quote(value if sign else next(iter(tokens[at + 1 :]), "VALUE"))
    return "VALUE"


def _value_name(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_").upper()


def _unknown_flag(error: UnknownOptionError, command: _Command) -> UsageError:
    parsed = (error.token.keyword or error.token.value).partition("=")[0]
    typed = next((token for token in command.rest if token in GUESSED_FLAGS and parsed[1:] in token), parsed)
    message = f"'{command.name}' has no flag {typed}"
    known = [*command.flags, "-r", "-l"] if "--recursive" in command.flags else command.flags
    if command.words == ["find"] and typed.startswith("--"):
        return UsageError(f"{message}: filters are words", hint=f"'{command.again(typed, f'{typed[2:]}:{{}}')}'")
    if command.words == ["list"] and typed in _FOUND_BY:
        value = _typed_value(command.rest, typed)
        return UsageError(f"{message}: find has filters", hint=f"'limnos find {_FOUND_BY[typed]}:{value}'")
    if command.words == ["login"] and typed in {"--username", "-u", "--name"}:
        return UsageError(message, hint=f"'{command.again(typed, '{}')}'")
    for guess in GUESSED_FLAGS.get(typed, "").split("|"):
        if guess and guess.split()[0] in {*known, "--columns", "--wide"}:
            return UsageError(message, hint=f"'{command.again(typed, guess)}'")
    if (instead := _INSTEAD.get((" ".join(command.words), typed))) is not None:
        words = [token for token in command.rest if not token.startswith("-")]
        return UsageError(f"{message}: {instead[0]}", hint=instead[1].format(*words, "NAME", "VALUE"))
    if near := close_words(typed, [name for name in known if not name.startswith("--no-")], cutoff=0.75):
        return UsageError(message, hint=f"'{command.again(typed, near[0])}'")
    own = [flag for flag in known if flag not in _CONNECTION and not flag.startswith("--no-")]
    listed = f"its own flags are {', '.join(own)}; " if own else "it has no flags of its own; "
    return UsageError(message, hint=f"{listed}'{command.name} --help' explains all")


def _missing(error: MissingArgumentError, command: _Command) -> UsageError:
    tokens = error.argument.tokens if error.argument is not None else ()
    name = error.keyword or next((token.keyword for token in tokens if token.keyword), None)
    if name is not None:
        return UsageError(
            f"{name} needs a value", hint=f"'{command.name} {name} {_value_name(name)}', with its other arguments"
        )
    label = "an argument" if error.argument is None else error.argument.name
    return UsageError(f"{label} is missing", hint=f"'{command.usage}'")


def _wrong_value(error: CoercionError, token: Token, *, command: _Command) -> UsageError:
    label = token.keyword or ("" if error.argument is None else error.argument.name)
    choices = [str(each) for each in get_args(error.target_type)] if get_origin(error.target_type) is Literal else []
    takes = f"one of {', '.join(choices)}" if choices else _VALUE_WORDS.get(error.target_type, "another value")
    meant = _MEANT.get(token.value.lower(), "")
    near = [meant] if meant in choices else close_words(token.value, choices, cutoff=0.7)
    again = f"'{command.again(token.value, near[0])}'" if near else f"'{command.name} --help' explains its arguments"
    source = "" if token.source in {"", "cli"} else f" from {token.source}"
    return UsageError(f"{label} takes {takes}, not '{token.value}'{source}", hint=again)


_MEANT: Final = {
    word: choice
    for choice, words in {
        "refused": "denied deny forbidden rejected unauthorized",
        "failed": "error errors failure fail failing",
        "done": "success succeeded ok allowed completed",
    }.items()
    for word in words.split()
}
"""Others' words for the choices of a flag."""
_VALUE_WORDS: Final[dict[object, str]] = {int: "a whole number", float: "a number", Path: "a file"}
