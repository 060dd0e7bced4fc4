# SPDX-License-Identifier: Apache-2.0
"""Progress of Spark work: a bar on a terminal, plain lines elsewhere.

Job: announce steps, and inside a step show Spark's own task counts, polled from a thread. May import rich and PySpark's
types. It must not know the work of the steps.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Tasks of the active Spark jobs: the number of done tasks, and of known ones."""

    done: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        """Between 0 and 1; 0 if no task is known."""
        return self.done / self.total if self.total else 0.0


@dataclass(slots=True)
class Step:
    """One step of a run: `note` is printed when it ends; `elapsed_s` is set at its end."""

    title: str
    note: str = ""
    elapsed_s: float = 0.0


def active_tasks(context: SparkContext) -> TaskCounts:
    """Count the tasks of all active jobs of `context`, without stages that Spark has forgotten."""
    tracker = context.statusTracker()
    done = total = 0
    for job_id in tracker.getActiveJobsIds():
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                done += stage.numCompletedTasks
                total += stage.numTasks
    return TaskCounts(done=done, total=total)


class StepProgress:
    """Progress over a known number of steps. Use as a context manager; one step at a time.

    `watch` names the session whose tasks fill the bar; before that a step shows only that it runs.
    """

    def __init__(self, steps_total: int, *, console: Console | None = None) -> None:
        self._console = console or Console()
        self._total = steps_total
        self._context: SparkContext | None = None
        self._finished: list[Step] = []
        self._share = 0.0
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[tasks]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("", total=steps_total, tasks="")
        self._stop = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="spark-progress", daemon=True)

    @property
    def finished(self) -> tuple[Step, ...]:
        """The steps done so far, with their times and notes."""
        return tuple(self._finished)

    def watch(self, spark: SparkSession) -> None:
        """From now on show the task counts of this session's Spark."""
        self._context = spark.sparkContext

    def show(self, share: float, text: str) -> None:
        """Set the running step's bar to `share` (0 to 1) with the note `text`, for work outside of Spark."""
        self._share = max(self._share, min(share, 0.99))
        self._bar.update(self._task, completed=len(self._finished) + self._share, tasks=text)

    def unwatch(self) -> None:
        """Stop polling Spark, because it is about to stop."""
        self._context = None

    def __enter__(self) -> Self:
        self._bar.start()
        if self._console.is_terminal:
            self._poller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._poller.is_alive():
            self._poller.join(timeout=2)
        self._bar.stop()

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Run the body as the next step; a line with its time is printed when it ends, successfully or not."""
        step = Step(title)
        number = len(self._finished) + 1
        self._share = 0.0
        self._bar.update(
            self._task, description=f"{number}/{self._total} {escape(title)}", completed=number - 1, tasks=""
        )
        started = time.monotonic()
        mark = "failed"
        try:
            yield step
            mark = "done"
        finally:
            step.elapsed_s = time.monotonic() - started
            self._finished.append(step)
            self._print(number, step, mark=mark)

    def _print(self, number: int, step: Step, *, mark: str) -> None:
        note = f"  {step.note}" if step.note else ""
        colour = "green" if mark == "done" else "red"
        line = f"{number:>2}/{self._total} [{colour}]{mark:<6}[/] {step.elapsed_s:6.1f} s  {escape(step.title + note)}"
        self._console.print(line, highlight=False, soft_wrap=True)

    def _poll(self) -> None:
        while not self._stop.wait(_POLL_S):
            context = self._context
            if context is None:
                continue
            try:
                counts = active_tasks(context)
            except Exception:
                logger.debug("no task counts from Spark", exc_info=True)
                continue
            if counts.total:
                # Each job of a step restarts its counts; the bar only moves forward.
                self.show(counts.share, f"Spark tasks {counts.done}/{counts.total}")
