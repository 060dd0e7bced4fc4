"""Similarity of two values: edit distance of strings and arrays, Jaccard similarity of collections.

May import the table and `values`. Must not know plans. The work grows with the product of both lengths, so both are
limited.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from limnos.sqlpp.errors import compilation
from limnos.sqlpp.functions.collections import items
from limnos.sqlpp.functions.costs import match_cost
from limnos.sqlpp.functions.numbers import number, whole
from limnos.sqlpp.functions.table import scalar
from limnos.sqlpp.values.order import key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.sqlpp.values.model import Value

STEPS_MAX: Final = 1_000_000
"""Largest product of two lengths for which an edit distance is computed."""


def _parts(value: Value) -> Sequence[object] | None:
    """The elements to compare: characters, or keys of items; None for another value."""
    if isinstance(value, str):
        return value
    return [key(item) for item in value] if isinstance(value, tuple) else None


def _distance(left: Value, right: Value) -> int | None:
    """The edit distance: the fewest insertions, deletions and replacements; None for values that cannot be compared."""
    one, other = _parts(left), _parts(right)
    if one is None or other is None or isinstance(left, str) != isinstance(right, str):
        return None
    if len(one) * len(other) > STEPS_MAX:
        raise compilation(f"edit_distance() of values with more than {STEPS_MAX} pairs of places takes too long")
    before = list(range(len(other) + 1))
    for at, first in enumerate(one, 1):
        row = [at]
        for place, second in enumerate(other, 1):
            row.append(min(row[-1] + 1, before[place] + 1, before[place - 1] + (first != second)))
        before = row
    return before[-1]


@scalar("edit_distance", least=2, cost=match_cost)
def edit_distance(left: Value, right: Value) -> Value:
    """The edit distance of two strings or two arrays."""
    return _distance(left, right)


@scalar("edit_distance_check", least=3, cost=match_cost)
def edit_distance_check(left: Value, right: Value, most: Value) -> Value:
    """Whether the edit distance is at most `most`, and the distance (0 if it is larger)."""
    limit, distance = whole(most), _distance(left, right)
    if limit is None or distance is None:
        return None
    return (True, distance) if distance <= limit else (False, 0)


def _jaccard(left: Value, right: Value) -> float | None:
    """The size of the intersection divided by that of the union, as multisets."""
    one, other = items(left), items(right)
    if one is None or other is None:
        return None
    first, second = Counter(map(key, one)), Counter(map(key, other))
    together = sum((first | second).values())
    return sum((first & second).values()) / together if together else 0.0


@scalar("similarity_jaccard", least=2, cost=match_cost)
def similarity_jaccard(left: Value, right: Value) -> Value:
    """Jaccard's similarity of two arrays or multisets, from 0 to 1."""
    return _jaccard(left, right)


@scalar("similarity_jaccard_check", least=3, cost=match_cost)
def similarity_jaccard_check(left: Value, right: Value, least: Value) -> Value:
    """Whether the similarity is at least `least`, and the similarity (0 if it is smaller)."""
    limit, jaccard = number(least), _jaccard(left, right)
    if limit is None or jaccard is None:
        return None
    return (True, jaccard) if jaccard >= limit else (False, 0.0)
