# SPDX-License-Identifier: Apache-2.0
"""The command line as typed: its words, its path, and the flags that a hint repeats."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from typing import Final

from limnos.cli.flags import takes_value
from limnos.cli.grammar.spelling import typed_as
from limnos.cli.operations import DECLARED
from limnos.cli.output import flag_values
from limnos.cli.signatures import signature_of
from limnos.names import display
from limnos.names.errors import InvalidName

_CONNECTION = ("--uri", "--metalake", "--user", "--as", "--token-file", "--profile")
"""Flags of server and credential, which a hint repeats. A token on the command line is not repeated."""
_LEVELS = re.compile(
    rf"(?:{'|'.join(('Namespace', 'Table', 'View', *(word.capitalize() for word in DECLARED)))})"
    r" (?:does not exist|already exists): .+$"
)
"""Messages of Iceberg REST, and about objects of declared kinds, that name the namespace levels but not the catalog."""
PATHS: Final = frozenset({"PATH", "SOURCE"})
"""The names of arguments that are paths, in the signatures of commands."""
_REMOVALS = frozenset({"delete", "remove", "rename", "revoke", "disable"})
"""Words of commands that take something away, or that change a name."""


class TypedCommand:
    """The command line as typed, for hints that repeat parts of it."""

    def __init__(self, tokens: Sequence[str] = ()) -> None:
        self.tokens = tuple(tokens)

    @property
    def words(self) -> tuple[str, ...]:
        """The command's name and its positional arguments."""
        names, skip = [], False
        for token in self.tokens:
            if skip:
                skip = False
            elif token.startswith("-") and len(token) > 1:
                skip = takes_value(token)
            else:
                names.append(token)
        return tuple(names)

    @property
    def path(self) -> tuple[str, ...]:
        """The path argument of the command; empty if there is none or it is malformed."""
        if (on := self._value("--on")) is not None:
            return path_parts(on)
        signature = signature_of(self.words)
        if signature is None:
            return ()
        if signature.words in {("grant",), ("revoke",)}:
            return path_parts(next((word for word in self.words[1:] if "." in word), ""))
        arguments = self.words[len(signature.words) :]
        is_new = signature.words[0] == "create" and signature.arguments[:1] == ("NAME",)
        at = 0 if is_new else next((at for at, name in enumerate(signature.arguments) if name in PATHS), len(arguments))
        return path_parts(arguments[at]) if at < len(arguments) else ()

    @property
    def is_removal(self) -> bool:
        """Whether the command removes something: then no hint proposes it for another object than the typed one."""
        return bool(_REMOVALS & {*self.words[:2]})

    def _value(self, flag: str) -> str | None:
        """The value of a flag; None without it."""
        return next(iter(flag_values(self.tokens, flag)), None)

    @property
    def metalake(self) -> str:
        """The metalake of the command's paths."""
        return next(iter(flag_values(self.tokens, "--metalake")), os.environ.get("LIMNOS_METALAKE", "lake"))

    @property
    def target(self) -> tuple[str, ...]:
        """The new path of the object: TARGET of `rename`, `--to` of `undrop`, else `path`; empty if it is malformed."""
        if self.words[:1] == ("rename",):
            return path_parts(self.words[2]) if len(self.words) > 2 else ()
        if self.words[:1] != ("undrop",):
            return self.path
        for at, token in enumerate(self.tokens):
            if token == "--to" and at + 1 < len(self.tokens):  # noqa: S105 - a flag
                return path_parts(self.tokens[at + 1])
            if token.startswith("--to="):
                return path_parts(token.removeprefix("--to="))
        return self.path

    def add_catalog(self, message: str) -> str:
        """Append the typed path's catalog to a message that names an object without it, as Iceberg's messages do."""
        if not self.path or not _LEVELS.match(message) or message.endswith(f": {display.render(self.path)}"):
            return message
        return f"{message} in catalog {self.path[0]}"

    def command(self, *words: str) -> str:
        """Format a `limnos` command with the typed connection flags: the same server and credential."""
        return shlex.join(["limnos", *words, *self._connection()])

    @staticmethod
    def spell(*words: str) -> str:
        """Format a `limnos` command without connection flags, as another user would type it."""
        return shlex.join(["limnos", *words])

    def again(self, *more: str) -> str:
        """Format the typed command with more flags, by verb and kind. A token in it is masked."""
        texts = _by_verb(self.tokens)
        for at, token in enumerate(texts):
            if token == "--token" and at + 1 < len(texts):  # noqa: S105 - a flag
                texts[at + 1] = "..."
            elif token.startswith("--token="):
                texts[at] = "--token=..."
        return shlex.join(["limnos", *texts, *more])

    def _connection(self) -> list[str]:
        if self.words[:1] in {("login",), ("logout",)}:  # their profile may not exist
            return []
        names: list[str] = []
        for at, token in enumerate(self.tokens):
            name = token.partition("=")[0]
            if name in _CONNECTION:
                names += [token] if "=" in token else list(self.tokens[at : at + 2])
        return names


def _by_verb(tokens: Sequence[str]) -> list[str]:
    """Return a command line that begins with the words of an operation with its verb first: `set owner` for
    `owner set`.
    """
    for length in (3, 2):
        command = " ".join(tokens[:length])
        if (spelled := typed_as(command)) != command:
            return [*spelled.split(), *tokens[length:]]
    return list(tokens)


def path_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a typed path; empty if it is malformed."""
    try:
        return tuple(display.parse(path))
    except InvalidName:
        return ()
