# SPDX-License-Identifier: Apache-2.0
"""Hints for arguments that the client rejected before it sent a request."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from limnos.cli.flags import filled_value
from limnos.cli.hints.typed_command import TypedCommand, path_parts
from limnos.cli.lookups import known_path, objects_named
from limnos.cli.output import flag_values
from limnos.cli.signatures import is_installed
from limnos.names import display

_AMBIGUOUS_PATH = re.compile(r" is both a namespace and a (\w+); name its kind")
"""The message about an ambiguous path."""
_OTHER_CATALOG = re.compile(r"a \w+ stays in its catalog: '([^']+)' is not '")
"""The message about a rename to another catalog."""
_NO_SERVER = "is not the address of a server"
"""The message about an address that is no URL."""


def message_for_argument(message: str, typed: TypedCommand) -> str:
    """Return the message about arguments that the client rejected, with the kind of object that the command takes."""
    return message.replace("namespace.table", "namespace.fileset") if typed.words[:1] == ("files",) else message


def hint_for_argument(message: str, typed: TypedCommand) -> str | None:
    """Return the hint for arguments that the client rejected; None without one."""
    if match := _AMBIGUOUS_PATH.search(message):
        return f"'{typed.again('--kind', 'namespace')}', or '{typed.again('--kind', match[1])}'"
    if _NO_SERVER in message:
        typed_uri = next(iter(flag_values(typed.tokens, "--uri")), "")
        is_host = typed_uri and "://" not in typed_uri
        again = [filled_value("http://{}", token) if token == typed_uri else token for token in typed.tokens]
        return f"'{shlex.join(['limnos', *again])}'" if is_host else None
    if (other := _OTHER_CATALOG.match(message)) is not None and len(typed.target) > 1:
        within = display.render((other[1], *typed.target))
        return f"'{_with_word(typed, typed.words[-1], after=within)}', if {typed.target[0]} is a namespace"
    if "is not a readable PEM file" in message:
        if not any(flag_values(typed.tokens, "--ca-file")) and "LIMNOS_CA_FILE" not in os.environ:
            return "the session keeps this file: restore it, or 'limnos login --ca-file FILE' signs in with another one"
        return "name the certificate of the server's authority, or leave out --ca-file if a known authority signed it"
    if "is too short: give catalog.namespace" in message:
        if typed.words[:1] == ("files",):
            return f"'{typed.command('find', 'kind:fileset')}' lists the filesets: a path is catalog.namespace.fileset"
        if typed.words[:2] == ("create", "namespace"):
            name = typed.words[-1]
            if "/" in name and "`" not in name:
                dotted = display.render([part for part in name.split("/") if part])
                return f"a path has dots, not slashes: '{typed.command('create', 'namespace', dotted)}'"
            known_object = known_path((name,))
            if known_object is not None and known_object.length:
                return f"'{typed.command('create', 'namespace', f'{name}.NAME')}'"
            return (
                f"'{typed.command('create', 'catalog', name)}' creates a catalog; in one:"
                f" '{typed.command('create', 'namespace', f'CATALOG.{name}')}'"
            )
        name = typed.words[1] if typed.words[:1] == ("rename",) else typed.words[-1] if typed.words else ""
        return hint_for_name_alone(typed, name)
    return None


def hint_for_name_alone(typed: TypedCommand, name: str, *, kinds: Sequence[str] = ()) -> str:
    """Return the hint for a name in the place of a path: the visible objects of that name, and how a path is built.
    `kinds` are the kinds that the command takes; without it that of `--kind`, else all.
    """
    parts = path_parts(name)
    kinds = kinds or list(flag_values(typed.tokens, "--kind"))
    named_objects = objects_named(parts[0]) if len(parts) == 1 else ()
    fitting = [each for each in named_objects if not kinds or each.kind in kinds]
    if fitting and not typed.is_removal:
        again = [f"'{_with_word(typed, name, after=display.render(each.path))}'" for each in fitting]
        return f"{' or '.join(again)}: a path begins with its catalog"
    if named_objects:
        verbs = {"catalog": "list", "namespace": "list"}
        shows = [
            f"the {each.kind} '{typed.command(verbs.get(each.kind, 'show'), display.render(each.path))}'"
            for each in fitting or named_objects
        ]
        return f"of this name there is {', '.join(shows)}: a path begins with its catalog"
    find = f"'{typed.command('find', name or 'NAME')}' searches it, " if is_installed(("find",)) else ""
    return f"a path is catalog.namespace.name, with dots: {find}'{typed.command('list')}' lists catalogs"


def _with_word(typed: TypedCommand, before: str, *, after: str) -> str:
    """Return the typed command with another word in the place of the last one that is `before`."""
    at = max(index for index, token in enumerate(typed.tokens) if token == before)
    return TypedCommand([*typed.tokens[:at], after, *typed.tokens[at + 1 :]]).again()
