# SPDX-License-Identifier: Apache-2.0
"""Similarity of two values: edit distance of strings and arrays, Jaccard similarity of collections.

Must not know plans. The work grows with the product of both lengths, so it is limited: beyond the limit an edit
distance is an error.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, cast

from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.functions.collections import Items, items
from limnos.rooms.sqlpp.language.functions.costs import linear_cost, match_cost, unit_cost
from limnos.rooms.sqlpp.language.functions.numbers import number, to_integer
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import Float, Integer, Value
from limnos.rooms.sqlpp.language.values.order import key

STEPS_MAX: Final = 1_000_000
"""The maximum product of two lengths for which an edit distance is computed."""
REMEMBERED_LENGTH_MAX: Final = 500
"""The longest collection whose counts are remembered for the next comparison."""
_FAR: Final = Integer((1 << 31) - 1)
"""The distance that a check returns if its limit is exceeded."""


def _parts(value: Value) -> Sequence[object] | None:
    """Return the elements to compare: lower-case characters of a string, or keys of items; None for another value."""
    if isinstance(value, str):
        return value.lower()
    return [key(item) for item in value] if isinstance(value, tuple) else None


def _distance(left: Value, right: Value) -> int | None:
    """Return the edit distance (Levenshtein); None for values that cannot be compared.

    Raises SqlppError for values that are too long.
    """
    one, other = _parts(left), _parts(right)
    if one is None or other is None or isinstance(left, str) != isinstance(right, str):
        return None
    return _fewest_edits(one, other)


def _fewest_edits(one: Sequence[object], other: Sequence[object], *, is_part: bool = False) -> int:
    """Return the edit distance of two sequences; with `is_part`, the distance of `other` from the most similar part of
    `one`.

    Raises SqlppError for sequences that are too long.
    """
    if len(one) * len(other) > STEPS_MAX:
        raise compilation(f"edit_distance() of values with more than {STEPS_MAX} pairs of positions takes too long")
    if not other:
        return 0 if is_part else len(one)
    places: dict[object, int] = {}
    for at, part in enumerate(other):
        places[part] = places.get(part, 0) | 1 << at
    width = (1 << len(other)) - 1
    last = 1 << (len(other) - 1)
    rises, falls, distance, nearest = width, 0, len(other), len(other)
    for part in one:  # Myers' bit-parallel algorithm: the bits of a number encode one column of the distance matrix
        same = places.get(part, 0)
        across = (((same & rises) + rises) ^ rises) | same
        more, less = falls | ~(across | rises) & width, rises & across
        distance += 1 if more & last else -1 if less & last else 0
        nearest = min(nearest, distance)
        more, less = more << 1 | (not is_part), less << 1
        rises, falls = (less | ~(same | falls | more)) & width, more & (same | falls)
    return nearest if is_part else distance


@scalar("edit_distance", least=2, cost=match_cost)
def edit_distance(left: Value, right: Value) -> Value:
    """Return the edit distance of two strings, case-insensitive, or of two arrays."""
    return _distance(left, right)


@scalar("edit_distance_check", least=3, cost=match_cost)
def edit_distance_check(left: Value, right: Value, most: Value) -> Value:
    """Return whether the edit distance is at most `most`, and the distance (the largest integer if it is larger)."""
    limit, distance = to_integer(most), _distance(left, right)
    if limit is None or distance is None:
        return None
    return (True, distance) if distance <= limit else (False, _FAR)


@scalar("edit_distance_contains", least=3, cost=match_cost)
def edit_distance_contains(text: Value, pattern: Value, most: Value) -> Value:
    """Return whether a part of a string or array is within the edit distance `most` of a pattern, and the smallest
    distance (the largest integer if it is larger).
    """
    limit, one, other = to_integer(most), _parts(text), _parts(pattern)
    if limit is None or one is None or other is None or isinstance(text, str) != isinstance(pattern, str):
        return None
    distance = _fewest_edits(one, other, is_part=True)
    return (True, distance) if distance <= limit else (False, _FAR)


@scalar("edit_distance_list_is_filterable", least=2, cost=linear_cost)
def is_filterable_list(value: Value, most: Value) -> Value:
    """Return whether lists within the edit distance `most` must share an item, so that an index on items can filter
    them.
    """
    elements, limit = items(value), to_integer(most)
    return None if elements is None or limit is None else len(elements) > limit


@scalar("edit_distance_string_is_filterable", least=4, cost=linear_cost)
def is_filterable_string(value: Value, most: Value, gram: Value, padded: Value) -> Value:
    """Return whether strings within the edit distance `most` must share an n-gram, so that an n-gram index can filter
    them.

    `gram` is the length of the n-grams; `padded` is whether they extend beyond the ends of the string.
    """
    limit, size = to_integer(most), to_integer(gram)
    if not isinstance(value, str) or limit is None or size is None or not isinstance(padded, bool):
        return None
    grams = len(value) + (size - 1 if padded else 1 - size)
    return bool(value) and grams > limit * size


def _lowered_key(item: Value) -> object:
    return key(item.lower() if isinstance(item, str) else item)


def _word_counts(words: tuple[str, ...]) -> Counter[object]:
    """Count the occurrences of strings, case-insensitive."""
    return Counter(map(str.lower, words))


_remembered_counts = lru_cache(512)(_word_counts)
"""A join compares each collection many times."""


def _counts(one: Items, other: Items) -> tuple[Counter[object], Counter[object]]:
    """Count the occurrences of each item in two collections."""
    if not all(type(item) is str for item in one) or not all(type(item) is str for item in other):
        return Counter(map(_lowered_key, one)), Counter(map(_lowered_key, other))
    count = _remembered_counts if max(len(one), len(other)) <= REMEMBERED_LENGTH_MAX else _word_counts
    return count(cast("tuple[str, ...]", one)), count(cast("tuple[str, ...]", other))


def _jaccard(left: Value, right: Value) -> float | None:
    """Return the Jaccard similarity of two multisets; strings are compared case-insensitive."""
    one, other = items(left), items(right)
    if one is None or other is None:
        return None
    shared = _shared(one, other)
    together = len(one) + len(other) - shared
    return Float(shared / together if together else 0.0)


def _shared(one: Items, other: Items) -> int:
    """Return the size of the multiset intersection of two collections."""
    first, second = _counts(one, other)
    return sum(min(count, second[item]) for item, count in first.items() if item in second)


@scalar("similarity_jaccard", "similarity_jaccard_sorted", least=2, cost=match_cost)
def similarity_jaccard(left: Value, right: Value) -> Value:
    """Return the Jaccard similarity of two arrays or multisets, from 0 to 1."""
    return _jaccard(left, right)


@scalar("similarity_jaccard_check", "similarity_jaccard_sorted_check", least=3, cost=match_cost)
def similarity_jaccard_check(left: Value, right: Value, least: Value) -> Value:
    """Return whether the Jaccard similarity is at least `least`, and the similarity (0 if it is smaller)."""
    limit, jaccard = number(least), _jaccard(left, right)
    if limit is None or jaccard is None:
        return None
    return (True, jaccard) if jaccard >= Float(limit) else (False, Float(0))


@scalar("prefix_len_jaccard", least=2, cost=unit_cost)
def prefix_length(length: Value, least: Value) -> Value:
    """Return the length of the prefix of a sorted list that must share an item with each list of similarity `least`."""
    count, limit = to_integer(length), number(least)
    if count is None or limit is None or not math.isfinite(shared := Float(Float(limit) * count)):
        return None
    return Integer(count - math.ceil(shared) + 1)


def _prefix_jaccard(arguments: Sequence[Value]) -> tuple[float, float] | None:
    """Return the Jaccard similarity of two lists, estimated from their prefixes and lengths (0 if it is below the
    minimum), and the minimum similarity.
    """
    length, left, other_length, right, _, least = arguments
    one, other, sizes, limit = items(left), items(right), (to_integer(length), to_integer(other_length)), number(least)
    if one is None or other is None or sizes[0] is None or sizes[1] is None or limit is None:
        return None
    shared = _shared(one, other)
    together = sizes[0] + sizes[1] - shared
    jaccard = Float(shared / together if together > 0 else 0.0)
    return (jaccard, Float(limit)) if jaccard >= Float(limit) else (Float(0), Float(limit))


@scalar("similarity_jaccard_prefix", least=6, cost=match_cost)
def similarity_jaccard_prefix(*arguments: Value) -> Value:
    """Return the Jaccard similarity of two lists from their lengths and prefixes; 0 if it is below the minimum."""
    result = _prefix_jaccard(arguments)
    return None if result is None else result[0]


@scalar("similarity_jaccard_prefix_check", least=6, cost=match_cost)
def similarity_jaccard_prefix_check(*arguments: Value) -> Value:
    """Return whether the Jaccard similarity reaches the minimum, and the similarity (0 if it does not)."""
    result = _prefix_jaccard(arguments)
    return None if result is None else (result[0] >= result[1], result[0])
