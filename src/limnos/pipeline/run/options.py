# SPDX-License-Identifier: Apache-2.0
"""Options of a run: selected steps, full reads, publishing or holding.

The values, their check against the declaration, and their form in the run's record.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.run.schedule import steps_after
from limnos.pipeline.selection import (
    InvalidSelection,
    ModifiedSteps,
    SelectionTerm,
    parse_selection,
    require_known_words,
    select,
    uses_graph,
    uses_states,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run. `only` and `since` are names of steps; if both are empty, all steps run."""

    only: tuple[str, ...] = ()
    since: tuple[str, ...] = ()
    """The option `--from`: these steps and all of their dependents."""
    select: tuple[str, ...] = ()
    """Selectors of steps, such as `+marts.customers` or `tag:nightly`; see `selection`."""
    exclude: tuple[str, ...] = ()
    """Selectors of steps that are left out."""
    full: bool = False
    """Whether incremental steps read all of their input."""
    hold: bool = False
    """Whether to hold the run instead of publishing it when all steps are done."""
    promotes: str | None = None
    """The environment whose rows are copied where a step's inputs and definition are the same."""
    due: str | None = None
    """The due time for which a schedule started the run; the run's record has it."""
    at_once: int | None = None
    """The maximum number of steps that run at the same time; None: the number that the engine proposes."""
    lease_s: int = 30
    wait_s: float = 0
    """The maximum wait for the end of another run of the pipeline, in seconds."""
    away_s: float = 600
    """The maximum wait for an unreachable server, in seconds."""
    tries: int = 3
    """The maximum number of times that a step is repeated because another writer changed its table during the run."""

    @property
    def are_selective(self) -> bool:
        """Whether they may leave out steps."""
        return bool(self.only or self.since or self.select or self.exclude)

    def to_record(self) -> dict[str, object]:
        """Return the options that the run's record stores for a resume."""
        return {
            "only": list(self.only),
            "from": list(self.since),
            "select": list(self.select),
            "exclude": list(self.exclude),
            "full": self.full,
            "hold": self.hold,
            **({} if self.promotes is None else {"promotes": self.promotes}),
            **({} if self.due is None else {"due": self.due}),
        }


def options_of(fields: Mapping[str, object], *, like: RunOptions) -> RunOptions:
    """Rebuild the options of a recorded run. Options that the record lacks are taken from `like`, which can also
    request `hold`.
    """
    return RunOptions(
        only=_names(fields.get("only")),
        since=_names(fields.get("from")),
        select=_names(fields.get("select")),
        exclude=_names(fields.get("exclude")),
        full=bool(fields.get("full")),
        hold=bool(fields.get("hold")) or like.hold,
        promotes=str(fields["promotes"]) if fields.get("promotes") else None,
        due=str(fields["due"]) if fields.get("due") else None,
        at_once=like.at_once,
        lease_s=like.lease_s,
        wait_s=like.wait_s,
        away_s=like.away_s,
        tries=like.tries,
    )


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def select_steps(
    pipeline: Pipeline,
    options: RunOptions,
    *,
    needs: Mapping[str, frozenset[str]],
    modified: ModifiedSteps = dict,
) -> tuple[str, ...]:
    """Return the names of the steps to run, in the order of the file. `modified` returns the steps that have changed
    since they were published, with the reasons.

    Raises BadRequest for an unknown step, tag or source, and if the options leave no step, except if none was changed.
    """
    require_known_steps(pipeline, options)
    names = [step.name for step in pipeline.steps]
    if options.select or options.exclude:
        terms, excluded = _terms(options)
        return _choose_steps(pipeline, terms, excluded=excluded, needs=needs, modified=modified)
    only = frozenset(options.only)
    since = steps_after(frozenset(options.since), needs)
    if not only and not since:
        return tuple(names)
    return tuple(name for name in names if name in only | since)


def require_known_steps(pipeline: Pipeline, options: RunOptions) -> None:
    """Check the names, tags and sources in the options without looking at queries. Raises BadRequest."""
    names = [step.name for step in pipeline.steps]
    if (options.select or options.exclude) and (options.only or options.since):
        raise InvalidSelection("--select and --exclude replace --only and --from: write `STEP` and `STEP+`")
    for flag, steps in (("--only", options.only), ("--from", options.since)):
        for name in steps:
            _require_step_name(name, names, flag=flag)
    terms, excluded = _terms(options)
    require_known_words(pipeline, (*terms, *excluded))
    if not needs_queries(options) and not any(map(uses_states, (terms, excluded))) and (terms or excluded):
        _choose_steps(pipeline, terms, excluded=excluded, needs={}, modified=dict)


def needs_queries(options: RunOptions) -> bool:
    """Return whether the selected steps depend on the order of steps, which only the queries tell."""
    return any(map(uses_graph, _terms(options))) or bool(options.since)


def selects_states(options: RunOptions) -> bool:
    """Return whether the selected steps depend on what was published."""
    return any(map(uses_states, _terms(options)))


def _choose_steps(
    pipeline: Pipeline,
    terms: Sequence[SelectionTerm],
    *,
    excluded: Sequence[SelectionTerm],
    needs: Mapping[str, frozenset[str]],
    modified: ModifiedSteps,
) -> tuple[str, ...]:
    chosen = select(pipeline, terms, excluded=excluded, needs=needs, modified=modified)
    if not chosen and not uses_states(terms):
        raise InvalidSelection("--exclude leaves out all selected steps; leave it out, or select more steps")
    return chosen


def _terms(options: RunOptions) -> tuple[tuple[SelectionTerm, ...], tuple[SelectionTerm, ...]]:
    return parse_selection(options.select, flag="--select"), parse_selection(options.exclude, flag="--exclude")


def _require_step_name(name: str, names: Iterable[str], *, flag: str) -> str:
    names = list(names)
    if name in names:
        return name
    if set("+*:") & set(name):
        raise BadRequest(f"{flag} {name}: it takes the name of a step; selectors are for --select '{name}'")
    near = difflib.get_close_matches(name, names, n=1)
    advice = f"did you mean {near[0]}?" if near else f"its steps are {', '.join(names)}"
    raise BadRequest(f"{flag} {name}: the pipeline has no step of that name; {advice}")
