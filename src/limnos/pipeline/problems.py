"""What is wrong with a declaration: sentences with their places, several at once.

Job: the one error that reading, checking and planning raise. May import `model.errors` and `declaration`; it must not
know how a declaration is spelled, nor of Spark.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import SourcePosition

PROBLEMS_SHOWN = 20
"""Of a file with more, the first ones are told, and how many there are."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where, and what to write instead."""

    message: str
    at: SourcePosition | None = None

    def __str__(self) -> str:
        """A line as editors and terminals open it."""
        return self.message if self.at is None else f"{self.at}: {self.message}"


class InvalidPipeline(BadRequest):
    """A declaration that can't be run as it stands. `problems` in the order of their places."""

    code = "invalid-pipeline"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=_place))
        super().__init__("\n".join(_lines(self.problems)))


class InvalidQuery(BadRequest):
    """A step's SQL that can't be taken. `line` and `column` count from one, in the query's own text."""

    code = "invalid-query"

    def __init__(self, message: str, *, line: int = 1, column: int = 1) -> None:
        super().__init__(message, line=line, column=column)
        self.line = line
        self.column = column


def within(at: SourcePosition | None, error: InvalidQuery) -> SourcePosition | None:
    """The place of a query's error in its file. Lines below the first stand as far in as the first one does."""
    if at is None:
        return None
    return SourcePosition(at.file, at.line + error.line - 1, at.column + error.column - 1)


def offset(at: SourcePosition | None, text: str, *, index: int) -> SourcePosition | None:
    """The place of a character of a text that begins at `at`, lines below the first as far in as it."""
    if at is None or index < 0:
        return at
    line_start = text.rfind("\n", 0, index) + 1
    return SourcePosition(at.file, at.line + text.count("\n", 0, index), at.column + index - line_start)


def nearest_word(word: str, known: Sequence[str]) -> str:
    """Say which of the known words was perhaps meant, as a clause to append; empty when none is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6) if len(word) < 100 else []
    return f"; did you mean '{near[0]}'?" if near else ""


def _place(problem: Problem) -> tuple[str, int, int]:
    return ("", 0, 0) if problem.at is None else (problem.at.file, problem.at.line, problem.at.column)


def _lines(problems: Sequence[Problem]) -> list[str]:
    lines = [str(problem) for problem in problems[:PROBLEMS_SHOWN]]
    if len(problems) > PROBLEMS_SHOWN:
        lines.append(f"and {len(problems) - PROBLEMS_SHOWN} more problems")
    return lines
