# SPDX-License-Identifier: Apache-2.0
"""Planted bugs: for each of them the main property fails.

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
"""The seeds of sequences in which a bug was detected. They run first if earlier ones do not detect it; the others
follow, because sequences can change.
"""


def is_caught(bug: Plant, template: Path, folder: Path, *, focus: bool, first: int = 0) -> bool:
    """Return whether one of many short sequences violates an invariant under the bug."""
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
def test_planted_bug_is_detected(name: str, sqlite_template: Path, tmp_path: Path) -> None:
    """Without this safeguard a view becomes wrong within a limited number of sequences."""
    assert is_caught(WIDE[name], sqlite_template, tmp_path, focus=False)


@pytest.mark.parametrize("name", FOCUS)
def test_planted_bug_is_detected_in_focused_sequences(name: str, sqlite_template: Path, tmp_path: Path) -> None:
    """Without this safeguard, in focused sequences, an answer is given that was never true, or a commit is made without
    the privilege.
    """
    assert is_caught(FOCUS[name], sqlite_template, tmp_path, focus=True, first=SEEN_AT.get(name, 0))
