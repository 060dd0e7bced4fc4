# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in published snapshots: searched from the head back, and parsed as untrusted input."""

from __future__ import annotations

import pytest

from limnos.pipeline.checkpoints import INPUTS, checkpoint_of, head_of, inputs_of

FOUND: dict[str, object] = {
    "current-snapshot-id": 3,
    "snapshots": [
        {"snapshot-id": 1, "summary": {INPUTS: "old"}},
        {"snapshot-id": 2, "parent-snapshot-id": 1, "summary": {INPUTS: "new"}},
        {"snapshot-id": 3, "parent-snapshot-id": 2, "summary": {"operation": "replace"}},
        {"snapshot-id": 4, "parent-snapshot-id": 3, "summary": {INPUTS: "of a branch"}},
    ],
}


def test_newest_checkpoint_of_main_is_used() -> None:
    """The newest checkpoint of `main` is used: maintenance snapshots after it are skipped, other branches are ignored,
    and a missing table has none.
    """
    assert (head_of(FOUND), checkpoint_of(FOUND)[INPUTS]) == (3, "new")
    assert (head_of(None), checkpoint_of(None)) == (None, {})


@pytest.mark.parametrize("text", [None, "", "no json", "[1]", "7", "null"])
def test_malformed_checkpoint_is_ignored(text: str | None) -> None:
    """Text of another form is not a checkpoint."""
    assert inputs_of(text) is None


def test_checkpoint_states_of_other_types_are_ignored() -> None:
    """A state is a snapshot, a definition or null. States of other types are left out, including true, which Python
    treats as 1.
    """
    assert inputs_of('{"a": 1, "b": "x", "c": null, "d": true, "e": [2], "f": 1.5}') == {"a": 1, "b": "x", "c": None}
