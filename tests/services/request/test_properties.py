"""Edits: what is removed, set and left alone; comments that are cleared."""

from __future__ import annotations

import pytest

from limnos.services.request.properties import Edits

STORED = {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "edits, found",
    [
        (Edits(), {"a": "1", "b": "2"}),
        (Edits(sets={"b": "3", "c": "4"}), {"a": "1", "b": "3", "c": "4"}),
        (Edits(removes=("a", "missing")), {"b": "2"}),
        (Edits(sets={"a": "5"}, removes=("a",)), {"a": "5", "b": "2"}),
    ],
)
def test_properties(edits: Edits, found: dict[str, str]) -> None:
    """What is set wins over what is removed, what is not named stays, and what was stored is not touched."""
    assert edits.over(STORED) == found
    assert STORED == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "edits, found",
    [
        (Edits(), "old"),
        (Edits(comment="new"), "new"),
        (Edits(comment=""), ""),
        (Edits(clears_comment=True), None),
        (Edits(comment="new", clears_comment=True), None),
    ],
)
def test_comment(edits: Edits, found: str | None) -> None:
    """A comment stays unless one is given, an empty one is one, and clearing leaves none."""
    assert edits.comment_over("old") == found
