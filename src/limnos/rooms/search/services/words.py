# SPDX-License-Identifier: Apache-2.0
"""Words: the parts of names and texts that searches compare, and their matches with a query's words.

Pure. A word of a query matches every word that begins with it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Final, NamedTuple

from limnos.names.parts import fold

WORD_MIN: Final = 2
"""The length of the shortest search term, in characters."""
WORD_MAX: Final = 64
CACHED_TEXTS: Final = 16_384
"""The number of short texts whose words are cached: a few MiB."""
CACHED_LISTS: Final = 512
"""The number of lists of short texts, as of columns, whose words are cached: a few MiB, with `CACHED_LIST_CHARS`."""
CACHED_LIST_CHARS: Final = 1_000
"""The maximum length of these lists, in characters."""
WORDS_MAX: Final = 20_000
"""The maximum number of words of one text that are stored."""
CONTAINER_MARK: Final = "\u01c2"
"""A letter before the marked words of containers. Full-text tables need a letter; this one is in no usual name."""
JOINED_MAX: Final = 8
"""The maximum number of words of a text that are a word together, too."""
_SPACES: Final = bytes(code if code > 127 or chr(code).isalnum() or chr(code) == "\n" else 32 for code in range(256))
_RUN: Final = re.compile(r"[^\W_]+")
_DIGIT: Final = re.compile(r"[0-9]")
_PIECE: Final = re.compile(r"[0-9]+|[^\W\d_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class FieldWords(NamedTuple):
    """The distinct words of texts, in order: those of single runs of letters and digits, with their parts, and `joined`
    ones: a short text without its separators, `flightid` of `flight_id`. A word may be of both kinds.
    """

    single: dict[str, None]
    joined: dict[str, None]

    @property
    def text(self) -> str:
        """All words as one string, separated by spaces."""
        return " ".join(self.single | self.joined) if self.joined else " ".join(self.single)


NO_WORDS: Final = FieldWords({}, {})


class ObjectWords(NamedTuple):
    """The words of an object: of its name, of its columns' names, and of its comment and its columns' documentation.

    Each field is a string of words separated by spaces. `single` are the words of all fields except joined ones.
    """

    name: str
    columns: str
    comment: str
    single: Collection[str] = ()

    @property
    def texts(self) -> tuple[str, str, str]:
        """The three fields."""
        return self.name, self.columns, self.comment


def words_of(texts: Iterable[str]) -> str:
    """Return the distinct words of texts as one string, separated by spaces.

    Runs of letters and digits are words. Their parts, split at changes of case and between letters and digits, are
    words as well. A short text without its separators is also a word, so that `flight_id` and `flightId` have the same
    words.
    """
    return field_words(texts).text


def field_words(texts: Iterable[str]) -> FieldWords:
    """Return the words of `words_of` by their kinds."""
    texts = texts if isinstance(texts, list) else list(texts)
    if not (whole := "\n".join(texts)):
        return NO_WORDS
    if _is_plain(whole, texts):
        is_cached = len(texts) > 1 and len(whole) <= CACHED_LIST_CHARS
        return _plain_list_words(whole) if is_cached else _plain_words(whole)
    plain: list[str] = []
    others: list[str] = []
    for text in texts:
        (plain if _is_plain(text, (text,)) else others).append(text)
    single, joined = map(dict.copy, _plain_words("\n".join(plain)) if plain else NO_WORDS)
    for text in others:
        if len(single) > WORDS_MAX:
            break
        words = _short_text_words(text) if len(text) <= WORD_MAX else _text_words(text)
        single.update(words.single)
        joined.update(words.joined)
    return FieldWords(single, joined)


def _is_plain(whole: str, texts: Sequence[str]) -> bool:
    """Return whether texts, joined to `whole` by line feeds, are short ASCII texts of one line without capitals."""
    return (
        whole.islower()
        and whole.isascii()
        and whole.count("\n") == len(texts) - 1
        and (len(whole) <= WORD_MAX or max(map(len, texts)) <= WORD_MAX)
    )


def _plain_words(whole: str) -> FieldWords:
    """Return the words of texts of `_is_plain`, as `_text_words` does, all at once."""
    spaced = whole.encode().translate(_SPACES).decode()
    words = dict.fromkeys(spaced.split())
    if _DIGIT.search(spaced):
        for run in [run for run in words if not (run.isalpha() or run.isdecimal())]:
            words.update(dict.fromkeys(_PIECE.findall(run)))
    separators = spaced.count(" ")
    if not separators:
        return FieldWords(words, {})
    if separators >= JOINED_MAX:  # a text of many words is no word without its separators
        lines = spaced.split("\n")
        if max(map(str.count, lines, repeat(" "))) >= JOINED_MAX:
            spaced = "\n".join([line for line in lines if len(line.split()) <= JOINED_MAX])
    joined = dict.fromkeys(spaced.replace(" ", "").split("\n"))
    joined.pop("", None)
    return FieldWords(words, joined)


_plain_list_words = lru_cache(maxsize=CACHED_LISTS)(_plain_words)
"""Copies of a table, and the tables of a pipeline's stages, have the same columns."""


def _text_words(text: str) -> FieldWords:
    runs = _RUN.findall(text)
    words = dict.fromkeys([part for run in runs for part in _run_words(run)])
    if 1 < len(runs) <= JOINED_MAX and len(text) <= WORD_MAX:
        return FieldWords(words, {fold("".join(runs))[:WORD_MAX]: None})
    return FieldWords(words, {})


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
