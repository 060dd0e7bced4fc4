# SPDX-License-Identifier: Apache-2.0
"""Spelling: candidates for the correction of a misspelled word, at edit distance one, in the order of likelihood.

Pure. Must not know the stored words: callers look them up, and suggest only words of objects that the caller may load.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from limnos.names.parts import fold
from limnos.rooms.search.services.words import CONTAINER_MARK, words_of

SPELLED_MIN: Final = 4
"""The length of the shortest word that is corrected; the words that differ from a shorter one mean something else."""
SPELLED_MAX: Final = 32
SPELLED_WORDS_MAX: Final = 4
"""The number of words of a query that are corrected."""
_LATIN: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_BLOCK: Final = 64


class Suggestion(NamedTuple):
    """A word of a query, and its suggested correction."""

    word: str
    correction: str


def near_words(word: str) -> list[str]:
    """Return the words at edit distance one: by transposition of neighbouring letters, deletion, insertion or
    replacement.

    Inserted letters are Latin letters, and letters from the Unicode blocks of the word's other letters.
    """
    if not SPELLED_MIN <= len(word) <= SPELLED_MAX:
        return []
    parts = [(word[:index], word[index:]) for index in range(len(word) + 1)]
    letters = [*_LATIN, *sorted({each for letter in word if not letter.isascii() for each in _letters_near(letter)})]
    near = [f"{left}{right[1]}{right[0]}{right[2:]}" for left, right in parts if len(right) > 1]
    near += [f"{left}{right[1:]}" for left, right in parts if right]
    near += [f"{left}{letter}{right}" for left, right in parts for letter in letters]
    near += [f"{left}{letter}{right[1:]}" for left, right in parts if right for letter in letters]
    return [each for each in dict.fromkeys(near) if each != word]


@cache
def _letters_near(letter: str) -> tuple[str, ...]:
    first = ord(letter) // _BLOCK * _BLOCK
    block = map(chr, range(first, first + _BLOCK))
    return tuple(each for each in block if each.isalpha() and fold(each) == each)


def spelled_words(texts: Iterable[str]) -> set[str]:
    """Return the words of indexed texts that a correction may suggest."""
    words = set(" ".join(texts).split(" "))
    return {
        word
        for word in words
        if SPELLED_MIN <= len(word) <= SPELLED_MAX and not word.isdecimal() and word[0] != CONTAINER_MARK
    }


def has_word(word: str, *, texts: Iterable[str], names: Iterable[str]) -> bool:
    """Return whether a word is a whole word of indexed texts or of names."""
    return any(word in text.split(" ") for text in (*texts, words_of(names)))


def correct_query(text: str, suggestion: Suggestion) -> str:
    """Return the text of a query with the misspelled word replaced by the suggested one."""
    return re.sub(
        rf"(?<![^\W_]){re.escape(suggestion.word)}(?![^\W_])", suggestion.correction, text, count=1, flags=re.IGNORECASE
    )
