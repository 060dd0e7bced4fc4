# SPDX-License-Identifier: Apache-2.0
"""Completion: words of the grammar, names of the server, and silence when there are none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from limnos.cli import profiles
from limnos.cli.profiles import Profile
from tests.cli.conftest import Run
from tests.client.fake import FakeServer
from tests.client.test_session import free_port


def test_words_of_the_grammar_are_completed(run: Run) -> None:
    """Commands, kinds of a verb, commands of a group and flags are completed."""
    assert run("__complete", "cre").out == "create\n"
    assert "users" in run("__complete", "list", "").out.split()
    assert run("__complete", "restriction", "rem").out == "remove\n"
    assert "--output" in run("__complete", "list", "--o").out.split()


def test_names_of_the_server_are_completed(fake: FakeServer, run: Run) -> None:
    """Users complete the argument of a command on users."""
    fake.on("GET", "/api/metalakes/lake/users?details=true", {"users": [{"name": "ana", "roles": [], "enabled": True}]})

    done = run("__complete", "--uri", fake.uri, "--user", "ben", "show", "user", "a")

    assert (done.code, done.out, done.err) == (0, "ana\n", "")


def test_profiles_are_completed(run: Run) -> None:
    """The names of the stored profiles complete `--profile`, without a request."""
    own = Profile(uri="http://127.0.0.1:1", user="ben", token="lim_2_x", ends_at=9e9, refresh_token=None)
    profiles.update(os.environ, lambda known: known.put("prod", own).put("test", own))

    assert run("__complete", "list", "--profile", "p").out == "prod\n"


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


STUB = """#!/bin/sh
printf '%s\\n' "$@" > "$ASKED"
printf '%s\\n' main.raw 'main.`touch planted`' '*'
"""
"""A program `limnos` that notes its arguments, and answers with a plain name, one that a shell would run, and one that
it would expand.
"""
ASKING = {
    "bash": """source "$SCRIPT"
COMP_WORDS=(limnos show ma) COMP_CWORD=2
_limnos
printf '%s\\n' "${COMPREPLY[@]}"
""",
    "zsh": """compdef() { }
compadd() { print -rl -- "${(@q)found}" }
source "$SCRIPT"
words=(limnos show ma) CURRENT=3
_limnos
""",
    "fish": """source "$SCRIPT"
complete -C "limnos show ma" --escape
""",
}
"""How each shell is asked for completions in a script. Zsh's `compadd` quotes what it gets; here a function does."""
SHELLS = [shell for shell in ASKING if shutil.which(shell)]


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_completes_quoted_names(run: Run, tmp_path: Path, shell: str) -> None:
    """The shell gives the words to `limnos __complete`, and inserts names of which it runs and expands no part."""
    script, program = tmp_path / "script", tmp_path / "limnos"
    script.write_text(run("completion", shell).out)
    program.write_text(STUB)
    program.chmod(0o755)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "SCRIPT": str(script),
        "ASKED": str(tmp_path / "asked"),
    }

    done = subprocess.run(
        [shell, "-c", ASKING[shell]], capture_output=True, text=True, check=False, cwd=tmp_path, env=environ
    )

    assert (tmp_path / "asked").read_text().split() == ["__complete", "show", "ma"], done.stderr
    unquoted = subprocess.run(
        [shell, "-c", "printf '%s\\n' " + " ".join(done.stdout.splitlines())],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=environ,
    )
    names = {"main.raw", "main.`touch planted`"} if shell == "fish" else {"main.raw", "main.`touch planted`", "*"}
    assert set(unquoted.stdout.splitlines()) == names
    assert not (tmp_path / "planted").exists()
