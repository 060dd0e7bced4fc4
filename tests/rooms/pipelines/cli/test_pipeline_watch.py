# SPDX-License-Identifier: Apache-2.0
"""`pipeline watch`: a check at each save, a line each, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from limnos.rooms.pipelines.cli.helper.client import ENTRY
from limnos.rooms.pipelines.cli.pipeline_watch import check_tokens, file_states, problem_lines, summary
from tests.cli.conftest import Run

WRONG = "pipeline: p\ncatalog: main\nsteps: {a.t: {sqll: SELECT 1}\n"
OTHER = "pipeline: p\ncatalog: main\nsteps: {a.t: }}\n"


def test_check_has_the_flags_of_watch_and_answers_in_json() -> None:
    """All words but the command and the output format are passed on to the check."""
    words = [
        "pipeline",
        "watch",
        "watch",
        "--env",
        "dev",
        "--output",
        "table",
        "--output=csv",
        "--no-helper",
        "--offline",
        "--helper",
    ]

    assert check_tokens(tuple(words)) == ("pipeline", "check", "--output", "json", "watch", "--env", "dev", "--offline")


@pytest.mark.parametrize(
    "document, words",
    [
        ({"problems": [{"message": "m"}]}, "1 problem"),
        ({"problems": [{"message": "m"}] * 2}, "2 problems"),
        ({"problems": [], "missing": [], "unchecked": ["x"]}, "no problems found as far as was checked"),
        ({"problems": [], "missing": [{"on": "a"}], "unchecked": []}, "no mistakes; 1 missing right"),
        ({"error": "no server"}, "not checked: no server"),
    ],
)
def test_result_is_a_few_words(document: dict[str, object], words: str) -> None:
    """A check's result is a few words, also a check that failed."""
    assert summary(document) == words


def test_each_mistake_and_missing_right_has_a_line() -> None:
    """A mistake has its place if it has one; a missing right has the table and what it is needed for."""
    document: dict[str, object] = {
        "problems": [{"message": "m", "file": "p.yaml", "line": 3, "column": 4}, {"message": "n"}],
        "missing": [{"on": "main.a.t", "needed_for": "read", "grants": []}],
    }

    assert problem_lines(document) == ["p.yaml:3:4: m", "n", "you may not read main.a.t"]


def test_saved_files_beside_the_pipeline_are_noticed(tmp_path: Path) -> None:
    """Changed, replaced and new files that a pipeline may use are noticed; caches and other files are not."""
    file, query = tmp_path / "p.yaml", tmp_path / "sql" / "q.sql"
    query.parent.mkdir()
    file.write_text(WRONG)
    query.write_text("SELECT 1")
    states = [file_states(file)]
    for path in (tmp_path / "notes.txt", tmp_path / "__pycache__" / "m.py", tmp_path / ".git" / "x.py"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("1")
    states.append(file_states(file))
    (tmp_path / "new").write_text("SELECT 2")
    (tmp_path / "new").rename(query)
    states.append(file_states(file))
    (tmp_path / "customers.py").write_text("")
    states.append(file_states(file))
    file.unlink()
    states.append(file_states(file))

    assert states[0] == states[1]
    assert len({str(each) for each in states}) == 4


def test_absent_file_is_a_wrong_argument(run: Run, tmp_path: Path) -> None:
    """A file that does not exist is refused at once."""
    result = run("pipeline", "watch", str(tmp_path / "no.yaml"), "--output", "table")

    assert result.code == 2
    assert f"there is no file {tmp_path / 'no.yaml'}" in result.err


@pytest.mark.slow
def test_watch_checks_at_each_save_until_it_is_interrupted(tmp_path: Path) -> None:
    """Each save is a check with all of its mistakes; only a terminal is cleared. Ctrl-C ends it with exit code 0."""
    file = tmp_path / "p.yaml"
    file.write_text(WRONG)
    command = [sys.executable, "-c", ENTRY, "pipeline", "watch", "p.yaml", "--offline", "--no-helper"]
    with subprocess.Popen(
        [*command, "--output", "table"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=_environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - background jobs ignore SIGINT
    ) as process:
        assert process.stdout is not None
        guard = threading.Timer(120, process.kill)
        guard.start()
        lines = [process.stdout.readline() for _ in range(2)]
        (tmp_path / "new").write_text(OTHER)
        (tmp_path / "new").rename(file)
        lines += [process.stdout.readline() for _ in range(2)]
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        rest, code = process.stdout.read(), process.wait(30)
        guard.cancel()

    assert [line.partition("  ")[2].partition(" (")[0] for line in lines[::2]] == ["p.yaml: 1 problem"] * 2
    assert [line.startswith("p.yaml:") for line in lines[1::2]] == [True, True]
    assert lines[1] != lines[3]
    assert (rest, code) == ("", 0)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LIMNOS_")}
