# SPDX-License-Identifier: Apache-2.0
"""The command that was called, as answers about its arguments repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from limnos.cli.flags import filled_value
from limnos.cli.grammar.spelling import typed_as
from limnos.cli.signatures import COMMON, LIST_FLAGS, signature_of
from limnos.cli.token_words import take_words

if TYPE_CHECKING:
    from cyclopts import App

CONNECTION_FLAGS: Final = COMMON
"""Flags of every command, which a list of a command's own flags leaves out."""


class CalledCommand:
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
    def typed_name(self) -> list[str]:
        """The words of the command as they are typed."""
        return typed_as(" ".join(self.words)).split()

    @property
    def typed_tokens(self) -> list[str]:
        """The command line as it is typed."""
        return [*self.typed_name, *self.rest]

    @property
    def usage(self) -> str:
        """The command with its arguments, those that were typed as they are, and the flags that it needs."""
        words = [self.name]
        typed, _ = take_words(self.rest)
        names = [argument.name for argument in self.arguments]
        is_path = len(typed) == 1 and "." in typed[0] and names[:2] == ["NAME", "PATH"]
        for argument in self.arguments:
            if argument.name == "*":
                continue
            if argument.name.startswith("-"):
                words += [f"{argument.name} {value_name(argument.name)}"] if argument.required else []
            elif typed and not argument.token_count()[1] and not (is_path and argument.name == "NAME"):
                words.append(shlex.quote(typed.pop(0)))
            else:
                words.append(argument.name if argument.required else f"[{argument.name}]")
        return " ".join(words)

    @property
    def list_flags(self) -> list[str]:
        """The flags of lists, if it always prints one."""
        signature = signature_of(self.words)
        return sorted(LIST_FLAGS & signature.flags) if signature is not None else []

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
                rest += filled_value(after, value if sign else next(remaining, "VALUE")).split()
            elif before in {name, token}:
                rest += [f"{after}={value}"] if sign and " " not in after else after.split()
            else:
                rest.append("..." if rest and rest[-1] == "--token" else token)
        return shlex.join([*self.name.split(), *rest])


def value_name(flag: str) -> str:
    """Return the word for the value of a flag in a command line, as `ROLE` for `--role`."""
    if flag in {"-f", "-c"}:
        return "FILE" if flag == "-f" else "STATEMENT"
    return flag.lstrip("-").replace("-", "_").upper()
