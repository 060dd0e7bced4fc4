# SPDX-License-Identifier: Apache-2.0
"""Dry runs: the planned actions of a run, without running it.

Selects and checks steps as a run does, and pins the tables that they read. Must not write anything at the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from limnos.names import display
from limnos.pipeline.declaration import Pipeline, StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.graph import order_steps
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.request import RunMeans, RunRequest, checked_request, with_loop_rows
from limnos.pipeline.run.result import RunResult
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.start import pin_tables
from limnos.pipeline.side_tables import selects_from


@dataclass(frozen=True, slots=True, kw_only=True)
class StepIntent:
    """One step of a dry run: earlier steps, pinned inputs, output and write mode."""

    step: str
    after: tuple[str, ...]
    reads: tuple[str, ...]
    writes: str
    refused: str | None = None
    """Why the step would fail, with its position; None if the analysis of its query finds no reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The planned actions of a run, or in `ended` the result of a run that would not begin."""

    steps: tuple[StepIntent, ...] = ()
    ended: RunResult | None = None


def intents(
    pipeline: Pipeline,
    means: RunMeans,
    *,
    parameters: Mapping[str, object],
    options: RunOptions,
    directory: Path | None = None,
) -> DryRun:
    """Return the planned actions of a run, without running it. Queries of loops are read, with the modules in
    `directory` for the steps that they make. Raises as `start` does.
    """
    patience = RetryPolicy(options.away_s, stop=means.stop)
    pipeline, _ = with_loop_rows(
        pipeline, means, parameters=parameters, directory=directory or Path(), patience=patience
    )
    request = checked_request(pipeline, means, parameters=parameters, options=options, file=None, patience=patience)
    if isinstance(request, RunResult):
        return DryRun(ended=request)
    names, reads = frozenset(request.names), request.reads
    pins = pin_tables(request.pipeline, means, reads=reads, names=names, patience=patience)
    ordered = [step for level in order_steps(request.pipeline, reads) for step in level if step.name in names]
    steps = [
        StepIntent(
            step=step.name,
            after=tuple(sorted(request.needs[step.name] & names)),
            reads=(
                *(_read(table, pins.get(table)) for table in sorted(reads[step.name])),
                *(f"source {each.name}" for each in request.pipeline.sources if selects_from(step, each.name)),
            ),
            writes=f"{display.render(step.table)} ({step.write.mode.value}{_origin(request, step)})",
        )
        for step in ordered
    ]
    return DryRun(steps=tuple(steps))


def _origin(request: RunRequest, step: StepDeclaration) -> str:
    """Return where the rows of a promoted step come from, as far as is known before it runs."""
    name = step.name
    if name in request.built:
        empty = " and production's table is empty" if step.adds_to_its_table else ""
        return f"; copied from {display.render(request.built[name].table)} if its inputs are the same{empty}"
    return f"; computed: {request.computed[name]}" if name in request.computed else ""


def _read(table: Parts, pin: ReadPin | None) -> str:
    name = display.render(table)
    if pin is None:
        return f"{name} of this run"
    return name if pin.snapshot is None else f"{name} at {pin.snapshot}"
