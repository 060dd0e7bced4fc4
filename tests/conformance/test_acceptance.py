# SPDX-License-Identifier: Apache-2.0
"""The access matrix across protocols, nodes and stores: every cell is correct, and the page has the counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.acceptance import matrix
from conformance.acceptance.changes import CHANGES
from conformance.acceptance.protocols import FACES
from conformance.acceptance.world import world_of
from tests.backends import Database
from tests.freshness import planted_bugs

pytestmark = pytest.mark.slow

TITLES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
Plant = Callable[[pytest.MonkeyPatch], None]


def test_difference_from_the_page_is_detected() -> None:
    """Another outcome, or another number of statements before the change, is a difference. After the change only a much
    higher number is one.
    """
    page = "### S\n\n| change | a |\n|---|---|\n" + "".join(
        f"| {each.title} | refused: 1, 6, 1 |\n" for each in CHANGES
    )

    def differ(cell: matrix.Cell) -> int:
        return len(matrix.differences(page, "S", [[cell]] * len(CHANGES)))

    assert differ(matrix.Cell(told="refused", hot=1, following=7, again=1, wrong=None)) == 0
    assert differ(matrix.Cell(told="allowed", hot=1, following=6, again=1, wrong=None)) == len(CHANGES)
    assert differ(matrix.Cell(told="refused", hot=2, following=6, again=1, wrong=None)) == len(CHANGES)
    assert differ(matrix.Cell(told="refused", hot=1, following=9, again=1, wrong=None)) == len(CHANGES)


@pytest.mark.parametrize("nodes,words", [(1, "one node"), (2, "two nodes")], ids=["one", "two"])
def test_matrix_equals_the_page(database: Database, tmp_path: Path, nodes: int, words: str) -> None:
    """The outcome of the next request after each change, and its number of statements, equal
    docs/reference/acceptance.md; every cell is correct.
    """
    title = f"{TITLES[database.kind]}, {words}"
    address = None if database.kind == "sqlite" else database.address
    with world_of(tmp_path / "data", nodes=nodes, database=address) as world:
        rows = matrix.cells(world)

    assert [cell.wrong for row in rows for cell in row if cell.wrong] == []
    assert matrix.differences(matrix.PAGE.read_text(encoding="utf-8"), title, rows) == [], (
        "conformance/run acceptance write"
    )


@pytest.mark.parametrize(
    "plant,title",
    [
        (planted_bugs.roles_of_a_principal_not_touched, "a role is taken from a user"),
        (planted_bugs.rules_not_touched, "a privilege is taken from a role"),
        (planted_bugs.memberships_not_touched, "a user leaves a group"),
        (planted_bugs.user_state_not_touched, "a user is disabled"),
        (planted_bugs.owner_not_touched, "another is made the owner"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_bug_is_a_wrong_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant, title: str
) -> None:
    """A node that invalidates too little after a change gives a wrong cell of the matrix, over every protocol."""
    (change,) = (each for each in CHANGES if each.title == title)
    with world_of(tmp_path / "data", nodes=2) as world:
        sound = [matrix.tried(world, face, change) for face in FACES]
        plant(monkeypatch)
        spoilt = [matrix.tried(world, face, change) for face in FACES]

    assert [cell.wrong for cell in sound] == [None] * len(FACES)
    assert all(str(cell.wrong).startswith("WRONG") for cell in spoilt)
