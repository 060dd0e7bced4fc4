# SPDX-License-Identifier: Apache-2.0
"""Hints for arguments that the client rejected before it sent a request."""

from __future__ import annotations

import re
import shlex

from limnos.cli.flags import filled_value
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.lookups import known_path
from limnos.cli.output import flag_values

_AMBIGUOUS_PATH = re.compile(r" is both a namespace and a (\w+); name its kind")
"""The message about an ambiguous path."""
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
    if "is not a readable PEM file" in message:
        return "name the certificate of the server's authority, or leave out --ca-file if a known authority signed it"
    if "is too short: give catalog.namespace" in message:
        if typed.words[:1] == ("files",):
            return f"'{typed.command('find', 'kind:fileset')}' lists the filesets: a path is catalog.namespace.fileset"
        if typed.words[:2] == ("create", "namespace"):
            name = typed.words[-1]
            known = known_path((name,))
            if known is not None and known.length:
                return f"'{typed.command('create', 'namespace', f'{name}.NAME')}'"
            return (
                f"'{typed.command('create', 'catalog', name)}' creates a catalog; in one:"
                f" '{typed.command('create', 'namespace', f'CATALOG.{name}')}'"
            )
        place = f"{typed.words[-1]}.NAME" if typed.words else "PATH"
        return f"'{typed.command(*typed.words[:-1], place)}'"
    return None
