# SPDX-License-Identifier: Apache-2.0
"""Words: the parts of names and texts that searches compare, and their matches with a query's words.

May import `names` and the standard library. Pure. A word of a query matches every word that begins with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
JOINED_MAX: Final = 8
"""The maximum number of words of a text that are a word together, too."""
_SPACES: Final = {code: " " for code in range(128) if not chr(code).isalnum() and chr(code) != "\n"}
_RUN: Final = re.compile(r"[^\W_]+")
_DIGIT: Final = re.compile(r"[0-9]")
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
    """Return the distinct words of texts as one string, separated by spaces.

    Runs of letters and digits are words. Their parts, split at changes of case and between letters and digits, are
    words as well. A short text without its separators is also a word, so that `flight_id` and `flightId` have the same
    words.
    """
    plain: list[str] = []
    others: list[str] = []
    for text in texts:
        is_plain = text.islower() and text.isascii() and len(text) <= WORD_MAX and "\n" not in text
        (plain if is_plain else others).append(text)
    kept_words = _plain_words(plain) if plain else {}
    for text in others:
        if len(kept_words) > WORDS_MAX:
            break
        kept_words.update(_short_text_words(text) if len(text) <= WORD_MAX else _text_words(text))
    return " ".join(filter(None, kept_words))


def _plain_words(texts: Sequence[str]) -> dict[str, None]:
    """Return what `_text_words` returns, for short ASCII texts without capitals, all at once."""
    spaced = "\n".join(texts).translate(_SPACES)
    words = dict.fromkeys(spaced.split())
    if _DIGIT.search(spaced):
        words.update(dict.fromkeys(_PIECE.findall(spaced)))
    wholes = spaced.split("\n")
    if spaced.count(" ") >= JOINED_MAX:
        wholes = [each for each in wholes if len(each.split()) <= JOINED_MAX]
    words.update(dict.fromkeys("\n".join(wholes).replace(" ", "").split("\n")))
    return words


def _text_words(text: str) -> dict[str, None]:
    runs = _RUN.findall(text)
    words = [part for run in runs for part in _run_words(run)]
    if 1 < len(runs) <= JOINED_MAX and len(text) <= WORD_MAX:
        words.append(fold("".join(runs))[:WORD_MAX])
    return dict.fromkeys(words)


def _run_words(run: str) -> list[str]:
    words = [fold(run)[:WORD_MAX]]
    if not (run.isalpha() and run.islower()):  # else it is one piece without changes of case
        for piece in _PIECE.findall(run):
            words += [fold(part)[:WORD_MAX] for part in _CAMEL.split(piece)]
    return words


_short_text_words = lru_cache(maxsize=CACHED_TEXTS)(_text_words)
"""Names of columns occur in many tables."""


def question_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct search terms of a query: runs of letters and digits, case-folded."""
    runs = (fold(run)[:WORD_MAX] for word in words for run in _RUN.findall(word))
    return tuple(dict.fromkeys(run for run in runs if len(run) >= WORD_MIN))


def is_met(word: str, text: str) -> bool:
    """Return whether a text, in the form that `words_of` returns, has a word that begins with `word`."""
    return text.startswith(word) or f" {word}" in text
