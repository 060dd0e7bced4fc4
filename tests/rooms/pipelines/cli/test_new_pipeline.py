# SPDX-License-Identifier: Apache-2.0
"""`create pipeline` writes a file to begin with, which a check accepts, and overwrites nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.pipeline.file import load
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty directory, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIMNOS_OUTPUT", "table")
    return tmp_path


@pytest.mark.parametrize(
    "file,name,steps",
    [
        ("shop.yaml", "shop", ["shop.orders", "shop.customers"]),
        ("My shop.yml", "my_shop", ["my_shop.orders", "my_shop.customers"]),
        ("7.yaml", "pipeline_7", ["pipeline_7.orders", "pipeline_7.customers"]),
        ("lab.yaml", "lab", ["lab_tables.orders", "lab_tables.customers"]),
    ],
)
def test_written_file_declares_a_pipeline_of_its_name(run: Run, file: str, name: str, steps: list[str]) -> None:
    """The file declares a pipeline with the file's name in the catalog that was named."""
    written = run("create", "pipeline", file, "--catalog", "lab")
    pipeline = load(Path(file))

    assert (written.code, written.out.split(":")[0]) == (0, f"wrote pipeline {name} to {file}")
    assert (pipeline.name, pipeline.catalog, [step.name for step in pipeline.steps]) == (name, "lab", steps)


def test_check_of_the_written_file_has_no_problems(run: Run) -> None:
    """Names, queries, columns and types of the written pipeline pass the check."""
    run("create", "pipeline", "shop.yaml")

    done = run("pipeline", "check", "shop.yaml", "--offline", "--no-helper")

    assert (done.code, done.out.splitlines()[-1]) == (0, "no problems found as far as was checked")


def test_existing_file_is_not_overwritten(run: Run, directory: Path) -> None:
    """A file that exists keeps its content, and the answer names the command that checks it."""
    (directory / "shop.yaml").write_text("mine")
    done = run("pipeline", "init", "shop.yaml")

    assert (directory / "shop.yaml").read_text() == "mine"
    assert (done.code, done.err.splitlines()) == (
        2,
        [
            "error: shop.yaml exists, and is not overwritten",
            "  next: give another name, or 'limnos pipeline check shop.yaml'",
        ],
    )


@pytest.mark.parametrize(
    "file,message,hint",
    [
        ("shop", "the file of a pipeline ends in .yaml, and shop does not", "'limnos create pipeline shop.yaml'"),
        ("a/b.yaml", "there is no directory a", "'mkdir -p a'"),
        (
            "p.py",
            "a pipeline in Python is written by hand: the documentation has one (start/pipelines)",
            "'limnos create pipeline p.yaml'",
        ),
    ],
)
def test_refused_file_is_answered_by_the_command_to_type(
    run: Run, directory: Path, file: str, message: str, hint: str
) -> None:
    """A file without an ending, in Python, or in a missing directory is not written."""
    done = run("create", "pipeline", file)

    assert (done.code, done.err) == (2, f"error: {message}\n  next: {hint}\n")
    assert list(directory.iterdir()) == []
