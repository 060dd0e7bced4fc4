# SPDX-License-Identifier: Apache-2.0
"""The command line as hints read it: its words are separated from the values of its flags."""

from __future__ import annotations

import pytest

from limnos.cli import flags
from limnos.cli.command_tree import app
from limnos.cli.hints.typed_command import TypedCommand
from tests.cli.test_docs import commands_of


def test_switches_of_hints_equal_those_of_commands() -> None:
    """The set of flags without a value equals that of the commands. Otherwise hints would take a value for a path, or a
    path for a value.
    """
    switches = {
        name
        for _, command in commands_of(app)
        for argument in command.assemble_argument_collection(parse_docstring=True)
        for name in argument.names
        if name.startswith("--") and argument.token_count()[0] == 0
    }

    assert switches - flags.SWITCHES == set()


@pytest.mark.parametrize(
    "tokens,words",
    [
        (["delete", "--yes", "main.a"], ("delete", "main.a")),
        (["delete", "--uri", "http://h", "main.a", "--purge"], ("delete", "main.a")),
        (["list", "--metalake=sea", "main"], ("list", "main")),
    ],
)
def test_flag_values_are_not_command_words(tokens: list[str], words: tuple[str, ...]) -> None:
    """The value of a flag is not a word of the command, and a switch has no value."""
    assert TypedCommand(tokens).words == words
