# SPDX-License-Identifier: Apache-2.0
"""Grouping sets of GROUP BY: its distinct keys, and the combinations of ROLLUP, CUBE and GROUPING SETS.

Must not know plans.
"""

from __future__ import annotations

from collections.abc import Iterator

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.binder.group_bindings import key_outline
from limnos.rooms.sqlpp.language.errors import compilation

SETS_MAX = 256
"""The maximum number of grouping sets of one GROUP BY."""


def sets_of(elements: tuple[tree.Grouping, ...], shapes: list[list[object]]) -> tuple[tuple[int, ...], ...]:
    """Return the grouping sets, as indexes of keys: the sets of each element combined with those of every other
    element.

    Args:
        elements: The elements of GROUP BY.
        shapes: The outlines of the distinct keys.

    Raises:
        SqlppError: There are more than SETS_MAX sets.
    """
    results: list[tuple[int, ...]] = [()]
    for element in elements:
        one = _sets_of(element, shapes)
        results = [tuple(dict.fromkeys((*left, *right))) for left in results for right in one]
        if len(results) > SETS_MAX:
            raise compilation(f"GROUP BY comes to more than {SETS_MAX} grouping sets", element.at)
    return tuple(results)


def group_keys(elements: tuple[tree.Grouping, ...]) -> Iterator[tree.GroupKey]:
    """Yield the keys of all elements, in order."""
    for element in elements:
        match element:
            case tree.GroupSet(keys=keys):
                yield from keys
            case tree.Rollup(sets=sets):
                yield from group_keys(sets)
            case tree.GroupingSets(elements=inner):
                yield from group_keys(inner)


def _sets_of(element: tree.Grouping, shapes: list[list[object]]) -> list[tuple[int, ...]]:
    """Return the sets of one grouping element, as indexes of keys in `shapes`.

    Raises SqlppError for more than SETS_MAX sets.
    """
    if isinstance(element, tree.GroupSet):
        return [tuple(shapes.index(key_outline(key.value)) for key in element.keys)]
    if isinstance(element, tree.GroupingSets):
        return [one for inner in element.elements for one in _sets_of(inner, shapes)]
    parts = [_sets_of(one, shapes)[0] for one in element.sets]
    if not element.cube:
        return [_flat(parts[:count]) for count in range(len(parts), -1, -1)]
    if len(parts) > SETS_MAX.bit_length():
        raise compilation(f"GROUP BY comes to more than {SETS_MAX} grouping sets", element.at)
    every = range((1 << len(parts)) - 1, -1, -1)
    return [_flat([part for at, part in enumerate(parts) if mask >> (len(parts) - 1 - at) & 1]) for mask in every]


def _flat(parts: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for part in parts for number in part))
