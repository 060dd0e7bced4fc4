# SPDX-License-Identifier: Apache-2.0
"""Slips of the pen in unit tests and selections: each answer has the place and what to type instead."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from limnos.cli.failures import ExitCode
from tests.cli.conftest import Run
from tests.rooms.pipelines.cli import slips

NO_SERVER = ("--uri", "http://127.0.0.1:9", "--away", "0")
FORBIDDEN = ("Traceback", "mismatched input", "extraneous input", "SQLSTATE", "py4j", "internal error")
"""Words of stack traces and of parsers."""


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each command in the directory of a pipeline whose tests are sound."""
    slips.write_pipeline(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a command that starts Spark."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("limnos.pipeline.engine.launch.session", refuse)


def test_corpus_has_thirty_slips_of_each_kind() -> None:
    """The corpus has at least 30 slips in tests, and 30 in selections."""
    in_tests = (slips.UNREADABLE, slips.WRONG_NAMES, slips.WRONG_VALUES, slips.DIFFERENT_ROWS, slips.WRONG_PLAIN)

    assert sum(map(len, in_tests)) >= 30
    assert len(slips.SELECTIONS) + len(slips.COMMANDS) >= 30


@pytest.mark.usefixtures("_no_spark")
@pytest.mark.parametrize("text, answer", slips.UNREADABLE.items())
def test_unreadable_test_is_answered_without_spark(run: Run, tmp_path: Path, text: str, answer: str) -> None:
    """`test` refuses tests that cannot be read. The message has file, line and column, and what to write."""
    slips.write_pipeline(tmp_path, text)

    done = run("pipeline", "test", "shop.yaml", "--output", "json")

    assert done.code == ExitCode.USAGE
    message = str(done.error["message"])
    line, _, rest = answer.partition(":")
    expected = f"shop.yaml:{int(line) + slips.LINE - 1}:{rest}" if line.isdigit() else answer
    assert expected.replace("in line 1 ", f"in line {slips.LINE} ") in message
    assert message.startswith(("shop.yaml:", "tests/"))
    assert not any(word in message for word in FORBIDDEN)


@pytest.mark.usefixtures("_no_spark")
@pytest.mark.parametrize("text, answer", slips.SELECTIONS.items())
@pytest.mark.parametrize("command", ["run", "test"])
def test_wrong_selection_is_answered_without_spark(run: Run, command: str, text: str, answer: str) -> None:
    """`run` and `test` refuse a wrong selection before Spark starts. The message has the flag and its word."""
    server = NO_SERVER if command == "run" else ()

    done = run("pipeline", command, "shop.yaml", f"--select={text}", *server, "--output", "json")

    assert done.code == ExitCode.USAGE
    message = str(done.error["message"])
    assert message.startswith(f"--select '{text}'" if text else "--select: ")
    assert answer in message


@pytest.mark.usefixtures("_no_spark")
@pytest.mark.parametrize("words, answer", slips.COMMANDS.items())
def test_wrong_command_is_answered_with_the_right_one(run: Run, words: str, answer: tuple[str, str]) -> None:
    """Words in a wrong place, lost quotes and wrong names of tests are answered by the command to type."""
    done = run("pipeline", *shlex.split(words), "--output", "json")

    message, hint = answer
    assert done.code == ExitCode.USAGE
    assert message in str(done.error["message"])
    assert str(done.error.get("hint", "")).replace(" --output json", "").startswith(hint)


@pytest.mark.integration
def test_check_reports_wrong_names_of_all_tests_at_once(run: Run, tmp_path: Path) -> None:
    """`check` finds wrong inputs, columns, parameters and keys of all tests in one pass, without data and a session."""
    named = {f"t{number:02}": text for number, text in enumerate(slips.WRONG_NAMES)}
    slips.write_pipeline(
        tmp_path, "\n".join(f"{name}: {text}" for name, text in named.items()), python=slips.WRONG_PYTHON
    )

    done = run("pipeline", "check", "shop.yaml", "--offline", "--output", "json")

    problems = json.loads(done.out)["problems"]
    by_line = {one["line"]: one for one in problems}
    lines = (tmp_path / "shop.yaml").read_text().splitlines()
    assert done.code == ExitCode.USAGE
    assert len(problems) == len(slips.WRONG_NAMES) + 1
    for number, (name, (word, answer)) in enumerate(zip(named, slips.WRONG_NAMES.values(), strict=True), slips.LINE):
        problem = by_line[number]
        assert problem["message"].startswith(f"marts.sums, test '{name}': ")
        assert answer in problem["message"]
        assert problem["column"] == (lines[number - 1].rindex(word) + 1 if word else 7)
    assert problems[-1]["message"] == slips.WRONG_PYTHON_ANSWER


@pytest.mark.integration
@pytest.mark.spark
def test_values_and_rows_are_judged_in_one_session(tmp_path: Path) -> None:
    """`test` names the row of a value that its column cannot have, shows rows that differ, and never a stack trace."""
    tests = {
        f"{kind}{number:02}": f"{{{text}}}"
        for kind, texts in (("v", slips.WRONG_VALUES), ("d", slips.DIFFERENT_ROWS))
        for number, text in enumerate(texts)
    }
    text = "\n".join(f"{name}: {body}" for name, body in tests.items())
    slips.write_pipeline(tmp_path, text, more="\n".join(slips.WRONG_PLAIN))

    command = [str(Path(sys.executable).with_name("limnos")), "pipeline", "test", "shop.yaml", "--output", "json"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    results = {one["test"]: one for one in json.loads(done.stdout)}
    assert done.returncode == ExitCode.USAGE
    assert not any(word in done.stdout + done.stderr for word in FORBIDDEN)
    for number, answer in enumerate(slips.WRONG_VALUES.values()):
        one = results[f"v{number:02}"]
        place = f"{one['at']['file']}:{one['at']['line']}:{one['at']['column']}: "
        assert one["state"] == "invalid", one
        assert answer in place + one["message"]
    for number, kinds in enumerate(slips.DIFFERENT_ROWS.values()):
        one = results[f"d{number:02}"]
        assert [each["row"] for each in one["differences"]] == kinds
    for written, (state, answer) in slips.WRONG_PLAIN.items():
        one = results[written.partition(":")[0]]
        assert (one["state"], answer in one["message"]) == (state, True), one
    assert results["of ranked"]["state"] == "passed"
