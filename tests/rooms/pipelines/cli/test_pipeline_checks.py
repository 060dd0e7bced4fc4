# SPDX-License-Identifier: Apache-2.0
"""`pipeline check`, `plan` and `schema`: their output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from limnos.cli.failures import ExitCode
from limnos.pipeline.engine.preview import StepPreview
from limnos.pipeline.file import schema_text
from limnos.rooms.pipelines.cli import pipeline_checks
from tests.cli.conftest import Run

pytestmark = pytest.mark.slow

WRONG = "pipeline: p\ncatalog: main\nsteps: {a.t: {sqll: SELECT 1}}\n"
RIGHT = "pipeline: p\ncatalog: main\nsources: {x: data/*.csv}\nsteps: {a.t: {load: x, write: append}}\n"
NOBODY = "http://127.0.0.1:9"


def _written(directory: Path, text: str) -> str:
    path = directory / "p.yaml"
    path.write_text(text)
    return str(path)


def test_the_schema_is_printed_as_it_is_committed(run: Run) -> None:
    """`pipeline schema` prints the committed JSON schema unchanged, so that editors can use it."""
    command_result = run("pipeline", "schema")

    assert (command_result.code, command_result.out) == (0, schema_text())


@pytest.mark.parametrize("command", ["check", "plan"])
def test_problems_of_a_file_have_line_and_column(run: Run, tmp_path: Path, command: str) -> None:
    """Problems have file, line and column, as lines for people and as fields in JSON. The exit code is that of a usage
    error.
    """
    file = _written(tmp_path, WRONG)

    table = run("pipeline", command, file, "--uri", NOBODY, "--output", "table")
    document = run("pipeline", command, file, "--uri", NOBODY, "--output", "json").result

    assert table.code == ExitCode.USAGE
    assert table.out.splitlines()[0] == f"{file}:3:14: a step needs one of sql, sql_file, python, load"
    assert isinstance(document, dict)
    assert document["problems"][1] == {
        "message": "unknown key 'sqll'; did you mean 'sql'?",
        "file": file,
        "line": 3,
        "column": 15,
    }


def test_unreachable_server_skips_only_the_checks_that_need_it(run: Run, tmp_path: Path) -> None:
    """If the server does not answer, the other checks run, and the output names the checks that did not."""
    command_result = run("pipeline", "check", _written(tmp_path, RIGHT), "--uri", NOBODY, "--output", "json")

    document = json.loads(command_result.out)
    assert command_result.code == 0
    assert document["holds"]
    assert document["unchecked"][0].startswith(f"tables and rights: no server answers at {NOBODY}")
    assert document["steps"][0] | {"reads": []} == {
        "name": "a.t",
        "level": 1,
        "write": "append",
        "new": False,
        "format": "iceberg",
        "reads": [],
        "aside": [],
    }


def test_sources_without_files_are_reported(run: Run, tmp_path: Path) -> None:
    """Sources that match no files are reported, because a run would fail; sources with files are not."""
    file = _written(tmp_path, RIGHT)
    before = run("pipeline", "check", file, "--uri", NOBODY, "--output", "json")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("a\n1\n")
    after = run("pipeline", "check", file, "--uri", NOBODY, "--output", "json")

    assert (before.code, after.code) == (0, 0)
    assert json.loads(before.out)["unchecked"][1:] == [
        f"source x: there is no file data/*.csv in {tmp_path}; a run without it fails"
    ]
    assert len(json.loads(after.out)["unchecked"]) == 1


def test_plan_counts_refused_steps_and_fails(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a step is refused, the last line counts the refused steps, and the exit code is that of an invalid file."""
    refused = {"a.t": StepPreview(step="a.t", refused="no such column")}
    monkeypatch.setattr(pipeline_checks, "_previews", lambda _file, result, **_more: (result, refused, {}))
    monkeypatch.setattr(pipeline_checks, "_can_compare_columns", lambda _check_result: True)

    command_result = run("pipeline", "plan", _written(tmp_path, RIGHT), "--uri", NOBODY, "--output", "table")

    assert command_result.code == ExitCode.USAGE
    assert command_result.out.splitlines()[-1] == "1 step is refused"
    assert "no problems found" not in command_result.out


def test_plan_without_a_server_shows_the_declaration_only(run: Run, tmp_path: Path) -> None:
    """Without a server the plan shows the declaration only and does not start Spark."""
    command_result = run("pipeline", "plan", _written(tmp_path, RIGHT), "--uri", NOBODY, "--output", "table")

    assert command_result.code == 0
    assert command_result.out.splitlines()[:3] == [
        "pipeline p: 1 step, tables in catalog main",
        "1. a.t (append)",
        "     reads source x: files data/*.csv, csv",
    ]


def test_plan_names_changed_steps_that_are_left_out(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `--exclude` leaves out each changed step, the plan names these, and does not say that none has changed."""
    monkeypatch.setattr("limnos.pipeline.modified_steps.modified_steps", lambda *_args, **_more: {"a.t": "its text"})
    words = ("pipeline", "plan", _written(tmp_path, RIGHT), "--select", "state:modified", "--exclude", "a.t")

    lines = run(*words, "--uri", NOBODY, "--output", "table").out.splitlines()

    assert "no changed step is selected (changed: a.t): a run would do nothing" in lines


@pytest.mark.parametrize(
    "reasons, line",
    [
        ({"a.t": "its text changed"}, "     changed: its text changed"),
        ({}, "no step has changed since it was published: a run would do nothing"),
    ],
)
def test_plan_names_changes_of_selected_steps(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reasons: dict[str, str], line: str
) -> None:
    """A plan of `state:modified` shows the reason of each selected step, or that no step has changed."""
    monkeypatch.setattr("limnos.pipeline.modified_steps.modified_steps", lambda *_args, **_more: reasons)
    words = ("pipeline", "plan", _written(tmp_path, RIGHT), "--select", "state:modified", "--uri", NOBODY)

    table = run(*words, "--output", "table")
    document = run(*words, "--output", "json").result

    assert (table.code, line in table.out.splitlines()) == (0, True)
    assert isinstance(document, dict)
    assert (document["changed"], len(document["steps"])) == (reasons, len(reasons))
