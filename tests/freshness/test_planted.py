"""Planted bugs: the property fails for each of them.

Bugs that need a certain interleaving of two requests are in `test_scripts`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends import sqlite_copy
from tests.freshness.harness import InvariantViolation, play
from tests.freshness.planted_bugs import FOCUS, WIDE, Plant

pytestmark = pytest.mark.heavy

SEEDS = 40
STEPS = 120
SEEN_AT = {"own zone only": 8, "metalake only": 5}
"""Stories that a bug was seen to break; they come first, where the ones before them broke nothing. The others
follow, should stories change.
"""


def is_caught(bug: Plant, template: Path, folder: Path, *, focus: bool, first: int = 0) -> bool:
    """Say whether one of many short stories breaks under the bug."""
    for seed in (*range(first, SEEDS), *range(first)):
        place = folder / str(seed)
        place.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            bug(patch)
            try:
                play(sqlite_copy(template, place), seed, STEPS, focus=focus)
            except InvariantViolation:
                return True
    return False


@pytest.mark.parametrize("name", WIDE)
def test_property_fails_under(name: str, sqlite_template: Path, tmp_path: Path) -> None:
    """With this care taken out, a view is wrong before long."""
    assert is_caught(WIDE[name], sqlite_template, tmp_path, focus=False)


@pytest.mark.parametrize("name", FOCUS)
def test_property_fails_in_a_crowd_under(name: str, sqlite_template: Path, tmp_path: Path) -> None:
    """With this care taken out, an answer that was never true is given, or a commit is made without the right to it."""
    assert is_caught(FOCUS[name], sqlite_template, tmp_path, focus=True, first=SEEN_AT.get(name, 0))
