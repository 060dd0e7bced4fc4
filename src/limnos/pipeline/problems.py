# SPDX-License-Identifier: Apache-2.0
"""Problems of a declaration, collected with their positions.

Defines the errors for an invalid pipeline and an invalid query. Must not know the form of a declaration, or Spark.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from limnos.model.errors import BadRequest, NotFound
from limnos.names import display
from limnos.pipeline.declaration import Sql, StepDeclaration
from limnos.pipeline.declared_values import SourcePosition

PROBLEMS_SHOWN = 20
"""The number of problems that a message lists; it also states the total number."""
_QUERY_LINE = re.compile(r"\bline ([0-9]{1,6}),? pos(?:ition)? [0-9]+")
"""A position in a query, as Spark's messages have it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, with its position and advice."""

    message: str
    at: SourcePosition | None = None

    def __str__(self) -> str:
        """Return `position: message`, which editors and terminals open."""
        return self.message if self.at is None else f"{self.at}: {self.message}"


class InvalidPipeline(BadRequest):
    """Raised for a declaration that cannot run. `problems` are sorted by position."""

    code = "invalid-pipeline"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=_place))
        super().__init__("\n".join(_lines(self.problems)))


class InvalidQuery(BadRequest):
    """Raised for invalid SQL in a step. `line` and `column` count from one, within the query's own text."""

    code = "invalid-query"

    def __init__(self, message: str, *, line: int = 1, column: int = 1) -> None:
        super().__init__(message, line=line, column=column)
        self.line = line
        self.column = column


class AbsentTable(NotFound):
    """Raised if a run reads `table`, its catalog first, that does not exist or that the caller may not see. `reader` is
    the step that reads it, with its position; `near` are paths of tables that may be meant.
    """

    def __init__(self, table: tuple[str, ...], *, reader: str | None = None, near: Sequence[str] = ()) -> None:
        name = display.render(table)
        who = name if reader is None else f"{reader} reads {name}, which"
        trash = f"'limnos list trash {table[0]}' lists dropped objects"
        meant = nearest_word(name, near)
        super().__init__(f"{who} does not exist, or you may not see it{meant}; {trash}", kind="table")
        self.table = table


def within(at: SourcePosition | None, error: InvalidQuery) -> SourcePosition | None:
    """Translate the position of a query's error into a position in the file.

    Assumes that the following lines are indented like the first line.
    """
    if at is None:
        return None
    return SourcePosition(at.file, at.line + error.line - 1, at.column + error.column - 1)


def offset(at: SourcePosition | None, text: str, *, index: int) -> SourcePosition | None:
    """Return the position of the character `index` of a text that begins at `at`.

    Assumes that the following lines are indented like the first line.
    """
    if at is None or index < 0:
        return at
    line_start = text.rfind("\n", 0, index) + 1
    return SourcePosition(at.file, at.line + text.count("\n", 0, index), at.column + index - line_start)


def step_position(step: StepDeclaration, message: str) -> SourcePosition | None:
    """Return the position in the file of what a message about a step is about: the line of its query that Spark names,
    else the step.
    """
    match = _QUERY_LINE.search(message)
    if match is None or not isinstance(step.body, Sql) or step.body.at is None:
        return step.at
    start = step.body.at
    return SourcePosition(start.file, start.line + int(match[1]) - 1, start.column)


def nearest_word(word: str, known: Sequence[str]) -> str:
    """Return a clause that suggests the most similar word of `known`; empty if none is similar."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6) if len(word) < 100 else []
    return f"; did you mean '{near[0]}'?" if near else ""


def _place(problem: Problem) -> tuple[str, int, int]:
    return ("", 0, 0) if problem.at is None else (problem.at.file, problem.at.line, problem.at.column)


def _lines(problems: Sequence[Problem]) -> list[str]:
    lines = [str(problem) for problem in problems[:PROBLEMS_SHOWN]]
    if len(problems) > PROBLEMS_SHOWN:
        lines.append(f"and {len(problems) - PROBLEMS_SHOWN} more problems")
    return lines
