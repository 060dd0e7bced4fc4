# SPDX-License-Identifier: Apache-2.0
"""Spelling corrections: words at a distance of one letter, words that may be suggested, and queries with a
suggestion.
"""

from __future__ import annotations

import random

import pytest

from limnos.rooms.search.services.spelling import (
    SPELLED_MAX,
    Suggestion,
    correct_query,
    has_word,
    near_words,
    spelled_words,
)
from limnos.rooms.search.services.words import words_of


@pytest.mark.parametrize("word", ["flights", "orders2024", "übergrösse", "рейсы"])
def test_near_words_of_a_one_letter_error_include_the_right_word(word: str) -> None:
    """A word with two letters swapped, or one letter missing, doubled or replaced, has the right word among its near
    words.
    """
    dice = random.Random(word)
    for _ in range(200):
        place, letter = dice.randrange(len(word) - 1), dice.choice(word)
        wrong = dice.choice(
            (
                f"{word[:place]}{word[place + 1]}{word[place]}{word[place + 2 :]}",
                f"{word[:place]}{word[place + 1 :]}",
                f"{word[:place]}{letter}{word[place:]}",
                f"{word[:place]}{letter}{word[place + 1 :]}",
            )
        )
        assert wrong == word or word in near_words(wrong), wrong


def test_near_words_are_unique_and_exclude_the_word_itself() -> None:
    """Near words are unique and do not include the word itself. Very short and very long words have none."""
    near = near_words("aaab")

    assert len(near) == len(set(near))
    assert "aaab" not in near
    assert near[0] == "aaba"  # swapped letters are the more likely error
    assert near_words("abc") == near_words("x" * (SPELLED_MAX + 1)) == []


def test_short_long_and_numeric_words_are_not_suggested() -> None:
    """Short words, long words, numbers and prefixes of words are not suggested."""
    assert spelled_words(["id flights 2024 x1y2", "", "y" * 40]) == {"flights", "x1y2"}
    assert has_word("flights", texts=["daily flights"], names=[])
    assert has_word("harbour", texts=[""], names=["main", "oldHarbour"])
    assert not has_word("flight", texts=["flights"], names=["flights_archive"])
    assert words_of(["oldHarbour"]).split(" ")[-1] == "harbour"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Fligths kind:table", "flights kind:table"),
        ("fligthsarchive fligths", "fligthsarchive flights"),
        ("daily_fligths", "daily_flights"),
    ],
)
def test_correction_replaces_whole_words_and_keeps_filters(text: str, expected: str) -> None:
    """A correction replaces whole words only, and filters stay."""
    assert correct_query(text, Suggestion("fligths", "flights")) == expected
