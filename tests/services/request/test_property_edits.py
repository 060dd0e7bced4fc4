# SPDX-License-Identifier: Apache-2.0
"""Property edits: removed, set and unchanged properties; cleared comments."""

from __future__ import annotations

import pytest

from limnos.services.request.property_edits import PropertyEdits

STORED = {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "edits, expected",
    [
        (PropertyEdits(), {"a": "1", "b": "2"}),
        (PropertyEdits(sets={"b": "3", "c": "4"}), {"a": "1", "b": "3", "c": "4"}),
        (PropertyEdits(removes=("a", "missing")), {"b": "2"}),
        (PropertyEdits(sets={"a": "5"}, removes=("a",)), {"a": "5", "b": "2"}),
    ],
)
def test_set_wins_over_removal_of_the_same_property(edits: PropertyEdits, expected: dict[str, str]) -> None:
    """If a property is both set and removed, it is set. Other properties do not change, and the stored mapping is not
    modified.
    """
    assert edits.over(STORED) == expected
    assert STORED == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "edits, expected",
    [
        (PropertyEdits(), "old"),
        (PropertyEdits(comment="new"), "new"),
        (PropertyEdits(comment=""), ""),
        (PropertyEdits(clears_comment=True), None),
        (PropertyEdits(comment="new", clears_comment=True), None),
    ],
)
def test_comment_changes_only_if_set_or_cleared(edits: PropertyEdits, expected: str | None) -> None:
    """A comment does not change unless the request sets or clears it. An empty comment is a comment."""
    assert edits.edited_comment("old") == expected
