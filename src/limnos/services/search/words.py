# SPDX-License-Identifier: Apache-2.0
"""Words: the parts of names and texts that searches compare, and their matches with a query's words.

May import `names` and the standard library. Pure. A word of a query matches every word that begins with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from limnos.names.folding import fold

WORD_MIN: Final = 2
"""The length of the shortest search term, in characters."""
WORD_MAX: Final = 64
CACHED_TEXTS: Final = 16_384
"""The number of short texts whose words are cached: a few MiB."""
WORDS_MAX: Final = 20_000
"""The maximum number of words of one text that are stored."""
CONTAINER_MARK: Final = "\u01c2"
"""A letter before the marked words of containers. Full-text tables need a letter; this one is in no usual name."""
_RUN: Final = re.compile(r"[^\W_]+")
_PIECE: Final = re.compile(r"[0-9]+|[^\W\d_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class ObjectWords(NamedTuple):
    """The words of an object: of its name, of its columns' names, and of its comment and its columns' documentation.

    Each field is a string of words separated by spaces.
    """

    name: str
    columns: str
    comment: str


def words_of(texts: Iterable[str]) -> str:
    """Return the distinct words of texts as one string, separated by spaces, in the order of their first occurrence.

    Runs of letters and digits are words. Their parts, split at changes of case and between letters and digits, are
    words as well. A short text without its separators is also a word, so that `flight_id` and `flightId` have the same
    words.
    """
    kept_words: dict[str, None] = {}
    for text in texts:
        kept_words.update(dict.fromkeys(_short_text_words(text) if len(text) <= WORD_MAX else _text_words(text)))
        if len(kept_words) > WORDS_MAX:
            break
    return " ".join(word for word in kept_words if word)


def _text_words(text: str) -> tuple[str, ...]:
    runs = _RUN.findall(text)
    words: list[str] = []
    for run in runs:
        words.append(fold(run)[:WORD_MAX])
        if run.isalpha() and run.islower():
            continue  # one piece without changes of case
        for piece in _PIECE.findall(run):
            words += [fold(part)[:WORD_MAX] for part in _CAMEL.split(piece)]
    if 1 < len(runs) <= 8 and len(text) <= WORD_MAX:
        words.append(fold("".join(runs))[:WORD_MAX])
    return tuple(words)


_short_text_words = lru_cache(maxsize=CACHED_TEXTS)(_text_words)
"""Names of columns occur in many tables."""


def question_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct search terms of a query: runs of letters and digits, case-folded."""
    runs = (fold(run)[:WORD_MAX] for word in words for run in _RUN.findall(word))
    return tuple(dict.fromkeys(run for run in runs if len(run) >= WORD_MIN))


def is_met(word: str, text: str) -> bool:
    """Return whether a text, in the form that `words_of` returns, has a word that begins with `word`."""
    return text.startswith(word) or f" {word}" in text
