# SPDX-License-Identifier: Apache-2.0
"""The order of a pipeline's steps, as levels.

Computes levels of steps that may run at the same time, from a declaration and the tables that each step reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from limnos.names import display
from limnos.names.columns import case_twins
from limnos.pipeline.declaration import Pipeline, StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.problems import InvalidPipeline, Problem, nearest_word
from limnos.pipeline.side_tables import tables_of

Needs = dict[Parts, frozenset[Parts]]
"""A mapping from the table of a step to the tables of the steps that must be done first."""


def order_steps(pipeline: Pipeline, reads: Mapping[str, frozenset[Parts]]) -> tuple[tuple[StepDeclaration, ...], ...]:
    """Return levels of steps: a step's dependencies are in earlier levels. Within a level, steps keep the order of the
    file.

    `reads` maps each step's name to the tables that it reads, catalog first. Tables that no step creates are not
    dependencies. Raises InvalidPipeline if two steps create one table, or one creates a side table of another, if names
    of sources differ by case alone, if a table has no namespace, if `after` names no step, or if steps form a cycle.
    """
    problems = [
        *_duplicate_tables(pipeline),
        *_side_tables_of_others(pipeline),
        *_source_twins(pipeline),
        *_tables_without_namespace(pipeline),
        *_unknown_after(pipeline),
    ]
    if problems:
        raise InvalidPipeline(problems)
    return _levels(pipeline.steps, needs(pipeline, reads))


def steps_by_inputs(pipeline: Pipeline, reads: Mapping[str, frozenset[Parts]]) -> tuple[StepDeclaration, ...]:
    """Return all steps, each after those that it reads as far as that is possible, also if there is no valid order."""
    needs_by_step = needs(pipeline, reads)
    steps = {step.table: step for step in pipeline.steps}
    ordered: dict[Parts, StepDeclaration] = {}
    visited: set[Parts] = set()
    for first in steps:
        stack = [(first, False)]
        while stack:  # depth first, without recursion: a step is added when its inputs are
            table, is_done = stack.pop()
            if is_done:
                ordered.setdefault(table, steps[table])
            elif table not in visited:
                visited.add(table)
                stack.append((table, True))
                stack += [(other, False) for other in sorted(needs_by_step.get(table, ()))]
    return tuple(ordered.values())


def needs(pipeline: Pipeline, reads: Mapping[str, frozenset[Parts]]) -> Needs:
    """Return the dependencies of each step: the steps that create its inputs, and the steps named in `after`."""
    results = {step.table for step in pipeline.steps}
    return {
        step.table: frozenset(table for table in (*reads.get(step.name, ()), *step.after) if table in results)
        for step in pipeline.steps
    }


def _duplicate_tables(pipeline: Pipeline) -> list[Problem]:
    """Find steps that create the same table, or whose names are ambiguous: a part with a dot looks like two parts."""
    first: dict[str, StepDeclaration] = {}
    problems = []
    for step in pipeline.steps:
        other = first.setdefault(step.name, step)
        if other is not step:
            text = f" (the other one: {other.at})" if other.at else ""
            name = display.render(step.table)
            problems.append(
                Problem(
                    f"two steps write {name}{text}; a table must have one step: merge them, e.g. with UNION ALL",
                    step.at,
                )
            )
    return problems


def _side_tables_of_others(pipeline: Pipeline) -> list[Problem]:
    """Find steps that create the side table of another step, such as `x__quarantine`."""
    steps = {step.table: step for step in pipeline.steps}
    return [
        Problem(
            f"{steps[table].name} is the table in which step {step.name} keeps the rows that it sets aside: "
            "choose another name",
            steps[table].at,
        )
        for step in pipeline.steps
        for table in tables_of(pipeline, step)[1:]
        if table in steps
    ]


def _source_twins(pipeline: Pipeline) -> list[Problem]:
    """Find sources whose names differ by case alone. Spark's names of temporary views ignore case."""
    positions = {source.name: source.at for source in pipeline.sources}
    return [
        Problem(f"the sources '{earlier}' and '{name}' differ by case alone: rename one", positions[name])
        for earlier, name in case_twins([source.name for source in pipeline.sources])
    ]


def _tables_without_namespace(pipeline: Pipeline) -> list[Problem]:
    """Find tables that lie directly in a catalog."""
    return [
        Problem(f"{display.render(step.table)} has no namespace; name the step like 'curated.{step.name}'", step.at)
        for step in pipeline.steps
        if len(step.table) < 3
    ]


def _unknown_after(pipeline: Pipeline) -> list[Problem]:
    results = {step.table: step.name for step in pipeline.steps}
    return [
        Problem(
            f"'after' of {step.name} names {display.render(table[1:])}, which no step writes"
            f"{nearest_word('.'.join(table[1:]), [name for name in results.values() if name != step.name])}",
            step.at,
        )
        for step in pipeline.steps
        for table in step.after
        if table not in results
    ]


def _levels(steps: Sequence[StepDeclaration], before: Needs) -> tuple[tuple[StepDeclaration, ...], ...]:
    level: dict[Parts, int] = {}
    users: dict[Parts, list[Parts]] = {}
    missing = {table: len(requested) for table, requested in before.items()}
    for table, expected in before.items():
        for other in expected:
            users.setdefault(other, []).append(table)
    ready = [step.table for step in steps if not missing[step.table]]
    for table in ready:  # `ready` grows during the loop
        level[table] = max((level[other] + 1 for other in before[table]), default=0)
        for user in users.get(table, ()):
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    if len(level) < len(steps):
        raise InvalidPipeline([_cycle_problem(steps, before, level=level)])
    levels: list[list[StepDeclaration]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for step in steps:
        levels[level[step.table]].append(step)
    return tuple(tuple(declarations) for declarations in levels)


def _cycle_problem(steps: Sequence[StepDeclaration], before: Needs, *, level: Mapping[Parts, int]) -> Problem:
    """Describe one cycle among the steps without a level, each of which depends on another step without a level."""
    by_table = {step.table: step for step in steps}
    table = next(step.table for step in steps if step.table not in level)
    walked: dict[Parts, int] = {}
    path: list[Parts] = []
    while table not in walked:
        walked[table] = len(path)
        path.append(table)
        table = min(other for other in before[table] if other not in level)
    circle = [*path[walked[table] :], table]
    if len(circle) == 2:
        return Problem(
            f"{by_table[table].name} reads the table that it writes; update existing rows with 'write: merge', or read"
            " an older state with VERSION AS OF",
            by_table[table].at,
        )
    text = " reads ".join(by_table[one].name for one in circle)
    return Problem(f"steps in a circle: {text}; one of them must not read the other", by_table[table].at)
