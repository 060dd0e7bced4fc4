"""What a step is carried out in: its run, what is pinned, what earlier steps of the run have made.

Job: the value that whoever runs a pipeline gives to the engine with each step. May import this room's values; it must
not know of Spark nor of servers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from limnos.pipeline.declaration import Parts, Pipeline, Scalar
from limnos.pipeline.outcomes import ReadPin, StepBranch

BRANCH_DIGITS = 12
"""So much of a run's id stands in its branches' names."""
MADE_BY = "limnos.made-by"
"""Property of a table that a run made: the beginning of its branches' names."""
TRIES_MAX = 1000
"""More than an attempt tries a step, and more than a run has attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """Everything beside the step that carrying it out depends on."""

    pipeline: Pipeline
    directory: Path
    """Where the pipeline's file lies: paths of its sources begin there."""
    run: str
    at: datetime
    """When the run began; a resumed one keeps it."""
    attempt: int
    branch: str
    """Name of the branch to write, which nobody has written before."""
    parameters: Mapping[str, Scalar]
    pins: Mapping[Parts, ReadPin]
    """Of every table that is read and that no step of this run makes."""
    sources: Mapping[str, ReadPin]
    """What steps of this run have read of sources that are no tables."""
    made: Mapping[Parts, StepBranch]
    """Of every step that is done."""
    there: frozenset[Parts]
    """Output tables, and namespaces of outputs, that were there when the run began: one that is gone is not made anew."""
    full: bool
    """Incremental steps take the whole."""
    check: Callable[[], None]
    """To be called between two pieces of work: raises when the run is stopped."""


def branches_prefix(run: str) -> str:
    """With what the names of all branches of a run begin."""
    return f"run_{run.replace('-', '')[:BRANCH_DIGITS]}_"


def branch_name(run: str, attempt: int, *, again: int = 0) -> str:
    """The branch that an attempt writes; a further try within it has another, as the one before may still write."""
    return f"{branches_prefix(run)}{attempt if not again else attempt * TRIES_MAX + again}"
