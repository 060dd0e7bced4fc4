# SPDX-License-Identifier: Apache-2.0
"""docs/reference/cli.md describes every command, flag, exit code and environment variable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from limnos.cli.command_tree import app
from limnos.cli.failures import ExitCode
from limnos.client import Client
from limnos.client.flow import Resource

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")


def commands_of(tree: App, before: str = "") -> Iterator[tuple[str, App]]:
    """Yield the words of each command."""
    for name in tree:
        if name.startswith("-"):
            continue
        words = f"{before} {name}".strip()
        below = list(commands_of(tree[name], words))
        yield from below or [(words, tree[name])]


COMMANDS = dict(commands_of(app))


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_is_documented(words: str) -> None:
    """Every command is the beginning of a row of the page, and has a sentence of help."""
    table_row = re.search(rf"^\| `{words}\b[^`]*` \|", PAGE, flags=re.MULTILINE)

    assert table_row
    assert COMMANDS[words].help


@pytest.mark.parametrize("words", COMMANDS)
def test_every_flag_is_documented(words: str) -> None:
    """Every flag of every command is on the page, and has a help text."""
    arguments = list(COMMANDS[words].assemble_argument_collection(parse_docstring=True))
    flags = {name: argument for argument in arguments for name in argument.names if name.startswith("--")}

    assert [flag for flag in flags if not re.search(rf"`{flag}\b", PAGE)] == []
    assert [flag for flag, argument in flags.items() if not argument.parameter.help] == []


def test_every_exit_code_is_documented() -> None:
    """Each exit code has a row."""
    documented_codes = {int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, flags=re.MULTILINE)}

    assert documented_codes == {int(code) for code in ExitCode}


def test_every_variable_is_documented() -> None:
    """Each environment variable of the command line is on the page."""
    sources = Path(__file__).parents[2] / "src" / "limnos" / "cli"
    named = {
        name for file in sources.glob("*.py") for name in re.findall(r"LIMNOS_[A-Z]+(?:_[A-Z]+)*", file.read_text())
    }

    assert {name for name in named if f"`{name}`" not in PAGE} == set()


def test_every_client_resource_is_documented() -> None:
    """The page names the resources of the client, and no others."""
    resource_match = re.search(r"Resources: (.+?)\. ", PAGE, flags=re.DOTALL)
    with Client("http://127.0.0.1:1", user="ana") as client:
        resources = {name for name in dir(client) if isinstance(getattr(client, name), Resource)}

    assert resource_match
    declared = set(re.findall(r"\| `client\.(\w+)` \|$", PAGE, flags=re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", resource_match[1])) | declared == resources
