# SPDX-License-Identifier: Apache-2.0
"""Commands in messages can be copied into a shell."""

from __future__ import annotations

import shlex

import pytest

from limnos.cli.hints.quoted_commands import with_plain_commands


@pytest.mark.parametrize(
    "text,expected",
    [
        ("'limnos list main' lists it", "'limnos list main' lists it"),
        ("'limnos list 'main.`my sp`'' lists it", "limnos list 'main.`my sp`' lists it"),
        ("'limnos set main.`my sp` --comment TEXT', or --tag", "limnos set 'main.`my sp`' --comment TEXT, or --tag"),
        (
            "did you mean 'limnos show 'main.`a b`''? 'limnos list main' lists all",
            "did you mean limnos show 'main.`a b`'? 'limnos list main' lists all",
        ),
        ("'limnos ask \"show tables\"' lists them", "'limnos ask \"show tables\"' lists them"),
        ("limnos sql -c 'select 1;'", "limnos sql -c 'select 1;'"),
        ("'limnos find 'it'\"'\"'s here'' finds it", "limnos find 'it'\"'\"'s here' finds it"),
        ("'limnos list main lists it", "'limnos list main lists it"),
        ("it's 'limnos '", "it's 'limnos '"),
    ],
)
def test_command_with_quotes_stands_without_quotes_around_it(text: str, expected: str) -> None:
    """A command whose arguments have quotes or back-quotes is printed as a shell takes it; others stay in quotes."""
    assert with_plain_commands(text) == expected
    assert with_plain_commands(expected) == expected


@pytest.mark.parametrize("path", ["main.a.t", "main.`my sp`.`t 1`", "main.`it's`", "main.`a``b`", "main.`svc-etl`"])
def test_printed_command_has_the_arguments_that_were_meant(path: str) -> None:
    """A shell reads the printed command as its program and arguments, whatever the path."""
    command = shlex.join(["limnos", "show", path, "--kind", "table"])

    printed = with_plain_commands(f"'{command}'")

    assert shlex.split(printed if printed[0] != "'" else printed[1:-1]) == ["limnos", "show", path, "--kind", "table"]
