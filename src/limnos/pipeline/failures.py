"""How a step can fail, told by the engine to whoever runs the pipeline.

Job: one exception per thing to do about it. May import this room's values; it must not know of Spark nor of servers.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.pipeline.outcomes import ExpectationFinding, StepOutcome


class StepError(Exception):
    """A step that came to no outcome. `message` is for people, without Spark's stack."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class StepFailed(StepError):
    """Its SQL, its function, its source or its table: running it again as it is fails again."""


class OutputGone(StepFailed):
    """A table that it writes or reads was dropped or renamed during the run, or its namespace was."""


class StepDenied(StepError):
    """The caller lacks a right."""


class StepAway(StepError):
    """The server could not be reached, an answer was lost, or held rows with their executors: to be run again on a branch of its own."""


class DataBroken(StepError):
    """What it wrote breaks an expectation. The outcome is whole, and is not published."""

    def __init__(self, message: str, *, outcome: StepOutcome, broken: Sequence[ExpectationFinding]) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.broken = tuple(broken)
