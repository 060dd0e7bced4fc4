"""What a run is told beside the file: which steps, from the whole or not, published or held.

Job: values, their check against the declaration, and their form in the run's record. May import `model` and this room's values.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.run.schedule import steps_after


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run. `only` and `since` name steps as `Step.name` does; both empty: all."""

    only: tuple[str, ...] = ()
    since: tuple[str, ...] = ()
    """`--from`: these and all that need them."""
    full: bool = False
    """Incremental steps take the whole."""
    hold: bool = False
    """Don't publish when all is done."""
    at_once: int = 4
    """Steps at the same time."""
    lease_s: int = 30
    wait_s: float = 0
    """How long to wait for another run of the pipeline to end."""
    away_s: float = 600
    """How long to wait for a server that cannot be reached."""
    tries: int = 3
    """How often a step is run again because somebody else wrote its table meanwhile."""

    def told(self) -> dict[str, object]:
        """For the run's record: what a resume has to know."""
        return {"only": list(self.only), "from": list(self.since), "full": self.full, "hold": self.hold}


def options_of(told: Mapping[str, object], *, like: RunOptions) -> RunOptions:
    """The options of a recorded run, with what is not recorded taken from `like`."""
    return RunOptions(
        only=_names(told.get("only")),
        since=_names(told.get("from")),
        full=bool(told.get("full")),
        hold=bool(told.get("hold")) or like.hold,
        at_once=like.at_once,
        lease_s=like.lease_s,
        wait_s=like.wait_s,
        away_s=like.away_s,
        tries=like.tries,
    )


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def select_steps(pipeline: Pipeline, options: RunOptions, *, needs: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The names of the steps to run, in the order they are written. Raises BadRequest for a name that is no step."""
    names = [step.name for step in pipeline.steps]
    only = frozenset(_require_step_name(each, names, flag="--only") for each in options.only)
    since = steps_after(frozenset(_require_step_name(each, names, flag="--from") for each in options.since), needs)
    if not only and not since:
        return tuple(names)
    return tuple(name for name in names if name in only | since)


def _require_step_name(name: str, names: Iterable[str], *, flag: str) -> str:
    names = list(names)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1)
    advice = f"did you mean {near[0]}?" if near else f"its steps are {', '.join(names)}"
    raise BadRequest(f"{flag} {name}: the pipeline has no step of that name; {advice}")
