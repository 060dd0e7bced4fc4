"""What an attempt of a run is to do, fixed before its first step begins.

Job: values, and the engine's interface as the runner uses it. May import `client`, `model` and this room's values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from limnos.model.errors import BadRequest, PermissionDenied, ServiceUnavailable
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import Parts, Pipeline, Scalar, StepDeclaration
from limnos.pipeline.failures import StepAway, StepDenied, StepError
from limnos.pipeline.graph import needs, order_steps
from limnos.pipeline.outcomes import ReadPin, StepOutcome
from limnos.pipeline.run.events import TaskProgress
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.outputs import RunOutputs

if TYPE_CHECKING:
    from limnos.pipeline.run.retries import RetryPolicy

T = TypeVar("T")


class StepEngine(Protocol):
    """What carries steps out. Calls may come from several threads at once, one per step."""

    def reads(self, pipeline: Pipeline) -> Mapping[str, frozenset[Parts]]:
        """The tables that each step reads, by the step's name."""
        ...

    def pins(self, tables: Iterable[Parts]) -> dict[Parts, ReadPin]:
        """The snapshot of each table as it is now, and of those that views among them name. Raises LimnosError."""
        ...

    def lost(self, pins: Mapping[Parts, ReadPin]) -> frozenset[Parts]:
        """Those whose pinned snapshot cannot be had any longer."""
        ...

    def changed(self, pipeline: Pipeline, pins: Mapping[str, ReadPin], *, directory: Path) -> Mapping[str, bool | None]:
        """For each pinned source by its name: whether it has other content by now; None where only reading it tells."""
        ...

    def carry_out(self, step: StepDeclaration, *, context: StepContext) -> StepOutcome:
        """One step, on its branch. Raises StepError, and what the context's check raises."""
        ...

    def tasks(self, step: str) -> TaskProgress:
        """How far Spark is with a step that is under way."""
        ...

    def halt(self) -> None:
        """Bring what is under way to an early end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptWork:
    """One attempt."""

    pipeline: Pipeline
    directory: Path
    needs: Mapping[str, frozenset[str]]
    """Of each step to run: names of the steps it needs."""
    run: str
    attempt: int
    at: datetime
    parameters: Mapping[str, Scalar]
    pins: Mapping[Parts, ReadPin]
    options: RunOptions
    new: frozenset[Parts]
    """Tables that were not there when the run began."""
    outputs: RunOutputs = field(default_factory=RunOutputs)
    """As they were when the run began."""
    done: Mapping[str, StepOutcome] = field(default_factory=dict)
    """Of an earlier attempt, on branches of this one."""
    planning_s: float = 0.0
    """How long it took to come to this."""

    @property
    def steps(self) -> tuple[StepDeclaration, ...]:
        """Those to run, done ones included, in the order they are written."""
        return tuple(step for step in self.pipeline.steps if step.name in self.needs)


def found_by_engine(ask: Callable[[], T], *, patience: RetryPolicy) -> T:
    """What an engine finds before a run's first step, as soon as the server is there. Raises LimnosError."""
    try:
        return patience.on(ask)
    except StepAway as error:
        raise ServiceUnavailable(f"Spark does not reach the server: {error.message}") from error
    except StepDenied as error:
        raise PermissionDenied(error.message) from error
    except StepError as error:
        raise BadRequest(error.message) from error


def needs_of(pipeline: Pipeline, reads: Mapping[str, frozenset[Parts]]) -> dict[str, frozenset[str]]:
    """The steps that each step needs, by name. Raises InvalidPipeline where they have no order."""
    order_steps(pipeline, reads)
    names = {step.table: step.name for step in pipeline.steps}
    return {names[table]: frozenset(names[each] for each in needed) for table, needed in needs(pipeline, reads).items()}
