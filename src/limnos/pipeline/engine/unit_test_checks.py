# SPDX-License-Identifier: Apache-2.0
"""Checks of unit tests without a session: inputs, parameters and columns that the tests of a file name.

Uses the columns that a check of queries has found. What only Spark can tell, as whether a value has its column's type,
is left to the run of the test.
"""

from __future__ import annotations

from collections.abc import Iterator

from limnos.names import display
from limnos.pipeline.declaration import Load, PythonStep, StepDeclaration, UnitTest
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.column_checks import ColumnChecker
from limnos.pipeline.engine.relations import query_names
from limnos.pipeline.problems import Problem
from limnos.pipeline.unit_test_rules import (
    TestedStep,
    expected_column_problems,
    expected_key_problems,
    given_column_problems,
    input_problems,
    of_test,
    parameter_problems,
    schema_column_problems,
)


def unit_test_problems(checker: ColumnChecker, *, skipped: frozenset[str]) -> Iterator[Problem]:
    """Return the problems of all tests, after `checker` has followed the columns. `skipped` are steps with other
    problems.
    """
    for step in checker.pipeline.steps:
        if not step.tests or step.name in skipped or step.table in checker.unreadable:
            continue
        inputs = {checker.full_name(parts): parts for parts in _mentioned_names(checker, step)}
        tested = TestedStep(pipeline=checker.pipeline, step=step, inputs=inputs, full_name=checker.full_name)
        for test in step.tests:
            yield from (of_test(problem, step=step, test=test) for problem in _problems(checker, tested, test=test))


def _mentioned_names(checker: ColumnChecker, step: StepDeclaration) -> list[Parts]:
    body = step.body
    if isinstance(body, Load):
        return [(body.source,)]
    if isinstance(body, PythonStep):
        return [value if isinstance(value, tuple) else (value,) for value in body.inputs.values()]
    names = query_names(None, body.text, grammar=checker.analyzer.grammar)
    return list(dict.fromkeys(one.parts for one in names.relations))


def _problems(checker: ColumnChecker, tested: TestedStep, *, test: UnitTest) -> Iterator[Problem]:
    yield from input_problems(tested, test)
    yield from parameter_problems(tested.pipeline, test)
    for parts, rows in test.given.items():
        columns = checker.input_columns(parts)
        if rows.schema is not None:
            declared = checker.analyzer.schema(rows.schema)
            names = None if declared is None else [one.name for one in declared]
            yield from schema_column_problems(rows, owner=display.render(parts), known=names)
        elif columns is not None and checker.full_name(parts) in tested.inputs:
            yield from given_column_problems(test, parts, known=[one.name for one in columns])
    body_columns = checker.body_columns.get(tested.step.table)
    if body_columns is not None:
        yield from expected_column_problems(test, known=[one.name for one in body_columns])
    yield from expected_key_problems(tested.step, test)
