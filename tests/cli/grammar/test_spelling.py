# SPDX-License-Identifier: Apache-2.0
"""Known words that a misspelt one may be."""

from __future__ import annotations

import pytest

from limnos.cli.grammar.spelling import close_words


@pytest.mark.parametrize(
    "word,known", [("mask", "task"), ("denied", "done"), ("--tail", "--until"), ("--mask", "--as")]
)
def test_words_of_another_meaning_are_not_similar(word: str, known: str) -> None:
    """Words that differ in their first letter, or in most, are no misspellings of one another."""
    assert close_words(word, [known], cutoff=0.7) == []
