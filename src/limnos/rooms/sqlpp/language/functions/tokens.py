# SPDX-License-Identifier: Apache-2.0
"""Tokenizing functions: words and n-grams of strings, their hashes, and full-text search.

Must not know plans. Words are runs of letters and digits. Each letter is converted to lower case separately, as
AsterixDB's tokenizers do. A hash of a token is an `integer`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.costs import character_cost, product_cost
from limnos.rooms.sqlpp.language.functions.numbers import to_integer
from limnos.rooms.sqlpp.language.functions.strings import require_length
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import Integer, Value

_WORD: Final = re.compile(r"[^\W_]+")
REMEMBERED_LENGTH_MAX: Final = 500
_GOLDEN_RATIO: Final = 0x9E3779B9
_MODES: Final = {"any": any, "all": all, "disjunctive": any, "conjunctive": all}


def _lower_characters(text: str) -> str:
    return "".join(character.lower()[:1] for character in text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_lower_characters(text)))


@scalar("word_tokens", least=1, cost=character_cost)
def word_tokens(value: Value) -> Value:
    """Return the words of a string in lower case: runs of letters and digits."""
    return _words(value) if isinstance(value, str) else None


def _grams(value: Value, length: Value, *, padded: Value) -> tuple[str, ...] | None:
    """Return the n-grams of a string in lower case: all substrings of a length.

    If `padded`, also those that extend beyond the ends of the string. Raises SqlppError if they are too long in total.
    """
    size = to_integer(length)
    if not isinstance(value, str) or size is None or size < 1 or not isinstance(padded, bool):
        return None
    if not padded and size > len(value):
        return ()
    require_length((len(value) + size) * size)
    return (_remembered_grams if len(value) <= REMEMBERED_LENGTH_MAX else _all_grams)(value, size, padded=padded)


def _all_grams(value: str, size: int, *, padded: bool) -> tuple[str, ...]:
    text = _lower_characters(value)
    if padded:
        text = "#" * (size - 1) + text + "$" * (size - 1)
    return tuple(text[at : at + size] for at in range(len(text) - size + 1))


_remembered_grams = lru_cache(512)(_all_grams)
"""A join computes the grams of each string many times."""


@scalar("gram_tokens", least=3, cost=product_cost)
def gram_tokens(value: Value, length: Value, padded: Value) -> Value:
    """Return the n-grams of a string in lower case: all substrings of a length.

    If `padded`, also those that extend beyond the ends of the string.
    """
    return _grams(value, length, padded=padded)


def _hash(token: str, occurrence: int) -> Integer:
    number = _GOLDEN_RATIO
    for character in token:
        number = ((number ^ ord(character)) * _GOLDEN_RATIO) & 0xFFFFFFFF
    number = (number + occurrence) & 0xFFFFFFFF
    return Integer(number - (1 << 32) if number >> 31 else number)


def _hashes(tokens: Iterable[str] | None, *, counts: bool) -> Value:
    """Return the hashes of tokens; with `counts` the second and later occurrences of a token have other hashes."""
    if tokens is None:
        return None
    token_counts: Counter[str] = Counter()
    hashes = []
    for token in tokens:
        token_counts[token] += 1
        hashes.append(_hash(token, token_counts[token] if counts else 1))
    return tuple(hashes)


def _register_hashes(prefix: str, *, counts: bool) -> None:
    def hash_words(value: Value) -> Value:
        return _hashes(_words(value) if isinstance(value, str) else None, counts=counts)

    def hash_grams(value: Value, *options: Value) -> Value:
        length, padded = options
        return _hashes(_grams(value, length, padded=padded), counts=counts)

    scalar(f"{prefix}_word_tokens", least=1, cost=character_cost)(hash_words)
    scalar(f"{prefix}_gram_tokens", least=3, cost=product_cost)(hash_grams)


_register_hashes("hashed", counts=False)
_register_hashes("counthashed", counts=True)


@scalar("ftcontains", least=2, most=3, cost=character_cost)
def contains_words(value: Value, target: Value, options: Value = None) -> Value:
    """Return whether a string contains all words of another string, or of the strings of a collection.

    With the mode `any` one word is sufficient.
    """
    strings = (target,) if isinstance(target, str) else items(target)
    chosen = options if isinstance(options, dict) else {}
    mode = chosen.get("mode", "all")
    if not isinstance(value, str) or strings is None or not isinstance(mode, str) or mode.lower() not in _MODES:
        return None
    if not all(isinstance(one, str) for one in strings):
        return None
    own_words = frozenset(_words(value))
    return _MODES[mode.lower()](word in own_words for one in strings for word in _words(str(one)))
