# SPDX-License-Identifier: Apache-2.0
"""The help page of the program, and those of the verbs.

Prints plain text and imports no parser, so that help is there at once. The pages of other commands are the parser's.
"""

from __future__ import annotations

from itertools import groupby

from limnos.cli.grammar.spelling import spell_operation
from limnos.cli.operations import COMMANDS, OPERATIONS, VERB_ALIASES, VERBS, Operation

_INTRODUCTION = """limnos VERB [KIND] PATH, or limnos GROUP COMMAND …

A metadata lake: one governed tree of names for lakehouse data."""

_END = """A path is catalog.namespace.table, as main.raw.nyc.flights, back-quotes around parts with special characters.
Options stand anywhere: --output table|json|csv, --uri URL, --user NAME, --token-file FILE; lists take --columns a,b
and --wide. Start with 'limnos server start', then 'limnos list'. 'limnos COMMAND --help' explains a command, and what
you type wrongly is answered with the command to type."""


def program_page() -> str:
    """Return the page of `limnos --help`."""
    lines = [_INTRODUCTION, ""]
    for topic, entries in groupby(COMMANDS.items(), key=lambda entry: entry[1].topic):
        lines += [f"{topic}:", *(f"  {name:<12} {entry.summary}" for name, entry in entries), ""]
    return "\n".join([*lines, _END])


def verb_page(verb: str) -> str:
    """Return the operations of a verb, for the page of `limnos VERB --help`; empty for another command."""
    if verb not in VERBS:
        return ""
    aliases = [alias for alias, name in VERB_ALIASES.items() if name == verb]
    lines = [f"limnos {verb} KIND …" + (f", also written '{aliases[0]}'" if aliases else ""), ""]
    rows = [each for each in OPERATIONS if each.verb == verb]
    width = max(len(spell_operation(each)) for each in rows)
    lines += [f"  {spell_operation(each):<{width}}  {_same(each)}".rstrip() for each in rows]
    return "\n".join([*lines, "", f"'limnos {verb} KIND --help' explains the arguments of one."])


def _same(operation: Operation) -> str:
    """Return the command that performs an operation, if it has another spelling."""
    command = f"limnos {operation.command}"
    return "" if spell_operation(operation).startswith(command) else f"= {command}"
