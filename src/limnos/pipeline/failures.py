# SPDX-License-Identifier: Apache-2.0
"""Errors of a step, which the engine raises to the runner.

One exception for each reaction of the runner. Must not know Spark or servers.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.pipeline.outcomes import ExpectationFinding, StepOutcome


class StepError(Exception):
    """A step failed without an outcome. `message` is human-readable and has no Spark stack trace."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class StepFailed(StepError):
    """The step's SQL, function, source or table is wrong. Running it again without a change fails again."""


class OutputGone(StepFailed):
    """A table that the step writes or reads, or its namespace, was dropped or renamed during the run."""


class StepDenied(StepError):
    """The caller lacks a privilege on a table that the step reads or writes."""


class StepAway(StepError):
    """A transient failure: the server was unreachable, a response was lost, or executors with staged rows were lost.

    The step can be run again on another branch.
    """


class DataBroken(StepError):
    """The written rows break an expectation. The outcome is complete and must not be published."""

    def __init__(self, message: str, *, outcome: StepOutcome, broken: Sequence[ExpectationFinding]) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.broken = tuple(broken)


class WholeReadNeeded(Exception):
    """The rows of an increment do not suffice for the step's write. Nothing was written. The message is the reason."""
