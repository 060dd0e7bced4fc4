# SPDX-License-Identifier: Apache-2.0
"""Progress of steps, on a terminal and elsewhere."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark import SparkContext
from rich.console import Console

from examples.demo.progress import StepProgress, TaskCounts, active_tasks


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    """A console that writes to memory."""
    out = io.StringIO()
    return Console(file=out, force_terminal=terminal, width=100), out


def test_steps_are_plain_lines_off_a_terminal() -> None:
    """Without a terminal every step is one line with number, outcome, title and note, and no control codes."""
    to, out = console()

    with StepProgress(2, console=to) as progress:
        with progress.step("load [raw]") as step:
            step.note = "5 rows"
        with progress.step("join"):
            pass

    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(" 1/2 done")
    assert lines[0].endswith("load [raw]  5 rows")
    assert "\x1b" not in out.getvalue()


def test_failed_step_is_printed_and_error_reraised() -> None:
    """A step whose body raises is printed as failed, and the error is raised again."""
    to, out = console()

    with pytest.raises(ValueError, match="no"), StepProgress(1, console=to) as progress, progress.step("try"):
        raise ValueError("no")

    assert "1/1 failed" in out.getvalue()


def test_finished_steps_are_remembered_in_order() -> None:
    """Titles and times of all steps are recorded for the report."""
    to, _ = console()

    with StepProgress(2, console=to) as progress:
        for title in ("a", "b"):
            with progress.step(title):
                pass

    assert [step.title for step in progress.finished] == ["a", "b"]
    assert all(step.elapsed_s >= 0 for step in progress.finished)


def test_terminal_shows_progress_bar() -> None:
    """On a terminal the running step is drawn with its number."""
    to, out = console(terminal=True)

    with StepProgress(3, console=to) as progress, progress.step("first"):
        progress._bar.refresh()

    assert "1/3 first" in out.getvalue()


def test_active_tasks_adds_up_all_stages_of_all_jobs() -> None:
    """Tasks of every known stage of every active job are counted; forgotten jobs and stages are omitted."""
    stages = {1: SimpleNamespace(numTasks=4, numCompletedTasks=3), 2: SimpleNamespace(numTasks=6, numCompletedTasks=0)}
    jobs = {7: SimpleNamespace(stageIds=[1, 99]), 8: SimpleNamespace(stageIds=[2])}
    tracker = SimpleNamespace(getActiveJobsIds=lambda: [7, 8, 9], getJobInfo=jobs.get, getStageInfo=stages.get)
    context = cast("SparkContext", SimpleNamespace(statusTracker=lambda: tracker))

    counts = active_tasks(context)

    assert counts == TaskCounts(done=3, total=10)
    assert counts.share == 0.3


def test_share_is_zero_without_tasks() -> None:
    """Before Spark knows any task, the share is zero, not an error."""
    assert TaskCounts().share == 0.0
