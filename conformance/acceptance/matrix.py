# SPDX-License-Identifier: Apache-2.0
"""Runs every change over every protocol and counts statements: the cells of the matrix, and its page.

May import this package. Knows nothing of how a node is run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.acceptance.changes import CHANGES, Home
from conformance.acceptance.protocols import FACES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.acceptance.changes import Change
    from conformance.acceptance.protocols import Face
    from conformance.acceptance.world import World

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "acceptance.md"
WARM: Final = 2
"""Requests before a count: the first fills the view, the second finds it filled."""
ASKS: Final = 10
"""Requests per count. The least number of statements counts: after a drop other nodes commit several times in a row."""
SLACK: Final = 2
MARK: Final = "<!-- Below here: written by `conformance/run acceptance write`. -->"


class Cell(NamedTuple):
    """The answer directly after a change, and statements: before it, directly after it, and once more."""

    told: str
    hot: int
    following: int
    again: int
    wrong: str | None

    def __str__(self) -> str:
        return self.wrong or f"{self.told}: {self.hot}, {self.following}, {self.again}"


def tried(world: World, face: Face, change: Change) -> Cell:
    """Execute a change, with requests before and after it."""
    home = Home(world, face)
    change.prepare(home)
    for _ in range(WARM):
        home.ask()
    before, hot = _settled(home)
    change.does(home)
    answer, following = home.ask()
    once_more, again = _settled(home)
    wrong = None if home.complaint is None else f"WRONG: {home.complaint}"
    if (before, answer, once_more) != (change.before, change.after, change.after):
        wrong = f"WRONG: {before}, then {answer}, then {once_more}; right: {change.before}, {change.after}"
    elif max(hot, again) > face.hot_max:
        wrong = f"WRONG: {hot} statements before, {again} after; {face.hot_max} at most"
    return Cell(told=answer, hot=hot, following=following, again=again, wrong=wrong)


def _settled(home: Home) -> tuple[str, int]:
    """Request several times. The least count is used, because a node's background work may add to the others."""
    answers = [home.ask() for _ in range(ASKS)]
    distinct_answers = list(dict.fromkeys(answer for answer, _ in answers))
    return ", then ".join(distinct_answers), min(count for _, count in answers)


def cells(world: World, faces: Sequence[Face] = FACES) -> list[list[Cell]]:
    """Run every change over every protocol, one row each.

    The first runs once before, so that nodes know the common facts.
    """
    for face in faces:
        tried(world, face, CHANGES[0])
    return [[tried(world, face, change) for face in faces] for change in CHANGES]


def section(title: str, rows: list[list[Cell]]) -> str:
    """Render the matrix of one store."""
    lines = [
        f"### {title}",
        "",
        f"| change | {' | '.join(face.title for face in FACES)} |",
        "|---" * (len(FACES) + 1) + "|",
        *(f"| {change.title} | {' | '.join(map(str, row))} |" for change, row in zip(CHANGES, rows, strict=True)),
    ]
    return "\n".join((*lines, ""))


def summary(matrices: dict[str, list[list[Cell]]]) -> str:
    """Return the number of cells, and their maximum cost."""
    every = [cell for rows in matrices.values() for row in rows for cell in row]
    right = sum(cell.wrong is None for cell in every)
    return (
        f"{right} of {len(every)} cells right; statements: {max(cell.hot for cell in every)} at most before a change,"
        f" {max(cell.following for cell in every)} at most right after it, {max(cell.again for cell in every)} at most"
        " from then on"
    )


def written(page: str, matrices: dict[str, list[list[Cell]]]) -> str:
    """Replace the generated part of the page."""
    head = page.partition(MARK)[0]
    return "\n".join((f"{head}{MARK}", "", f"{summary(matrices)}.", "", *(section(*each) for each in matrices.items())))


def differences(page: str, title: str, rows: list[list[Cell]]) -> list[str]:
    """Return differences to the page for one store. Statements directly after a change may vary a little."""
    lines = page.partition(f"### {title}\n")[2].partition("###")[0].strip().splitlines()[2:]
    page_rows = {line.split(" | ")[0].removeprefix("| "): line.rstrip(" |").split(" | ")[1:] for line in lines}
    mismatches = []
    for change, row in zip(CHANGES, rows, strict=True):
        written = page_rows.get(change.title, [])
        if [_firm(text) for text in written] != [_firm(str(cell)) for cell in row] or any(
            abs(_following(text) - cell.following) > SLACK for text, cell in zip(written, row, strict=True)
        ):
            mismatches.append(f"{change.title}: {' | '.join(map(str, row))}; the page: {' | '.join(written)}")
    return mismatches


def _firm(text: str) -> list[str]:
    """Return a cell without the statements directly after the change."""
    words = text.split(", ")
    return [words[0], words[-1]]


def _following(text: str) -> int:
    return int(text.split(", ")[1])
