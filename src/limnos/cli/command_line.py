# SPDX-License-Identifier: Apache-2.0
"""Corrections of a command line before it is parsed: options between a group and its command, misspelt variables.

May import cyclopts and this package. Runs no command.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cyclopts import App

from limnos.cli.failures import UsageError

VARIABLES: Final = frozenset(
    "LIMNOS_" + tail
    for tail in (
        "URI", "USER", "TOKEN", "TOKEN_FILE", "OUTPUT", "PROFILES", "CA_FILE", "METALAKE", "SQL_HISTORY", "SPARK_MASTER", "SPARK_CONNECT", "JOB_ID",
        "FAULT", "FAULT_FILE",
    )
)  # fmt: skip
"""Environment variables that Limnos reads. Settings begin with `LIMNOS__`; `config` checks them."""
_OWN: Final = tuple(f"LIMNOS_{word}" for word in ("_", "TEST_"))
_HELP: Final = ("-h", "--help", "--version")


def misspelt_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each unknown variable whose name is similar to a known one, in the order of names."""
    tails = {name.removeprefix("LIMNOS_"): name for name in sorted(VARIABLES)}
    names = []
    for name in sorted(environ):
        if name in VARIABLES or not name.startswith("LIMNOS_") or name.startswith(_OWN):
            continue
        near = difflib.get_close_matches(name.removeprefix("LIMNOS_"), tails, n=1, cutoff=0.6)
        if near:
            names.append(f"the environment variable {name} is not read: did you mean {tails[near[0]]}?")
    return names


def command_first(tokens: Sequence[str], tree: App) -> list[str]:
    """Move a group's command before options written between the two, as in `limnos access --output table explain`.

    The command is the first word that is a command of the group. Raises UsageError for options of a group without a
    command.
    """
    done: list[str] = []
    rest = list(tokens)
    while rest and rest[0] in tree and not rest[0].startswith("-"):
        tree = tree[rest[0]]
        done.append(rest.pop(0))
        if not rest or not rest[0].startswith("-") or rest[0] in _HELP:
            continue
        known = commands_of(tree)
        if not known:
            break
        at = next((number for number, word in enumerate(rest) if word in known), None)
        if at is None and not any(word in _HELP for word in rest):
            raise UsageError(
                f"options come after a command of 'limnos {' '.join(done)}': {', '.join(known)}",
                hint=f"'limnos {' '.join(done)} {known[0]} {' '.join(rest)}'",
            )
        if at is not None:
            rest = [rest[at], *rest[:at], *rest[at + 1 :]]
    return [*done, *rest]


def commands_of(tree: App) -> list[str]:
    """Return the names of a group's commands; empty for a command, or for a group that is itself a command."""
    if tree.default_command is not None:
        return []
    return [word for word in _words(tree) if not word.startswith("-")]


def _words(tree: App) -> Iterable[str]:
    return iter(tree)
