"""The context of a step: its run, pinned inputs, and outputs of earlier steps.

Job: the value that a runner passes to the engine with each step. May import this room's values; it must not know of
Spark nor of servers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from limnos.pipeline.declaration import Parts, Pipeline, Scalar
from limnos.pipeline.outcomes import ReadPin, StepBranch

BRANCH_DIGITS = 12
"""Number of hexadecimal digits of a run's id in the names of its branches."""
MADE_BY = "limnos.made-by"
"""Property of a table that a run created. Its value is the prefix of the run's branch names, without the last `_`."""
TRIES_MAX = 1000
"""Upper bound of the tries of a step in one attempt, and of the attempts of a run. `branch_name` relies on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """The inputs of a step's execution other than the step itself."""

    pipeline: Pipeline
    directory: Path
    """Directory of the pipeline's file. Relative paths of sources start there."""
    run: str
    at: datetime
    """When the run began. A resumed run keeps this time."""
    attempt: int
    branch: str
    """Name of the branch to write. No earlier attempt has written to it."""
    parameters: Mapping[str, Scalar]
    pins: Mapping[Parts, ReadPin]
    """Pins of all tables that are read and that no step of this run makes."""
    sources: Mapping[str, ReadPin]
    """Pins of sources that are no tables, as earlier steps of this run read them."""
    done_branches: Mapping[Parts, StepBranch]
    """Branches of the steps that are done, by table."""
    existing_tables: frozenset[Parts]
    """Output tables and their namespaces that existed when the run began.

    The engine does not create one again that is gone.
    """
    full: bool
    """Incremental steps read all of their input."""
    check: Callable[[], None]
    """The engine calls this between two pieces of work. It raises RunStopped when the run must stop."""


def branches_prefix(run: str) -> str:
    """Return the prefix of the names of all branches of a run: `run_`, 12 digits of its id, `_`."""
    return f"run_{run.replace('-', '')[:BRANCH_DIGITS]}_"


def branch_name(run: str, attempt: int, *, again: int = 0) -> str:
    """Return the name of the branch that an attempt writes.

    A further try within the attempt (`again` > 0) gets another name, because the try before may still be writing.
    """
    return f"{branches_prefix(run)}{attempt if not again else attempt * TRIES_MAX + again}"
