# SPDX-License-Identifier: Apache-2.0
"""Command lines in the form of other tools are turned to ours, and lines in our form are left alone."""

from __future__ import annotations

import shlex

import pytest

from limnos.cli.grammar.other_forms import other_form


@pytest.mark.parametrize(
    "typed,expected",
    [
        ("-h 127.0.0.1 -p 8697 list", "list --uri http://127.0.0.1:8697"),
        ("list -h lake.example.org", "list --uri http://lake.example.org:8090"),
        ("server start --host 0.0.0.0 --port 8000", "server start --listen 0.0.0.0:8000"),
        ("psql -h 10.0.0.1 -p 5432", "sql"),
        ("tag -a v1 -m text main.raw.t", "set tag v1 main.raw.t"),
        pytest.param("describe table/trips", "find trips", marks=pytest.mark.room("search")),
        ("get user/ana", "show user ana"),
        ("delete table/main.raw.t --dry-run", "delete table main.raw.t --dry-run"),
        ("head -5 main.raw.t", "head main.raw.t --max-items 5"),
        ("tail main.raw.t -n20", "tail main.raw.t --max-items 20"),
        ("changes -5", "changes"),
        ("ls -1 main", "ls main"),
        ("tag --list", "list tags"),
        ("tag -d pii", "delete tag pii"),
        ("pipeline --run p.yaml", "pipeline run p.yaml"),
        ("group --add eng ana", "group add eng ana"),
    ],
)
def test_line_of_another_tool_is_turned_to_ours(typed: str, expected: str) -> None:
    """Host and port become the server's address, git's tag one of an object, kubectl's word two words, a number of
    lines the value of a flag, and a command with hyphens a word.
    """
    form = other_form(shlex.split(typed))

    assert form is not None
    assert shlex.join(form.tokens) == expected


@pytest.mark.parametrize(
    "typed",
    [
        "list -h",
        "-h list",
        "sql -h",
        "head main.raw.f --file 1/a.csv",
        "show main/raw",
        "create tag v1",
        "bulk a/b.json",
        "head main.raw.t --rows -5",
        "pipeline run p.yaml --param day=-5",
        "-5",
        "sql -- -5",
        "user --help",
        "audit --who ana",
    ],
)
def test_line_of_ours_is_left_alone(typed: str) -> None:
    """A question for help, words with slashes that name no kind, values of flags that begin with a hyphen, and flags
    of a group are not of another tool.
    """
    assert other_form(shlex.split(typed)) is None
