# SPDX-License-Identifier: Apache-2.0
"""Rules of unit tests that need no rows: the inputs, parameters and columns that a test names.

A check of the file and the run of a test use the same rules, so they say the same. Must not know Spark.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.pipeline.declaration import Pipeline, PythonStep, StepDeclaration, UnitTest, UnitTestRows
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.problems import Problem, nearest_word
from limnos.pipeline.run.parameters import PARAMETER_EXAMPLES, RUN_AT, RUN_ID, typed_value

DEFAULT_RUN_AT = datetime(2000, 1, 1, tzinfo=UTC)
"""The value of `:run_at` in a test that does not give it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedStep:
    """A step with tests. `inputs` maps the full name of each of its inputs to the name in its body."""

    pipeline: Pipeline
    step: StepDeclaration
    inputs: Mapping[Parts, Parts]
    full_name: Callable[[Parts], Parts]
    """Returns the full path of a table, and a source's name as one part."""

    def names_in_body(self) -> list[str]:
        """Return the names of the inputs as the step's body has them."""
        return [display.render(parts) for parts in self.inputs.values()]


def input_problems(tested: TestedStep, test: UnitTest) -> Iterator[Problem]:
    """Return problems of `given`: inputs that the step does not read, and inputs that lack rows."""
    test_inputs = {tested.full_name(parts): parts for parts in test.given}
    unknown = [parts for full, parts in test_inputs.items() if full not in tested.inputs]
    missing_inputs = [display.render(parts) for full, parts in tested.inputs.items() if full not in test_inputs]
    for parts in unknown:
        advice = _other_input(tested, parts)
        yield Problem(
            f"'given' has rows of {display.render(parts)}, which the step does not read{advice}",
            test.given_at.get(parts, test.at),
        )
    for name in missing_inputs[len(unknown) :]:  # the others are what the unknown names stand for
        yield Problem(f"'given' lacks rows of {name}, which the step reads; write {name}: [] for none", test.at)


def _other_input(tested: TestedStep, parts: Parts) -> str:
    """Return the advice for an input that the step does not read."""
    name, input_names = display.render(parts), tested.names_in_body()
    body = tested.step.body
    if isinstance(body, PythonStep) and len(parts) == 1 and parts[0] in body.inputs:
        value = body.inputs[parts[0]]
        return f": it is an argument; write {display.render(value if isinstance(value, tuple) else (value,))}"
    if tested.full_name(parts) == tested.step.table:
        return f": it is the step itself; give rows of {_join_words(input_names)}"
    lowered = next((one for one in input_names if one.lower() == name.lower()), None)
    if lowered is not None:
        return f"; did you mean '{lowered}'? Upper and lower case differ"
    return nearest_word(name, input_names) or f"; it reads {_join_words(input_names)}"


def parameter_problems(pipeline: Pipeline, test: UnitTest) -> Iterator[Problem]:
    """Return problems of `parameters`: unknown names, values of another type, and missing values."""
    declared = {one.name: one for one in pipeline.parameters}
    for name, value in test.parameters.items():
        at = test.parameters_at.get(name, test.at)
        if name == RUN_AT:
            if moment_of(value) is None:
                yield Problem(f"run_at: '{value}' is not a time; write for example 2026-01-31T12:00:00Z", at)
        elif name not in declared and name != RUN_ID:
            parameter_names = [*declared, RUN_ID, RUN_AT]
            near = nearest_word(name, parameter_names) or f"; there are {_join_words(parameter_names)}"
            yield Problem(f"the pipeline has no parameter '{name}'{near}", at)
        elif name in declared:
            try:
                typed_value(declared[name], value)
            except BadRequest:
                kind = declared[name].type
                example = f"write for example {name}: {PARAMETER_EXAMPLES[kind]}"
                yield Problem(f"parameter {name}: '{value}' is not a valid {kind.value}; {example}", at)
    for name, parameter in declared.items():
        if parameter.default is None and name not in test.parameters:
            kind = parameter.type
            example = f"parameters: {{{name}: {PARAMETER_EXAMPLES[kind]}}}"
            yield Problem(f"parameter {name} ({kind.value}) has no default; write {example} in the test", test.at)


def moment_of(value: object) -> datetime | None:
    """Return the time of `:run_at` in a test, in UTC if it has no zone; None for a text that is no time."""
    if value is None:
        return DEFAULT_RUN_AT
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def given_column_problems(test: UnitTest, parts: Parts, *, known: Sequence[str]) -> Iterator[Problem]:
    """Return the columns of an input's rows that the input lacks. `known` are its columns."""
    rows, owner = test.given[parts], display.render(parts)
    lowered = {name.lower() for name in known}
    for name in rows.columns:
        if name.lower() not in lowered:
            advice = _or_else(name, known, otherwise=f"it has {_join_words(known)}")
            yield Problem(f"{owner} has no column '{name}'{advice}", rows.columns_at.get(name, rows.at or test.at))


def expected_column_problems(test: UnitTest, *, known: Sequence[str]) -> Iterator[Problem]:
    """Return the columns of `expect` that the step does not make. `known` are those that it makes."""
    rows = test.expected
    lowered = {name.lower() for name in known}
    for name in rows.columns:
        if name.lower() not in lowered:
            advice = _or_else(name, known, otherwise=f"it makes {_join_words(known)}")
            yield Problem(
                f"'expect' has a column '{name}', which the step does not make{advice}",
                rows.columns_at.get(name, rows.at or test.at),
            )


def schema_column_problems(rows: UnitTestRows, *, owner: str, known: Sequence[str] | None) -> Iterator[Problem]:
    """Return the columns of rows that their own `schema` lacks. `known` are its columns, None if it is no schema."""
    if known is None:
        yield Problem(f"{owner}: '{rows.schema}' is not a list of columns; write 'id bigint, name string'", rows.at)
        return
    lowered = {name.lower() for name in known}
    for name in rows.columns:
        if name.lower() not in lowered:
            advice = _or_else(name, known, otherwise=f"it has {_join_words(known)}")
            yield Problem(f"{owner}: 'schema' has no column '{name}'{advice}", rows.columns_at.get(name, rows.at))


def expected_key_problems(step: StepDeclaration, test: UnitTest) -> Iterator[Problem]:
    """Return the first row of `expect` whose key an earlier row has, of a step that writes one row for each key."""
    rows = test.expected
    columns = {name.lower(): name for name in rows.columns}
    keys = [columns[key.lower()] for key in step.write.keys if key.lower() in columns]
    if not keys or len(keys) < len(step.write.keys):
        return
    row_numbers: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(rows.rows, start=1):
        key = tuple(str(row.get(name)) for name in keys)
        if key in row_numbers:
            text = ", ".join(f"{name} {value}" for name, value in zip(keys, key, strict=True))
            at = rows.rows_at[number - 1] if rows.rows_at else rows.at
            yield Problem(
                f"rows {row_numbers[key]} and {number} of 'expect' have one key ({text[:80]}): 'write: "
                f"{step.write.mode.value}' has one row for each key; take one of them out",
                at,
            )
            return
        row_numbers[key] = number


def of_test(problem: Problem, *, step: StepDeclaration, test: UnitTest) -> Problem:
    """Return a test's problem with the names of step and test in its message."""
    return replace(problem, message=f"{step.name}, test '{test.name}': {problem.message}")


def require_tests(steps: Sequence[StepDeclaration], *, of: Pipeline) -> None:
    """Raise BadRequest if none of the selected steps of a pipeline has a test."""
    if any(step.tests for step in steps):
        return
    others = [step.name for step in of.steps if step.tests]
    if others:
        names = _join_words([step.name for step in steps])
        raise BadRequest(f"the selected steps have no tests: {names}; steps with tests are {_join_words(others)}")
    raise BadRequest(
        "no step has tests: write `tests: {name: {given: {INPUT: [{column: value}]}, expect: [{column: value}]}}` "
        "beside a step"
    )


def unknown_test(word: str, steps: Sequence[StepDeclaration]) -> str:
    """Return the advice for a pattern of tests' names that matches none of the steps' tests."""
    names = list(dict.fromkeys(test.name for step in steps for test in step.tests))
    lowered = next((name for name in names if name.lower() == word.lower()), None)
    if lowered is not None:
        return f"; did you mean '{lowered}'? Upper and lower case differ"
    if any(step.name == word for step in steps):
        return f": '{word}' is a step; write --select {word}"
    near = difflib.get_close_matches(word, names, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; there are {_join_words(names)}"


def _or_else(name: str, known: Sequence[str], *, otherwise: str) -> str:
    """Return the most similar name as a proposal, and what there is."""
    near = nearest_word(name, known)
    return f"{near} {otherwise[0].upper()}{otherwise[1:]}" if near else f"; {otherwise}"


def _join_words(words: Sequence[str]) -> str:
    more = f" and {len(words) - 20} more" if len(words) > 20 else ""
    return (", ".join(words[:20]) or "nothing") + more
