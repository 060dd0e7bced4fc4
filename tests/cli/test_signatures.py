# SPDX-License-Identifier: Apache-2.0
"""The table of commands' arguments and flags, and proposals that are corrected by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from cyclopts import App

from limnos.cli.command_tree import build
from limnos.cli.grammar.reading import answers
from limnos.cli.signatures import COMMON, LIST_FLAGS, signature_of


def commands(app: App, words: Sequence[str] = ()) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], int, set[str]]]:
    """Yield the words of each command of the parser, its arguments, the number of required ones, and its flags."""
    if app.default_command is not None and words:
        arguments: list[tuple[str, bool]] = []
        flags: set[str] = set()
        for each in app.assemble_argument_collection():
            if each.name.startswith("-"):
                flags |= {name for name in each.names if name not in COMMON and not name.startswith("--no-")}
            elif each.name != "*":
                arguments.append((each.name + ("..." if each.token_count()[1] else ""), each.required))
        yield tuple(words), tuple(name for name, _ in arguments), sum(each for _, each in arguments), flags
    for name in app:
        if not name.startswith("-"):
            yield from commands(app[name], (*words, name))


@pytest.mark.slow
def test_table_has_the_arguments_and_flags_of_each_command() -> None:
    """The table of signatures equals the parser's commands, beside the flags of lists."""
    for words, arguments, required, flags in commands(build()):
        signature = signature_of(words)
        assert signature is not None, words
        known = signature.flags - LIST_FLAGS
        assert (signature.words, signature.arguments, signature.required) == (words, arguments, required)
        assert known == flags - LIST_FLAGS, words


@pytest.mark.parametrize(
    "typed,expected",
    [
        ("list catalogs --all-namespaces", "'limnos list catalogs' (it has no --all-namespaces)"),
        ("show table main.raw.trips -o json", "'limnos show table main.raw.trips --output json'"),
        ("access holders get table main.raw", "'limnos access holders main.raw'"),
        ("list namespaces --catalog main", "'limnos list namespaces main'"),
        ("delete --all", "'limnos delete PATH' (it has no --all)"),
        ("create restriction eu", "'limnos create restriction eu PATH'"),
        ("list main.raw -l", "'limnos list main.raw -l'"),
        ("get tables main.raw", "'limnos list tables main.raw'"),
    ],
)
def test_proposal_becomes_a_command_that_is_taken(typed: str, expected: str) -> None:
    """Flags of other tools become ours, become arguments or are left out; missing arguments have their names."""
    assert answers.propose(typed.split()) == expected
