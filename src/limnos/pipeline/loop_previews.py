# SPDX-License-Identifier: Apache-2.0
"""Steps of loops over queries before a run: for checks, plans, unit tests and pictures.

The steps are those of known rows: read just now, or when the newest published run started. Of a loop without known rows
there is one step, of the file's example or of words that stand for any row. Its name has the variables, and what
depends on the words is not reported. Must not know Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from limnos.client import Client
from limnos.client.errors import DeniedError, NotFoundError
from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import LOOP_VARIABLE, LoopRows, Pipeline, QueryLoop
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.environments import in_environment
from limnos.pipeline.problems import InvalidPipeline, Problem
from limnos.pipeline.query_loops import recorded_rows

_ANY: Final = "any_"
"""The beginning of a word that stands for any value of a variable, whose name follows."""
_NUMBER: Final = 2001
"""The number that stands for any value of the first variable, where a word does not fit; others follow."""
STAND_INS: Final = 2
"""The number of rows that can stand for any row: one of words, one of numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPreview:
    """A pipeline with steps of its loops over queries, and what is said about them."""

    pipeline: Pipeline
    """`loops` has those whose query is not read, so that a run may make other steps than these."""
    notes: tuple[str, ...] = ()
    stand_ins: Mapping[Parts, QueryLoop] = field(default_factory=dict)
    """The loops of steps that stand for any row, by the steps' tables."""
    words: Mapping[str, str] = field(default_factory=dict)
    """The names of the variables by the words that stand for their values."""

    def depends_on_row(self, text: str) -> bool:
        """Return whether a text has a word that stands for a value."""
        return any(word in text for word in self.words)

    def with_variables(self, text: str) -> str:
        """Return a text with the variables in place of the words that stand for their values."""
        for word, name in self.words.items():
            text = re.sub(rf"(?<![A-Za-z0-9]){word}(?![A-Za-z0-9])", f"{{{{{name}}}}}", text)
        return text

    def is_about_stand_in(self, problem: Problem) -> bool:
        """Return whether a problem is one of a step that stands for any row, or of one that reads it."""
        names = [loop.name for loop in self.stand_ins.values()]
        return any(name in problem.message for name in names) or self.depends_on_row(problem.message)


def loop_preview(
    pipeline: Pipeline,
    *,
    rows: Mapping[str, LoopRows] | None = None,
    recorded: Mapping[str, LoopRows] | None = None,
    run: str = "",
    stand_in: int = 0,
) -> LoopPreview:
    """Return the pipeline with steps of its loops. `rows` are those of the queries as they are now.

    `recorded` are the rows with which the run `run` started. `stand_in` is the number of the row that stands for any,
    less than `STAND_INS`. Raises InvalidPipeline for `rows` that make no valid steps.
    """
    if not pipeline.loops or pipeline.expand is None:
        return LoopPreview(pipeline=pipeline)
    chosen = _ChosenRows(pipeline=pipeline, rows=dict(rows or {}))
    for loop in pipeline.loops:
        if loop.name not in chosen.rows:
            chosen.choose(loop, of_run=(recorded or {}).get(loop.name), run=run, stand_in=stand_in)
    expanded = _expand_loops(pipeline, chosen.rows)
    preview_tables = {loop.name: _table_of(loop, chosen.rows[loop.name]) for loop in chosen.stand_ins}
    tables = {
        step.table: loop
        for loop in chosen.stand_ins
        for step in expanded.steps
        if ".".join(step.declared_table[1:]) == preview_tables[loop.name]
    }
    steps = tuple(
        replace(step, declared=(step.declared_table[0], *_parts(tables[step.table].name)))
        if step.table in tables
        else step
        for step in expanded.steps
    )
    unread = tuple(loop for loop in pipeline.loops if loop.name not in (rows or {}))
    return LoopPreview(
        pipeline=replace(expanded, steps=steps, loops=unread, expand=pipeline.expand),
        notes=tuple(chosen.notes),
        stand_ins=tables,
        words=chosen.words,
    )


@dataclass(slots=True, kw_only=True)
class _ChosenRows:
    """The rows of loops that are chosen so far, and what is said about them."""

    pipeline: Pipeline
    rows: dict[str, LoopRows]
    notes: list[str] = field(default_factory=list)
    stand_ins: list[QueryLoop] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)

    def choose(self, loop: QueryLoop, *, of_run: LoopRows | None, run: str, stand_in: int) -> None:
        """Choose the rows with which a run started, else a row that stands for any, if they make valid steps."""
        if of_run is not None and self._makes_steps(loop, of_run):
            self.rows[loop.name] = of_run
            self.notes.append(
                f"steps of {loop.name} for other rows than those of run {run}: a run reads its query when it starts"
            )
            return
        numbers = dict.fromkeys((stand_in, *range(STAND_INS)))
        number = next((one for one in numbers if self._makes_steps(loop, stand_in_rows(loop, number=one))), None)
        if number is None:
            self.notes.append(f"the steps of {loop.name}: a run makes one of each row of its query when it starts")
            return
        self.rows[loop.name] = stand_in_rows(loop, number=number)
        self.stand_ins.append(loop)
        words = _stand_in_words(loop, number=number)
        self.words |= {str(word): name for name, word in words.items() if name not in loop.example}
        self.notes.append(f"the steps of {loop.name}, beyond one {_row_note(loop)}: a run makes one of each row")

    def _makes_steps(self, loop: QueryLoop, rows: LoopRows) -> bool:
        try:
            _expand_loops(self.pipeline, {**self.rows, loop.name: rows})
        except InvalidPipeline:
            return False
        return True


def stand_in_rows(loop: QueryLoop, *, number: int = 0) -> LoopRows:
    """Return a row of a loop's example, and of words or numbers that stand for any value of other variables."""
    values = [loop.example.get(name, word) for name, word in _stand_in_words(loop, number=number).items()]
    return LoopRows(query=loop.query, columns=loop.variables, rows=(tuple(values),))


def _stand_in_words(loop: QueryLoop, *, number: int) -> dict[str, str | int]:
    return {name: _NUMBER + index if number else f"{_ANY}{name}" for index, name in enumerate(loop.variables)}


def rows_of_newest_run(client: Client, pipeline: Pipeline) -> tuple[str, dict[str, LoopRows]]:
    """Return the id of the newest published run that the caller may see, and the rows of those loops whose query was
    the same then. Empty without such a run.
    """
    if not pipeline.loops:
        return "", {}
    try:
        listed = client.runs.list(pipeline=pipeline.name, state="published", limit=1)
        run = client.runs.load(listed[0].id) if listed else None  # a list has no options
    except (DeniedError, NotFoundError):
        return "", {}
    if run is None:
        return "", {}
    rows: dict[str, LoopRows] = {}
    for loop in pipeline.loops:
        try:
            rows |= recorded_rows(replace(pipeline, loops=(loop,)), run.options, run=run.id)
        except BadRequest:  # the loop is new, or has another query
            continue
    return run.id, rows


def independent_problems(
    first: Iterable[Problem], second: Iterable[Problem], *, preview: LoopPreview
) -> Iterator[Problem]:
    """Yield the problems that are about no stand-in, or that two stand-ins have and that no word of theirs causes."""
    common = {problem.message for problem in second}
    for problem in first:
        is_independent = not preview.depends_on_row(problem.message) and problem.message in common
        if is_independent or not preview.is_about_stand_in(problem):
            yield problem


def _row_note(loop: QueryLoop) -> str:
    if all(name in loop.example for name in loop.variables):
        return "for the example"
    return "for any row"


def _expand_loops(pipeline: Pipeline, rows: Mapping[str, LoopRows]) -> Pipeline:
    if pipeline.expand is None:
        return pipeline
    environment = pipeline.environment
    return in_environment(pipeline.expand(rows), None if environment is None else environment.name)


def _table_of(loop: QueryLoop, rows: LoopRows) -> str:
    """Return the name of the step that a loop's only row makes."""
    values = dict(zip(rows.columns, map(str, rows.rows[0]), strict=True))
    return LOOP_VARIABLE.sub(lambda match: values.get(match[1], ""), loop.name)


def _parts(name: str) -> Parts:
    """Return the parts of a step's name with variables, which have no dots."""
    return tuple(name.split("."))
