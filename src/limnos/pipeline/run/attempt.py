# SPDX-License-Identifier: Apache-2.0
"""The work of one attempt of a run, fixed before its first step begins.

Contains its values, and the runner's interface to the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from limnos.model.errors import BadRequest, PermissionDenied, ServiceUnavailable
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import LoopRows, Pipeline, QueryLoop, StepDeclaration
from limnos.pipeline.declared_values import Parts, Scalar
from limnos.pipeline.failures import StepAway, StepDenied, StepError
from limnos.pipeline.graph import needs, order_steps
from limnos.pipeline.outcomes import BuiltStep, ReadPin, StepOutcome
from limnos.pipeline.run.events import TaskProgress
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.outputs import RunOutputs
from limnos.pipeline.run.retries import RetryPolicy

T = TypeVar("T")


class StepEngine(Protocol):
    """An engine that executes steps. Several threads may call it at once, one per step."""

    def reads(self, pipeline: Pipeline) -> Mapping[str, frozenset[Parts]]:
        """Return the tables that each step reads, by the step's name."""

    def pins(self, tables: Iterable[Parts]) -> dict[Parts, ReadPin]:
        """Return pins of the tables' current snapshots, and pins of the tables that views among them read. Raises
        LimnosError, for example NotFound.
        """

    def find_lost_tables(self, pins: Mapping[Parts, ReadPin]) -> frozenset[Parts]:
        """Return the tables whose pinned snapshot or view definition is no longer available."""

    def loop_rows(self, pipeline: Pipeline, loop: QueryLoop, *, parameters: Mapping[str, Scalar]) -> LoopRows:
        """Return the rows of a loop's query over published tables. Raises LimnosError."""

    def ship(self, pipeline: Pipeline, *, directory: Path) -> None:
        """Send the pipeline's Python files to where its functions run. Raises BadRequest."""

    def source_pins(self, pipeline: Pipeline, names: frozenset[str], *, directory: Path) -> dict[str, ReadPin]:
        """Return pins of those of the named sources that are pinned when a run starts: topics. Raises LimnosError."""

    def find_changed_sources(
        self, pipeline: Pipeline, pins: Mapping[str, ReadPin], *, directory: Path
    ) -> Mapping[str, bool | None]:
        """Return for each pinned source whether its content has changed; None if that cannot be determined without
        reading it.
        """

    def carry_out(self, step: StepDeclaration, *, context: StepContext) -> StepOutcome:
        """Execute one step on its branch. Raises StepError, and the errors of `context.check`."""

    def steps_at_once(self) -> int:
        """Return the number of steps that may run at the same time where the run's options say nothing."""

    def tasks(self, step: str) -> TaskProgress:
        """Return the counts of done and submitted Spark tasks of a running step."""

    def wait_reason(self, step: str) -> str | None:
        """Return why no task of a running step runs, such as a cluster without free cores; None if tasks run."""

    def halt(self) -> None:
        """Cancel the Spark jobs of all running steps, which then fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptWork:
    """The work of one attempt of a run: the steps with their dependencies, and the pinned inputs."""

    pipeline: Pipeline
    directory: Path
    needs: Mapping[str, frozenset[str]]
    """For each step to run, the names of its dependencies."""
    run: str
    attempt: int
    at: datetime
    parameters: Mapping[str, Scalar]
    pins: Mapping[Parts, ReadPin]
    options: RunOptions
    source_pins: Mapping[str, ReadPin] = field(default_factory=dict)
    """Pins of the sources that are pinned when the run starts, by their names."""
    new: frozenset[Parts]
    """Tables that did not exist when the run began."""
    lance_catalogs: frozenset[str] = frozenset()
    """The catalogs whose tables are Lance tables."""
    outputs: RunOutputs = field(default_factory=RunOutputs)
    """The states of the outputs at the start of the run."""
    done: Mapping[str, StepOutcome] = field(default_factory=dict)
    """Outcomes of an earlier attempt, on branches that this attempt continues."""
    built: Mapping[str, BuiltStep] = field(default_factory=dict)
    """Of a promotion, the steps whose rows may be copied from an environment."""
    computed: Mapping[str, str] = field(default_factory=dict)
    """Of a promotion, the steps of which it is known before the run that they are computed, with the reasons."""
    planning_s: float = 0.0
    """Seconds spent on preparing this attempt."""

    @property
    def steps(self) -> tuple[StepDeclaration, ...]:
        """The attempt's steps, including steps that are already done, in the order of the file."""
        return tuple(step for step in self.pipeline.steps if step.name in self.needs)


def call_engine(request: Callable[[], T], *, patience: RetryPolicy) -> T:
    """Call the engine before a run's first step; retry while the server is unreachable.

    Raises LimnosError: ServiceUnavailable, PermissionDenied or BadRequest for the engine's StepError.
    """
    try:
        return patience.call(request)
    except StepAway as error:
        raise ServiceUnavailable(f"Spark does not reach the server: {error.message}") from error
    except StepDenied as error:
        raise PermissionDenied(error.message) from error
    except StepError as error:
        raise BadRequest(error.message) from error


def needs_of(pipeline: Pipeline, reads: Mapping[str, frozenset[Parts]]) -> dict[str, frozenset[str]]:
    """Return the dependencies of each step, by name. Raises InvalidPipeline if the steps have no valid order."""
    order_steps(pipeline, reads)
    names = {step.table: step.name for step in pipeline.steps}
    return {names[table]: frozenset(names[each] for each in needed) for table, needed in needs(pipeline, reads).items()}
