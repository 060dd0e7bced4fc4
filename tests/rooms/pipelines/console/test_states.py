# SPDX-License-Identifier: Apache-2.0
"""Texts about the states and results of pipelines."""

from __future__ import annotations

from limnos.rooms.pipelines.console.states import message_text


def test_leading_rule_name_is_removed_from_the_message() -> None:
    """The rule's name is removed from a message that begins with it, and only there."""
    assert message_text("unique faa", "unique faa: holds for all of 1,458 rows") == "holds for all of 1,458 rows"
    assert message_text("faa", "the faa: is missing") == "the faa: is missing"
