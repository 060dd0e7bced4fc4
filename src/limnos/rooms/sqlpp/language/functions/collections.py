# SPDX-License-Identifier: Apache-2.0
"""Functions on arrays and multisets, such as `array_append`.

Must not know plans. `array_contains`, `array_position`, `array_put`, `array_remove` and `array_replace` compare items
as `=` does, the other functions as DISTINCT does: NULL equals NULL. A result of too many items is an error. The result
is NULL for a value that is not a collection and for a position outside of it. The result has the type of the argument:
an array or a multiset.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from limnos.rooms.sqlpp.language.errors import SqlppError, compilation
from limnos.rooms.sqlpp.language.functions.costs import (
    compare_cost,
    linear_cost,
    match_cost,
    quadratic_cost,
    range_cost,
    repeat_cost,
    unit_cost,
)
from limnos.rooms.sqlpp.language.functions.numbers import number, to_integer
from limnos.rooms.sqlpp.language.functions.table import ANY_NUMBER, scalar
from limnos.rooms.sqlpp.language.values import comparison
from limnos.rooms.sqlpp.language.values.model import MISSING, Bag, Value, is_unknown, object_of
from limnos.rooms.sqlpp.language.values.order import key

DIFFERENT_LISTS = 1102
ITEMS_MAX = 1_000_000
"""The maximum number of items that a function creates from numbers."""

Items = tuple[Value, ...]


def items(value: Value) -> Items | None:
    """Return the items of an array or a multiset; None for another value."""
    return value if type(value) is tuple or isinstance(value, Bag) else None


def as_collection_like(model: Value, result: Items | list[Value]) -> Value:
    """Return the items as a multiset if `model` is one, else as an array."""
    return Bag(result) if isinstance(model, Bag) else tuple(result)


def distinct(values: Items | list[Value]) -> list[Value]:
    """Return the distinct values, in order of first occurrence."""
    values_by_key: dict[bytes, Value] = {}
    for value in values:
        values_by_key.setdefault(key(value), value)
    return list(values_by_key.values())


scalar("ordered_list_constructor", least=0, most=ANY_NUMBER, strict=False, cost=linear_cost)(lambda *values: values)
scalar("unordered_list_constructor", least=0, most=ANY_NUMBER, strict=False, cost=linear_cost)(
    lambda *values: Bag(values)
)


@scalar("array_length", "len", least=1, cost=unit_cost)
def length(value: Value) -> Value:
    """Return the count of items of a collection, of fields of an object, or of characters of a string."""
    return len(value) if isinstance(value, (str, dict)) or items(value) is not None else None  # type: ignore[arg-type]


@scalar("array_append", least=2, most=ANY_NUMBER, strict=False, cost=linear_cost)
def append(value: Value, *more: Value) -> Value:
    """Return the collection with the other arguments appended."""
    unknown = _unknown(value, *more)
    elements = items(value)
    return (
        unknown if unknown is not True else None if elements is None else as_collection_like(value, (*elements, *more))
    )


@scalar("array_prepend", least=2, most=ANY_NUMBER, strict=False, cost=linear_cost)
def prepend(*values: Value) -> Value:
    """Return the collection, which is the last argument, with the other arguments before its items."""
    *more, value = values
    unknown = _unknown(value, *more)
    elements = items(value)
    return (
        unknown if unknown is not True else None if elements is None else as_collection_like(value, (*more, *elements))
    )


def _unknown(value: Value, *more: Value) -> Value:
    """Return MISSING if an argument is MISSING, NULL if the collection is NULL, else True."""
    if value is MISSING or any(one is MISSING for one in more):
        return MISSING
    return None if value is None else True


def _check_list_types(values: Items) -> None:
    """Check that collections are either all arrays or all multisets. Raises SqlppError."""
    if len({isinstance(value, Bag) for value in values if items(value) is not None}) > 1:
        raise SqlppError(DIFFERENT_LISTS, "Input contains different list types")


@scalar("array_concat", least=2, most=ANY_NUMBER, cost=linear_cost)
def concat(*values: Value) -> Value:
    """Concatenate collections. Raises SqlppError for arrays together with multisets."""
    elements = [items(value) for value in values]
    arrays = [one for one in elements if one is not None]
    if len(arrays) != len(values):
        return None
    _check_list_types(values)
    return as_collection_like(values[0], tuple(item for one in arrays for item in one))


@scalar("array_contains", least=2, cost=match_cost)
def contains(value: Value, target: Value) -> Value:
    """Return whether the collection contains an item that equals `target`."""
    elements = items(value)
    return None if elements is None else any(comparison.equal(item, target) is True for item in elements)


@scalar("array_position", least=2, cost=match_cost)
def position(value: Value, target: Value) -> Value:
    """Return the 0-based position of the first item that equals `target`; -1 if there is none."""
    elements = items(value)
    if elements is None:
        return None
    return next((at for at, item in enumerate(elements) if comparison.equal(item, target) is True), -1)


@scalar("array_distinct", least=1, cost=compare_cost)
def array_distinct(value: Value) -> Value:
    """Return the distinct items; a MISSING item becomes NULL."""
    elements = items(value)
    if elements is None:
        return None
    return as_collection_like(value, distinct([None if item is MISSING else item for item in elements]))


@scalar("array_reverse", least=1, cost=linear_cost)
def reverse(value: Value) -> Value:
    """Return the items in reverse order."""
    elements = items(value)
    return None if elements is None else as_collection_like(value, elements[::-1])


@scalar("array_sort", least=1, cost=compare_cost)
def sort(value: Value) -> Value:
    """Sort the items by the total order of SQL++ values."""
    elements = items(value)
    return None if elements is None else as_collection_like(value, sorted(elements, key=key))


@scalar("array_flatten", least=2, cost=compare_cost)
def flatten(value: Value, depth: Value) -> Value:
    """Flatten nested collections by `depth` levels; a negative depth flattens all levels."""
    elements, levels = items(value), to_integer(depth)
    if elements is None or levels is None:
        return None
    results: list[Value] = []
    waiting = [(item, levels) for item in reversed(elements)]
    while waiting:
        item, left = waiting.pop()
        inner = items(item)
        if inner is None or left == 0:
            results.append(item)
        else:
            waiting.extend((one, left - 1) for one in reversed(inner))
    return as_collection_like(value, results)


@scalar("array_ifnull", least=1, cost=linear_cost)
def first_known(value: Value) -> Value:
    """Return the first item that is neither NULL nor MISSING."""
    elements = items(value)
    return None if elements is None else next((item for item in elements if not is_unknown(item)), None)


@scalar("array_insert", least=3, most=ANY_NUMBER, strict=False, cost=linear_cost)
def insert(value: Value, at: Value, *more: Value) -> Value:
    """Insert values before the item at a position; a negative position counts from the end."""
    unknown = _unknown(value, at, *more)
    elements, place = items(value), to_integer(at)
    if unknown is not True or elements is None or place is None:
        return None if unknown is True else unknown
    place += len(elements) if place < 0 else 0
    if not 0 <= place <= len(elements):
        return None
    return as_collection_like(value, (*elements[:place], *more, *elements[place:]))


@scalar("array_put", least=2, most=ANY_NUMBER, strict=False, cost=match_cost)
def put(value: Value, *more: Value) -> Value:
    """Append the values that are not in the collection yet; NULL if one of them is NULL."""
    unknown = _unknown(value, *more)
    elements = items(value)
    if unknown is not True or elements is None:
        return None if unknown is True else unknown
    if any(one is None for one in more):
        return None
    added_items = [one for one in more if not any(comparison.equal(item, one) is True for item in elements)]
    return as_collection_like(value, (*elements, *added_items))


@scalar("array_remove", least=2, most=ANY_NUMBER, cost=match_cost)
def remove(value: Value, *unwanted: Value) -> Value:
    """Return the items that are equal to none of the other arguments."""
    elements = items(value)
    if elements is None:
        return None
    return as_collection_like(
        value, [item for item in elements if not any(comparison.equal(item, one) is True for one in unwanted)]
    )


@scalar("array_replace", least=3, most=4, strict=False, cost=match_cost)
def replace(value: Value, old: Value, new: Value, limit: Value = -1) -> Value:
    """Replace items that equal a value, at most `limit` of them; -1 replaces all."""
    unknown = _unknown(value, old, new, limit)
    elements, left = items(value), to_integer(limit)
    if unknown is not True or old is None or elements is None or left is None:
        return unknown if unknown is not True else None
    results: list[Value] = []
    for item in elements:
        hit = left != 0 and comparison.equal(item, old) is True
        results.append(new if hit else item)
        left -= hit
    return as_collection_like(value, results)


@scalar("array_repeat", least=2, strict=False, cost=repeat_cost(1))
def repeat(value: Value, count: Value) -> Value:
    """Return an array of `count` copies of a value."""
    unknown = _unknown(count, value)
    times = to_integer(count)
    if unknown is not True or value is None or times is None or times < 0:
        return None if unknown is True else unknown
    _require_item_count(times)
    return (value,) * times


@scalar("array_range", least=2, most=3, cost=range_cost)
def array_range(start: Value, end: Value, step: Value = 1) -> Value:
    """Return the numbers from `start` to `end` (exclusive), as doubles if an argument is one; empty for a step of 0."""
    first, last, by = number(start), number(end), number(step)
    if first is None or last is None or by is None:
        return None
    if not all(map(math.isfinite, (first, last, by))):
        return None
    if by == 0:
        return ()
    length = math.ceil(min(max(0, (last - first) / by), ITEMS_MAX + 1))  # the width of two doubles may be infinite
    _require_item_count(length)
    if any(isinstance(each, float) for each in (first, last, by)):
        first, by = float(first), float(by)
    elements: list[Value] = []
    value = first
    while (value < last if by > 0 else value > last) and len(elements) <= length:
        elements.append(value)
        value += by  # repeated addition, as in AsterixDB, so that doubles get the same rounding errors
    return tuple(elements)


@scalar("range", least=2, cost=range_cost)
def integer_range(start: Value, end: Value) -> Value:
    """Return the integers from `start` to `end` (inclusive)."""
    first, last = to_integer(start), to_integer(end)
    if first is None or last is None:
        return None
    _require_item_count(last - first + 1)
    return tuple(range(first, last + 1))


def _require_item_count(count: int) -> None:
    if count > ITEMS_MAX:
        raise compilation(f"A function would return an array of more than {ITEMS_MAX} items")


@scalar("array_slice", least=2, most=3, cost=linear_cost)
def array_slice(value: Value, start: Value, *end: Value) -> Value:
    """Return the items from `start` to `end` (exclusive); NULL if a position is out of bounds or no item is
    selected.
    """
    elements, first = items(value), to_integer(start)
    last = None if elements is None else to_integer(end[0]) if end else len(elements)
    if elements is None or first is None or last is None:
        return None
    first += len(elements) if first < 0 else 0
    last += len(elements) if last < 0 else 0
    return as_collection_like(value, elements[first:last]) if 0 <= first < last <= len(elements) else None


def _sets(values: Items) -> list[dict[bytes, Value]] | None:
    """Return the distinct items of each collection by comparison key; None if a value is not a collection.

    Raises SqlppError for arrays together with multisets.
    """
    _check_list_types(values)
    elements = []
    for value in values:
        items_of = items(value)
        if items_of is None:
            return None
        elements.append({key(item): item for item in reversed(items_of)})
    return elements


@scalar("array_union", least=2, most=ANY_NUMBER, cost=compare_cost)
def union(*values: Value) -> Value:
    """Return the distinct items of all collections."""
    all_items = concat(*values)
    return None if all_items is None else array_distinct(all_items)


@scalar("array_intersect", least=2, most=ANY_NUMBER, cost=compare_cost)
def intersect(*values: Value) -> Value:
    """Return the distinct items that all collections contain; NULL and MISSING are ignored."""
    sets = _sets(values)
    elements = items(values[0])
    if sets is None or elements is None:
        return None
    return as_collection_like(
        values[0],
        [item for item in distinct(elements) if not is_unknown(item) and all(key(item) in one for one in sets[1:])],
    )


@scalar("array_except", least=2, cost=compare_cost)
def difference(value: Value, other: Value) -> Value:
    """Return the items that the other collection does not contain."""
    elements, sets = items(value), _sets((other,))
    if elements is None or sets is None:
        return None
    return as_collection_like(value, [item for item in elements if key(item) not in sets[0]])


def _matching_items(values: Items) -> list[list[Value]] | None:
    """Group equal items of all collections: a list for each distinct item, with one element per collection that
    contains it.

    None if a value is not a collection.
    """
    sets = _sets(values)
    if sets is None:
        return None
    result: dict[bytes, list[Value]] = {}
    for one in sets:
        for name, item in one.items():
            result.setdefault(name, []).append(item)
    return list(result.values())


@scalar("array_symdiff", least=2, most=ANY_NUMBER, cost=compare_cost)
def symmetric_difference(*values: Value) -> Value:
    """Return the items that exactly one collection contains."""
    shared = _matching_items(values)
    return None if shared is None else as_collection_like(values[0], [same[0] for same in shared if len(same) == 1])


@scalar("array_symdiffn", least=2, most=ANY_NUMBER, cost=compare_cost)
def odd_difference(*values: Value) -> Value:
    """Return the items that an odd number of collections contains."""
    shared = _matching_items(values)
    return None if shared is None else as_collection_like(values[0], [same[0] for same in shared if len(same) % 2])


def _moving(name: str, work: Callable[[list[Value], tuple[int, int]], None]) -> None:
    """Register a function that moves items of an array, given two positions; negative positions count from the end."""

    def run(value: Value, *expected: Value) -> Value:
        elements, positions = items(value), tuple(map(to_integer, expected))
        if elements is None or isinstance(value, Bag) or None in positions:
            return None
        one, other = (place + len(elements) if place < 0 else place for place in positions if place is not None)
        if not (0 <= one < len(elements) and 0 <= other < len(elements)):
            return None
        results = list(elements)
        work(results, (one, other))
        return as_collection_like(value, results)

    scalar(name, least=3, cost=linear_cost)(run)


def _move(elements: list[Value], places: tuple[int, int]) -> None:
    elements.insert(places[1], elements.pop(places[0]))


def _swap(elements: list[Value], places: tuple[int, int]) -> None:
    one, other = places
    elements[one], elements[other] = elements[other], elements[one]


_moving("array_move", _move)
_moving("array_swap", _swap)


@scalar("array_binary_search", least=2, cost=compare_cost)
def binary_search(value: Value, target: Value) -> Value:
    """Return the first position of a value in a sorted array; -1 if it is not in the array. NULL for a multiset."""
    elements = items(value)
    if elements is None or isinstance(value, Bag):
        return None
    target_key, low, high = key(target), 0, len(elements)
    while low < high:
        middle = (low + high - 1) // 2
        current = key(elements[middle])
        if current == target_key:
            while middle and key(elements[middle - 1]) == target_key:
                middle -= 1
            return middle
        low, high = (middle + 1, high) if current < target_key else (low, middle)
    return -1


@scalar("array_star", least=1, cost=quadratic_cost)
def star(value: Value) -> Value:
    """Transpose an array of objects to an object of arrays, which has its fields in the order of their names.

    Each array has one item per item of the argument, NULL for an absent field. MISSING if no item has a field.
    """
    elements = items(value)
    if elements is None:
        return None
    objects = [item for item in elements if isinstance(item, dict)]
    names = sorted({name for item in objects for name in item})
    if not names:
        return MISSING
    return object_of(
        (name, tuple(item.get(name) if isinstance(item, dict) else None for item in elements)) for name in names
    )


@scalar("subset_collection", least=3, cost=linear_cost)
def subset(value: Value, start: Value, count: Value) -> Value:
    """Return `count` items of an array, from the offset `start`."""
    elements, first, number_of = items(value), to_integer(start), to_integer(count)
    if elements is None or first is None or number_of is None or first < 0:
        return None
    return tuple(elements[first : first + max(number_of, 0)])
