# SPDX-License-Identifier: Apache-2.0
"""Completion: words of the grammar, names of the server, and silence when there are none."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer
from tests.client.test_session import free_port


def test_words_of_the_grammar_are_completed(run: Run) -> None:
    """Commands, kinds of a verb, commands of a group and flags are completed."""
    assert run("__complete", "cre").out == "create\n"
    assert "users" in run("__complete", "list", "").out.split()
    assert run("__complete", "pipeline", "pub").out == "publish\n"
    assert "--output" in run("__complete", "list", "--o").out.split()


def test_names_of_the_server_are_completed(fake: FakeServer, run: Run) -> None:
    """Users complete the argument of a command on users."""
    fake.on("GET", "/api/metalakes/lake/users?details=true", {"users": [{"name": "ana", "roles": [], "enabled": True}]})

    done = run("__complete", "--uri", fake.uri, "--user", "ben", "show", "user", "a")

    assert (done.code, done.out, done.err) == (0, "ana\n", "")


def test_failure_is_silent(run: Run) -> None:
    """Without a server nothing is printed, and the exit code is 0."""
    done = run("__complete", "--uri", f"http://127.0.0.1:{free_port()}", "show", "main.")

    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_printed_for_each_shell(run: Run, shell: str) -> None:
    """Each shell has a script that calls the hidden command; bash accepts its syntax."""
    script = run("completion", shell).out

    assert "limnos __complete" in script
    if shell == "bash" and (program := shutil.which("bash")):
        assert subprocess.run([program, "-n"], input=script, text=True, check=False).returncode == 0
