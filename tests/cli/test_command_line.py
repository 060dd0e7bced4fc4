# SPDX-License-Identifier: Apache-2.0
"""Options before a group's command, and environment variables with unknown names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import limnos
from limnos.cli.command_line import VARIABLES, misspelt_variables
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

SOURCE = Path(limnos.__file__).parent


@pytest.mark.parametrize(
    "words",
    [
        ("user", "list", "--output", "json"),
        ("user", "--output", "json", "list"),
        ("user", "--output=json", "list"),
        ("user", "--metalake", "lake", "list", "--output", "json"),
    ],
    ids=str,
)
def test_options_are_accepted_before_and_after_group_command(
    fake: FakeServer, limnos: Run, words: tuple[str, ...]
) -> None:
    """Options before and after a group's command send the same request and give the same output."""
    fake.on("GET", "/api/metalakes/lake/users?details=true", {"users": []})

    done = limnos(*words)

    assert (done.code, done.result) == (0, [])


@pytest.mark.parametrize(
    "words, hint",
    [
        (("access", "--output", "table"), "limnos access explain --output table"),
        (("user", "secret", "--output", "json"), "limnos user secret"),
    ],
    ids=str,
)
def test_group_options_without_command_list_the_commands(run: Run, words: tuple[str, ...], hint: str) -> None:
    """Options of a group without a command are a usage error that names the group's commands, not an unknown
    command.
    """
    done = run(*words)

    assert done.code == 2
    assert "options come after a command of" in done.err
    assert hint in done.err
    assert "nknown command" not in done.err


def test_group_help_works_in_any_position(run: Run) -> None:
    """`--help` in any position shows the group's help page."""
    assert run("access", "--help").code == 0
    assert run("access", "--output", "table", "--help").code == 0


def test_misspelled_variable_causes_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unread variable causes a warning with the nearest name, and the command continues. Variables that resemble no
    name are ignored.
    """
    monkeypatch.setenv("LIMNOS_URL", "http://elsewhere")
    monkeypatch.setenv("LIMNOS_BACKUP_DIRECTORY", "x")

    done = run("--version")

    assert done.code == 0
    assert done.err == "warning: the environment variable LIMNOS_URL is not read: did you mean LIMNOS_URI?\n"
    assert misspelt_variables({"LIMNOS_TOKENFILE": "", "LIMNOS__SERVER__DATE": "", "LIMNOS_TEST_URI": ""}) == [
        "the environment variable LIMNOS_TOKENFILE is not read: did you mean LIMNOS_TOKEN_FILE?"
    ]


def test_variables_read_by_the_sources_cause_no_warning() -> None:
    """No variable that the sources name is reported as unread."""
    texts = [file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py") if file.name != "words.py"]
    named = {name for text in texts for name in re.findall(r"\bLIMNOS_[A-Z][A-Z_]*[A-Z]\b", text)}

    assert {name for name in named if misspelt_variables({name: ""})} == set()
    assert {"LIMNOS_URI", "LIMNOS_TOKEN"} <= named & VARIABLES
