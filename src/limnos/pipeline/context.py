# SPDX-License-Identifier: Apache-2.0
"""The context of a step: its run, pinned inputs, and outputs of earlier steps.

It is the value that a runner passes to the engine with each step. Must not know Spark or servers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.declared_values import Parts, Scalar
from limnos.pipeline.outcomes import BuiltStep, ReadPin, StepBranch

BRANCH_DIGITS = 12
"""The number of hexadecimal digits of a run's id in the names of its branches."""
MADE_BY = "limnos.made-by"
"""The property of a table that a run created. Its value is the prefix of the run's branch names, without the last
`_`.
"""
OF_ENVIRONMENT = "limnos.environment"
"""The property of an environment's tables. Its value is the name of the environment's pipeline at the server."""
_RUN_BRANCH = re.compile(rf"run_[0-9a-f]{{{BRANCH_DIGITS}}}_[0-9]+")
TRIES_MAX = 1000
"""The maximum number of tries of a step in one attempt, and of attempts of a run. `branch_name` relies on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """The state of the run that a step's execution needs: branch, parameters, pins and results of earlier steps."""

    pipeline: Pipeline
    directory: Path
    """The directory of the pipeline's file, to which paths of sources are relative."""
    run: str
    at: datetime
    """The start time of the run. Resuming a run does not change it."""
    attempt: int
    branch: str
    """The name of the branch to write. No earlier attempt has written to it."""
    parameters: Mapping[str, Scalar]
    pins: Mapping[Parts, ReadPin]
    """Pins of all input tables that no step of this run creates."""
    sources: Mapping[str, ReadPin]
    """Pins of sources that are not tables, from earlier steps of this run that read them."""
    done_branches: Mapping[Parts, StepBranch]
    """The branches of completed steps, by table."""
    existing_tables: frozenset[Parts]
    """Output tables and their namespaces that existed at the start of the run.

    If one no longer exists, the engine does not create it again.
    """
    lance_catalogs: frozenset[str] = frozenset()
    """The catalogs whose tables are Lance tables."""
    built: Mapping[str, BuiltStep] = field(default_factory=dict)
    """Of a promotion, the steps by name whose rows may be copied from an environment."""
    copied: Mapping[Parts, BuiltStep] = field(default_factory=dict)
    """The tables of completed steps whose rows were copied, and where from."""
    full: bool
    """Whether incremental steps read all of their input."""
    check: Callable[[], None]
    """A function that the engine calls between two phases of a step. It raises RunStopped when the run must stop."""


def branches_prefix(run: str) -> str:
    """Return the prefix of the names of all branches of a run: `run_`, 12 digits of its id, `_`."""
    return f"run_{run.replace('-', '')[:BRANCH_DIGITS]}_"


def is_run_branch(name: str) -> bool:
    """Return whether a branch has the name of a run's branch."""
    return _RUN_BRANCH.fullmatch(name) is not None


def branch_name(run: str, attempt: int, *, again: int = 0) -> str:
    """Return the name of the branch that an attempt writes.

    A retry within the attempt (`again` > 0) gets another name, because the previous try may still be writing.
    """
    return f"{branches_prefix(run)}{attempt if not again else attempt * TRIES_MAX + again}"
