# SPDX-License-Identifier: Apache-2.0
"""Resuming of a run by another attempt: it reuses the branches of finished steps and runs the other steps.

Determines which parts of the record are still valid, creates branches at the recorded heads, and executes the other
steps. Must not know Spark. It uses only the heads in the record of an earlier attempt's branches, so late writes of a
killed process are ignored.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from limnos.client import Client
from limnos.client.activity.runs import Run, RunStep
from limnos.client.errors import ConflictError, NotFoundError, RefusedError
from limnos.model.errors import BadRequest
from limnos.pipeline.context import branch_name
from limnos.pipeline.declaration import ExpectationAction, Pipeline
from limnos.pipeline.declaration_json import encode_declaration
from limnos.pipeline.declared_values import Parts, Scalar
from limnos.pipeline.environments import actual_reads, as_recorded, require_own_outputs
from limnos.pipeline.lance_outputs import lance_catalogs, require_lance_outputs
from limnos.pipeline.outcomes import ReadPin, StepBranch, StepOutcome
from limnos.pipeline.query_loops import recorded_rows
from limnos.pipeline.run import record_json
from limnos.pipeline.run.attempt import AttemptWork, call_engine, needs_of
from limnos.pipeline.run.held_runs import branches_of
from limnos.pipeline.run.options import RunOptions, options_of
from limnos.pipeline.run.outputs import outputs_of
from limnos.pipeline.run.refs import heads_of, restart_branches, restore_new_tables
from limnos.pipeline.run.request import RunMeans, with_made_steps
from limnos.pipeline.run.result import RunResult
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.schedule import steps_after, steps_before
from limnos.pipeline.run.start import began_at, lease_holder, perform, pin_sources
from limnos.pipeline.table_conflicts import require_own_tables


def resume(
    pipeline: Pipeline, means: RunMeans, *, run_id: str, directory: Path, options: RunOptions | None = None
) -> RunResult:
    """Resume a run with the given declaration of its pipeline. Steps whose declaration changed run again.

    Raises:
        ConflictError: Another process executes the run, or the run was published or discarded.
        BadRequest: The run belongs to another pipeline, or the declaration lacks one of its steps.
        InvalidPipeline: The steps have no valid order, or another pipeline now declares one of its tables.
    """
    run_options = options or RunOptions()
    began = time.monotonic()
    patience = RetryPolicy(run_options.away_s, stop=means.stop)
    stored_run = patience.call(lambda: means.client.runs.load(run_id))
    rows = recorded_rows(pipeline, stored_run.options, run=run_id)
    pipeline = as_recorded(with_made_steps(pipeline, means, rows=rows, directory=directory), stored_run)
    if stored_run.pipeline != pipeline.name:
        raise BadRequest(
            f"run {run_id} belongs to pipeline {stored_run.pipeline}, and the file declares {pipeline.name}"
        )
    reads = actual_reads(pipeline, call_engine(lambda: means.engine.reads(pipeline), patience=patience))
    needs = needs_of(pipeline, reads)
    chosen = options_of(stored_run.options, like=run_options)
    names = _names(stored_run, pipeline)
    providers = patience.call(lambda: require_own_tables(means.client, pipeline))
    lance = lance_catalogs(providers)
    require_lance_outputs(pipeline, providers, reads=reads)
    patience.call(lambda: require_own_outputs(means.client, pipeline, names=names))
    run = patience.call(
        lambda: means.client.runs.resume(
            run_id, holder=lease_holder(), lease_s=chosen.lease_s, after=stored_run.attempt
        )
    )
    version = encode_declaration(pipeline)
    patience.call(lambda: means.client.pipelines.put(pipeline.name, version, comment=pipeline.comment))
    finished = {branch.table for branch in branches_of(stored_run)} & _new(stored_run)
    patience.call(lambda: restore_new_tables(means.client, sorted(finished), run=run_id))
    among = {name: needs[name] for name in names}
    among_reads = {name: reads[name] for name in names}
    pins, stale = call_engine(lambda: _pins(stored_run, means, reads=among_reads, pipeline=pipeline), patience=patience)
    unfinished = _unfinished_steps(stored_run, names)
    mended = call_engine(
        lambda: _steps_of_changed_sources(stored_run, means, pipeline=pipeline, needs=among, directory=directory),
        patience=patience,
    )
    redo = steps_after(stale | mended | _changed_steps(stored_run, pipeline, names=names) | unfinished, among)
    done = _finished_outcomes(stored_run, names - redo, client=means.client, name=branch_name(run.id, run.attempt))
    # A step whose branch cannot begin again is repeated, together with its downstream steps.
    redo = steps_after(redo | (names - redo - frozenset(done)), among)
    work = AttemptWork(
        pipeline=pipeline,
        directory=directory,
        needs=among,
        run=run.id,
        attempt=run.attempt,
        at=began_at(stored_run),
        parameters=_parameters(stored_run),
        pins=pins,
        source_pins=_source_pins_again(
            stored_run, means, pipeline=pipeline, names=names, directory=directory, patience=patience
        ),
        options=chosen,
        new=_new(stored_run),
        lance_catalogs=lance,
        outputs=outputs_of(stored_run.options.get("outputs")),
        built=record_json.built_of(stored_run.options.get("built")),
        planning_s=time.monotonic() - began,
        done={name: outcome for name, outcome in done.items() if name not in redo},
    )
    return perform(work, means, state="resumed")


def _names(seen: Run, pipeline: Pipeline) -> frozenset[str]:
    """Return the names of the run's steps. Raises BadRequest if the declaration lacks one of them."""
    names = frozenset(step.name for step in seen.steps)
    missing = names - {step.name for step in pipeline.steps}
    if missing:
        raise BadRequest(
            f"the pipeline has no step {', '.join(sorted(missing))} any longer, which run {seen.id} has: discard that"
            f" run ('limnos delete run {seen.id}'), and start a new one"
        )
    return names


def _unfinished_steps(seen: Run, names: frozenset[str]) -> frozenset[str]:
    return names - {step.name for step in seen.steps if step.state == "done" and step.outputs}


def _changed_steps(seen: Run, pipeline: Pipeline, *, names: frozenset[str]) -> frozenset[str]:
    """Return the steps whose declaration differs from the one that made their branches, by digest: that of the newest
    attempt that finished the step, or that of the run's start.
    """
    known = seen.options.get("digests")
    recorded = {step.name: step.outputs[0].get("digest") for step in seen.steps if step.outputs}
    newer = {name: digest for name, digest in recorded.items() if digest}
    digests = {**(known if isinstance(known, Mapping) else {}), **newer}
    return frozenset(
        step.name
        for step in pipeline.steps
        if step.name in names and digests.get(step.name) != record_json.step_digest(pipeline, step)
    )


def _pins(
    seen: Run, means: RunMeans, *, reads: Mapping[str, frozenset[Parts]], pipeline: Pipeline
) -> tuple[dict[Parts, ReadPin], frozenset[str]]:
    """Return the run's pins, and the steps that read renewed pins: pins of expired snapshots, and of tables without a
    pin.
    """
    results = {step.table for step in pipeline.steps if step.name in reads}
    requested = {table for tables in reads.values() for table in tables} - results
    recorded_pins = {
        table: pin for table, pin in record_json.pins_of(seen.options.get("pins")).items() if table in requested
    }
    lost = means.engine.find_lost_tables(recorded_pins) | (requested - set(recorded_pins))
    stale = frozenset(name for name, tables in reads.items() if tables & lost)
    return {**recorded_pins, **(means.engine.pins(lost) if lost else {})}, stale


def _source_pins_again(
    seen: Run,
    means: RunMeans,
    *,
    pipeline: Pipeline,
    names: frozenset[str],
    directory: Path,
    patience: RetryPolicy,
) -> dict[str, ReadPin]:
    """Return the pins that the run's start recorded for topics, and new ones of topics that the file has since."""
    recorded_pins = record_json.source_pins_of(seen.options.get("sources"))
    return pin_sources(pipeline, means, names=names, directory=directory, patience=patience, known=recorded_pins)


def _steps_of_changed_sources(
    seen: Run, means: RunMeans, *, pipeline: Pipeline, needs: Mapping[str, frozenset[str]], directory: Path
) -> frozenset[str]:
    """Return finished steps that read a source whose content has changed.

    The content of a database or a function cannot be compared without reading it. A step that reads one is included if
    a downstream step failed by an expectation, because the user may have corrected the data.
    """
    pins = {step.name: _source_pins(step) for step in seen.steps if step.name in needs and step.state == "done"}
    changes_by_source: dict[tuple[str, str | None], bool | None] = {}
    for read in pins.values():
        new = {name: pin for name, pin in read.items() if (name, pin.fingerprint) not in changes_by_source}
        if new:
            results = means.engine.find_changed_sources(pipeline, new, directory=directory)
            changes_by_source |= {(name, pin.fingerprint): results.get(name, True) for name, pin in new.items()}
    failed = {step.name for step in seen.steps if step.state == "failed"}
    broken = {each.step for each in seen.findings if not each.held and each.action == ExpectationAction.FAIL.value}
    blamed = steps_before(frozenset(failed & broken), needs)
    return frozenset(
        name
        for name, read in pins.items()
        for pin in read.values()
        if (is_changed := changes_by_source[pin.name, pin.fingerprint]) or (is_changed is None and name in blamed)
    )


def _source_pins(step: RunStep) -> dict[str, ReadPin]:
    outcome = record_json.outcome_of(outputs=step.outputs, inputs=step.inputs, rows=step.rows, size=step.bytes)
    return {pin.name: pin for pin in outcome.pins if pin.table is None}


def _finished_outcomes(seen: Run, names: frozenset[str], *, client: Client, name: str) -> dict[str, StepOutcome]:
    """Return outcomes on new branches of this attempt, for finished steps whose tables are unchanged since."""
    outcomes: dict[str, StepOutcome] = {}
    for step in seen.steps:
        if step.name not in names:
            continue
        outcome = record_json.outcome_of(outputs=step.outputs, inputs=step.inputs, rows=step.rows, size=step.bytes)
        if any(_has_moved(client, branch) for branch in outcome.branches):
            continue
        try:
            branches = restart_branches(client, outcome.branches, name=name)
        except (ConflictError, NotFoundError, RefusedError):
            continue
        outcomes[step.name] = replace(outcome, branches=branches)
    return outcomes


def _has_moved(client: Client, branch: StepBranch) -> bool:
    heads = heads_of(client, branch.table)
    return heads is None or heads.main != branch.base or heads.uuid != branch.uuid


def _parameters(seen: Run) -> dict[str, Scalar]:
    return {
        name: value if isinstance(value, (str, int, float, bool)) else None for name, value in seen.parameters.items()
    }


def _new(seen: Run) -> frozenset[Parts]:
    new_tables = seen.options.get("new")
    return frozenset(tuple(table) for table in new_tables) if isinstance(new_tables, list) else frozenset()
