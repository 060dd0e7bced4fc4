# SPDX-License-Identifier: Apache-2.0
"""Unit tests of a pipeline's file for the command line: one Spark session, no server.

Combines the file, a local Spark and the tests. Must not print.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Pipeline, StepDeclaration, UnitTest
from limnos.pipeline.engine.launch import local_spark
from limnos.pipeline.engine.preview import resolve_columns
from limnos.pipeline.engine.python_files import ship_files
from limnos.pipeline.engine.relations import query_names
from limnos.pipeline.engine.unit_tests import UnitTestWork, run_unit_tests
from limnos.pipeline.graph import order_steps
from limnos.pipeline.loop_previews import loop_preview
from limnos.pipeline.project import load
from limnos.pipeline.python import bind_functions
from limnos.pipeline.reads import all_reads, tables
from limnos.pipeline.run.attempt import needs_of
from limnos.pipeline.run.options import (
    RunOptions,
    needs_queries,
    require_known_steps,
    select_steps,
    selects_states,
)
from limnos.pipeline.unit_test_rules import require_tests, unknown_test

if TYPE_CHECKING:
    from limnos.pipeline.unit_test_results import UnitTestResult


def run_file_tests(
    file: Path,
    *,
    options: RunOptions,
    only: str | None,
    master: str,
    listener: Callable[[UnitTestResult], None],
) -> tuple[UnitTestResult, ...]:
    """Run the unit tests of a pipeline's file, one after the other. `only` is a pattern of tests' names.

    Args:
        file: The pipeline's file.
        options: The selection of steps; a selection by state is refused, because it needs a server.
        only: A pattern of the names of tests, with `*`; None for all.
        master: The Spark master.
        listener: Called with each result.

    Raises InvalidPipeline for a file, a query or a function that cannot be read, BadRequest if no test is selected.
    """
    project = load(file)
    declared = loop_preview(project.declaration).pipeline
    require_known_steps(declared, options)
    if selects_states(options):
        _refuse_states()
    require_tests(declared.steps, of=declared)
    if not needs_queries(options):
        _chosen_steps(declared, options, needs={}, only=only)
    with local_spark(master) as spark:
        pipeline = bind_functions(declared, project.directory)
        ship_files(spark, [project.directory / name for name in pipeline.python_files])
        reads = tables(all_reads(pipeline, queries=partial(query_names, spark), catalogs=frozenset()))
        levels = order_steps(pipeline, reads)
        steps = _chosen_steps(pipeline, options, needs=needs_of(pipeline, reads), only=only)
        columns = resolve_columns(spark, pipeline, levels=levels, catalogs=frozenset())
        work = UnitTestWork(pipeline=pipeline, columns=columns)
        chosen = partial(_is_chosen, only=only)
        results = []
        for result in run_unit_tests(spark, work, steps=steps, chosen=chosen):
            listener(result)
            results.append(result)
        return tuple(results)


def _chosen_steps(
    pipeline: Pipeline, options: RunOptions, *, needs: Mapping[str, frozenset[str]], only: str | None
) -> list[StepDeclaration]:
    """Return the selected steps. Raises BadRequest if they have no tests, or none of the name `only`."""
    selected = select_steps(pipeline, options, needs=needs, modified=_refuse_states)
    steps = [step for step in pipeline.steps if step.name in selected]
    require_tests(steps, of=pipeline)
    if only is not None and not any(_is_chosen(test, only=only) for step in steps for test in step.tests):
        others = [step.name for step in pipeline.steps if any(_is_chosen(test, only=only) for test in step.tests)]
        advice = f"; {', '.join(others[:10])} has it" if others else unknown_test(only, pipeline.steps)
        which = "no selected step has a test" if others else "there is no test"
        raise BadRequest(f"--test {only}: {which} of that name{advice}")
    return steps


def _is_chosen(test: UnitTest, *, only: str | None) -> bool:
    return only is None or test.name == only or fnmatch.fnmatchcase(test.name, only)


def _refuse_states() -> dict[str, str]:
    raise BadRequest(
        "--select state:…: unit tests need no server, so changed steps are not known; select by name or tag"
    )
